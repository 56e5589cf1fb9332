"""Kernels with short rows: vectors across the rows.

Vectors along a row of a few elements are mostly empty, and each row ends with a horizontal
reduction.  Where rows are short at run time, a second function processes as many of them at a time
as a vector has lanes, one row per lane, and its loop along the rows is an ordinary one::

    for i in 0, W, 2W, ... while W rows are left:
        for each phase:
            for j along the rows:  body for element j of W rows

Scratch memory of a row, and sums over all rows, become memory with a lane for each row.  The
kernel's main function handles the remaining rows.  Lengths alone decide which of the two functions
handles a row, so the order of sums depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.conversions import cast
from phintys.backends.llvm.ir.loops import counted_loop
from phintys.backends.llvm.ir.types import KernelWriter, Type
from phintys.backends.llvm.kernel import tiles
from phintys.backends.llvm.kernel.lanes import INDEX, Arguments, Lanes, Place, is_vector_function
from phintys.backends.llvm.kernel.reductions import Reduction
from phintys.backends.llvm.machine.target import Target
from phintys.dims import ONE
from phintys.lowering.program import Inst, Kernel
from phintys.lowering.schedule import Phase, Schedule


def _may_be_short(kernel: Kernel) -> bool:
    """Whether the rows of a kernel may be short and several can be processed at the same time."""
    if len(kernel.dims) < 2 or kernel.split < len(kernel.dims) - 1 or tiles.is_tiled(kernel):
        return False
    if kernel.ragged is not None or tiles.has_pairs(kernel):
        return False
    length = kernel.dims[-1].value
    if length is not None and not 0 < length <= costs.SHORT_ROW:
        return False
    written = [i for i in kernel.body if i.op in ("store", "accumulate")]
    if any(i.op == "call" and not is_vector_function(i) for i in kernel.body):
        return False
    if any(len(i.args) > 1 for i in written):
        return False
    return all(_is_apart(kernel, i) for i in written)


def _is_apart(kernel: Kernel, inst: Inst) -> bool:
    """Whether rows can write at the same time, if necessary to separate memory."""
    operand = kernel.operands[inst.operand]
    same = [o for o in kernel.operands if o.slot is operand.slot]
    stride = operand.strides[-2].value
    if inst.op == "accumulate":
        users = [i for i in kernel.body if i.operand >= 0 and _slot(kernel, i) is operand.slot]
        return len(users) == len(same) == 1 and stride in (0, 1)
    if stride == 0:
        return len(same) == 1 and inst.args[0] in _varying(kernel)
    return all(o == operand for o in same)


def _slot(kernel: Kernel, inst: Inst) -> object:
    return kernel.operands[inst.operand].slot


def _varying(kernel: Kernel) -> set[int]:
    """Positions of the values that may differ between rows."""
    row = len(kernel.dims) - 2
    varying: set[int] = set()
    kept: set[int] = set()  # operands with such values in memory
    for position, inst in enumerate(kernel.body):
        differs = not varying.isdisjoint(inst.args) or (inst.op == "index" and inst.param == row)
        if inst.op == "load":
            moves = kernel.operands[inst.param].strides[row].value != 0
            differs = differs or moves or inst.param in kept
        if differs:
            varying.add(position)
            if inst.op == "store":
                kept.add(inst.param)
    return varying


def short_rows(
    kernel: Kernel, plan: Schedule, arguments: Arguments, target: Target
) -> ShortRows | None:
    """The function for short rows of a kernel, None where there cannot be one."""
    if not _may_be_short(kernel):
        return None
    short = ShortRows(kernel, plan, arguments, target)
    rows, length = (d.value for d in kernel.dims[-2:])
    many = rows is None or rows >= short.width
    return short if short.width > 1 and many and (length or 0) <= short.longest else None


class ShortRows:
    """The function of a kernel for whole groups of rows; ``arguments`` are the kernel's own."""

    def __init__(
        self, kernel: Kernel, plan: Schedule, arguments: Arguments, target: Target
    ) -> None:
        self.kernel, self.arguments, self.w = kernel, arguments, KernelWriter(target)
        self.row = len(kernel.dims) - 2
        self.outer, self.phases = plan.outer, plan.phases or [Phase([[], plan.outer[-1]])]
        self.positions = plan.outer[self.row + 1]
        levels = [level for phase in self.phases for level in phase.levels]
        self.inside = [p for level in (self.positions, *levels) for p in level]
        written = [i for i in kernel.body if i.op in ("store", "accumulate")]
        still = [i for i in written if kernel.operands[i.operand].strides[-2].value == 0]
        self.own = [i.operand for i in still]  # operands with memory for each lane
        self.sums = [i for i in still if i.op == "accumulate"]
        self.width, self.longest, self.unless = self._sizes()
        self.once = Lanes(kernel, self.w, arguments)  # for code outside the loop over rows
        self.lanes = _RowLanes(kernel, self.own, self.w, arguments, self.width)

    def _sizes(self) -> tuple[int, int, int]:
        """The number of rows in a group, and the lengths of rows for which groups are faster.

        These are the lengths up to the second number that are no multiples of the third (0: any).
        """
        body = self.kernel.body
        used = {*self.inside, *(p for phase in self.phases for p in phase.reduces)}
        used |= {a for p in used for a in body[p].args}
        widest = max([Type(body[p].dtype).bytes for p in used], default=8)
        special = any(is_vector_function(body[p]) for p in used)
        register = self.w.target.vector_bytes // widest
        width = self.w.target.lanes(widest, costs.SPECIAL_VECTORS if special else 1)
        if self.kernel.is_reducing or self.sums:
            longest = min(costs.SHORT_ROW_VECTORS * width, costs.SHORT_ROW)
            return width, longest if special else costs.SHORT_ROW_CHEAP, 0
        # no reductions, and lanes are stored one by one, while vectors along rows are stored whole
        longest = self.w.target.lanes(widest, costs.SHORT_MAP_VECTORS) - 1
        return width, longest, 0 if special else register

    def first(self, w: KernelWriter) -> str:
        """The text of the function, and of its caller, which then calls the main function."""
        self._write()
        caller = KernelWriter(w.target)
        ask, rest = caller.name("ask"), caller.name("rest")
        caller.branch(self._suits(caller), ask, rest)
        caller.label(ask)
        # last, because emitting code adds arguments
        parameters = ", ".join(f"{a.type} {name}" for name, a in self.arguments.all())
        function = self.w.text(f"internal i64 @SYMBOL.short({parameters}) noinline nounwind")
        done = caller(f"call i64 @SYMBOL.short({parameters})")
        w.declares |= self.w.declares
        if self.can_fail:
            caller.require(caller(f"icmp sge i64 {done}, 0"), "fail")
        end = caller.block
        caller.line(f"br label %{rest}")
        caller.label(rest)
        done = caller(f"phi i64 [0, %entry], [{done}, %{end}]")
        caller.line(f"ret i64 {caller(f'call i64 @SYMBOL.rest({parameters}, i64 {done})')}")
        if self.can_fail:
            caller.label("fail")
            caller.line("ret i64 1")
        # without optimisation, like the routine that calls it: it contains no vectors
        return function + caller.text(f"i64 @SYMBOL({parameters}) noinline optnone nounwind")

    @property
    def can_fail(self) -> bool:
        """Whether the function may return -1; known once it has been emitted."""
        return self.lanes.can_fail or self.once.can_fail

    def _suits(self, w: KernelWriter) -> str:
        """Emit the test whether there are several rows, and they are short."""
        rows, length = (self.arguments.length(d) for d in self.kernel.dims[-2:])
        short = w(f"icmp sle i64 {length}, {self.longest}")
        suits = w(f"and i1 {short}, {w(f'icmp sge i64 {rows}, {self.width}')}")
        if self.unless:
            rest = w(f"and i64 {length}, {self.unless - 1}")
            suits = w(f"and i1 {suits}, {w(f'icmp ne i64 {rest}, 0')}")
        return suits

    def _write(self) -> None:
        """Emit the function.

        It returns the number of rows done, or -1 if an index is out of range or Python has set an
        exception.
        """
        w = self.w
        rows = self.arguments.length(self.kernel.dims[-2])
        self._whole = w(f"and i64 {rows}, {-self.width}")
        pointers = [self.once.base(n) for n in range(len(self.kernel.operands))]
        self._nest(0, Place(1, pointers, {}))
        w.line(f"ret i64 {self._whole}")
        if self.can_fail:
            w.label("fail")
            w.line("ret i64 -1")

    def _nest(self, depth: int, place: Place) -> None:
        """Emit the code inside ``depth`` outer loops."""
        self.once.run(place, self.outer[depth])
        if depth == self.row:
            self._rows(place)
            return

        def turn(counter: str, _: list[str]) -> list[str]:
            self.once.counters[depth] = self.lanes.counters[depth] = counter
            pointers = [
                self.once.advance(n, p, counter, self.kernel.operands[n].strides[depth])
                for n, p in enumerate(place.pointers)
            ]
            self._nest(depth + 1, replace(place, pointers=pointers, values=dict(place.values)))
            return []

        length, block = self.arguments.length(self.kernel.dims[depth]), self.once.block(depth)
        counted_loop(self.w, ("0", length, 1), [], [], turn, block)

    def _rows(self, place: Place) -> None:
        """Emit the loop over groups; before and after it, clear and add up the sums over rows."""
        self.lanes.prepare()
        pointers = list(place.pointers)
        for number in self.own:
            vector = Type(self.lanes.cell(number).dtype, self.width).memory
            pointers[number] = self.w.stack(f"[{costs.SHORT_ROW} x {vector}]", 64)
        for inst in self.sums:
            self._each(inst, pointers, lambda *turn: self.lanes.clear(*turn))
        values = self._splats(place)

        def group(counter: str, _: list[str]) -> list[str]:
            self._group(pointers, dict(values), counter)
            return []

        block = self.once.block(self.row, self.width)
        counted_loop(self.w, ("0", self._whole, self.width), [], [], group, block)
        for inst in self.sums:
            self._each(inst, pointers, lambda *turn: self._add_up(place, *turn))

    def _each(self, inst: Inst, pointers: list[str], do: Callable[[Inst, str, str], None]) -> None:
        """Emit a loop over the elements of a sum over rows.

        ``do(inst, address of the lanes' sums, counter)`` emits its body.
        """
        number = inst.operand

        def turn(counter: str, _: list[str]) -> list[str]:
            do(inst, self._along(number, pointers[number], counter), counter)
            return []

        moves = self.kernel.operands[number].strides[-1].value != 0
        length = self.arguments.length(self.kernel.dims[-1]) if moves else "1"
        counted_loop(self.w, ("0", length, 1), [], [], turn)

    def _add_up(self, place: Place, inst: Inst, address: str, counter: str) -> None:
        """Emit the accumulation of the sums of all lanes in one element."""
        number = inst.operand
        stride = self.kernel.operands[number].strides[-1]
        target = self.lanes.advance(number, place.pointers[number], counter, stride)
        self.lanes.add_up(inst, address, target)

    def _splats(self, place: Place) -> dict[int, str]:
        """Emit broadcasts of the values from outside that the loop uses."""
        body = self.kernel.body
        reduces = [p for phase in self.phases for p in phase.reduces]
        used = dict.fromkeys(a for p in [*self.inside, *reduces] for a in body[p].args)
        return {
            p: self.w.splat(Type(body[p].dtype, self.width), place.values[p])
            for p in used
            if p in place.values
        }

    def _group(self, pointers: list[str], values: dict[int, str], first: str) -> None:
        """Emit the body for the group of rows from ``first`` on."""
        lanes, operands = self.lanes, self.kernel.operands
        lanes.counters[self.row] = first
        pointers = [
            p if n in self.own else lanes.advance(n, p, first, operands[n].strides[-2])
            for n, p in enumerate(pointers)
        ]
        offsets = [str(lane) for lane in range(self.width)]
        mask = Type("bool", self.width).literal(1)
        place = Place(self.width, pointers, values, "0", offsets, str(self.width), mask)
        lanes.run(place, self.positions)
        for phase in self.phases:
            lanes.run(place, phase.levels[0])
            if phase.has_loop:
                self._along_rows(place, phase)

    def _along_rows(self, place: Place, phase: Phase) -> None:
        """Emit the loop along the rows of a group."""
        w, width, body = self.w, self.width, self.kernel.body
        reductions = [self._reduction(body[p]) for p in phase.reduces]
        types = [t for r in reductions for t in r.types(width)]

        def turn(counter: str, flat: list[str]) -> list[str]:
            self.lanes.counters[self.row + 1] = counter
            pointers = [self._along(n, p, counter) for n, p in enumerate(place.pointers)]
            inner = replace(place, pointers=pointers, values=dict(place.values), lanes={})
            self.lanes.run(inner, phase.levels[-1])
            states, new = iter(flat), []
            for p, r in zip(phase.reduces, reductions, strict=True):
                state = tuple(next(states) for _ in r.types(width))
                at = self._position(r, counter) if r.positional else ""
                new += r.update(w, width, state, inner.values[body[p].args[0]], at)
            return new

        flat = [x for r in reductions for x in r.identity(width)]
        length = self.arguments.length(self.kernel.dims[-1])
        states = iter(counted_loop(w, ("0", length, 1), types, flat, turn))
        for p, r in zip(phase.reduces, reductions, strict=True):
            result = [next(states) for _ in r.types(width)][-1]
            if r.positional:
                result = cast(w, INDEX._replace(width=width), r.position, result)
            place.values[p] = result

    def _reduction(self, reduce: Inst) -> Reduction:
        # positions in a short row fit into any integer type
        return Reduction(reduce.param, self.kernel.body[reduce.args[0]].dtype).narrow()

    def _position(self, reduction: Reduction, counter: str) -> str:
        one = Type(reduction.position)
        counter = counter if one.bits == 64 else self.w(f"trunc i64 {counter} to {one.text}")
        return self.w.splat(one._replace(width=self.width), counter)

    def _along(self, number: int, address: str, counter: str) -> str:
        """Emit the address of element ``counter`` of the rows of an operand."""
        stride = self.kernel.operands[number].strides[-1]
        if number not in self.own or stride.value == 0:
            return self.lanes.advance(number, address, counter, stride)
        vector = Type(self.lanes.cell(number).dtype, self.width).memory
        return self.w(f"getelementptr {vector}, ptr {address}, i64 {counter}")


class _RowLanes(Lanes):
    """Lanes that are the rows of a group; ``own`` operands have memory with a lane for each row."""

    def __init__(
        self, kernel: Kernel, own: list[int], w: KernelWriter, arguments: Arguments, width: int
    ) -> None:
        rows = [ONE if n in own else o.strides[-2] for n, o in enumerate(kernel.operands)]
        operands = tuple(
            # the stride from lane to lane comes last
            o._replace(strides=(*o.strides[:-2], o.strides[-1], stride))
            for o, stride in zip(kernel.operands, rows, strict=True)
        )
        super().__init__(
            Kernel(kernel.dims, kernel.split, operands, kernel.body, kernel.step), w, arguments
        )
        self._width = width
        self._apart: dict[int, list[str]] = {}  # operand -> distance of each lane in bytes

    def prepare(self) -> None:
        """Emit the group-invariant values: the distances of lanes."""
        known: dict[tuple[object, int], list[str]] = {}
        for inst in self.kernel.body:
            if inst.operand < 0:
                continue
            number = inst.operand
            size, stride = self.cell(number).bytes, self.stride(number)
            if (stride, size) not in known:
                known[stride, size] = self._distances(number, size)
            self._apart[number] = known[stride, size]

    def _distances(self, number: int, size: int) -> list[str]:
        stride = self.stride(number)
        if stride.value is not None:
            return [str(lane * stride.value * size) for lane in range(self._width)]
        row = self.w(f"mul i64 {self.arguments.dim(stride)}, {size}")
        return ["0", row, *(self.w(f"mul i64 {row}, {k}") for k in range(2, self._width))]

    def clear(self, inst: Inst, address: str, _: str) -> None:
        """Emit the stores of the identity to the sums of all lanes."""
        t = self._type_of(inst)
        nothing = Reduction(inst.param[1], t.dtype).identity(self._width)[0]
        self._store_at(t, nothing, address)

    def add_up(self, inst: Inst, address: str, target: str) -> None:
        """Emit the accumulation of the lanes at an address in the element at ``target``."""
        t = self._type_of(inst)
        x = self._from_memory(t, self.w(f"load {t.memory}, ptr {address}, align {t.bytes}"))
        total = Reduction(inst.param[1], t.dtype).result(self.w, self._width, (x,))
        self._accumulate_at(inst.param[1], Type(t.dtype), total, target)

    def _type_of(self, inst: Inst) -> Type:
        return Type(self.dtype(inst.args[0]), self._width)

    def _index(self, place: Place, position: int, inst: Inst) -> str:
        counter = self.counters[inst.param]
        if inst.param == len(self.kernel.dims) - 2:
            return self.positions(place, counter)
        return self.w.splat(Type("int64", place.width), counter)

    def _address(self, place: Place, operand: int, indices: list[str], lane: str = "0") -> str:
        address = place.pointers[operand]
        if lane.isdigit():
            address = self.w.at(address, self._apart[operand][int(lane)])
        else:
            address = self.advance(operand, address, lane, self.stride(operand))
        for at, stride in zip(indices, self.kernel.operands[operand].extra, strict=True):
            address = self.advance(operand, address, at, stride)
        return address
