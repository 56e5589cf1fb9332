"""The `Builder`: makes the values that an op's ``lower`` method returns.

    def lower(self, node, b, x):
        return b.map(lambda n, x: n.exp(x), x)

A method takes `Value` objects and returns one; nothing is computed.  Lengths are `Dim` or plain
integers.  Two lengths that must be equal, and cannot be proven equal, are compared at run time (a
`Check` with a message), and are the same Dim from then on.

>>> b = Builder()
>>> x, y = b.input("float64", (None, 3)), b.input("float64", (3,))
>>> z = b.map(lambda n, x, y: n.mul(x, y), x, y)
>>> b.reduce("add", z, (1,))
<Reduce 4: float64[('len', 0, 0)]>
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from phintys.dims import ONE, ZERO, Dim, DimLike, dim_max, dim_min
from phintys.graph.builder import At, Each, Looped, Row, Segments, Window
from phintys.graph.variable import Apply
from phintys.lowering.arrays import ArrayBuilder, NotNative
from phintys.lowering.calls import (
    BlasCall,
    BranchCall,
    DrawCall,
    ExternalCall,
    LoopCall,
    PythonCall,
    ScanCall,
)
from phintys.lowering.program import Check, Program, Slot, least_rows
from phintys.lowering.ragged import Element, ElementFunction, RaggedReduce, RaggedUpdate
from phintys.lowering.reductions import combination
from phintys.lowering.shapes import LoweredShapes
from phintys.lowering.values import Literal, Shape, Source, Value, View
from phintys.routines import Routine
from phintys.scalar.dtypes import is_complex
from phintys.scalar.native import COMPUTED_IN, DISTRIBUTIONS, NATIVE_DTYPES

__all__ = ["Builder", "NotNative"]


class Builder(ArrayBuilder):
    """Makes values: arrays (`ArrayBuilder`), matrix products, calls of Python, loops, branches.

    Its methods raise `NotNative` for dtypes that kernels do not support.
    """

    def result_shapes(self, node: Apply, *inputs: Value) -> list[Shape]:
        """The lengths of a node's results by the op's shape rule, whose requirements are checked.

        Raises `NotNative` if one is known only when the result is computed.
        """
        return LoweredShapes(self, node, inputs).results()

    def requirements(self, node: Apply, *inputs: Value) -> None:
        """Check what the op's shape rule requires; lengths of results need not be known.

        Raises `NotNative` if a requirement is known only when the result is computed.
        """
        LoweredShapes(self, node, inputs).run()

    # --------------------------------------------------------------------- segments
    def segments(self, starts: Value, stops: Value, length: DimLike) -> Segments[Value]:
        """Segments of flat data of a length: one per element of ``starts`` and ``stops``.

        The shapes of these integers broadcast.  A segment has no elements if it stops where it
        starts, or before.  The kernel fails (IndexError) if a start is negative or a stop is
        greater than ``length``, even if the segment has no elements.
        """
        rank = max(starts.ndim, stops.ndim)
        bounds = [self._pad_left(self.as_int64(v), rank) for v in (starts, stops)]
        shape = self.broadcast_shape([v.shape for v in bounds])
        first, end = (self.broadcast_to(v, shape) for v in bounds)
        return Segments(first, end, self.short(length))

    def reduce_segments(
        self,
        kind: str,
        segments: Segments[Value],
        fn: Callable[..., Any],
        *elements: Element,
        dtype: str | None = None,
    ) -> Value:
        """The reduction of ``fn(n, *scalars)`` over each segment; kinds as for `reduce`.

        ``elements`` say what the scalars are at position ``j`` of the flat data: `Each`, `Row` or
        `At`.  The result has the shape of the segments.  ``argmax`` and ``argmin`` count from the
        start of the segment.  A segment without elements gives the identity of the reduction, or
        position 0.

        >>> b = Builder()
        >>> x, ends = b.input("float64", (None,)), b.input("int64", (None,))
        >>> segments = b.segments(b.const(0), ends, b.length(x, 0))
        >>> b.reduce_segments("add", segments, lambda n, x: x, Each(x))
        <RaggedReduce 5: float64[('len', 1, 0)]>
        """
        spread = self._spread(segments, elements)
        function, found = self._element_function(fn, spread, dtype)
        if found in COMPUTED_IN:
            wide = self.reduce_segments(kind, segments, fn, *elements, dtype=COMPUTED_IN[found])
            return wide if kind.startswith("arg") else self.cast(wide, found)
        if is_complex(found):
            raise NotNative(f"segments of {found}")
        found = "int64" if kind.startswith("arg") else found
        kind = combination(kind, found)
        return self._add(RaggedReduce(kind, found, segments, spread, function))

    def update_segments(
        self,
        base: Value,
        mode: str,
        segments: Segments[Value],
        fn: Callable[..., Any],
        *elements: Element,
        at: Value | None = None,
    ) -> Value:
        """The vector ``base`` with ``fn(n, *scalars)`` set (mode ``set``) or added (``add``).

        The number that is computed at position ``j`` of the flat data goes to position ``j``, or to
        position ``at[j]``, which may be negative, as in `scatter`.  Elements outside of all
        segments do not change; where segments overlap, they follow each other in C order.
        """
        spread = self._spread(segments, elements)
        function, found = self._element_function(fn, spread, str(base.dtype))
        if is_complex(found):
            raise NotNative(f"segments of {found}")
        if at is None:
            self.unify(base.shape[0], segments.length, "segments: the lengths differ")
        else:
            at = self._flat(self.as_int64(at), segments)
        base = self.kept(base)
        return self._add(RaggedUpdate(base, mode, segments, spread, function, at))

    def _spread(
        self, segments: Segments[Value], elements: Sequence[Element]
    ) -> tuple[Element, ...]:
        """Elements whose values have the shape of the data, or of the segments (`Row`)."""
        found: list[Element] = []
        for element in elements:
            if isinstance(element, At):
                indices = self._flat(self.as_int64(element.indices), segments)
                found.append(At(self._addressed(element.vector), indices))
            elif isinstance(element, Each):
                found.append(Each(self._flat(element.value, segments)))
            else:
                found.append(Row(self.broadcast_to(element.value, segments.starts.shape)))
        return tuple(found)

    def _element_function(
        self, fn: Callable[..., Any], elements: Sequence[Element], dtype: str | None
    ) -> tuple[ElementFunction, str]:
        """A function of elements, and the dtype of its results."""
        values = [e.vector if isinstance(e, At) else e.value for e in elements]
        body, result, name = self._record(fn, tuple([v.dtype for v in values]), dtype)
        return ElementFunction(tuple([type(e) for e in elements]), body, result), name

    def _flat(self, value: Value, segments: Segments[Value]) -> Value:
        """A value with an element for each one of the data; numbers are repeated."""
        if value.ndim and self.length(value, 0).value != 1:
            self.unify(value.shape[0], segments.length, "segments: the lengths of the data differ")
        return self.broadcast_to(value, (segments.length,))

    # ------------------------------------------------------------- matrix products
    def matmul(self, x: Value, y: Value) -> Value:
        """``x @ y``: the matrix product; both have at least one axis, batch axes broadcast."""
        if x.ndim == 1 and y.ndim == 1:
            return self.dot(x, y)
        if y.ndim == 1 and x.ndim == 2:
            return self.gemv(x, y)
        if x.ndim == 1 and y.ndim == 2:
            return self.gemv(self.permute(y, (1, 0)), x)
        if x.ndim == 1:
            return self.squeeze(self.gemm(self.expand(x, 0), y), -2)
        if y.ndim == 1:
            return self.squeeze(self.gemm(x, self.expand(y, 1)), -1)
        return self.gemm(x, y)

    def gemm(
        self,
        a: Value,
        b: Value,
        c: Value | None = None,
        alpha: float | Value = 1.0,
        beta: float | Value = 1.0,
    ) -> Value:
        """``alpha * a @ b + beta * c`` of matrices; leading axes are batch axes and broadcast.

        float32 and float64 use BLAS, float16 as float32.  Other dtypes become an elementwise
        product and a sum.  Dtypes other than float32 and float64 ignore ``c`` and ``alpha``.
        Products of complex numbers raise `NotNative`: NumPy calls BLAS.
        """
        if a.dtype in COMPUTED_IN:
            return self._in_wide(self.gemm, a, b)
        _require_real(a)
        rank = max(a.ndim, b.ndim)
        a, b = self._pad_left(a, rank), self._pad_left(b, rank)
        k = self.unify(a.shape[-1], b.shape[-2], "matrix product: the inner lengths differ")
        batch = self.broadcast_shape([a.shape[:-2], b.shape[:-2]])
        m, n = self.length(a, -2), self.length(b, -1)
        if a.dtype not in ("float32", "float64"):
            return self._multiply_add(self.expand(a, -1), self.expand(b, -3), -2)
        a = self._matrix(self.broadcast_to(a, (*batch, m, k)))
        b = self._matrix(self.broadcast_to(b, (*batch, k, n)))
        shape = (*batch, m, n)
        beta = 0.0 if c is None else self._factor(beta)
        c, alpha = self._target(c, shape), self._factor(alpha)
        return self._add(BlasCall("gemm", (a, b), shape, (m, n, k), batch, c, alpha, beta))

    def gemv(
        self,
        a: Value,
        x: Value,
        y: Value | None = None,
        alpha: float | Value = 1.0,
        beta: float | Value = 1.0,
    ) -> Value:
        """``alpha * a @ x + beta * y`` of a matrix and vectors; dtypes as for `gemm`."""
        if a.dtype in COMPUTED_IN:
            return self._in_wide(self.gemv, a, x)
        _require_real(a)
        k = self.unify(a.shape[1], x.shape[0], "matrix-vector product: the lengths differ")
        m = self.length(a, 0)
        if a.dtype not in ("float32", "float64"):
            return self._multiply_add(a, self.expand(x, 0), -1)
        factors = (self._matrix(a), self._strided(x))
        beta = 0.0 if y is None else self._factor(beta)
        y, alpha = self._target(y, (m,)), self._factor(alpha)
        return self._add(BlasCall("gemv", factors, (m,), (m, k), (), y, alpha, beta))

    def ger(self, a: Value, x: Value, y: Value, alpha: float | Value = 1.0) -> Value:
        """``a + alpha * outer(x, y)`` of vectors and a matrix, float32 or float64."""
        _require_real(a)
        m, n = self.length(x, 0), self.length(y, 0)
        factors = (self._strided(x), self._strided(y))
        target, alpha = self._target(a, (m, n)), self._factor(alpha)
        return self._add(BlasCall("ger", factors, (m, n), (m, n), (), target, alpha, 1.0))

    def dot(self, x: Value, y: Value) -> Value:
        """The inner product of two vectors, as a product and a sum, which can be fused."""
        _require_real(x)
        return self._multiply_add(x, y, -1)

    def _in_wide(self, product_: Callable[..., Value], *factors: Value) -> Value:
        """A product of factors of one dtype, computed as `COMPUTED_IN` says, in their dtype."""
        dtype = str(factors[0].dtype)
        return self.cast(product_(*[self.cast(v, COMPUTED_IN[dtype]) for v in factors]), dtype)

    def _multiply_add(self, x: Value, y: Value, axis: int) -> Value:
        if x.dtype in COMPUTED_IN:
            return self._in_wide(lambda x, y: self._multiply_add(x, y, axis), x, y)
        if x.dtype == "bool":
            product_ = self.map(lambda n, x, y: n.__getattr__("and")(x, y), x, y)
            return self.reduce("or", product_, (axis,))
        return self.reduce("add", self.map(lambda n, x, y: n.mul(x, y), x, y), (axis,))

    def _factor(self, factor: float | Value) -> float | Value:
        if isinstance(factor, Literal):
            return float(factor.number)
        return self.kept(factor) if isinstance(factor, Value) else factor

    def _target(self, target: Value | None, shape: Shape) -> Value | None:
        return None if target is None else self.kept(self.broadcast_to(target, shape))

    def _matrix(self, x: Value) -> Value:
        """The value, or a copy if the strides of its last two axes are none that BLAS accepts."""
        x = self._addressed(x)
        if not isinstance(x, View):
            return x
        row, column = (_stride_kind(x, axis) for axis in (x.ndim - 2, x.ndim - 1))
        fits = None not in (row, column) and "unit" in (row, column)
        batch = all(x.axes.count(k) <= 1 for k in range(x.ndim))
        return x if fits and batch else self.contiguous(x)

    def _strided(self, x: Value) -> Value:
        """The vector, or a copy if its stride is none that BLAS accepts."""
        x = self._addressed(x)
        if isinstance(x, View) and _stride_kind(x, 0) is None:
            return self.contiguous(x)
        return x

    # ----------------------------------------------------------------------- scans
    def scan(self, kind: str, value: Value, axis: int) -> Value:
        """The running reductions ``add mul max min and or xor`` along an axis.

        Elements are combined in order, in the dtype of the value.
        """
        if value.dtype not in NATIVE_DTYPES:
            raise NotNative(str(value.dtype))
        if is_complex(str(value.dtype)):
            return self._by_parts(kind, value, lambda part: self.scan(kind, part, axis))
        kind = combination(kind, value.dtype)
        return self._add(ScanCall(kind, self._addressed(value), axis % value.ndim))

    # -------------------------------------------------------------------- routines
    def external(
        self,
        routine: Routine,
        dtype: str,
        integers: Sequence[DimLike],
        reads: Sequence[Value] = (),
        updates: Sequence[Value] = (),
        writes: Sequence[tuple[str, Sequence[DimLike]]] = (),
        batch: Sequence[DimLike] = (),
        work: DimLike = 1,
        scratch: Sequence[tuple[str, DimLike]] = (),
    ) -> list[Value]:
        """The arrays that a routine updates, then those that it writes, for each item of a batch.

        ``reads`` and ``updates`` have the axes of the batch first; ``writes`` are dtypes and shapes
        of items.  ``scratch`` are dtypes and lengths of workspaces, the last parameters of the
        routine: one block of memory each, which all items use in turn.  ``work`` estimates the
        number of operations for an item.  Raises `NotNative` if the routine has no version for the
        dtype, or SciPy lacks what it calls.
        """
        if not routine.is_available(dtype):
            raise NotNative(f"{routine.name} for {dtype}")
        batch = self._shape(batch)
        outer = 0 if routine.grouped else len(batch)  # axes of which an item is at one index
        args = [self._with_contiguous_items(v, outer) for v in reads]
        args += [self._array(v) for v in updates]
        slots = [self._result_slot(v.dtype, self.shape(v)) for v in updates]
        slots += [self._result_slot(d, (*batch, *self._shape(s))) for d, s in writes]
        lengths, work = self._shape(integers), self.short(work)
        blocks = tuple(self._result_slot(d, self._shape([n])) for d, n in scratch)
        call = ExternalCall(routine, dtype, lengths, tuple(args), tuple(slots), batch, work, blocks)
        self._add(call)
        return [self._add(Source(slot, (call,))) for slot in slots]

    # ---------------------------------------------------------------- random numbers
    def draw(
        self,
        name: str,
        rng: Value,
        parameters: Sequence[Value],
        shape: Sequence[DimLike],
        valid: Sequence[Value] = (),
    ) -> tuple[Value, Value]:
        """The generator after drawing, and random numbers of the given shape.

        ``name`` is a row of `DISTRIBUTIONS`.  Parameters are cast to its dtypes and broadcast.
        Before, it is checked that all elements of the flags ``valid`` are true.
        """
        dtype, dtypes, _ = DISTRIBUTIONS[name]
        given = [self.cast(p, d) for p, d in zip(parameters, dtypes, strict=True)]
        checked = tuple(self._violations(v) for v in valid)
        shape = self._shape(shape)
        args = [self.broadcast_to(self._addressed(p), shape) for p in given]
        state, target = self._result_slot(None, ()), self._result_slot(dtype, shape)
        call = self._add(DrawCall(name, (rng, *args), state, target, checked))
        return self._add(Source(state, (call,))), self._add(Source(target, (call,)))

    def _violations(self, valid: Value) -> Dim:
        """1 if a flag is false, else 0, which is checked."""
        bad = self.map(lambda n, x: n.not_(x), valid)
        found = self.item(self.cast(self.reduce("or", bad, tuple(range(bad.ndim))), "int64"))
        self.check(found, "==", 0, "parameters of a distribution are not valid")
        return found

    # ---------------------------------------------------------------------- python
    def python(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Value],
        outputs: Sequence[tuple[str | None, Sequence[int | None]]],
        name: str = "",
    ) -> list[Value]:
        """The results of ``function(*inputs)``, which returns a tuple.

        ``outputs``: the dtype and static lengths of each; the dtype None means any Python object.
        """
        slots = [
            self._slot("object" if dtype is None else "python", dtype, lengths)
            for dtype, lengths in outputs
        ]
        args = tuple(self._array(v) for v in inputs)
        call = self._add(PythonCall(function, args, tuple(slots), name))
        results: list[Value] = []
        for slot in slots:
            result = self._add(Source(slot, (call,)))
            for axis, d in enumerate(slot.shape):
                symbol = self.equalities.define(Dim.symbol(("len", slot.number, axis)), result.id)
                message = f"{name or 'result'}: the length of axis {axis} is not as declared"
                if symbol is not d:
                    self.checks.append((Check(symbol, "==", d, message), self.origin))
            results.append(result)
        return results

    # ---------------------------------------------------------------- control flow
    def inner(
        self,
        fgraph: Any,
        arguments: Sequence[Value | Window[Value]],
        fixed: bool = True,
        same: Mapping[int, int] | None = None,
        appended: Mapping[int, Callable[..., Any]] | None = None,
    ) -> Inner:
        """The Program of an inner graph whose inputs have the dtypes and shapes of ``arguments``.

        A `Window` stands for the rows that it passes to the body of a loop.  ``same`` says of
        outputs, by number, which input of the graph has the same lengths: they are checked if they
        are known only within the graph.  Raises `NotNative` if it is to be ``fixed``, and lengths
        of other outputs are known only within it.

        ``appended`` has functions for outputs, by number: ``function(object, output)`` returns a
        tuple with the next object.  The Program takes these objects first, and returns the next
        ones first, instead of the outputs.
        """
        types: list[tuple[str | None, Shape]] = []
        for v in arguments:
            if isinstance(v, Window):
                types += [(v.value.dtype, self.shape(v.value)[1:])] * len(v.reads)
            else:
                types.append((v.dtype, self.shape(v)))
        inner = self.lower_inner(fgraph, types, same or {}, appended or {})
        if fixed and not all(inner.fixed):
            raise NotNative("a length of an inner graph is known only within it")
        return inner

    #: set by ``from_graph``: (fgraph, dtypes and shapes of arguments, same, appended) -> Inner
    lower_inner: Callable[..., Inner]

    def loop(
        self,
        length: DimLike,
        body: Inner,
        states: Sequence[Value] = (),
        windows: Sequence[Window[Value]] = (),
        constants: Sequence[Value] = (),
        until: int | None = None,
    ) -> Looped[Value]:
        """The results of a body that runs ``length`` times.

        The body takes the states, the rows of the windows in order, and the constants, and returns
        the next states and other outputs.  A state keeps its dtype and shape.  All reads of an
        iteration see the values before it.  ``until`` is the number of a 0-d bool output that ends
        the loop after the iteration.  Rows that no iteration writes keep their values.
        """
        length = self.short(length)
        for k, state in enumerate(states):
            self._same_type(state.dtype, state.shape, body, k)
        windows = [self._window(w, length, body) for w in windows]
        args = [self._array(s) for s in states]
        args += [w.value for w in windows if not w.value.is_undefined]
        args += [self._array(c) for c in constants]
        finals = tuple(self._result_slot(s.dtype, self.shape(s)) for s in states)
        results = tuple(
            self._result_slot(w.value.dtype, self.shape(w.value)) if w.writes else None
            for w in windows
        )
        count = self._result_slot("int64", ())
        call = self._add(
            LoopCall(length, body.program, tuple(args), windows, finals, results, until, count)
        )
        return Looped(
            [self._add(Source(slot, (call,))) for slot in finals],
            [
                w.value if slot is None else self._add(Source(slot, (call,)))
                for w, slot in zip(windows, results)
            ],
            self._add(Source(count, (call,))),
        )

    def _window(self, window: Window[Value], length: Dim, body: Inner) -> Window[Value]:
        """A window with its array as a loop can use it; checks the number and types of rows."""
        value, reads, writes = window
        one, several = least_rows(reads, [offset for offset, _ in writes])
        if several > 1 or self.length(value, 0) is not length:
            needed = dim_min(length, ONE) * one
            if several > one:
                needed += dim_max(dim_min(length, Dim.const(2)) - 1, ZERO) * (several - one)
            self.check(self.length(value, 0), ">=", needed, "loop: an array has too few rows")
        for _, number in writes:
            self._same_type(value.dtype, value.shape[1:], body, number)
        if not writes:
            value = value if value.ndim == value.base.ndim else self.contiguous(value)
            return window._replace(value=self._with_contiguous_items(value, 1))
        value = self._base(value, "set")
        return window._replace(value=value if value.is_undefined else self._array(value))

    def branch(
        self, condition: Value, then: Inner, orelse: Inner, inputs: Sequence[Value]
    ) -> list[Value]:
        """The outputs of one of two Programs that take the same inputs.

        A length that is not known to be the same in both is known when the branch has run.  Raises
        `NotNative` if their outputs have different dtypes or ranks.
        """
        ranks = [[len(shape) for shape in inner.shapes] for inner in (then, orelse)]
        if ranks[0] != ranks[1] or then.dtypes != orelse.dtypes:
            raise NotNative("the two branches have outputs of different dtypes or ranks")
        slots = tuple(self._slot_of_branch(then, orelse, k) for k in range(len(ranks[0])))
        args = (self._array(self.cast(condition, "bool")), *(self._array(v) for v in inputs))
        call = self._add(BranchCall(then.program, orelse.program, args, slots))
        results = [self._add(Source(slot, (call,))) for slot in slots]
        for result, slot in zip(results, slots):
            if slot.kind == "python":
                for d in slot.shape:
                    self.equalities.define(d, result.id)
        return results

    def _slot_of_branch(self, then: Inner, orelse: Inner, number: int) -> Slot:
        """The slot of an output: memory, or an array that the branch makes if lengths differ."""
        dtype, first, second = then.dtypes[number], then.shapes[number], orelse.shapes[number]
        known = then.fixed[number] and orelse.fixed[number]  # others are no lengths of this Program
        same = known and all(self.canonical(a) is self.canonical(b) for a, b in zip(first, second))
        if dtype is None or same:
            return self._result_slot(dtype, self._shape(first))
        return self._slot("python", dtype, [None] * len(first))

    def _result_slot(self, dtype: str | None, shape: Shape) -> Slot:
        """A new slot for a result of a loop or branch."""
        slot = Slot(len(self.slots), "object" if dtype is None else "temp", dtype, shape)
        self.slots.append(slot)
        return slot

    def _same_type(self, dtype: str | None, shape: Shape, body: Inner, number: int) -> None:
        """Check that an output of a loop's body has the dtype and shape of what it replaces."""
        if dtype != body.dtypes[number] or len(shape) != len(body.shapes[number]):
            raise NotNative(f"output {number} of a loop has another type than what it replaces")
        for axis, (old, new) in enumerate(zip(shape, body.shapes[number])):
            message = f"loop: output {number} has another length along axis {axis}"
            self.unify(old, new, message)

    def _with_contiguous_items(self, value: Value, batch: int) -> Value:
        """The value, or a copy if its items are not contiguous in memory.

        An item is the value at an index of its first ``batch`` axes.
        """
        return value if self.has_contiguous_items(value, batch) else self._copied(value)

    def has_contiguous_items(self, value: Value, batch: int) -> bool:
        """Whether the items at all indices of the first axes are contiguous in memory."""
        base = value.base
        if base.is_number or base.owner is not base:
            return False
        if not isinstance(value, View):
            return True
        added = value.ndim - base.ndim  # batch axes along which the value is broadcast
        for axis in range(batch, value.ndim):
            own = axis - added
            moves = own >= 0 and (value.axes[own] == axis or base.shape[own].value == 1)
            if value.axes.count(axis) > 1:  # a diagonal
                return False
            if not moves or value.starts[own].value != 0 or value.steps[own].value != 1:
                return False
            if self.length(value, axis) is not self.length(base, own):
                return False
        return True

    def rows_or_columns(self, value: Value) -> tuple[Value, bool]:
        """Matrices whose rows are contiguous in memory, and whether they are the transposes."""
        batch = tuple(range(value.ndim - 2))
        turned = self.permute(value, (*batch, value.ndim - 1, value.ndim - 2))
        plain = self.has_contiguous_items(value, len(batch))
        if not plain and self.has_contiguous_items(turned, len(batch)):
            return turned, True
        return value, False

    def _copied(self, value: Value) -> Value:
        return self.contiguous(value) if isinstance(value, View) else self._array(value)


class Inner(NamedTuple):
    """The Program of an inner graph; dtypes and shapes of its outputs, in outer lengths.

    An output that is not ``fixed`` has lengths that are known only within the inner graph, instead.
    """

    program: Program
    dtypes: tuple[str | None, ...]
    shapes: tuple[Shape, ...]
    fixed: tuple[bool, ...]


def _stride_kind(view: View, axis: int) -> str | None:
    """The stride of an axis of a view: "unit", "strided", or None if BLAS does not accept it."""
    if view.shape[axis].value == 1:
        return "unit"
    sources = [k for k, a in enumerate(view.axes) if a == axis]
    if len(sources) != 1:
        return None
    step = view.steps[sources[0]].value
    if step is None or step <= 0:
        return None
    return "unit" if step == 1 and sources[0] == len(view.axes) - 1 else "strided"


def _require_real(x: Value) -> None:
    """`NotNative` for a complex factor of a matrix product."""
    if is_complex(str(x.dtype)):
        raise NotNative(f"a product of {x.dtype}")
