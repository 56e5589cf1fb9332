"""Sums of products of sums of exponentials that cancel, such as ``1 - (1 - exp(x)) (1 - exp(y))``.

Multiplied out, it is ``exp(x) + exp(y) - exp(x + y)``: the 1 cancels.  This form is used where the
sum is small in comparison with its products, and the largest exponential is taken out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import NamedTuple

from phintys.gradient.barriers import disconnected_grad
from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.apart import number, number_like
from phintys.tensor.as_written import as_written
from phintys.tensor.elemwise import function_of, functions
from phintys.tensor.power_sums import PowerSum

#: Parts that are looked at, at most, and terms when products are multiplied out.
MOST_PARTS, MOST_TERMS = 24, 12
#: The form is used where the sum is less than this share of its largest product.
_SMALL = 0.5


class Exponential(NamedTuple):
    """A number times the exponential of a sum of variables."""

    weight: float
    exponents: tuple[Variable, ...] = ()


def exponential_sum(x: Variable) -> PowerSum | None:
    """The largest exponent of ``x`` and the factor that remains, where these are to be used."""
    found = _multiplied_out(x)
    if found is None:
        return None
    terms, products = found
    sizes = [size for e in terms if (size := _sum_of(e.exponents)) is not None]
    top = disconnected_grad(reduce(functions.maximum, sizes))
    parts = [
        functions.mul(number_like(e.weight, x), functions.expm1(functions.sub(size, top)))
        for e, size in zip(terms, sizes, strict=True)
    ]
    total = sum(e.weight for e in terms)
    factor = functions.add(*([number_like(total, x)] if total else []), *parts)
    largest = reduce(functions.maximum, [functions.abs(v) for v in products])
    small = functions.le(functions.abs(x), functions.mul(number_like(_SMALL, x), largest))
    return PowerSum(top, factor, disconnected_grad(small), as_written(x))


def _sum_of(exponents: Sequence[Variable]) -> Variable | None:
    if len(exponents) > 1:
        return functions.add(*exponents)
    return exponents[0] if exponents else None


def is_exponential_sum(x: Variable) -> bool:
    """Whether `exponential_sum` finds ``x``."""
    return _multiplied_out(x) is not None


def _multiplied_out(x: Variable) -> tuple[list[Exponential], list[Variable]] | None:
    """Exponentials whose sum ``x`` is, and the products in it; None unless a constant cancels."""
    written = _signed_terms(x)
    products = [v for _, v in written or () if len(_factors(v)[1]) > 1]
    if written is None or not products:
        return None
    found: list[Exponential] = []
    for sign, v in written:
        weight, factors = _factors(v)
        sums = [_exponentials(f) for f in factors]
        known = [s for s in sums if s is not None]
        if len(known) < len(sums):
            return None
        for chosen in product(*known):
            total = sign * weight
            for e in chosen:
                total *= e.weight
            found.append(Exponential(total, tuple(w for e in chosen for w in e.exponents)))
        if len(found) > MOST_TERMS:
            return None
    constants = [e.weight for e in found if not e.exponents]
    if not any(constants) or sum(constants) != 0:
        return None
    return [e for e in found if e.exponents], products


def _signed_terms(x: Variable) -> list[tuple[int, Variable]] | None:
    """The terms of a sum with their signs, also of sums in it; None if these are many."""
    found: list[tuple[int, Variable]] = []
    stack = [(1, x)]
    for _ in range(MOST_PARTS):
        if not stack:
            return found
        sign, v = stack.pop()
        if not dtypes.is_float(v.type.dtype) and number(v) is None:
            return None
        name, inputs = function_of(v)
        if name in ("add", "sub"):
            stack += [(-sign if k and name == "sub" else sign, w) for k, w in enumerate(inputs)]
        elif name == "neg":
            stack.append((-sign, inputs[0]))
        else:
            found.append((sign, v))
    return None


def _factors(v: Variable) -> tuple[float, list[Variable]]:
    """A number and the factors of a product."""
    weight, found, stack = 1.0, [], [v]
    while stack and len(found) + len(stack) < MOST_TERMS:
        v = stack.pop()
        name, inputs = function_of(v)
        if (known := number(v)) is not None:
            weight *= known
        elif name == "mul":
            stack += inputs
        elif name == "neg":
            weight, stack = -weight, [*stack, inputs[0]]
        else:
            found.append(v)
    return weight, [*found, *stack]


def _exponentials(v: Variable) -> Sequence[Exponential] | None:
    """A sum of numbers and multiples of exponentials; None for other variables."""
    terms = _signed_terms(v)
    found: list[Exponential] = []
    for sign, term in terms or [(1, v)]:
        weight, factors = _factors(term)
        if len(factors) > 1:
            return None
        if not factors:
            found.append(Exponential(sign * weight))
            continue
        name, inputs = function_of(factors[0])
        if name not in ("exp", "expm1"):
            return None
        found.append(Exponential(sign * weight, (inputs[0],)))
        if name == "expm1":
            found.append(Exponential(-sign * weight))
    return found
