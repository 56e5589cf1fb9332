"""Differences of gammaln, psi and tri_gamma at arguments whose difference is simpler than they are.

``gammaln(x + a) - gammaln(x)`` cancels where x is large: both terms are about ``x log(x)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.apart import is_negative, simpler_difference, simplified
from phintys.tensor.elemwise import cast, function_of, functions
from phintys.tensor.rules.match import is_float, like, number, some

#: The functions, and those that compute their increments.
INCREMENTS = {
    "gammaln": "gammaln_increment",
    "psi": "psi_increment",
    "tri_gamma": "tri_gamma_increment",
}
#: Terms of a sum that are looked at, at most, and parts of an argument.
MOST_TERMS, MOST_PARTS = 24, 12
#: Counts, whose sums do not wrap: ``n - k + 1`` is computed in floats.
COUNTS = ("int32", "int64")


class _Term(NamedTuple):
    """A term ``weight * product of factors * name(at)`` of a sum, and its position."""

    position: int
    weight: float
    factors: tuple[Variable, ...]
    name: str
    at: Variable


@rule(
    "gammaln(x + a) - gammaln(x) -> gammaln_increment(x, a)",
    ops=[TABLE["add"]],
    where=some("gammaln", "psi", "tri_gamma", "mul"),
    phase="stabilize",
    law="finite",
    tested_on=(
        "gammaln(x + y) - gammaln(x) | positive",
        "2 * psi(x) - 2 * psi(x + y) | positive",
        "3 * tri_gamma(x + 1) - 3 * tri_gamma(x) | positive",
        "gammaln(i + 1) - gammaln(i - j + 1) | positive",
    ),
)
def differences_of_gammaln(ctx: Context, node: Apply) -> Replacement:
    """Pairs of terms with opposite weights; those with the simplest difference first."""
    terms = list(_terms(node.inputs))
    if len(terms) < 2:
        return None
    new: list[Variable] = []
    gone: set[int] = set()
    for _, first, second, step in sorted(_pairs(terms), key=lambda found: found[0]):
        if first.position not in gone and second.position not in gone:
            gone |= {first.position, second.position}
            new.append(_increment(first, second, step))
    if not new:
        return None
    rest = [v for k, v in enumerate(node.inputs) if k not in gone]
    return like(node, functions.add(*rest, *new) if rest or len(new) > 1 else new[0])


def _terms(inputs: Sequence[Variable]) -> Iterator[_Term]:
    for k, v in enumerate(inputs[:MOST_TERMS]):
        name, given = function_of(v)
        factors = given if name == "mul" else [v]
        inner = [(f, function_of(f)) for f in factors]
        known = [f for f, (name, _) in inner if name in INCREMENTS and is_float(f)]
        if len(known) != 1:
            continue
        name, (argument,) = function_of(known[0])
        at = _in_floats(argument)
        numbers = [n for f in factors if (n := number(f)) is not None]
        others = tuple([f for f in factors if f is not known[0] and number(f) is None])
        weight = 1.0
        for n in numbers:
            weight *= n
        yield _Term(k, weight, others, str(name), at)


def _in_floats(at: Variable) -> Variable:
    """An argument; if it is a sum of counts, a sum of floats."""
    if at.type.dtype not in COUNTS:
        return at
    dtype = dtypes.float_of(at.type.dtype)
    total: Variable | None = None
    stack = [(1, at)]
    while stack:
        sign, v = stack.pop()
        if v.type.dtype in COUNTS and len(stack) < MOST_PARTS and (parts := _parts_of_sum(v)):
            stack += [(sign * own, part) for own, part in reversed(parts)]
            continue
        term = cast(v, dtype)
        if total is None:
            total = term if sign > 0 else functions.neg(term)
        else:
            total = (functions.add if sign > 0 else functions.sub)(total, term)
    assert total is not None, "a sum has terms"
    return total


def _parts_of_sum(v: Variable) -> list[tuple[int, Variable]]:
    """The terms of a sum with their signs, in normal form; none for others."""
    name, inputs = function_of(v)
    if name == "add":
        return [(1, part) for part in inputs]
    if name == "mul" and len(inputs) == 2 and number(inputs[0]) == -1:
        return [(-1, inputs[1])]
    return []


def _pairs(terms: Sequence[_Term]) -> Iterator[tuple[int, _Term, _Term, Variable]]:
    """The number of terms of ``first.at - second.at``, the pair, and that difference."""
    above = [t for t in terms if t.weight > 0]
    below = [t for t in terms if t.weight < 0]
    for first, second in product(above, below):
        if first.weight == -second.weight and first[2:4] == second[2:4]:
            found = simpler_difference(first.at, second.at)
            if found is not None:
                yield found[0], first, second, found[1]


def _increment(first: _Term, second: _Term, step: Variable) -> Variable:
    """``first + second``; a step that is written as a negative number starts at the other end."""
    weight, start = first.weight, second.at
    if is_negative(step):
        weight, start, step = -weight, first.at, functions.neg(step)
    found = getattr(functions, INCREMENTS[first.name])(simplified(start), step)
    factors = [*first.factors, found]
    if weight != 1:
        factors.insert(0, functions.mul(weight, factors.pop(0)))
    return functions.mul(*factors) if len(factors) > 1 else factors[0]
