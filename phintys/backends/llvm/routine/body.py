"""The steps of one Program as IR, and the locations of its slots.

A Program's steps are emitted one after the other into a routine.  Memory is allocated before the
first step that uses it, together with all other memory whose size is known by then.  Consecutive
steps that do not use Python form a group; the GIL is released around groups with much work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir import poll
from phintys.backends.llvm.ir.writer import Lengths, Writer
from phintys.backends.llvm.kernel.kernels import Argument, KernelCode, emit_kernel
from phintys.backends.llvm.routine.blocks import Blocks, in_blocks, may_be_reordered
from phintys.backends.llvm.routine.distant import Distant, reader
from phintys.backends.llvm.routine.frame import ALIGN, Frame
from phintys.backends.llvm.routine.windows import windows_of
from phintys.backends.llvm.runtime.cpython import offsets
from phintys.dims import ZERO, Dim, product, total
from phintys.lowering.program import (
    Call,
    Check,
    Copy,
    Draw,
    External,
    Kernel,
    Program,
    Scan,
    Slot,
    Step,
    inner_programs,
)
from phintys.lowering.spec import item_slots, step_reads, step_writes
from phintys.lowering.strips import Strips, strips_of

#: Emits one step; see ``steps.py``
Emit = Callable[["Body", "Work"], None]

#: A step, or several that are executed in parts
Work = Step | Blocks | Strips


class Place(NamedTuple):
    """The location that an inner slot is bound to: memory with its lengths, an object, or both.

    ``owned`` is the index in ``%owned`` where the object of an output is to be stored.
    """

    address: str | None = None
    lengths: tuple[str, ...] = ()
    object: str | None = None
    owned: int | None = None


class Body:
    """The steps of one Program, and the locations of its slots.

    ``emit`` emits a step.  The steps of an inner Program have numbers from ``first`` on; ``inside``
    is the number of the step that runs it.
    """

    def __init__(
        self, frame: Frame, program: Program, emit: Emit, first: int = 0, inside: int = -1
    ) -> None:
        self.frame, self.program, self.emit, self.out = frame, program, emit, frame.out
        self.first, self.inside = first, inside
        self.targets: dict[int, Place] = {}  # slot number -> memory for an output
        self.lengths = Lengths(frame.out, self.symbol)
        self.addresses: dict[int, str] = {}  # slot number -> address of element 0
        self.objects: dict[int, str] = {}  # slot number -> the Python object
        self.places: dict[int, int] = {}  # slot number -> index in %owned
        #: what a kernel reads ahead: from where on, and how many bytes with each point
        self.ahead: tuple[str, int] = ("", 0)
        self.cells: dict[int, str] = {}  # slot number -> the list of a shared variable
        self.originals: dict[int, str] = {}  # slot number -> what that list held at the start
        self.blocks: dict[int, str | Distant] = {}  # storage number -> address
        self.distant: dict[int, Distant] = {}  # slot number -> address that `locate` reads
        self.words: dict[tuple[str, int], str] = {}
        self.slots = {slot.number: slot for slot in program.slots}
        self.slots.update((slot.number, slot) for slot in program.inputs)

    # ----- inputs and constants
    def word(self, kind: str, value: Any) -> str:
        """Emit the load of the word of the block that holds ``value``."""
        key = (kind, id(value))
        if key not in self.words:
            position = self.frame.word(kind, value)
            self.words[key] = self.out.load("ptr", "%block", 8 * position)
        return self.words[key]

    def descr(self, slot: Slot) -> str:
        return self.word("object", np.dtype(slot.dtype))

    def symbol(self, key: tuple[Any, ...]) -> str:
        """Emit the value of a symbol: a length of an array, or an integer in a 0-d slot."""
        kind, number, *rest = key
        if kind == "item":
            slot = self.slots[number]
            self.locate([slot])
            return _load_integer(self.out, slot.dtype or "", self.addresses[number])
        dims = self.out.load("ptr", self.objects[number], offsets().dims)
        return self.out.load("i64", dims, 8 * rest[0])

    def shared(self, slots: list[Slot], updated: set[int]) -> None:
        """Emit new references to the values of shared variables, owned until the call ends.

        The originals of the slots in ``updated`` are owned, too: the call may use a copy.
        """
        for i, slot in enumerate(slots):
            cell = self.word("cell", i)
            self.cells[slot.number] = cell
            value = self.out.value(f"call ptr @PyList_GetItem(ptr {cell}, i64 0)")
            self.out.require(self.out.value(f"icmp ne ptr {value}, null"), "raise")
            if slot.number in updated:
                self.originals[slot.number] = value
                if slot.dtype is not None:
                    self.out.line(f"call void @Py_IncRef(ptr {value})")
                    self.frame.own(value)
            self.receive(slot, value, slot.name or f"shared variable {i}")

    def receive(self, slot: Slot, value: str, what: str) -> None:
        """Emit a new reference to an object from outside, checked against the slot's type."""
        if slot.dtype is None:
            self.out.line(f"call void @Py_IncRef(ptr {value})")
            self.objects[slot.number], self.places[slot.number] = value, self.frame.own(value)
            return
        descr, name = self.descr(slot), self.word("object", what)
        call = f"call ptr @phintys_array(ptr {value}, ptr {descr}, i64 {slot.ndim}, ptr {name})"
        self.hold(slot, *self.frame.obtain(call))
        for axis, dim in enumerate(slot.shape):
            if dim.value is not None:
                length = self.symbol(("len", slot.number, axis))
                self.fail_unless(self.out.value(f"icmp eq i64 {length}, {dim.value}"), -1)

    def hold(self, slot: Slot, object_: str, place: int) -> None:
        """Set the slot's location to an array that the call owns."""
        self.objects[slot.number], self.places[slot.number] = object_, place
        self.addresses[slot.number] = self.out.load("ptr", object_, offsets().data)
        if slot.kind == "python":
            # read now: the array may have been freed when a length is needed
            for axis in range(slot.ndim):
                self.lengths(Dim.symbol(("len", slot.number, axis)))
            if slot.ndim == 0 and np.dtype(slot.dtype).kind in "iu":
                self.lengths(Dim.symbol(("item", slot.number)))

    def constants(self) -> None:
        for slot in self.program.slots:
            if slot.data is None:
                continue
            if slot.kind == "object" and slot.number not in self.objects:
                self.objects[slot.number] = self.word("object", slot.data)
            elif slot.kind == "constant":
                data = np.asarray(slot.data, slot.dtype, order="C")
                self.objects[slot.number] = self.word("object", data)
                self.addresses[slot.number] = self.word("array", data)

    # ----- inner Programs
    def inner(self, step: Step, place: int = 0) -> Body:
        """The body of an inner Program of a step: the one at position ``place``."""
        program, first = inner_programs(step)[place], self.frame.starts[step, place]
        inner = type(self)(self.frame, program, self.emit, first, self.first + step.step)
        inner.words = dict(self.words)
        return inner

    def bind(self, slot: Slot, place: Place) -> None:
        """Set the location of an input of an inner Program."""
        if place.object is not None:
            self.objects[slot.number] = place.object
        if place.address is not None:
            self.addresses[slot.number] = place.address
        for axis, length in enumerate(place.lengths):
            self.lengths.define(Dim.symbol(("len", slot.number, axis)), length)

    def pass_on(self, slot: Slot, place: int) -> None:
        """Emit a new reference to the object of an output, stored for the outer Program."""
        self.out.line(f"call void @Py_IncRef(ptr {self.objects[slot.number]})")
        self.out.store("ptr", self.objects[slot.number], "%owned", 8 * place)

    def adopt(self, slot: Slot, place: int) -> None:
        """Set the slot's location to the object that an inner Program has stored in ``%owned``."""
        object_ = self.out.load("ptr", "%owned", 8 * place)
        if slot.dtype is None:
            self.objects[slot.number], self.places[slot.number] = object_, place
        else:
            self.hold(slot, object_, place)

    # ----- memory
    def provide(self, slot: Slot) -> None:
        """Emit the allocation of a slot's memory, unless it has some already."""
        if self.is_filled(slot.number):
            return
        if slot.number in self.targets:
            target = self.targets[slot.number]
            self.match(slot, target.lengths)
            self.addresses[slot.number] = target.address or ""
        elif slot.kind == "output":
            self.make_output(slot)
        elif slot.kind == "temp":
            number = slot.number if slot.storage is None else slot.storage
            if number not in self.blocks:
                self.allocate(slot)
            block = self.blocks[number]
            if isinstance(block, Distant):
                self.distant[slot.number] = block
            else:
                self.addresses[slot.number] = block
        else:
            raise ValueError(f"slot {slot.number} ({slot.kind} {slot.name}) is used but not filled")

    def make_output(self, slot: Slot) -> None:
        """Emit the allocation of an output: a new array."""
        dims = self.dims_of(slot)
        call = f"call ptr @phintys_empty(i64 {slot.ndim}, ptr {dims}, ptr {self.descr(slot)})"
        self.hold(slot, *self.frame.obtain(call))

    def match(self, slot: Slot, lengths: Sequence[str]) -> None:
        """Emit a check that an output of an inner Program has the expected lengths."""
        for dim, wanted in zip(slot.shape, lengths, strict=True):
            equal = self.out.value(f"icmp eq i64 {self.lengths(dim)}, {wanted}")
            self.fail_unless(equal, -1)

    def dims_of(self, slot: Slot) -> str:
        """Emit an array on the stack with the lengths of a slot."""
        memory = self.out.stack(f"[{slot.ndim} x i64]")
        for axis, dim in enumerate(slot.shape):
            self.out.store("i64", self.lengths(dim), memory, 8 * axis)
        return memory

    def allocate(self, slot: Slot) -> None:
        """Emit one allocation for this temp's storage and all others whose sizes are known."""
        first = slot.storage
        if first is None:
            raise ValueError(f"temp slot {slot.number} has no storage: the Program is not planned")
        self.reserve([first])

    def reserve(self, first: Iterable[int] = ()) -> None:
        """Emit one allocation for some storages, and all others whose sizes are known."""
        sizes = self.sizes
        known = [s for s in range(len(sizes)) if s not in self.blocks and self.is_known(sizes[s])]
        dynamic = []
        for s in dict.fromkeys([*first, *known]):
            size = sizes[s].value
            if size is not None and self.frame.stack_bytes + size <= costs.STACK_BYTES:
                self.blocks[s] = self.out.at("%stack", self.frame.stack_bytes)
                self.frame.stack_bytes += max(-(-size // ALIGN), 1) * ALIGN
            else:
                dynamic.append(s)
        if dynamic:
            many = len(dynamic) > costs.NEAR_BLOCKS
            allocated = self.distant_workspace if many else self.workspace
            self.blocks.update(zip(dynamic, allocated([sizes[s] for s in dynamic])))

    def is_known(self, dim: Dim) -> bool:
        """Whether every symbol has a value that no later step can change."""
        return all(
            self.lengths.known(symbol)
            or (
                self.slots[symbol.args[0][1]].kind in ("input", "constant", "python")
                and self.is_filled(symbol.args[0][1])
            )
            for symbol in dim.symbols()
        )

    def is_filled(self, number: int) -> bool:
        return number in self.addresses or number in self.objects or number in self.distant

    def locate(self, slots: Iterable[Slot]) -> list[Slot]:
        """Emit the addresses of those of the slots that are in distant blocks; these slots."""
        tables: dict[str, str] = {}
        distant = [s for s in dict.fromkeys(slots) if s.number in self.distant]
        for slot in distant:
            place, position = self.distant[slot.number]
            if place not in tables:
                tables[place] = self.out.load("ptr", place)
            self.addresses[slot.number] = self.out.load("ptr", tables[place], 8 * position)
        return distant

    @contextmanager
    def located(self, slots: Iterable[Slot]) -> Generator[None]:
        """A context in which the slots have addresses, also those in distant blocks."""
        distant = self.locate(slots)
        yield
        for slot in distant:
            del self.addresses[slot.number]

    def workspace(self, sizes: list[Dim]) -> list[str]:
        """Emit one allocation for blocks of these sizes; their addresses."""
        _, firsts = self.memory(sizes)
        blocks: list[str] = []
        for dim in sizes:
            block, step = firsts[dim]
            blocks.append(block)
            firsts[dim] = (self.out.at(block, step), step)
        return blocks

    def distant_workspace(self, sizes: list[Dim]) -> list[Distant]:
        """Emit one allocation for blocks of these sizes, and the table of their addresses."""
        table, firsts = self.memory(sizes, 8 * len(sizes))
        place, positions = self.out.stack("ptr"), dict[Dim, int]()
        self.out.store("ptr", table, place)
        count = 0
        for dim, number in Counter(sizes).items():
            positions[dim] = count
            self.fill_table(self.out.at(table, 8 * count), *firsts[dim], number)
            count += number
        blocks: list[Distant] = []
        for dim in sizes:
            blocks.append(Distant(place, positions[dim]))
            positions[dim] += 1
        return blocks

    def memory(self, sizes: list[Dim], table: int = 0) -> tuple[str, dict[Dim, tuple[str, str]]]:
        """Emit one allocation for a table of some bytes, and for blocks of these sizes.

        The address of the table; for each size the address of its first block, and the distance
        from one block to the next: those of equal size are adjacent.
        """
        out = self.out
        total = str(ALIGN + -(-table // ALIGN) * ALIGN)
        starts: dict[Dim, tuple[str, str]] = {}  # offset of the first block, distance of blocks
        for dim, count in Counter(sizes).items():
            step, whole = self.rounded(dim, count)
            starts[dim] = (total, step)
            total = out.value(f"call i64 @llvm.sadd.sat.i64(i64 {total}, i64 {whole})")
        raw = out.value(f"call ptr @PyMem_RawMalloc(i64 {total})")
        out.require(out.value(f"icmp ne ptr {raw}, null"), "memory")
        out.store("ptr", raw, "%works", 8 * self.frame.works)
        self.frame.works += 1
        beyond = out.value(f"and i64 {out.value(f'ptrtoint ptr {raw} to i64')}, {ALIGN - 1}")
        base = out.at(raw, out.value(f"sub i64 0, {beyond}"))
        firsts = {dim: (out.at(base, start), step) for dim, (start, step) in starts.items()}
        return out.at(base, ALIGN), firsts

    def fill_table(self, table: str, first: str, distance: str, count: int) -> None:
        """Emit the stores of ``count`` addresses, each ``distance`` after the one before."""
        out, before = self.out, self.out.block
        loop, after, i, next_ = (out.name(n) for n in ("fill", "filled", "i", "n"))
        out.line(f"br label %{loop}")
        out.label(loop)
        out.line(f"%{i} = phi i64 [0, %{before}], [%{next_}, %{loop}]")
        address = out.at(first, out.value(f"mul i64 %{i}, {distance}"))
        out.store("ptr", address, out.value(f"getelementptr ptr, ptr {table}, i64 %{i}"))
        out.line(f"%{next_} = add i64 %{i}, 1")
        out.branch(out.value(f"icmp slt i64 %{next_}, {count}"), loop, after)
        out.label(after)

    def rounded(self, dim: Dim, count: int) -> tuple[str, str]:
        """Emit a number of bytes rounded up to a multiple of `ALIGN`, and ``count`` times that."""
        out, size = self.out, self.lengths.size(dim, "memory")
        padded = out.value(f"call i64 @llvm.sadd.sat.i64(i64 {size}, i64 {ALIGN - 1})")
        step = out.value(f"and i64 {padded}, {-ALIGN}")
        if count == 1:
            return step, step
        pair = out.value(f"call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 {step}, i64 {count})")
        overflow = out.value(f"extractvalue {{i64, i1}} {pair}, 1")
        out.require(out.value(f"xor i1 {overflow}, true"), "memory")
        return step, out.value(f"extractvalue {{i64, i1}} {pair}, 0")

    # ----- steps
    def run(self) -> None:
        steps, last, start = self.program.steps, self.last_uses(), 0
        # an object that is updated is kept, so that no other gets its address meanwhile
        kept = {self.program.inputs[i].number for i in self.program.updates}
        while start < len(steps):
            group = self.group(start)
            for step in group:
                for slot in _slots_of(step):
                    self.provide(slot)
            self.run_group(group, start)
            for i in range(start, start + len(group)):
                for number in last.get(i, ()):
                    if number in self.places and number not in kept:
                        self.frame.release(self.places[number])
            start += len(group)
        for slot in self.program.outputs:
            self.provide(slot)
        self.locate(self.program.outputs)

    def group(self, start: int) -> list[Step]:
        """The next steps that can run without the GIL once all their memory has been allocated.

        Checks form groups of their own, before the memory of later steps is allocated: they may
        check its lengths.
        """
        steps = self.program.steps
        end = self.after(start)
        kinds = next((k for k in ((Check,), (*NATIVE, Draw)) if isinstance(steps[start], k)), ())
        if kinds:
            while end < len(steps) and isinstance(steps[end], kinds):
                slots = [slot for step in steps[end : self.after(end)] for slot in _slots_of(step)]
                if not all(map(self.can_provide, slots)):
                    break
                end = self.after(end)
        return steps[start:end]

    def after(self, number: int) -> int:
        """The number of the step after the one with this number, or after the range in strips."""
        strips = self.strips.get(number)
        return number + (len(strips.kernels) if strips else 1)

    def run_group(self, group: list[Step], start: int) -> None:
        """Emit the steps of a group; the first has the number ``start``."""
        for step in group:
            if isinstance(step, Draw) and step.source is not step.result:
                self.open(step)
        work = total(map(work_of, group))
        symbols = (self.is_known(symbol) for symbol in work.symbols())
        much = work.value is None or work.value > costs.LONG_WORK
        long = much and not self.frame.suspended and all(symbols)
        if long:
            self.frame.suspend(self.lengths(work))
        # blocks or threads: a block of a kernel is too little work for several threads
        steps = in_blocks(group, draws=self.inside < 0) if self.frame.threads == 1 else group
        self.run_steps(self.in_strips(group, start) if self.strips else steps)
        if long:
            self.frame.resume()

    @cached_property
    def strips(self) -> dict[int, Strips]:
        """The kernels that run in strips, by the number of the first; none if there are blocks.

        All memory of a range is allocated before its first kernel runs.
        """
        program = self.program
        draws = any(isinstance(step, Draw) for step in program.steps)
        if self.frame.threads != 1 or draws or may_be_reordered(program.steps):
            return {}
        found: dict[int, Strips] = {}
        for first, stop in program.strips:
            kernels = [step for step in program.steps[first:stop] if isinstance(step, Kernel)]
            strips = strips_of(kernels)
            if strips is not None:
                found[first] = strips
        return found

    def in_strips(self, group: list[Step], start: int) -> Iterator[Work]:
        """The steps of a group, some of them in strips; the first has the number ``start``."""
        number, end = start, start + len(group)
        while number < end:
            yield self.strips.get(number) or self.program.steps[number]
            number = self.after(number)

    @cached_property
    def sizes(self) -> list[Dim]:
        """The sizes of the storages: of windows, where these are enough."""
        sizes = list(self.program.storages)
        for strips in self.strips.values():
            for window in windows_of(strips, self.used):
                sizes[window.storage] = window.size(sizes[window.storage])
        return sizes

    def open(self, step: Draw) -> None:
        """Emit the copy of the generator; the address of the slot becomes that of its state."""
        out, frame = self.out, self.frame
        argv = out.stack("[1 x ptr]")
        out.store("ptr", self.objects[step.source.number], argv)
        pair, place = frame.obtain(
            f"call ptr @phintys_call(ptr {self.word('opened', None)}, ptr {argv}, i64 1, i64 2, "
            f"ptr {self.word('object', step.name)})"
        )
        copy = out.value(f"call ptr @PyTuple_GetItem(ptr {pair}, i64 0)")
        self.receive(step.result, copy, step.name)
        number = out.value(f"call ptr @PyTuple_GetItem(ptr {pair}, i64 1)")
        address = out.value(f"call ptr @PyLong_AsVoidPtr(ptr {number})")
        self.addresses[step.result.number] = address
        frame.release(place)

    def run_steps(self, steps: Iterable[Work]) -> None:
        """Emit steps one after the other, in basic blocks of bounded size."""
        weight = 0
        for step in steps:
            slots = _slots_of(step)
            # a kernel reads the addresses of distant blocks itself
            with self.located(() if isinstance(step, (Kernel, Strips)) else slots):
                self.step(step)
            weight += max(len(slots), costs.IR_STEP_SLOTS)
            if weight >= costs.IR_BLOCK_SLOTS:
                self.out.new_block()
                weight = 0

    def step(self, step: Work) -> None:
        """Emit one step."""
        self.emit(self, step)

    @contextmanager
    def within(self, definitions: dict[Dim, str]) -> Generator[None]:
        """A context in which emitted steps use other values of some symbols."""
        outer, self.lengths = self.lengths, self.lengths.within(definitions)
        yield
        self.lengths = outer

    @cached_property
    def used(self) -> Counter[Slot]:
        """slot -> number of steps that use it, and one more if its integer is used as a Dim."""
        found = Counter(s for step in self.program.steps for s in {*_slots_of(step)})
        numbers = item_slots(self.program)
        found.update([slot for slot in found if slot.number in numbers])
        return found

    def can_provide(self, slot: Slot) -> bool:
        """Whether the memory of a slot can be allocated now."""
        if self.is_filled(slot.number):
            return True
        if slot.kind == "temp":
            return slot.storage in self.blocks or self.is_known(self.sizes[slot.storage or 0])
        return slot.kind == "output" and all(self.is_known(d) for d in slot.shape)

    def last_uses(self) -> dict[int, list[int]]:
        """step -> slots that Python made and whose last use is this step."""
        kept = {slot.number for slot in self.program.outputs}
        last: dict[int, int] = {}
        for i, step in enumerate(self.program.steps):
            for slot in (*_slots_of(step), *step_writes(step)):
                if slot.kind in ("python", "object") and slot.number not in kept:
                    last[slot.number] = i
        uses: dict[int, list[int]] = {}
        for number, i in last.items():
            uses.setdefault(i, []).append(number)
        return uses

    def fail_unless(self, condition: str, step: int) -> None:
        number = self.inside if step < 0 else self.first + step
        self.out.line(f"store i64 {number}, ptr {self.frame.step}")
        self.out.require(condition, "fail")

    def ask(self) -> None:
        """Emit a poll for signals; fails if a handler raises."""
        status = self.out.value(poll.POLL)
        self.out.require(self.out.value(f"icmp eq i64 {status}, 0"), "fail")

    def succeed(self, status: str, step: Step) -> None:
        """Emit a check that a status is 0."""
        if status != "0":
            self.fail_unless(self.out.value(f"icmp eq i64 {status}, 0"), step.step)

    def call_kernel(self, kernel: Kernel, lengths: Lengths, long: bool = False) -> str:
        """Emit the call of a kernel's function (`emit_kernel`); its status, 0 if it cannot fail."""
        return self.call(emit_kernel(kernel, long, self.ahead[1]), lengths)

    def call(self, code: KernelCode, lengths: Lengths) -> str:
        """Emit the call of the function of a kernel or scan; its status, 0 if it cannot fail."""
        self.frame.kernels[code.symbol] = code
        if self.frame.loops and code.is_straight:
            self.frame.inlined.add(code.symbol)
        tables = {d.table for d in map(self.distance, code.arguments) if d is not None}
        if len(tables) == 1 and not self.frame.loops:
            return self.call_distant(code, lengths, self.out.load("ptr", tables.pop()))
        with self.located([a.value for a in code.arguments if self.distance(a)]):
            return self.emit_call(code, [self.argument(a, lengths) for a in code.arguments])

    def call_distant(self, code: KernelCode, lengths: Lengths, table: str) -> str:
        """Emit the call of a function some of whose arguments are addresses in a table."""
        distances = [self.distance(a) for a in code.arguments]
        near = [a for a, distance in zip(code.arguments, distances) if distance is None]
        positions = self.frame.positions.add([d.position for d in distances if d is not None])
        through = reader(code, [d is not None for d in distances])
        self.frame.kernels[through.symbol] = through
        given = [f"ptr {table}", f"ptr {positions}", *(self.argument(a, lengths) for a in near)]
        return self.emit_call(replace(code, symbol=through.symbol), given)

    def emit_call(self, code: KernelCode, arguments: Sequence[str]) -> str:
        status = self.out.value(f'call i64 @"{code.symbol}"({", ".join(arguments)})')
        return status if code.can_fail else "0"

    def distance(self, argument: Argument) -> Distant | None:
        """Where the address that an argument is can be found, if it has not been located."""
        if argument.kind != "slot" or argument.value.number in self.addresses:
            return None
        return self.distant[argument.value.number]

    def argument(self, argument: Argument, lengths: Lengths) -> str:
        """An argument of a kernel's function, with its type."""
        if argument.kind == "slot":
            return f"ptr {self.addresses[argument.value.number]}"
        if argument.kind == "dim":
            return f"i64 {lengths(argument.value)}"
        if argument.kind == "ahead":
            return f"ptr {self.ahead[0]}"
        return f"{argument.type} {argument.value}"


#: Steps that use memory, but not Python.  `Draw` steps use it before the others of their group.
NATIVE = (Kernel, Copy, Call, Scan, External)


def work_of(step: Step) -> Dim:
    """An estimate of the number of scalar instructions of a step."""
    if isinstance(step, Kernel):
        return step.points * len(step.body)
    if isinstance(step, Scan):
        return product(step.dims)
    if isinstance(step, Copy):
        return product(step.source.shape)
    if isinstance(step, Call):
        return product((*step.sizes, *step.batch))
    if isinstance(step, External):
        return product((step.work, *step.batch))
    if isinstance(step, Draw):
        return product(step.dims) * costs.DRAW_WORK
    return ZERO


def _slots_of(step: Work) -> list[Slot]:
    """The slots that a step uses, except those that Python creates in it."""
    if isinstance(step, Blocks):
        return step.slots()
    if isinstance(step, Strips):
        return [operand.slot for kernel in step.kernels for operand in kernel.operands]
    if isinstance(step, Kernel):
        return [operand.slot for operand in step.operands]
    if isinstance(step, Draw):  # it has opened its generator, or changes that of an earlier draw
        opened = [] if step.source is step.result else [step.source]
        return [*opened, *(operand.slot for operand in step.operands)]
    written = [s for s in step_writes(step) if s.kind not in ("python", "object")]
    return [*step_reads(step), *written]


def _load_integer(out: Writer, dtype: str, address: str) -> str:
    """Emit the load of an integer of any dtype, as i64."""
    kind = np.dtype(dtype)
    bits = 8 * kind.itemsize
    value = out.load(f"i{bits}", address)
    if bits == 64:
        return value
    return out.value(f"{'sext' if kind.kind == 'i' else 'zext'} i{bits} {value} to i64")
