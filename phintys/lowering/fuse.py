"""Which values are computed together in one loop nest, and which are kept in memory.

A *cluster* becomes one kernel: values that share an iteration *space* (a tuple of lengths, those of
constant length 1 left out).  The assignment is one pass forward and one pass backward.

Forward: each value gets the earliest *stage* at which it can be computed.  An argument in the same
cluster costs nothing (the value joins it); any other argument that has to be in memory must
come from an earlier stage.  Values of one stage and one space form a cluster; an edge between two
clusters always leads to a later stage, so clusters cannot depend on each other in a circle, and no
search is needed to know it.

Backward: each value learns which clusters want it.  One that is cheap is computed again in each;
one that a single other cluster wants is computed there; one that several want is stored.

A reduction over the last dimensions of a space, and what follows from it with the remaining
dimensions, can stay within the cluster ("row level"): softmax is one kernel.
``Cluster.inner`` is then the number of dimensions reduced.
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

#: bounds of one kernel
MAX_INSTRUCTIONS = 300
MAX_OPERANDS = 24
#: what may be computed again rather than stored
CHEAP = 4
CHEAP_SCALAR = 40
#: what may move into the only cluster that wants it
MOVABLE = 100
_SATURATED = 10**6

Axes = tuple[int | None, ...]
Elementwise = (Map, Gather, Index)


@dataclass(eq=False, slots=True)
class Cluster:
    """Values to be computed in one loop nest over ``space``."""

    number: int
    stage: int
    space: Shape
    inner: int | None = None
    size: int = 0
    loads: set[int] = field(default_factory=set)
    roots: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Place:
    """Where a value is computed: at point ``i`` of its cluster's space, its element ``i[axes]``.

    ``reduced``: for a `Reduce` the axes of the space that are reduced; ``source`` the place of the
    argument's axes in the space.
    """

    cluster: Cluster
    axes: Axes
    reduced: frozenset[int] = frozenset()
    source: Axes = ()


class Fusion:
    """The result: ``places`` by value id, ``stored`` ids, ``clusters`` and ``others`` (calls)."""

    def __init__(self, builder: Builder, outputs: Iterable[Value]):
        self.builder = builder
        self.outputs = list(outputs)
        self.prerequisites = Prerequisites(builder)
        self.places: dict[int, Place] = {}
        self.clusters: list[Cluster] = []
        self.others: list[Value] = []
        self.stored: set[int] = set()
        self.stages: dict[int, int] = {}  # of values that are not elementwise
        self.forced: set[int] = set()  # to be in memory in any case
        self.continued: dict[int, Update] = {}  # updates whose memory only another one goes on with
        self._asked: set[int] = set()
        self._shapes: dict[Shape, Shape] = {}
        self._ones: dict[Shape, frozenset[int]] = {}
        self._prices: dict[int, int] = {}
        self._ready: dict[int, int] = {}
        self._consumers: dict[int, list[tuple[Value, Value]]] = {}
        self._open: dict[tuple[int, Shape], Cluster] = {}
        self._next: dict[tuple[int, Shape], int] = {}
        self._wanted: dict[int, set[Cluster]] = {}
        self.live = self._find_live()
        self._fills = {v.args[0].id for v in self.live if _adds_to_constant(v)}
        for value in self.live:
            self._forward(value)
        for value in reversed(self.live):
            self._backward(value)
        for cluster in self.clusters:
            cluster.roots.reverse()
        self.others.reverse()

    # -------------------------------------------------------------------- preparation
    def _post_order(self, roots: list[Value]) -> list[Value]:
        """Values after what they depend on, near to it: related values meet in one cluster."""
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
                stack.extend((v, False) for v in self.prerequisites.of(value).definers)
        return result

    def shape(self, value: Value) -> Shape:
        """The shape with equal lengths identified; all facts are known by now."""
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

    def core(self, shape: Iterable) -> Shape:
        """Without lengths of constant 1."""
        return tuple(d for d in shape if d.value != 1)

    def _find_live(self) -> list[Value]:
        """What the outputs need, in order; marks what has to be in memory in any case."""
        values = self.builder.values
        roots = [*self.outputs, *(values[i] for i in self.builder.pinned)]
        roots += [v for v in values if isinstance(v, PythonCall)]
        self._asked.update(base_of(v).id for v in roots)
        self.forced |= self._asked
        order = self._post_order(roots)
        if read_from_updates(self.prerequisites, roots, order):
            order = self._post_order(roots)
        result: list[Value] = []
        for value in order:
            if isinstance(value, (Literal, Length)):  # in the code of what uses them
                self._prices[value.id] = self._ready[value.id] = 0
            elif not isinstance(value, View):
                result.append(value)
        for value in result:
            self.forced.update(base_of(a).id for a in needed_in_memory(value))
            for arg in value.args:
                self._consumers.setdefault(base_of(arg).id, []).append((value, arg))
        return result

    # ------------------------------------------------------------------------ forward
    def _forward(self, value: Value) -> None:
        self._prices[value.id] = self._price(value)
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
        """The earliest stage at which all arguments are there for another cluster."""
        memory = needed_in_memory(value)
        ready = [
            self._in_memory(a) if a in memory else self._ready[base_of(a).id] for a in value.args
        ]
        return max(*ready, self._first_stage(value)) if ready else self._first_stage(value)

    def _first_stage(self, value: Value) -> int:
        """The earliest stage that knows the lengths and positions a value is made with."""
        definers = self.prerequisites.of(value).definers
        return max(map(self._in_memory, definers), default=0)

    def _in_memory(self, arg: Value) -> int:
        """The earliest stage that finds a value in memory."""
        base = base_of(arg)
        place = self.places.get(base.id)
        return self._ready[base.id] if place is None else place.cluster.stage + 1

    def _when_ready(self, value: Value) -> int:
        """The earliest stage of another cluster that can use a value."""
        if isinstance(value, Elementwise) and self.repeatable(value):
            return self._ready_args(value)
        if value.id in self.places:
            return self.places[value.id].cluster.stage + 1
        if value.id in self.stages:
            return self.stages[value.id] + 1
        return self._ready_args(value)

    def _price(self, value: Value) -> int:
        """What computing a value from what is in memory costs, loads included."""
        if not isinstance(value, Elementwise):
            return 1
        price = 5 * (len(value.args) - 1) if isinstance(value, Gather) else 1
        if isinstance(value, Map):
            price = sum(cost(i) for i in value.body)
        for arg in value.args:
            base = base_of(arg)
            price += 1 if base.id in self.forced else self._prices[base.id]
        return min(price, _SATURATED)

    def repeatable(self, value: Value) -> bool:
        """Whether other clusters compute an elementwise value themselves."""
        price = self._prices[value.id]
        if price <= CHEAP or (price <= CHEAP_SCALAR and not self.core(self.shape(value))):
            return True
        consumers = self._consumers.get(value.id, ())
        if value.id in self.forced or len(consumers) != 1 or price > MOVABLE:
            return False
        return not self._repeats(*consumers[0])

    def _repeats(self, consumer: Value, arg: Value) -> bool:
        """Whether a consumer's loops would compute elements of an argument repeatedly.

        Or dearly: what stays the same in the innermost loop is computed one by one, which for
        functions such as log takes longer than computing many at once and storing them.
        """
        shape = consumer.shape
        if isinstance(consumer, Update):
            shape = consumer.region
        elif isinstance(consumer, Reduce):
            shape = consumer.args[0].shape
        axes = self.own_axes(shape)
        moving = {axes[k] for k in _moving(arg)} - {None}
        if moving and self._prices[base_of(arg).id] >= EXPENSIVE:
            return len(moving) < len({*axes} - {None})
        return moving != set(range(len(moving)))

    def own_axes(self, shape: Iterable) -> Axes:
        """The place of each axis in the space without lengths of 1."""
        axes: list[int | None] = []
        count = 0
        for d in shape:
            one = self.builder.canonical(d).value == 1
            axes.append(None if one else count)
            count += not one
        return tuple(axes)

    # ----- elementwise values
    def _place_elementwise(self, value: Value) -> None:
        space, axes = self.core(self.shape(value)), self.own_axes(value.shape)
        stage, inner = self._stage(value, space, axes)
        row = self._row_place(value)
        if row is not None:
            row_stage, row_inner = self._stage(value, row[0].space, row[1])
            if row_stage < stage and self._has_room(row[0], value) and row_stage == row[0].stage:
                self._join(value, row[0], row[1], row_inner)
                return
        cluster = self._cluster(stage, space, value)
        self._join(value, cluster, axes, inner)

    def _join(self, value: Value, cluster: Cluster, axes: Axes, inner: dict[int, int]) -> None:
        self.places[value.id] = Place(cluster, axes)
        if cluster.number in inner:
            cluster.inner = inner[cluster.number]
        self._count(cluster, value)

    def _stage(self, value: Value, space: Shape, axes: Axes) -> tuple[int, dict[int, int]]:
        """The stage at which arguments are there, for a value at a place of a space.

        Also how many dimensions clusters would have to reduce for it.
        """
        # what scattered sums start from comes first, so that any cluster may contain the sums
        stage = 1 if self._fills and value.id not in self._fills else 0
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
        """The place of an argument, if a consumer at ``axes`` of the same cluster can use it."""
        base = base_of(arg)
        place = self.places.get(base.id)
        if place is None or isinstance(base, Update) or place.cluster.space != space:
            return None
        if isinstance(base, Reduce) and not self._at_row_level(place):
            return None
        return place if self.aligned(arg, axes) == place.axes else None

    def _at_row_level(self, place: Place) -> bool:
        """Whether the result of a reduction can be used in its own cluster."""
        count, rank = len(place.reduced), len(place.cluster.space)
        trailing = place.reduced == frozenset(range(rank - count, rank)) and count > 0
        return trailing and place.cluster.inner in (None, count)

    def aligned(self, arg: Value, axes: Axes) -> Axes | None:
        """The axes of a space that the base of an argument moves with; None if it is rearranged."""
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

    def _row_place(self, value: Value) -> tuple[Cluster, Axes] | None:
        """A cluster with reductions whose rows have the shape of an elementwise value."""
        memory = needed_in_memory(value)
        for arg in value.args:
            base = base_of(arg)
            place = self.places.get(base.id)
            if place is None or isinstance(base, Update) or arg in memory:
                continue
            if isinstance(base, Reduce):
                if not self._at_row_level(place):
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
        return len(set(place.axes) - {None}) == len(place.cluster.space)

    def _pull_axes(self, value: Value, arg: Value, place: Place) -> Axes | None:
        """The axes of a space for a value, such that its argument is aligned with its own place."""
        axes: list[int | None] = [None] * value.ndim
        for k, space_axis in enumerate(place.axes):
            axis = arg.axes[k] if isinstance(arg, View) else k
            if space_axis is not None and axis is not None:
                axes[axis] = space_axis
        if self.core(self.shape(value)) != tuple(
            place.cluster.space[a] for a in axes if a is not None
        ):
            return None  # the argument is repeated, or only a part of it is read
        return tuple(axes) if self.aligned(arg, tuple(axes)) == place.axes else None

    # ----- reductions
    def _place_reduce(self, value: Reduce) -> None:
        arg = value.args[0]
        space, axes = self.core(self.shape(arg)), self.own_axes(arg.shape)
        stage, inner = self._stage(value, space, axes)
        row = self._row_place_of_argument(value)
        if row is not None and row[0].stage < stage:
            cluster, axes = row
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

    def _row_place_of_argument(self, value: Reduce) -> tuple[Cluster, Axes] | None:
        """The cluster of an argument at row level: its rows are added up in memory."""
        arg = value.args[0]
        place = self.places.get(base_of(arg).id)
        if place is None or value.kind.startswith("arg") or not place.cluster.inner:
            return None
        if isinstance(arg, (View, Reduce, Update)) or self._is_full(place):
            return None
        return place.cluster, place.axes

    # ----- updates
    def _place_update(self, value: Update) -> None:
        space = self.core(self.builder.canonical(d) for d in value.region)
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
        """That of the values it adds to elements here and there, else one of its own."""
        ready = self._ready_args(value)
        if _is_scattered_sum(value):
            stage, inner = self._stage(value, space, self.own_axes(value.region))
            if stage < ready and not inner:
                return self._cluster(stage, space, value)
        return self._new_cluster(ready, space)

    def _continues(self, value: Update, base: Update) -> bool:
        """Whether single elements can be written one after the other in one kernel.

        Nothing but ``value`` may want the base, so that the stage of its cluster may be raised.
        """
        cluster = self.places[base.id].cluster
        plain = all(u.mode == "set" and not u.gathered for u in (value, base))
        alone = len(self._consumers[base.id]) == 1 and base.id not in self._asked
        return plain and alone and not cluster.space and self._has_room(cluster, value)

    # ----- clusters
    def _cluster(self, stage: int, space: Shape, value: Value) -> Cluster:
        """The cluster of a stage and space, or of the next stage with room."""
        passed = []
        while True:
            key = (stage, space)
            cluster = self._open.get(key)
            if cluster is None:
                cluster = self._open[key] = self._new_cluster(stage, space)
            if key not in self._next and self._has_room(cluster, value):
                break
            passed.append(key)
            stage = self._next.setdefault(key, stage + 1)
        for key in passed:
            self._next[key] = stage
        return cluster

    def _new_cluster(self, stage: int, space: Shape) -> Cluster:
        cluster = Cluster(len(self.clusters), stage, space)
        self.clusters.append(cluster)
        return cluster

    def _weight(self, value: Value) -> int:
        return len(value.body) if isinstance(value, Map) else 2

    def _has_room(self, cluster: Cluster, value: Value) -> bool:
        loads = len(cluster.loads | self._loads(value, cluster.space))
        fits = cluster.size + self._weight(value) <= MAX_INSTRUCTIONS and loads <= MAX_OPERANDS - 4
        return fits or cluster.size == 0

    def _loads(self, value: Value, space: Shape | None) -> set[int]:
        """What a kernel loads to compute a value.

        Values over its ``space`` are taken to be there, as long as their cluster has room (None:
        all are computed again).
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
                if not isinstance(base, Elementwise) or base.id in self.forced:
                    loads.add(base.id)
                    continue
                home = self.places[base.id].cluster
                if space is None or (home.space != space and self.repeatable(base)):
                    stack.append(base)
                elif home.space != space or (home.stage, space) in self._next:
                    loads.add(base.id)
        return loads

    def _count(self, cluster: Cluster, value: Value) -> None:
        cluster.size += self._weight(value)
        cluster.loads |= self._loads(value, cluster.space)

    # ----------------------------------------------------------------------- backward
    def _backward(self, value: Value) -> None:
        wanted = self._wanted.pop(value.id, set())
        if isinstance(value, Elementwise):
            within = self._settle_elementwise(value, wanted)
        elif isinstance(value, Reduce):
            within = self._settle_reduce(value, wanted)
        elif isinstance(value, Update):
            self.stored.add(value.id)
            within = {self.places[value.id].cluster}
            self.places[value.id].cluster.roots.append(value)
        else:
            if isinstance(value, (*CALLS, Empty, Reshape, Source)):
                self.stored.add(value.id)
            if isinstance(value, CALLS):
                self.others.append(value)
            return
        for arg in value.args:
            base = base_of(arg)
            if not isinstance(base, (Source, Literal, Length)):
                self._wanted.setdefault(base.id, set()).update(within)

    def _settle_elementwise(self, value: Value, wanted: set[Cluster]) -> set[Cluster]:
        """Store an elementwise value or not; the clusters that compute it."""
        home = self.places[value.id].cluster
        if value.id in self.forced or not self._leave_unstored(value, home, wanted):
            self.stored.add(value.id)
            home.roots.append(value)
            return {home} | {c for c in wanted if c.stage <= home.stage}
        return wanted

    def _leave_unstored(self, value: Value, home: Cluster, wanted: set[Cluster]) -> bool:
        price = self._prices[value.id]
        if wanted <= {home} or price <= CHEAP:
            return True
        if self.repeatable(value) and (len(wanted) > 1 or self._must_repeat(home, wanted)):
            return True
        if len(wanted) > 1 or price > MOVABLE:
            return False
        (cluster,) = wanted
        if any(self._repeats(c, a) for c, a in self._consumers.get(value.id, ())):
            return False
        loads = cluster.loads | self._loads(value, None)
        size = cluster.size + price
        if size > MAX_INSTRUCTIONS or len(loads) > MAX_OPERANDS - 4:
            return False
        cluster.size, cluster.loads = size, loads
        return True

    def _must_repeat(self, home: Cluster, wanted: set[Cluster]) -> bool:
        """Whether a cluster that wants a value may run before the value's own."""
        return any(c.stage <= home.stage for c in wanted)

    def _settle_reduce(self, value: Reduce, wanted: set[Cluster]) -> set[Cluster]:
        home = self.places[value.id].cluster
        if value.id in self.forced or wanted - {home}:
            self.stored.add(value.id)
            home.roots.append(value)
        return {home}


def _is_scattered_sum(value: Value) -> bool:
    """Whether a value is an array with numbers added at computed positions."""
    return isinstance(value, Update) and value.mode == "add" and bool(value.gathered)


def _adds_to_constant(value: Value) -> bool:
    """Whether a value is such a sum that starts from the same number everywhere."""
    start = value.args[0] if _is_scattered_sum(value) else None
    if not isinstance(start, Map):
        return False
    return all(isinstance(base_of(a), (Literal, Length)) for a in start.args)


def base_of(value: Value) -> Value:
    """The value that a view shows, or the value itself."""
    return value.args[0] if isinstance(value, View) else value


def _moving(arg: Value) -> set[int]:
    """The axes of an argument along which its base moves."""
    if isinstance(arg, View):
        return {a for a in arg.axes if a is not None}
    return {k for k, d in enumerate(arg.shape) if d.value != 1}
