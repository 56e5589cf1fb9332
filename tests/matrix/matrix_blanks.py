"""Cells that a backend is known to fail, each with its reason.

A blank that works fails the tests: the list cannot go stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from matrix_cells import Cell


@dataclass(frozen=True)
class Blank:
    """Cells of some backends whose ``name dtype ranks, kind`` matches one of the patterns.

    ``always``: in every version of the library, so that none of the cells is right.
    """

    backends: tuple[str, ...]
    patterns: tuple[str, ...]
    reason: str
    always: bool = True

    def covers(self, cell: Cell) -> bool:
        text = f"{cell.column.name} {cell.column.dtype} {cell.column.ranks}, {cell.kind}"
        return cell.backend in self.backends and any(fnmatchcase(text, p) for p in self.patterns)


BLANKS = [
    Blank(
        ("jax",),
        (
            "nonzero *",
            "compress *",
            "x[[]mask] [!=]*",
            "repeat counts *",
            "repeat float64 km k@n*",
            "unique *",
            "bincount *",
            "tri[lu]_indices*",
            "flatnonzero *",
            "nonzero_values *",
        ),
        "XLA compiles for fixed shapes; here a length depends on values",
    ),
    Blank(
        ("jax",),
        (
            "k1 float64 vector, [cs]*",
            "beta float* broadcast, broadcast",
            "betainc float* matrix, [cs]*",
            "erfcinv float64 vector, [cs]*",
        ),
        "JAX's own function is NaN or infinite at some zeros, infinities and subnormal numbers",
        always=False,
    ),
    Blank(
        ("jax",),
        ("gammaincc uint8 broadcast, broadcast",),
        "JAX's own function is less accurate for large arguments",
    ),
    Blank(
        ("jax",),
        ("psi_increment float64 matrix, [cs]*",),
        "JAX's digamma is infinite or less accurate next to its poles below 0",
        always=False,
    ),
    Blank(
        ("jax",),
        ("gammaln_increment float64 matrix, [cs]*",),
        "at large negative numbers two logarithms cancel, and JAX's are rounded otherwise",
        always=False,
    ),
]


def blank_of(cell: Cell) -> Blank | None:
    """The entry that covers a cell."""
    return next((b for b in BLANKS if b.covers(cell)), None)
