"""``python corpus_child.py LIBRARY``: the outcomes of all programs in one library, as JSON.

LIBRARY is ``pytensor`` for what is installed under that name, or ``phintys`` for this package
under the name of PyTensor.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

from corpus_describe import Json, outcome

PROGRAMS = Path(__file__).parent / "programs"
AREAS = sorted(path.stem for path in PROGRAMS.glob("area_*.py"))


def programs(module: ModuleType) -> dict[str, Callable[[], Iterable[object]]]:
    """The programs of an area: its public generator functions."""
    area = module.__name__.removeprefix("area_")
    return {
        f"{area}.{name}": f
        for name, f in vars(module).items()
        if inspect.isgeneratorfunction(f) and f.__module__ == module.__name__
    }


def outcomes(areas: Iterable[str]) -> dict[str, list[Json]]:
    """What each program of these areas gives."""
    found: dict[str, list[Json]] = {}
    for area in areas:
        for name, program in programs(importlib.import_module(area)).items():
            found[name] = outcome(program)
    return found


def main(library: str, *chosen: str) -> None:
    if library == "phintys":
        from phintys.compat import install

        install("pytensor")
    sys.path.insert(0, str(PROGRAMS))
    areas = [f"area_{name}" for name in chosen] or AREAS
    with contextlib.redirect_stdout(sys.stderr):  # what programs print
        found = outcomes(areas)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
