"""Whether the results of forms are right: their errors in units of what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from density_evaluate import evaluate
from density_row import Density
from density_truth import Truths, truths

#: the error that is allowed, as a part of the condition
ALLOWED = {"float64": 1e-9, "float32": 1e-4}
#: an error that is this much above what is allowed is clearly wrong, and one below it is clearly
#: right: results differ a little between processors
CLEARLY = 4.0


@dataclass(frozen=True)
class Judged:
    """The results of a form, their errors in units of what is allowed, and the truths.

    Arrays have a row for each point and a column for each quantity.  An error above 1 is wrong; one
    that is NaN is not judged.
    """

    density: Density
    form: str
    results: np.ndarray
    errors: np.ndarray
    truths: Truths

    @property
    def name(self) -> str:
        return f"{self.density.name}/{self.form}"

    @property
    def wrong(self) -> np.ndarray:
        return self.errors > 1

    def counts(self) -> np.ndarray:
        """By order of the derivative: how many places are judged, and how many are wrong."""
        n = len(self.density.differentiated)
        order = np.repeat([0, 1, 2], [1, n, n])
        parts = (~np.isnan(self.errors), self.wrong)
        return np.array([[part[:, order == k].sum() for k in range(3)] for part in parts])


def judged(density: Density, form: str, results: np.ndarray, dtype: str) -> Judged:
    found = truths(density, dtype)
    errors = excess(results, found.numbers, found.conditions, dtype)
    return Judged(density, form, results, errors, found)


def judge(density: Density, form: str, dtype: str, mode: str) -> Judged:
    """The form compiled in this mode, at all points."""
    points = truths(density, dtype).points
    return judged(density, form, evaluate(density, form, points, dtype, mode), dtype)


def judge_all(densities: Iterable[Density], dtype: str, mode: str) -> Iterator[Judged]:
    for density in densities:
        for form in density.forms:
            yield judge(density, form, dtype, mode)


def excess(
    results: np.ndarray, numbers: np.ndarray, conditions: np.ndarray, dtype: str
) -> np.ndarray:
    """The error of each result over what is allowed; NaN where there is no truth.

    A number that is out of range must give that infinity, or zero.
    """
    info = np.finfo(dtype)
    largest, smallest = float(info.max), float(info.tiny)
    allowed = ALLOWED[dtype] * (np.minimum(conditions, np.finfo("float64").max) + smallest)
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.abs(results - numbers) / allowed
        infinite = np.isinf(results) & (np.sign(results) == np.sign(numbers))
        near_infinity = np.abs(numbers) > largest - allowed
    near_zero = (np.abs(numbers) < smallest) & (np.abs(results) < smallest)
    found[np.isnan(found)] = np.inf
    found[(infinite & near_infinity) | near_zero] = 0.0
    found[np.isnan(numbers) | np.isnan(conditions)] = np.nan
    return found
