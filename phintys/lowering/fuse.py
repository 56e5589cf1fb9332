"""Loop fusion: which values are computed together in one loop nest, and which are stored in memory.

A *cluster* becomes one kernel (or a few, if it is too large): values that share an iteration
*space*, a tuple of lengths without those that are the constant 1.  Values are assigned to clusters
in one forward pass; one backward pass decides what is stored.

Forward: each value gets the earliest *stage* at which it can be computed.  A value can be in the
same cluster as an argument; an argument that must be in memory is of an earlier stage.  Values of
one stage and one space form a cluster.  An edge between two clusters always leads to a later
stage, so the clusters cannot form a dependency cycle, and no search for cycles is needed.

Backward: each value collects the clusters that use it.  A cheap value is recomputed in each of them
(rematerialisation); a value that only one other cluster uses moves there; one that several use is
stored.

A reduction over the last (*inner*) dimensions of a space, and values computed from its result over
the other (*outer*) dimensions, can be in one cluster: softmax is one kernel.  ``Cluster.inner`` is
then the number of inner dimensions, and such values are at the *outer level* of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from phintys.lowering.builder import Builder
from phintys.lowering.costs import EXPENSIVE, cost
from phintys.lowering.forwarding import read_from_updates
from phintys.lowering.prerequisites import Prerequisites
from phintys.lowering.values import (
    CALLS,
    Empty,
    Gather,
    Index,
    Length,
    Literal,
    Map,
    PythonCall,
    Reduce,
    Reshape,
    Shape,
    Source,
    Update,
    Value,
    View,
    needed_in_memory,
)

#: limits of one kernel
MAX_INSTRUCTIONS = 300
MAX_OPERANDS = 24
#: largest cost (see ``costs``) at which a value is recomputed rather than stored; of 0-d values
CHEAP = 4
CHEAP_SCALAR = 40
#: largest cost at which a value moves into the only cluster that uses it
MOVABLE = 100
#: costs are clipped here, since they grow exponentially with the depth of recomputed expressions
_SATURATED = 10**6

Axes = tuple[int | None, ...]
Elementwise = (Map, Gather, Index)


@dataclass(eq=False, slots=True)
class Cluster:
    """Values to be computed in one loop nest over ``space``.

    ``inner`` is the number of inner dimensions, if results of reductions are used in the cluster.
    ``size`` and ``loads`` estimate the instructions and operands of the kernel; ``roots`` are the
    values that it stores.
    """

    number: int
    stage: int
    space: Shape
    inner: int | None = None
    size: int = 0
    loads: set[int] = field(default_factory=set)
    roots: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Place:
    """Where a value is computed: element ``i[axes]`` at point ``i`` of its cluster's space.

    An axis of the value that is None in ``axes`` has length 1.  For a `Reduce`, ``reduced`` holds
    the axes of the space that are reduced, and ``source`` are the ``axes`` of its argument.
    """

    cluster: Cluster
    axes: Axes
    reduced: frozenset[int] = frozenset()
    source: Axes = ()


class Fusion:
    """Assigns the values that the outputs need to clusters, when constructed.

    Results: ``clusters``; ``calls``, the values that are steps of their own; ``places`` by value
    id; the ids of ``stored`` values.
    """

    def __init__(self, builder: Builder, outputs: Iterable[Value]):
        self.builder = builder
        self.outputs = list(outputs)
        self.prerequisites = Prerequisites(builder)
        self.places: dict[int, Place] = {}
        self.clusters: list[Cluster] = []
        self.calls: list[Value] = []
        self.stored: set[int] = set()
        self.stages: dict[int, int] = {}  # of calls
        self.must_store: set[int] = set()  # ids of values that must be stored in any case
        self.continued: dict[int, Update] = {}  # id of an update -> the next one, in its memory
        self._root_ids: set[int] = set()
        self._shapes: dict[Shape, Shape] = {}  # cache of `shape`
        self._ones: dict[Shape, frozenset[int]] = {}  # cache of `ones`
        # by value id: cost, the earliest stage for users in other clusters, (consumer, argument)
        # of each use, the clusters that use it
        self._costs: dict[int, int] = {}
        self._ready: dict[int, int] = {}
        self._consumers: dict[int, list[tuple[Value, Value]]] = {}
        self._users: dict[int, set[Cluster]] = {}
        # by stage and space: the cluster, and if it is full the next stage to try
        self._open_clusters: dict[tuple[int, Shape], Cluster] = {}
        self._next_stage: dict[tuple[int, Shape], int] = {}
        self.live = self._find_live()
        self._scatter_bases = {v.args[0].id for v in self.live if _is_scatter_add_to_constant(v)}
        for value in self.live:
            self._forward(value)
        for value in reversed(self.live):
            self._backward(value)
        for cluster in self.clusters:
            cluster.roots.reverse()
        self.calls.reverse()

    # -------------------------------------------------------------------- preparation
    def _post_order(self, roots: list[Value]) -> list[Value]:
        """The values that ``roots`` need, in depth-first post-order.

        Every value comes shortly after its dependences, so related values get the same cluster.
        """
        result: list[Value] = []
        seen: set[int] = set()
        stack = [(v, False) for v in reversed(roots)]
        while stack:
            value, done = stack.pop()
            if done:
                result.append(value)
            elif value.id not in seen:
                seen.add(value.id)
                stack.append((value, True))
                stack.extend((a, False) for a in reversed(value.args))
                definers = sorted(self.prerequisites.of(value).definers, key=lambda v: v.id)
                stack.extend((v, False) for v in definers)
        return result

    def shape(self, value: Value) -> Shape:
        """The shape with equal lengths merged."""
        found = self._shapes.get(value.shape)
        if found is None:
            found = self._shapes[value.shape] = self.builder.shape(value)
        return found

    def ones(self, value: Value) -> frozenset[int]:
        """The axes whose length is the constant 1."""
        found = self._ones.get(value.shape)
        if found is None:
            axes = (k for k, d in enumerate(self.shape(value)) if d.value == 1)
            found = self._ones[value.shape] = frozenset(axes)
        return found

    def without_ones(self, shape: Iterable) -> Shape:
        """A shape without the lengths that are the constant 1."""
        return tuple(d for d in shape if d.value != 1)

    def _find_live(self) -> list[Value]:
        """The values that the outputs need, in order; sets ``must_store`` and the consumers."""
        values = self.builder.values
        roots = [*self.outputs, *(values[i] for i in self.builder.pinned)]
        roots += [v for v in values if isinstance(v, PythonCall)]
        self._root_ids.update(base_of(v).id for v in roots)
        self.must_store |= self._root_ids
        order = self._post_order(roots)
        if read_from_updates(self.prerequisites, roots, order):
            order = self._post_order(roots)
        result: list[Value] = []
        for value in order:
            if isinstance(value, (Literal, Length)):  # inlined into every kernel that uses them
                self._costs[value.id] = self._ready[value.id] = 0
            elif not isinstance(value, View):
                result.append(value)
        for value in result:
            self.must_store.update(base_of(a).id for a in needed_in_memory(value))
            for arg in value.args:
                self._consumers.setdefault(base_of(arg).id, []).append((value, arg))
        return result

    # ------------------------------------------------------------------------ forward
    def _forward(self, value: Value) -> None:
        """Assign a value to a cluster, or a call to a stage; its arguments come before."""
        self._costs[value.id] = self._cost(value)
        if isinstance(value, Elementwise):
            self._place_elementwise(value)
        elif isinstance(value, Reduce):
            self._place_reduce(value)
        elif isinstance(value, Update):
            self._place_update(value)
        elif isinstance(value, CALLS):
            self.stages[value.id] = self._ready_args(value)
        self._ready[value.id] = self._when_ready(value)

    def _ready_args(self, value: Value) -> int:
        """The earliest stage at which a new cluster can use all arguments of a value."""
        memory = needed_in_memory(value)
        ready = [
            self._in_memory(a) if a in memory else self._ready[base_of(a).id] for a in value.args
        ]
        return max(*ready, self._first_stage(value)) if ready else self._first_stage(value)

    def _first_stage(self, value: Value) -> int:
        """The earliest stage at which the lengths and positions that a value uses are known."""
        definers = self.prerequisites.of(value).definers
        return max(map(self._in_memory, definers), default=0)

    def _in_memory(self, arg: Value) -> int:
        """The earliest stage that can load an argument from memory."""
        base = base_of(arg)
        place = self.places.get(base.id)
        return self._ready[base.id] if place is None else place.cluster.stage + 1

    def _when_ready(self, value: Value) -> int:
        """The earliest stage at which another cluster can use a value."""
        if isinstance(value, Elementwise) and self.is_recomputed(value):
            return self._ready_args(value)
        if value.id in self.places:
            return self.places[value.id].cluster.stage + 1
        if value.id in self.stages:
            return self.stages[value.id] + 1
        return self._ready_args(value)

    def _cost(self, value: Value) -> int:
        """The cost of computing a value from what is surely in memory, loads included."""
        if not isinstance(value, Elementwise):
            return 1
        total = 5 * (len(value.args) - 1) if isinstance(value, Gather) else 1
        if isinstance(value, Map):
            total = sum(cost(i) for i in value.body)
        for arg in value.args:
            base = base_of(arg)
            total += 1 if base.id in self.must_store else self._costs[base.id]
        return min(total, _SATURATED)

    def is_recomputed(self, value: Value) -> bool:
        """Whether other clusters compute an elementwise value themselves instead of loading it."""
        total = self._costs[value.id]
        if total <= CHEAP or (total <= CHEAP_SCALAR and not self.without_ones(self.shape(value))):
            return True
        consumers = self._consumers.get(value.id, ())
        if value.id in self.must_store or len(consumers) != 1 or total > MOVABLE:
            return False
        return not self._is_better_stored(*consumers[0])

    def _is_better_stored(self, consumer: Value, arg: Value) -> bool:
        """Whether inlining an argument into its consumer's loops would waste work.

        That is so if elements would be computed more than once.  For an expensive function such as
        log it is so too if the argument does not vary with all loops, because it could be computed
        one element at a time, without SIMD.
        """
        shape = consumer.shape
        if isinstance(consumer, Update):
            shape = consumer.region
        elif isinstance(consumer, Reduce):
            shape = consumer.args[0].shape
        axes = self.own_axes(shape)
        moving = {axes[k] for k in _varying_axes(arg)} - {None}
        if moving and self._costs[base_of(arg).id] >= EXPENSIVE:
            return len(moving) < len({*axes} - {None})
        return moving != set(range(len(moving)))

    def own_axes(self, shape: Iterable) -> Axes:
        """The axis of the space for each axis of a shape; None for those of constant length 1."""
        axes: list[int | None] = []
        count = 0
        for d in shape:
            one = self.builder.canonical(d).value == 1
            axes.append(None if one else count)
            count += not one
        return tuple(axes)

    # ----- elementwise values
    def _place_elementwise(self, value: Value) -> None:
        space, axes = self.without_ones(self.shape(value)), self.own_axes(value.shape)
        stage, inner = self._stage(value, space, axes)
        outer = self._outer_place(value)
        if outer is not None:
            outer_stage, outer_inner = self._stage(value, outer[0].space, outer[1])
            fits = self._has_room(outer[0], value) and outer_stage == outer[0].stage
            if outer_stage < stage and fits:
                self._join(value, outer[0], outer[1], outer_inner)
                return
        cluster = self._cluster(stage, space, value)
        self._join(value, cluster, axes, inner)

    def _join(self, value: Value, cluster: Cluster, axes: Axes, inner: dict[int, int]) -> None:
        """Assign an elementwise value to a cluster; ``inner`` is as from `_stage`."""
        self.places[value.id] = Place(cluster, axes)
        if cluster.number in inner:
            cluster.inner = inner[cluster.number]
        self._count(cluster, value)

    def _stage(self, value: Value, space: Shape, axes: Axes) -> tuple[int, dict[int, int]]:
        """The earliest stage for a value placed at ``axes`` of a space.

        Also, by number of cluster, the inner dimensions that the cluster must have if the value
        joins it.
        """
        # stage 0 is reserved for the base arrays of scatter-adds, so that any cluster can contain
        # the scatter-add itself
        stage = 1 if self._scatter_bases and value.id not in self._scatter_bases else 0
        stage = max(stage, self._first_stage(value))
        inner: dict[int, int] = {}
        memory = needed_in_memory(value)
        for arg in value.args:
            base = base_of(arg)
            if arg in memory:
                stage = max(stage, self._in_memory(arg))
                continue
            found = self.fused_place(arg, space, axes)
            if found is not None and isinstance(base, Reduce):
                cluster, count = found.cluster, len(found.reduced)
                if inner.setdefault(cluster.number, cluster.inner or count) != count:
                    found = None
            stage = max(stage, self._ready[base.id] if found is None else found.cluster.stage)
        return stage, inner

    def fused_place(self, arg: Value, space: Shape, axes: Axes) -> Place | None:
        """The place of an argument, if a consumer at ``axes`` can be in the same cluster."""
        base = base_of(arg)
        place = self.places.get(base.id)
        if place is None or isinstance(base, Update) or place.cluster.space != space:
            return None
        if isinstance(base, Reduce) and not self._is_usable_inside(place):
            return None
        return place if self.aligned(arg, axes) == place.axes else None

    def _is_usable_inside(self, place: Place) -> bool:
        """Whether the result of a reduction can be used in its own cluster.

        It must reduce exactly the inner dimensions of the cluster.
        """
        count, rank = len(place.reduced), len(place.cluster.space)
        trailing = place.reduced == frozenset(range(rank - count, rank)) and count > 0
        return trailing and place.cluster.inner in (None, count)

    def aligned(self, arg: Value, axes: Axes) -> Axes | None:
        """The axes of the space that the axes of an argument's base vary with.

        ``axes`` are those of the argument.  None if it is a view with an offset or a step.
        """
        if not isinstance(arg, View):
            return tuple(
                None if d.value == 1 else a for d, a in zip(self.shape(arg), axes, strict=True)
            )
        result: list[int | None] = []
        for axis, start, step in zip(arg.axes, arg.starts, arg.steps):
            if start.value != 0 or (axis is not None and step.value != 1):
                return None
            result.append(None if axis is None else axes[axis])
        return tuple(result)

    def _outer_place(self, value: Value) -> tuple[Cluster, Axes] | None:
        """A cluster of an argument in which an elementwise value fits at the outer level."""
        memory = needed_in_memory(value)
        for arg in value.args:
            base = base_of(arg)
            place = self.places.get(base.id)
            if place is None or isinstance(base, Update) or arg in memory:
                continue
            if isinstance(base, Reduce):
                if not self._is_usable_inside(place):
                    continue
                inner = len(place.reduced)
            elif place.cluster.inner and not self._is_full(place):
                inner = place.cluster.inner
            else:
                continue
            axes = self._pull_axes(value, arg, place)
            if axes is not None and all(
                a is None or a < len(place.cluster.space) - inner for a in axes
            ):
                return place.cluster, axes
        return None

    def _is_full(self, place: Place) -> bool:
        """Whether a value varies with all axes of the space (it is not at the outer level)."""
        return len(set(place.axes) - {None}) == len(place.cluster.space)

    def _pull_axes(self, value: Value, arg: Value, place: Place) -> Axes | None:
        """The axes of the space for a value such that its argument is aligned with ``place``.

        None if there are none: the argument is broadcast, or the value reads only a part of it.
        """
        axes: list[int | None] = [None] * value.ndim
        for k, space_axis in enumerate(place.axes):
            axis = arg.axes[k] if isinstance(arg, View) else k
            if space_axis is not None and axis is not None:
                axes[axis] = space_axis
        if self.without_ones(self.shape(value)) != tuple(
            place.cluster.space[a] for a in axes if a is not None
        ):
            return None
        return tuple(axes) if self.aligned(arg, tuple(axes)) == place.axes else None

    # ----- reductions
    def _place_reduce(self, value: Reduce) -> None:
        arg = value.args[0]
        space, axes = self.without_ones(self.shape(arg)), self.own_axes(arg.shape)
        stage, inner = self._stage(value, space, axes)
        outer = self._outer_place_of_argument(value)
        if outer is not None and outer[0].stage < stage:
            cluster, axes = outer
        else:
            cluster = self._cluster(stage, space, value)
        reduced = frozenset(a for k in value.axes if (a := axes[k]) is not None)
        if value.kind.startswith("arg"):
            while cluster.inner not in (None, len(reduced)):
                cluster = self._cluster(cluster.stage + 1, space, value)
            cluster.inner = len(reduced) or None
        elif cluster.number in inner and cluster.inner is None:
            cluster.inner = inner[cluster.number]
        kept = tuple(a for k, a in enumerate(axes) if k not in value.axes)
        self.places[value.id] = Place(cluster, kept, reduced, axes)
        self._count(cluster, value)

    def _outer_place_of_argument(self, value: Reduce) -> tuple[Cluster, Axes] | None:
        """The place of an argument at the outer level; it is then accumulated in memory."""
        arg = value.args[0]
        place = self.places.get(base_of(arg).id)
        if place is None or value.kind.startswith("arg") or not place.cluster.inner:
            return None
        if isinstance(arg, (View, Reduce, Update)) or self._is_full(place):
            return None
        return place.cluster, place.axes

    # ----- updates
    def _place_update(self, value: Update) -> None:
        space = self.without_ones(self.builder.canonical(d) for d in value.region)
        base = value.args[0]
        if isinstance(base, Update) and not space and self._continues(value, base):
            cluster = self.places[base.id].cluster
            cluster.stage = max(
                cluster.stage,
                self._first_stage(value),
                *(self._ready[base_of(a).id] for a in value.args[1:]),
            )
            self.continued[base.id] = value
        else:
            cluster = self._cluster_of_update(value, space)
        self.places[value.id] = Place(cluster, self.own_axes(value.region))
        self._count(cluster, value)
        cluster.loads.add(value.id)

    def _cluster_of_update(self, value: Update, space: Shape) -> Cluster:
        """The cluster of its operands for a scatter-add, else a new cluster."""
        ready = self._ready_args(value)
        if _is_scatter_add(value):
            stage, inner = self._stage(value, space, self.own_axes(value.region))
            if stage < ready and not inner:
                return self._cluster(stage, space, value)
        return self._new_cluster(ready, space)

    def _continues(self, value: Update, base: Update) -> bool:
        """Whether one kernel can do both updates, of which each sets a single element.

        Only ``value`` may use ``base``, because the stage of its cluster may be raised.
        """
        cluster = self.places[base.id].cluster
        plain = all(u.mode == "set" and not u.gathered for u in (value, base))
        alone = len(self._consumers[base.id]) == 1 and base.id not in self._root_ids
        return plain and alone and not cluster.space and self._has_room(cluster, value)

    # ----- clusters
    def _cluster(self, stage: int, space: Shape, value: Value) -> Cluster:
        """The cluster of a space at a stage, or at the first later stage where one has room."""
        passed = []
        while True:
            key = (stage, space)
            cluster = self._open_clusters.get(key)
            if cluster is None:
                cluster = self._open_clusters[key] = self._new_cluster(stage, space)
            if key not in self._next_stage and self._has_room(cluster, value):
                break
            passed.append(key)
            stage = self._next_stage.setdefault(key, stage + 1)
        for key in passed:
            self._next_stage[key] = stage
        return cluster

    def _new_cluster(self, stage: int, space: Shape) -> Cluster:
        cluster = Cluster(len(self.clusters), stage, space)
        self.clusters.append(cluster)
        return cluster

    def _weight(self, value: Value) -> int:
        """The number of instructions of a value (estimate)."""
        return len(value.body) if isinstance(value, Map) else 2

    def _has_room(self, cluster: Cluster, value: Value) -> bool:
        """Whether a cluster stays within the limits of one kernel with a value added."""
        loads = len(cluster.loads | self._loads(value, cluster.space))
        fits = cluster.size + self._weight(value) <= MAX_INSTRUCTIONS and loads <= MAX_OPERANDS - 4
        return fits or cluster.size == 0

    def _loads(self, value: Value, space: Shape | None) -> set[int]:
        """The ids of the values that a kernel over ``space`` loads to compute a value (estimate).

        Values over the same space are assumed to be in the same cluster, unless that is full.  With
        ``space`` None every value that can be recomputed is.
        """
        loads: set[int] = set()
        seen = {value.id}
        stack = [value]
        while stack:
            for arg in stack.pop().args:
                base = base_of(arg)
                if base.id in seen or isinstance(base, (Literal, Length)):
                    continue
                seen.add(base.id)
                if not isinstance(base, Elementwise) or base.id in self.must_store:
                    loads.add(base.id)
                    continue
                home = self.places[base.id].cluster
                if space is None or (home.space != space and self.is_recomputed(base)):
                    stack.append(base)
                elif home.space != space or (home.stage, space) in self._next_stage:
                    loads.add(base.id)
        return loads

    def _count(self, cluster: Cluster, value: Value) -> None:
        """Add the instructions and loads of a value to those of its cluster."""
        cluster.size += self._weight(value)
        cluster.loads |= self._loads(value, cluster.space)

    # ----------------------------------------------------------------------- backward
    def _backward(self, value: Value) -> None:
        """Decide whether a value is stored; its users come before."""
        users = self._users.pop(value.id, set())
        if isinstance(value, Elementwise):
            computed_in = self._settle_elementwise(value, users)
        elif isinstance(value, Reduce):
            computed_in = self._settle_reduce(value, users)
        elif isinstance(value, Update):
            self.stored.add(value.id)
            computed_in = {self.places[value.id].cluster}
            self.places[value.id].cluster.roots.append(value)
        else:
            if isinstance(value, (*CALLS, Empty, Reshape, Source)):
                self.stored.add(value.id)
            if isinstance(value, CALLS):
                self.calls.append(value)
            return
        for arg in value.args:
            base = base_of(arg)
            if not isinstance(base, (Source, Literal, Length)):
                self._users.setdefault(base.id, set()).update(computed_in)

    def _settle_elementwise(self, value: Value, users: set[Cluster]) -> set[Cluster]:
        """Decide whether to store an elementwise value; return the clusters that compute it."""
        home = self.places[value.id].cluster
        if value.id in self.must_store or not self._leave_unstored(value, home, users):
            self.stored.add(value.id)
            home.roots.append(value)
            return {home} | {c for c in users if c.stage <= home.stage}
        return users

    def _leave_unstored(self, value: Value, home: Cluster, users: set[Cluster]) -> bool:
        """Whether the users of an elementwise value compute it themselves."""
        total = self._costs[value.id]
        if users <= {home} or total <= CHEAP:
            return True
        if self.is_recomputed(value) and (len(users) > 1 or self._must_recompute(home, users)):
            return True
        if len(users) > 1 or total > MOVABLE:
            return False
        (cluster,) = users
        if any(self._is_better_stored(c, a) for c, a in self._consumers.get(value.id, ())):
            return False
        loads = cluster.loads | self._loads(value, None)
        size = cluster.size + total
        if size > MAX_INSTRUCTIONS or len(loads) > MAX_OPERANDS - 4:
            return False
        cluster.size, cluster.loads = size, loads
        return True

    def _must_recompute(self, home: Cluster, users: set[Cluster]) -> bool:
        """Whether a cluster that uses a value may run before the value's own cluster."""
        return any(c.stage <= home.stage for c in users)

    def _settle_reduce(self, value: Reduce, users: set[Cluster]) -> set[Cluster]:
        """Store a reduction if another cluster uses it; return the cluster that computes it."""
        home = self.places[value.id].cluster
        if value.id in self.must_store or users - {home}:
            self.stored.add(value.id)
            home.roots.append(value)
        return {home}


def _is_scatter_add(value: Value) -> bool:
    """Whether a value is a scatter-add."""
    return isinstance(value, Update) and value.mode == "add" and bool(value.gathered)


def _is_scatter_add_to_constant(value: Value) -> bool:
    """Whether a value is a scatter-add to an array filled with one number."""
    start = value.args[0] if _is_scatter_add(value) else None
    if not isinstance(start, Map):
        return False
    return all(isinstance(base_of(a), (Literal, Length)) for a in start.args)


def base_of(value: Value) -> Value:
    """The value that a view is a view of, or the value itself."""
    return value.args[0] if isinstance(value, View) else value


def _varying_axes(arg: Value) -> set[int]:
    """The axes of an argument along which it is neither broadcast nor of length 1."""
    if isinstance(arg, View):
        return {a for a in arg.axes if a is not None}
    return {k for k, d in enumerate(arg.shape) if d.value != 1}
