"""`Builder`: what the ``lower`` method of an op may call, as a protocol.

    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return b.map(lambda n, x: n.exp(x), inputs[0])

``V`` is the class of values: ops only pass them on, and see their dtype and shape.  The builder
that makes values, and documents each method, is in ``lowering/builder.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from phintys.dims import Dim, DimLike
from phintys.graph.shapes import Shape
from phintys.graph.variable import Apply
from phintys.routines import Routine


class Value(Protocol):
    """An array, or a Python object, that a Program computes."""

    @property
    def dtype(self) -> Any:
        """The name of the dtype; None for an object."""
        ...

    @property
    def shape(self) -> Shape: ...
    @property
    def ndim(self) -> int: ...


V = TypeVar("V", bound=Value)
#: for each axis of a region a position, or (start, step, length)
Region = Sequence[DimLike | tuple[DimLike, DimLike, DimLike]]


class Segments(NamedTuple, Generic[V]):
    """Segments ``starts[i]``, ..., ``stops[i] - 1`` of flat data of a length; made by the builder.

    ``starts`` and ``stops`` are int64 values of one shape.
    """

    starts: V
    stops: V
    length: Dim


class Each(NamedTuple, Generic[V]):
    """Element ``j`` of flat data: what a function of segments gets at position ``j``."""

    value: V


class Row(NamedTuple, Generic[V]):
    """An element of a value of the shape of the segments: that of the segment."""

    value: V


class At(NamedTuple, Generic[V]):
    """Element ``indices[j]`` of a vector.

    Indices are Python's: negative ones count from the end.  The kernel fails (IndexError) if one in
    a segment is out of range.
    """

    vector: V
    indices: V


Element = Each[V] | Row[V] | At[V]


class Window(NamedTuple, Generic[V]):
    """An array of rows that iterations of a `Builder.loop` read and write.

    Iteration ``t`` passes row ``(t + offset) % rows`` to the body for each offset in ``reads``, and
    writes output ``number`` of the body to row ``(t + offset) % rows`` for each (offset, number) in
    ``writes``.  Offsets are not negative.  Without ``writes`` it is a sequence; without ``reads``
    it stacks outputs; with both it holds the last values of a recurrence.
    """

    value: V
    reads: tuple[int, ...] = ()
    writes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Looped(Generic[V]):
    """The results of a loop.

    ``states`` are the final states, ``windows`` the arrays with the rows that were written,
    ``count`` the number of iterations that have run, as a 0-d int64.
    """

    states: list[V]
    windows: list[V]
    count: V


class Builder(Protocol[V]):
    """Makes values from values, and checks lengths.  Lengths are `Dim` or integers."""

    # ----- sources
    def const(self, value: Any, dtype: str | None = None) -> V:
        """A constant number or array."""
        ...

    def object(self, data: Any) -> V:
        """A constant Python object."""
        ...

    def scalar(self, dim: DimLike) -> V:
        """A length as a 0-d int64 value."""
        ...

    def vector(self, dims: Iterable[DimLike]) -> V:
        """Lengths as an int64 vector."""
        ...

    def index(self, axis: int, shape: Sequence[DimLike]) -> V:
        """The int64 position along an axis, as an array."""
        ...

    def iota(self, length: DimLike, dtype: str = "int64") -> V:
        """The vector 0, 1, ... length - 1."""
        ...

    # ----- lengths
    def length(self, value: V, axis: int) -> Dim:
        """The length of an axis."""
        ...

    def shape(self, value: V) -> Shape:
        """All lengths."""
        ...

    def canonical(self, dim: DimLike) -> Dim:
        """The representative of all lengths known to be equal to this one."""
        ...

    def item(self, value: V) -> Dim:
        """The integer in a 0-d value."""
        ...

    def items(self, value: V, count: int | None = None) -> Shape:
        """The integers in a vector."""
        ...

    def lengths(self, values: Sequence[V]) -> Shape:
        """The integers in 0-d values, checked as the lengths of one array."""
        ...

    def result_shapes(self, node: Apply, *inputs: V) -> list[Shape]:
        """The lengths of a node's results, by its shape rule, whose requirements are checked."""
        ...

    def requirements(self, node: Apply, *inputs: V) -> None:
        """Check what a node's shape rule requires; lengths of results need not be known."""
        ...

    def check(
        self,
        left: DimLike,
        relation: str,
        right: DimLike,
        message: str = "",
        is_position: bool = False,
    ) -> None:
        """Check ``left relation right`` at run time, unless it is proven."""
        ...

    def unify(self, left: DimLike, right: DimLike, message: str = "") -> Dim:
        """Check that two lengths are equal; their representative."""
        ...

    def position(self, position: DimLike, length: DimLike, axis: int) -> Dim:
        """A Python index as a non-negative position, checked to be in range."""
        ...

    def broadcast_shape(self, shapes: Sequence[Sequence[DimLike]]) -> Shape:
        """The shape that shapes of equal rank broadcast to."""
        ...

    # ----- elements
    def map(self, fn: Callable[..., Any], *values: V, dtype: str | None = None) -> V:
        """``fn(n, *scalars)`` for every element, where ``n`` makes instructions."""
        ...

    def cast(self, value: V, dtype: str) -> V:
        """The value converted to a dtype."""
        ...

    def contiguous(self, value: V) -> V:
        """A copy, C-contiguous in memory."""
        ...

    def reduce(self, kind: str, value: V, axes: Iterable[int], dtype: str | None = None) -> V:
        """The reduction ``add mul max min and or xor argmax argmin`` over axes."""
        ...

    def scan(self, kind: str, value: V, axis: int) -> V:
        """The running reduction ``add mul max min and or xor`` along an axis."""
        ...

    # ----- views
    def permute(self, value: V, order: Sequence[int]) -> V:
        """The axes in another order."""
        ...

    def expand(self, value: V, axis: int) -> V:
        """A new axis of length 1."""
        ...

    def squeeze(self, value: V, axis: int) -> V:
        """The value without an axis of length 1."""
        ...

    def slice(self, value: V, axis: int, start: DimLike, step: DimLike, length: DimLike) -> V:
        """Elements at regular distances along an axis."""
        ...

    def take(self, value: V, axis: int, position: DimLike) -> V:
        """The elements at one position of an axis, which is dropped."""
        ...

    def diagonal(self, value: V, axis1: int, axis2: int) -> V:
        """The main diagonal of two axes of equal length, as the last axis."""
        ...

    def broadcast_to(self, value: V, shape: Sequence[DimLike]) -> V:
        """The value repeated along axes of length 1."""
        ...

    def reshape(self, value: V, shape: Sequence[DimLike]) -> V:
        """The elements in C order with another shape."""
        ...

    def has_contiguous_items(self, value: V, batch: int) -> bool:
        """Whether the items at all indices of the first axes are contiguous in memory."""
        ...

    def rows_or_columns(self, value: V) -> tuple[V, bool]:
        """Matrices whose rows are contiguous, and whether they are the transposes."""
        ...

    # ----- parts
    def fill(self, value: V, shape: Sequence[DimLike]) -> V:
        """An array of one number."""
        ...

    def empty(self, dtype: str, shape: Sequence[DimLike]) -> V:
        """An array whose elements are not initialised, to be written by `update` or `loop`."""
        ...

    def gather(self, x: V, indices: Sequence[V], axes: Sequence[int]) -> V:
        """Elements at integer positions along some axes."""
        ...

    def join(self, values: Sequence[V], axis: int) -> V:
        """The values concatenated along an axis."""
        ...

    def update(self, base: V, region: Region, value: V, mode: str) -> V:
        """An array with a region overwritten (``"set"``) or added to (``"add"``)."""
        ...

    def scatter(
        self,
        base: V,
        indices: Sequence[V],
        axes: Sequence[int],
        value: V,
        mode: str,
        slices: int = 0,
    ) -> V:
        """An array with elements at integer positions overwritten or added to.

        The last ``slices`` of the indices are slices, along axes behind those of the others.
        """
        ...

    # ----- products of matrices
    def matmul(self, x: V, y: V) -> V:
        """``x @ y``, for vectors, matrices and batches."""
        ...

    def gemm(
        self, a: V, b: V, c: V | None = None, alpha: float | V = 1.0, beta: float | V = 1.0
    ) -> V:
        """``alpha * a @ b + beta * c`` of matrices and batches of them."""
        ...

    def gemv(
        self, a: V, x: V, y: V | None = None, alpha: float | V = 1.0, beta: float | V = 1.0
    ) -> V:
        """``alpha * a @ x + beta * y`` of a matrix and vectors."""
        ...

    def ger(self, a: V, x: V, y: V, alpha: float | V = 1.0) -> V:
        """``a + alpha * outer(x, y)``."""
        ...

    def dot(self, x: V, y: V) -> V:
        """The inner product over the last axis."""
        ...

    # ----- segments of flat data
    def segments(self, starts: V, stops: V, length: DimLike) -> Segments[V]:
        """Segments of flat data of a length: one per element of ``starts`` and ``stops``."""
        ...

    def reduce_segments(
        self,
        kind: str,
        segments: Segments[V],
        fn: Callable[..., Any],
        *elements: Element[V],
        dtype: str | None = None,
    ) -> V:
        """The reduction of a function of elements over each segment."""
        ...

    def update_segments(
        self,
        base: V,
        mode: str,
        segments: Segments[V],
        fn: Callable[..., Any],
        *elements: Element[V],
        at: V | None = None,
    ) -> V:
        """A vector whose elements at the positions of segments are set, or added to."""
        ...

    # ----- calls and control flow
    def external(
        self,
        routine: Routine,
        dtype: str,
        integers: Sequence[DimLike],
        reads: Sequence[V] = (),
        updates: Sequence[V] = (),
        writes: Sequence[tuple[str, Sequence[DimLike]]] = (),
        batch: Sequence[DimLike] = (),
        work: DimLike = 1,
        scratch: Sequence[tuple[str, DimLike]] = (),
    ) -> list[V]:
        """The arrays that a routine updates, then those that it writes, for each item.

        ``scratch`` are dtypes and lengths of workspaces, which all items share.
        """
        ...

    def draw(
        self,
        name: str,
        rng: V,
        parameters: Sequence[V],
        shape: Sequence[DimLike],
        valid: Sequence[V] = (),
    ) -> tuple[V, V]:
        """The generator after drawing, and random numbers, if the flags ``valid`` are all true."""
        ...

    def python(
        self,
        function: Callable[..., Any],
        inputs: Sequence[V],
        outputs: Sequence[tuple[str | None, Sequence[int | None]]],
        name: str = "",
    ) -> list[V]:
        """The results of a Python function, with their dtypes and static lengths."""
        ...

    def inner(
        self,
        fgraph: Any,
        arguments: Sequence[V | Window[V]],
        fixed: bool = True,
        same: Mapping[int, int] | None = None,
        appended: Mapping[int, Callable[..., Any]] | None = None,
    ) -> Any:
        """The Program of an inner graph, for `loop` and `branch`; a window stands for its rows.

        ``fixed``: whether the lengths of its results must be those of known lengths.  ``same``:
        outputs, by number, and the inputs of the graph whose lengths they have.  The Program checks
        lengths that follow from nothing else.  ``appended``: outputs for each of which the Program
        has an object as input and output instead, before the others; the function returns the
        next object, of the one given and the output.
        """
        ...

    def loop(
        self,
        length: DimLike,
        body: Any,
        states: Sequence[V] = (),
        windows: Sequence[Window[V]] = (),
        constants: Sequence[V] = (),
        until: int | None = None,
    ) -> Looped[V]:
        """The results of a body that runs ``length`` times, or until its output number ``until``.

        The body takes the states, the rows of the windows, and the constants; its first outputs are
        the next states.
        """
        ...

    def branch(self, condition: V, then: Any, orelse: Any, inputs: Sequence[V]) -> list[V]:
        """The outputs of one of two Programs that take the same inputs."""
        ...
