"""Symbolic shapes and lengths, asserted shapes, and conversion between scalars and tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.dims import Dim
from phintys.errors import RaggedError, ShapeError, SpecifiedShapeError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape as Lengths
from phintys.graph.shapes import ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.scalar import type as scalar_types
from phintys.scalar.arith import Cast
from phintys.scalar.type import ScalarType, scalar_type
from phintys.tensor import convert
from phintys.tensor import type as tensor_types
from phintys.tensor.aliases import Arrays, Axes, Length, StaticShape, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import DimShuffle, Elemwise, axis_of, cast, functions
from phintys.tensor.static import (
    Entry,
    as_length,
    constant_origin,
    entry_origin,
    known_length,
    shape_entries,
    vector_entries,
)
from phintys.tensor.type import TensorType, typed_node
from phintys.tensor.type_other import NoneConst, NoneTypeT
from phintys.tensor.variable import TensorConstant, Tensors, TensorVariable

__all__ = [
    "make_vector",
    "scalar_from_tensor",
    "shape",
    "shape_i",
    "shape_tuple",
    "specify_broadcastable",
    "specify_shape",
    "tensor_from_scalar",
    "unbroadcast",
]

# ============================================================== scalars and 0-d tensors


class TensorFromScalar(Op):
    """Convert a scalar to a 0-d tensor."""

    # ----- class and static shape
    __props__ = ()
    is_linear = True
    handles_missing = False

    def make_node(self, s: Variable) -> Apply:
        if not isinstance(s, Variable) or not isinstance(s.type, ScalarType):
            raise TypeError(f"TensorFromScalar takes a variable of a scalar type, not {s}.")
        return typed_node(self, [s], s.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Lengths) -> list[Lengths]:
        return [()]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = np.array(inputs[0])

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        return [scalar_from_tensor(cotangents[0])]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        if x.type.ndim == 0:
            return self.make_node(x)
        # a batch of scalars is a tensor
        return functions.identity.make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return inputs[0]


class ScalarFromTensor(Op):
    """Convert a 0-d tensor to a scalar."""

    # ----- class and static shape
    __props__ = ()
    is_linear = True
    handles_missing = False

    def make_node(self, t: TensorLike) -> Apply:
        t = as_tensor_variable(t)
        if t.type.ndim != 0:
            raise TypeError(f"Only a 0-d tensor is a scalar; {t} has type {t.type}.")
        return Apply(self, [t], [scalar_type(t.type.dtype).make_variable()])

    shape_rule = TensorFromScalar.shape_rule

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = inputs[0][()]

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        return [tensor_from_scalar(cotangents[0])]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        if x.type.ndim == 0:
            return self.make_node(x)
        # a batch of scalars is a tensor
        return functions.identity.make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return inputs[0]


tensor_from_scalar = TensorFromScalar()
scalar_from_tensor = ScalarFromTensor()
convert.scalar_conversions.extend([tensor_from_scalar, scalar_from_tensor])
scalar_types.from_tensor[0] = scalar_from_tensor
constant_origin.register(TensorFromScalar, lambda op, out: out.owner.inputs[0])
constant_origin.register(ScalarFromTensor, lambda op, out: out.owner.inputs[0])

# ==================================================================== Shape and Shape_i


class Shape(Op):
    """The shape of a tensor, an int64 vector."""

    # ----- class and static shape
    __props__ = ()
    not_differentiable = "its result is the lengths of the input"

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x) if not isinstance(x, Variable) else x
        ndim = getattr(x.type, "ndim", None)
        return Apply(self, [x], [TensorType("int64", (ndim,)).make_variable()])

    def shape_rule(self, s: ShapeContext, x: Lengths) -> list[Lengths]:
        return [(Dim.const(len(x)),)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = np.array(np.shape(inputs[0]), dtype="int64")

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]

    # ----- batching: the items of a batch share their shape, so that the result is one vector
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        core = range(x.type.ndim - node.inputs[0].type.ndim, x.type.ndim)
        return MakeVector("int64").make_node(*(length(x, i) for i in core))

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return b.vector(b.shape(inputs[0]))


_LENGTH = TensorType("int64", ())  # of many variables


class Shape_i(Op):
    """The length of one axis, a 0-d int64 tensor."""

    # ----- class and static shape
    __props__ = ("i",)
    not_differentiable = "its result is a length of the input"

    def __init__(self, i: int) -> None:
        self.i = int(i)

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x) if not isinstance(x, Variable) else x
        if not 0 <= self.i < x.type.ndim:
            raise TypeError(f"{x} has {x.type.ndim} dimensions: there is no axis {self.i}.")
        return Apply(self, [x], [_LENGTH.make_variable()])

    shape_rule = TensorFromScalar.shape_rule

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = np.array(np.shape(inputs[0])[self.i], dtype="int64")

    # ----- derivative
    connection_pattern = Shape.connection_pattern
    pullback = Shape.pullback
    pushforward = Shape.pushforward

    # ----- batching: the items of a batch share their shape, so that the result is one number
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        return Shape_i(self.i + x.type.ndim - node.inputs[0].type.ndim).make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return b.scalar(b.length(inputs[0], self.i))

    def __str__(self) -> str:
        return f"Shape_i{{{self.i}}}"


_shape = Shape()


@vector_entries.register
def _shape_vector(op: Shape, out: Variable) -> list[TensorVariable]:
    _, x = out.owner_op_and_inputs
    return [length(x, i) for i in range(x.type.ndim)]


@vector_entries.register
def _expanded_scalar(op: DimShuffle, out: Variable) -> list[Variable] | None:
    _, x = out.owner_op_and_inputs
    return [x] if x.type.ndim == 0 else None


@vector_entries.register
def _converted_constant(op: Elemwise, out: Variable) -> np.ndarray | None:
    """The entries of a constant vector that is cast."""
    _, x, *_ = out.owner_op_and_inputs
    if not isinstance(op.scalar_op, Cast) or not isinstance(x, TensorConstant):
        return None
    return x.data.astype(out.type.dtype)


@constant_origin.register
def _shape_entry(op: Shape_i, out: Variable) -> np.ndarray | None:
    _, x = out.owner_op_and_inputs
    known = x.type.shape[op.i]
    return None if known is None else np.array(known)


@constant_origin.register
def _shape_single(op: Shape, out: Variable) -> np.ndarray | None:
    _, x = out.owner_op_and_inputs
    known = set(x.type.shape)
    return np.array(known.pop()) if len(known) == 1 and None not in known else None


def shape(x: TensorLike) -> TensorVariable:
    """The shape of ``x`` as an int64 vector.

    It is symbolic even where the static shape, ``x.type.shape``, is known.

    >>> import phintys.tensor as pt
    >>> pt.shape(pt.zeros((2, 3))).eval()
    array([2, 3])
    """
    return _shape(x if isinstance(x, Variable) else as_tensor_variable(x))


def length(x: Variable, axis: int) -> TensorVariable:
    """The length of an axis as a 0-d int64 variable, a constant where it is known."""
    known = x.type.shape[axis]
    if known is not None:
        return convert.constant(known, dtype="int64")
    return Shape_i(axis)(x)


def shape_i(var: TensorLike, i: int, fgraph: Any = None) -> TensorVariable:
    """The length of axis ``i``; from the ``shape_feature`` of ``fgraph`` if it has one."""
    feature = getattr(fgraph, "shape_feature", None)
    if feature is not None:
        return feature.get_shape(var, i)
    return length(as_tensor_variable(var), i)


def shape_tuple(x: TensorLike) -> tuple[TensorVariable, ...]:
    """The shape as a tuple of 0-d int64 variables, constants where lengths are known.

    >>> import phintys.tensor as pt
    >>> len(pt.shape_tuple(pt.dmatrix("x")))
    2
    """
    x = as_tensor_variable(x)
    return tuple(length(x, i) for i in range(x.type.ndim))


def product(lengths: Tensors) -> TensorVariable:
    """The product of 0-d int64 variables; the constant 1 for none."""
    result = convert.constant(1, dtype="int64")
    for n in lengths:
        result = n if result.owner is None and known_length(result) == 1 else result * n
    return result


# ========================================================================== MakeVector


class MakeVector(Op):
    """Make a vector of 0-d tensors.

    Parameters
    ----------
    dtype
        of the result, to which the inputs are cast; their dtypes must fit
    """

    # ----- class and static shape
    __props__ = ("dtype",)
    is_linear = True
    handles_missing = False

    def __init__(self, dtype: str = "int64") -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def make_node(self, *inputs: TensorLike) -> Apply:
        items = [as_tensor_variable(x) for x in inputs]
        for x in items:
            if x.type.ndim != 0:
                raise TypeError(f"MakeVector takes 0-d tensors; {x} has type {x.type}.")
            if dtypes.upcast(x.type.dtype, self.dtype) != self.dtype:
                raise TypeError(f"{x} of dtype {x.type.dtype} does not fit into {self.dtype}.")
        items = [cast(x, self.dtype) for x in items]
        return typed_node(self, items, self.dtype)

    def shape_rule(self, s: ShapeContext, *items: Lengths) -> list[Lengths]:
        return [(Dim.const(len(items)),)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = np.array(inputs, dtype=self.dtype).reshape(len(inputs))

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        (g,) = cotangents
        return [g[i] for i in range(len(inputs))]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return stacks[0](batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        if not inputs:
            return b.const(np.empty(0, dtype=self.dtype))
        return b.join([b.expand(x, 0) for x in inputs], 0)

    def __str__(self) -> str:
        return f"MakeVector{{dtype={self.dtype!r}}}"


#: ``stacks[0](scalars)``: the node that joins batches of scalars; filled by `phintys.tensor.join`.
stacks: list[Callable[[Tensors], Apply]] = []


def make_vector(*items: TensorLike) -> TensorVariable:
    """A vector of 0-d tensors, in their common dtype."""
    found = [as_tensor_variable(x) for x in items]
    return MakeVector(dtypes.upcast(*(x.type.dtype for x in found)) if found else "int64")(*found)


vector_entries.register(MakeVector, lambda op, out: out.owner.inputs)


def lengths_vector(lengths: Sequence[Length]) -> TensorVariable:
    """Lengths (numbers or 0-d variables) as an int64 vector: a constant where all are known."""
    known = [known_length(n) if isinstance(n, int | np.integer) or n.owner is None else None
             for n in lengths]  # fmt: skip
    if None not in known:
        return convert.constant(np.array(known, dtype="int64"))
    return MakeVector("int64")(*map(as_length, lengths))


# ======================================================================== SpecifyShape


class SpecifyShape(Op):
    """Assert a static shape.  Inputs: the tensor, then for each axis a length or `NoneConst`.

    If its result is used, lengths are checked at run time.
    """

    # ----- class and static shape
    __props__ = ()
    _output_type_depends_on_input_value = True
    is_linear = True
    handles_missing = False
    view_map = {0: [0]}

    def make_node(self, x: TensorLike, *shape: Length | None) -> Apply:
        x = as_tensor_variable(x)
        lengths = [_specified(n) for n in shape]
        if len(lengths) != x.type.ndim:
            raise ValueError(
                f"{x} has {x.type.ndim} dimensions: it never has a shape of {len(lengths)} lengths."
            )
        return typed_node(self, [x, *lengths], x.type)

    def shape_rule(self, s: ShapeContext, x: Lengths, *lengths: Lengths) -> list[Lengths]:
        found = list(x)
        for axis, n in enumerate(s.inputs[1:]):
            if not isinstance(n.type, NoneTypeT):
                message = f"Wrong length along axis {axis}"
                found[axis] = s.equal(x[axis], s.value(1 + axis), message, SpecifiedShapeError)
        return [tuple(found)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        output_storage[0][0] = inputs[0]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], *([False] for _ in node.inputs[1:])]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[TensorVariable | None]:
        lengths = inputs[1:]
        return [specify_shape(cotangents[0], lengths), *[None] * len(lengths)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        x, *lengths = batched_inputs
        if any(getattr(n.type, "ndim", 0) for n in lengths):
            raise RaggedError("The lengths of SpecifyShape cannot differ within a batch.")
        batch = x.type.ndim - node.inputs[0].type.ndim
        return self.make_node(x, *[NoneConst] * batch, *lengths)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (shape,) = b.result_shapes(node, *inputs)
        return b.broadcast_to(inputs[0], shape)


def _specified(n: Length | None) -> Variable:
    if n is None or (isinstance(n, Variable) and isinstance(n.type, NoneTypeT)):
        return NoneConst
    (n,) = shape_entries(n)
    known = known_length(n)
    if known is not None and known < 0:
        raise ShapeError(f"The length {known} cannot be specified.")
    return n


_specify_shape = SpecifyShape()


def specify_shape(x: TensorLike, shape: Length | Sequence[Length | None]) -> TensorVariable:
    """``x`` with an asserted shape, checked at run time if the result is used.

    Parameters
    ----------
    x : tensor
    shape : for each axis a length (number or variable), or None for no assertion;
        or an integer vector.  ShapeError if it contradicts the static shape.

    >>> import phintys.tensor as pt
    >>> pt.specify_shape(pt.dmatrix("x"), (2, None)).type
    TensorType(float64, shape=(2, None))
    """
    x = as_tensor_variable(x)
    if isinstance(shape, Variable):
        lengths = shape_entries(shape)
    else:
        lengths = list(shape) if isinstance(shape, Sequence | np.ndarray) else [shape]
    lengths = [_specified(n) for n in lengths]
    if len(lengths) == x.type.ndim and all(
        n is NoneConst or (known is not None and known_length(n) == known)
        for n, known in zip(lengths, x.type.shape)
    ):
        return x
    return _specify_shape(x, *lengths)


def specify_broadcastable(x: TensorLike, *axes: int) -> TensorVariable:
    """``x`` with length 1 asserted along ``axes``, so that they broadcast.

    >>> import phintys.tensor as pt
    >>> pt.specify_broadcastable(pt.dmatrix("x"), 0).type.broadcastable
    (True, False)
    """
    x = as_tensor_variable(x)
    chosen = normalize_axis_tuple(axes, x.type.ndim)
    return specify_shape(x, [1 if i in chosen else None for i in range(x.type.ndim)])


class Unbroadcast(Op):
    """A tensor in whose type the lengths along ``axes`` are unknown, so that they do not broadcast.

    Parameters
    ----------
    axes
        the axes, non-negative and ascending
    """

    # ----- class and static shape
    __props__ = ("axes",)
    is_linear = True
    handles_missing = False
    view_map = {0: [0]}

    def __init__(self, *axes: int) -> None:
        self.axes = tuple(sorted(map(int, axes)))

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        chosen = normalize_axis_tuple(self.axes, x.type.ndim)
        shape = tuple([None if i in chosen else n for i, n in enumerate(x.type.shape)])
        return Apply(self, [x], [TensorType(x.type.dtype, shape)()])

    def shape_rule(self, s: ShapeContext, x: Lengths) -> list[Lengths]:
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = inputs[0]

    # ----- derivative
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[TensorVariable]:
        return [specify_shape(cotangents[0], inputs[0].type.shape)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        batch = x.type.ndim - node.inputs[0].type.ndim
        return Unbroadcast(*[axis + batch for axis in self.axes]).make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return inputs[0]


def unbroadcast(x: TensorLike, *axes: int) -> TensorVariable:
    """``x`` with unknown static lengths along ``axes``: those of length 1 do not broadcast.

    >>> import phintys.tensor as pt
    >>> pt.unbroadcast(pt.row("x"), 0).type.broadcastable
    (False, False)
    """
    x = as_tensor_variable(x)
    chosen = [i for i in normalize_axis_tuple(axes, x.type.ndim) if x.type.shape[i] is not None]
    return Unbroadcast(*chosen)(x) if chosen else x


def _specify_later(x: Variable, shape: StaticShape) -> TensorVariable:
    """``x`` with a static shape that is compared when it is computed, whatever its type says."""
    x = as_tensor_variable(x)
    return specify_shape(unbroadcast(x, *range(x.type.ndim)), shape)


tensor_types.narrow.append(specify_shape)
tensor_types.narrow_later.append(_specify_later)
constant_origin.register(SpecifyShape, lambda op, out: out.owner.inputs[0])
entry_origin.register(SpecifyShape, lambda op, out, i: Entry(out.owner.inputs[0], i))


def normalize_axis_tuple(axes: Axes, ndim: int) -> tuple[int, ...]:
    """Axes in the given order, as non-negative ints; ValueError if out of range or repeated."""
    if isinstance(axes, (int, np.integer)):
        return (axis_of(axes, ndim),)
    result = tuple([axis_of(a, ndim) for a in axes])
    if len(set(result)) != len(result):
        raise ValueError(f"An axis is listed twice in {axes}.")
    return result
