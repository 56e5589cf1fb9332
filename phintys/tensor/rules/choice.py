"""Rules for switch, comparisons and logical functions."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Computed, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.rewriting.unify import is_constant
from phintys.scalar.op import TABLE
from phintys.tensor.convert import constant
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.rules.fills import fill_number
from phintys.tensor.rules.match import (
    applied,
    at,
    is_bool,
    is_discrete,
    like,
    literal,
    number,
    some,
)
from phintys.tensor.rules.match import scalar_op_name as name_of
from phintys.tensor.variable import TensorVariable

MUL, DIV = TABLE["mul"], TABLE["true_div"]

#: Terms of a sum that is multiplied out, at most.
MOST_TERMS = 4


@rule(
    "switch(True, a, b) -> a, switch(c, a, a) -> a",
    "switch(condition, a, b)",
    law="drops_errors",
    tags=("local_useless_switch", "cleanup", "shape_unsafe"),
    tested_on=(
        "switch(1, x, y)",
        "switch(0, x, y)",
        "switch(gt(x, 0), y, y)",
        "switch(ones_like(x), y, 2)",
        "switch(0, f, x)",
    ),
)
def useless_switch(
    node: Apply, condition: TensorVariable, a: TensorVariable, b: TensorVariable
) -> Replacement:
    k = fill_number(condition)
    if k is None and a is not b:
        return None
    return like(node, a if a is b or k else b)


@rule(
    "switch(c != 0, a, b) -> switch(c, a, b), switch(~c, a, b) -> switch(c, b, a)",
    "switch(condition := neq | eq | invert(inner, *other), a, b)",
    given={"condition": is_bool},
    law="exact",
    tags=("local_useless_switch", "cleanup"),
    tested_on=("switch(neq(b, 0), x, y)", "switch(eq(b, 0), x, y)", "switch(invert(b), x, y)"),
)
def simpler_condition(
    condition: TensorVariable,
    inner: TensorVariable,
    other: Sequence[Variable],
    a: TensorVariable,
    b: TensorVariable,
) -> Replacement:
    if inner.type != condition.type or any(number(v) != 0 for v in other):
        return None
    positive = name_of(condition.owner) == "neq"
    return functions.switch(inner, a, b) if positive else functions.switch(inner, b, a)


@rule(
    "switch(c, switch(c, a, b), d) -> switch(c, a, d)",
    "switch(condition, a, b)",
    where=some("switch"),
    law="exact",
    tags=("local_merge_switch_same_cond", "cleanup", "shape_unsafe"),
    tested_on=(
        "switch(gt(x, 0), switch(gt(x, 0), y, z), 1)",
        "switch(gt(x, 0), y, switch(gt(x, 0), 1, z))",
    ),
)
def nested_switch(
    node: Apply, condition: TensorVariable, a: TensorVariable, b: TensorVariable
) -> Replacement:
    branches = [_branch(v, condition, i) for i, v in enumerate((a, b), start=1)]
    if branches == [a, b]:
        return None
    return like(node, functions.switch(condition, *branches))


def _branch(v: Variable, condition: Variable, i: int) -> Variable:
    inner = applied(v, "switch")
    return inner.inputs[i] if inner is not None and inner.inputs[0] is condition else v


@rule(
    "f(switch(c, a, b), switch(c, d, e)) -> switch(c, f(a, d), f(b, e))",
    ops=[TABLE[n] for n in ("add", "mul", "sub", "true_div")],
    where=at(0, "switch"),
    law="exact",
    tags=("local_merge_switch_same_cond",),
    tested_on=(
        "switch(gt(x, 0), x, y) + switch(gt(x, 0), y, z)",
        "switch(gt(x, 0), x, y) / switch(gt(x, 0), y, 2)",
        "switch(gt(h, 0), h, i) + switch(gt(h, 0), h, j)",
    ),
)
def merge_switches(ctx: Context, node: Apply) -> Replacement:
    first = applied(node.inputs[0], "switch")
    if first is None or len(node.inputs) < 2:
        return None
    inner = [applied(v, "switch") for v in node.inputs]
    condition = first.inputs[0]
    for v, switch in zip(node.inputs, inner):
        if switch is None or switch.inputs[0] is not condition or not ctx.single_use(v):
            return None
    switches = [s for s in inner if s is not None]
    branches = [node.op(*(_chosen(s, i) for s in switches)) for i in (1, 2)]
    return like(node, functions.switch(condition, *branches))


def _chosen(switch: Apply, i: int) -> Variable:
    """Branch ``i`` of a switch, cast to the dtype of its result: a narrower dtype would wrap."""
    return cast(switch.inputs[i], switch.outputs[0].type.dtype)


@rule(
    "switch(c, a, 0) * b -> switch(c, a * b, 0)",
    ops=[MUL, DIV],
    where=some("switch"),
    law="finite",
    tags=("local_mul_switch_sink", "local_div_switch_sink"),
    tested_on=(
        "switch(gt(x, 0), 1, 0) * y",
        "switch(gt(x, 0), x, 0) / y",
        "y * switch(gt(x, 0), 0, z)",
        "x * y * switch(gt(x, 0), zeros_like(x), z)",
        "h * switch(gt(h, 0), h, zeros_like(i))",
    ),
)
def sink_switch(ctx: Context, node: Apply) -> Replacement:
    """Move products and quotients into a switch with a zero branch.

    This avoids ``0 * inf`` in gradients: only the branch that is taken counts.
    A switch with several uses is duplicated: otherwise one of the products could be NaN.
    """
    candidates = node.inputs if name_of(node) == "mul" else node.inputs[:1]
    for i, v in enumerate(candidates):
        switch = applied(v, "switch")
        if switch is None:
            continue
        condition, *_ = switch.inputs
        zero = [fill_number(b) == 0 for b in switch.inputs[1:]]
        if zero[0] == zero[1]:
            continue
        branches = [_chosen(switch, k) for k in (1, 2)]
        dtype = node.outputs[0].type.dtype
        new = [
            _zeros(b, dtype) if is_zero else _with(node, i, b) for b, is_zero in zip(branches, zero)
        ]
        return like(node, functions.switch(condition, *new))
    return None


@rule(
    "(switch(c, x, 0) + switch(d, y, 0)) * z -> switch(c, x * z, 0) + switch(d, y * z, 0)",
    ops=[MUL],
    where=some("add"),
    phase="stabilize",
    law="finite",
    tested_on=(
        "(switch(gt(x, 0), exp(y), 0) + switch(gt(y, 0), 0, sigmoid(x))) * exp(z)",
        "(switch(gt(x, 0), exp(y), 0) + switch(gt(y, 0), exp(x), 0)) * (x * exp(z))",
    ),
)
def sink_sum_of_switches(ctx: Context, node: Apply) -> Replacement:
    """Where all terms of a sum may be 0 by choice, and another factor may be infinite.

    The derivative in a variable that several branches use is such a sum; it is 0 where none of the
    branches is taken.
    """
    for i, v in enumerate(node.inputs):
        terms = v.owner.inputs if v.owner is not None and name_of(v.owner) == "add" else []
        if not 1 < len(terms) <= MOST_TERMS or not all(map(_may_be_zero, terms)):
            continue
        others = [w for k, w in enumerate(node.inputs) if k != i]
        if any(map(_may_be_infinite, others)):
            dtype = node.outputs[0].type.dtype
            return like(node, functions.add(*(_with(node, i, cast(t, dtype)) for t in terms)))
    return None


def _may_be_zero(v: Variable) -> bool:
    """Whether a branch of a switch is 0."""
    switch = applied(v, "switch")
    return switch is not None and any(fill_number(b) == 0 for b in switch.inputs[1:])


def _may_be_infinite(v: Variable) -> bool:
    """Whether a number is an exponential or power, or a product with one."""
    names = {name_of(v.owner)}
    if v.owner is not None and names & {"mul", "true_div", "neg"}:
        names = {name_of(w.owner) for w in v.owner.inputs}
    return bool(names & {"exp", "pow", "expm1"})


def _zeros(branch: Variable, dtype: str) -> Variable:
    """A branch of zeros in a dtype: a number, unless the branch has lengths that may be wrong."""
    if all(branch.type.broadcastable):
        return literal(0, dtype, branch.type.ndim)
    return cast(branch, dtype)


def _with(node: Apply, i: int, new: Variable) -> Variable:
    return node.op(*(new if k == i else v for k, v in enumerate(node.inputs)))


# ------------------------------------------------------------------------ comparisons, logic


@rule(
    "x == x -> True",
    "eq | neq | lt | le | gt | ge(x, x)",
    law="exact",
    tags=("local_useless_elemwise", "local_useless_elemwise_comparison"),
    tested_on=("eq(i, i)", "neq(i, i)", "lt(i, i)", "ge(i, i)", "lt(x, x)", "gt(x, x)"),
)
def compare_with_itself(node: Apply, x: TensorVariable) -> Replacement:
    """NaN is not equal to itself, so that of floats only ``x < x`` and ``x > x`` are known."""
    value = name_of(node) in ("eq", "le", "ge")
    if not is_discrete(x) and name_of(node) not in ("lt", "gt"):
        return None
    return like(node, constant(value, dtype="bool", ndim=x.type.ndim))


@rule(
    "b == True -> b, b != True -> ~b",
    "eq | neq(x, bit)",
    given={"x": is_bool, "bit": lambda v: number(v) in (0, 1)},
    law="exact",
    tags=("local_useless_elemwise",),
    tested_on=("eq(b, 1)", "neq(b, 0)", "eq(b, 0)", "neq(1, b)"),
)
def compare_bool(node: Apply, x: TensorVariable, bit: TensorVariable) -> Replacement:
    same = (name_of(node) == "eq") == bool(number(bit))
    return like(node, x if same else functions.invert(x))


@rule(
    "~(a == b) -> a != b",
    "invert(comparison := eq | neq | lt | le | gt | ge(*operands))",
    law="exact",
    tags=("local_useless_elemwise",),
    tested_on=("invert(eq(x, y))", "invert(neq(x, y))", "invert(lt(i, j))"),
)
def negated_comparison(comparison: Computed, operands: Sequence[Variable]) -> Replacement:
    """Order comparisons of floats are not negated: with NaN both directions are false."""
    name = comparison.owner.op.scalar_op.name
    if name not in ("eq", "neq") and not all(map(is_discrete, operands)):
        return None
    return functions.of(OPPOSITE[name])(*operands)


OPPOSITE = {"eq": "neq", "neq": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


@rule(
    "a & True -> a, a | False -> a, a ^ 0 -> a",
    "and_ | or_ | xor(x, other)",
    given={"other": is_constant},
    law="exact",
    tags=("local_useless_elemwise",),
    tested_on=(
        "and_(b, true)",
        "or_(b, false)",
        "or_(b, true)",
        "and_(i, 0)",
        "xor(i, 0)",
        "or_(i, 0)",
        "and_(false, b)",
    ),
)
def neutral_bits(node: Apply, x: TensorVariable, other: TensorVariable) -> Replacement:
    dtype, ndim = node.outputs[0].type.dtype, node.outputs[0].type.ndim
    zero, ones = (False, True) if dtype == "bool" else (0, -1)
    name, k = name_of(node), number(other)
    if k == (ones if name == "and_" else zero):
        return like(node, x)
    if name != "xor" and k == (zero if name == "and_" else ones):
        return like(node, literal(k, dtype, ndim))
    return None


@rule(
    "isnan(integer) -> False",
    "isnan | isinf(x)",
    given={"x": is_discrete},
    law="exact",
    tags=("local_useless_elemwise",),
    tested_on=("isnan(i)", "isinf(i)"),
)
def never_nan(node: Apply, x: TensorVariable) -> Replacement:
    return like(node, constant(False, dtype="bool", ndim=x.type.ndim))


@rule(
    "switch(c, True, False) -> c",
    "switch(condition, a, b)",
    given={"condition": is_bool, "a": is_constant, "b": is_constant},
    law="exact",
    tags=("local_useless_switch",),
    tested_on=("switch(b, true, false)", "switch(b, false, true)"),
)
def switch_of_bools(
    node: Apply, condition: TensorVariable, a: TensorVariable, b: TensorVariable
) -> Replacement:
    chosen = number(a), number(b)
    if node.outputs[0].type.dtype != "bool" or chosen not in ((True, False), (False, True)):
        return None
    return like(node, condition if chosen[0] else functions.invert(condition))
