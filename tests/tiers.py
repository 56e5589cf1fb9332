"""What of a test ``make test`` leaves to ``make test-all``: cases marked ``rest``.

Those marked ``full`` are left to ``PHINTYS_TESTS=full make test-all``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

#: backends that compile slowly, and dtypes that are computed as others are
DEAR = {"NUMBA", "JAX", "C", "float32", "complex128"}
#: for tests and parameters that are dear and rarely find what others do not
rest = pytest.mark.rest
#: for those that take many seconds, and have others like them in the rest
full = pytest.mark.full


def few(values: Iterable[Any], *chosen: Any, left: Sequence[Any] = ()) -> list[Any]:
    """Values of a parameter: `rest`, but for those in ``chosen``, and those in ``left``: `full`."""
    return few_rows([(v,) for v in values], *((v,) for v in chosen), left=[(v,) for v in left])


def few_rows(
    rows: Iterable[tuple[Any, ...]],
    *chosen: tuple[Any, ...],
    left: Sequence[tuple[Any, ...]] = (),
) -> list[Any]:
    """As `few`, for several parameters: a row has a value of each.

    Raises
    ------
    ValueError
        if a row that is named is not there
    """
    rows = list(rows)
    missing = [row for row in (*chosen, *left) if row not in rows]
    if missing:
        raise ValueError(f"not among the parameters: {missing}")

    def marks(row: tuple[Any, ...]) -> Any:
        return () if row in chosen else full if row in left else rest

    return [pytest.param(*row, marks=marks(row)) for row in rows]


def cheap(cells: Iterable[str | tuple[str, ...]], *also: str | tuple[str, ...]) -> list[Any]:
    """Parameters of a test that compiles much: backends, or rows that begin with a backend.

    ``make test`` leaves out what is `DEAR`, unless it, or its backend, is in ``also``.
    """
    rows = [(cell,) if isinstance(cell, str) else cell for cell in cells]
    named = [row for row in rows if row[0] in also or row in also]
    return few_rows(rows, *named, *(row for row in rows if DEAR.isdisjoint(row)))
