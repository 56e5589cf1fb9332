"""Faults as text: a module, a function, the text in it that is wrong, and the right one.

Texts are whole lines without their common indentation, so a fault survives moves.  The file
``faults.json`` has those that are ``drawn`` for the tests, and those that the ``fuzzer`` must find.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from planted_text import spans

FAULTS = Path(__file__).with_name("faults.json")


class Gone(Exception):
    """The text of a fault is not in the package any more, or in several places."""


@dataclass(frozen=True)
class Fault:
    """``old`` becomes ``new``, within a function (its qualified name) of a module (its path)."""

    name: str
    kind: str
    module: str
    function: str
    old: str
    new: str

    @property
    def key(self) -> str:
        """The same for the same text; the name may change."""
        parts = self.module, self.function, self.old, self.new
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def lines_in(self, source: str) -> range:
        """The lines of the old text in a module, numbered from 1."""
        count, lines = self.old.count("\n") + 1, source.split("\n")
        starts = {
            k
            for span in spans(source, self.function)
            for k in span[: len(span) - count + 1]
            if dedented(lines[k - 1 : k - 1 + count]) == self.old
        }
        if len(starts) != 1:
            place = f"{self.function} of {self.module}"
            raise Gone(f"{place}: {len(starts)} places have the text of {self.name!r}")
        (start,) = starts
        return range(start, start + count)

    def changed_lines(self, source: str) -> set[int]:
        """Those of the old text that are not in the new one as they are."""
        where, old, new = self.lines_in(source), self.old.split("\n"), self.new.split("\n")
        if len(old) != len(new):
            return {k for k, text in zip(where, old) if text not in new} or {*where}
        return {k for k, before, after in zip(where, old, new) if before != after}

    def applied(self, source: str) -> str:
        """The text of the module with the fault."""
        where, lines = self.lines_in(source), source.split("\n")
        first = lines[where.start - 1 : where.stop - 1]
        indent = min((len(t) - len(t.lstrip()) for t in first if t.strip()), default=0)
        lines[where.start - 1 : where.stop - 1] = [textwrap.indent(self.new, " " * indent)]
        return "\n".join(lines)

    def module_in(self, sources: dict[str, str]) -> str:
        """The module that has it: the one of its path, or the only one to which it moved."""
        if self.is_in(sources.get(self.module, "")):
            return self.module
        title = self.function.rpartition(".")[2]
        found = [m for m, text in sources.items() if title in text and self.is_in(text)]
        if len(found) != 1:
            raise Gone(f"{self.name!r} is not in {self.module}, and in {len(found)} other modules")
        return found[0]

    def is_in(self, source: str) -> bool:
        try:
            return bool(self.lines_in(source))
        except Gone:
            return False


def sources_of(root: Path) -> dict[str, str]:
    """The path of each module of the package -> its text."""
    paths = sorted(root.glob("phintys/**/*.py"))
    return {p.relative_to(root).as_posix(): p.read_text(encoding="utf-8") for p in paths}


def dedented(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(lines))


def read_faults(section: str, path: Path = FAULTS) -> list[Fault]:
    return [Fault(**row) for row in json.loads(path.read_text(encoding="utf-8"))[section]]


def write_faults(section: str, faults: list[Fault], path: Path = FAULTS) -> None:
    """Replace one section of the file."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    stored[section] = [asdict(f) for f in faults]
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")


@contextmanager
def planted(root: Path, fault: Fault) -> Iterator[None]:
    """The package in this folder has the fault."""
    path = root / fault.module_in(sources_of(root))
    before = path.read_text(encoding="utf-8")
    try:
        _replace(path, fault.applied(before))
        yield
    finally:
        _replace(path, before)


def _replace(path: Path, text: str) -> None:
    """Write a module; its bytecode goes, which may have the same size and second."""
    path.write_text(text)
    for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        cached.unlink()


def copied_package(root: Path, target: Path) -> None:
    """Copy the package with its bytecode, which stays valid."""
    shutil.copytree(root / "phintys", target / "phintys")
