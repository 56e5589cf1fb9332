"""Logarithms of products, powers, sums and selections, computed without the number itself.

A positive number that underflows or overflows often has a logarithm of moderate size.  So numbers
are written in *scaled form*, ``factor * exp(exponent)``: a product adds exponents, a power
multiplies them, a sum takes the largest one out.  The logarithm is then ``exponent +
log(factor)``; `stable_logarithm` returns it.  Functions such as `exp` and `sigmoid` state their
logarithms in their rows of the scalar table (field ``logs``).

Two users need the same result: the rule that replaces logarithms, and the gradient, which
differentiates it in the place of the logarithm.  So value and derivatives are stable together,
whatever else is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from enum import IntEnum
from functools import reduce
from typing import NamedTuple

import numpy as np

from phintys.gradient.barriers import disconnected_grad
from phintys.gradient.forms import OtherForm, differentiated_as
from phintys.graph.traversal import ancestors
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.scalar.op import ScalarOp
from phintys.tensor.convert import constant
from phintys.tensor.creation import Alloc
from phintys.tensor.diagonal import ExtractDiag
from phintys.tensor.elemwise import DimShuffle, Elemwise, cast, functions
from phintys.tensor.index_ops import AdvancedSubtensor, Subtensor
from phintys.tensor.join import Join
from phintys.tensor.reduce import Prod, Sum, keep_dims
from phintys.tensor.reshape import JoinDims, Reshape, SplitDims
from phintys.tensor.shape import MakeVector, SpecifyShape
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax
from phintys.tensor.variable import TensorConstant, TensorVariable

#: Nodes that are looked at for one logarithm, at most.
MOST_NODES = 200

#: Where exponents differ by more, the smaller number is below rounding of the larger one.
FAR = 40.0


class Scaled(NamedTuple):
    """The number ``factor * exp(exponent)``; None stands for the exponent 0, the factor 1."""

    exponent: TensorVariable | None
    factor: TensorVariable | None


class Term(NamedTuple):
    """The number ``weight * exp(exponent)`` with a weight that is known."""

    weight: float
    exponent: TensorVariable | None


Form = Callable[[Apply, Sequence[Scaled]], Scaled]
#: What a row states: an exponent, or a pair of it and a factor.
StatedLog = TensorVariable | tuple[TensorVariable, TensorVariable | float]


# ================================================================================ results


def stable_logarithm(node: Apply) -> TensorVariable | None:
    """The result of a logarithm, computed from exponents; None where that gains nothing.

    ``node`` applies one of `LOGARITHMS`.
    """
    return _result(node, _region(node.inputs[0], ()))


def differentiated_form(node: Apply, kept: Container[Variable]) -> OtherForm | None:
    """`stable_logarithm`, for the derivative."""
    nodes = _region(node.inputs[0], kept)
    result = _result(node, nodes)
    if result is None:
        return None
    known = {*node.inputs, *(v for made in nodes for v in (*made.inputs, *made.outputs))}
    known.update([w for v in known if v.owner is not None for w in v.owner.inputs])
    used = ancestors([result], blockers=known)
    return OtherForm(result, [v for v in used if v in known])


def _result(node: Apply, region: Sequence[Apply]) -> TensorVariable | None:
    (x,), (out,) = node.inputs, node.outputs
    if not _is_float(out) or not _is_float(x):
        return None
    name = scalar_name(node)
    found = _whole(x, name == "log1p")
    if found is None:
        found = _log_of_one_plus(x, region) if name == "log1p" else _log(x, region)
    if found is None:
        return None
    if (base := LOGARITHMS[name]) is not None:
        found = functions.mul(found, 1 / math.log(base))
    return _spread(cast(found, out.type.dtype), x)


#: The functions that are replaced, by name; the base, or None for the natural logarithm.
LOGARITHMS: dict[str | None, float | None] = {"log": None, "log1p": None, "log2": 2, "log10": 10}


def _scaled(x: TensorVariable, region: Sequence[Apply], least: Gain) -> Scaled | None:
    """The scaled form of ``x``; None where its exponent gains less than ``least``."""
    gains = _gains(region)
    if gains.get(x, Gain.NOTHING) < least:
        return None
    forms: dict[Variable, Scaled] = {}
    for node in region:
        out = node.outputs[0]
        compose = _composition(node)
        if out in gains and compose is not None:
            least = Gain.OF_SUM if compose.adds else Gain.OF_PRODUCT
            given = [
                forms[v] if gains.get(v, Gain.NOTHING) >= least else Scaled(None, v)
                for v in compose.of(node)
            ]
            forms[out] = compose.form(node, given)
    return forms[x]


def _whole(x: TensorVariable, with_one: bool) -> TensorVariable | None:
    """The logarithm of ``x``, or of ``1 + x``, if a row states that as a whole."""
    terms = [x] if with_one else function_of(x)[1] if scalar_name(x.owner) == "add" else []
    rest = [v for v in terms if number(v) != 1]
    form = "y"
    if len(rest) == 1 and (with_one or len(terms) == 2):
        factor, x = _coefficient(rest[0])
        form = {1: "1 + y", -1: "1 - y"}.get(factor, "")
    elif with_one:
        return None
    if x.owner is None or type(x.owner.op) is not Elemwise:
        return None
    stated = x.owner.op.scalar_op.logs.get(f"log({form})")
    return None if stated is None else stated(functions, *x.owner.inputs)


def _log(x: TensorVariable, region: Sequence[Apply]) -> TensorVariable | None:
    form = _scaled(x, region, Gain.OF_PRODUCT)
    return None if form is None else _logarithm(form, x.type.dtype)


def _logarithm(form: Scaled, dtype: str) -> TensorVariable:
    logarithm = None if form.factor is None else _log_of_factor(form.factor, dtype)
    return _sum(form.exponent, logarithm)


def _log_of_factor(factor: TensorVariable, dtype: str) -> TensorVariable | None:
    """``log(factor)``, None for 0; a divisor of a positive number has a logarithm of its own."""
    known = number(factor)
    if known is not None and known > 0:
        return _logarithm_of(known, dtype)
    name, inputs = function_of(factor)
    if name == "reciprocal":
        return functions.neg(functions.log(cast(inputs[0], dtype)))
    if name == "true_div" and (known := number(inputs[0])) is not None and known > 0:
        below = functions.log(cast(inputs[1], dtype))
        above = _logarithm_of(known, dtype)
        return functions.neg(below) if above is None else functions.sub(above, below)
    if name == "neg" and (inner := argument(inputs[0], "expm1")) is not None:
        return functions.log1mexp(inner)
    return functions.log(cast(factor, dtype))


def _log_of_one_plus(x: TensorVariable, region: Sequence[Apply]) -> TensorVariable | None:
    """``log(1 + x)`` from the exponent of ``x``, or the logarithm that its function states."""
    found = _stated_with_one(1.0, x)
    if found is not None:
        return _logarithm(found, x.type.dtype)
    form = _scaled(x, region, Gain.OF_SUM)
    if form is None or form.exponent is None:
        return None
    weight = 1.0 if form.factor is None else number(form.factor)
    if weight is None or weight == 0:
        near = functions.exp_diff(functions.minimum(form.exponent, FAR), 0)
        near = functions.log1p(functions.mul(form.factor, near))
        return functions.switch(
            functions.gt(form.exponent, FAR), _logarithm(form, x.type.dtype), near
        )
    exponent = _sum(form.exponent, _logarithm_of(abs(weight), x.type.dtype))
    return functions.softplus(exponent) if weight > 0 else functions.log1mexp(exponent)


# ================================================================================= regions


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

    def of(self, node: Apply) -> list[TensorVariable]:
        """The inputs that count."""
        return node.inputs[self.which]


def _region(x: Variable, stop: Container[Variable]) -> list[Apply]:
    """The nodes that compose ``x``, in topological order; at most `MOST_NODES`."""
    order: list[Apply] = []
    seen: set[Apply] = set()
    stack: list[tuple[Variable, bool]] = [(x, False)]
    while stack:
        v, done = stack.pop()
        node = v.owner
        if node is None or (not done and (node in seen or v in stop)):
            continue
        if done:
            order.append(node)
            continue
        compose = _composition(node)
        if compose is None or not _is_float(v) or len(seen) == MOST_NODES:
            continue
        seen.add(node)
        stack.append((v, True))
        stack.extend((w, False) for w in compose.of(node) if _is_float(w))
    return order


def _gains(nodes: Sequence[Apply]) -> dict[Variable, Gain]:
    """The results of nodes whose scaled form has an exponent, and where that is of use."""
    found: dict[Variable, Gain] = {}
    for node in nodes:
        compose = _composition(node)
        if compose is None:
            continue
        gain = max([compose.gain(node), *[found.get(v, Gain.NOTHING) for v in compose.of(node)]])
        if gain > (Gain.OF_PRODUCT if compose.adds else Gain.NOTHING):
            found[node.outputs[0]] = gain
    return found


def _composition(node: Apply) -> Composition | None:
    op = node.op
    if hasattr(getattr(op, "core_op", op), "scaled_form"):
        return STATED_BY_OP
    if type(op) is not Elemwise:
        return OPS.get(type(op))
    scalar_op = op.scalar_op
    if "y" in scalar_op.logs:
        return STATED
    return CAST if scalar_op.name.startswith("cast_") else ELEMENTWISE.get(scalar_op.name)


# ============================================================ functions with one argument


def _stated(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """A function whose row states its logarithm."""
    return _form_of(node.op.scalar_op.logs["y"](functions, *node.inputs), node)


def _form_of(stated: StatedLog, node: Apply) -> Scaled:
    """The scaled form that a row states, of the dtype of ``node``."""
    if not isinstance(stated, tuple):
        return Scaled(stated, None)
    exponent, factor = stated
    return Scaled(exponent, factor if isinstance(factor, Variable) else _constant(factor, node))


def _stated_by_op(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """An op that states its scaled form by a method of this name."""
    return Scaled(*getattr(node.op, "core_op", node.op).scaled_form(*node.inputs))


def _square(node: Apply, given: Sequence[Scaled]) -> Scaled:
    (x,) = given
    factor = None if x.factor is None else _twice(functions.log(functions.abs(x.factor)))
    return Scaled(_sum(_twice(x.exponent), factor), None)


def _root(node: Apply, given: Sequence[Scaled]) -> Scaled:
    (x,) = given
    exponent = None if x.exponent is None else functions.mul(0.5, x.exponent)
    return Scaled(exponent, None if x.factor is None else functions.sqrt(x.factor))


def _to_factor(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """Functions that multiply by 1 or -1, `neg` and `abs`."""
    (x,) = given
    if x.factor is not None:
        return Scaled(x.exponent, node.op(x.factor))
    return Scaled(x.exponent, None if scalar_name(node) == "abs" else _constant(-1, node))


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
    return Scaled(_sum(*[x.exponent for x in given]), _product_of(factors, node))


def _product_of(factors: Sequence[TensorVariable], node: Apply) -> TensorVariable | None:
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
        size = _logarithm_of(known, node.outputs[0].type.dtype)
        return Scaled(_sum(exponent, None if size is None else functions.mul(p, size)), None)
    exponent = _sum(exponent, functions.xlogy(p, functions.abs(x.factor)))
    return Scaled(exponent, _sign_of_power(x.factor, p))


def _sign_of_power(x: TensorVariable, p: TensorVariable) -> TensorVariable | None:
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
    exponent, factor = x.exponent, None
    if x.factor is not None:
        exponent = _sum(exponent, functions.log(functions.abs(x.factor)))
        factor = disconnected_grad(node.op(_spread(functions.sign(x.factor), of)))
    return Scaled(Sum(axis=node.op.axis)(_spread(exponent, of)), factor)


def _gain_of_sizes(node: Apply) -> Gain:
    """That of a product, but not of signs alone."""
    signs = scalar_name(node.inputs[0].owner) == "sign"
    return Gain.NOTHING if signs else Gain.OF_PRODUCT


# ==================================================================================== sums


def _addition(node: Apply, given: Sequence[Scaled]) -> Scaled:
    return _of_terms(node.inputs, given, node)


def _difference(node: Apply, given: Sequence[Scaled]) -> Scaled:
    first, second = given
    factor = _constant(-1, node) if second.factor is None else functions.neg(second.factor)
    below = Scaled(second.exponent, factor)
    return _of_terms([node.inputs[0], functions.neg(node.inputs[1])], [first, below], node)


def _of_terms(terms: Sequence[TensorVariable], given: Sequence[Scaled], node: Apply) -> Scaled:
    if len(terms) == 2:
        for one, other in (terms, terms[::-1]):
            known = number(one)
            found = None if not known else _stated_with_one(known, other)
            if found is not None:
                return found
        found = _of_two(*[_term(x) for x in given], node)
        if found is not None:
            return found
    else:
        known_terms = [_term(x) for x in given]
        if all(t is not None and t.weight > 0 for t in known_terms):
            exponents = [_exponent(t, node) for t in known_terms]
            return Scaled(reduce(functions.logaddexp, exponents), None)
    return _weighted_sum(given, node)


def _term(x: Scaled) -> Term | None:
    """A scaled form with a factor that is a number other than 0; else None."""
    weight = 1.0 if x.factor is None else number(x.factor)
    return None if not weight or not math.isfinite(weight) else Term(weight, x.exponent)


def _exponent(t: Term, node: Apply) -> TensorVariable | None:
    """The logarithm of the size of a term of ``node``; None for 0."""
    return _sum(t.exponent, _logarithm_of(abs(t.weight), node.outputs[0].type.dtype))


def _of_two(first: Term | None, second: Term | None, node: Apply) -> Scaled | None:
    """A sum of two numbers with known signs, of which one at least is positive."""
    if first is None or second is None or max(first.weight, second.weight) < 0:
        return None
    if first.weight < 0:
        first, second = second, first
    x, y = _exponent(first, node), _exponent(second, node)
    if second.weight < 0:
        return Scaled(x, functions.neg(functions.expm1(_below(y, x))))
    if x is None or y is None:
        return Scaled(functions.softplus(y if x is None else x), None)
    return Scaled(functions.logaddexp(x, y), None)


def _below(y: TensorVariable | None, x: TensorVariable | None) -> TensorVariable:
    """``y - x`` of exponents of which one is not 0; -inf where ``y`` is."""
    if y is None:
        return functions.neg(x)
    return y if x is None else functions.switch(functions.eq(y, -math.inf), y, functions.sub(y, x))


def _stated_with_one(one: float, x: TensorVariable) -> Scaled | None:
    """``one + x`` if ``x`` is plus or minus ``one * f(z)``, and ``f`` states that logarithm."""
    factor, core = _coefficient(x)
    node = core.owner
    if node is None or type(node.op) is not Elemwise or abs(factor) != abs(one):
        return None
    stated = node.op.scalar_op.logs.get("1 + y" if factor == one else "1 - y")
    if stated is None or not _is_float(node.inputs[0]):
        return None
    form = _form_of(stated(functions, *node.inputs), node)
    factors = [_constant(one, node), *([] if form.factor is None else [form.factor])]
    return Scaled(form.exponent, _product_of(factors, node))


def _gain_with_one(node: Apply) -> Gain:
    """That of the sum of a number and a function that states the logarithm of that."""
    if len(node.inputs) != 2:
        return Gain.NOTHING
    first, second = node.inputs
    sign = -1 if scalar_name(node) == "sub" else 1
    for one, other, by, times in ((first, second, 1, sign), (second, first, sign, 1)):
        known = number(one)
        if not known:
            continue
        factor, core = _coefficient(other)
        if core.owner is not None and type(core.owner.op) is Elemwise:
            form = "1 + y" if factor * times == known * by else "1 - y"
            if abs(factor) == abs(known) and form in core.owner.op.scalar_op.logs:
                return Gain.OF_SUM
    return Gain.NOTHING


def _coefficient(x: TensorVariable) -> tuple[float, TensorVariable]:
    """A number and a variable whose product ``x`` is."""
    factor = 1.0
    for _ in range(MOST_NODES):
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
            break
    return factor, x


def _weighted_sum(given: Sequence[Scaled], node: Apply) -> Scaled:
    """Numbers with any signs: the largest exponent of those that are not 0 is taken out."""
    out = node.outputs[0]
    top = reduce(functions.maximum, [_counted(x, out) for x in given])
    top = disconnected_grad(top)
    parts = []
    for x in given:
        size = functions.exp_diff(_exponent_or_zero(x, out), top)
        parts.append(size if x.factor is None else functions.mul(x.factor, size))
    return Scaled(top, functions.add(*parts))


def _exponent_or_zero(x: Scaled, like: TensorVariable) -> TensorVariable:
    return _like(like, 0, like.type.dtype) if x.exponent is None else x.exponent


def _counted(x: Scaled, like: TensorVariable) -> TensorVariable:
    """The exponent of a number, -inf where it is 0."""
    exponent = _exponent_or_zero(x, like)
    if x.factor is None or number(x.factor):
        return exponent
    return functions.switch(functions.neq(x.factor, 0), exponent, -math.inf)


def _sum_over_axes(node: Apply, given: Sequence[Scaled]) -> Scaled:
    (x,), (of,) = given, node.inputs
    term = _term(x)
    axes = node.op.axes(node)
    if term is not None and term.weight > 0:
        exponent = _spread(_exponent(term, node), of)
        return Scaled(LogSumExp(axis=axes)(exponent), None)
    exponent = _spread(x.exponent, of)
    top = disconnected_grad(LogSumExp(axis=axes)(_spread(_counted(x, of), of)))
    shares = functions.exp_diff(exponent, keep_dims(top, axes))
    return Scaled(top, node.op(functions.mul(x.factor, shares)))


# ====================================================================== moves and selections


def _softmax(node: Apply, given: Sequence[Scaled]) -> Scaled:
    return Scaled(LogSoftmax(axis=node.op.axis)(*node.inputs), None)


def _move(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """Ops each element of whose result is an element of the first input."""
    x, rest = node.inputs[0], node.inputs[1:]
    moved = [None if v is None else node.op(_spread(v, x), *rest) for v in given[0]]
    return Scaled(*moved)


def _selection(node: Apply, given: Sequence[Scaled]) -> Scaled:
    condition = node.inputs[0]
    forms = _filled(node, given)
    return Scaled(*[None if a is None else functions.switch(condition, a, b) for a, b in forms])


def _second(node: Apply, given: Sequence[Scaled]) -> Scaled:
    shape = node.inputs[0]
    return Scaled(*[None if v is None else functions.second(shape, v) for v in given[0]])


def _joined(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """Ops that put their inputs beside each other."""
    made: list[TensorVariable | None] = []
    for column in _filled(node, given):
        whole = [None if v is None else _spread(v, of) for v, of in zip(column, node.inputs)]
        made.append(None if column[0] is None else node.op(*whole))
    return Scaled(*made)


def _filled(node: Apply, given: Sequence[Scaled]) -> list[list[TensorVariable | None]]:
    """The exponents, and the factors, of all numbers; a list of None if none has one."""
    columns: list[list[TensorVariable | None]] = []
    inputs = node.inputs[len(node.inputs) - len(given) :]
    for values, neutral in zip(zip(*given), (0, 1)):
        if all(v is None for v in values):
            columns.append([None] * len(given))
            continue
        columns.append([_like(x, neutral) if v is None else v for v, x in zip(values, inputs)])
    return columns


# =================================================================================== parts


def number(v: Variable) -> float | None:
    """The number that every element of a constant equals, in any number of axes; else None."""
    while v.owner is not None and type(v.owner.op) is DimShuffle:
        v = v.owner.inputs[0]
    if not isinstance(v, TensorConstant) or v.type.dtype[0] == "c":
        return None
    value = v.data if v.data.size == 1 else v.unique_value
    return None if value is None else float(value.item())


def function_of(v: Variable) -> tuple[str | None, list[TensorVariable]]:
    """The name of the elementwise function that computes a variable, and its arguments."""
    return scalar_name(v.owner), [] if v.owner is None else v.owner.inputs


def argument(v: Variable, name: str) -> TensorVariable | None:
    """``x`` if ``v`` is ``name(x)``, else None."""
    found, inputs = function_of(v)
    return inputs[0] if found == name else None


def scalar_name(node: Apply | None) -> str | None:
    """The name of the scalar function that an elementwise node applies, or None."""
    if node is None or type(node.op) is not Elemwise:
        return None
    scalar_op: ScalarOp = node.op.scalar_op
    return scalar_op.name


def _is_float(v: Variable) -> bool:
    return dtypes.is_float(v.type.dtype)


def _sum(*terms: TensorVariable | float | None) -> TensorVariable | None:
    """The sum of those that are not None; None if all are."""
    found = [v for v in terms if v is not None]
    return None if not found else functions.add(*found) if len(found) > 1 else found[0]


def _twice(v: TensorVariable | None) -> TensorVariable | None:
    return None if v is None else functions.mul(2, v)


def _logarithm_of(value: float, dtype: str) -> TensorVariable | None:
    """The logarithm of a positive number, as a constant; None for 0."""
    return None if value == 1 else constant(np.asarray(math.log(value), dtype))


def _constant(value: float, node: Apply) -> TensorVariable:
    """A number in the dtype of the result of a node."""
    return constant(np.asarray(value, node.outputs[0].type.dtype))


def _like(v: TensorVariable, value: float, dtype: str = "") -> TensorVariable:
    """A number in the shape and dtype of ``v``, which is not computed."""
    return functions.second(v, np.asarray(value, dtype or v.type.dtype))


def _spread(v: TensorVariable, of: TensorVariable) -> TensorVariable:
    """``v`` broadcast to the shape of ``of``, which is not computed."""
    return v if v.type.broadcastable == of.type.broadcastable else functions.second(of, v)


_NONE = slice(0)
STATED = Composition(_stated, _NONE, lambda node: Gain.OF_SUM)
STATED_BY_OP = Composition(_stated_by_op, _NONE, lambda node: Gain.OF_PRODUCT)
CAST = Composition(_cast)

ELEMENTWISE: dict[str, Composition] = {
    "add": Composition(_addition, gain=_gain_with_one, adds=True),
    "sub": Composition(_difference, gain=_gain_with_one, adds=True),
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

for _name in LOGARITHMS:
    differentiated_as(getattr(functions, str(_name)), differentiated_form)
