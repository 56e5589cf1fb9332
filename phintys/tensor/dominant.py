"""Exponents relative to the dominant one of a few, which is selected element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from phintys.gradient.barriers import disconnected_grad
from phintys.graph.variable import Variable
from phintys.tensor.apart import difference, number_like
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
        found = values[-1]
        for condition, value in zip(reversed(conditions), reversed(values[:-1])):
            found = functions.switch(condition, value, found)
        return found

    return select


def gaps(exponents: Sequence[Variable], select: Selection) -> list[Variable]:
    """Each exponent minus the dominant one; 0 for that one, -inf for those that are -inf.

    Differences are computed in pairs, without the terms that are in both.
    """
    zero = number_like(0, exponents[0])
    apart = {
        (i, k): difference(exponents[i], exponents[k])
        for i in range(len(exponents))
        for k in range(i)
    }
    found = []
    for i, x in enumerate(exponents):
        row = [
            zero if i == k else apart[i, k] if k < i else functions.neg(apart[k, i])
            for k in range(len(exponents))
        ]
        found.append(functions.switch(functions.eq(x, -math.inf), -math.inf, select(row)))
    return found
