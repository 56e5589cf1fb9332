"""Exponents relative to the dominant one of a few, which is selected element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from phintys.gradient.barriers import disconnected_grad
from phintys.graph.variable import Variable
from phintys.tensor.apart import difference, number, number_like
from phintys.tensor.elemwise import functions

#: The one of several variables that belongs to the dominant exponent.
Selection = Callable[[Sequence[Variable]], Variable]


def selection(sizes: Sequence[Variable]) -> Selection:
    """Selects what belongs to the largest of ``sizes``; the first of equal ones."""
    first = [disconnected_grad(v) for v in sizes]
    conditions = [
        functions.ge(v, reduce(functions.maximum, [*first[:k], *first[k + 1 :]]))
        for k, v in enumerate(first[:-1])
    ]

    def select(values: Sequence[Variable]) -> Variable:
        if len({v if (known := number(v)) is None else known for v in values}) == 1:
            return values[0]
        found = values[-1]
        for condition, value in zip(reversed(conditions), reversed(values[:-1])):
            found = functions.switch(condition, value, found)
        return found

    return select


def others(values: Sequence[Variable], select: Selection) -> list[Variable]:
    """What belongs to the other exponents, in a cyclic order that starts at the dominant one."""
    n = len(values)
    return [select([values[(k + j) % n] for k in range(n)]) for j in range(1, n)]


def other_gaps(exponents: Sequence[Variable], select: Selection) -> list[Variable]:
    """The other exponents, as in `others`, minus the dominant one; -inf for those that are."""
    n = len(exponents)
    apart = _differences(exponents)
    found = []
    for j, x in enumerate(others(exponents, select), 1):
        gap = select([apart[(k + j) % n, k] for k in range(n)])
        found.append(_or_infinite(x, gap))
    return found


def gaps(exponents: Sequence[Variable], select: Selection) -> list[Variable]:
    """Each exponent minus the dominant one; 0 for that one, -inf for those that are -inf."""
    zero = number_like(0, exponents[0])
    apart = _differences(exponents)
    found = []
    for i, x in enumerate(exponents):
        row = [zero if i == k else apart[i, k] for k in range(len(exponents))]
        found.append(_or_infinite(x, select(row)))
    return found


def _differences(exponents: Sequence[Variable]) -> dict[tuple[int, int], Variable]:
    """Those of all pairs, without the terms that are in both."""
    found = {}
    for i in range(len(exponents)):
        for k in range(i):
            found[i, k] = difference(exponents[i], exponents[k])
            found[k, i] = functions.neg(found[i, k])
    return found


def _or_infinite(exponent: Variable, gap: Variable) -> Variable:
    return functions.switch(functions.eq(exponent, -math.inf), -math.inf, gap)
