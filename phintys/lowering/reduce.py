"""Reductions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phintys.lowering.clusters import Cluster, Place
from phintys.lowering.protocols import Fusion, KernelWriter, Point
from phintys.lowering.values import Axes, Shape, Value


class Reduce(Value):
    """The reduction ``kind`` of the argument over ``axes`` (sorted), which are dropped."""

    __slots__ = ("axes", "kind")
    in_kernels = True

    def __init__(self, kind: str, x: Value, axes: tuple[int, ...], dtype: str):
        shape = tuple(d for i, d in enumerate(x.shape) if i not in axes)
        super().__init__(dtype, shape, (x,))
        self.kind = kind
        self.axes = axes

    @property
    def is_position(self) -> bool:
        """Whether it is the position of an extreme element: ``argmax`` or ``argmin``."""
        return self.kind.startswith("arg")

    def loops(self) -> Shape:
        return self.args[0].shape

    def place(self, fusion: Fusion) -> None:
        arg = self.args[0]
        space, axes = fusion.natural(arg)
        stage, inner = fusion.stage(self, space, axes)
        outer = self._outer_place(fusion)
        if outer is not None and outer[0].stage < stage:
            cluster, axes = outer
        else:
            cluster = fusion.cluster(stage, space, self)
        reduced = frozenset(a for k in self.axes if (a := axes[k]) is not None)
        if self.is_position:
            while cluster.inner not in (None, len(reduced)):
                cluster = fusion.cluster(cluster.stage + 1, space, self)
            cluster.inner = len(reduced) or None
        elif cluster.number in inner and cluster.inner is None:
            cluster.inner = inner[cluster.number]
        kept = tuple(a for k, a in enumerate(axes) if k not in self.axes)
        fusion.assign(self, Place(cluster, kept, reduced, axes))

    def _outer_place(self, fusion: Fusion) -> tuple[Cluster, Axes] | None:
        """The place of an argument at the outer level; it is then accumulated in memory."""
        arg = self.args[0]
        place = fusion.places.get(arg.id)
        if place is None or not arg.is_elementwise or self.is_position or not place.cluster.inner:
            return None
        if place.is_full() or place.cluster.is_ragged:
            return None
        return place.cluster, place.axes

    def inner_dims(self, place: Place) -> int | None:
        return place.reduced_inside()

    def settle(self, fusion: Fusion, users: set[Cluster]) -> Iterable[Cluster]:
        home = fusion.places[self.id].cluster
        if self.id in fusion.must_store or users - {home}:
            fusion.store(self, home)
        return {home}

    def uses(self, writer: KernelWriter, index: Point) -> Sequence[tuple[Value, Point]]:
        return [(self.args[0], writer.natural(writer.fusion.places[self.id].source))]

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        if not writer.fusion.places[self.id].reduced:
            return writer.draft.emit("const", "int64", (), 0) if self.is_position else args[0]
        return writer.draft.emit("reduce", str(self.dtype), (args[0],), self.kind)

    def write(self, writer: KernelWriter, place: Place) -> None:
        target = writer.target(self, place.axes)
        if not place.reduced or self.is_position:
            writer.draft.store(target, writer.value(self, writer.natural(place.axes)))
            return
        arg = writer.value(self.args[0], writer.natural(place.source))
        writer.draft.reduce(self.kind, str(self.dtype), arg, place.reduced, target)
