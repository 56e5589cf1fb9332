"""A row of the table of densities: its inputs, the truth, the forms, the points.

Only the standard library and NumPy are imported, so that every system can evaluate the forms.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

POWERS = [10.0**k for k in (-30, -8, -3, 0, 1, 2, 3, 6, 9)]
SIGNED = [-p for p in reversed(POWERS)] + [0.0, *POWERS]
#: it becomes the largest number below 1 in dtypes that round it to 1
NEAR_ONE = 1 - 1e-9
BELOW_ONE = [p for p in POWERS if p < 1]
COUNTS = [0.0, *(p for p in POWERS if p >= 1)]
#: the points of an input, by its kind
KINDS = {
    "real": SIGNED,
    "positive": POWERS,
    "nonnegative": [0.0, *POWERS],
    "above_one": [p for p in POWERS if p >= 1],
    "probability": [*BELOW_ONE, NEAR_ONE],
    "correlation": [-NEAR_ONE, *(x for x in SIGNED if abs(x) < 1), NEAR_ONE],
    "angle": [x for x in SIGNED if abs(x) < math.pi],
    "count": COUNTS,
    "positive_count": COUNTS[1:],
    "binary": [0.0, 1.0],
    "category": [0.0, 1.0, 2.0],
}
#: kinds of numbers that truths get as integers; they have no derivative
LABELS = {"binary", "category"}
#: kinds in which forms are not differentiated
DISCRETE = {"count", "positive_count", *LABELS}
MOST_POINTS = 200
MOST_DRAWS = 100_000

#: the module ``tensor`` of a system, for forms; `density_series`, for truths
System = Any
#: what is computed with: a variable of the system, a series, a number
Expr = Any
Form = Callable[..., Expr]


@dataclass(frozen=True)
class Density:
    """A row.

    Parameters
    ----------
    name
        of the distribution
    inputs
        names and kinds, such as ``"x real, s positive"``
    truth
        the function ``(mp, *inputs)`` of series
    forms
        names and functions ``(pt, *variables)``: usual ways of writing
    where
        whether the density is defined for these numbers
    """

    name: str
    inputs: str
    truth: Form
    forms: dict[str, Form]
    where: Callable[..., bool] = lambda *numbers: True

    @property
    def names(self) -> list[str]:
        return [pair.split()[0] for pair in self.inputs.split(",")]

    @property
    def kinds(self) -> list[str]:
        return [pair.split()[1] for pair in self.inputs.split(",")]

    @property
    def differentiated(self) -> list[int]:
        """The numbers of the inputs with derivatives."""
        return [k for k, kind in enumerate(self.kinds) if kind not in DISCRETE]

    @property
    def quantities(self) -> list[str]:
        """The value, the gradient and the diagonal of the Hessian, in words."""
        names = [self.names[k] for k in self.differentiated]
        return ["value", *(f"d/d{n}" for n in names), *(f"d2/d{n}2" for n in names)]

    def tangents(self, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """A direction: of each input with derivatives, a part of its numbers."""
        return [arguments[k] * 0.5**n for n, k in enumerate(self.differentiated)]

    def points(self, dtype: str) -> np.ndarray:
        """All points of the grid, or `MOST_POINTS` that are drawn; a row of inputs for each."""
        grids = [[rounded(x, dtype) for x in KINDS[kind]] for kind in self.kinds]
        chosen = [p for p in drawn(grids, self.name) if self.where(*p)]
        return np.array(sorted(set(chosen[:MOST_POINTS])))

    def columns(self, points: np.ndarray, dtype: str) -> list[np.ndarray]:
        """The arguments of a compiled function."""
        return [points[:, k].astype(self.dtype(k, dtype)) for k in range(len(self.names))]

    def dtype(self, k: int, dtype: str) -> str:
        """The dtype of an input.  Integers with float32 would be computed in float64."""
        kind = self.kinds[k]
        if kind in LABELS:
            return "int8"
        return "int64" if kind in DISCRETE and dtype == "float64" else dtype


def rounded(x: float, dtype: str) -> float:
    """The number of a dtype; what is below 1 stays there."""
    number = float(np.array(x, dtype))
    if abs(x) < 1 <= abs(number):
        number = float(np.nextafter(np.array(number, dtype), np.zeros((), dtype)))
    return number


def drawn(grids: list[list[float]], seed: str) -> Iterator[tuple[float, ...]]:
    """Different points: all if they are few, else some in random order."""
    count = math.prod(map(len, grids))
    if count <= MOST_POINTS:
        yield from itertools.product(*grids)
        return
    rng = random.Random(seed)
    numbers = rng.sample(range(count), min(count, MOST_DRAWS))
    for number in numbers:
        point = []
        for grid in grids:
            number, k = divmod(number, len(grid))
            point.append(grid[k])
        yield tuple(point)


def matrix(pt: System, rows: list[list[Expr]]) -> Expr:
    """A batch of matrices of vectors."""
    return pt.stack([pt.stack(row, axis=-1) for row in rows], axis=-2)
