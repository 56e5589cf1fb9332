"""Arrays with a region, or computed positions, set or added to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phintys.lowering.clusters import Cluster, Place
from phintys.lowering.elementwise import emit_body
from phintys.lowering.protocols import Fusion, KernelWriter, Point
from phintys.lowering.recorder import record_map
from phintys.lowering.values import Axes, Shape, Value


class Update(Value):
    """``args[0]`` with ``args[1]`` written (mode ``set``) or added (mode ``add``) to a region.

    Element ``i`` of the region, whose shape is ``region``, is element ``j`` of the array, with
    ``j[k] = starts[k] + steps[k] * i[axes[k]]``.  Along an axis in ``gathered`` ``j[k]`` is instead
    an element of one of ``args[2:]`` (a scatter; as in `Gather`).  ``args[1:]`` broadcast against
    the region.  Its first ``index_ndim`` axes are those of positions that are checked: if one of
    them is empty there are none, whatever the arrays of positions hold.
    """

    __slots__ = ("axes", "gathered", "index_ndim", "mode", "region", "starts", "steps")
    from_memory = 1
    starts_kernel = False
    in_kernels = True

    def __init__(
        self,
        base: Value,
        value: Value,
        mode: str,
        region: Shape,
        axes: Axes,
        starts: Shape,
        steps: Shape,
        gathered: tuple[int, ...] = (),
        indices: tuple[Value, ...] = (),
        index_ndim: int = 0,
    ):
        super().__init__(base.dtype, base.shape, (base, value, *indices))
        self.mode = mode
        self.region = region
        self.axes = axes
        self.starts = starts
        self.steps = steps
        self.gathered = gathered
        self.index_ndim = index_ndim

    def dims(self) -> Shape:
        return (*self.shape, *self.region, *self.starts, *self.steps)

    @property
    def is_scatter_add(self) -> bool:
        """Whether it adds at computed positions."""
        return self.mode == "add" and bool(self.gathered)

    @property
    def is_slice_set(self) -> bool:
        """Whether it sets a region that is given by slices."""
        return self.mode == "set" and not self.gathered

    def early_arguments(self) -> tuple[Value, ...]:
        return self.args[:1] if self.is_scatter_add and self.args[0].is_uniform() else ()

    def initial(self) -> Value | None:
        return None if self.args[0].is_undefined else self.args[0]

    def loops(self) -> Shape:
        return self.region

    # ----- fusion
    def place(self, fusion: Fusion) -> None:
        space = fusion.without_ones(map(fusion.builder.canonical, self.region))
        base = self.args[0]
        if isinstance(base, Update) and not space and self._continues(base, fusion):
            cluster = fusion.places[base.id].cluster
            ready = (fusion.ready(a.base) for a in self.args[1:])
            cluster.stage = max(cluster.stage, fusion.first_stage(self), *ready)
            fusion.continued[base.id] = self
        else:
            cluster = self._cluster(fusion, space)
        fusion.assign(self, Place(cluster, fusion.own_axes(self.region)))
        cluster.loads.add(self.id)

    def _cluster(self, fusion: Fusion, space: Shape) -> Cluster:
        """The cluster of its operands for a scatter-add, else a new cluster."""
        ready = fusion.ready_args(self)
        if self.is_scatter_add:
            stage, inner = fusion.stage(self, space, fusion.own_axes(self.region))
            if stage < ready and not inner:
                return fusion.cluster(stage, space, self)
        return fusion.new_cluster(ready, space)

    def _continues(self, base: Update, fusion: Fusion) -> bool:
        """Whether one kernel can do this update after ``base``; each sets a single element.

        Only this update may use ``base``, because the stage of its cluster may be raised.
        """
        cluster = fusion.places[base.id].cluster
        plain = self.is_slice_set and base.is_slice_set
        alone = fusion.is_only_for_one(base)
        return plain and alone and not cluster.space and fusion.has_room(cluster, self)

    def settle(self, fusion: Fusion, users: set[Cluster]) -> Iterable[Cluster]:
        home = fusion.places[self.id].cluster
        fusion.store(self, home)
        return {home}

    # ----- emission
    def write(self, writer: KernelWriter, place: Place) -> None:
        """Emit the store; the slot already holds a copy of the array."""
        draft, index = writer.draft, writer.natural(place.axes)
        values = [writer.value(a, writer.index_of_argument(a, index)) for a in self.args[1:]]
        slot, offset, strides = self.address(writer.layouts)
        target = writer.moved(index, self.axes, self.starts, self.steps)
        operand = writer.operand(slot, offset, strides, target)
        if not self.gathered:
            if self.mode == "add":
                old = draft.load(operand)
                body, result, _ = record_map(_sum, [str(self.dtype)] * 2, None)
                values[0] = emit_body(draft, body, [old, values[0]])[result]
            draft.store(operand, values[0])
            return
        operand = operand._replace(extra=tuple(strides[a] for a in self.gathered))
        wrapped = self._positions(writer, index, values[1:])
        if self.mode == "add":
            first, *rest = wrapped
            varying = frozenset[int]().union(*map(draft.axes, (values[0], *wrapped)))
            for axis in place.axes:  # once for each element, even if all are the same
                if axis is not None and axis not in varying:
                    first = draft.along(first, axis)
            draft.accumulate(operand, "add", values[0], (first, *rest))
        else:
            draft.ordered = True
            draft.store(operand, values[0], wrapped)

    def _positions(self, writer: KernelWriter, index: Point, at: list[int]) -> tuple[int, ...]:
        """Emit the positions along the ``gathered`` axes, which are computed at ``at``."""
        region = tuple(map(writer.find, self.region))
        lengths = writer.index_lengths(region, index, self.index_ndim)
        return writer.positions(self, self.gathered, self.args[2:], at, lengths)


def _sum(n: Any, x: Any, y: Any) -> Any:
    return n.add(x, y)
