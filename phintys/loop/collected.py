"""Outputs of a loop whose rows have lengths that only a step knows: Python collects the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from phintys.dims import Dim
from phintys.errors import ShapeError
from phintys.graph.builder import Builder, V


class Rows:
    """The last rows of an output, ``most`` of them at most; ``name`` is that of the output.

    ShapeError if a row has another shape than the one before it.
    """

    def __init__(self, most: int, name: Callable[[], str]) -> None:
        self.rows: deque[np.ndarray] = deque(maxlen=most)
        self.name = name
        self.count = 0

    def append(self, row: np.ndarray) -> None:
        """Add the row of the next step: a copy, since the step's memory is used again."""
        if self.rows and row.shape != self.rows[-1].shape:
            raise ShapeError(
                different_rows(self.name(), self.count, row.shape, self.rows[-1].shape)
            )
        self.rows.append(row.copy())
        self.count += 1


def different_rows(name: str, step: int, found: tuple[int, ...], before: tuple[int, ...]) -> str:
    """The message for a row of another shape than those before it."""
    return (
        f"The result of step {step} for {name} has shape {found}; the rows before it have shape "
        f"{before}."
    )


def first_rows(b: Builder[V], most: Dim, name: Callable[[], str]) -> V:
    """An object that `append` adds rows to."""
    (rows,) = b.python(
        lambda most: (Rows(int(most), name),), [b.scalar(most)], [(None, ())], "collect"
    )
    return rows


def append(rows: Rows, row: np.ndarray) -> tuple[Rows]:
    """The object with a further row."""
    rows.append(row)
    return (rows,)


def stacked(b: Builder[V], rows: V, dtype: str, lengths: Sequence[Dim | None]) -> V:
    """The rows as one array; if there are none, ``lengths`` that are None are 0."""
    known = b.vector([0 if d is None else d for d in lengths])

    def stack(rows: Rows, known: np.ndarray) -> tuple[np.ndarray]:
        if not rows.rows:
            return (np.empty((0, *known), dtype),)
        return (np.stack(list(rows.rows)).astype(dtype, copy=False),)

    shape = (None, *(None if d is None else d.value for d in lengths))
    (found,) = b.python(stack, [rows, known], [(dtype, shape)], "collect")
    return found
