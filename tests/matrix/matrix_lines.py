"""How the columns for ops that are not elementwise are written: one line per op.

Arguments are written as shapes, one letter per length: ``"nm mk"`` are two matrices that can be
multiplied, ``"."`` a number, ``"nm k@n"`` a matrix and ``k`` integers that index its first axis,
``"n n?"`` a vector and a mask. A digit is a length that is known when the graph is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matrix_cells import Column, every, strided

import phintys.tensor as pt

FLOATS = ("float32", "float64")
REALS = ("bool", "int8", "int64", "uint8", "float32", "float64")
NUMBERS = ("int8", "int64", "uint8", "float16", "float32", "float64", "complex128")
ANY = ("bool", "int8", "int64", "uint8", "float16", "float32", "float64", "complex128")
LENGTHS = {"n": 5, "m": 7, "k": 4, "p": 3}
KINDS = ("contiguous", "strided", "empty", "length 1")
#: those with elements
AT = ("contiguous", "strided", "length 1")


@dataclass(frozen=True)
class Line:
    """One op.

    ``build(m, *args)`` makes the expression with ``m = phintys.tensor``; if ``numpy`` is True, it
    gives the result for arrays with ``m = numpy``, otherwise ``numpy(*args)`` does (None: no
    reference but ``perform``).
    """

    family: str
    name: str
    shapes: str
    build: Callable[..., Any]
    numpy: Any = True
    dtypes: Sequence[str] = ANY
    kinds: Sequence[str] = KINDS
    special: bool = True
    indices: str = "int64"

    def with_indices(self, dtype: str) -> Line:
        """The same line with indices of another dtype."""
        return replace(self, indices=dtype)


def column(line: Line, dtype: str) -> Column:
    tokens = line.shapes.split()
    rng = np.random.default_rng(sum(map(ord, line.name + dtype)))
    pool = _pool(dtype, line.special, rng)
    if line.numpy is True:
        expected: Any = lambda *args: line.build(np, *args)  # noqa: E731
    else:
        expected = line.numpy
    return Column(
        family=line.family,
        name=line.name,
        dtype=dtype,
        ranks=line.shapes if line.indices == "int64" else f"{line.shapes}, {line.indices}",
        build=lambda *args: line.build(pt, *args),
        types=tuple(_type(line, t, dtype) for t in tokens),
        arguments={kind: [_array(line, t, pool, kind, rng) for t in tokens] for kind in line.kinds},
        expected=expected,
    )


def _type(line: Line, token: str, dtype: str) -> tuple[str, tuple[int | None, ...]]:
    letters, _, index = token.partition("@")
    if letters.endswith("?"):
        letters, dtype = letters[:-1], "bool"
    shape = tuple(int(c) if c.isdigit() else None for c in letters if c != ".")
    return (line.indices if index else dtype), shape


def _array(
    line: Line, token: str, pool: np.ndarray, kind: str, rng: np.random.Generator
) -> np.ndarray:
    letters, _, index = token.partition("@")
    if letters.endswith("?"):
        letters, pool = letters[:-1], np.array([True, False])
    shape = tuple(_length(c, kind) for c in letters if c != ".")
    if index:
        n = _length(index, kind)
        least = 0 if np.dtype(line.indices).kind == "u" else -n
        return np.asarray(rng.integers(least, max(n, 1), shape), line.indices)
    array = every(pool, shape, rng)
    return strided(array) if kind == "strided" else array


def _length(letter: str, kind: str) -> int:
    if letter.isdigit():
        return int(letter)
    if kind == "empty":
        return 0 if letter == "n" else LENGTHS[letter]
    return 1 if kind == "length 1" else LENGTHS[letter]


def _pool(dtype: str, special: bool, rng: np.random.Generator) -> np.ndarray:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([True, False])
    if kind in "iu":
        low = 0 if kind == "u" else -9
        return rng.integers(low, 10, 40).astype(dtype)
    ordinary = rng.normal(size=40)
    if kind == "c":
        return ordinary + 1j * rng.normal(size=40)
    wild = [np.nan, np.inf, -np.inf, -0.0] if special else []
    return np.concatenate([ordinary, wild]).astype(dtype)
