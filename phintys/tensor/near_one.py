"""Differences from 1 of functions that may be next to 1: exponentials, powers, `sigmoid`.

``x - x exp(y)`` is ``-x expm1(y)``, ``x - x y**p`` is ``-x expm1(p log(y))``, and
``x - 2 x sigmoid(y)`` is ``-x tanh(y / 2)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Variable
from phintys.tensor.apart import Atom, Term, number, number_like
from phintys.tensor.elemwise import function_of, functions


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
        apart = {a: p for a, p in apart.items() if p}
        if len(apart) != 1:
            continue
        ((atom, power),) = apart.items()
        found = None if atom.moves else _less_one(atom.of, power, other.factor / one.factor)
        if found is not None:
            return Term(one.factor, {**one.powers, Atom(found): 1})
    return None


def _less_one(v: Variable, power: float, factor: float) -> Variable | None:
    """``1 + factor * v**power`` where terms cancel; None for other functions and factors."""
    name, inputs = function_of(v)
    if name == "exp" and factor == -1:
        return functions.neg(functions.expm1(_times(power, inputs[0])))
    if name == "sigmoid" and factor == -2 and power == 1:
        return functions.neg(functions.tanh(_times(0.5, inputs[0])))
    if name == "pow" and factor == -1 and number(inputs[1]) is None:
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
