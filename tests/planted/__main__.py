"""``python -m tests.planted``: which lines tests reach, and whether they find faults in them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from planted_reach import difference, totals
from reach_plugin import read

RECORD = Path(".reach/record.json.gz")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def command(name: str, run, help: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help)
        added.set_defaults(run=run)
        return added

    totals = command("totals", show_totals, "lines and branches that a record has")
    totals.add_argument("record", type=Path, nargs="?", default=RECORD)
    compared = command("difference", show_difference, "what a second record lost and gained")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path, nargs="?", default=RECORD)
    return parser.parse_args()


def show_totals(options: argparse.Namespace) -> None:
    print(totals(read(options.record)))


def show_difference(options: argparse.Namespace) -> None:
    print(difference(read(options.before), read(options.after)))


if __name__ == "__main__":
    options = parsed()
    options.run(options)
