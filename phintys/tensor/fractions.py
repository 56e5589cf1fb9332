"""Sums of fractions, in which terms cancel over the common denominator.

``1 - x / (x + y)`` is ``y / (x + y)``, and ``y / x - (y + a) / (x + a)`` is
``a (y - x) / (x (x + a))``: what cancels is not computed, so its rounding does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.apart import (
    Atom,
    Powers,
    Term,
    collected,
    grouped,
    monomial,
    number,
    simpler_difference,
    sum_of_terms,
)
from phintys.tensor.elemwise import DimShuffle, function_of, functions
from phintys.tensor.near_one import with_small_differences

#: Terms of a numerator, denominators and factors that are tried, and their powers, at most.
MOST_TERMS, MOST_TRIES, MOST_POWER = 16, 4, 2


def without_cancellation(inputs: Sequence[Variable]) -> Variable | None:
    """The sum of variables, in which terms cancel before they are computed; None if none do."""
    terms = [t for v in inputs if (t := monomial(v)) is None or t.factor != 0]
    parts = [part for t in terms for part in _parts(t)]
    more = [part for t in parts for part in _distributed(t)]
    tried = {len(given): given for given in (more, parts, terms)}
    for given in reversed(tried.values()):
        known = [t for t in given if t is not None]
        if len(known) == len(given) <= MOST_TERMS:
            found = _of_terms(known)
            if found is not None:
                return found
    return None


def _of_terms(terms: Sequence[Term]) -> Variable | None:
    found = _of_factors(terms)
    return _where_selected(terms) if found is None else found


def _where_selected(terms: Sequence[Term]) -> Variable | None:
    """The sum, if terms cancel where the condition of factors that are selections holds."""
    chosen = [a for t in terms for a, p in t.powers.items() if p == 1 and _is_selection(a)]
    if not chosen:
        return None
    condition = function_of(chosen[0].of)[1][0]
    taken = [_branch(t, condition, 1) for t in terms]
    others = [_branch(t, condition, 2) for t in terms]
    if None in taken or None in others:
        return None
    found = _of_factors([t for t in taken if t is not None and t.factor])
    if found is None:
        return None
    left = [t for t in others if t is not None and t.factor]
    return functions.switch(condition, found, sum_of_terms(left) if left else 0)


def _is_selection(atom: Atom) -> bool:
    name, inputs = function_of(atom.of)
    return name == "switch" and not atom.moves and number(inputs[1]) is None


def _branch(term: Term, condition: Variable, which: int) -> Term | None:
    """A term with one branch of a factor that is selected by a condition."""
    for atom, power in term.powers.items():
        name, inputs = function_of(atom.of)
        if name == "switch" and power == 1 and not atom.moves and inputs[0] is condition:
            inner = monomial(inputs[which])
            rest = {a: p for a, p in term.powers.items() if a != atom}
            if inner is None:
                return None
            return Term(term.factor * inner.factor, rest).times(inner.powers)
    return term


def _of_factors(terms: Sequence[Term]) -> Variable | None:
    if len(terms) < 2:
        return None
    pairs = [_without_signs(t) for t in terms]
    known = [t for t, _ in pairs]
    conditions = dict.fromkeys([c for _, c in pairs if c is not None])
    common = _common(known)
    rest = [t.times({a: -p for a, p in common.items()}) for t in known]
    reduced = (
        _over_common_denominator(rest)
        or _multiplied_out(rest, all(p > 0 for t in rest for p in t.powers.values()))
        or _simpler_pair(rest)
        or _with_small_differences(rest)
    )
    if reduced is None or len(conditions) > 1:
        return None
    found = sum_of_terms([t.times(common) for t in reduced])
    for condition in conditions:
        others = [t for t, c in pairs if c is None]
        found = functions.switch(condition, sum_of_terms(others) if others else 0, found)
    return found


def _with_small_differences(terms: Sequence[Term]) -> list[Term] | None:
    """See `phintys.tensor.near_one`; also with one sum multiplied out."""
    found = with_small_differences(terms)
    for factor in _sums(terms, lambda power: power == 1) if found is None else ():
        more = _expanded(terms, factor) if _has_one_sign(factor) else None
        found = None if more is None else with_small_differences(more)
        if found is not None:
            break
    return found


def _common(terms: Sequence[Term]) -> Powers:
    """The factors that all terms have; sums that are denominators stay in the terms."""
    atoms = dict.fromkeys([a for t in terms for a in t.powers])
    least = {a: min([t.powers.get(a, 0) for t in terms]) for a in atoms}
    most = {a: max([t.powers.get(a, 0) for t in terms]) for a in atoms}
    return {a: p for a, p in least.items() if p > 0 or p == most[a] or (p < 0 and not _is_sum(a))}


def _parts(term: Term | None) -> list[Term | None]:
    """The terms of a sum that is multiplied by a number; else ``term`` alone."""
    if term is None or len(term.powers) != 1:
        return [term]
    ((atom, power),) = term.powers.items()
    if power != 1 or not _is_sum(atom):
        return [term]
    return [None if t is None else Term(term.factor * t.factor, t.powers) for t in _terms_of(atom)]


def _distributed(term: Term | None) -> list[Term | None]:
    """A term of which a factor is a sum of products, multiplied out."""
    if term is None:
        return [term]
    for atom in _sums([term], lambda power: power == 1):
        if all(t is not None and len(t.powers) > 1 for t in _terms_of(atom)):
            return list(_expanded([term], atom) or [term])
    return [term]


def _over_common_denominator(terms: Sequence[Term]) -> list[Term] | None:
    for below in _sums(terms, lambda power: -MOST_POWER <= power < 0):
        power = max([-t.powers.get(below, 0) for t in terms])
        raised = [t.times({below: power}) for t in terms]
        above = _expanded(raised, below)
        if above is None:
            continue
        reduced = _reduced(above, raised, below)
        if reduced is None and _has_one_sign(below):
            reduced = _multiplied_out(above) or _simpler_pair(above)
        elif reduced is None:
            reduced = _fewer(above, len(terms))
        if reduced is not None:
            return [t.times({below: -power}) for t in reduced]
    return None


def _fewer(above: Sequence[Term], count: int) -> list[Term] | None:
    """The terms of a numerator, with sums multiplied out; None unless fewer than ``count`` remain.

    ``a (a - r b) / (1 - r**2) - a**2`` is ``r a (r a - b) / (1 - r**2)``.
    """
    found = list(above)
    while (more := _multiplied_out(found)) is not None and len(more) < len(found):
        found = more
    return found if len(found) < count else None


def _multiplied_out(terms: Sequence[Term], vanish: bool = False) -> list[Term] | None:
    """The terms, with one sum multiplied out so that some cancel; None if none do.

    With ``vanish`` one must be 0 then: ``x - 0.2 * (x + y)`` stays.
    """
    for factor in _sums(terms, lambda power: 0 < power <= MOST_POWER):
        more = _expanded(terms, factor)
        reduced = None if more is None else _reduced(more, terms, factor)
        if more is None or reduced is None:
            continue
        if not vanish or len(reduced) < len({t.key for t in more}):
            return reduced
    return None


def _reduced(more: Sequence[Term], terms: Sequence[Term], factor: Atom) -> list[Term] | None:
    """The collected terms ``more``, in which ``factor`` is multiplied out; None without gain.

    The parts of a difference, which may be much larger than it is, do not stay apart.
    """
    found = _collected(more)
    gains = found is not None and (_has_one_sign(factor) or len(found) < len(terms))
    return found if gains else None


def _has_one_sign(factor: Atom) -> bool:
    """Whether all terms of a sum are written with the same sign."""
    return len({t is not None and t.factor > 0 for t in _terms_of(factor)}) == 1


def _without_signs(term: Term) -> tuple[Term, Variable | None]:
    """A term with ``1 / x`` for ``sign(x) / abs(x)``, the derivative of ``log(abs(x))``.

    Also the condition under which the term is 0 instead.
    """
    for atom, power in term.powers.items():
        x, condition = _inside_abs(atom)
        signs = [a for a in term.powers if x is not None and _is_sign(a, x, atom.moves)]
        if x is None or not signs or term.powers[signs[0]] != -power or power > 0:
            continue
        inner = None if atom.moves else monomial(x)
        given = Term(1.0, {Atom(x, atom.moves): 1}) if inner is None else inner
        rest = {a: p for a, p in term.powers.items() if a not in (atom, signs[0])}
        more = {a: p * power for a, p in given.powers.items()}
        new = Term(term.factor * given.factor**power, rest).times(more)
        cancels = all(new.powers.get(a, 0) >= 0 for a, p in given.powers.items() if p > 0)
        return new, None if cancels else condition
    return term, None


def _inside_abs(atom: Atom) -> tuple[Variable | None, Variable | None]:
    """``x`` of ``abs(x)``, and the condition under which that is 1 and the dividend is 0.

    That is where both are 0: the derivative of `xlogy` has such a divisor.
    """
    name, inputs = function_of(atom.of)
    condition = None
    if name == "switch" and number(inputs[1]) == 1 and not atom.moves:
        condition = inputs[0]
        name, inputs = function_of(inputs[2])
    return (inputs[0] if name == "abs" else None), condition


def _is_sign(atom: Atom, x: Variable, moves: tuple[DimShuffle, ...]) -> bool:
    name, inputs = function_of(atom.of)
    return name == "sign" and inputs[0] is x and atom.moves == moves


def _simpler_pair(terms: Sequence[Term]) -> list[Term] | None:
    """The terms, with two that are opposite but for one factor each, whose difference is simpler.

    None if there are no such terms.
    """
    for k, first in enumerate(terms):
        for n, second in enumerate(terms[:k]):
            apart = _difference(first, second)
            if apart is not None:
                rest = [t for m, t in enumerate(terms) if m not in (k, n)]
                return [*rest, apart]
    return None


def _difference(first: Term, second: Term) -> Term | None:
    if first.factor != -second.factor or len(first.powers) != len(second.powers):
        return None
    own = {a: p for a, p in first.powers.items() if second.powers.get(a) != p}
    other = {a: p for a, p in second.powers.items() if first.powers.get(a) != p}
    if len(own) != 1 or len(other) != 1:
        return None
    ((u, p),), ((v, q),) = own.items(), other.items()
    if (p, q) != (1, 1) or not (_is_sum(u) or _is_sum(v)):
        return None
    found = simpler_difference(u.value(), v.value())
    if found is None:
        return None
    rest = {a: power for a, power in first.powers.items() if a != u}
    return Term(first.factor, {**rest, Atom(found[1]): 1})


def _is_sum(atom: Atom) -> bool:
    """Whether an atom is a sum of floats, which does not wrap."""
    is_float = dtypes.is_float(atom.of.type.dtype)
    return is_float and function_of(atom.of)[0] == "add"


def _terms_of(atom: Atom) -> list[Term | None]:
    """The terms of a sum."""
    parts = [monomial(v) for v in function_of(atom.of)[1]]
    return [None if t is None else t.moved(atom.moves) for t in parts]


def _sums(terms: Sequence[Term], fits: Callable[[float], bool]) -> Iterator[Atom]:
    """The sums among the factors of terms, with powers that fit."""
    found = [a for t in terms for a, power in t.powers.items() if fits(power) and _is_sum(a)]
    return iter(list(dict.fromkeys(found))[:MOST_TRIES])


def _expanded(terms: Sequence[Term], atom: Atom) -> list[Term] | None:
    """The terms, with the sum ``atom`` multiplied out where it is a factor."""
    parts = _terms_of(atom)
    found: list[Term] = []
    for term in terms:
        power = term.powers.get(atom, 0)
        made = [term.times({atom: -power})]
        for _ in range(int(power)):
            made = [
                t.times(part.powers, part.factor)
                for t in made
                for part in parts
                if part is not None
            ]
        found += made
        if len(found) > MOST_TERMS or None in parts:
            return None
    return found


def _collected(terms: Sequence[Term]) -> list[Term] | None:
    """The terms, with equal ones added up; None if none have opposite signs."""
    opposite = any(len({t.factor > 0 for t in same if t.factor}) > 1 for same in grouped(terms))
    return (collected(terms) or None) if opposite else None
