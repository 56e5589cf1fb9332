"""Polynomials in variables and their reciprocals, written so that equal terms cancel first.

``(x - m)**2 / s**2 - m**2 / s**2`` is ``x / s * (x - 2 m) / s``: the square of ``m``, which may be
much larger than the result, is not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.apart import (
    ROUNDING,
    Atom,
    Names,
    Term,
    collected,
    name_of,
    number,
    number_like,
    sum_of_terms,
)
from phintys.tensor.elemwise import DimShuffle, function_of, functions

#: Terms with different powers, whose factors are not 0.
Polynomial = list[Term]

#: Variables that are looked at, at most, and terms of a polynomial.
MOST_PARTS, MOST_TERMS = 40, 12


class Expansion(NamedTuple):
    """A polynomial that a variable equals, and the variables that were expanded to get it."""

    terms: Polynomial
    through: Sequence[Variable]


# ------------------------------------------------------------------------------ expansion


def expansion(
    x: Variable,
    kept: Container[Variable] = (),
    rests: dict[Variable, Variable] | None = None,
    names: Names | None = None,
) -> Expansion:
    """The polynomial that ``x`` is; what is none, or has many terms, is an atom of it.

    So are the variables ``kept``.  Functions with a leading part everywhere are the sum of that and
    a rest, which is looked for in ``rests`` and stored there.  Variables that are computed in the
    same way are one, that of ``names``.
    """
    rests, names = {} if rests is None else rests, [] if names is None else names
    found: dict[Variable, Polynomial] = {}
    through: list[Variable] = []
    for v in _parts(x, kept):
        terms = _of_function(v, found, rests) if has_leading_part(v) else _composed(v, found)
        if terms is None or len(terms) > MOST_TERMS:
            found[v] = [Term(1.0, {Atom(name_of(v, names, kept)): 1})]
        else:
            found[v] = terms
            through.append(v)
    atoms = {a.of for t in found[x] for a in t.powers}
    return Expansion(found[x], [v for v in through if v not in atoms])


def leaves_of(x: Variable, kept: Container[Variable] = ()) -> set[Variable]:
    """The variables of which `expansion` could make atoms, but for names; fast."""
    return {v for v in _parts(x, kept) if v in kept or (not _arguments(v) and number(v) is None)}


def _parts(x: Variable, kept: Container[Variable]) -> list[Variable]:
    """The variables of which ``x`` is composed, arguments first."""
    order: list[Variable] = []
    opened: set[Variable] = set()
    stack = [(x, False)]
    while stack:
        v, done = stack.pop()
        if done:
            order.append(v)
        elif v not in opened:
            opened.add(v)
            stack.append((v, True))
            if len(opened) < MOST_PARTS and v not in kept:
                stack += [(w, False) for w in _arguments(v)]
    return order


def _arguments(v: Variable) -> Sequence[Variable]:
    """The arguments of the function that computes ``v``, if a polynomial follows from theirs."""
    node = v.owner
    if node is None or not dtypes.is_float(v.type.dtype):
        return []
    if type(node.op) is DimShuffle:
        return node.inputs
    name, inputs = function_of(v)
    if name == "pow":
        return inputs[:1] if number(inputs[1]) in (-2, -1, 1, 2) else []
    return inputs if name in _COMPOSED or has_leading_part(v) else []


def has_leading_part(v: Variable) -> bool:
    """Whether ``v`` is a function whose row states a leading part everywhere."""
    name = function_of(v)[0]
    row = None if name is None or v.owner is None else v.owner.op.scalar_op.leading
    return row is not None and (-row.lowest, row.highest, row.near) == (np.inf,) * 3


def _of_function(
    v: Variable, found: dict[Variable, Polynomial], rests: dict[Variable, Variable]
) -> Polynomial | None:
    """The leading part of a function, and the rest."""
    assert v.owner is not None, "a function is computed by a node"
    (x,) = v.owner.inputs
    if x not in found:
        return None
    row = v.owner.op.scalar_op.leading
    if v not in rests:
        rests[v] = row.rest(functions, x)
    leading = product([Term(row.coefficient, {})], *[found[x]] * row.power)
    return [*leading, Term(1.0, {Atom(rests[v]): 1})]


def _composed(v: Variable, found: dict[Variable, Polynomial]) -> Polynomial | None:
    """The polynomial of ``v`` from those of its arguments; None if it is an atom."""
    known = number(v)
    if known is not None:
        return [Term(known, {})] if known else []
    arguments = _arguments(v)
    if v.owner is None or not arguments or not all(w in found for w in arguments):
        return None
    given = [found[w] for w in arguments]
    if type(v.owner.op) is DimShuffle:
        return [t.moved((v.owner.op,)) for t in given[0]]
    name, inputs = function_of(v)
    if name == "pow":
        power = number(inputs[1]) or 0
        base = given[0] if power > 0 else reciprocal(inputs[0], given[0])
        return product(base, base) if abs(power) == 2 else base
    return _COMPOSED[str(name)](arguments, given)


def reciprocal(v: Variable, of: Polynomial) -> Polynomial:
    """``1 / v`` of a variable with a polynomial; of several terms, the variable is an atom."""
    if len(of) != 1:
        return [Term(1.0, {Atom(v): -1})]
    ((factor, powers),) = of
    return [Term(1 / factor, {a: -p for a, p in powers.items()})]


#: The polynomial of a function of variables, from these and their polynomials.
_COMPOSED: dict[str, Callable[[Sequence[Variable], Sequence[Polynomial]], Polynomial]] = {
    "identity": lambda of, given: given[0],
    "neg": lambda of, given: scaled(given[0], -1.0),
    "sqr": lambda of, given: product(given[0], given[0]),
    "add": lambda of, given: total(given),
    "sub": lambda of, given: total([given[0], scaled(given[1], -1.0)]),
    "mul": lambda of, given: product(*given),
    "true_div": lambda of, given: product(given[0], reciprocal(of[1], given[1])),
    "reciprocal": lambda of, given: reciprocal(of[0], given[0]),
}


# ------------------------------------------------------------------------------- arithmetic


def scaled(p: Polynomial, factor: float) -> Polynomial:
    return [Term(c * factor, powers) for c, powers in p]


def total(parts: Iterable[Polynomial], dtype: str = "float64") -> Polynomial:
    """The sum; terms whose factors cancel up to rounding of ``dtype`` are left out."""
    return collected([t for p in parts for t in p], dtype)


def product(*parts: Polynomial) -> Polynomial:
    """The product; one of more than `MOST_TERMS` terms is not continued."""
    found: Polynomial = [Term(1.0, {})]
    for p in parts:
        if len(found) <= MOST_TERMS:
            found = total([[s.times(t.powers, t.factor) for t in p] for s in found])
    return found


def slope(p: Polynomial, atom: Atom) -> Polynomial:
    """The partial derivative in an atom."""
    less = Term(1.0, {atom: -1})
    return [
        Term(t.factor * t.powers[atom], t.powers).times(less.powers, less.factor)
        for t in p
        if atom in t.powers
    ]


def atoms_of(p: Polynomial) -> list[Atom]:
    """The atoms of a polynomial, each once."""
    return list(dict.fromkeys(a for t in p for a in t.powers))


# ---------------------------------------------------------------------- without cancellation


def written(p: Polynomial, dtype: str) -> Variable:
    """A polynomial with a term at least, as a product of linear forms if it is one."""
    outer, inner = _without_odd_factors(p)
    found = linear_factors(inner)
    if found is None:
        return sum_of_terms(p, dtype)
    factor, first, second = found
    forms = [sum_of_terms(form, dtype) for form in (first, second) if form is not None]
    forms = [functions.sqr(forms[0])] if second is None else forms
    scale = [] if factor == 1 else [number_like(factor, forms[0])]
    beside = [sum_of_terms([outer], dtype)] if outer.powers else []
    factors = [*scale, *beside, *forms]
    return functions.mul(*factors) if len(factors) > 1 else factors[0]


def square_of(p: Polynomial) -> float | None:
    """The factor of a square of several terms that a polynomial is; None if it is none."""
    found = linear_factors(p) if len(p) > 2 else None
    return found.factor if found is not None and found.second is None else None


def is_product(p: Polynomial) -> bool:
    """Whether a polynomial is a product of two linear forms, perhaps times atoms."""
    return linear_factors(_without_odd_factors(p)[1]) is not None


def _without_odd_factors(p: Polynomial) -> tuple[Term, Polynomial]:
    """A product of atoms with an odd power that is the same in all terms, and what remains."""
    first = p[0].powers
    odd = [a for a, k in first.items() if k % 2 and all(t.powers.get(a) == k for t in p)]
    outer = Term(1.0, {a: 1 if first[a] > 0 else -1 for a in odd})
    below = Term(1.0, {a: -k for a, k in outer.powers.items()})
    return outer, [t.times(below.powers, below.factor) for t in p]


class LinearFactors(NamedTuple):
    """``factor * first * second``, or ``factor * first**2`` if there is no second factor."""

    factor: float
    first: Polynomial
    second: Polynomial | None


def linear_factors(p: Polynomial) -> LinearFactors | None:
    """The factors of a quadratic form in products of atoms; None if it is not such a product.

    The form is reduced to a sum of squares (Lagrange).  One square, or the difference of two, is a
    product.
    """
    found = _quadratic_form(p)
    if found is None:
        return None
    basis, form = found
    squares: list[tuple[float, np.ndarray]] = []
    least = ROUNDING * np.finfo("float64").eps * np.abs(form).max()
    for _ in range(2):
        k = int(np.abs(form.diagonal()).argmax())
        weight = form[k, k]
        if abs(weight) <= least:
            break
        squares.append((float(weight), form[k] / weight))
        form = form - np.outer(form[k], form[k]) / weight
    if not squares or np.abs(form).max() > least or len(basis) < 2:
        return None
    return _factors_of_squares(basis, squares)


def _factors_of_squares(
    basis: Sequence[Term], squares: Sequence[tuple[float, np.ndarray]]
) -> LinearFactors | None:
    (weight, first), *rest = squares
    if not rest:
        return LinearFactors(weight, _linear(basis, first), None)
    ratio = rest[0][0] / weight
    if ratio > 0:
        return None
    other = math.sqrt(-ratio) * rest[0][1]
    return LinearFactors(weight, _linear(basis, first - other), _linear(basis, first + other))


def _linear(basis: Sequence[Term], factors: np.ndarray) -> Polynomial:
    return total([[Term(float(c), t.powers)] for c, t in zip(factors, basis, strict=True) if c])


def _quadratic_form(p: Polynomial) -> tuple[list[Term], np.ndarray] | None:
    """Products of atoms, and the matrix of the quadratic form in these that a polynomial is.

    A product of atoms belongs to the basis if its square is a term, or its product with one whose
    square is.
    """
    squares = [t for t in p if all(k % 2 == 0 for k in t.powers.values())]
    roots = [_power(t, 0.5) for t in squares]
    basis = {t.key: t for t in roots}
    products = {s.times(t.powers, t.factor).key for k, s in enumerate(roots) for t in roots[:k]}
    for mixed in p:
        if mixed not in squares and mixed.key not in products:
            beside = [mixed.times(_power(t, -1).powers) for t in roots]
            if not beside:
                return None
            simplest = min(beside, key=lambda t: sum(map(abs, t.powers.values())))
            basis.setdefault(simplest.key, simplest)
    return _matrix(p, list(basis.values()))


def _power(t: Term, k: float) -> Term:
    """The powers of a term to a power, without its factor."""
    return Term(1.0, {a: int(k * p) for a, p in t.powers.items()})


def _matrix(p: Polynomial, basis: list[Term]) -> tuple[list[Term], np.ndarray] | None:
    """The basis, and the matrix of a polynomial in products of two of its elements."""
    places = {
        s.times(t.powers, t.factor).key: (j, k)
        for j, s in enumerate(basis)
        for k, t in enumerate(basis)
    }
    form = np.zeros((len(basis), len(basis)))
    for t in p:
        if t.key not in places:
            return None
        j, k = places[t.key]
        form[j, k] += t.factor / 2
        form[k, j] += t.factor / 2
    return basis, form
