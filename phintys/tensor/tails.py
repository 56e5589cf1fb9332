"""Sums of distribution functions in scaled form: complements and differences from the tails.

``1 - F(x)`` is ``F(-x)`` for the normal and the logistic distribution, whichever way F is written:
as `ndtr`, `erf` or `erfc`, as `sigmoid`, `tanh` or ``1 / (1 + exp(-x))``.  The probability of an
interval, ``F(x) - F(y)``, is computed from the tail in which the interval lies, and from the
difference ``x - y`` where it is short.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phintys.graph.variable import Variable
from phintys.tensor.apart import Atom, coefficient, difference, moves_of, number, number_like
from phintys.tensor.elemwise import DimShuffle, Elemwise, cast, function_of, functions

#: Parts of a sum that are looked at, at most.
MOST_PARTS = 12

#: An interval is short if half its length, times the distance of its middle from -1 or 1, is less.
_SHORT = 0.5
#: Quadrature by Gauss and Legendre with six points, of which three are positive (DLMF 3.5.15).
_POINTS, _WEIGHTS = (array[3:].tolist() for array in np.polynomial.legendre.leggauss(6))


class Share(NamedTuple):
    """``weight * F(at)`` for the distribution function F with a name."""

    weight: float
    name: str
    at: Variable

    def flipped(self) -> Share:
        """The share that is left of ``weight``."""
        return Share(-self.weight, self.name, functions.neg(self.at))


class Probability(NamedTuple):
    """``weight * exp(logarithm)``; or minus ``weight * expm1(logarithm)`` times ``exp(beside)``."""

    weight: float
    logarithm: Variable
    beside: Variable | None = None


def probability(x: Variable, more: float = 0.0) -> Probability | None:
    """``x + more``, if that is a number times a probability of a tail or of an interval."""
    found = _shares(x)
    if found is None:
        return None
    constant_part, shares = found[0] + more, found[1]
    if len(shares) == 1:
        return _of_tail(constant_part, shares[0])
    if len(shares) == 2:
        return _of_interval(constant_part, *shares)
    return None


def is_probability(x: Variable, more: float = 0.0) -> bool:
    """Whether `probability` finds that, or the complement of a mixture."""
    mixed = mixture_beside_one(x, more)
    rest = _shares(x) if mixed is None else _shares(functions.neg(mixed[1]))
    if rest is None:
        return False
    total, shares = rest[0] + (more if mixed is None else 1.0), rest[1]
    weights = [s.weight for s in shares]
    if len(weights) == 1:
        return total in (0, -weights[0])
    same = len({s.name for s in shares}) == 1
    return same and (total, weights[0]) in ((0, -weights[1]), (-weights[1], weights[1]))


def mixture_beside_one(x: Variable, more: float = 0.0) -> tuple[Variable, Variable] | None:
    """``1 - p`` and ``y`` if ``x + more`` is ``1 - (p + (1 - p) y)``; it is ``(1 - p) (1 - y)``."""
    inner = _beside_one(x) if more == 0 else _negated(x) if more == 1 else None
    name, terms = function_of(inner) if inner is not None else (None, [])
    if name != "add" or len(terms) != 2:
        return None
    for p, other in (terms, terms[::-1]):
        name, inputs = function_of(other)
        for k, v in enumerate(inputs if name == "mul" else inputs[:1]):
            if _beside_one(v) is not p:
                continue
            rest = [*inputs[:k], *inputs[k + 1 :]]
            if name == "mul":
                return v, functions.mul(*rest) if len(rest) > 1 else rest[0]
            if name == "true_div":
                return v, functions.reciprocal(rest[0])
    return None


def _beside_one(x: Variable) -> Variable | None:
    """``y`` if ``x`` is ``1 - y``, else None."""
    name, inputs = function_of(x)
    if len(inputs) != 2 or name not in ("add", "sub") or number(inputs[0]) != 1:
        return None
    return inputs[1] if name == "sub" else _negated(inputs[1])


def _negated(x: Variable) -> Variable | None:
    name, inputs = function_of(x)
    if name == "neg":
        return inputs[0]
    if name == "mul" and len(inputs) == 2 and number(inputs[0]) == -1:
        return inputs[1]
    return None


def _of_tail(rest: float, share: Share) -> Probability | None:
    if rest == -share.weight:
        share = share.flipped()
    elif rest != 0:
        return None
    return Probability(share.weight, _log_of_tail(share.name, share.at))


def _of_interval(rest: float, first: Share, second: Share) -> Probability | None:
    if rest == -first.weight:
        rest, first = 0.0, first.flipped()
    if rest != 0 or first.name != second.name or first.weight != -second.weight:
        return None
    if first.weight < 0:
        first, second = second, first
    x, y = first.at, second.at
    apart = difference(x, y)
    if first.name == "ndtr":
        return Probability(first.weight, _log_of_normal_interval(x, y, apart))
    beside = functions.neg(
        functions.add(functions.softplus(functions.neg(x)), functions.softplus(y))
    )
    return Probability(first.weight, functions.neg(apart), beside)


def _log_of_tail(name: str, x: Variable) -> Variable:
    return (
        functions.log_ndtr(x)
        if name == "ndtr"
        else functions.neg(functions.softplus(functions.neg(x)))
    )


def _shares(x: Variable) -> tuple[float, list[Share]] | None:
    """A number and shares of distribution functions whose sum ``x`` is; None for other sums."""
    total = 0.0
    shares: list[Share] = []
    stack = [(1.0, Atom(x))]
    for _ in range(MOST_PARTS):
        if not stack:
            return (total, shares) if shares else None
        factor, (v, moves) = stack.pop()
        name, inputs = function_of(v)
        if (known := number(v)) is not None:
            total += factor * known
        elif name in ("add", "sub"):
            signs = [-factor if name == "sub" and k else factor for k in range(len(inputs))]
            stack += [(s, Atom(w, moves)) for s, w in zip(signs, inputs, strict=True)]
        elif v.owner is not None and type(v.owner.op) is DimShuffle:
            stack.append((factor, Atom(v.owner.inputs[0], moves_of(*moves, v.owner.op))))
        elif (scaled := coefficient(v))[1] is not v:
            stack.append((factor * scaled[0], Atom(scaled[1], moves)))
        else:
            share = _share(v)
            if share is None or len(shares) == 2:
                return None
            lowest, (weight, name, at) = share
            total += factor * lowest
            shares.append(Share(factor * weight, name, Atom(at, moves).value()))
    return None


def _share(v: Variable) -> tuple[float, Share] | None:
    """The lowest value of a distribution function, and the share above it."""
    node = v.owner
    if node is None or type(node.op) is not Elemwise:
        return None
    stated = node.op.scalar_op.distribution
    if stated is not None:
        name, slope, lowest, height = stated
        return lowest, Share(height, name, _times(slope, cast(node.inputs[0], v.type.dtype)))
    name, inputs = function_of(v)
    weight = 1.0 if name == "reciprocal" else number(inputs[0]) if name == "true_div" else None
    if not weight or (exponent := exponent_beside_one(inputs[-1])) is None:
        return None
    return 0.0, Share(weight, "sigmoid", functions.neg(exponent))


def exponent_beside_one(v: Variable) -> Variable | None:
    """``x`` if ``v`` is ``1 + exp(x)``, else None."""
    name, inputs = function_of(v)
    if name != "add" or len(inputs) != 2:
        return None
    for one, other in (inputs, inputs[::-1]):
        name, inner = function_of(other)
        if number(one) == 1 and name == "exp":
            return inner[0]
    return None


def _times(factor: float, x: Variable) -> Variable:
    return x if factor == 1 else functions.mul(number_like(factor, x), x)


# ------------------------------------------------------------- the normal distribution


def _log_of_normal_interval(x: Variable, y: Variable, apart: Variable) -> Variable:
    """``log(ndtr(x) - ndtr(y))``, where ``apart`` is ``x - y``."""
    half = functions.mul(0.5, apart)
    middle = functions.mul(0.5, functions.add(x, y))
    size = functions.mul(half, functions.add(functions.abs(middle), 1))
    short = functions.lt(size, _SHORT)
    near = _short_interval(
        functions.switch(short, middle, 0), functions.switch(short, half, 0.5 * _SHORT)
    )
    ends = [functions.switch(short, v, w) for v, w in ((0, x), (-1, y), (1, apart))]
    return functions.switch(short, near, _long_interval(*ends))


def _short_interval(middle: Variable, half: Variable) -> Variable:
    """The logarithm of the probability between ``middle - half`` and ``middle + half``."""
    pairs = []
    for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
        moved = functions.mul(half, number_like(point, half))
        bell = functions.exp(functions.mul(-0.5, functions.sqr(moved)))
        both_sides = functions.cosh(functions.mul(middle, moved))
        pairs.append(functions.mul(number_like(weight, half), bell, both_sides))
    density = functions.mul(-0.5, functions.sqr(middle))
    beside = number_like(0.5 * math.log(2 / math.pi), half)
    return functions.add(density, beside, functions.log(half), functions.log(functions.add(*pairs)))


def _long_interval(x: Variable, y: Variable, apart: Variable) -> Variable:
    """From the logarithms of two tails; of the mirrored interval if that is farther below 0."""
    mirrored = functions.gt(functions.add(x, y), 0)
    above = functions.switch(mirrored, functions.neg(y), x)
    below = functions.switch(mirrored, functions.neg(x), y)
    return functions.add(functions.log_ndtr(above), functions.log1mexp(_gap(above, below, apart)))


def _gap(above: Variable, below: Variable, apart: Variable) -> Variable:
    """``log_ndtr(below) - log_ndtr(above)``; of two arguments below 0 without their squares."""
    tail = functions.lt(above, 0)
    first, second = functions.switch(tail, above, -1), functions.switch(tail, below, -2)
    root = number_like(-math.sqrt(0.5), above)
    scaled = [functions.log(functions.erfcx(functions.mul(root, v))) for v in (second, first)]
    squares = functions.mul(0.5, apart, functions.add(first, second))
    first, second = functions.switch(tail, 0, above), functions.switch(tail, -1, below)
    whole = functions.sub(functions.log_ndtr(second), functions.log_ndtr(first))
    return functions.switch(tail, functions.add(squares, functions.sub(*scaled)), whole)
