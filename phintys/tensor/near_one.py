"""Differences from 1 of functions that may be next to 1: exponentials, powers, `sigmoid`.

``x - x exp(y)`` is ``-x expm1(y)``, ``x - x y**p`` is ``-x expm1(p log(y))``, and
``x - 2 x sigmoid(y)`` is ``-x tanh(y / 2)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Variable
from phintys.tensor.apart import Atom, Powers, Term, monomial, number, number_like
from phintys.tensor.elemwise import function_of, functions
from phintys.tensor.power_sums import is_written


def with_small_differences(terms: Sequence[Term]) -> list[Term] | None:
    """The terms, with one in the place of each such pair; None if there is none."""
    left = list(terms)
    found: list[Term] = []
    while left:
        term = left.pop(0)
        pairs = [(other, _sum_of_pair(term, other)) for other in left]
        other, new = next((pair for pair in pairs if pair[1] is not None), (term, None))
        found.append(term if new is None else new)
        left = [t for t in left if t is not other]
    return found if len(found) < len(terms) else None


def _sum_of_pair(first: Term, second: Term) -> Term | None:
    for one, other in ((first, second), (second, first)):
        apart = {a: other.powers.get(a, 0) - p for a, p in one.powers.items()}
        apart |= {a: p for a, p in other.powers.items() if a not in apart}
        ratio = Term(other.factor / one.factor, {a: p for a, p in apart.items() if p})
        found = _one_plus(ratio)
        if found is not None:
            return one.times(found)
    return None


def _one_plus(ratio: Term) -> Powers | None:
    """``1 + ratio`` where terms cancel; None for others."""
    if any(a.moves for a in ratio.powers):
        return None
    if len(ratio.powers) == 1:
        ((atom, power),) = ratio.powers.items()
        found = _less_one(atom.of, power, ratio.factor)
        return None if found is None else {Atom(found): 1}
    if ratio.factor != -1:
        return None
    return _opposite_sigmoids(ratio) or _power_times_base(ratio)


def _opposite_sigmoids(ratio: Term) -> Powers | None:
    """``1 - sigmoid(x) / sigmoid(-x)``, which is ``-tanh(x / 2) / sigmoid(-x)``."""
    given = {p: function_of(a.of) for a, p in ratio.powers.items()}
    if len(ratio.powers) != 2 or set(given) != {1, -1}:
        return None
    (above, (x, *_)), (below, (y, *_)) = ((n, [*v, None]) for n, v in (given[1], given[-1]))
    if above != "sigmoid" or below != "sigmoid" or x is None or y is None:
        return None
    if not _are_opposite(x, y):
        return None
    below = next(a for a, p in ratio.powers.items() if p == -1)
    return {Atom(functions.neg(functions.tanh(_times(0.5, x)))): 1, below: -1}


def _are_opposite(x: Variable, y: Variable) -> bool:
    first, second = monomial(x), monomial(y)
    if first is None or second is None:
        return False
    return first.factor == -second.factor and first.powers == second.powers


def _power_times_base(ratio: Term) -> Powers | None:
    """``1 - x x**(p - 1)``, of which the second term is part of the derivative of ``x**p``."""
    for atom, power in ratio.powers.items():
        name, inputs = function_of(atom.of)
        if name != "pow" or power != 1 or (p := _one_more(inputs[1])) is None:
            continue
        base, rest = monomial(inputs[0]), {a: q for a, q in ratio.powers.items() if a != atom}
        if base is not None and base.factor == 1 and base.powers == rest:
            return None if is_written(inputs[0]) else {Atom(_power_less_one(inputs[0], p)): 1}
    return None


def _one_more(exponent: Variable) -> Variable | None:
    """``p`` if an exponent is ``p - 1``, or 0 where ``p`` and the base are 0; else None."""
    name, inputs = function_of(exponent)
    if name == "switch" and number(inputs[1]) == 0:
        name, inputs = function_of(inputs[2])
    return inputs[1] if name == "add" and len(inputs) == 2 and number(inputs[0]) == -1 else None


def _less_one(v: Variable, power: float, factor: float) -> Variable | None:
    """``1 + factor * v**power`` where terms cancel; None for other functions and factors.

    The power is not negative: ``x exp(y) - x`` is ``x expm1(y)``, as ``exp(y)`` may be 0.
    """
    name, inputs = function_of(v)
    if power < 0:
        return None
    if name == "exp" and factor == -1:
        return functions.neg(functions.expm1(_times(power, inputs[0])))
    if name == "sigmoid" and factor == -2 and power == 1:
        return functions.neg(functions.tanh(_times(0.5, inputs[0])))
    if name == "pow" and factor == -1 and number(inputs[1]) is None and not is_written(inputs[0]):
        return _power_less_one(inputs[0], _times(power, inputs[1]))
    return None


def _power_less_one(x: Variable, p: Variable) -> Variable:
    """``1 - x**p``; from the logarithm where ``x`` is positive."""
    positive = functions.gt(x, 0)
    size = functions.mul(p, functions.log(functions.switch(positive, x, 1)))
    written = functions.sub(1, functions.pow(functions.switch(positive, 1, x), p))
    return functions.switch(positive, functions.neg(functions.expm1(size)), written)


def _times(factor: float, x: Variable) -> Variable:
    return x if factor == 1 else functions.mul(number_like(factor, x), x)
