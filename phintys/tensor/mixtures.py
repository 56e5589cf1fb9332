"""Logarithms of sums of a few weighted exponentials, in the form that is differentiated.

The logarithm of ``w exp(x) + (1 - w) exp(y)``, written so or with `logaddexp`, `logsumexp` or
`softmax`, is ``x + log(1 + (1 - w) expm1(y - x))``, where ``x`` is the exponent of the larger term.
The difference ``y - x`` is computed without the terms that are in both exponents, and the sum of
the weights without those that cancel.  So shares of terms and their derivatives keep their digits
next to 0 and 1, and where all terms are nearly the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np

from phintys.gradient.barriers import disconnected_grad
from phintys.gradient.forms import OtherForm, differentiated_as
from phintys.graph.variable import Apply, Variable
from phintys.tensor import leading
from phintys.tensor.apart import number, number_like, number_of_sum
from phintys.tensor.axes import expand_dims
from phintys.tensor.dominant import other_gaps, others, selection
from phintys.tensor.elements import Shares, axes_of, elements
from phintys.tensor.elemwise import Elemwise, cast, function_of, functions, scalar_op_name
from phintys.tensor.join import Join
from phintys.tensor.logarithms import form_from, logarithmic
from phintys.tensor.power_sums import is_power_sum
from phintys.tensor.reduce import Sum
from phintys.tensor.region import merged, region
from phintys.tensor.scaled import Gain, Scaled, finds_sums, is_float, spread
from phintys.tensor.special import LogSoftmax, LogSumExp

#: Terms of a sum, and variables that are looked at, at most.
MOST_TERMS, MOST_PARTS = 4, 100

#: Where no exponent is farther from the dominant one, `expm1` is used.
_NEAR = 0.5


class Weighted(NamedTuple):
    """The product of a number, variables, and exponentials of others, divided by variables."""

    number: float = 1.0
    factors: tuple[Variable, ...] = ()
    exponents: tuple[Variable, ...] = ()
    below: tuple[Variable, ...] = ()

    def times(self, other: Weighted) -> Weighted:
        factors, exponents = self.factors + other.factors, self.exponents + other.exponents
        return Weighted(self.number * other.number, factors, exponents, self.below + other.below)

    def reciprocal(self) -> Weighted:
        exponents = tuple([functions.neg(v) for v in self.exponents])
        return Weighted(1 / self.number, self.below, exponents, self.factors)


#: Terms whose sum a variable is.
Terms = list[Weighted]
#: The terms of a sum, from those of its parts; None if they are too many, or of no use.
Combine = Callable[[list[Terms]], Terms | None]


class Part(NamedTuple):
    """A variable, or the exponential of it."""

    of: Variable
    exponential: bool = False


class Reader:
    """Finds the terms of a sum.

    Parameters
    ----------
    kept
        variables that are not looked through
    """

    def __init__(self, kept: Collection[Variable]) -> None:
        self.kept = kept
        #: the elements of softmax ops, with the nodes
        self.shares: Shares = {}

    def terms(self, whole: Part) -> Terms:
        found: dict[Part, Terms] = {}
        stack: list[tuple[Part, tuple[list[Part], Combine] | None]] = [(whole, None)]
        while stack:
            part, step = stack.pop()
            if part in found:
                continue
            if step is not None:
                inner, combine = step
                found[part] = combine([found[p] for p in inner]) or self._leaf(part)
                continue
            step = self._step(part) if len(found) + len(stack) < MOST_PARTS else None
            if step is None:
                found[part] = self._leaf(part)
                continue
            stack.append((part, step))
            stack.extend((p, None) for p in step[0])
        return found[whole]

    def _step(self, part: Part) -> tuple[list[Part], Combine] | None:
        """The parts that are looked at next, and how their terms make those of ``part``."""
        v, exponential = part
        if v.owner is None or v in self.kept or not is_float(v) or self._share(part) is not None:
            return None
        if type(v.owner.op) is Elemwise:
            return _of_exponential(v) if exponential else self._of_number(v)
        if type(v.owner.op) is not (LogSumExp if exponential else Sum):
            return None
        axes = axes_of(v.owner)
        found = elements(v.owner.inputs[0], axes[0], self.kept, self.shares)
        if found is None or len(axes) > 1:
            return None
        return [Part(w, exponential) for w in found], _union

    def _share(self, part: Part) -> Variable | None:
        """The element of a softmax that a variable is, or the exponential of it."""
        v, exponential = part
        if not exponential:
            return v if v in self.shares else None
        return next((p for p, share in self.shares.items() if share.logarithm is v), None)

    def _of_number(self, v: Variable) -> tuple[list[Part], Combine] | None:
        name, inputs = function_of(v)
        if name == "exp":
            return [Part(inputs[0], True)], _same
        if name == "second":
            return [Part(inputs[1])], _same
        if name == "add":
            return [Part(w) for w in inputs], lambda found: _union([_with_one_weight(found, v)])
        if name == "mul":
            return [Part(w) for w in inputs], _product
        return ([Part(w) for w in inputs], _quotient) if name == "true_div" else None

    def _leaf(self, part: Part) -> Terms:
        v, exponential = part
        if (share := self._share(part)) is not None:
            return [Weighted(factors=(share,))]
        if exponential:
            return [Weighted(exponents=(v,))]
        if (known := number_of_sum(v)) is not None and known >= 0:
            return [Weighted(number=known)]
        if _is_linear(v) or v in self.kept:
            return [Weighted(factors=(v,))]
        return [_logarithmic(v, self.kept, Gain.OF_SUM)]


def _of_exponential(v: Variable) -> tuple[list[Part], Combine] | None:
    name, inputs = function_of(v)
    if name == "log":
        return [Part(inputs[0])], _same
    if name == "log1p":
        return [Part(functions.add(1, inputs[0]))], _same
    if name == "second":
        return [Part(inputs[1], True)], _same
    if name == "add":
        return [Part(w, True) for w in inputs], _product
    if name == "sub":
        return [Part(inputs[0], True)], lambda found: _without(found[0], inputs[1])
    return ([Part(w, True) for w in inputs], _union) if name == "logaddexp" else None


def _same(found: list[Terms]) -> Terms:
    return found[0]


def _without(terms: Terms, exponent: Variable) -> Terms:
    other = Weighted(exponents=(functions.neg(exponent),))
    return [t.times(other) for t in terms]


def _with_one_weight(found: list[Terms], like: Variable) -> Terms:
    """The terms, with one in the place of all that have no exponent."""
    terms = [t for part in found for t in part]
    plain = [t for t in terms if not t.exponents and not t.below]
    if len(plain) < 2:
        return terms
    weight = functions.add(*[_product_of(t, like) for t in plain])
    return [Weighted(factors=(weight,)), *[t for t in terms if t.exponents or t.below]]


def _union(found: list[Terms]) -> Terms | None:
    terms = [t for part in found for t in part]
    return terms if len(terms) <= MOST_TERMS and any(t.exponents for t in terms) else None


def _product(found: list[Terms]) -> Terms | None:
    terms = [Weighted()]
    for part in found:
        terms = [t.times(other) for t, other in product(terms, part)]
        if len(terms) > MOST_TERMS:
            return None
    return terms


def _quotient(found: list[Terms]) -> Terms | None:
    above, below = found
    if len(below) != 1 or not below[0].number:
        return None
    return [t.times(below[0].reciprocal()) for t in above]


def _is_linear(v: Variable) -> bool:
    """Whether a factor stays one: a weight, which is neither huge nor out of range."""
    node = v.owner
    if node is None or type(node.op) is not Elemwise:
        return True
    return scalar_op_name(node) in ("add", "sub") or node.op.scalar_op.distribution is not None


def _logarithmic(v: Variable, kept: Collection[Variable], least: Gain) -> Weighted:
    """A factor, as an exponential if its logarithm is known and of use in what ``least`` says."""
    form = logarithmic(v, kept, least)
    if form is None or form.exponent is None:
        return Weighted(factors=(v,))
    known = 1.0 if form.factor is None else number(form.factor)
    if known is not None and known > 0:
        return Weighted(known, (), (form.exponent,))
    return Weighted(1.0, () if form.factor is None else (form.factor,), (form.exponent,))


def _with_exponents(terms: Terms, kept: Collection[Variable]) -> Terms:
    """Terms with exponentials in the place of divisors, and of powers with variable exponents."""
    inverse: dict[Variable, Weighted] = {}
    found: Terms = []
    for term in terms:
        new = Weighted(term.number, (), term.exponents)
        for v in term.factors:
            name, inputs = function_of(v)
            varies = name == "pow" and v not in kept and number(inputs[1]) is None
            one = _logarithmic(v, kept, Gain.OF_PRODUCT) if varies else Weighted(factors=(v,))
            new = new.times(one)
        for v in term.below:
            new = new.times(inverse.setdefault(v, _inverse(v, kept)))
        found.append(new)
    return found


def _inverse(v: Variable, kept: Collection[Variable]) -> Weighted:
    """``1 / v``, from the logarithm of the size of ``v``."""
    known = _logarithmic(v, kept, Gain.OF_PRODUCT)
    if not known.factors:
        return known.reciprocal()
    size = functions.neg(functions.log(functions.abs(v)))
    return Weighted(factors=(disconnected_grad(functions.sign(v)),), exponents=(size,))


# ------------------------------------------------------------------ the logarithm of a sum


def logarithm_of_sum(terms: Terms, shares: Shares, like: Variable) -> Variable:
    """The logarithm of the sum of two terms or more, relative to the dominant one."""
    factors = _common([t.factors for t in terms])
    exponents = _common([t.exponents for t in terms])
    rest = [
        Weighted(t.number, _left(t.factors, factors), _left(t.exponents, exponents)) for t in terms
    ]
    outside = [functions.log(functions.abs(cast(v, like.type.dtype))) for v in factors]
    return functions.add(*exponents, *outside, _relative(rest, shares, like))


def _relative(terms: Terms, shares: Shares, like: Variable) -> Variable:
    """That logarithm; where all exponents are nearly the same, from the sum of the weights."""
    scaled = [_without_shares(t, shares) for t in terms]
    if all(not t.factors for t in scaled):
        scaled = [_without_number(t, like) for t in scaled]
    powers = [_sum_of(t.exponents, like) for t in scaled]
    weights = [_product_of(t, like) for t in scaled]
    select = selection([_size(w, e) for w, e in zip(weights, powers)])
    apart, rest = other_gaps(powers, select), others(weights, select)
    far = functions.add(select(powers), _far_sum(select(weights), rest, apart))
    weights = [_product_of(t, like) for t in terms]
    whole = _sum_of_weights(terms, weights, shares)
    if whole is None:
        return far
    powers = [_sum_of(t.exponents, like) for t in terms]
    apart, rest = other_gaps(powers, select), others(weights, select)
    near, total = _near_sum(whole, rest, apart)
    return functions.switch(near, functions.add(select(powers), _log(total)), far)


def _near_sum(
    whole: Variable, weights: Sequence[Variable], apart: Sequence[Variable]
) -> tuple[Variable, Variable]:
    """Where all gaps are small, and there the sum: that of the weights, and what differs."""
    near = functions.lt(_largest([functions.abs(d) for d in apart]), _NEAR)
    small = [functions.expm1(functions.switch(near, d, 0)) for d in apart]
    return near, functions.add(whole, *[functions.mul(w, v) for w, v in zip(weights, small)])


def _largest(values: Sequence[Variable]) -> Variable:
    return reduce(functions.maximum, values)


def _far_sum(top: Variable, weights: Sequence[Variable], apart: Sequence[Variable]) -> Variable:
    """The logarithm of ``top`` plus the sum of ``weight * exp(gap)``."""
    if len(weights) == 1 and number(top) == number(weights[0]) == 1:
        return functions.softplus(apart[0])
    return _log(_weighted_sum(top, weights, apart))


def _weighted_sum(
    top: Variable, weights: Sequence[Variable], apart: Sequence[Variable]
) -> Variable:
    sizes = [functions.exp_diff(_bounded(d, w), 0) for d, w in zip(apart, weights)]
    return functions.add(top, *[functions.mul(w, v) for w, v in zip(weights, sizes)])


def _bounded(apart: Variable, weight: Variable) -> Variable:
    """The gap of a term; where the weight is 0 not so large that the exponential is infinite."""
    if number(weight) is not None:
        return apart
    most = number_like(np.log(np.finfo(weight.type.dtype).max) / 8, weight)
    return functions.switch(functions.eq(weight, 0), functions.minimum(apart, most), apart)


def _size(weight: Variable, exponent: Variable) -> Variable:
    if number(weight) == 1:
        return exponent
    return functions.add(functions.log(functions.abs(weight)), exponent)


def _log(total: Variable) -> Variable:
    """The logarithm of a sum; its derivative is finite where all weights are 0."""
    return functions.log(functions.switch(functions.eq(total, 0), 1, total))


def _without_number(term: Weighted, like: Variable) -> Weighted:
    """A term with a number other than 1 in its exponent."""
    if term.number == 1:
        return term
    return Weighted(1.0, (), (*term.exponents, number_like(np.log(term.number), like)))


def _without_shares(term: Weighted, shares: Shares) -> Weighted:
    """A term with exponentials in the place of elements of softmax, which may be 0 in floats."""
    exponents = [shares[v].logarithm for v in term.factors if v in shares]
    factors = [v for v in term.factors if v not in shares]
    return Weighted(term.number, tuple(factors), (*term.exponents, *exponents))


def _sum_of_weights(terms: Terms, weights: Sequence[Variable], shares: Shares) -> Variable | None:
    """The sum of the weights if that is a number, such as that of ``w`` and ``1 - w``."""
    like = weights[0]
    if all(not t.factors for t in terms):
        return None
    if _are_shares(terms, shares):
        return number_like(terms[0].number, like)
    known = number_of_sum(functions.add(*weights))
    return None if known is None else number_like(known, like)


def _are_shares(terms: Terms, shares: Shares) -> bool:
    """Whether the weights are the elements of a softmax, times one number."""
    given = {t.factors for t in terms}
    nodes = {shares[v].node for factors in given for v in factors if v in shares}
    if len(nodes) != 1 or len({t.number for t in terms}) != 1:
        return False
    (node,) = nodes
    return given == {(v,) for v, share in shares.items() if share.node is node}


def _common(parts: Iterable[tuple[Variable, ...]]) -> list[Variable]:
    counted = reduce(lambda x, y: x & y, [Counter(part) for part in parts])
    return list(counted.elements())


def _left(given: Sequence[Variable], gone: Sequence[Variable]) -> tuple[Variable, ...]:
    return tuple((Counter(given) - Counter(gone)).elements())


def _product_of(term: Weighted, like: Variable) -> Variable:
    values: list[Variable] = [cast(v, like.type.dtype) for v in term.factors]
    if term.number != 1 or not values:
        values.insert(0, number_like(term.number, like))
    return functions.mul(*values) if len(values) > 1 else values[0]


def _sum_of(values: Sequence[Variable], like: Variable) -> Variable:
    found = list(values) or [number_like(0, like)]
    return functions.add(*found) if len(found) > 1 else found[0]


# ------------------------------------------------------------------- what is differentiated


def differentiated_mixture(node: Apply, kept: Collection[Variable]) -> OtherForm | None:
    """The form of a logarithm of a sum of two to four weighted exponentials; None for others.

    ``node`` applies `log`, `logaddexp` or `LogSumExp`.
    """
    (out,) = node.outputs
    if not is_float(out) or not all(is_float(v) for v in node.inputs):
        return None
    if is_power_sum(node.inputs[0]):
        return None
    looked_at = region(node, kept)
    copy = merged(node, looked_at)
    reader = Reader(kept)
    terms = [t for t in reader.terms(Part(copy.outputs[0], True)) if t.number]
    if len(terms) < 2 or not any(t.exponents for t in terms):
        return None
    terms = _with_exponents(terms, kept)
    found = cast(logarithm_of_sum(terms, reader.shares, out), out.type.dtype)
    if type(node.op) is Elemwise:
        for v in node.inputs:
            found = spread(found, v)
    if found.type.broadcastable != out.type.broadcastable:
        return None
    return form_from(node, kept, found, looked_at)


def scaled_mixture(node: Apply) -> Scaled | None:
    """The scaled form of a sum of weighted exponentials, whose weights add up to a number."""
    (out,) = node.outputs
    given = [w for v in node.inputs for w in (v, *function_of(v)[1])]
    if not any(scalar_op_name(w.owner) == "exp" for w in given) or is_power_sum(out):
        return None
    reader = Reader(())
    terms = [t for t in reader.terms(Part(out)) if t.number]
    factors = [v for t in terms for v in t.factors if number(v) is None]
    if len(terms) < 2 or not factors or any(v in reader.shares for v in factors):
        return None  # of exponentials with numbers as weights other forms are right
    terms = _with_exponents(terms, ())
    weights = [_product_of(t, out) for t in terms]
    whole = _sum_of_weights(terms, weights, reader.shares)
    if whole is None:
        return None
    powers = [_sum_of(t.exponents, out) for t in terms]
    select = selection([_size(w, e) for w, e in zip(weights, powers)])
    apart, rest = other_gaps(powers, select), others(weights, select)
    far = _weighted_sum(select(weights), rest, apart)
    near, total = _near_sum(whole, rest, apart)
    return Scaled(select(powers), functions.switch(near, total, far))


def differentiated_logarithm(node: Apply, kept: Collection[Variable]) -> OtherForm | None:
    """That of a mixture, or the stable logarithm of another number.

    Where a function of one variable is the logarithm, such as softplus, it is that.
    """
    form = leading.differentiated_logarithm(node, kept)
    if form is not None and form.result.owner is not None and form.result.owner.nin == 1:
        return form
    found = differentiated_mixture(node, kept)
    return form if found is None else found


def differentiated_log_softmax(node: Apply, kept: Collection[Variable]) -> OtherForm | None:
    """The logarithms of a few shares, each from the differences of its logit to the others."""
    axes = axes_of(node)
    if len(axes) != 1 or not is_float(node.inputs[0]):
        return None
    looked_at = region(node, kept)
    copy = merged(node, looked_at)
    found = elements(copy.outputs[0], axes[0], kept, {})
    if found is None:
        return None
    joined = Join(axes[0])(*[expand_dims(v, axes[0]) for v in found])
    return form_from(node, kept, cast(joined, node.outputs[0].type.dtype), looked_at)


differentiated_as(functions.log, differentiated_logarithm)
differentiated_as(functions.logaddexp, differentiated_mixture)
differentiated_as(LogSumExp, differentiated_mixture)
differentiated_as(LogSoftmax, differentiated_log_softmax)
finds_sums(scaled_mixture)
