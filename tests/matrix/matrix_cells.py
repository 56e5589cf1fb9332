"""The cells of the matrix: op x dtype x shape kind, to be run on every backend.

A `Column` is one expression (op, dtype and ranks of its arguments).  It is compiled once per
backend and called with one set of arguments for each shape kind; each call is a cell.  Columns are
compiled many at a time: see `matrix_run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phintys.tensor.type import TensorType

DTYPES = ("bool", "int8", "int64", "uint8", "float16", "float32", "float64", "complex128")


@dataclass(frozen=True)
class Column:
    """One expression, and the arguments that it is called with.

    Attributes
    ----------
    family, name, dtype, ranks
        what a reader sees: ``arith add float32 2``
    build
        from input variables to the expression
    types
        (dtype, static shape) of each input
    arguments
        shape kind -> one array per input
    expected
        from arrays to the result, in NumPy; None: the reference backend is only checked against the
        static type
    """

    family: str
    name: str
    dtype: str
    ranks: str
    build: Callable[..., Any] = field(compare=False, repr=False)
    types: tuple[tuple[str, tuple[int | None, ...]], ...] = field(compare=False, repr=False)
    arguments: Mapping[str, Sequence[np.ndarray]] = field(compare=False, repr=False)
    expected: Callable[..., Any] | None = field(compare=False, repr=False, default=None)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.arguments)

    def variables(self) -> list[Any]:
        return [TensorType(dtype, shape)() for dtype, shape in self.types]

    def __str__(self) -> str:
        return f"{self.family} {self.name} {self.dtype} {self.ranks}"


@dataclass(frozen=True)
class Cell:
    """What is counted: a column on a backend with one shape kind."""

    column: Column
    kind: str
    backend: str

    def __str__(self) -> str:
        return f"{self.backend}: {self.column}, {self.kind}"


def strided(a: np.ndarray) -> np.ndarray:
    """The same values, with negative strides; matrices are also transposed in memory."""
    if a.ndim == 0:
        return a
    if a.ndim == 1:
        wide = np.repeat(a, 2)
        return wide[::2][::-1]
    return np.asfortranarray(a)[::-1]


def every(pool: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """An array that holds each value of ``pool`` as long as there is room, in random order."""
    size = int(np.prod(shape))
    many = np.concatenate([rng.permutation(pool) for _ in range(size // max(1, len(pool)) + 1)])
    return many[:size].reshape(shape)
