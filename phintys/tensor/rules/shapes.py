"""Rules for lengths, computed without their tensors, and for assertions on shapes."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.convert import constant
from phintys.tensor.creation import AllocEmpty
from phintys.tensor.elemwise import cast
from phintys.tensor.lengths import is_length
from phintys.tensor.rules.match import like, number, scalar_op_name
from phintys.tensor.rules.reading import is_length_of
from phintys.tensor.shape import MakeVector, Shape_i, length, specify_shape
from phintys.tensor.static import as_length, known_length
from phintys.tensor.type_other import NoneConst, NoneTypeT
from phintys.tensor.variable import TensorVariable


@rule(
    "shape(x) -> vector of lengths",
    "Shape(x)",
    law="drops_errors",
    tags=("local_shape_to_shape_i", "ShapeOpt", "cleanup"),
    tested_on=("M.shape", "exp(v).shape", "s.shape"),
)
def shape_entries(x: TensorVariable) -> Replacement:
    if not hasattr(x.type, "ndim"):
        return None
    return MakeVector("int64")(*(length(x, i) for i in range(x.type.ndim)))


@rule(
    "length of a result -> from lengths of inputs",
    ops=[Shape_i],
    law="drops_errors",
    tags=(
        "local_track_shape_i",
        "local_Shape_i_ground",
        "local_shape_ground",
        "local_Shape_of_SpecifyShape",
        "ShapeOpt",
        "cleanup",
    ),
    tested_on=(
        "(M + v).shape[1]",
        "dot(M, v).shape[0]",
        "M.T.shape[0]",
        "exp(exp(v)).shape[0]",
        "join(0, v, w).shape[0]",
        "v[1:].shape[0]",
        "arange(n).shape[0]",
        "alloc(s, n).shape[0]",
        "empty((n,)).shape[0]",
        "M.sum(axis=0).shape[0]",
        "M.flatten().shape[0]",
    ),
)
def infer_length(ctx: Context, node: Apply) -> Replacement:
    """The length of a result without computing the result.

    Lengths are followed through all nodes in one application, since the graph may be deep, as far
    as one that another application has passed.
    """
    passed: list[tuple[Variable, int]] = []
    place = node.inputs[0], node.op.i
    found = None
    while found is None:
        found = ctx.lengths.get(place)
        if found is None:
            passed.append(place)
            found, place = _followed(*place)
    ctx.lengths.update(dict.fromkeys(passed, found))
    inner = found.owner
    unchanged = inner is not None and inner.op == node.op and inner.inputs[0] is node.inputs[0]
    return None if unchanged else found


def _followed(x: Variable, i: int) -> tuple[Variable | None, tuple[Variable, int]]:
    """The length of axis ``i`` of ``x``; or None, and the variable and axis that have it too."""
    found = _length_from_inputs(x, i)
    if found is None:
        return Shape_i(i)(x), (x, i)
    inner = found.owner
    if inner is None or not isinstance(inner.op, Shape_i) or inner.inputs[0] is x:
        return found, (x, i)
    return None, (inner.inputs[0], inner.op.i)


def _length_from_inputs(x: Variable, i: int) -> Variable | None:
    """The length of axis ``i`` of ``x`` from the inputs of its node (int64); None if unknown."""
    known = getattr(x.type, "shape", None)
    if known is not None and known[i] is not None:
        return constant(known[i], dtype="int64")
    owner = x.owner
    if owner is None or owner.op.infer_shape is None:
        return None
    if type(owner.op) is AllocEmpty and _asks_for_one(owner):
        return as_length(owner.inputs[i])
    found = owner.op.infer_shape(owner, [_symbolic_shape(v) for v in owner.inputs])[x.index]
    if found is None:
        return None
    entry = found[i]
    return constant(entry, dtype="int64") if isinstance(entry, int) else cast(entry, "int64")


def _asks_for_one(empty: Apply) -> bool:
    """Whether one length of an `AllocEmpty` is not a constant; it is checked with the array only.

    The product of several would have to be checked without the array too.
    """
    return sum(known_length(n) is None for n in empty.inputs) == 1


def _symbolic_shape(v: Variable) -> tuple[Variable, ...]:
    shape = getattr(v.type, "shape", None)
    return () if shape is None else tuple(length(v, i) for i in range(len(shape)))


# ------------------------------------------------------------------ lengths are not negative

#: Comparisons, and what they are with their operands exchanged.
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "neq": "neq"}


@rule(
    "length < 0 -> False, length >= 0 -> True",
    ops=[TABLE[n] for n in MIRRORED],
    law="exact",
    tags=("local_useless_elemwise_comparison",),
    tested_on=(
        "lt(v.shape[0], 0)",
        "ge(v.shape[0] + 1, 0)",
        "gt(0, v.shape[0])",
        "le(0, v.shape[0])",
        "eq(v.shape[0], -1)",
        "neq(-1, v.shape[0])",
        "le(v.shape[0], -2)",
    ),
)
def compare_length(ctx: Context, node: Apply) -> Replacement:
    """A length is not less than 0, and greater than what is."""
    (a, b), name = node.inputs, scalar_op_name(node) or ""
    if number(a) is not None:
        a, b, name = b, a, MIRRORED[name]
    k = number(b)
    if k is None or not is_length(a):
        return None
    if k < 0 or (k == 0 and name in ("lt", "ge")):
        return like(node, constant(name in ("gt", "ge", "neq"), dtype="bool", ndim=a.type.ndim))
    return None


@rule(
    "max(length, 0) -> length, min(length, 0) -> 0",
    "maximum | minimum(zero, n)",
    given={"zero": lambda v: number(v) == 0, "n": is_length},
    law="exact",
    tags=("local_useless_elemwise_comparison",),
    tested_on=("maximum(v.shape[0], 0)", "minimum(v.shape[0], 0)", "maximum(0, v.shape[0] + 2)"),
)
def bounded_length(node: Apply, zero: TensorVariable, n: TensorVariable) -> Replacement:
    return like(node, n if scalar_op_name(node) == "maximum" else zero)


# --------------------------------------------------------------------- assertions on shapes


@rule(
    "specify_shape(x) -> x",
    "SpecifyShape(x, *lengths)",
    law="exact",
    tags=("local_useless_specify_shape", "cleanup"),
    tested_on=(
        "SpecifyShape()(N, 2, 3)",
        "SpecifyShape()(M, None, None)",
        "SpecifyShape()(v[::-1], v.shape[0])",
    ),
)
def useless_specify_shape(x: TensorVariable, lengths: Sequence[Variable]) -> Replacement:
    """Applies where the static shape implies the assertion, or the lengths are those of ``x``."""
    asked = [axis for axis, n in enumerate(lengths) if not isinstance(n.type, NoneTypeT)]
    known = x.type.shape
    if all(
        (known[a] is not None and number(lengths[a]) == known[a]) or is_length_of(lengths[a], x, a)
        for a in asked
    ):
        return x
    return None


@rule(
    "specify_shape(specify_shape(x)) -> specify_shape(x)",
    "SpecifyShape(SpecifyShape(x, *earlier), *lengths)",
    law="exact",
    tags=("local_merge_consecutive_specify_shape", "cleanup"),
    tested_on=("specify_shape(specify_shape(M, (2, None)), (None, 3))",),
)
def merge_specify_shapes(
    x: TensorVariable, earlier: Sequence[Variable], lengths: Sequence[Variable]
) -> Replacement:
    merged = []
    for new, old in zip(lengths, earlier):
        if new is not NoneConst and old is not NoneConst and new is not old:
            return None
        merged.append(old if new is NoneConst else new)
    return specify_shape(x, merged)


# -------------------------------------------------------------- scalars and 0-d tensors


@rule(
    "tensor(scalar(x)) -> x",
    "TensorFromScalar(ScalarFromTensor(x))",
    law="exact",
    tags=("local_tensor_scalar_tensor", "cleanup"),
    tested_on=("TensorFromScalar()(ScalarFromTensor()(s))",),
)
def tensor_of_scalar(x: TensorVariable) -> Replacement:
    return x


@rule(
    "scalar(tensor(x)) -> x",
    "ScalarFromTensor(TensorFromScalar(x))",
    law="exact",
    tags=("local_scalar_tensor_scalar", "cleanup"),
    tested_on=("tensor_from_scalar(ScalarFromTensor()(TensorFromScalar()(c)))",),
)
def scalar_of_tensor(x: TensorVariable) -> Replacement:
    return x


@rule(
    "identity(x) -> x",
    "identity(x)",
    law="exact",
    tags=("remove_tensor_copy", "cleanup"),
    tested_on=("identity(x)",),
)
def useless_identity(x: TensorVariable) -> Replacement:
    return x


@rule(
    "add(x) -> x, mul(x) -> x, conj(real x) -> x",
    "add | mul | conj(x)",
    law="exact",
    tags=("local_useless_elemwise", "local_useless_conj", "cleanup"),
    tested_on=("add(x)", "mul(i)", "conj(x)"),
)
def useless_single_operand(node: Apply, x: TensorVariable) -> Replacement:
    is_kept = node.op.scalar_op.name == "conj" and dtypes.is_complex(x.type.dtype)
    return None if is_kept or x.type.dtype != node.outputs[0].type.dtype else x
