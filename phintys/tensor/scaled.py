"""Numbers in scaled form, ``factor * exp(exponent)``, and how ops compose them.

A positive number that underflows or overflows often has a logarithm of moderate size.  In scaled
form a product adds exponents, a power multiplies them, a sum takes the largest one out.  Functions
such as `exp` and `sigmoid` state their logarithms in their rows of the scalar table (field
``logs``).  `phintys.tensor.logarithms` walks over graphs with this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import reduce
from typing import NamedTuple

import numpy as np

from phintys.gradient.barriers import disconnected_grad
from phintys.graph.op import Op
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.apart import coefficient, log_of_quotient, number
from phintys.tensor.convert import constant
from phintys.tensor.creation import Alloc
from phintys.tensor.diagonal import ExtractDiag
from phintys.tensor.elemwise import (
    DimShuffle,
    Elemwise,
    cast,
    function_of,
    functions,
    scalar_op_name,
)
from phintys.tensor.exponential_sums import exponential_sum, is_exponential_sum
from phintys.tensor.index_ops import AdvancedSubtensor, Subtensor
from phintys.tensor.join import Join
from phintys.tensor.power_sums import is_power_sum, power_sum
from phintys.tensor.reduce import Prod, Sum, keep_dims
from phintys.tensor.reshape import JoinDims, Reshape, SplitDims
from phintys.tensor.shape import MakeVector, SpecifyShape
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax
from phintys.tensor.tails import Probability, is_probability, mixture_beside_one, probability


class Scaled(NamedTuple):
    """The number ``factor * exp(exponent)``; None stands for the exponent 0, the factor 1."""

    exponent: Variable | None
    factor: Variable | None


class Term(NamedTuple):
    """A number with a sign that is known, that of ``weight``, and the logarithm of its size.

    None stands for the logarithm 0.
    """

    weight: float
    size: Variable | None


#: The scaled form of a result, from its node and the forms of the inputs that count.
Form = Callable[[Apply, Sequence[Scaled]], Scaled]


class Gain(IntEnum):
    """Where the exponent of a number is of use.

    A power has one that is of use in products: in a sum, the power is exact where its base is 0,
    and its exponent is not finite there.
    """

    NOTHING = 0
    OF_PRODUCT = 1
    OF_SUM = 2


class Composition(NamedTuple):
    """How an op composes numbers.

    Attributes
    ----------
    form
        the scaled form of the result, from the node and the forms of the inputs that count
    which
        the positions of the inputs that count
    gain
        what an exponent of the result gains although none of these inputs has one
    adds
        whether the result is a sum
    """

    form: Form
    which: slice = slice(None)
    gain: Callable[[Apply], Gain] = lambda node: Gain.NOTHING
    adds: bool = False

    def of(self, node: Apply) -> list[Variable]:
        """The inputs that count."""
        return node.inputs[self.which]


#: The scaled forms that are registered for ops.
_stated: dict[type[Op], Form] = {}


#: Functions that find the scaled forms of sums.
_sums: list[Callable[[Apply], Scaled | None]] = []


def finds_sums(find: Callable[[Apply], Scaled | None]) -> None:
    """Register a function that returns the scaled form of a sum whose logarithm is of use."""
    _sums.append(find)


def states(op: type[Op], form: Form) -> None:
    """Register the scaled form of the results of a class of ops, or of batches of them."""
    _stated[op] = form


def composition_of(node: Apply) -> Composition | None:
    """How the op of a node composes numbers; None for other ops."""
    op = node.op
    if (form := _stated.get(type(getattr(op, "core_op", op)))) is not None:
        return Composition(form, _NONE, lambda node: Gain.OF_PRODUCT)
    if type(op) is not Elemwise:
        return OPS.get(type(op))
    scalar_op = op.scalar_op
    if "y" in scalar_op.logs:
        return STATED
    return CAST if scalar_op.name.startswith("cast_") else ELEMENTWISE.get(scalar_op.name)


# ============================================================ functions with one argument


def _stated_by_row(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """A function whose row states its logarithm."""
    return _stated_form("y", node)


def _stated_form(form: str, node: Apply) -> Scaled:
    """The scaled form that the row of ``node`` states for its value, or for 1 plus or minus it."""
    exponent, factor = stated_log(form, node)
    if isinstance(factor, Variable):
        return Scaled(exponent, factor)
    return Scaled(exponent, None if factor == 1 else _constant(factor, node))


def _square(node: Apply, given: Sequence[Scaled]) -> Scaled:
    (x,) = given
    factor = None if x.factor is None else _twice(functions.log(functions.abs(x.factor)))
    return Scaled(sum_of(_twice(x.exponent), factor), None)


def _root(node: Apply, given: Sequence[Scaled]) -> Scaled:
    (x,) = given
    exponent = None if x.exponent is None else functions.mul(0.5, x.exponent)
    return Scaled(exponent, None if x.factor is None else functions.sqrt(x.factor))


def _to_factor(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """Functions that multiply by 1 or -1, `neg` and `abs`."""
    (x,) = given
    if x.factor is not None:
        return Scaled(x.exponent, node.op(cast(x.factor, node.outputs[0].type.dtype)))
    return Scaled(x.exponent, None if scalar_op_name(node) == "abs" else _constant(-1, node))


def _reciprocal(node: Apply, given: Sequence[Scaled]) -> Scaled:
    (x,) = given
    exponent = None if x.exponent is None else functions.neg(x.exponent)
    return Scaled(exponent, None if x.factor is None else functions.reciprocal(x.factor))


def _cast(node: Apply, given: Sequence[Scaled]) -> Scaled:
    dtype = node.outputs[0].type.dtype
    return Scaled(*[None if v is None else cast(v, dtype) for v in given[0]])


# ================================================================= products and powers


def _product(node: Apply, given: Sequence[Scaled]) -> Scaled:
    factors = [x.factor for x in given if x.factor is not None]
    return Scaled(sum_of(*[x.exponent for x in given]), _product_of(factors, node))


def _product_of(factors: Sequence[Variable], node: Apply) -> Variable | None:
    """The product, with one number in the place of all; None for 1."""
    rest = [v for v in factors if number(v) is None]
    known = math.prod([k for v in factors if (k := number(v)) is not None])
    if known != 1:
        rest.append(_constant(known, node))
    return functions.mul(*rest) if len(rest) > 1 else rest[0] if rest else None


def _quotient(node: Apply, given: Sequence[Scaled]) -> Scaled:
    above, below = given
    exponent = above.exponent
    if below.exponent is not None:
        negative = functions.neg(below.exponent)
        exponent = negative if exponent is None else functions.sub(exponent, below.exponent)
    if below.factor is None:
        return Scaled(exponent, above.factor)
    if known := number(below.factor):
        factors = [_constant(1 / known, node), *([] if above.factor is None else [above.factor])]
        return Scaled(exponent, _product_of(factors, node))
    if above.factor is None:
        return Scaled(exponent, functions.reciprocal(below.factor))
    return Scaled(exponent, functions.true_div(above.factor, below.factor))


def _power(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """``x**p``: the sign of ``x`` counts where ``p`` is an integer."""
    x, p = given[0], node.inputs[1]
    exponent = None if x.exponent is None else functions.mul(p, x.exponent)
    if x.factor is None:
        return Scaled(exponent, None)
    known = number(x.factor)
    if known is not None and known > 0:
        size = constant_log(known, node.outputs[0].type.dtype)
        return Scaled(sum_of(exponent, None if size is None else functions.mul(p, size)), None)
    size = functions.xlogy(p, functions.abs(x.factor))
    if (share := log_of_share(x.factor)) is not None:
        size = functions.switch(functions.gt(x.factor, 0), functions.mul(p, share), size)
    return Scaled(sum_of(exponent, size), _sign_of_power(x.factor, p))


def log_of_share(v: Variable) -> Variable | None:
    """``log(v)`` if ``v`` is ``x / (x + y)``, which may be nearly 1, and positive; else None."""
    odds = odds_of_share(v)
    return None if odds is None else functions.neg(functions.log1p(odds))


def odds_of_share(v: Variable) -> Variable | None:
    """``y / x`` if ``v`` is ``x / (x + y)``, which is ``1 / (1 + y / x)``; else None."""
    name, inputs = function_of(v)
    above, below = inputs if name == "true_div" else (v, v)
    name, terms = function_of(below)
    if name != "add" or above not in terms:
        return None
    k = terms.index(above)
    others = [*terms[:k], *terms[k + 1 :]]
    rest = functions.add(*others) if len(others) > 1 else others[0]
    return functions.true_div(rest, above)


def _sign_of_power(x: Variable, p: Variable) -> Variable | None:
    """1 or -1, or NaN where ``x**p`` is; None if it is 1 for every ``x``."""
    known = number(p)
    if known is not None and known % 2 == 0:
        return None
    if known is not None and known % 2 == 1:
        return disconnected_grad(functions.sign(x))
    rest = functions.mod(p, 2)
    odd = functions.switch(functions.eq(rest, 1), -1.0, math.nan)
    negative = functions.switch(functions.eq(rest, 0), 1.0, odd)
    sign = functions.switch(functions.lt(x, 0), negative, 1.0)
    return disconnected_grad(cast(sign, x.type.dtype))


def _gain_of_power(node: Apply) -> Gain:
    """That of a power whose exponent is not a small number."""
    known = number(node.inputs[1])
    return Gain.OF_PRODUCT if known is None or abs(known) >= 2 else Gain.NOTHING


def _product_over_axes(node: Apply, given: Sequence[Scaled]) -> Scaled:
    x, (of,) = given[0], node.inputs
    factor, size = None, None
    if x.factor is not None:
        size = functions.log(functions.abs(x.factor))
        factor = disconnected_grad(node.op(spread(functions.sign(x.factor), of)))
    exponent = sum_of(x.exponent, size)
    total = None if exponent is None else Sum(axis=node.op.axis)(spread(exponent, of))
    return Scaled(total, factor)


def _gain_of_sizes(node: Apply) -> Gain:
    """That of a product, but not of signs alone."""
    signs = scalar_op_name(node.inputs[0].owner) == "sign"
    return Gain.NOTHING if signs else Gain.OF_PRODUCT


# ==================================================================================== sums


def _addition(node: Apply, given: Sequence[Scaled]) -> Scaled:
    found = _recognized(node)
    return _of_terms(node.inputs, given, node) if found is None else found


def _difference(node: Apply, given: Sequence[Scaled]) -> Scaled:
    found = _recognized(node)
    if found is not None:
        return found
    first, second = given
    factor = _constant(-1, node) if second.factor is None else functions.neg(second.factor)
    below = Scaled(second.exponent, factor)
    return _of_terms([node.inputs[0], functions.neg(node.inputs[1])], [first, below], node)


def one_plus(x: Variable) -> Scaled | None:
    """``1 + x`` if a row states that, or if it is a probability; else None."""
    found = stated_with_one(1.0, x)
    return _recognized(x.owner, 1.0) if found is None and x.owner is not None else found


def _recognized(node: Apply, more: float = 0.0) -> Scaled | None:
    """The result plus ``more``, if it is a probability, a sum of powers, or registered."""
    found = _of_probability(node, more)
    found = _of_powers(node, more) if found is None else found
    if found is None and not more:
        return next((form for find in _sums if (form := find(node)) is not None), None)
    return found


def _of_powers(node: Apply, more: float) -> Scaled | None:
    found = power_sum(node.outputs[0], more)
    if found is None and more == 0:
        found = exponential_sum(node.outputs[0])
    if found is None:
        return None
    exponent, factor, positive, written = found
    if exponent is not None:
        exponent = functions.switch(positive, exponent, 0)
    return Scaled(exponent, functions.switch(positive, 1 if factor is None else factor, written))


def _of_probability(node: Apply, more: float = 0.0) -> Scaled | None:
    """The result plus ``more``, if it is a probability, or the complement of a mixture."""
    mixed = mixture_beside_one(node.outputs[0], more)
    if mixed is not None:
        weight, x = mixed
        rest = probability(functions.neg(x), 1.0)
        return None if rest is None else _scaled_probability(rest, node, weight)
    found = probability(node.outputs[0], more)
    return None if found is None else _scaled_probability(found, node)


def _scaled_probability(p: Probability, node: Apply, *factors: Variable) -> Scaled:
    weight, logarithm, beside = p
    given = [*factors, _constant(weight, node)]
    if beside is None:
        return Scaled(logarithm, _product_of(given, node))
    given.append(functions.neg(functions.expm1(logarithm)))
    return Scaled(beside, _product_of(given, node))


def _of_terms(terms: Sequence[Variable], given: Sequence[Scaled], node: Apply) -> Scaled:
    known = [t for x in given if (t := _term(x, node)) is not None]
    found = None
    if len(terms) == 2:
        found = _one_and_function(*terms)
        if found is None and len(known) == 2:
            found = _of_two(*known)
    elif len(known) == len(terms) and all(t.weight > 0 for t in known):
        zero = _constant(0, node)
        exponents = [zero if t.size is None else t.size for t in known]
        found = Scaled(reduce(functions.logaddexp, exponents), None)
    return _weighted_sum(given, node) if found is None else found


def _term(x: Scaled, node: Apply) -> Term | None:
    """A term of ``node`` with a factor that is a number other than 0; else None."""
    weight = 1.0 if x.factor is None else number(x.factor)
    if not weight or not math.isfinite(weight):
        return None
    size = constant_log(abs(weight), node.outputs[0].type.dtype)
    return Term(weight, sum_of(x.exponent, size))


def _of_two(first: Term, second: Term) -> Scaled | None:
    """A sum of two numbers with known signs, of which one at least is positive."""
    if first.weight < 0:
        first, second = second, first
    x, y = first.size, second.size
    if first.weight < 0:
        return None
    if second.weight > 0:
        return _of_two_positive(x, y)
    apart = functions.neg(x) if y is None and x is not None else y
    if x is not None and y is not None:
        apart = log_of_quotient(y, x)
    return None if apart is None else Scaled(x, functions.neg(functions.expm1(apart)))


def _of_two_positive(x: Variable | None, y: Variable | None) -> Scaled | None:
    if x is not None and y is not None:
        return Scaled(functions.logaddexp(x, y), None)
    found = y if x is None else x
    return None if found is None else Scaled(functions.softplus(found), None)


def _one_and_function(first: Variable, second: Variable) -> Scaled | None:
    """A sum of a number and a function that states the logarithm of that."""
    for one, other in ((first, second), (second, first)):
        known = number(one)
        found = None if not known else stated_with_one(known, other)
        if found is not None:
            return found
    return None


def stated_with_one(one: float, x: Variable) -> Scaled | None:
    """``one + x`` if ``x`` is plus or minus ``one * f(z)``, and ``f`` states that logarithm."""
    factor, core = coefficient(x)
    node = core.owner
    if node is None or type(node.op) is not Elemwise or abs(factor) != abs(one):
        return None
    name = "1 + y" if factor == one else "1 - y"
    if name not in node.op.scalar_op.logs:
        return None
    form = _stated_form(name, node)
    factors = [_constant(one, node), *([] if form.factor is None else [form.factor])]
    return Scaled(form.exponent, _product_of(factors, node))


def _gain_of_sum(node: Apply) -> Gain:
    """That of a sum whose logarithm is known: a probability, powers, a number and a function."""
    (out,) = node.outputs
    if is_probability(out) or is_power_sum(out) or is_exponential_sum(out):
        return Gain.OF_SUM
    if any(find(node) is not None for find in _sums):
        return Gain.OF_SUM
    if len(node.inputs) != 2:
        return Gain.NOTHING
    first, second = node.inputs
    sign = -1 if scalar_op_name(node) == "sub" else 1
    for one, other, by, times in ((first, second, 1, sign), (second, first, sign, 1)):
        known = number(one)
        if not known:
            continue
        factor, core = coefficient(other)
        if core.owner is not None and type(core.owner.op) is Elemwise:
            form = "1 + y" if factor * times == known * by else "1 - y"
            if abs(factor) == abs(known) and form in core.owner.op.scalar_op.logs:
                return Gain.OF_SUM
    return Gain.NOTHING


def _weighted_sum(given: Sequence[Scaled], node: Apply) -> Scaled:
    """Numbers with any signs: the largest exponent of those that are not 0 is taken out."""
    out = node.outputs[0]
    top = _finite(reduce(functions.maximum, [_counted(x, out) for x in given]))
    return Scaled(top, functions.add(*[_share(x, _exponent_or_zero(x, out), top) for x in given]))


def _share(x: Scaled, exponent: Variable, top: Variable) -> Variable:
    """A number divided by ``exp(top)``, which is not below it.

    Where the factor is 0, the exponent may be far above ``top``: it is bounded, so that the product
    is 0 and not NaN, and the derivative in the factor remains.
    """
    if x.factor is None:
        return functions.exp_diff(exponent, top)
    most = 0.5 * math.log(np.finfo(exponent.type.dtype).max)
    bounded = functions.minimum(exponent, functions.add(top, most))
    selected = functions.switch(functions.neq(x.factor, 0), exponent, bounded)
    return functions.mul(x.factor, functions.exp_diff(selected, top))


def _exponent_or_zero(x: Scaled, like: Variable) -> Variable:
    return _like(like, 0, like.type.dtype) if x.exponent is None else x.exponent


def _finite(top: Variable) -> Variable:
    """An exponent that is taken out, on which no result depends; 0 where all numbers are 0."""
    return disconnected_grad(functions.switch(functions.eq(top, -math.inf), 0, top))


def _counted(x: Scaled, like: Variable) -> Variable:
    """The exponent of a number, -inf where it is 0."""
    exponent = _exponent_or_zero(x, like)
    if x.factor is None or number(x.factor):
        return exponent
    return functions.switch(functions.neq(x.factor, 0), exponent, -math.inf)


def _sum_over_axes(node: Apply, given: Sequence[Scaled]) -> Scaled:
    (x,), (of,) = given, node.inputs
    term, axes = _term(x, node), node.op.axes(node)
    if term is not None and term.size is not None and term.weight > 0:
        return Scaled(LogSumExp(axis=axes)(spread(term.size, of)), None)
    exponent = spread(_exponent_or_zero(x, of), of)
    top = _finite(LogSumExp(axis=axes)(spread(_counted(x, of), of)))
    return Scaled(top, node.op(_share(x, exponent, keep_dims(top, axes))))


# ====================================================================== moves and selections


def _softmax(node: Apply, given: Sequence[Scaled]) -> Scaled:
    return Scaled(LogSoftmax(axis=node.op.axis)(*node.inputs), None)


def _move(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """Ops each element of whose result is an element of the first input."""
    x, rest = node.inputs[0], node.inputs[1:]
    moved = [None if v is None else node.op(spread(v, x), *rest) for v in given[0]]
    return Scaled(*moved)


def _selection(node: Apply, given: Sequence[Scaled]) -> Scaled:
    condition = node.inputs[0]
    columns = _filled(node, given)
    return Scaled(*[None if c is None else functions.switch(condition, *c) for c in columns])


def _second(node: Apply, given: Sequence[Scaled]) -> Scaled:
    shape = node.inputs[0]
    return Scaled(*[None if v is None else functions.second(shape, v) for v in given[0]])


def _joined(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """Ops that put their inputs beside each other."""
    made: list[Variable | None] = []
    for column in _filled(node, given):
        whole = [spread(v, of) for v, of in zip(column or (), node.inputs)]
        made.append(node.op(*whole) if whole else None)
    return Scaled(*made)


def _filled(node: Apply, given: Sequence[Scaled]) -> list[list[Variable] | None]:
    """The exponents, and the factors, of all inputs that count; None if none has one."""
    inputs = node.inputs[len(node.inputs) - len(given) :]
    columns: list[list[Variable] | None] = []
    for values, neutral in (([x.exponent for x in given], 0), ([x.factor for x in given], 1)):
        filled = [_like(x, neutral) if v is None else v for v, x in zip(values, inputs)]
        columns.append(None if all(v is None for v in values) else filled)
    return columns


# =================================================================================== parts


def stated_log(form: str, node: Apply) -> tuple[Variable, Variable | float]:
    """The logarithm that the row of an elementwise node states, and the factor that remains."""
    dtype = node.outputs[0].type.dtype
    inputs = [v if is_float(v) else cast(v, dtype) for v in node.inputs]
    found = node.op.scalar_op.logs[form](functions, *inputs)
    return found if isinstance(found, tuple) else (found, 1)


def is_float(v: Variable) -> bool:
    return dtypes.is_float(v.type.dtype)


def sum_of(*terms: Variable | None) -> Variable | None:
    """The sum of those that are not None; None if all are."""
    found = [v for v in terms if v is not None]
    return None if not found else functions.add(*found) if len(found) > 1 else found[0]


def _twice(v: Variable | None) -> Variable | None:
    return None if v is None else functions.mul(2, v)


def constant_log(value: float, dtype: str) -> Variable | None:
    """The logarithm of a positive number, as a constant; None for 0."""
    return None if value == 1 else constant(np.asarray(math.log(value), dtype))


def _constant(value: float, node: Apply) -> Variable:
    """A number in the dtype of the result of a node."""
    return constant(np.asarray(value, node.outputs[0].type.dtype))


def _like(v: Variable, value: float, dtype: str = "") -> Variable:
    """A number in the shape and dtype of ``v``, which is not computed."""
    return functions.second(v, np.asarray(value, dtype or v.type.dtype))


def spread(v: Variable, of: Variable) -> Variable:
    """``v`` broadcast to the shape of ``of``, which is not computed."""
    return v if v.type.broadcastable == of.type.broadcastable else functions.second(of, v)


_NONE = slice(0)
STATED = Composition(_stated_by_row, _NONE, lambda node: Gain.OF_SUM)
CAST = Composition(_cast)

ELEMENTWISE: dict[str, Composition] = {
    "add": Composition(_addition, gain=_gain_of_sum, adds=True),
    "sub": Composition(_difference, gain=_gain_of_sum, adds=True),
    "mul": Composition(_product),
    "true_div": Composition(_quotient),
    "pow": Composition(_power, slice(1), _gain_of_power),
    "sqr": Composition(_square, gain=lambda node: Gain.OF_PRODUCT),
    "sqrt": Composition(_root),
    "reciprocal": Composition(_reciprocal),
    "neg": Composition(_to_factor),
    "abs": Composition(_to_factor),
    "identity": Composition(_move),
    "second": Composition(_second, slice(1, None)),
    "switch": Composition(_selection, slice(1, None)),
}
MOVE = Composition(_move, slice(1))
OPS: dict[type, Composition] = {
    Softmax: Composition(_softmax, _NONE, lambda node: Gain.OF_SUM),
    Sum: Composition(_sum_over_axes, adds=True),
    Prod: Composition(_product_over_axes, gain=_gain_of_sizes),
    Join: Composition(_joined),
    MakeVector: Composition(_joined),
    **dict.fromkeys((AdvancedSubtensor, Alloc, DimShuffle, ExtractDiag, JoinDims, Reshape), MOVE),
    **dict.fromkeys((SpecifyShape, SplitDims, Subtensor), MOVE),
}
