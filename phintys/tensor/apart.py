"""Differences of expressions, in which equal terms cancel before they are computed.

``(x - m) / s - (y - m) / s`` is ``(x - y) / s``: rounding of the terms with ``m``, which may be
much larger than the difference, does not count.  ``(x - m)**2 - (y - m)**2`` is
``(x - y) ((x - m) + (y - m))``.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Place
from phintys.tensor.convert import constant
from phintys.tensor.elemwise import DimShuffle, cast, function_of, functions
from phintys.tensor.variable import TensorConstant

#: Parts of an expression that are looked at, at most, and terms into which it is expanded.
MOST_PARTS, MOST_TERMS = 40, 8

#: The exponential of a smaller number, multiplied by two numbers in range, is 0.
LEAST = -2000.0

#: Functions that are products of powers of their arguments: the power of each argument.
_PRODUCTS: dict[str, tuple[int, ...]] = {
    "identity": (1,),
    "neg": (1,),
    "reciprocal": (-1,),
    "sqr": (2,),
    "true_div": (1, -1),
}
#: Exponents of powers that are products.
WHOLE: dict[float | None, int] = {k: k for k in range(-4, 5) if k not in (0, 1)}


class Atom(NamedTuple):
    """A variable to which one `DimShuffle` is applied at most."""

    of: Variable
    moves: tuple[DimShuffle, ...] = ()

    def value(self) -> Variable:
        v = self.of
        for op in self.moves:
            v = op(v)
        return v

    def moved(self, outer: Sequence[DimShuffle]) -> Atom:
        """The atom to which one more is applied, or none."""
        return Atom(self.of, moves_of(*outer, *self.moves))


def moves_of(*ops: DimShuffle) -> tuple[DimShuffle, ...]:
    """One `DimShuffle` for several, the last one first; none if axes stay where they are.

    Axes that are dropped have length 1, so one of them is as good as a new one.
    """
    if len(ops) < 2:
        return ops
    *others, first = ops
    order: list[Place] = list(first.new_order)
    for op in reversed(others):
        order = ["x" if o == "x" else order[o] for o in op.new_order]
    dropped = [k for k in range(first.input_ndim) if k not in order]
    order = [dropped.pop(0) if o == "x" and dropped else o for o in order]
    if order == list(range(first.input_ndim)):
        return ()
    return (DimShuffle(input_ndim=first.input_ndim, new_order=order),)


#: A product of powers of atoms.
Powers = dict[Atom, float]


class Term(NamedTuple):
    """A number times powers of atoms."""

    factor: float
    powers: Powers

    @property
    def key(self) -> frozenset[tuple[Atom, float]]:
        return frozenset(self.powers.items())

    def moved(self, moves: Sequence[DimShuffle]) -> Term:
        """The term of atoms with axes moved."""
        if not moves:
            return self
        return Term(self.factor, {a.moved(moves): p for a, p in self.powers.items()})

    def times(self, powers: Powers, factor: float = 1.0) -> Term:
        """The term times powers of atoms, and a number."""
        found = dict(self.powers)
        for atom, power in powers.items():
            found[atom] = found.get(atom, 0) + power
        return Term(self.factor * factor, {a: p for a, p in found.items() if p})


#: A sum is 0 if it is smaller than this many units of rounding of its parts.
ROUNDING = 8.0


def grouped(terms: Iterable[Term]) -> list[list[Term]]:
    """The terms in groups with equal powers of atoms."""
    found: dict[frozenset[tuple[Atom, float]], list[Term]] = {}
    for t in terms:
        found.setdefault(t.key, []).append(t)
    return list(found.values())


def added(same: Sequence[Term]) -> Term:
    """The sum of terms with equal powers of atoms."""
    return Term(math.fsum([t.factor for t in same]), same[0].powers)


def collected(terms: Iterable[Term], dtype: str = "float64") -> list[Term]:
    """Different terms with the same sum.

    Those whose factors cancel up to rounding of ``dtype`` are left out.
    """
    least = ROUNDING * float(np.finfo(dtype).eps)
    groups = [(added(same), max([abs(t.factor) for t in same])) for same in grouped(terms)]
    return [t for t, largest in groups if abs(t.factor) > least * largest]


def difference(x: Variable, y: Variable) -> Variable:
    """``x - y``, without the terms that are in both; it may have fewer axes.

    Multiples of powers with the same exponent are apart by a function of their ratio.
    """
    found = simpler_difference(x, y)
    if found is not None:
        return found[1]
    names: Names = []
    first, second = expanded(x, names) or [], expanded(y, names) or []
    powers = [a.of for t in (*first, *second) for a in t.powers if function_of(a.of)[0] == "pow"]
    if not len(first) == len(second) == 1 or len(powers) != 2:
        return functions.sub(x, y)
    return sum_of_terms([*first, *(Term(-t.factor, t.powers) for t in second)])


def log_of_quotient(x: Variable, y: Variable) -> Variable:
    """``x - y``, the logarithm of ``exp(x) / exp(y)``: -inf where the quotient does not count.

    So where ``exp(x)`` is 0, and below `LEAST`, where derivatives are 0 too.
    """
    apart = difference(x, y)
    nothing = functions.or_(functions.eq(x, -np.inf), functions.lt(apart, LEAST))
    return functions.switch(nothing, -np.inf, apart)


def simpler_difference(
    x: Variable, y: Variable, squares: bool = True
) -> tuple[int, Variable] | None:
    """``x - y`` without the terms that are in both, and how many remain; None if no term is.

    ``squares`` says whether those of variables whose difference is simpler are factored.
    """
    names: Names = []
    first, second = expanded(x, names), expanded(y, names)
    if first is None or second is None:
        return None
    both = [*first, *(Term(-t.factor, t.powers) for t in second)]
    remaining = [t for same in grouped(both) if (t := added(same)).factor != 0]
    factored = _squares_factored(remaining) if squares else remaining
    if not remaining or len(factored) == len(first) + len(second):
        return None
    return len(factored), sum_of_terms(factored)


def _squares_factored(terms: Sequence[Term]) -> list[Term]:
    """The same sum, with ``(u - v) (u + v)`` for ``u**2 - v**2`` where ``u - v`` is simpler."""
    left = list(terms)
    found: list[Term] = []
    while left:
        term = left.pop(0)
        pairs = ((other, _difference_of_squares(term, other)) for other in left)
        other, new = next((pair for pair in pairs if pair[1] is not None), (term, term))
        found.append(new or term)
        left = [t for t in left if t is not other]
    return found


def _difference_of_squares(first: Term, second: Term) -> Term | None:
    """The sum of two terms ``f r u**2`` and ``-f r v**2``, if ``u - v`` is simpler."""
    if first.factor != -second.factor:
        return None
    own = [(u, first.powers) for u in first.powers if first.powers[u] == 2]
    for u, powers in own:
        rest = {a: p for a, p in powers.items() if a != u}
        others = {a: p for a, p in second.powers.items() if rest.get(a) != p}
        if len(others) != 1 or len(second.powers) != len(powers):
            continue
        ((v, power),) = others.items()
        apart = simpler_difference(u.value(), v.value(), False) if power == 2 else None
        if apart is not None:
            both = functions.add(u.value(), v.value())
            return Term(first.factor, {**rest, Atom(apart[1]): 1, Atom(both): 1})
    return None


def simplified(x: Variable) -> Variable:
    """``x`` without the terms that cancel; ``x`` itself if none does."""
    terms = expanded(x) or []
    remaining = [t for t in terms if t.factor != 0]
    return sum_of_terms(remaining) if 0 < len(remaining) < len(terms) else x


def number_of_sum(x: Variable) -> float | None:
    """The number that the terms of ``x`` add up to; None for other sums."""
    terms = [t for t in expanded(x) or [Term(1.0, {Atom(x): 1})] if t.factor != 0]
    return None if any(t.powers for t in terms) else sum([t.factor for t in terms])


def is_negative(x: Variable) -> bool:
    """Whether all terms of an expression are written with a minus."""
    found = expanded(x)
    return found is not None and all(t.factor < 0 for t in found)


#: Variables that stand for all that are computed in the same way.
Names = list[Variable]


def name_of(v: Variable, names: Names, kept: Container[Variable] = ()) -> Variable:
    """The variable of ``names`` that is computed as ``v`` is; ``v``, which is added, if none is.

    Variables ``kept`` are only equal to themselves.
    """
    if v.owner is None or v in kept:
        return v
    found = next((w for w in names if are_equal(v, w, kept)), None)
    if found is None:
        names.append(v)
    return v if found is None else found


def are_equal(v: Variable, w: Variable, kept: Container[Variable] = ()) -> bool:
    """Whether two variables are the same function of the same variables; False for large ones."""
    stack = [(v, w)]
    for _ in range(MOST_PARTS):
        if not stack:
            return True
        v, w = stack.pop()
        if v is w or (v.type == w.type and number(v) is not None and number(v) == number(w)):
            continue
        made, other = v.owner, w.owner
        if v in kept or w in kept or made is None or other is None or made.op != other.op:
            return False
        if made.nin != other.nin or made.outputs.index(v) != other.outputs.index(w):
            return False
        stack += zip(made.inputs, other.inputs, strict=True)
    return False


def expanded(x: Variable, names: Names | None = None) -> list[Term] | None:
    """Different terms whose sum ``x`` is; None if these are many.

    Variables that are computed in the same way are one, that of ``names``.
    """
    names = [] if names is None else names
    steps = list(_steps(x, names))
    if steps[-1] is not None:
        return None
    found = grouped([step for step in steps[:-1] if isinstance(step, Term)])
    return list(map(added, found)) if len(found) <= MOST_TERMS else None


def monomial(x: Variable) -> Term | None:
    """``x`` as a number times powers of variables, of which none is a product; sums stay."""
    term, left = Term(1.0, {}), [(Atom(x), 1)]
    for _ in range(MOST_PARTS):
        if not left:
            return term
        v, _ = left[-1][0]
        name = function_of(v)[0]
        if name in ("add", "sub"):
            atom, power = left.pop()
            term = term.times({atom: power})
        else:
            ((term, left),) = _one_step(term, left, [])
    return None


def looked_through(x: Variable) -> tuple[list[Variable], list[Variable]]:
    """The variables that `expanded` looks at: those that it expands, and the atoms."""
    steps = list(_steps(x, []))
    atoms = [a.of for step in steps if isinstance(step, Term) for a in step.powers]
    known = set(atoms)
    return [step for step in steps if isinstance(step, Variable) and step not in known], atoms


def _steps(x: Variable, names: Names) -> Iterator[Term | Variable | None]:
    """Terms whose sum ``x`` is, between the variables that are looked at; None at the end."""
    stack: list[tuple[Term, list[tuple[Atom, int]]]] = [(Term(1.0, {}), [(Atom(x), 1)])]
    for _ in range(MOST_PARTS):
        if not stack:
            yield None
            return
        term, left = stack.pop()
        if left:
            yield left[-1][0].of
            stack += _one_step(term, left, names)
        else:
            yield term
    yield x


def _one_step(
    term: Term, left: list[tuple[Atom, int]], names: Names
) -> list[tuple[Term, list[tuple[Atom, int]]]]:
    """``term`` times powers of expressions, of which the last one is expanded by one step."""
    (v, moves), power = left.pop()
    factor, powers = term
    known = number(v)
    if known is not None and (known or power > 0):
        return [(Term(factor * known**power, powers), left)]
    name, inputs = function_of(v) if dtypes.is_float(v.type.dtype) else (None, [])
    if name == "second":
        return [(term, [*left, (Atom(inputs[1], moves), power)])]
    if name is None and v.owner is not None and type(v.owner.op) is DimShuffle:
        moved = Atom(v.owner.inputs[0], moves_of(*moves, v.owner.op))
        return [(term, [*left, (moved, power)])]
    if name in ("add", "sub") and power == 1:
        signs = [-1 if k and name == "sub" else 1 for k in range(len(inputs))]
        parts = list(zip(inputs, signs, strict=True))
        return [
            (Term(s * factor, powers), [*left, (Atom(w, moves), 1)]) for w, s in reversed(parts)
        ]
    if name == "pow" and (exponent := number(inputs[1])) in WHOLE:
        return [(term, [*left, (Atom(inputs[0], moves), power * WHOLE[exponent])])]
    if name == "mul" or name in _PRODUCTS:
        each = _PRODUCTS.get(name, (1,) * len(inputs))
        sign = -1 if name == "neg" and power % 2 else 1
        more = [(Atom(w, moves), power * p) for w, p in zip(inputs, each, strict=True)]
        return [(Term(sign * factor, powers), [*left, *reversed(more)])]
    return [(term.times({Atom(name_of(v, names), moves): power}), left)]


def number(v: Variable) -> float | None:
    """The number that every element of a constant equals, in any number of axes; else None."""
    while v.owner is not None and type(v.owner.op) is DimShuffle:
        v = v.owner.inputs[0]
    if not isinstance(v, TensorConstant) or dtypes.is_complex(v.type.dtype):
        return None
    value = v.data if v.data.size == 1 else v.unique_value
    return None if value is None else float(value.item())


def number_like(value: float, like: Variable) -> Variable:
    """A number in the float dtype in which functions of ``like`` are computed."""
    return constant(np.asarray(value, dtypes.float_of(like.type.dtype)))


def coefficient(x: Variable) -> tuple[float, Variable]:
    """A number and a variable whose product ``x`` is."""
    factor = 1.0
    while True:
        name, inputs = function_of(x)
        if name == "neg":
            factor, x = -factor, inputs[0]
        elif name == "mul" and len(inputs) == 2 and (known := number(inputs[0])) is not None:
            factor, x = factor * known, inputs[1]
        elif name == "mul" and len(inputs) == 2 and (known := number(inputs[1])) is not None:
            factor, x = factor * known, inputs[0]
        elif name == "true_div" and (known := number(inputs[1])):
            factor, x = factor / known, inputs[0]
        else:
            return factor, x


def sum_of_terms(terms: Sequence[Term], dtype: str = "") -> Variable:
    """The sum of terms, of which common factors are taken out; there is one at least.

    It is computed in ``dtype``, or in that of the atoms.
    """
    given = [dtype] if dtype else [a.of.type.dtype for t in terms for a in t.powers]
    one = constant(np.asarray(1, dtypes.float_of(dtypes.upcast(*(given or ["float64"])))))
    first = terms[0].powers
    common = {v: p for v, p in first.items() if all(t.powers.get(v) == p for t in terms)}
    sizes = {abs(t.factor) for t in terms}
    size = sizes.pop() if len(sizes) == 1 else 1.0
    rests = [{v: p for v, p in t.powers.items() if v not in common} for t in terms]
    powers = _difference_of_powers([Term(t.factor, r) for t, r in zip(terms, rests, strict=True)])
    if powers is not None:
        return _product(size, common, one, [powers])
    total: Variable | None = None
    for t, rest in zip(terms, rests, strict=True):
        value = _product(abs(t.factor) / size, rest, one)
        if t.factor < 0:
            total = functions.neg(value) if total is None else functions.sub(total, value)
        else:
            total = value if total is None else functions.add(total, value)
    assert total is not None, "there are terms"
    return _product(size, common, one, [] if total is one else [total])


def _difference_of_powers(terms: Sequence[Term]) -> Variable | None:
    """``x**b - y**b`` times the sign of the first term, if the terms are two such powers.

    For positive x and y it is ``y**b * expm1(b * log1p((x - y) / y))``.
    """
    if len(terms) != 2 or terms[0].factor != -terms[1].factor:
        return None
    atoms = [a.value() for t in terms for a, p in t.powers.items() if p == 1]
    if len(atoms) != 2 or any(len(t.powers) != 1 for t in terms):
        return None
    (first, above), (second, below) = (function_of(v) for v in atoms)
    if (first, second) != ("pow", "pow") or above[1] is not below[1]:
        return None
    x, y, exponent = above[0], below[0], above[1]
    step = difference(x, y)
    positive = functions.and_(functions.gt(x, 0), functions.gt(y, 0))
    base = functions.switch(positive, y, 1)
    ratio = functions.log1p(functions.true_div(functions.switch(positive, step, 0), base))
    growth = functions.expm1(functions.mul(exponent, ratio))
    stable = functions.mul(functions.pow(base, exponent), growth)
    found = functions.switch(positive, stable, functions.sub(*atoms))
    return found if terms[0].factor > 0 else functions.neg(found)


def _product(
    factor: float, powers: Powers, one: Variable, others: Sequence[Variable] = ()
) -> Variable:
    """A number times powers of atoms, and times other variables; ``one`` is 1 in its dtype."""
    above = [*others, *(_power(a, p, one) for a, p in powers.items() if p > 0)]
    below = [_power(a, -p, one) for a, p in powers.items() if p < 0]
    if factor != 1:
        above.append(number_like(factor, one))
    top = one if not above else functions.mul(*above) if len(above) > 1 else above[0]
    if not below:
        return top
    return functions.true_div(top, functions.mul(*below) if len(below) > 1 else below[0])


def _power(atom: Atom, power: float, one: Variable) -> Variable:
    v = cast(atom.value(), one.type.dtype)  # products of integers would wrap
    if power == 0.5:
        return functions.sqrt(v)
    return v if power == 1 else functions.sqr(v) if power == 2 else functions.pow(v, power)
