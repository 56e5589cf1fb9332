"""Values that loops over segments of flat data compute: the bounds of the loops are in memory.

The last loop of their kernel is ``ragged``, see `Kernel`: for each point of the outer loops it runs
over one segment.  Each value has a cluster of its own.  Elementwise arguments that are cheap are
computed inside; so are cheap elementwise functions of the result of a reduction, once for each
segment.  An argument that can fail is stored before, since a kernel computes only the elements that
are in a segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Union

from phintys.dims import ONE, ZERO, Dim
from phintys.graph.builder import At, Each, Row, Segments
from phintys.lowering.clusters import Cluster, Place
from phintys.lowering.elementwise import emit_body
from phintys.lowering.program import Inst, Operand
from phintys.lowering.protocols import Fusion, KernelWriter, Point
from phintys.lowering.values import Shape, Value

Element = Union[Each[Value], Row[Value], At[Value]]


class ElementFunction(NamedTuple):
    """Scalar instructions of elements; as in `Map`, the first positions are the arguments.

    ``kinds`` are the classes of the elements.
    """

    kinds: tuple[type[Element], ...]
    body: tuple[Inst, ...]
    result: int


class RaggedLoop(Value):
    """The base class.

    ``args``: an array to update, if any, and the vectors of the `At`, which are in memory; the
    starts and the stops; one value per element, for `At` the indices; then others.
    """

    __slots__ = ("fallible", "function", "length", "memory", "outer")
    in_kernels = True

    def __init__(
        self,
        dtype: str,
        shape: Shape,
        stored: tuple[Value, ...],
        segments: Segments[Value],
        elements: tuple[Element, ...],
        function: ElementFunction,
        more: tuple[Value, ...] = (),
    ):
        vectors = tuple(e.vector for e in elements if isinstance(e, At))
        varying = tuple(e.indices if isinstance(e, At) else e.value for e in elements)
        inside = (segments.starts, segments.stops, *varying, *more)
        super().__init__(dtype, shape, (*stored, *vectors, *inside))
        self.outer = segments.starts.shape
        self.length = segments.length
        self.function = function
        self.memory = len(stored) + len(vectors)  # the number of arguments in memory
        self.fallible = tuple(filter(_can_fail, inside))

    # ----- dependences and fusion
    def needed_in_memory(self) -> tuple[Value, ...]:
        return (*self.args[: self.memory], *self.fallible)

    def dims(self) -> Shape:
        return (*self.shape, *self.loops())

    def loops(self) -> Shape:
        return (*self.outer, self.length)

    def weight(self) -> int:
        return 4 + 3 * len(self.function.kinds) + len(self.function.body)

    def place(self, fusion: Fusion) -> None:
        find = fusion.builder.canonical
        space = (*fusion.without_ones(map(find, self.outer)), find(self.length))
        cluster = fusion.new_cluster(fusion.ready_args(self), space)
        cluster.is_ragged = True
        fusion.assign(self, Place(cluster, fusion.own_axes(self.shape)))

    # ----- emission
    def uses(self, writer: KernelWriter, index: Point) -> Sequence[tuple[Value, Point]]:
        """The bounds, then the values of the elements; of `At`, the indices."""
        kinds = self.function.kinds
        inside = self.args[self.memory : self.memory + 2 + len(kinds)]
        outer = writer.natural(writer.fusion.own_axes(self.outer))
        flat = self.flat(writer)
        points = [outer, outer, *(outer if kind is Row else flat for kind in kinds)]
        return list(zip(inside, points, strict=True))

    def flat(self, writer: KernelWriter) -> Point:
        """The index of flat data: the counter of the last loop."""
        return ((ZERO, ((len(writer.draft.space) - 1, ONE),)),)

    def element(self, writer: KernelWriter, args: Sequence[int]) -> int:
        """Emit the loop's bounds and the function; ``args`` are the positions of what it `uses`."""
        writer.draft.bound(args[0], args[1])
        kinds = self.function.kinds
        vectors = iter(self.args[self.memory - kinds.count(At) : self.memory])
        found: list[int] = []
        for kind, at in zip(kinds, args[2:], strict=True):
            found.append(self._load(writer, next(vectors), at) if kind is At else at)
        return emit_body(writer.draft, self.function.body, found)[self.function.result]

    def _load(self, writer: KernelWriter, vector: Value, at: int) -> int:
        """Emit the load of an element of a vector at an index."""
        slot, offset, strides = vector.address(writer.layouts)
        wrapped = self.wrapped(writer, at, vector.shape[0])
        still = (ZERO,) * len(writer.draft.space)
        return writer.draft.load(Operand(slot, still, offset, strides), (wrapped,))

    def wrapped(self, writer: KernelWriter, at: int, length: Dim) -> int:
        """Emit an index as a non-negative one; the kernel fails if one in a segment is too large.

        An index that does not vary is made to depend on the loop: there may be no element.
        """
        draft, last = writer.draft, len(writer.draft.space) - 1
        if last not in draft.axes(at):
            at = draft.along(at, last)
        return draft.emit("wrap", "int64", (at, draft.dim(writer.find(length))))


class RaggedReduce(RaggedLoop):
    """The reduction ``kind`` of a function over each segment."""

    __slots__ = ("kind",)

    def __init__(
        self,
        kind: str,
        dtype: str,
        segments: Segments[Value],
        elements: tuple[Element, ...],
        function: ElementFunction,
    ):
        super().__init__(dtype, segments.starts.shape, (), segments, elements, function)
        self.kind = kind

    def place(self, fusion: Fusion) -> None:
        super().place(fusion)
        fusion.places[self.id].cluster.inner = 1

    def inner_dims(self, place: Place) -> int | None:
        return 1

    def settle(self, fusion: Fusion, users: set[Cluster]) -> Iterable[Cluster]:
        home = fusion.places[self.id].cluster
        if self.id in fusion.must_store or users - {home}:
            fusion.store(self, home)
        return {home}

    def emit(self, writer: KernelWriter, index: Point, args: list[int]) -> int:
        value = self.element(writer, args)
        return writer.draft.emit("reduce", str(self.dtype), (value,), self.kind)

    def write(self, writer: KernelWriter, place: Place) -> None:
        value = writer.value(self, writer.natural(place.axes))
        writer.draft.store(writer.target(self, place.axes), value)


class RaggedUpdate(RaggedLoop):
    """A vector with elements set (mode ``set``) or added to (``add``), segment by segment.

    Element ``j`` of the flat data goes to position ``j``, or to position ``at[j]``: then ``at`` is
    the last argument.
    """

    __slots__ = ("mode", "moves")

    def __init__(
        self,
        base: Value,
        mode: str,
        segments: Segments[Value],
        elements: tuple[Element, ...],
        function: ElementFunction,
        at: Value | None = None,
    ):
        more = () if at is None else (at,)
        dtype, shape = str(base.dtype), base.shape
        super().__init__(dtype, shape, (base,), segments, elements, function, more)
        self.mode = mode
        self.moves = at is not None

    def initial(self) -> Value | None:
        return None if self.args[0].is_undefined else self.args[0]

    def settle(self, fusion: Fusion, users: set[Cluster]) -> Iterable[Cluster]:
        home = fusion.places[self.id].cluster
        fusion.store(self, home)
        return {home}

    def place(self, fusion: Fusion) -> None:
        super().place(fusion)
        fusion.places[self.id].cluster.loads.add(self.id)

    def write(self, writer: KernelWriter, place: Place) -> None:
        draft, flat = writer.draft, self.flat(writer)
        uses = self.uses(writer, flat)
        value = self.element(writer, [writer.value(v, i) for v, i in uses])
        slot, offset, strides = self.address(writer.layouts)
        operand = writer.operand(slot, offset, strides, flat)
        where: tuple[int, ...] = ()
        if self.moves:
            operand = Operand(slot, (ZERO,) * len(draft.space), offset, strides)
            where = (self.wrapped(writer, writer.value(self.args[-1], flat), self.shape[0]),)
        if self.mode == "add":
            draft.accumulate(operand, "add", value, where)
        else:
            draft.store(operand, value, where)


def _can_fail(value: Value) -> bool:
    """Whether a kernel that computes a value from what is in memory may fail."""
    stack, seen = [value], {value.id}
    while stack:
        base = stack.pop().base
        if base.can_fail:
            return True
        if base.is_elementwise:
            stack += [a for a in base.args if a.id not in seen]
            seen.update(a.id for a in base.args)
    return False
