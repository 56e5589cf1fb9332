"""Sums of products of powers of variables, with whole and half exponents, such as ``t**2 - r**2``.

Terms cancel before anything is computed, common factors are taken out, and square roots are those
of the factors.
"""

from __future__ import annotations

from collections.abc import Sequence

from phintys.gradient.barriers import disconnected_grad
from phintys.graph.variable import Variable
from phintys.tensor.apart import Atom, Term, collected, monomial, number_like, sum_of_terms
from phintys.tensor.elemwise import DimShuffle, function_of, functions
from phintys.tensor.near_one import with_small_differences

#: Terms of a sum, at most, and variables that are looked at.
MOST_TERMS, MOST_PARTS = 24, 40

#: Functions whose results are not negative.
_NOT_NEGATIVE = ("abs", "exp", "sigmoid", "softplus", "sqr", "sqrt")

#: A sum of terms, which are different.
Polynomial = list[Term]


class TooLong(Exception):
    """A sum has more than `MOST_TERMS` terms."""


class Algebra:
    """Computes with sums of products of powers; remembers which factors are sums."""

    def __init__(self) -> None:
        self._parts: dict[Atom, Polynomial] = {}
        self._sums: dict[frozenset[tuple[object, float]], Atom] = {}
        self._signs: dict[Atom, Atom] = {}

    def of(self, x: Variable) -> Polynomial:
        """The terms of a variable; sums that are factors stay together.

        Raises
        ------
        TooLong
            if there are more than `MOST_TERMS`
        """
        found: list[Term] = []
        stack = [(1.0, x)]
        for _ in range(MOST_PARTS):
            if not stack:
                for term in found:
                    self._note_sums(term)
                return short(found)
            factor, v = stack.pop()
            name, inputs = _moved_function_of(v)
            if name in ("add", "sub"):
                signs = [-factor if k and name == "sub" else factor for k in range(len(inputs))]
                stack += list(zip(signs, inputs, strict=True))
            elif name == "neg":
                stack.append((-factor, inputs[0]))
            else:
                found += [] if (term := monomial(v)) is None else [scaled(term, factor)]
        raise TooLong

    def _note_sums(self, term: Term) -> None:
        for atom in term.powers:
            name, inputs = function_of(atom.of)
            if name not in ("add", "sub") or atom.moves or atom in self._parts:
                continue
            parts = [monomial(v) for v in inputs]
            signs = [-1.0 if k and name == "sub" else 1.0 for k in range(len(inputs))]
            if None not in parts:
                given = [scaled(t, s) for t, s in zip(parts, signs) if t is not None]
                self._parts[atom] = short(given)

    def product(self, terms: Polynomial) -> Term | None:
        """A sum as a number times powers, of which one factor may be a sum; None for 0."""
        terms = self.simplified(terms)
        if not terms:
            return None
        atoms = dict.fromkeys([a for t in terms for a in t.powers])
        common = {a: min([t.powers.get(a, 0) for t in terms]) for a in atoms}
        size = abs(terms[0].factor)
        rest = [t.times({a: -p for a, p in common.items()}, 1 / size) for t in terms]
        if len(rest) == 1:
            return Term(terms[0].factor, terms[0].powers)
        return Term(size, {}).times({**common, self._sum(rest): 1})

    def _sum(self, terms: Polynomial) -> Atom:
        key = frozenset([(t.key, t.factor) for t in terms])
        if key not in self._sums:
            atom = Atom(written(terms))
            self._sums[key] = atom
            self._parts[atom] = terms
        return self._sums[key]

    def simplified(self, terms: Polynomial) -> Polynomial:
        """The same sum, over a common denominator, with sums multiplied out if terms cancel."""
        terms = short(terms)
        for atom in dict.fromkeys([a for t in terms for a in t.powers if a in self._parts]):
            powers = [t.powers.get(atom, 0) for t in terms]
            least = min([0, *powers])
            if any(p != int(p) for p in powers):
                continue
            raised = [t.times({atom: -least}) for t in terms]
            new = self._multiplied_out(raised, atom)
            positive = all(t.factor > 0 for t in self._parts[atom])
            if (least < 0 and positive) or len(new) < len(terms):
                terms = [t.times({atom: least}) for t in new]
        return terms

    def _multiplied_out(self, terms: Polynomial, atom: Atom) -> Polynomial:
        found: list[Term] = []
        for term in terms:
            power = int(term.powers.get(atom, 0))
            made = [term.times({atom: -power})]
            for _ in range(power):
                made = product_of(made, self._parts[atom])
            found += made
        return short(found)

    def root(self, term: Term) -> Term | None:
        """The square root, if the number is positive; the root of ``x**2`` is ``x sign(x)``."""
        if term.factor <= 0:
            return None
        found = Term(term.factor**0.5, {a: p / 2 for a, p in term.powers.items()})
        for atom, power in term.powers.items():
            if power % 4 == 2 and function_of(atom.of)[0] not in _NOT_NEGATIVE:
                found = found.times({self._sign(atom): 1})
        return found

    def logarithm(self, term: Term) -> tuple[Variable | None, Term]:
        """The logarithm of the size of the factors that are no sums, and what remains."""
        logarithms = [
            functions.mul(number_like(p, a.of), functions.log(functions.abs(a.value())))
            for a, p in term.powers.items()
            if a not in self._parts and p % 1 == 0
        ]
        found = functions.add(*logarithms) if len(logarithms) > 1 else None
        found = logarithms[0] if len(logarithms) == 1 else found
        rest = Term(term.factor, {a: p for a, p in term.powers.items() if a in self._parts})
        for a, p in term.powers.items():
            if a not in self._parts and p % 2 and function_of(a.of)[0] not in _NOT_NEGATIVE:
                rest = rest.times({self._sign(a): 1})
        return found, rest

    def _sign(self, atom: Atom) -> Atom:
        if atom not in self._signs:
            self._signs[atom] = Atom(disconnected_grad(functions.sign(atom.value())))
        return self._signs[atom]

    def over(self, terms: Polynomial, below: Term) -> Polynomial:
        """A sum divided by a product of powers; 1 over a sign is the sign."""
        inverse = {a: 1 if self._is_sign(a) else -p for a, p in below.powers.items()}
        return self.times(terms, [Term(1 / below.factor, inverse)])

    def times(self, first: Polynomial, second: Polynomial) -> Polynomial:
        """The product of two sums; squares of signs are 1."""
        return short([self._without_squares(t) for t in product_of(first, second)])

    def _without_squares(self, term: Term) -> Term:
        return term.times({a: p % 2 - p for a, p in term.powers.items() if self._is_sign(a)})

    def _is_sign(self, atom: Atom) -> bool:
        return atom in self._signs.values()


def _moved_function_of(v: Variable) -> tuple[str | None, list[Variable]]:
    """The function that computes ``v``, before axes are moved, and its arguments, moved."""
    moves = []
    while v.owner is not None and type(v.owner.op) is DimShuffle:
        moves.append(v.owner.op)
        v = v.owner.inputs[0]
    name, inputs = function_of(v)
    for op in reversed(moves):
        inputs = [op(u) if u.type.ndim == op.input_ndim else u for u in inputs]
    return name, inputs


def scaled(term: Term, factor: float) -> Term:
    return Term(term.factor * factor, term.powers)


def product_of(first: Sequence[Term], second: Sequence[Term]) -> list[Term]:
    return [s.times(t.powers, t.factor) for s in first for t in second]


def short(terms: Sequence[Term]) -> Polynomial:
    """The terms, with equal ones added up, without those that are 0.

    Raises
    ------
    TooLong
        if more than `MOST_TERMS` remain
    """
    remaining = collected(terms)
    if len(remaining) > MOST_TERMS:
        raise TooLong
    return remaining


def negative(terms: Polynomial) -> Polynomial:
    return [scaled(t, -1) for t in terms]


def written(terms: Polynomial) -> Variable:
    """A sum as a variable; ``x - x exp(y)`` is computed by `expm1`."""
    return sum_of_terms(with_small_differences(terms) or terms)
