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

from phintys.lowering.builder import Builder
from phintys.lowering.clusters import Cluster, Place
from phintys.lowering.costs import EXPENSIVE
from phintys.lowering.forwarding import read_from_updates
from phintys.lowering.prerequisites import Prerequisites
from phintys.lowering.values import Axes, Shape, Value

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
        self.continued: dict[int, Value] = {}  # id of an update -> the next one, in its memory
        self._root_ids: set[int] = set()
        self._shapes: dict[Shape, Shape] = {}  # cache of `shape`
        self._ones: dict[Shape, frozenset[int]] = {}  # cache of `ones`
        self._natural: dict[Shape, tuple[Shape, Axes]] = {}  # cache of `natural`
        self._joined: dict[tuple[int, Axes], Place] = {}  # cache of `join`
        # by value id: cost and the earliest stage for users in other clusters, in lists, which need
        # less memory than dicts; the consumer of each use, the clusters that use it
        self._costs: list[int] = []
        self._ready: list[int] = []
        self._consumers: dict[int, list[Value]] = {}
        self._users: dict[int, set[Cluster]] = {}
        # by stage and space: the cluster, and if it is full the next stage to try
        self._open_clusters: dict[tuple[int, Shape], Cluster] = {}
        self._next_stage: dict[tuple[int, Shape], int] = {}
        self.live = self._find_live()
        self._early = {a.id for value in self.live for a in value.early_arguments()}
        for value in self.live:
            self._costs[value.id] = self._cost(value)
            value.place(self)
            self._ready[value.id] = self._when_ready(value)
        for value in reversed(self.live):
            self._backward(value)
        for cluster in self.clusters:
            cluster.roots.reverse()
        self.calls.reverse()
        self._consumers.clear()  # kernels, which are emitted next, need the memory

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

    def natural(self, value: Value) -> tuple[Shape, Axes]:
        """The space of a value by itself, and the axes of the value in it."""
        found = self._natural.get(value.shape)
        if found is None:
            found = self.without_ones(self.shape(value)), self.own_axes(value.shape)
            self._natural[value.shape] = found
        return found

    def without_ones(self, shape: Iterable) -> Shape:
        """A shape without the lengths that are the constant 1."""
        return tuple(d for d in shape if d.value != 1)

    def _find_live(self) -> list[Value]:
        """The values that the outputs need, in order; sets ``must_store`` and the consumers."""
        values = self.builder.values
        roots = [*self.outputs, *(values[i] for i in self.builder.pinned)]
        roots += [v for v in values if v.always_runs]
        roots += [v for guard in self.prerequisites.guards for v in guard.definers]
        self._root_ids.update(v.base.id for v in roots)
        self.must_store |= self._root_ids
        order = self._post_order(roots)
        if read_from_updates(self.prerequisites, roots, order):
            order = self._post_order(roots)
        result = [v for v in order if v.base is v and not v.is_number]
        self._costs, self._ready = [0] * len(values), [0] * len(values)
        for value in result:
            self.must_store.update(a.base.id for a in value.needed_in_memory())
            for arg in value.args:
                self._consumers.setdefault(arg.base.id, []).append(value)
        return result

    # ------------------------------------------------------------------------ forward
    def ready(self, base: Value) -> int:
        """The earliest stage at which a new cluster can use a value, which is no view."""
        return self._ready[base.id]

    def ready_args(self, value: Value) -> int:
        """The earliest stage at which a new cluster can use all arguments of a value."""
        memory = value.needed_in_memory()
        ready = [self._in_memory(a) if a in memory else self._ready[a.base.id] for a in value.args]
        return max(*ready, self.first_stage(value)) if ready else self.first_stage(value)

    def first_stage(self, value: Value) -> int:
        """The earliest stage at which the lengths and positions that a value uses are known."""
        definers = self.prerequisites.of(value).definers
        return max(map(self._in_memory, definers), default=0)

    def _in_memory(self, arg: Value) -> int:
        """The earliest stage that can load an argument from memory."""
        base = arg.base
        place = self.places.get(base.id)
        return self._ready[base.id] if place is None else place.cluster.stage + 1

    def _when_ready(self, value: Value) -> int:
        """The earliest stage at which another cluster can use a value."""
        if value.is_elementwise and self.is_recomputed(value):
            return self.ready_args(value)
        if value.id in self.places:
            return self.places[value.id].cluster.stage + 1
        if value.id in self.stages:
            return self.stages[value.id] + 1
        return self.ready_args(value)

    def _cost(self, value: Value) -> int:
        """The cost of computing a value from what is surely in memory, loads included."""
        if not value.is_elementwise:
            return 1
        total = value.cost()
        for arg in value.args:
            base = arg.base
            total += 1 if base.id in self.must_store else self._costs[base.id]
        return min(total, _SATURATED)

    def is_worth_storing(self, value: Value) -> bool:
        """Whether another kernel of the same cluster loads an elementwise value, if it can."""
        return self._costs[value.id] > CHEAP and bool(self.without_ones(self.shape(value)))

    def is_recomputed(self, value: Value) -> bool:
        """Whether other clusters compute an elementwise value themselves instead of loading it."""
        total = self._costs[value.id]
        if total <= CHEAP or (total <= CHEAP_SCALAR and not self.without_ones(self.shape(value))):
            return True
        consumers = self._consumers.get(value.id, ())
        if value.id in self.must_store or len(consumers) != 1 or total > MOVABLE:
            return False
        return not self._is_better_stored(value, consumers[0])

    def _is_better_stored(self, value: Value, consumer: Value) -> bool:
        """Whether inlining a value into its consumer's loops would waste work.

        That is so if elements would be computed more than once.  For an expensive function such as
        log it is so too if the value does not vary with all loops, because it could be computed
        one element at a time, without SIMD.
        """
        axes = self.own_axes(consumer.loops())
        rank = len({*axes} - {None})
        for arg in consumer.args:
            if arg.base is not value:
                continue
            moving = {axes[k] for k in arg.varying_axes()} - {None}
            if moving and self._costs[value.id] >= EXPENSIVE:
                wasteful = len(moving) < rank
            else:
                wasteful = moving != set(range(len(moving)))
            if wasteful:
                return True
        return False

    def is_only_for_one(self, value: Value) -> bool:
        """Whether a value has one user, and no output or length is made of it."""
        return len(self._consumers[value.id]) == 1 and value.id not in self._root_ids

    def own_axes(self, shape: Iterable) -> Axes:
        """The axis of the space for each axis of a shape; None for those of constant length 1."""
        axes: list[int | None] = []
        count = 0
        for d in shape:
            one = self.builder.canonical(d).value == 1
            axes.append(None if one else count)
            count += not one
        return tuple(axes)

    # ----- places
    def assign(self, value: Value, place: Place) -> None:
        """Assign a value to its place."""
        self.places[value.id] = place
        self._count(place.cluster, value)

    def join(self, value: Value, cluster: Cluster, axes: Axes, inner: dict[int, int]) -> None:
        """Assign an elementwise value to a cluster; ``inner`` is as from `stage`."""
        if cluster.number in inner:
            cluster.inner = inner[cluster.number]
        key = cluster.number, axes
        place = self._joined.get(key)
        if place is None:
            place = self._joined[key] = Place(cluster, axes)
        self.assign(value, place)

    def stage(self, value: Value, space: Shape, axes: Axes) -> tuple[int, dict[int, int]]:
        """The earliest stage for a value placed at ``axes`` of a space.

        Also, by number of cluster, the inner dimensions that the cluster must have if the value
        joins it.
        """
        # stage 0 is reserved for early arguments, so that any cluster can contain their users
        stage = 1 if self._early and value.id not in self._early else 0
        stage = max(stage, self.first_stage(value))
        inner: dict[int, int] = {}
        memory = value.needed_in_memory()
        for arg in value.args:
            if arg in memory:
                stage = max(stage, self._in_memory(arg))
                continue
            found = self.fused_place(arg, space, axes)
            count = arg.base.inner_dims(found) if found is not None else 0
            if found is not None and count:
                cluster = found.cluster
                if inner.setdefault(cluster.number, cluster.inner or count) != count:
                    found = None
            stage = max(stage, self._ready[arg.base.id] if found is None else found.cluster.stage)
        return stage, inner

    def fused_place(self, arg: Value, space: Shape, axes: Axes) -> Place | None:
        """The place of an argument, if a consumer at ``axes`` can be in the same cluster."""
        base = arg.base
        place = self.places.get(base.id)
        if place is None or place.cluster.space != space or base.inner_dims(place) is None:
            return None
        if place.cluster.is_ragged and len(space) - 1 in axes:
            return None
        return place if arg.aligned(self, axes) == place.axes else None

    def outer_place(self, value: Value) -> tuple[Cluster, Axes] | None:
        """A cluster of an argument in which an elementwise value fits at the outer level."""
        memory = value.needed_in_memory()
        for arg in value.args:
            base = arg.base
            place = self.places.get(base.id)
            if place is None or arg in memory:
                continue
            inner = base.inner_dims(place)
            if inner == 0 and not place.is_full():
                inner = place.cluster.inner
            if not inner:
                continue
            axes = self._pull_axes(value, arg, place)
            if axes is not None and all(
                a is None or a < len(place.cluster.space) - inner for a in axes
            ):
                return place.cluster, axes
        return None

    def _pull_axes(self, value: Value, arg: Value, place: Place) -> Axes | None:
        """The axes of the space for a value such that its argument is aligned with ``place``.

        None if there are none: the argument is broadcast, or the value reads only a part of it.
        """
        axes: list[int | None] = [None] * value.ndim
        for k, space_axis in enumerate(place.axes):
            axis = arg.axis_of(k)
            if space_axis is not None and axis is not None:
                axes[axis] = space_axis
        if self.without_ones(self.shape(value)) != tuple(
            place.cluster.space[a] for a in axes if a is not None
        ):
            return None
        return tuple(axes) if arg.aligned(self, tuple(axes)) == place.axes else None

    # ----- clusters
    def cluster(self, stage: int, space: Shape, value: Value) -> Cluster:
        """The cluster of a space at a stage, or at the first later stage where one has room."""
        passed = []
        while True:
            key = (stage, space)
            cluster = self._open_clusters.get(key)
            if cluster is None:
                cluster = self._open_clusters[key] = self.new_cluster(stage, space)
            if key not in self._next_stage and self.has_room(cluster, value):
                break
            passed.append(key)
            stage = self._next_stage.setdefault(key, stage + 1)
        for key in passed:
            self._next_stage[key] = stage
        return cluster

    def new_cluster(self, stage: int, space: Shape) -> Cluster:
        """A cluster that no other value joins by itself."""
        cluster = Cluster(len(self.clusters), stage, space)
        self.clusters.append(cluster)
        return cluster

    def has_room(self, cluster: Cluster, value: Value) -> bool:
        """Whether a cluster stays within the limits of one kernel with a value added."""
        loads = len(cluster.loads | self._loads(value, cluster.space))
        fits = cluster.size + value.weight() <= MAX_INSTRUCTIONS and loads <= MAX_OPERANDS - 4
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
                base = arg.base
                if base.id in seen or base.is_number:
                    continue
                seen.add(base.id)
                if not base.is_elementwise or base.id in self.must_store:
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
        cluster.size += value.weight()
        cluster.loads |= self._loads(value, cluster.space)

    # ----------------------------------------------------------------------- backward
    def _backward(self, value: Value) -> None:
        """Decide whether a value is stored; its users come before."""
        computed_in = value.settle(self, self._users.pop(value.id, set()))
        if computed_in:
            for arg in value.args:
                if not arg.base.is_number:
                    self._users.setdefault(arg.base.id, set()).update(computed_in)

    def store(self, value: Value, home: Cluster) -> None:
        """Let a cluster store a value."""
        self.stored.add(value.id)
        home.roots.append(value)

    def is_left_unstored(self, value: Value, home: Cluster, users: set[Cluster]) -> bool:
        """Whether the users of an elementwise value compute it themselves."""
        total = self._costs[value.id]
        if users <= {home} or total <= CHEAP:
            return True
        if self.is_recomputed(value) and (len(users) > 1 or self._must_recompute(home, users)):
            return True
        if len(users) > 1 or total > MOVABLE:
            return False
        (cluster,) = users
        if any(self._is_better_stored(value, c) for c in self._consumers.get(value.id, ())):
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
