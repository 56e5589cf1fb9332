"""Rules that recognise softmax, log_softmax, logsumexp, min and argmin in expressions.

Those with the tag ``rows`` also run in a phase of this name, before others move indexed reads,
transposes and reshapes to the inputs of functions, which hides the expressions.
"""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Computed, Variable
from phintys.rewriting.equilibrium import EquilibriumWhere
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.creation import Alloc
from phintys.tensor.diagonal import ExtractDiag
from phintys.tensor.elemwise import DimShuffle, functions
from phintys.tensor.index_ops import (
    AdvancedSubtensor,
    Subtensor,
)
from phintys.tensor.reduce import Argmax, Argmin, Max, Min, Sum, keep_dims
from phintys.tensor.reshape import JoinDims, Reshape, SplitDims
from phintys.tensor.rules.match import (
    argument,
    at,
    is_float,
    like,
    negated,
    number,
    some,
)
from phintys.tensor.rules.stable import factors, product
from phintys.tensor.rules.through import MOST_MOVES
from phintys.tensor.shape import SpecifyShape
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax
from phintys.tensor.variable import TensorVariable

TAGS = ("symbolic_op_recognition", "fast_compile", "rows")
#: Ops each element of whose result is an element of the first input.
MOVES = (
    *(AdvancedSubtensor, Alloc, DimShuffle, ExtractDiag, JoinDims, Reshape, SpecifyShape),
    *(SplitDims, Subtensor),
)


def reduction(v: Variable, kind: type) -> tuple[Apply | None, bool]:
    """The reduction that computes ``v`` (or None), and whether its axes are kept with length 1."""
    node = v.owner
    if node is None or isinstance(node.op, kind):
        return node, False
    inner = node.inputs[0].owner if isinstance(node.op, DimShuffle) else None
    if inner is None or not isinstance(inner.op, kind):
        return None, False
    kept = keep_dims(node.inputs[0], reduced_axes(inner))
    return (inner, True) if kept.owner_op == node.op else (None, False)


def reduced_axes(node: Apply) -> tuple[int, ...]:
    """The axes of a reduction or of a softmax-like node."""
    axes = getattr(node.op, "axes", None)
    found: tuple[int, ...] = node.op.axis if axes is None else axes(node)
    return found


#: The reduction to the other extreme, and the op that finds its position.
OTHER_EXTREME: dict[type, type[Max] | type[Min]] = {Max: Min, Min: Max}
OTHER_POSITION: dict[type, type[Argmax]] = {Argmax: Argmin, Argmin: Argmax}


class WhereRowsAre(EquilibriumWhere):
    """The phase ``rows``; it is skipped for graphs without what its rules recognise.

    These are softmax, sums of exponentials, and extremes of negated numbers.
    """

    @staticmethod
    def concerns(node: Apply) -> bool:
        if type(node.op) in OTHER_EXTREME or type(node.op) in OTHER_POSITION:
            return argument(node.inputs[0], "neg") is not None
        return type(node.op) is Softmax or _exponents(node) is not None


def _exponents(node: Apply) -> Variable | None:
    """``x`` if the node is ``sum(exp(x))``, with the dtype of ``x``; else None."""
    if type(node.op) is not Sum:
        return None
    x = argument(node.inputs[0], "exp")
    return x if x is not None and x.type.dtype == node.outputs[0].type.dtype else None


@rule(
    "log(sum(exp(x))) -> logsumexp(x)",
    "log(total := Sum(_))",
    phase="stabilize",
    law="accurate",
    tags=("local_log_sum_exp", *TAGS),
    tested_on=("log(exp(M).sum(axis=0))", "log(sum(exp(v)))"),
)
def log_of_sum_of_exp(total: Computed) -> Replacement:
    return _logarithm(total.owner)


@rule(
    "log(softmax(x)) -> log_softmax(x)",
    "log(rows := Softmax(_))",
    phase="stabilize",
    law="accurate",
    tags=("local_logsoftmax", "rows"),
    tested_on=("log(special.softmax(M, axis=1))",),
)
def log_of_softmax(rows: Computed) -> Replacement:
    return _logarithm(rows.owner)


@rule(
    "log(softmax(x)[i]) -> log_softmax(x)[i]",
    ops=[TABLE["log"]],
    where=at(0, *MOVES),
    phase="stabilize",
    law="accurate",
    tags=("local_log_sum_exp", "local_logsoftmax", *TAGS),
    tested_on=(
        "log(exp(M).sum(axis=1, keepdims=True))",
        "log(exp(M).sum(axis=1)[::-1])",
        "log(special.softmax(M, axis=1)[:, 0])",
        "log(special.softmax(M, axis=0).T[np.array([1, 0, 1])])",
        "log(special.softmax(M, axis=1).reshape((-1,)))",
    ),
)
def log_of_moved_rows(ctx: Context, node: Apply) -> Replacement:
    """Applies to a softmax, or sum of exponentials, whose elements are moved by some ops."""
    moves, v = _moves(node.inputs[0])
    new = None if v.owner is None else _logarithm(v.owner)
    return None if new is None else _moved(new, moves)


def _logarithm(node: Apply) -> Variable | None:
    """``log(node)`` in its stable form, for a softmax or a sum of exponentials; else None."""
    if type(node.op) is Softmax:
        return LogSoftmax(axis=node.op.axis)(*node.inputs)
    x = _exponents(node)
    return None if x is None else LogSumExp(axis=reduced_axes(node))(x)


def _moves(v: Variable) -> tuple[list[Apply], Variable]:
    """The nodes that only move elements of a variable, which makes ``v``; the variable."""
    moves: list[Apply] = []
    while v.owner is not None and type(v.owner.op) in MOVES and len(moves) < MOST_MOVES:
        moves.append(v.owner)
        v = v.owner.inputs[0]
    return moves, v


def _moved(v: Variable, moves: Sequence[Apply]) -> Variable:
    """A variable whose elements are moved like those of the argument of the last node."""
    for made in reversed(moves):
        v = made.op(v, *made.inputs[1:])
    return v


@rule(
    "y * exp(x) / sum(exp(x)) -> y * softmax(x)",
    ops=[TABLE["true_div"]],
    where=at(1, Sum, DimShuffle),
    phase="stabilize",
    law="accurate",
    tags=("local_softmax_stabilize", *TAGS),
    tested_on=(
        "exp(M) / exp(M).sum(axis=1, keepdims=True) | below inf",
        "exp(v) / sum(exp(v)) | below inf",
        "w * exp(v) / sum(exp(v)) | below inf",
        "exp(M) / sum(exp(M)) | below inf",
    ),
)
def recognise_softmax(ctx: Context, node: Apply) -> Replacement:
    """Applies where the sum keeps its axes with length 1, or is over all axes."""
    below = node.inputs[1]
    inner, kept = reduction(below, Sum)
    if inner is None or not (kept or below.type.ndim == 0):
        return None
    top = factors(node.inputs[0])
    exp = inner.inputs[0]
    x = argument(exp, "exp")
    if x is None or exp not in top or not is_float(x) or x.type.dtype != below.type.dtype:
        return None
    top[top.index(exp)] = Softmax(axis=reduced_axes(inner))(x)
    return like(node, product(top))


@rule(
    "exp(log_softmax(x)) -> softmax(x)",
    "exp(LogSoftmax(x, axis=axis))",
    phase="stabilize",
    law="accurate",
    tags=("local_exp_log_softmax",),
    tested_on=("exp(special.log_softmax(M, axis=1))",),
)
def exp_of_log_softmax(x: TensorVariable, axis: tuple[int, ...]) -> Replacement:
    return Softmax(axis=axis)(x)


@rule(
    "x - logsumexp(x) -> log_softmax(x)",
    ops=[TABLE["add"]],
    where=some("mul"),
    phase="stabilize",
    law="accurate",
    tags=("local_log_softmax_from_logsumexp",),
    tested_on=(
        "M - logsumexp(M, axis=1, keepdims=True) | below inf",
        "v - logsumexp(v) | below inf",
        "M + N - logsumexp(M, axis=0, keepdims=True) | below inf",
    ),
)
def difference_to_log_softmax(ctx: Context, node: Apply) -> Replacement:
    for v in node.inputs:
        total = negated(v)
        inner, kept = (None, False) if total is None else reduction(total, LogSumExp)
        if inner is None or not (kept or v.type.ndim == 0) or inner.inputs[0] not in node.inputs:
            continue
        x = inner.inputs[0]
        new = LogSoftmax(axis=inner.op.axis)(x)
        rest = [w for w in node.inputs if w is not v and w is not x]
        return like(node, functions.add(new, *rest) if rest else new)
    return None


@rule(
    "exp(x - max) / sum(exp(x - max)) -> softmax(x)",
    "Softmax | LogSoftmax(x := add(*terms), axis=axes)",
    law="finite",
    phase="stabilize",
    tags=("local_softmax_stabilize",),
    tested_on=(
        "special.softmax(M - M.max(axis=1, keepdims=True), axis=1)",
        "special.log_softmax(v + s, axis=0)",
    ),
)
def shifted_softmax(
    node: Apply, x: TensorVariable, terms: Sequence[Variable], axes: tuple[int, ...]
) -> Replacement:
    """Remove terms that are constant along the axes: they cancel."""
    moving = [v for v in terms if not all(v.type.broadcastable[a] for a in axes)]
    if len(moving) == len(terms) or not moving:
        return None
    rest = functions.add(*moving) if len(moving) > 1 else moving[0]
    return node.op(rest) if rest.type == x.type else None


# -------------------------------------------------------------------------- min and argmin


@rule(
    "max(-x) -> -min(x)",
    "Max | Min(neg(x), axis=axis, initial=initial)",
    given={"x": is_float},
    phase="specialize",
    law="exact",
    tags=("local_max_to_min", "fast_compile", "rows"),
    tested_on=("neg(v).max()", "Min((0,))(neg(M))"),
)
def extreme_of_negation(
    node: Apply, x: TensorVariable, axis: tuple[int, ...] | None, initial: bool
) -> Replacement:
    """Applies to floats only: negating the smallest integer overflows."""
    other = OTHER_EXTREME.get(type(node.op))  # none of a subclass
    return None if other is None else functions.neg(other(axis, initial)(x))


@rule(
    "argmax(-x) -> argmin(x)",
    "Argmax(neg(x), axis=axis)",
    given={"x": is_float},
    phase="rows",
    law="exact",
    tags=("local_argmax_to_argmin", "fast_compile"),
    tested_on=("argmax(neg(v))", "argmin(neg(neg(M)), axis=0)"),
)
def position_in_negation(
    node: Apply, x: TensorVariable, axis: tuple[int, ...] | None
) -> Replacement:
    other = OTHER_POSITION.get(type(node.op))
    return None if other is None else other(axis)(x)


@rule(
    "-x == -y -> x == y",
    ops=[TABLE["eq"]],
    where=some("neg"),
    phase="rows",
    law="exact",
    tags=("local_max_to_min", "fast_compile"),
    tested_on=("eq(neg(x), neg(y))", "eq(neg(M), neg(v).dimshuffle('x', 0))"),
)
def equal_negations(ctx: Context, node: Apply) -> Replacement:
    """The derivative of ``max(-x)`` compares ``-x`` with it.

    Applies if both have one dtype: the negative of an int8 of -128 is -128.
    """
    x, y = map(_negated, node.inputs)
    return None if x is None or y is None or x.type.dtype != y.type.dtype else node.op(x, y)


@rule(
    "-switch(c, -x, 0) -> switch(c, x, 0)",
    "neg(switch(condition, below, zero))",
    given={"below": is_float, "zero": lambda v: _is_zero(v)},
    single_use=True,
    phase="rows",
    law="rounding",
    tags=("local_max_to_min", "fast_compile"),
    tested_on=(
        "neg(switch(gt(x, 0), neg(y), 0))",
        "neg(switch(gt(M, 0), neg(v).dimshuffle('x', 0), 0))",
    ),
)
def negated_choice(
    node: Apply, condition: TensorVariable, below: TensorVariable, zero: TensorVariable
) -> Replacement:
    """The derivative of ``-max(-x)`` has this form."""
    x = _negated(below)
    return None if x is None else like(node, functions.switch(condition, x, zero))


def _negated(v: Variable) -> Variable | None:
    """``x`` if ``v`` is ``-x``, whose elements may be moved, else None."""
    moves, below = _moves(v)
    x = argument(below, "neg")
    return None if x is None else _moved(x, moves)


def _negative(v: Variable) -> Variable | None:
    """``x`` if ``v`` is ``-x`` or ``-1 * x``, else None."""
    x = argument(v, "neg")
    return negated(v) if x is None else x


def _is_zero(v: Variable) -> bool:
    return bool(number(_moves(v)[1]) == 0)


@rule(
    "-max(-x) -> min(x)",
    ops=[TABLE["neg"], TABLE["mul"]],
    where=some(Max, DimShuffle),
    phase="rows",
    law="accurate",
    tags=("local_max_to_min", "fast_compile"),
    tested_on=(
        "neg(max(neg(i))) | with a negative",
        "neg(max(neg(h), axis=0, keepdims=True)) | with a negative",
        "-1 * max(-1 * h) | with a negative",
    ),
)
def minimum_of_integers(ctx: Context, node: Apply) -> Replacement:
    """Applies to signed integers: the smallest of a dtype is its own negative, and the minimum."""
    greatest = _negative(node.outputs[0])
    inner, kept = (None, False) if greatest is None else reduction(greatest, Max)
    if inner is None or type(inner.op) is not Max or inner.op.initial:
        return None
    x = _negative(inner.inputs[0])
    if x is None or x.type.dtype not in dtypes.SIGNED:
        return None
    found = Min(inner.op.axis)(x)
    return keep_dims(found, reduced_axes(inner)) if kept else found
