"""Sums of powers with variable exponents, such as ``1 + x**p`` or ``1 - x**p``, in scaled form.

A power is ``exp(p log(x))``.  Then sums do not overflow, and those that are nearly 0 are computed
by `expm1`.  Where a base is not positive, the sum is computed as it is written: ``x**p`` and its
derivatives are exact at 0.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from phintys.gradient.barriers import disconnected_grad
from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.apart import log_of_quotient, number, number_like
from phintys.tensor.elemwise import function_of, functions

#: Parts of a sum that are looked at, at most.
MOST_PARTS = 16


class Power(NamedTuple):
    """``weight * base**exponent``; for the base None, ``weight * exp(exponent)``."""

    weight: float
    base: Variable | None
    exponent: Variable


class PowerSum(NamedTuple):
    """A sum that is ``factor * exp(exponent)``; None stands for 1 and for 0.

    ``positive`` says where all bases are; elsewhere the sum is ``written``.
    """

    exponent: Variable | None
    factor: Variable | None
    positive: Variable
    written: Variable


def is_power_sum(x: Variable, more: float = 0.0) -> bool:
    """Whether `power_sum` finds ``x + more``."""
    found = _powers(x)
    return found is not None and len(found[1]) + (found[0] + more != 0) > 1


def power_sum(x: Variable, more: float = 0.0) -> PowerSum | None:
    """``x + more`` if it is a sum of powers with variable exponents, and of other exponentials."""
    found = _powers(x)
    if found is None:
        return None
    rest, powers = found[0] + more, found[1]
    if len(powers) + (rest != 0) < 2:
        return None
    bases = [p.base for p in powers if p.base is not None]
    positive = reduce(functions.and_, [functions.gt(v, 0) for v in bases])
    weights = [p.weight for p in powers]
    sizes: list[Variable | None] = [_size(p, positive) for p in powers]
    written: list[Variable] = []
    for p in powers:
        written.append(functions.mul(number_like(p.weight, x), _as_written(p, positive)))
    if rest:
        weights.append(rest)
        sizes.append(None)
        written.append(number_like(rest, x))
    exponent, factor = _stable(weights, sizes, x)
    return PowerSum(exponent, factor, positive, functions.add(*written))


def _powers(x: Variable) -> tuple[float, list[Power]] | None:
    """A number and powers whose sum ``x`` is; None for other sums."""
    total = 0.0
    powers: list[Power] = []
    stack = [(1.0, x)]
    for _ in range(MOST_PARTS):
        if not stack:
            return (total, powers) if any(p.base is not None for p in powers) else None
        weight, v = stack.pop()
        name, inputs = function_of(v)
        if (known := number(v)) is not None:
            total += weight * known
        elif not dtypes.is_float(v.type.dtype):
            return None
        elif name in ("add", "sub"):
            signs = [-weight if name == "sub" and k else weight for k in range(len(inputs))]
            stack += list(zip(signs, inputs, strict=True))
        elif name == "neg":
            stack.append((-weight, inputs[0]))
        elif name == "mul" and len(inputs) == 2 and (known := number(inputs[0])) is not None:
            stack.append((weight * known, inputs[1]))
        elif name == "exp":
            powers.append(Power(weight, None, inputs[0]))
        elif name == "pow" and number(inputs[1]) is None and not is_written(inputs[0]):
            powers.append(Power(weight, inputs[0], inputs[1]))
        else:
            return None
    return None


def is_written(base: Variable) -> bool:
    """Whether a base is that of a sum which is computed as it is written (see `power_sum`)."""
    name, inputs = function_of(base)
    return name == "switch" and number(inputs[1]) == 1


def _size(power: Power, positive: Variable) -> Variable:
    """The logarithm of a power without its weight; of 1 where not all bases are positive."""
    if power.base is None:
        return functions.switch(positive, power.exponent, 0)
    return functions.mul(power.exponent, functions.log(functions.switch(positive, power.base, 1)))


def _as_written(power: Power, positive: Variable) -> Variable:
    """A power without its weight; 1 where all bases are positive."""
    if power.base is None:
        return functions.exp(functions.switch(positive, 0, power.exponent))
    return functions.pow(functions.switch(positive, 1, power.base), power.exponent)


def _stable(
    weights: list[float], sizes: list[Variable | None], like: Variable
) -> tuple[Variable | None, Variable | None]:
    """The exponent and the factor of the sum of ``weight * exp(size)``."""
    if len(weights) == 2 and weights[0] == -weights[1]:
        return _of_two_opposite(weights[0], sizes[0], sizes[1], like)
    if all(w > 0 for w in weights):
        exponents = [
            functions.add(number_like(np.log(w), like), s) if s is not None and w != 1 else s
            for w, s in zip(weights, sizes, strict=True)
        ]
        exponents = [
            number_like(np.log(w), like) if s is None else s for w, s in zip(weights, exponents)
        ]
        return _log_of_sum(exponents), None
    zero = number_like(0, like)
    known = [zero if s is None else s for s in sizes]
    top = disconnected_grad(reduce(functions.maximum, known))
    rests = [functions.expm1(functions.sub(s, top)) for s in known]
    parts = [functions.mul(number_like(w, like), r) for w, r in zip(weights, rests, strict=True)]
    total = sum(weights)
    return top, functions.add(*([number_like(total, like)] if total else []), *parts)


def _log_of_sum(exponents: list[Variable]) -> Variable:
    if len(exponents) == 2:
        for one, other in (exponents, exponents[::-1]):
            if number(one) == 0:
                return functions.softplus(other)
    return reduce(functions.logaddexp, exponents)


def _of_two_opposite(
    weight: float, first: Variable | None, second: Variable | None, like: Variable
) -> tuple[Variable | None, Variable]:
    """``weight * (exp(first) - exp(second))``."""
    if weight < 0:
        first, second, weight = second, first, -weight
    scale = [] if weight == 1 else [number_like(weight, like)]
    if second is None and first is not None:
        return None, functions.mul(*scale, functions.expm1(first)) if scale else functions.expm1(
            first
        )
    assert second is not None, "there is one number at most"
    gap = second
    if first is not None:
        gap = log_of_quotient(second, first)
    part = functions.neg(functions.expm1(gap))
    return first, functions.mul(*scale, part) if scale else part
