"""The vectorized innermost loop of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir import division
from phintys.backends.llvm.ir.conversions import cast
from phintys.backends.llvm.ir.loops import Phis, counted_loop, pause, rarely
from phintys.backends.llvm.ir.types import Type
from phintys.backends.llvm.kernel import polling
from phintys.backends.llvm.kernel.lanes import INDEX, Lanes, Place, iota, is_scattered_sum
from phintys.backends.llvm.kernel.neighbours import Neighbours
from phintys.backends.llvm.kernel.reductions import Reduction, State
from phintys.lowering.costs import EXPENSIVE, cost


@dataclass(slots=True)
class Innermost:
    """The contents of one innermost loop.

    ``reductions`` are paired with the position of the value that they reduce.  The last
    ``len(totals)`` of them are ``accumulate`` instructions with a loop-invariant address: their
    result is accumulated after the loop.
    """

    positions: list[int]
    reductions: list[tuple[Reduction, int]]
    totals: list[int]
    width: int
    unroll: int

    def types(self) -> list[Type]:
        return [t for r, _ in self.reductions for t in r.types(self.width)]

    def identities(self) -> list[str]:
        return [x for r, _ in self.reductions for x in r.identity(self.width)]

    def split(self, flat: Sequence[str]) -> list[State]:
        """The states of the reductions, from the flat list of their vectors."""
        rest = iter(flat)
        return [tuple(next(rest) for _ in r.types(1)) for r, _ in self.reductions]

    def narrow(self) -> Innermost:
        """The loop with reductions that have narrow positions."""
        return replace(self, reductions=[(r.narrow(), value) for r, value in self.reductions])

    def merge(self, states: Sequence[State]) -> list[str]:
        return [x for state in states for x in state]


class VectorLoop:
    """The loop over the last dim, ``inner.width`` points at a time."""

    def __init__(self, lanes: Lanes, place: Place, inner: Innermost, origin: str) -> None:
        self.lanes, self.w = lanes, lanes.w
        self.place, self.inner = place, inner
        self.width = inner.width
        self.origin = origin  # flat position of the first point, for argmax
        self.length = lanes.length()
        self.insts = [lanes.kernel.body[p] for p in inner.positions]
        self.values = self._splats()
        lanes.divisors = self._divisors()
        packed = [i for i in self.insts if lanes.is_packed(i)]
        is_long = self.width > 1 and inner.unroll == 1 and not self.length.isdigit()
        self.neighbours = Neighbours(lanes, self.insts if is_long else [], self.width)
        loaded = {i.operand for i in packed if i.op != "store"}
        self.loaded = sorted(loaded - self.neighbours.shuffled)
        self.stored = sorted({i.operand for i in packed if i.op != "load"})
        self.packed = sorted({*self.loaded, *self.stored})
        self.scratch: dict[int, str] = {}

    def write(self, flat: list[str]) -> list[str]:
        """Emit the loop; returns the reductions' vectors after it, from those before it."""
        start = "0"
        if self.inner.unroll > 1:
            start, flat = self._unrolled(flat)
        rest = int(self.length) % self.width if self.length.isdigit() else None
        if self.width > 1 and self._has_single_rest():
            return self._with_single_rest(start, flat)
        if self.width > 1 and rest != 0:
            return self._with_tail(start, flat)
        span = (start, self.length, self.width)
        return counted_loop(self.w, span, self.inner.types(), flat, self._turn, self._block())

    def _block(self) -> str:
        """The length of a block; empty if the loop has none or follows an unrolled loop.

        Rows of cheap work are one block: a row that takes seconds would not fit in memory.
        """
        kernel = self.lanes.kernel
        unrolled = self.width > 1 and self.inner.unroll > 1
        rows = 1 < kernel.split == len(kernel.dims) and polling.is_cheap(self.insts)
        rows = rows and kernel.ragged is None  # rows that overlap may take longer together
        return "" if unrolled or rows else self.lanes.block(len(kernel.dims) - 1)

    # -------------------------------------------------------------------- one iteration

    def _splats(self) -> dict[int, str]:
        """Emit broadcasts of the values from outside that the body uses."""
        body, inner = self.lanes.kernel.body, self.inner
        used = dict.fromkeys(a for p in inner.positions for a in body[p].args)
        used |= dict.fromkeys(value for _, value in inner.reductions)
        inside = set(inner.positions)
        outside = [p for p in used if p not in inside]
        return {
            p: self.w.splat(Type(body[p].dtype, self.width), self.place.values[p]) for p in outside
        }

    def _divisors(self) -> dict[int, division.Divisor]:
        """Emit the `Divisor` of each loop-invariant divisor in the body."""
        if self.width == 1 or not self.w.target.has_fma:
            return {}
        used = {i.args[1]: i.dtype for i in self.insts if i.op == "div"}
        return {
            p: division.prepare(self.w, Type(dtype), self.place.values[p]).splat(
                self.w, Type(dtype, self.width)
            )
            for p, dtype in used.items()
            if p in self.values and dtype in division.DTYPES
        }

    def _turn(self, counter: str, flat: list[str]) -> list[str]:
        """Emit the body for whole vectors."""
        return self._body(self._whole(counter), flat)

    def _whole(self, counter: str) -> Place:
        offsets = [str(lane) for lane in range(self.width)]
        mask = Type("bool", self.width).literal(1)
        pointers, values = self.place.pointers, dict(self.values)
        return Place(self.width, pointers, values, counter, offsets, str(self.width), mask)

    def _body(self, place: Place, flat: list[str], turn: str = "") -> list[str]:
        """Emit the body; if ``turn`` is given, argmax keeps this iteration number as position."""
        inner = self.inner.narrow() if turn else self.inner
        self.lanes.run(place, inner.positions)
        states = []
        for (reduction, value), state in zip(inner.reductions, inner.split(flat)):
            position = ""
            if reduction.positional and turn:
                t = Type(reduction.position)
                number = turn if t.bits == 64 else self.w(f"trunc i64 {turn} to {t.text}")
                position = self.w.splat(t._replace(width=self.width), number)
            elif reduction.positional:
                first = self.w(f"add i64 {self.origin}, {place.counter}")
                position = self.lanes.positions(place, first)
            x = place.values[value]
            states.append(reduction.update(self.w, place.width, state, x, position))
        return inner.merge(states)

    # -------------------------------------------------------------------------- unrolled

    def _unrolled(self, flat: list[str]) -> tuple[str, list[str]]:
        """Emit the unrolled loop, with several accumulators; the counter at its end, and the sums.

        It starts with new accumulators after every `costs.SUM_TURNS` iterations.
        """
        w, types, narrow = self.w, self.inner.types(), self.inner.narrow()
        block = self.width * self.inner.unroll
        chunk_length, stop = costs.SUM_TURNS * block, self._rounded(block)
        if any(reduction.positional for reduction, _ in self.inner.reductions):
            stop = self._unless_short(stop, costs.POSITIONAL_TURNS * block)

        def chunk(start: str, flat: list[str]) -> list[str]:
            end = w.intrinsic("smin", INDEX, w(f"add i64 {start}, {chunk_length}"), stop)
            carried = narrow.identities() * narrow.unroll
            span, all_types = (start, end, block), narrow.types() * narrow.unroll

            def turns(counter: str, carried: list[str]) -> list[str]:
                turn = w(f"udiv i64 {w(f'sub i64 {counter}, {start}')}, {block}")
                return self._turns(counter, carried, turn)

            carried = counted_loop(w, span, all_types, carried, turns)
            parts = enumerate(self._copies(carried))
            states = [self._widened(narrow.split(part), start, copy) for copy, part in parts]
            while len(states) > 1:
                pairs = zip(states[::2], states[1::2], strict=True)
                states = [self._combined(a, b) for a, b in pairs]
            return self.inner.merge(self._combined(self.inner.split(flat), states[0]))

        length = self.lanes.block(len(self.lanes.kernel.dims) - 1)
        return stop, counted_loop(w, ("0", stop, chunk_length), types, flat, chunk, length)

    def _unless_short(self, stop: str, least: int) -> str:
        """Emit a select: ``stop`` if it is at least ``least``, else 0."""
        if stop.isdigit():
            return stop if int(stop) >= least else "0"
        return self.w(f"select i1 {self.w(f'icmp slt i64 {stop}, {least}')}, i64 0, i64 {stop}")

    def _turns(self, counter: str, carried: list[str], turn: str) -> list[str]:
        """Emit the unrolled body."""
        new: list[str] = []
        for copy, flat in enumerate(self._copies(carried)):
            at = self.w(f"add i64 {counter}, {copy * self.width}") if copy else counter
            new += self._body(self._whole(at), flat, turn)
        return new

    def _widened(self, states: list[State], start: str, copy: int) -> list[State]:
        """Emit positions, from the iteration numbers of a loop that began at ``start``."""
        w, block = self.w, self.width * self.inner.unroll
        result: list[State] = []
        for (reduction, _), (value, *turns) in zip(self.inner.reductions, states):
            for turn in turns:
                t = Type(reduction.narrow().position, self.width)
                wide = cast(w, t.of("int64"), t.dtype, turn)
                wide = w(f"mul {t.of('int64').text} {wide}, {t.of('int64').literal(block)}")
                first = w(f"add i64 {w(f'add i64 {self.origin}, {start}')}, {copy * self.width}")
                first = self.lanes.positions(self._whole("0"), first)
                turns = [w(f"add {t.of('int64').text} {wide}, {first}")]
            result.append((value, *turns))
        return result

    def _copies(self, carried: list[str]) -> list[list[str]]:
        """The accumulators of each of the unrolled vectors."""
        size = len(self.inner.types())
        return [carried[at : at + size] for at in range(0, len(carried), size)]

    def _combined(self, a: list[State], b: list[State]) -> list[State]:
        rows = zip(self.inner.reductions, a, b)
        return [r.combine(self.w, self.width, x, y) for (r, _), x, y in rows]

    def _rounded(self, block: int) -> str:
        """Emit the length rounded down to a multiple of ``block``."""
        if self.length.isdigit():
            return str(int(self.length) // block * block)
        return self.w(f"and i64 {self.length}, {-block}")

    # ------------------------------------------------------------------ one point at a time

    def _has_single_rest(self) -> bool:
        """Whether the points after whole vectors are computed one by one.

        Segments are short, often shorter than a vector, and memory is accessed lane by lane anyway.
        """
        cheap = all(cost(i) < EXPENSIVE for i in self.insts)
        return cheap and self.lanes.ragged is not None and self._needs_offsets

    def _with_single_rest(self, start: str, flat: list[str]) -> list[str]:
        """Emit the loop over whole vectors, then one over the rest, which adds to lane 0."""
        w, types = self.w, self.inner.types()
        full = self._rounded(self.width)
        span = (start, full, self.width)
        flat = counted_loop(w, span, types, flat, self._turn, self._block())
        singles = [w(f"extractelement {t.text} {x}, i64 0") for t, x in zip(types, flat)]
        ones = [t._replace(width=1) for t in types]

        def turn(counter: str, states: list[str]) -> list[str]:
            place = replace(self.place, values=dict(self.place.values), counter=counter)
            return self._body(place, states)

        singles = counted_loop(w, (full, self.length, 1), ones, singles, turn)
        return [
            w(f"insertelement {t.text} {x}, {one.text} {single}, i64 0")
            for t, one, x, single in zip(types, ones, flat, singles)
        ]

    # ------------------------------------------------------------------------- with tail

    def _with_tail(self, start: str, flat: list[str]) -> list[str]:
        """Emit the loop over whole vectors and one iteration for the rest, in scratch vectors."""
        w = self.w
        full, length = self._rounded(self.width), self._block()
        ends = [self._end(start, length, full)] if length else []
        before, loop, last = w.block, w.name("loop"), w.name("last")
        check, tail, after = w.name("check"), w.name("tail"), w.name("exit")
        entry, kept = before, list[str]()
        some = w(f"icmp slt i64 {start}, {full}")
        if not self.neighbours.groups:
            w.branch(some, loop, check)
        else:
            entry = w.name("enter")
            w.branch(some, entry, check)
            w.label(entry)
            kept = self.neighbours.start(self._whole(start))
            w.line(f"br label %{loop}")

        w.label(loop)
        phis = Phis(w)
        place, names = self._varying(phis)
        states = phis.add([t.text for t in self.inner.types()], "s")
        whole = self._edge_values(self._whole(start))
        phis.edge(entry, [start, *whole, *flat, *ends, *kept])
        ends = phis.add(["i64"] * len(ends), "e")
        kept = self.neighbours.load(place, phis.add(self.neighbours.types, "h"))
        self._read_ahead(place)
        new = self._body(place, states)
        following = w(f"add i64 {place.counter}, {self.width}")
        phis.edge(w.block, [following, *names, *new, *ends, *kept])
        w.branch(w(f"icmp slt i64 {following}, {ends[0] if length else full}"), loop, last)

        w.label(last)
        done = self._chosen(place.counter, states, new)
        leaving = self._write_back(place.counter, following, check)

        w.label(check)
        at_end = Phis(w)
        (at,) = at_end.add(["i64"], "i")
        finals = at_end.add([t.text for t in self.inner.types()], "s")
        at_end.edge(before, [start, *flat])
        for block in leaving:
            at_end.edge(block, [following, *done])
        w.branch(w(f"icmp slt i64 {at}, {self.length}"), tail, after)
        at_end.write()

        w.label(tail)
        kept = self.neighbours.start(self._whole(at))
        values, ends = self._next(at, full, length, whole)
        phis.edge(w.block, [at, *values, *finals, *ends, *kept])
        w.line(f"br label %{loop}")
        phis.write()
        w.label(after)
        return finals

    def _read_ahead(self, place: Place) -> None:
        """Emit the prefetch of a cache line."""
        if self.lanes.ahead:
            moved = self.w(f"mul i64 {place.counter}, {self.lanes.ahead}")
            address = self.w.at(self.lanes.arguments.ahead(), moved)
            self.w.declares.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
            # to read, into the L2 cache
            self.w.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 2, i32 1)")

    def _end(self, start: str, length: str, full: str) -> str:
        """Emit the end of the block that begins at ``start``."""
        end = length if start == "0" else self.w(f"add i64 {start}, {length}")
        return self.w.intrinsic("smin", INDEX, end, full)

    def _next(
        self, at: str, full: str, length: str, whole: list[str]
    ) -> tuple[list[str], list[str]]:
        """Emit the start of the next block, or of the tail; the varying parts, and the end.

        LLVM's loop passes want a single back edge, so both join in one basic block.
        """
        w = self.w
        if not length:
            return self._edge_values(self._partial(at)), []
        tail, again = w.name("tail"), w.name("again")
        rarely(w, w(f"icmp slt i64 {at}, {full}"), w.name("more"), tail)
        block, edge = w.block, [at, *whole, self._end(at, length, full)]
        pause(w, again)
        w.label(tail)
        partial = [at, *self._edge_values(self._partial(at)), full]
        last = w.block
        w.line(f"br label %{again}")
        w.label(again)
        phis = Phis(w)
        _, names = self._varying(phis)
        ends = phis.add(["i64"], "e")
        phis.edge(block, edge)
        phis.edge(last, partial)
        w.new_block()
        phis.write()
        return names, ends

    @property
    def _needs_offsets(self) -> bool:
        memory = [i for i in self.insts if i.op in ("load", "store", "accumulate")]
        return not all(map(self.lanes.is_packed, memory))

    @property
    def _needs_mask(self) -> bool:
        gathers = any(i.op == "wrap" or (i.op == "load" and i.args) for i in self.insts)
        return gathers or any(map(is_scattered_sum, self.insts))

    def _varying(self, phis: Phis) -> tuple[Place, list[str]]:
        """A place with phi nodes for the parts that differ in the tail; the names of the parts."""
        (counter,) = phis.add(["i64"], "i")
        addresses = phis.add(["ptr"] * len(self.packed), "a")
        place = self._whole(counter)
        place.pointers = list(place.pointers)
        for operand, address in zip(self.packed, addresses):
            place.pointers[operand] = address
        active = phis.add(["i64"], "n")
        place.active = active[0]
        offsets = phis.add(["i64"] * (self.width - 1), "o") if self._needs_offsets else []
        if offsets:
            place.offsets = ["0", *offsets]
        mask = phis.add([Type("bool", self.width).text], "k") if self._needs_mask else []
        if mask:
            place.mask = mask[0]
        return place, [*addresses, *active, *offsets, *mask]

    def _edge_values(self, place: Place) -> list[str]:
        """The incoming values, from ``place``, of the phi nodes that `_varying` adds."""
        addresses = [place.pointers[operand] for operand in self.packed]
        offsets = place.offsets[1:] if self._needs_offsets else []
        return [*addresses, place.active, *offsets, *([place.mask] if self._needs_mask else [])]

    def _partial(self, at: str) -> Place:
        """Emit the start of the tail; the place of the points from ``at`` on, in scratch memory."""
        w, place = self.w, self._whole(at)
        place.active = w(f"sub i64 {self.length}, {at}")
        place.mask = self._lanes_below(place.active)
        if self._needs_offsets:
            end = w(f"sub i64 {place.active}, 1")
            place.offsets = [
                w.intrinsic("umin", INDEX, str(lane), end) for lane in range(self.width)
            ]
        self._copy(at, place.active, self.loaded, inwards=True)
        back = w(f"sub i64 0, {at}")
        place.pointers = list(place.pointers)
        for operand in self.packed:
            cell = self.lanes.cell(operand)
            place.pointers[operand] = w(
                f"getelementptr {cell.memory}, ptr {self._scratch(operand)}, i64 {back}"
            )
        return place

    def _lanes_below(self, count: str) -> str:
        t = Type("int64", self.width)
        return self.w(f"icmp ult {t.text} {iota(self.width)}, {self.w.splat(t, count)}")

    def _chosen(self, counter: str, old: list[str], new: list[str]) -> list[str]:
        """Emit the selection of the new states in active lanes, the old ones in inactive lanes."""
        inner, w = self.inner, self.w
        if not inner.reductions:
            return []
        mask = self._lanes_below(w(f"sub i64 {self.length}, {counter}"))
        rows = zip(inner.reductions, inner.split(old), inner.split(new))
        return inner.merge([r.choose(w, self.width, mask, y, x) for (r, _), x, y in rows])

    def _write_back(self, counter: str, following: str, check: str) -> list[str]:
        """Branch to ``check``, in the tail after copying stores back; returns the predecessors."""
        w = self.w
        if not self.stored:
            w.line(f"br label %{check}")
            return [w.block]
        block, back = w.block, w.name("back")
        w.branch(w(f"icmp sgt i64 {following}, {self.length}"), back, check)
        w.label(back)
        left = w(f"sub i64 {self.length}, {counter}")
        self._copy(counter, left, self.stored, inwards=False)
        w.line(f"br label %{check}")
        return [block, w.block]

    def _copy(self, at: str, count: str, operands: list[int], inwards: bool) -> None:
        """Emit the copy of ``count`` points from ``at`` on to or from the scratch vectors.

        There are masked moves for elements of 4 and 8 bytes; others are copied one by one.
        """
        wide = [o for o in operands if _has_masked_moves(self.lanes.cell(o))]
        narrow = [o for o in operands if o not in wide]
        if wide:
            mask = self._lanes_below(count)
            for operand in wide:
                self._move(mask, at, operand, inwards)
        if narrow:
            self._copy_each(at, count, narrow, inwards)

    def _move(self, mask: str, at: str, operand: int, inwards: bool) -> None:
        """Emit a masked move between memory and the scratch vector."""
        w, cell = self.w, self.lanes.cell(operand)
        t, flags = Type(cell.dtype, self.width), Type("bool", self.width).text
        rest = f"i32 {cell.bytes}, {flags} {mask}"  # alignment, lanes
        near = f"ptr {self._scratch(operand)}, align 64"
        far = w(f"getelementptr {cell.memory}, ptr {self.place.pointers[operand]}, i64 {at}")
        if inwards:
            name = f"@llvm.masked.load.{t.suffix}.p0"
            w.declares.add(f"declare {t.text} {name}(ptr, i32, {flags}, {t.text})")
            x = w(f"call {t.text} {name}(ptr {far}, {rest}, {t.text} {t.literal(0)})")
            w.line(f"store {t.text} {x}, {near}")
            return
        name = f"@llvm.masked.store.{t.suffix}.p0"
        w.declares.add(f"declare void {name}({t.text}, ptr, i32, {flags})")
        x = w(f"load {t.text}, {near}")
        w.line(f"call void {name}({t.text} {x}, ptr {far}, {rest})")

    def _copy_each(self, at: str, count: str, operands: list[int], inwards: bool) -> None:
        w = self.w

        def turn(lane: str, _: list[str]) -> list[str]:
            position = w(f"add i64 {at}, {lane}")
            for operand in operands:
                cell = self.lanes.cell(operand)
                near = w(f"getelementptr {cell.memory}, ptr {self._scratch(operand)}, i64 {lane}")
                far = self.place.pointers[operand]
                far = w(f"getelementptr {cell.memory}, ptr {far}, i64 {position}")
                source, target = (far, near) if inwards else (near, far)
                x = w(f"load {cell.memory}, ptr {source}, align {cell.align}")
                w.line(f"store {cell.memory} {x}, ptr {target}, align {cell.align}")
            return []

        counted_loop(w, ("0", count, 1), [], [], turn)

    def _scratch(self, operand: int) -> str:
        if operand not in self.scratch:
            vector = Type(self.lanes.cell(operand).dtype, self.width)
            self.scratch[operand] = self.w.stack(vector.memory, 64)
        return self.scratch[operand]


def _has_masked_moves(cell: Type) -> bool:
    return cell.bytes >= 4 and cell.kind != "c"
