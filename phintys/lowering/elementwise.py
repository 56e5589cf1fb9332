"""Values whose elements any kernel can compute one by one from elements of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from phintys.lowering.clusters import Cluster, Place
from phintys.lowering.costs import cost
from phintys.lowering.loops import Draft
from phintys.lowering.program import Inst
from phintys.lowering.protocols import Fusion, KernelWriter, Point
from phintys.lowering.values import Shape, Value


class Elementwise(Value):
    """A value that clusters recompute, if that is cheaper than to store it."""

    __slots__ = ()
    is_elementwise = True
    in_kernels = True

    def place(self, fusion: Fusion) -> None:
        space, axes = fusion.natural(self)
        stage, inner = fusion.stage(self, space, axes)
        outer = fusion.outer_place(self)
        if outer is not None:
            outer_stage, outer_inner = fusion.stage(self, outer[0].space, outer[1])
            fits = fusion.has_room(outer[0], self) and outer_stage == outer[0].stage
            if outer_stage < stage and fits:
                fusion.join(self, outer[0], outer[1], outer_inner)
                return
        fusion.join(self, fusion.cluster(stage, space, self), axes, inner)

    def inner_dims(self, place: Place) -> int | None:
        return 0

    def settle(self, fusion: Fusion, users: set[Cluster]) -> Iterable[Cluster]:
        home = fusion.places[self.id].cluster
        if self.id not in fusion.must_store and fusion.is_left_unstored(self, home, users):
            return users
        fusion.store(self, home)
        return {home} | {c for c in users if c.stage <= home.stage}

    def uses(self, writer: KernelWriter, index: Point) -> Sequence[tuple[Value, Point]]:
        return [(a, writer.index_of_argument(a, index)) for a in self.args]

    def write(self, writer: KernelWriter, place: Place) -> None:
        result = writer.value(self, writer.natural(place.axes))
        writer.draft.store(writer.target(self, place.axes), result)


class Index(Elementwise):
    """The int64 position along one axis of the shape."""

    __slots__ = ("axis",)

    def __init__(self, axis: int, shape: Shape):
        super().__init__("int64", shape)
        self.axis = axis

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        return writer.affine(index[self.axis])


class Map(Elementwise):
    """Scalar instructions applied elementwise.

    ``body`` is a kernel body in which positions 0, 1, ... are the arguments; ``result`` is the
    position of the result.  Arguments have the rank of the value; an axis of constant length 1
    broadcasts.
    """

    __slots__ = ("body", "result")

    def __init__(
        self, dtype: str, shape: Shape, args: tuple[Value, ...], body: tuple[Inst, ...], result: int
    ):
        super().__init__(dtype, shape, args)
        self.body = body
        self.result = result

    @property
    def converted(self) -> Value | None:
        if len(self.args) != 1 or any(i.op != "cast" for i in self.body):
            return None
        dtypes = [str(v.dtype) for v in (*self.args, *self.body)]
        return self.args[0] if all(map(np.can_cast, dtypes, dtypes[1:])) else None

    def is_uniform(self) -> bool:
        return all(a.base.is_number for a in self.args)

    def cost(self) -> int:
        return sum(map(cost, self.body))

    def weight(self) -> int:
        return len(self.body)

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        return emit_body(writer.draft, self.body, args)[self.result]


def emit_body(draft: Draft, body: Iterable[Inst], args: Sequence[int]) -> list[int]:
    """Emit scalar instructions; the positions of the arguments, then of the instructions."""
    positions = list(args)
    for inst in body:
        own = tuple([positions[a] for a in inst.args])
        positions.append(draft.emit(inst.op, inst.dtype, own, inst.param))
    return positions


class Gather(Elementwise):
    """Elements of ``args[0]`` at positions ``args[1:]`` along ``axes``.

    The axes of the result are those of the broadcast positions (``index_ndim`` axes), then the
    other axes of the array, in order.
    """

    __slots__ = ("axes", "index_ndim")
    from_memory = 1
    can_fail = True

    def __init__(
        self, x: Value, indices: tuple[Value, ...], axes: tuple[int, ...], shape: Shape, ndim: int
    ):
        super().__init__(x.dtype, shape, (x, *indices))
        self.axes = axes
        self.index_ndim = ndim

    def cost(self) -> int:
        return 5 * len(self.axes)

    def uses(self, writer: KernelWriter, index: Point) -> Sequence[tuple[Value, Point]]:
        return [(a, writer.index_of_argument(a, index)) for a in self.args[1:]]

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        x = self.args[0]
        slot, offset, strides = x.address(writer.layouts)
        lengths = writer.index_lengths(writer.fusion.shape(self), index, self.index_ndim)
        wrapped = writer.positions(x, self.axes, self.args[1:], args, lengths)
        rest = [k for k in range(x.ndim) if k not in self.axes]
        own = tuple(strides[k] for k in rest)
        operand = writer.operand(slot, offset, own, index[self.index_ndim :])
        operand = operand._replace(extra=tuple(strides[a] for a in self.axes))
        return writer.draft.load(operand, writer.pinned_inside(wrapped, lengths))
