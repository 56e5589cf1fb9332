"""Cells that a backend is known to fail, each with its reason.

A blank that works fails the tests: the list cannot go stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from matrix_run import Cell


@dataclass(frozen=True)
class Blank:
    """Cells of some backends whose ``name dtype ranks, kind`` matches one of the patterns."""

    backends: tuple[str, ...]
    patterns: tuple[str, ...]
    reason: str

    def covers(self, cell: Cell) -> bool:
        text = f"{cell.column.name} {cell.column.dtype} {cell.column.ranks}, {cell.kind}"
        return cell.backend in self.backends and any(fnmatchcase(text, p) for p in self.patterns)


BLANKS: list[Blank] = []


def blank_of(cell: Cell) -> Blank | None:
    """The entry that covers a cell."""
    return next((b for b in BLANKS if b.covers(cell)), None)
