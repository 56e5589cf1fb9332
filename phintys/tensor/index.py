"""Indexing: reading and writing parts of tensors.

``idx_list`` of every op describes the index in the form of PyTensor 3: one entry per indexed axis, an int (the
position of the index among the index inputs) or a slice whose parts are such positions or
None.  Index inputs of `Subtensor` and `IncSubtensor` are integer scalars, those of the advanced ops are tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.dims import slice_range
from phintys.errors import MethodNotDefined, ShapeError
from phintys.graph.op import Op
from phintys.graph.type import DisconnectedType, disconnected_type
from phintys.graph.variable import Apply, Constant, Variable
from phintys.scalar import dtypes
from phintys.scalar.type import ScalarType, ScalarVariable, as_scalar
from phintys.scalar.type import constant as scalar_constant
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import (
    broadcast_static,
    cast,
    dimshuffle,
    functions,
    sum_to,
    zeros_of,
)
from phintys.tensor.static import constant_origin, vector_entries
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable

FULL = slice(None, None, None)
Entry = int | slice


class IndexOp(Op):
    """What the four ops share: an ``idx_list`` and how it is read."""

    __props__ = ("idx_list",)
    idx_list: tuple[Entry, ...]

    def _set_idx_list(self, idx_list: Sequence[Entry]) -> None:
        self.idx_list = tuple(idx_list)
        self.hashable = tuple(
            ("slice", e.start, e.stop, e.step) if isinstance(e, slice) else e for e in self.idx_list
        )
        self.n_indices = 1 + max(
            [p for e in self.idx_list for p in _positions(e)], default=-1
        )

    def key(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The Python index, with ``values`` in place of positions."""
        return tuple(
            values[e] if isinstance(e, int) else slice(*(_at(values, p) for p in _parts(e)))
            for e in self.idx_list
        )

    def index_connections(self, leading: int) -> list[list[bool]]:
        return [[True]] * leading + [[False]] * self.n_indices

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def _key(self) -> tuple[Any, ...]:
        rest = tuple(getattr(self, p) for p in self.__props__ if p != "idx_list")
        return (self.hashable, *rest)

    def _text(self) -> str:
        return ", ".join(
            ":".join("" if p is None else str(p) for p in _parts(e)) if isinstance(e, slice) else str(e)
            for e in self.idx_list
        )

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self._text()}}}"


def _parts(e: slice) -> tuple[Any, Any, Any]:
    return e.start, e.stop, e.step


def _positions(e: Entry) -> list[int]:
    return [e] if isinstance(e, int) else [p for p in _parts(e) if p is not None]


def _at(values: Sequence[Any], p: int | None) -> Any:
    return None if p is None else values[p]


def literal(v: Any) -> int | None:
    """The integer of a constant index, else None."""
    return int(v.data) if isinstance(v, Constant) else None


def static_slice(e: slice, indices: Sequence[Any], n: int | None) -> int | None:
    """The static length of a slice, if it can be known."""
    if n == 1 and all(p is None for p in _parts(e)):
        return 1
    values = [None if p is None else literal(indices[p]) for p in _parts(e)]
    if any(v is None and p is not None for v, p in zip(values, _parts(e))):
        return None
    if values[2] == 0:
        raise ValueError("The step of a slice cannot be 0.")
    if n is not None:
        return len(range(*slice(*values).indices(n)))
    start, stop, step = values[0] or 0, values[1], values[2] or 1
    empty = stop is not None and step > 0 and (start >= 0) == (stop >= 0) and start >= stop
    return 0 if empty else None


# ================================================================================ Subtensor


class Subtensor(IndexOp):
    """``x[index]`` with integers and slices (basic indexing).  Inputs: x, then integer scalars.

    An integer out of range raises IndexError; slices are clipped.
    """

    # ----- class and static shape
    __props__ = ("idx_list",)
    __eq__, __hash__, __str__ = IndexOp.__eq__, IndexOp.__hash__, IndexOp.__str__
    view_map = {0: [0]}  # noqa: RUF012

    def __init__(self, idx_list: Sequence[Entry]) -> None:
        self._set_idx_list(idx_list)

    def make_node(self, x: Any, *indices: Any) -> Apply:
        x = as_tensor_variable(x)
        scalars = [index_scalar(i) for i in indices]
        if len(self.idx_list) > x.ndim:
            raise IndexError(
                f"{x} has {x.ndim} dimensions, the index {len(self.idx_list)}: too many indices."
            )
        shape = []
        for axis, n in enumerate(x.type.shape):
            e = self.idx_list[axis] if axis < len(self.idx_list) else FULL
            if isinstance(e, slice):
                full = all(p is None for p in _parts(e))
                shape.append(n if full else static_slice(e, scalars, n))
            else:
                check_range(literal(scalars[e]), n, axis, x)
        return Apply(self, [x, *scalars], [TensorType(x.type.dtype, tuple(shape))()])

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, *indices = inputs
        output_storage[0][0] = np.asarray(x[self.key(indices)])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        out = []
        for axis, n in enumerate(shapes[0]):
            e = self.idx_list[axis] if axis < len(self.idx_list) else FULL
            if isinstance(e, slice):
                out.append(slice_length(e, node.inputs[1:], n))
        return [tuple(out)]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return self.index_connections(1)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (x, *indices), (g,) = inputs, cotangents
        rest = [disconnected_type() for _ in indices]
        if isinstance(g.type, DisconnectedType):
            return [g, *rest]
        if dtypes.is_discrete(x.type.dtype):
            return [zeros_of(x), *rest]
        return [IncSubtensor(self.idx_list)(zeros_of(x), g, *indices), *rest]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        t, indices = tangents[0], inputs[1:]
        return [t if isinstance(t.type, DisconnectedType) else self(t, *indices)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        x, *indices = batched_inputs
        if any(i is not j for i, j in zip(indices, node.inputs[1:])):
            raise MethodNotDefined("Subtensor with batched indices")
        batch = x.ndim - node.inputs[0].type.ndim
        return Subtensor((FULL,) * batch + self.idx_list).make_node(x, *indices)

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, *indices = inputs
        region = lowered_region(self, b, [b.length(x, a) for a in range(x.ndim)], indices)
        if region is None:
            return NotImplemented
        for axis in reversed(range(len(self.idx_list))):
            part = region[axis]
            x = b.slice(x, axis, *part) if isinstance(part, tuple) else b.take(x, axis, part)
        return x


@constant_origin.register
def _part_of_constant(op: Subtensor, out: Any) -> Any:
    """An entry of a vector whose entries are known, or a part of a tensor of one value."""
    x, *indices = out.owner.inputs
    i = literal(indices[0]) if op.idx_list == (0,) else None
    n = x.type.shape[0] if x.type.ndim == 1 else None
    if i is None or n is None or not -n <= i < n:
        return x
    if isinstance(x, Constant):
        return x.data[i]
    made = x.owner is not None and vector_entries(x.owner.op, x)
    return made[i] if made else x


def index_scalar(i: Any) -> Any:
    """An index as an int64 (or other integer) scalar variable."""
    if isinstance(i, Variable):
        found = as_scalar(i)
    else:
        found = scalar_constant(np.int64(i))
    if found.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"Indices are integers; {i} has dtype {found.type.dtype}.")
    return found


def check_range(i: int | None, n: int | None, axis: int, x: Any) -> None:
    """IndexError if a constant index is out of range of a known length."""
    if i is not None and n is not None and not -n <= i < n:
        raise IndexError(f"Index {i} is out of range for axis {axis} of {x}, which has length {n}.")


def lowered_region(op: IndexOp, b: Any, lengths: Sequence[Any], indices: Sequence[Any]) -> Any:
    """For each axis a position (Dim) or (start, step, length); None if a step is not constant."""
    dims = [b.item(i) for i in indices]
    region: list[Any] = []
    for axis, n in enumerate(lengths):
        e = op.idx_list[axis] if axis < len(op.idx_list) else FULL
        if isinstance(e, int):
            region.append(dims[e])
            continue
        start, stop, step = (_at(dims, p) for p in _parts(e))
        step = 1 if step is None else step.value
        if not step:
            return None
        first, length = slice_range(start, stop, step, n)
        region.append((first, step, length))
    return region


def slice_length(e: slice, indices: Sequence[Any], n: Any) -> Any:
    """The symbolic length of a slice of ``n`` elements, as an int64 tensor."""
    parts = [None if p is None else as_tensor_variable(indices[p]) for p in _parts(e)]
    if all(p is None for p in parts):
        return n
    start, stop, step = parts
    known = [None if p is None else literal(indices[p]) for p in _parts(e)]
    n = as_tensor_variable(n)
    if step is not None and known[2] is None:
        forward = _range_length(start, stop, step, n, 1)
        backward = _range_length(start, stop, step, n, -1)
        return functions.switch(functions.gt(step, 0), forward, backward)
    sign = 1 if step is None or known[2] > 0 else -1  # type: ignore[operator]
    return _range_length(start, stop, as_tensor_variable(1) if step is None else step, n, sign)


def _range_length(start: Any, stop: Any, step: Any, n: Any, sign: int) -> Any:
    low, high = (0, n) if sign > 0 else (-1, n - 1)
    first = (low if sign > 0 else high) if start is None else _bounded(start, n, low, high)
    last = (high if sign > 0 else low) if stop is None else _bounded(stop, n, low, high)
    count = functions.int_div(last - first + step - sign, step)
    return cast(functions.maximum(count, 0), "int64")


def _bounded(i: Any, n: Any, low: Any, high: Any) -> Any:
    i = functions.switch(functions.lt(i, 0), i + n, i)
    return functions.minimum(functions.maximum(i, low), high)


# ============================================================================= IncSubtensor


class IncSubtensor(IndexOp):
    """``x`` with ``y`` added to (or set at) ``x[index]``.  Inputs: x, y, then integer scalars.

    ``y`` broadcasts to the region and is converted to the dtype of ``x``.
    """

    # ----- class and static shape
    __props__ = ("idx_list", "inplace", "set_instead_of_inc")
    __eq__, __hash__ = IndexOp.__eq__, IndexOp.__hash__

    def __init__(
        self,
        idx_list: Sequence[Entry],
        inplace: bool = False,
        set_instead_of_inc: bool = False,
        destroyhandler_tolerate_aliased: Any = None,
    ) -> None:
        self._set_idx_list(idx_list)
        self.inplace, self.set_instead_of_inc = inplace, set_instead_of_inc
        self.destroy_map = {0: [0]} if inplace else {}

    def make_node(self, x: Any, y: Any, *indices: Any) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        part = Subtensor(self.idx_list)(x, *indices)
        check_fits(y, part, self)
        scalars = part.owner.inputs[1:]
        return Apply(self, [x, y, *scalars], [x.type()])

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, y, *indices = inputs
        out = x if self.inplace else x.copy()
        key = self.key(indices)
        check_region(out[key].shape, y, node)
        if self.set_instead_of_inc:
            out[key] = y
        else:
            out[key] += y.astype(out.dtype, copy=False)
        output_storage[0][0] = out

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return self.index_connections(2)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (x, y, *indices), (g,) = inputs, cotangents
        rest = [disconnected_type() for _ in indices]
        if isinstance(g.type, DisconnectedType):
            return [g, g, *rest]
        if dtypes.is_discrete(x.type.dtype):
            return [zeros_of(x), zeros_of(y), *rest]
        gx = g
        if self.set_instead_of_inc:
            zero = as_tensor_variable(np.zeros((), g.type.dtype))
            gx = IncSubtensor(self.idx_list, set_instead_of_inc=True)(g, zero, *indices)
        return [gx, cotangent_of_part(Subtensor(self.idx_list)(g, *indices), y), *rest]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        (x, y, *indices), (tx, ty) = inputs, tangents[:2]
        tx = zeros_of(x) if isinstance(tx.type, DisconnectedType) else tx
        ty = zeros_of(y) if isinstance(ty.type, DisconnectedType) else ty
        return [self(tx, ty, *indices)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        x, y, *indices = batched_inputs
        if any(i is not j for i, j in zip(indices, node.inputs[2:])):
            raise MethodNotDefined("IncSubtensor with batched indices")
        x, y, batch = batch_both(x, y, node, self.idx_list)
        op = IncSubtensor((FULL,) * batch + self.idx_list, self.inplace, self.set_instead_of_inc)
        return op.make_node(x, y, *indices)

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, y, *indices = inputs
        lengths = [b.length(x, a) for a in range(x.ndim)]
        region = lowered_region(self, b, lengths, indices)
        if region is None:
            return NotImplemented
        region = [
            part if isinstance(part, tuple) else wrapped(b, part, n, axis)
            for axis, (part, n) in enumerate(zip(region, lengths))
        ]
        return b.update(x, region, y, "set" if self.set_instead_of_inc else "add")

    def __str__(self) -> str:
        name = "SetSubtensor" if self.set_instead_of_inc else "IncSubtensor"
        return f"{name}{{{self._text()}}}"


def wrapped(b: Any, position: Any, n: Any, axis: int) -> Any:
    """A position made non-negative, checked at run time."""
    return b.position(position, n, axis)


def check_fits(y: Any, part: Any, op: Any) -> None:
    """TypeError / ShapeError unless ``y`` broadcasts to the indexed part."""
    if y.type.ndim > part.type.ndim:
        raise TypeError(
            f"{y} has {y.type.ndim} dimensions, the indexed part only {part.type.ndim} "
            f"(type {part.type})."
        )
    if dtypes.is_complex(y.type.dtype) and not dtypes.is_complex(part.type.dtype):
        raise TypeError(f"Complex values cannot be stored into dtype {part.type.dtype}.")
    tail = part.type.shape[part.type.ndim - y.type.ndim :]
    for n, m in zip(tail, y.type.shape):
        if m not in (None, 1) and n is not None and n != m:
            raise ShapeError(
                f"{y} of shape {y.type.shape} does not fit the indexed part of shape "
                f"{part.type.shape} in {op}."
            )


def check_region(shape: tuple[int, ...], y: np.ndarray, node: Apply) -> None:
    """ShapeError unless ``y`` broadcasts to the region by lengths known to be 1."""
    static = node.inputs[1].type.shape
    for n, m, known in zip(shape[len(shape) - y.ndim :], y.shape, static):
        if n != m and known != 1:
            raise ShapeError(
                f"A value of shape {y.shape} does not fit the indexed part of shape {shape}."
            )


def cotangent_of_part(g: Any, y: Any) -> Any:
    """The cotangent of a value that was broadcast to a region."""
    if dtypes.is_discrete(y.type.dtype):
        return zeros_of(y)
    extra = g.type.ndim - y.type.ndim
    if extra:
        from_left = functions_sum(g, tuple(range(extra)))
        return cast(sum_to(from_left, y), y.type.dtype)
    return cast(sum_to(g, y), y.type.dtype)


def functions_sum(x: Any, axes: tuple[int, ...]) -> Any:
    from phintys.tensor.elemwise import sums

    return sums[0](x, axes)


def batch_both(x: Any, y: Any, node: Apply, idx_list: Sequence[Entry]) -> tuple[Any, Any, int]:
    """``x`` and ``y`` with the same batch axes: what is not batched is broadcast."""
    bx = x.ndim - node.inputs[0].type.ndim
    by = y.ndim - node.inputs[1].type.ndim
    batch = max(bx, by)
    part_ndim = node.inputs[0].type.ndim - sum(isinstance(e, int) for e in idx_list)
    core = node.inputs[1].type.ndim
    order = ["x"] * (batch - by) + list(range(by)) + ["x"] * (part_ndim - core)
    y = dimshuffle(y, [*order, *range(by, y.ndim)]) if by else y
    if bx < batch:
        like = dimshuffle(y, [*range(batch), *range(batch, y.ndim)])
        lead = like[(slice(None),) * batch + (0,) * (like.ndim - batch)]
        x = functions.second(
            dimshuffle(lead, [*range(batch), *["x"] * node.inputs[0].type.ndim]), x
        )
    return x, y, batch


# ======================================================================== AdvancedSubtensor


class AdvancedSubtensor(IndexOp):
    """``x[index]`` with integer or boolean tensors among the indices.  Inputs: x, then tensors.

    Integer tensors broadcast against each other; their axes take the place of the indexed ones if
    these are adjacent, and come first otherwise (NumPy's rule).  A boolean tensor selects along as many axes as it has.
    Out of range raises IndexError.
    """

    # ----- class and static shape
    __props__ = ("idx_list",)
    __eq__, __hash__, __str__ = IndexOp.__eq__, IndexOp.__hash__, IndexOp.__str__

    def __init__(self, idx_list: Sequence[Entry]) -> None:
        self._set_idx_list(idx_list)

    def make_node(self, x: Any, *indices: Any) -> Apply:
        x = as_tensor_variable(x)
        tensors = [index_tensor(i) for i in indices]
        shape = self._static_shape(x, tensors)
        return Apply(self, [x, *tensors], [TensorType(x.type.dtype, shape)()])

    def _static_shape(self, x: Any, tensors: Sequence[Any]) -> tuple[int | None, ...]:
        layout = Layout(self.idx_list, [t.type for t in tensors], x.type.ndim)
        rest: list[int | None] = []
        for e, axis in layout.slices:
            n = x.type.shape[axis]
            rest.append(n if e == FULL else static_slice(e, tensors, n))
        return layout.arrange(layout.static_index_shape(tensors), rest)

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, *indices = inputs
        out = np.asarray(x[self.key([index_value(i) for i in indices])])
        output_storage[0][0] = out.copy() if np.may_share_memory(out, x) else out

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        x, *tensors = node.inputs
        layout = Layout(self.idx_list, [t.type for t in tensors], x.type.ndim)
        if layout.has_mask:
            return [None]
        index = layout.symbolic_index_shape(tensors, shapes[1:])
        rest = [slice_length(e, tensors, shapes[0][axis]) for e, axis in layout.slices]
        return [layout.arrange(index, rest)]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return self.index_connections(1)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (x, *indices), (g,) = inputs, cotangents
        rest = [disconnected_type() for _ in indices]
        if isinstance(g.type, DisconnectedType):
            return [g, *rest]
        if dtypes.is_discrete(x.type.dtype):
            return [zeros_of(x), *rest]
        return [AdvancedIncSubtensor(self.idx_list)(zeros_of(x), g, *indices), *rest]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        t, indices = tangents[0], inputs[1:]
        return [t if isinstance(t.type, DisconnectedType) else self(t, *indices)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        x, *indices = batched_inputs
        batch = x.ndim - node.inputs[0].type.ndim
        layout = Layout(self.idx_list, [t.type for t in node.inputs[1:]], node.inputs[0].type.ndim)
        same = all(i is j for i, j in zip(indices, node.inputs[1:]))
        if not same or not layout.adjacent:
            raise MethodNotDefined("AdvancedSubtensor with batched indices")
        return AdvancedSubtensor((FULL,) * batch + self.idx_list).make_node(x, *indices)

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, *indices = inputs
        layout = Layout(self.idx_list, [t.type for t in node.inputs[1:]], x.ndim)
        if layout.has_mask:
            return NotImplemented
        for e, axis in layout.slices:
            if e == FULL:
                continue
            bounds = slice_dims(b, e, indices, b.length(x, axis))
            if bounds is None:
                return NotImplemented
            x = b.slice(x, axis, *bounds)
        out = b.gather(x, [indices[p] for p in layout.positions], layout.axes)
        return b.permute(out, layout.arrange(range(layout.index_ndim), layout.rest_axes()))


def slice_dims(b: Any, e: slice, indices: Sequence[Any], n: Any) -> Any:
    """(start, step, length) of a slice as Dims; None if its step is not constant."""
    start, stop, step = (None if p is None else b.item(indices[p]) for p in _parts(e))
    step = 1 if step is None else step.value
    if not step:
        return None
    first, length = slice_range(start, stop, step, n)
    return first, step, length


class Layout:
    """Where the axes of an advanced index go.

    positions, axes
        the index inputs that are tensors, and the axis of ``x`` each indexes
    slices
        (slice, axis of ``x``) for every axis that is not indexed by a tensor
    index_ndim
        rank of the broadcast index tensors
    """

    def __init__(self, idx_list: Sequence[Entry], types: Sequence[Any], ndim: int) -> None:
        self.positions: list[int] = []
        self.axes: list[int] = []
        self.slices: list[tuple[slice, int]] = []
        self.has_mask = False
        places: list[int] = []
        axis = 0
        for place, e in enumerate(idx_list):
            if isinstance(e, slice):
                self.slices.append((e, axis))
                axis += 1
                continue
            mask = types[e].dtype == "bool"
            self.has_mask |= mask
            self.positions.append(e)
            self.axes.append(axis)
            places.append(place)
            axis += types[e].ndim if mask else 1
        if axis > ndim:
            raise IndexError(f"Too many indices: {axis} for {ndim} dimensions.")
        self.slices += [(FULL, a) for a in range(axis, ndim)]
        ranks = [1 if types[p].dtype == "bool" else types[p].ndim for p in self.positions]
        self.index_ndim = max(ranks, default=0)
        self.adjacent = bool(places) and places == list(range(places[0], places[0] + len(places)))
        first = self.axes[0] if self.axes else 0
        self.before = sum(1 for _, a in self.slices if a < first) if self.adjacent else 0

    def arrange(self, index: Any, rest: Any) -> tuple[Any, ...]:
        """Entries of the index axes and of the others, in the order of the result."""
        index, rest = list(index), list(rest)
        return (*rest[: self.before], *index, *rest[self.before :])

    def rest_axes(self) -> range:
        """Positions of the other axes in a result whose index axes come first."""
        return range(self.index_ndim, self.index_ndim + len(self.slices))

    def static_index_shape(self, tensors: Sequence[Any]) -> tuple[int | None, ...]:
        shapes = []
        for p in self.positions:
            t = tensors[p].type
            shape = (None,) if t.dtype == "bool" else t.shape
            shapes.append((1,) * (self.index_ndim - len(shape)) + tuple(shape))
        return broadcast_static(shapes, "advanced indexing") if shapes else ()

    def symbolic_index_shape(self, tensors: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
        out: list[Any] = []
        for k in range(self.index_ndim):
            entry: Any = as_tensor_variable(np.int64(1))
            for p in self.positions:
                back = k - self.index_ndim + tensors[p].type.ndim
                if back >= 0 and tensors[p].type.shape[back] != 1:
                    entry = shapes[p][back]
                    break
            out.append(entry)
        return out


def index_tensor(i: Any) -> Any:
    """An index as an integer or boolean tensor variable."""
    found = as_tensor_variable(i)
    if not dtypes.is_discrete(found.type.dtype):
        raise TypeError(f"Indices are integers or booleans; {i} has dtype {found.type.dtype}.")
    return found


def index_value(i: Any) -> Any:
    return i if not isinstance(i, np.ndarray) or i.ndim or i.dtype == bool else int(i)


# ===================================================================== AdvancedIncSubtensor


class AdvancedIncSubtensor(IndexOp):
    """``x`` with ``y`` added to (or set at) ``x[index]``, with tensors among the indices.

    Adding accumulates at repeated indices, unless ``ignore_duplicates``; setting keeps the last value.
    Inputs: x, y, then tensors.
    """

    # ----- class and static shape
    __props__ = ("idx_list", "inplace", "set_instead_of_inc", "ignore_duplicates")
    __eq__, __hash__ = IndexOp.__eq__, IndexOp.__hash__

    def __init__(
        self,
        idx_list: Sequence[Entry],
        inplace: bool = False,
        set_instead_of_inc: bool = False,
        ignore_duplicates: bool = False,
    ) -> None:
        self._set_idx_list(idx_list)
        self.inplace, self.set_instead_of_inc = inplace, set_instead_of_inc
        self.ignore_duplicates = ignore_duplicates
        self.destroy_map = {0: [0]} if inplace else {}

    def make_node(self, x: Any, y: Any, *indices: Any) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        part = AdvancedSubtensor(self.idx_list)(x, *indices)
        check_fits(y, part, self)
        return Apply(self, [x, y, *part.owner.inputs[1:]], [x.type()])

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, y, *indices = inputs
        out = x if self.inplace else x.copy()
        key = self.key([index_value(i) for i in indices])
        check_region(out[key].shape, y, node)
        y = y.astype(out.dtype, copy=False)
        if self.set_instead_of_inc:
            out[key] = y
        elif self.ignore_duplicates:
            out[key] += y
        else:
            np.add.at(out, key, y)
        output_storage[0][0] = out

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return self.index_connections(2)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (x, y, *indices), (g,) = inputs, cotangents
        rest = [disconnected_type() for _ in indices]
        if isinstance(g.type, DisconnectedType):
            return [g, g, *rest]
        if dtypes.is_discrete(x.type.dtype):
            return [zeros_of(x), zeros_of(y), *rest]
        gx = g
        if self.set_instead_of_inc:
            zero = as_tensor_variable(np.zeros((), g.type.dtype))
            gx = AdvancedIncSubtensor(self.idx_list, set_instead_of_inc=True)(g, zero, *indices)
        return [gx, cotangent_of_part(AdvancedSubtensor(self.idx_list)(g, *indices), y), *rest]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        (x, y, *indices), (tx, ty) = inputs, tangents[:2]
        tx = zeros_of(x) if isinstance(tx.type, DisconnectedType) else tx
        ty = zeros_of(y) if isinstance(ty.type, DisconnectedType) else ty
        return [self(tx, ty, *indices)]

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, y, *indices = inputs
        layout = Layout(self.idx_list, [t.type for t in node.inputs[2:]], x.ndim)
        if layout.has_mask or self.ignore_duplicates or any(e != FULL for e, _ in layout.slices):
            return NotImplemented
        rank = layout.index_ndim + len(layout.slices)
        for _ in range(rank - y.ndim):
            y = b.expand(y, 0)
        back = layout.arrange(range(layout.index_ndim), layout.rest_axes())
        y = b.permute(y, [back.index(k) for k in range(rank)])
        mode = "set" if self.set_instead_of_inc else "add"
        return b.scatter(x, [indices[p] for p in layout.positions], layout.axes, y, mode)

    def __str__(self) -> str:
        name = "AdvancedSetSubtensor" if self.set_instead_of_inc else "AdvancedIncSubtensor"
        return f"{name}{{{self._text()}}}"


# ============================================================================ user functions


def getitem(x: Any, key: Any) -> Any:
    """``x[key]``: integers, slices, None, Ellipsis, integer and boolean tensors, as in NumPy.

    Raises
    ------
    TypeError
        for floats, boolean lists and other things that are not indices
    IndexError
        for too many indices, or a constant index out of range
    """
    entries = _expand_ellipsis(x, list(key) if isinstance(key, tuple) else [key])
    entries = [_normalize(e) for e in entries]
    if any(e is None for e in entries):
        x, entries = _new_axes(x, entries)
    indices: list[Any] = []
    idx_list = [_place(e, indices) for e in entries]
    advanced = any(
        isinstance(e, int) and isinstance(indices[e], TensorVariable) and _is_advanced(indices[e])
        for e in idx_list
    )
    if advanced:
        return AdvancedSubtensor(idx_list)(x, *(as_tensor_variable(i) for i in indices))
    return Subtensor(idx_list)(x, *indices)


def _is_advanced(i: Any) -> bool:
    return i.type.ndim > 0 or i.type.dtype == "bool"


def _expand_ellipsis(x: Any, entries: list[Any]) -> list[Any]:
    dots = [k for k, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("An index can contain only one Ellipsis.")
    if not dots:
        return entries
    used = sum(_consumes(e) for e in entries if e is not Ellipsis)
    return [*entries[: dots[0]], *[FULL] * (x.ndim - used), *entries[dots[0] + 1 :]]


def _consumes(e: Any) -> int:
    if e is None:
        return 0
    if isinstance(e, Variable | np.ndarray) and str(getattr(e, "dtype", "")) == "bool":
        return e.ndim
    return 1


def _normalize(e: Any) -> Any:
    """An index entry as None, a slice, an int, a scalar or a tensor variable."""
    if e is None or isinstance(e, int | np.integer) and not isinstance(e, bool):
        return e if e is None else int(e)
    if isinstance(e, slice):
        return slice(*(None if p is None else _scalar_part(p) for p in _parts(e)))
    if isinstance(e, ScalarVariable):
        return e
    if isinstance(e, list | tuple) and any(isinstance(i, bool) for i in e):
        raise TypeError(
            "A list of bools is not an index: use an array, np.array([...]), or a boolean tensor."
        )
    if isinstance(e, bool):
        raise TypeError("A bool is not an index; use None to add an axis, or 0 or 1.")
    if isinstance(e, Variable) and isinstance(e.type, ScalarType):
        return e
    found = as_tensor_variable(e)
    if not dtypes.is_discrete(found.type.dtype):
        raise TypeError(
            f"Indices are integers, slices, None, Ellipsis, or integer or boolean tensors; {e} has dtype "
            f"{found.type.dtype}."
        )
    return found


def _scalar_part(p: Any) -> Any:
    if isinstance(p, int | np.integer) and not isinstance(p, bool):
        return int(p)
    if isinstance(p, Variable) and getattr(p.type, "ndim", None) == 0:
        if dtypes.is_discrete(p.type.dtype):
            return p
    elif isinstance(p, np.ndarray) and p.ndim == 0 and p.dtype.kind in "iu":
        return int(p)
    raise TypeError(f"The parts of a slice are integers or integer scalars, not {p!r}.")


def _new_axes(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """``x`` with an axis of length 1 for every None, which becomes a full slice."""
    order: list[Any] = []
    axis = 0
    for e in entries:
        if e is None:
            order.append("x")
            continue
        n = _consumes(e)
        order += range(axis, axis + n)
        axis += n
    if axis > x.ndim:
        raise IndexError(f"{x} has {x.ndim} dimensions, the index {axis}: too many indices.")
    order += range(axis, x.ndim)
    return dimshuffle(x, order), [FULL if e is None else e for e in entries]


def _place(e: Any, indices: list[Any]) -> Entry:
    """The entry of ``idx_list``; its values are appended to ``indices``."""

    def put(value: Any) -> int:
        indices.append(value)
        return len(indices) - 1

    if isinstance(e, slice):
        return slice(*(None if p is None else put(p) for p in _parts(e)))
    return put(e)


def set_subtensor(
    x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False
) -> Any:
    """The tensor that ``x``, an indexing expression, is part of, with that part set to ``y``.

    ``y`` broadcasts, and is converted to the dtype of the tensor (floats are truncated into integers).  Where an
    index is repeated the last value stays.

    >>> import phintys.tensor as pt
    >>> x = pt.arange(4.0)
    >>> pt.set_subtensor(x[1:3], 0).eval()
    array([0., 0., 0., 3.], dtype=float32)
    """
    return inc_subtensor(x, y, inplace, set_instead_of_inc=True)


def inc_subtensor(
    x: Any,
    y: Any,
    inplace: bool = False,
    set_instead_of_inc: bool = False,
    tolerate_inplace_aliasing: bool = False,
    ignore_duplicates: bool = False,
) -> Any:
    """The tensor that ``x``, an indexing expression, is part of, with ``y`` added to that part.

    Repeated indices accumulate, unless ``ignore_duplicates``.  TypeError if ``x`` is not an indexing expression.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    node = x.owner
    if node is None or not isinstance(node.op, Subtensor | AdvancedSubtensor):
        raise TypeError(
            f"Only an indexing expression such as a[1:3] can be set or incremented, not {x}. To "
            "replace a whole tensor use the new value itself."
        )
    base, *indices = node.inputs
    if isinstance(node.op, Subtensor):
        op: Op = IncSubtensor(node.op.idx_list, inplace, set_instead_of_inc)
    else:
        op = AdvancedIncSubtensor(
            node.op.idx_list, inplace, set_instead_of_inc, ignore_duplicates
        )
    return op(base, y, *indices)
