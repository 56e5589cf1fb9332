"""``python -m tests.corpus``: small programs in this package and in PyTensor, compared.

Each library has a process of its own.  Without ``--oracle`` the outcomes in PyTensor are those that
are stored in ``reference.json``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from corpus_run import all_differences, outcomes_here, outcomes_in, read_reference, write_reference


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("areas", nargs="*", help="areas of programs, such as indexing; all if none")
    parser.add_argument("--oracle", help="the interpreter of an environment with PyTensor")
    parser.add_argument("--write", action="store_true", help="store what PyTensor gives")
    options = parser.parse_args()
    if options.write and (options.areas or not options.oracle):
        parser.error("--write needs --oracle and all areas")
    theirs = outcomes_in(options.oracle, *options.areas) if options.oracle else read_reference()
    if options.write:
        write_reference(theirs)
    ours = outcomes_here(*options.areas)
    report(ours, {name: theirs[name] for name in ours})
    return 0


def report(ours: dict[str, list], theirs: dict[str, list]) -> None:
    """Print the differences, and how many programs of each area have none."""
    differences = all_differences(ours, theirs)
    for name, places in differences.items():
        for place, text in places.items():
            print(f"{name}{place}: {text}")
    programs = Counter(name.partition(".")[0] for name in ours)
    differing = Counter(name.partition(".")[0] for name in differences)
    for area, count in sorted(programs.items()):
        print(f"{area}: {count - differing[area]} of {count} programs agree")
    print(f"all: {len(ours) - len(differences)} of {len(ours)} programs agree")


if __name__ == "__main__":
    raise SystemExit(main())
