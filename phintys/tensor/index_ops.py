"""The indexing ops, which read, set and increment parts of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from phintys.dims import ONE, Dim
from phintys.errors import OutOfRangeError
from phintys.graph.builder import Builder, V, Value
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes, static_shapes
from phintys.graph.variable import Apply, Computed, Constant, Variable
from phintys.scalar import dtypes
from phintys.scalar.conversion import converted
from phintys.tensor.aliases import Arrays, Length, TensorLike
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.counted import lower_true_positions
from phintys.tensor.creation import broadcast_batches
from phintys.tensor.elemwise import dimshuffle, functions, sum_to, zeros_of
from phintys.tensor.index_layout import BatchedIndex, Layout
from phintys.tensor.index_list import (
    FULL,
    IndexOp,
    index_scalar,
    index_tensor,
    literal,
    positions,
    slice_dims,
    slice_length,
)
from phintys.tensor.index_list import Entry as IndexEntry
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.reshape import reshape
from phintys.tensor.shape import shape_tuple
from phintys.tensor.static import (
    Entry,
    ValueOrigin,
    constant_origin,
    entry_origin,
    numbers_or_variables,
    vector_entries,
)
from phintys.tensor.type import typed_node
from phintys.tensor.variable import TensorConstant, Tensors, TensorVariable

# ================================================================================ Subtensor


class Subtensor(IndexOp):
    """``x[index]`` with integers and slices (basic indexing).  Inputs: x, then integer scalars.

    An integer out of range raises IndexError; slices are clipped.
    """

    # ----- class and static shape
    __props__ = ("idx_list",)
    in_python = "a slice whose step is no constant"
    is_linear = True
    __str__ = IndexOp.__str__
    view_map = {0: [0]}

    def make_node(self, x: TensorLike, *indices: Length) -> Apply:
        x = as_tensor_variable(x)
        return typed_node(self, [x, *basic_indices(self, x, indices)], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape, *indices: Shape) -> list[Shape]:
        return [basic_part(self, s, x, 1)]

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        x, *indices = inputs
        output_storage[0][0] = np.asarray(x[self.key(indices)])

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return connections(node, 1)

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        return pull_back_read(IncSubtensor(self.idx_list), inputs, cotangents)

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return vectorize_read(self, node, batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        x, *indices = inputs
        region = lower_region(self, b, x, indices)
        if region is None:
            return NotImplemented
        for axis in reversed(range(len(self.idx_list))):
            part = region[axis]
            x = b.slice(x, axis, *part) if isinstance(part, tuple) else b.take(x, axis, part)
        return x


def basic_indices(op: IndexOp, x: TensorVariable, indices: Sequence[Length]) -> list[Variable]:
    """Indices as scalars; IndexError if there are too many, or one is known to be out of range."""
    scalars = [index_scalar(i) for i in indices]
    if len(op.idx_list) > x.ndim:
        raise IndexError(
            f"Too many indices: {len(op.idx_list)} for {x}, which has {x.ndim} dimensions."
        )
    for axis, e in enumerate(op.idx_list):
        if not isinstance(e, slice):
            check_range(literal(scalars[e]), x.type.shape[axis], axis, x)
    return scalars


def basic_part(op: IndexOp, s: ShapeContext, x: Shape, first: int) -> Shape:
    """The shape of the part that a basic index selects; ``first`` is the number of its input 0."""
    kept = [(op.entry(axis), n) for axis, n in enumerate(x)]
    return tuple([slice_of(s, e, n, first) for e, n in kept if isinstance(e, slice)])


def slice_of(s: ShapeContext, e: slice, n: Dim, first: int) -> Dim:
    """The length of a slice of ``n`` elements, whose parts are inputs from ``first``."""
    return n if e == FULL else slice_length(e, {p: s.value(first + p) for p in positions(e)}, n)


def require_fit(s: ShapeContext, part: Shape, y: Shape) -> None:
    """Require that ``y`` broadcasts to the indexed part, along lengths known to be 1."""
    for n, m in zip(part[len(part) - len(y) :], y):
        if m.value != 1:
            s.equal(m, n, "The value does not fit the indexed part", broadcasts=True)


def check_range(i: int | None, n: int | None, axis: int, x: TensorVariable) -> None:
    """Raise OutOfRangeError if a constant index is out of range of a known length."""
    if i is not None and n is not None and not -n <= i < n:
        raise OutOfRangeError(
            f"Index {i} is out of range for axis {axis} of {x}, which has length {n}."
        )


def lower_region(
    op: IndexOp, b: Builder[V], x: V, indices: Sequence[V]
) -> list[Dim | tuple[Dim, Dim, Dim]] | None:
    """For each axis a position (Dim) or (start, step, length); None if a step is not constant."""
    dims = [b.item(i) for i in indices]
    region: list[Dim | tuple[Dim, Dim, Dim]] = []
    for axis in range(x.ndim):
        e = op.entry(axis)
        part = dims[e] if isinstance(e, int) else lower_slice(e, dims, b.length(x, axis))
        if part is None:
            return None
        region.append(part)
    return region


def lower_slice(
    e: slice, dims: Sequence[Dim] | Mapping[int, Dim], n: Dim
) -> tuple[Dim, Dim, Dim] | None:
    """(start, step, length) as Dims; None if the step is not constant or 0."""
    if e.step is not None and not dims[e.step].value:
        return None
    return slice_dims(e, dims, n)


# ------------------------------------------------ common parts of the two reading ops


def connections(node: Apply, leading: int) -> list[list[bool]]:
    """The connection pattern of an indexing op: indices are not connected to the result."""
    return [[True]] * leading + [[False]] * (len(node.inputs) - leading)


def pull_back_read(increment: Op, inputs: Tensors, cotangents: Tensors) -> list[Variable | None]:
    """Cotangents of a read: that of ``x`` is zeros with the cotangent of the part added."""
    (x, *indices), (g,) = inputs, cotangents
    return [increment(zeros_of(x), g, *indices), *[None] * len(indices)]


def vectorize_read(op: IndexOp, node: Apply, batched: Tensors) -> Apply:
    """A read with batched inputs; batch axes come first in the result."""
    batch = batch_ndim(node.inputs, batched)
    x, *indices = batched
    core_x, *core_indices = node.inputs
    if x is not core_x:
        missing = batch + core_x.type.ndim - x.type.ndim
        x = dimshuffle(x, ["x"] * missing + list(range(x.type.ndim)))
    new = BatchedIndex(op.idx_list, core_x, core_indices, x, indices, batch)
    make = AdvancedSubtensor if new.in_index else type(op)
    read = dimshuffle(make(new.idx_list)(x, *new.indices), new.order)
    assert read.owner is not None
    return read.owner


def batch_ndim(core: Sequence[Variable], batched: Sequence[Variable]) -> int:
    """The number of batch axes."""
    return max(v.type.ndim - c.type.ndim for v, c in zip(batched, core))


@constant_origin.register
def _part_of_constant(op: Subtensor, out: Computed) -> ValueOrigin:
    """`constant_origin` of an entry of a vector, or of a part of a tensor of equal elements."""
    x, *indices = out.owner.inputs
    i = indices[0] if op.idx_list == (0,) else None
    n = x.type.shape[0] if x.type.ndim == 1 else None
    if not isinstance(i, Constant) or n is None or not -n <= i.data < n:
        return x
    return Entry(x, int(i.data) % n)


@vector_entries.register
def _part_of_vector(op: Subtensor, out: Computed) -> Sequence[Any] | np.ndarray | None:
    """The entries of a constant slice of a vector, for instance of a shape."""
    x, key = out.owner.inputs[0], _constant_slice(op, out)
    return None if key is None else numbers_or_variables(x)[key]


@entry_origin.register
def _entry_of_part(op: Subtensor, out: Computed, position: int) -> ValueOrigin:
    x, key = out.owner.inputs[0], _constant_slice(op, out)
    return x if key is None else Entry(x, range(x.type.shape[0])[key][position])


def _constant_slice(op: Subtensor, out: Computed) -> slice | None:
    """The slice of a vector of known length that ``out`` is, if it is known."""
    x, *indices = out.owner.inputs
    key = op.key([literal(i) for i in indices])
    wanted = [p for e in op.idx_list for p in positions(e)]
    if x.type.shape[0] is None or len(key) != 1 or any(literal(indices[p]) is None for p in wanted):
        return None
    return key[0] if isinstance(key[0], slice) else None


# ============================================================================= IncSubtensor


class IncSubtensor(IndexOp):
    """``x`` with ``y`` added to (or set at) ``x[index]``.  Inputs: x, y, then integer scalars.

    ``y`` broadcasts to the region and is converted to the dtype of ``x``.  An op in place accepts
    that ``y`` shares memory with ``x`` if ``destroyhandler_tolerate_aliased`` has the pair (0, 1).
    """

    # ----- class and static shape
    __props__ = ("idx_list", "inplace", "set_instead_of_inc", "destroyhandler_tolerate_aliased")

    def __init__(
        self,
        idx_list: Sequence[IndexEntry],
        inplace: bool = False,
        set_instead_of_inc: bool = False,
        destroyhandler_tolerate_aliased: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.inplace, self.set_instead_of_inc = inplace, set_instead_of_inc
        self.destroyhandler_tolerate_aliased = tuple(destroyhandler_tolerate_aliased or ())
        self.destroy_map = {0: [0]} if inplace else {}
        super().__init__(idx_list)

    def make_node(self, x: TensorLike, y: TensorLike, *indices: Length) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        inputs = [x, y, *basic_indices(self, x, indices)]
        check_value(x, y, x.type.ndim - sum(isinstance(e, int) for e in self.idx_list))
        static_shapes(self, inputs)
        return Apply(self, inputs, [x.type.make_variable()])

    def shape_rule(self, s: ShapeContext, x: Shape, y: Shape, *indices: Shape) -> list[Shape]:
        require_fit(s, basic_part(self, s, x, 2), y)
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        x, y, *indices = inputs
        out = x if self.inplace else x.copy()
        key = self.key(indices)
        if y.shape != out[key].shape:
            check_shapes(node, inputs)
        y = converted(y, out.dtype.name)
        if self.set_instead_of_inc:
            out[key] = y
        else:
            with np.errstate(all="ignore"):
                out[key] += y
        output_storage[0][0] = out

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return connections(node, 2)

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        setter = IncSubtensor(self.idx_list, set_instead_of_inc=True)
        return pull_back_write(self, Subtensor(self.idx_list), setter, inputs, cotangents)

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        op = IncSubtensor(self.idx_list, set_instead_of_inc=self.set_instead_of_inc)
        return [op(*tangents[:2], *inputs[2:])]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return vectorize_write(self, node, batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        x, y, *indices = inputs
        if adds_bools(self, x):
            return NotImplemented
        region = lower_region(self, b, x, indices)
        if region is None:
            return NotImplemented
        region = [
            part if isinstance(part, tuple) else b.position(part, b.length(x, axis), axis)
            for axis, part in enumerate(region)
        ]
        return b.update(x, region, y, "set" if self.set_instead_of_inc else "add")

    def __str__(self) -> str:
        name = "SetSubtensor" if self.set_instead_of_inc else "IncSubtensor"
        return f"{name}{{{self.text()}}}"


def adds_bools(op: IncSubtensor | AdvancedIncSubtensor, x: Value) -> bool:
    """Whether an op adds to a bool array, which NumPy does by "or" and kernels do not support."""
    return x.dtype == "bool" and not op.set_instead_of_inc


def check_value(x: TensorVariable, y: TensorVariable, ndim: int) -> None:
    """Raise TypeError unless ``y`` can be written to a part of ``x`` with ``ndim`` axes."""
    if y.type.ndim > ndim:
        raise TypeError(f"{y} has {y.type.ndim} dimensions, the indexed part only {ndim}.")
    if dtypes.is_complex(y.type.dtype) and not dtypes.is_complex(x.type.dtype):
        raise TypeError(f"Complex values cannot be stored into dtype {x.type.dtype}.")


# ------------------------------------------------ common parts of the two writing ops


def pull_back_write(
    op: IncSubtensor | AdvancedIncSubtensor,
    read: Callable[..., TensorVariable],
    setter: Op,
    inputs: Tensors,
    cotangents: Tensors,
) -> list[Variable | None]:
    """Cotangents of a write: of ``x``, 0 at elements that were set, and of ``y``, in its shape.

    ``read`` returns the cotangent of the written values.
    """
    (_, y, *indices), (g,) = inputs, cotangents
    gx = setter(g, constant(0, dtype=g.type.dtype), *indices) if op.set_instead_of_inc else g
    part = read(g, *indices)
    extra = part.type.ndim - y.type.ndim
    part = sum_over(part, axis=range(extra)) if extra else part
    return [gx, sum_to(part, y), *[None] * len(indices)]


def vectorize_write(
    op: IncSubtensor | AdvancedIncSubtensor, node: Apply, batched: Tensors
) -> Apply:
    """A write with batched inputs; the tensor written to is broadcast to all batch axes."""
    batch = batch_ndim(node.inputs, batched)
    _, y, *indices = batched
    core_x, core_y, *core_indices = node.inputs
    spread = [(v, c) for v, c in zip(batched, node.inputs) if v is not c or v is batched[0]]
    x = broadcast_batches([v for v, _ in spread], [c.type.ndim for _, c in spread])[0]
    new = BatchedIndex(op.idx_list, core_x, core_indices, x, indices, batch)
    make = AdvancedIncSubtensor if new.in_index else type(op)
    of_memory = ("idx_list", "inplace", "destroyhandler_tolerate_aliased")
    flags = {p: getattr(op, p) for p in op.__props__ if p not in of_memory}
    return make(new.idx_list, **flags).make_node(x, new.spread(y, core_y, batch), *new.indices)


# ======================================================================== AdvancedSubtensor


class AdvancedSubtensor(IndexOp):
    """``x[index]`` with integer or boolean tensors among the indices.  Inputs: x, then tensors.

    Integer tensors broadcast against each other; their axes take the place of the indexed ones if
    these are adjacent, and come first otherwise (NumPy's rule).  A boolean tensor selects along as
    many axes as it has.  Indices out of range raise IndexError.
    """

    # ----- class and static shape
    __props__ = ("idx_list",)
    in_python = (
        "a mask beside other index tensors, which may broadcast; a slice whose step is no constant"
    )
    is_linear = True
    __str__ = IndexOp.__str__

    def make_node(self, x: TensorLike, *indices: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        tensors, _ = advanced_indices(self, x, indices)
        return typed_node(self, [x, *tensors], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape, *indices: Shape) -> list[Shape]:
        return [advanced_part(self, s, x, indices)]

    def layout(self, inputs: Sequence[Variable]) -> Layout:
        """The layout of the result axes, for the inputs of a node."""
        return Layout(self.idx_list, [i.type for i in inputs[1:]], inputs[0].type.ndim)

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x, *indices = inputs
        if may_be_accepted(indices):
            check_shapes(node, inputs)
        out = np.asarray(x[self.key([index_value(i) for i in indices])])
        output_storage[0][0] = out.copy() if np.may_share_memory(out, x) else out

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return connections(node, 1)

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        return pull_back_read(AdvancedIncSubtensor(self.idx_list), inputs, cotangents)

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return vectorize_read(self, node, batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        x, *indices = inputs
        layout = self.layout(node.inputs)
        parts = lower_slices(b, x, layout, indices)
        if parts is None or has_other_masks(layout, node.inputs[1:]):
            return NotImplemented
        tensors, axes = lower_tensors(b, x, layout, indices, node.inputs[1:])
        for (e, axis), part in zip(layout.slices, parts):
            x = x if e == FULL else b.slice(x, axis, *part)
        return b.permute(b.gather(x, tensors, axes), layout.order())


def advanced_indices(
    op: IndexOp, x: TensorVariable, indices: Sequence[TensorLike]
) -> tuple[list[TensorVariable], Layout]:
    """Indices as tensors, and their layout; IndexError if one is known to be out of range."""
    tensors = [index_tensor(i) for i in indices]
    layout = Layout(op.idx_list, [i.type for i in tensors], x.type.ndim)
    for p, axis in zip(layout.positions, layout.axes):
        if tensors[p].type.dtype != "bool":
            check_range(literal(tensors[p]), x.type.shape[axis], axis, x)
    return tensors, layout


def advanced_part(op: IndexOp, s: ShapeContext, x: Shape, indices: Sequence[Shape]) -> Shape:
    """The shape of the part that an advanced index selects; the indices are the last inputs."""
    first = len(s.inputs) - len(indices)
    layout = Layout(op.idx_list, [i.type for i in s.inputs[first:]], len(x))
    shapes = []
    for p, axis in zip(layout.positions, layout.axes):
        shape = indices[p]
        if s.inputs[first + p].type.dtype == "bool":
            for k, n in enumerate(shape, start=axis):
                s.equal(x[k], n, f"The mask does not fit axis {k}", IndexError)
            shape = (_count_of_mask(s, first + p),)
        shapes.append((ONE,) * (layout.index_ndim - len(shape)) + shape)
    message = "Lengths of index tensors along axis {} do not agree"
    index = s.broadcast(shapes, message, error=IndexError)
    return layout.arrange(index, [slice_of(s, e, x[axis], first) for e, axis in layout.slices])


def _count_of_mask(s: ShapeContext, i: int) -> Dim:
    """The number of true elements of a mask, the input ``i``."""
    mask = s.inputs[i]
    if isinstance(mask, Constant):
        s.cacheable = False
        return Dim.const(int(np.count_nonzero(mask.data)))
    return s.unknown(lambda *given: int(np.count_nonzero(given[i])))


def may_be_accepted(indices: Sequence[np.ndarray]) -> bool:
    """Whether NumPy may accept indices whose lengths are wrong.

    It accepts any mask without elements, and broadcasts lengths of 1 that are not known to be 1.
    """
    return sum(i.ndim > 0 for i in indices) > 1 or any(i.dtype == bool for i in indices)


def index_value(i: np.ndarray) -> np.ndarray | int:
    """An index for NumPy: 0-d integer arrays become ints, which slices require."""
    return int(i) if i.ndim == 0 and i.dtype != bool else i


def in_c_order(i: np.ndarray) -> np.ndarray:
    """A C-contiguous index, so that NumPy keeps the last value in C order at repeated indices."""
    return i if i.flags.c_contiguous else i.copy()


def lower_slices(
    b: Builder[V], x: V, layout: Layout, indices: Sequence[V]
) -> list[tuple[Dim, Dim, Dim]] | None:
    """(start, step, length) of every slice of an advanced index; None if a step is not constant."""
    used = {p for e, _ in layout.slices for p in positions(e)}
    dims = {p: b.item(i) for p, i in enumerate(indices) if p in used}
    parts = [lower_slice(e, dims, b.length(x, axis)) for e, axis in layout.slices]
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else None


def has_other_masks(layout: Layout, given: Sequence[Variable]) -> bool:
    """Whether there is a mask that does not select along axes alone.

    A single bool selects along no axis.  If a mask has one true element, its position broadcasts
    against other index tensors.
    """
    found: list[Any] = [given[p] for p in layout.positions]
    masks = [i for i in found if i.type.dtype == "bool"]
    if all(isinstance(i, Constant) for i in masks) and all(i.type.ndim for i in masks):
        return False
    return any(i.type.ndim == 0 for i in masks) or sum(i.type.ndim > 0 for i in found) > 1


def lower_tensors(
    b: Builder[V], x: V, layout: Layout, indices: Sequence[V], given: Sequence[Variable]
) -> tuple[list[V], list[int]]:
    """Integer positions, and the axes of ``x`` that they index; masks become positions.

    ``given`` are the variables of the indices: of a constant mask the positions are constants.
    """
    tensors: list[V] = []
    axes: list[int] = []
    for p, axis in zip(layout.positions, layout.axes):
        found = [indices[p]]
        if indices[p].dtype == "bool":
            for k, n in enumerate(b.shape(indices[p]), start=axis):
                message = f"The mask does not fit axis {k}"
                b.check(b.length(x, k), "==", n, message, is_position=True)
            mask = given[p]
            found = (
                [b.const(places) for places in np.nonzero(mask.data)]
                if isinstance(mask, Constant)
                else lower_true_positions(b, indices[p])
            )
        tensors += found
        axes += range(axis, axis + len(found))
    return tensors, axes


def positions_of_slice(b: Builder[V], first: Dim, step: Dim, length: Dim) -> V:
    """The positions that a slice selects, an int64 vector."""
    return b.map(
        lambda n, i, step, first: n.add(n.mul(i, step), first),
        b.iota(length),
        b.scalar(step),
        b.scalar(first),
    )


def may_repeat(indices: Tensors) -> bool:
    """Whether an element may be indexed twice; constants are checked, and masks never repeat."""
    tensors = [i for i in indices if i.type.ndim]
    if all(i.type.dtype == "bool" for i in tensors):
        return False
    known = [i.data for i in tensors if isinstance(i, TensorConstant) and i.type.dtype != "bool"]
    if len(known) != len(tensors):
        return True
    if any(i.size and i.min() < 0 <= i.max() for i in known):
        return True
    rows = np.stack(np.broadcast_arrays(*known), axis=-1)
    rows = rows.reshape(-1, len(known))
    return len(np.unique(rows, axis=0)) < len(rows)


@entry_origin.register
def _chosen_entry(op: AdvancedSubtensor, out: Computed, position: int) -> Entry | None:
    """`entry_origin` of the entries of a vector at constant positions."""
    x, i, *_ = out.owner.inputs
    if op.idx_list != (0,) or not isinstance(i, TensorConstant) or i.type.dtype == "bool":
        return None
    n, chosen = x.type.shape[0], i.data
    if x.type.ndim != 1 or chosen.ndim != 1 or n is None or not -n <= chosen[position] < n:
        return None
    return Entry(x, int(chosen[position]) % n)


# ===================================================================== AdvancedIncSubtensor


class AdvancedIncSubtensor(IndexOp):
    """``x`` with ``y`` added to (or set at) ``x[index]``, with tensors among the indices.

    Adding accumulates at repeated indices, unless ``ignore_duplicates``; setting keeps the last
    value.  Inputs: x, y, then tensors.
    """

    # ----- class and static shape
    __props__ = ("idx_list", "inplace", "set_instead_of_inc", "ignore_duplicates")

    def __init__(
        self,
        idx_list: Sequence[IndexEntry],
        inplace: bool = False,
        set_instead_of_inc: bool = False,
        ignore_duplicates: bool = False,
    ) -> None:
        self.inplace, self.set_instead_of_inc = inplace, set_instead_of_inc
        self.ignore_duplicates = ignore_duplicates
        self.destroy_map = {0: [0]} if inplace else {}
        super().__init__(idx_list)

    def make_node(self, x: TensorLike, y: TensorLike, *indices: TensorLike) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        tensors, layout = advanced_indices(self, x, indices)
        check_value(x, y, layout.ndim)
        static_shapes(self, [x, y, *tensors])
        return Apply(self, [x, y, *tensors], [x.type.make_variable()])

    def shape_rule(self, s: ShapeContext, x: Shape, y: Shape, *indices: Shape) -> list[Shape]:
        require_fit(s, advanced_part(self, s, x, indices), y)
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x, y, *indices = inputs
        if may_be_accepted(indices):
            check_shapes(node, inputs)
        out = x if self.inplace else x.copy()
        key = self.key([index_value(in_c_order(i)) for i in indices])
        region = out[key].shape
        if y.shape != region:
            check_shapes(node, inputs)
        # np.add.at does not broadcast y correctly
        y = np.broadcast_to(converted(y, out.dtype.name), region).copy()
        if self.set_instead_of_inc:
            out[key] = y
        else:
            with np.errstate(all="ignore"):
                if self.ignore_duplicates:
                    out[key] += y
                else:
                    np.add.at(out, key, y)
        output_storage[0][0] = out

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return connections(node, 2)

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        setter = AdvancedIncSubtensor(self.idx_list, set_instead_of_inc=True)
        keeps_last = self.set_instead_of_inc or self.ignore_duplicates
        read = self._read_last if keeps_last else AdvancedSubtensor(self.idx_list)
        return pull_back_write(self, read, setter, inputs, cotangents)

    def _read_last(self, g: TensorVariable, *indices: TensorVariable) -> TensorVariable:
        """The part of ``g``, with zeros for values replaced by a later one at the same index.

        The values are numbered and the numbers written; a value was kept if its number is read.
        """
        read = AdvancedSubtensor(self.idx_list)
        part = read(g, *indices)
        if not may_repeat(indices):
            return part
        lengths = shape_tuple(part)
        size = reduce(functions.mul, lengths, constant(1, dtype="int64"))
        numbers = reshape(arange(size), lengths, ndim=part.type.ndim)
        zeros = functions.second(g, constant(0, dtype="int64", ndim=g.type.ndim))
        op = AdvancedIncSubtensor(self.idx_list, set_instead_of_inc=True)
        kept = functions.eq(read(op(zeros, numbers, *indices), *indices), numbers)
        return functions.switch(kept, part, constant(0, dtype=g.type.dtype))

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        flags = self.set_instead_of_inc, self.ignore_duplicates
        op = AdvancedIncSubtensor(self.idx_list, False, *flags)
        return [op(*tangents[:2], *inputs[2:])]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return vectorize_write(self, node, batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        x, y, *indices = inputs
        if adds_bools(self, x):
            return NotImplemented
        layout = Layout(self.idx_list, [t.type for t in node.inputs[2:]], x.ndim)
        for _ in range(layout.ndim - y.ndim):
            y = b.expand(y, 0)
        y = b.cast(y, x.dtype)
        parts = lower_slices(b, x, layout, indices)
        if parts is None:
            return NotImplemented
        if self._is_select(layout, y, indices):
            return self._lower_select(node, b, layout, y, inputs)
        if has_other_masks(layout, node.inputs[2:]):
            return NotImplemented
        if self.ignore_duplicates and not all(indices[p].dtype == "bool" for p in layout.positions):
            return NotImplemented
        cut = [k for k, (e, _) in enumerate(layout.slices) if e != FULL]
        whole = [k for k in range(len(layout.slices)) if k not in cut]
        # slices become index tensors too, whose axes follow those of the others
        order, rank = layout.order(), layout.index_ndim
        wanted = [*range(rank), *(rank + k for k in cut + whole)]
        y = b.permute(y, [order.index(k) for k in wanted])
        tensors, tensor_axes = lower_tensors(b, x, layout, indices, node.inputs[2:])
        for _ in cut:
            tensors = [b.expand(i, i.ndim) for i in tensors]
        for k, axis in enumerate(cut):
            i = positions_of_slice(b, *parts[axis])
            for _ in cut[k + 1 :]:
                i = b.expand(i, i.ndim)
            tensors.append(i)
        axes = [*tensor_axes, *(layout.slices[k][1] for k in cut)]
        mode = "set" if self.set_instead_of_inc else "add"
        return b.scatter(x, tensors, axes, y, mode, slices=len(cut))

    def _is_select(self, layout: Layout, y: Value, indices: Sequence[Value]) -> bool:
        """Whether the only index is a mask, along whose axis one value is written."""
        if not layout.has_mask or len(indices) != 1:
            return False
        return y.shape[layout.before].value == 1

    def _lower_select(
        self, node: Apply, b: Builder[V], layout: Layout, y: V, inputs: Sequence[V]
    ) -> V:
        """A write with a single mask and one value along its axis, as an elementwise select."""
        x, _, mask = inputs
        axis, last = layout.before, layout.before + mask.ndim
        b.result_shapes(node, *inputs)
        y = b.squeeze(y, axis)
        for _ in range(axis, last):
            y = b.expand(y, axis)
        for _ in range(last, x.ndim):
            mask = b.expand(mask, mask.ndim)
        y = b.broadcast_to(y, b.shape(x))
        if self.set_instead_of_inc:
            return b.map(lambda n, m, x, y: n.select(m, y, x), mask, x, y)
        return b.map(lambda n, m, x, y: n.select(m, n.add(x, y), x), mask, x, y)

    def __str__(self) -> str:
        name = "AdvancedSetSubtensor" if self.set_instead_of_inc else "AdvancedIncSubtensor"
        return f"{name}{{{self.text()}}}"
