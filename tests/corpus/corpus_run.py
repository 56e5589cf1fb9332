"""Outcomes of the programs in a process of each library, the stored ones, and their differences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from corpus_compare import differences
from corpus_describe import Json

HERE = Path(__file__).parent
REFERENCE = HERE / "reference.json"
EXPECTED = HERE / "differences.txt"
#: PyTensor as it runs without a compiler
FLAGS = {"PYTENSOR_FLAGS": "mode=FAST_COMPILE,linker=py,cxx="}

Outcomes = dict[str, list[Json]]


def outcomes_in(python: str, *areas: str) -> Outcomes:
    """The outcomes in the PyTensor of an environment, given by its interpreter."""
    return _child(python, "pytensor", areas, FLAGS)


def outcomes_here(*areas: str) -> Outcomes:
    """The outcomes in this package under the name of PyTensor, without machine code."""
    variables = {"PYTHONPATH": str(HERE.parents[1]), "PHINTYS_FLAGS": "mode=FAST_COMPILE"}
    return _child(sys.executable, "phintys", areas, variables)


def _child(
    python: str, library: str, areas: tuple[str, ...], variables: dict[str, str]
) -> Outcomes:
    own = {k: v for k, v in os.environ.items() if "PYTENSOR" not in k and k != "PYTHONPATH"}
    done = subprocess.run(
        [python, str(HERE / "corpus_child.py"), library, *areas],
        env={**own, **variables}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"The programs did not run in {library}:\n{done.stderr}")
    return json.loads(done.stdout)


def read_reference() -> Outcomes:
    """What PyTensor gave when the file was written."""
    return json.loads(REFERENCE.read_text())


def write_reference(outcomes: Outcomes) -> None:
    """Store outcomes, one program a line; of exceptions the class alone."""
    lines = (
        f"{json.dumps(name)}: {json.dumps(_short(found), separators=(',', ':'))}"
        for name, found in sorted(outcomes.items())
    )
    REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _short(description: Json) -> Json:
    if isinstance(description, list):
        return [_short(part) for part in description]
    if isinstance(description, dict) and "raises" in description:
        classes = description["raises"]
        assert isinstance(classes, list)
        return {"raises": classes[:1]}
    if isinstance(description, dict):
        return {key: _short(part) for key, part in description.items()}
    return description


def all_differences(ours: Outcomes, theirs: Outcomes) -> dict[str, dict[str, str]]:
    """For each program that differs, the places of its outcome and what they are in both."""
    found = {
        name: dict(line.split(": ", 1) for line in differences(results, theirs[name]))
        for name, results in ours.items()
    }
    return {name: places for name, places in found.items() if places}


def expected() -> Iterator[tuple[str, str]]:
    """The places that may differ, as ``program[place]``, each with the phrase that says why."""
    phrase = ""
    for line in EXPECTED.read_text().splitlines():
        if line.startswith("= "):
            phrase = line.removeprefix("= ")
        elif line and not line.startswith("#"):
            yield line, phrase
