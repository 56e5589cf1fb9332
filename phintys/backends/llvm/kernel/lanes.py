"""The body of a kernel: vectorized instructions and memory access.

A `Place` is the context of the instructions: outside the innermost loop one lane (width 1),
inside it ``width`` consecutive points of the innermost dimension.  In the epilogue of a vector
loop some lanes are inactive: they correspond to no point.  Stores, calls and gathers must not be
executed for them and use ``active`` or ``mask``; arithmetic is done in all lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.conversions import cast
from phintys.backends.llvm.ir.division import Divisor
from phintys.backends.llvm.ir.instructions import emit
from phintys.backends.llvm.ir.types import KernelWriter, Type, select
from phintys.backends.llvm.kernel import polling
from phintys.backends.llvm.kernel.reductions import Reduction
from phintys.backends.llvm.vecmath import BOUNDED, SUPPORTED
from phintys.dims import ONE, Dim, coefficients
from phintys.lowering.program import Inst, Kernel, Operand, Slot
from phintys.scalar.native import SCIPY_CALLS

INDEX = Type("int64")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel function.

    kind ``slot``: ``value`` is the Slot whose base address (of element 0) is passed, type ``ptr``;
    kind ``dim``: ``value`` is the Dim to evaluate, type ``i64``;
    kind ``ahead``: see `Arguments.ahead`;
    kind ``const``: ``value`` is the IR text of the literal, of type ``type``; until a kernel has
    been written it is the position of the instruction.
    """

    kind: str
    type: str
    value: Any


class Arguments:
    """The arguments of a kernel function in order of first use, and their names in the IR."""

    def __init__(self) -> None:
        self._named: dict[Any, tuple[str, Argument]] = {}

    def slot(self, slot: Slot) -> str:
        return self._add(slot.number, Argument("slot", "ptr", slot), "p")

    def dim(self, dim: Dim) -> str:
        return self._add(dim, Argument("dim", "i64", dim), "d")

    def length(self, dim: Dim) -> str:
        """The length of a loop: a literal if small and constant."""
        return str(dim.value) if dim.value in costs.BAKED_LENGTHS else self.dim(dim)

    def constant(self, position: int, t: Type) -> str:
        """An argument for a constant.

        Equal constants get separate arguments, so that the text does not depend on their values.
        """
        return self._add(("const", position), Argument("const", t.scalar, position), "c")

    def ahead(self) -> str:
        """The address from which on the loop brings memory into the cache while it computes."""
        return self._add("ahead", Argument("ahead", "ptr", None), "h")

    def all(self) -> list[tuple[str, Argument]]:
        return list(self._named.values())

    def _add(self, key: Any, argument: Argument, stem: str) -> str:
        name = f"%{stem}{len(self._named)}"
        return self._named.setdefault(key, (name, argument))[0]


@dataclass(slots=True)
class Place:
    """The context in which instructions are emitted.

    ``pointers`` hold the address of each operand, ``values`` the results of instructions.  Inside
    the innermost loop ``counter`` is the value of its counter in lane 0 and ``offsets`` are the
    differences of the other lanes.  Inactive lanes repeat the offset of the last point.  ``lanes``
    holds the scalars extracted from index vectors: (position of the instruction, lane) -> name.
    ``loaded`` holds the vectors of operands that have been loaded before (`Neighbours`).
    """

    width: int
    pointers: list[str]
    values: dict[int, str]
    counter: str = ""
    offsets: list[str] = field(default_factory=list)
    active: str = "1"
    mask: str = ""
    lanes: dict[tuple[int, int], str] = field(default_factory=dict)
    loaded: dict[int, str] = field(default_factory=dict)


def is_vector_function(inst: Inst) -> bool:
    """Whether an instruction calls a function of ``vecmath``, and no other, by name or ``call``."""
    name = inst.param if inst.op == "call" else inst.op
    return name in SUPPORTED and name not in BOUNDED


class Lanes:
    """Emits instructions of one kernel into a function."""

    def __init__(self, kernel: Kernel, w: KernelWriter, arguments: Arguments) -> None:
        self.kernel = kernel
        self.w = w
        self.arguments = arguments
        self.counters: dict[int, str] = {}
        self.divisors: dict[int, Divisor] = {}  # by position: invariants of the innermost loop
        self.can_fail = False
        self.ahead = 0  # bytes that the innermost loop reads ahead with each point
        self.ragged: tuple[str, str] | None = None  # start and number of iterations, in the loop
        self.points = polling.points(kernel.body)  # of a block
        self.is_one_block = polling.is_one_block(kernel)
        self._spills: dict[tuple[str, int], str] = {}
        self._methods: dict[str, Callable[[Place, int, Inst], str]] = {
            "load": self._load,
            "const": self._const,
            "dim": self._dim,
            "index": self._index,
            "call": self._call,
            "wrap": self._wrap,
            "store": self._store,
            "accumulate": self._accumulate,
        }

    def run(self, place: Place, positions: Iterable[int]) -> None:
        """Emit instructions in order."""
        for position in positions:
            inst = self.kernel.body[position]
            method = self._methods.get(inst.op, self._scalar_instruction)
            place.values[position] = method(place, position, inst)

    def dtype(self, position: int) -> str:
        return self.kernel.body[position].dtype

    def length(self) -> str:
        """The number of iterations of the innermost loop."""
        return self.ragged[1] if self.ragged else self.arguments.length(self.kernel.dims[-1])

    def block(self, d: int, least: int = 1) -> str:
        """Iterations of loop ``d`` in a block, a power of two; empty if it has no blocks."""
        if self.is_one_block:
            return ""
        if self.kernel.ragged is not None:
            self.can_fail = True
            around = len(self.kernel.dims) - 1 - d
            return str((self.points, costs.POLL_ROWS, 1)[min(around, 2)])
        length, *inside = (self.arguments.length(dim) for dim in self.kernel.dims[d:])
        others = [n for n in inside if not n.isdigit()]
        fixed = prod(int(n) for n in inside if n.isdigit())
        if not others and length.isdigit() and fixed * int(length) < self.points:
            return ""
        self.can_fail = True
        turns = 1 << max(1, self.points // max(fixed, 1)).bit_length() - 1
        return self._divided(turns, others, least) if others else str(max(turns, least))

    def _divided(self, turns: int, lengths: list[str], least: int) -> str:
        """Emit ``turns`` divided by the power of two above the product of ``lengths``."""
        w, inside = self.w, lengths[0]
        for length in lengths[1:]:
            inside = w(f"mul i64 {inside}, {length}")
        # if the product overflows, the inner loops are long enough to have blocks themselves
        bits = w(f"sub i64 64, {w.intrinsic('ctlz', INDEX, inside, flag='false')}")
        quotient = w(f"lshr i64 {turns}, {w(f'and i64 {bits}, 63')}")
        return w.intrinsic("smax", INDEX, quotient, str(least))

    # ------------------------------------------------------------- values without memory

    def _scalar_instruction(self, place: Place, position: int, inst: Inst) -> str:
        args = tuple(place.values[a] for a in inst.args)
        t = Type(inst.dtype, place.width)
        if inst.op == "div" and place.width > 1 and inst.args[1] in self.divisors:
            return self.divisors[inst.args[1]].divide(self.w, t, args[0])
        return emit(self.w, inst.op, t, args, self.dtype(inst.args[0]))

    def _const(self, place: Place, position: int, inst: Inst) -> str:
        t = Type(inst.dtype, place.width)
        if t.kind == "b":
            return t.literal(inst.param)
        return self.w.splat(t, self.arguments.constant(position, t))

    def _dim(self, place: Place, position: int, inst: Inst) -> str:
        return self.w.splat(Type("int64", place.width), self.arguments.dim(inst.param))

    def _index(self, place: Place, position: int, inst: Inst) -> str:
        if place.counter and inst.param == len(self.kernel.dims) - 1:
            first = place.counter
            if self.ragged:
                first = self.w(f"add i64 {first}, {self.ragged[0]}")
            return self.positions(place, first)
        return self.w.splat(Type("int64", place.width), self.counters[inst.param])

    def positions(self, place: Place, first: str) -> str:
        """Emit the vector ``first, first + 1, ...``."""
        t = Type("int64", place.width)
        start = self.w.splat(t, first)
        return start if place.width == 1 else self.w(f"add {t.text} {start}, {iota(place.width)}")

    def _wrap(self, place: Place, position: int, inst: Inst) -> str:
        index, length = (place.values[a] for a in inst.args)
        source = inst.args[0]
        self.can_fail = True
        read = self.kernel.body[source]
        if place.width > 1 and read.op == "load" and read.dtype == "int64" and self.is_packed(read):
            return self._wrap_loaded(place, position, inst)
        index = self._shifted(place, index, length)
        good = self.w.name("ok")
        self.w.branch(self._is_outside(place, source, index, length), "fail", good)
        self.w.label(good)
        return index

    def _wrap_loaded(self, place: Place, position: int, inst: Inst) -> str:
        """Emit `_wrap` for an index vector loaded from contiguous memory.

        If no lane is negative, the likely case, scalar indices are loaded from that memory, which
        is cheaper than extracting lanes.
        """
        w, t = self.w, Type("int64", place.width)
        source, (index, length) = inst.args[0], (place.values[a] for a in inst.args)
        address = self._address(place, self.kernel.body[source].operand, [])
        negative, near, good = w.name("negative"), w.name("near"), w.name("ok")
        before = w.block
        w.branch(self._is_outside(place, source, index, length), negative, good)
        w.label(negative)
        shifted = self._shifted(place, index, length)
        spill = self._spill(0, t)
        w.branch(self._is_outside(place, source, shifted, length), "fail", near)
        w.label(near)
        w.line(f"store {t.text} {shifted}, ptr {spill}, align 64")
        w.line(f"br label %{good}")
        w.label(good)
        result = w(f"phi {t.text} [{index}, %{before}], [{shifted}, %{near}]")
        where = w(f"phi ptr [{address}, %{before}], [{spill}, %{near}]")
        for lane in range(place.width):
            at = w(f"getelementptr i64, ptr {where}, i64 {lane}")
            place.lanes[position, lane] = w(f"load i64, ptr {at}, align 8")
        return result

    def _shifted(self, place: Place, index: str, length: str) -> str:
        """Emit ``index + length`` in lanes with a negative index, else ``index``."""
        t = Type("int64", place.width)
        negative = self.w(f"icmp slt {t.text} {index}, {t.literal(0)}")
        return select(self.w, t, negative, self.w(f"add {t.text} {index}, {length}"), index)

    def _is_outside(self, place: Place, position: int, index: str, length: str) -> str:
        """Emit the test whether any active lane of an index is out of range.

        ``position`` is the instruction from which the index was computed.
        """
        w, t = self.w, Type("int64", place.width)
        if place.width == 1:
            return w(f"icmp uge {t.text} {index}, {length}")
        flag = t.of("bool")
        last = w(f"add {t.text} {length}, {t.literal(-1)}")
        large = w(f"sext {flag.text} {w(f'icmp sgt {t.text} {index}, {last}')} to {t.text}")
        # the sign bit is set if the index is negative or too large
        outside = w(f"or {t.text} {index}, {large}")
        bad = w(f"icmp slt {t.text} {outside}, {t.literal(0)}")
        if not self._is_zero_elsewhere(position):
            bad = w(f"and {flag.text} {bad}, {place.mask}")
        return w.extern(f"llvm.vector.reduce.or.{flag.suffix}", "i1", [(flag.text, bad)])

    def _is_zero_elsewhere(self, position: int) -> bool:
        """Whether an index is 0 in inactive lanes: in range whenever any index is."""
        inst = self.kernel.body[position]
        if inst.op in ("wrap", "cast"):
            return self._is_zero_elsewhere(inst.args[0])
        # see `VectorLoop`: the scratch vectors of wide elements are padded with 0
        return inst.op == "load" and self.is_packed(inst) and Type(inst.dtype).bytes >= 4

    def _call(self, place: Place, position: int, inst: Inst) -> str:
        """A call of a function of ``vecmath``, or in each lane one of SciPy or libm."""
        if inst.param in BOUNDED:
            return self._bounded_call(place, inst)
        if is_vector_function(inst):
            return self._vector_call(place, inst)
        return self._library_call(place, inst)

    def _vector_call(self, place: Place, inst: Inst) -> str:
        args = tuple(place.values[a] for a in inst.args)
        return self.w.special(inst.param, Type(inst.dtype, place.width), args)

    def _bounded_call(self, place: Place, inst: Inst) -> str:
        """A vector function; where an argument is out of its bounds, the library's function."""
        w, t = self.w, Type(inst.dtype, place.width)
        found = self._vector_call(place, inst)
        flags, ends = t.of("bool"), (("ole", 0), ("ogt", BOUNDED[inst.param]))
        others = [
            w(f"fcmp {predicate} {t.text} {place.values[a]}, {t.literal(end)}")
            for a in inst.args
            for predicate, end in ends
        ]
        mask = reduce(lambda x, y: w(f"or {flags.text} {x}, {y}"), others)
        some = mask
        if place.width > 1:
            name = f"llvm.vector.reduce.or.{flags.suffix}"
            some = w.extern(name, "i1", [(flags.text, mask)])
        rare, done, before = w.name("rare"), w.name("done"), w.block
        w.branch(some, rare, done)
        w.label(rare)
        patched = select(w, t, mask, self._library_call(place, inst), found)
        after = w.block
        w.line(f"br label %{done}")
        w.label(done)
        return w(f"phi {t.text} [{found}, %{before}], [{patched}, %{after}]")

    def _library_call(self, place: Place, inst: Inst) -> str:
        """A call of a function of SciPy or libm in each lane."""
        scipy = inst.param in SCIPY_CALLS
        symbol = f"phintys.{'special' if scipy else 'libm'}.{inst.param}"
        extra = [("i32", "0")] if scipy else []  # "skip dispatch" of Cython's functions
        double, t = Type("float64"), Type(inst.dtype, place.width)

        def one(lane: str, args: list[str]) -> str:
            wide = [("double", cast(self.w, double, inst.dtype, a)) for a in args]
            result = self.w.extern(symbol, "double", wide + extra)
            return cast(self.w, Type(inst.dtype), "float64", result)

        args = [(t, place.values[a]) for a in inst.args]
        return self._each_lane(place, args, one, t)

    # ---------------------------------------------------------------------------- memory

    def stride(self, operand: int) -> Dim:
        """The stride of an operand along the innermost dimension."""
        return self.kernel.operands[operand].strides[-1]

    def is_packed(self, inst: Inst) -> bool:
        """Whether an instruction loads or stores contiguous vectors."""
        if inst.operand < 0:
            return False
        plain = len(inst.args) == (inst.op != "load")
        return plain and self.stride(inst.operand).value == 1

    def operand(self, inst: Inst) -> Operand:
        """The operand that a memory instruction accesses."""
        return self.kernel.operands[inst.operand]

    def _load(self, place: Place, position: int, inst: Inst) -> str:
        t = Type(inst.dtype, place.width)
        if inst.param in place.loaded:
            return place.loaded[inst.param]
        indices = [place.values[a] for a in inst.args]
        if place.width == 1 or (not indices and self.stride(inst.param).value in (0, 1)):
            return self._load_at(t, self._address(place, inst.param, indices), inst.param, place)
        one, memory = Type(inst.dtype), "poison"
        for lane in range(place.width):
            at = [self._index_of_lane(place, a, lane) for a in inst.args]
            address = self._address(place, inst.param, at, place.offsets[lane])
            x = self.w(f"load {one.cell}, ptr {address}, align {one.align}")
            memory = self.w(f"insertelement {t.memory} {memory}, {one.cell} {x}, i64 {lane}")
        return self._from_memory(t, memory)

    def load_packed(self, place: Place, operand: int, t: Type) -> str:
        """Emit the load of contiguous lanes."""
        return self._load_at(t, self._address(place, operand, []), operand, place)

    def _load_at(self, t: Type, address: str, operand: int, place: Place) -> str:
        """Emit the load of the lanes at an address; a broadcast where the stride is 0."""
        still = place.width > 1 and self.stride(operand).value == 0
        loaded = Type(t.dtype) if still else t
        x = self.w(f"load {loaded.memory}, ptr {address}, align {t.align}")
        x = self._from_memory(loaded, x)
        return self.w.splat(t, x) if still else x

    def _store(self, place: Place, position: int, inst: Inst) -> str:
        t = Type(self.dtype(inst.args[0]), place.width)
        x = place.values[inst.args[0]]
        if place.width == 1 or self.is_packed(inst):
            indices = [place.values[a] for a in inst.args[1:]]
            self._store_at(t, x, self._address(place, inst.param, indices))
        elif len(inst.args) == 1 and self.stride(inst.param).value != 0:
            self._store_strided(place, t, x, inst.param)
        else:
            self._store_each(place, inst, inst.param, lambda one, x, at: self._store_at(one, x, at))
        return ""

    def _store_at(self, t: Type, x: str, address: str) -> None:
        x = self._to_memory(t, x)
        self.w.line(f"store {t.memory} {x}, ptr {address}, align {t.align}")

    def _store_strided(self, place: Place, t: Type, x: str, operand: int) -> None:
        # Last lane first: inactive lanes store to the address of the last point, whose own value
        # overwrites theirs.
        x, one = self._to_memory(t, x), Type(t.dtype)
        for lane in reversed(range(place.width)):
            value = self.w(f"extractelement {t.memory} {x}, i64 {lane}")
            address = self._address(place, operand, [], place.offsets[lane])
            self.w.line(f"store {one.cell} {value}, ptr {address}, align {one.align}")

    def _accumulate(self, place: Place, position: int, inst: Inst) -> str:
        operand, op = inst.param
        t = Type(self.dtype(inst.args[0]), place.width)

        def add(t: Type, x: str, address: str) -> None:
            self._accumulate_at(op, t, x, address)

        if place.width == 1 or self.is_packed(inst):
            indices = [place.values[a] for a in inst.args[1:]]
            add(t, place.values[inst.args[0]], self._address(place, operand, indices))
        elif is_scattered_sum(inst):
            self._accumulate_lanes(place, inst, t)
        else:
            self._store_each(place, inst, operand, add)
        return ""

    def _accumulate_lanes(self, place: Place, inst: Inst, t: Type) -> None:
        """Emit a scatter-add, lane by lane; inactive lanes add zero to an existing element."""
        operand, op = inst.param
        nothing = t.literal(-0.0 if t.kind in "fh" else 0)
        x = place.values[inst.args[0]]
        if place.mask:
            x = select(self.w, t, place.mask, x, nothing)
        one = Type(t.dtype)
        for lane in range(place.width):
            at = [self._index_of_lane(place, a, lane) for a in inst.args[1:]]
            address = self._address(place, operand, at, place.offsets[lane])
            value = self.w(f"extractelement {t.text} {x}, i64 {lane}")
            self._accumulate_at(op, one, value, address)

    def accumulate_total(self, place: Place, position: int, x: str) -> None:
        """Emit the accumulation of an instruction's total ``x``, after the innermost loop."""
        operand, op = self.kernel.body[position].param
        t = Type(self.dtype(self.kernel.body[position].args[0]))
        self._accumulate_at(op, t, x, place.pointers[operand])

    def _accumulate_at(self, op: str, t: Type, x: str, address: str) -> None:
        old = self._from_memory(t, self.w(f"load {t.memory}, ptr {address}, align {t.align}"))
        # the old value last: LLVM would turn a select of it into a masked store, which is slow
        (new,) = Reduction(op, t.dtype).combine(self.w, t.width, (x,), (old,))
        self._store_at(t, new, address)

    def _store_each(
        self, place: Place, inst: Inst, operand: int, store: Callable[[Type, str, str], None]
    ) -> None:
        """Emit stores lane by lane, in order."""
        one = Type(self.dtype(inst.args[0]))

        def each(lane: str, args: list[str]) -> str:
            store(one, args[0], self._address(place, operand, args[1:], lane))
            return ""

        types = [Type(self.dtype(a), place.width) for a in inst.args]
        self._each_lane(place, [(t, place.values[a]) for t, a in zip(types, inst.args)], each)

    def base(self, operand: int) -> str:
        """The address of the element where an operand starts."""
        described = self.kernel.operands[operand]
        address, offset = self.arguments.slot(described.slot), described.offset
        if offset.value == 0:
            return address
        if offset.op != "add":
            return self.advance(operand, address, self.arguments.dim(offset), ONE)
        distance = coefficients(offset).get(ONE, 0)
        start = self.arguments.dim(offset - distance)
        address = self.advance(operand, address, start, ONE)
        return self.advance(operand, address, str(distance), ONE)

    def _address(self, place: Place, operand: int, indices: list[str], lane: str = "0") -> str:
        """Emit the address of an element, from the lane of the innermost dim and the indices."""
        described = self.kernel.operands[operand]
        steps: list[tuple[str, Dim]] = []
        if place.counter:
            at = place.counter if lane == "0" else self.w(f"add i64 {place.counter}, {lane}")
            steps.append((at, described.strides[-1]))
        steps.extend(zip(indices, described.extra, strict=True))
        address = place.pointers[operand]
        for at, stride in steps:
            address = self.advance(operand, address, at, stride)
        return address

    def advance(self, operand: int, address: str, count: str, stride: Dim) -> str:
        """Emit ``address`` plus ``count`` times ``stride`` elements."""
        if stride.value == 0:
            return address
        if stride.value != 1:
            count = self.w(f"mul i64 {count}, {self.arguments.dim(stride)}")
        return self.w(f"getelementptr {self.cell(operand).cell}, ptr {address}, i64 {count}")

    def cell(self, operand: int) -> Type:
        """The type of the elements of an operand."""
        dtype = self.kernel.operands[operand].slot.dtype
        assert dtype is not None, "a kernel's operand is an array"
        return Type(dtype)

    def _index_of_lane(self, place: Place, position: int, lane: int) -> str:
        """Emit one lane of an index; a scalar load if it comes from contiguous memory."""
        inst, known = self.kernel.body[position], place.lanes.get((position, lane))
        if known is not None:
            return known
        if inst.op == "load" and self.is_packed(inst) and place.counter:
            # inactive lanes hold 0, see `VectorLoop`
            address = self._address(place, inst.param, [], str(lane))
            index = self.w(f"load i64, ptr {address}, align 8")
        else:
            if (position, -1) not in place.lanes:
                vector = place.values[position]
                zero = self._is_zero_elsewhere(position)
                place.lanes[position, -1] = vector if zero else self._masked(place, vector)
            vector = place.lanes[position, -1]
            index = self.w(f"extractelement <{place.width} x i64> {vector}, i64 {lane}")
        place.lanes[position, lane] = index
        return index

    def _masked(self, place: Place, index: str) -> str:
        """Emit the index with 0, which is always in range, in inactive lanes."""
        t = Type("int64", place.width)
        flag = t.of("bool").text
        return self.w(f"select {flag} {place.mask}, {t.text} {index}, {t.text} {t.literal(0)}")

    def _from_memory(self, t: Type, x: str) -> str:
        return self.w(f"icmp ne {t.memory} {x}, zeroinitializer") if t.kind == "b" else x

    def _to_memory(self, t: Type, x: str) -> str:
        return self.w(f"zext {t.text} {x} to {t.memory}") if t.kind == "b" else x

    # ------------------------------------------------------------------------ lane by lane

    def _each_lane(
        self,
        place: Place,
        args: list[tuple[Type, str]],
        one: Callable[[str, list[str]], str],
        result: Type | None = None,
    ) -> str:
        """Emit a loop of scalar code over the active lanes in order, with operands in memory."""
        if place.width == 1:
            return one("0", [x for _, x in args])
        w = self.w
        cells = [self._spill(number, t, x) for number, (t, x) in enumerate(args)]
        target = self._spill(len(args), result) if result else ""
        before, head, after = w.block, w.name("lane"), w.name("lanes")
        w.line(f"br label %{head}")
        w.label(head)
        lane, following = ("%" + w.name("l") for _ in range(2))
        phi = len(w.lines)
        w.line("")
        values = [self._lane_of(t, cell, lane) for (t, _), cell in zip(args, cells)]
        x = one(lane, values)
        if result:
            scalar = Type(result.dtype)
            address = w(f"getelementptr {scalar.cell}, ptr {target}, i64 {lane}")
            self._store_at(scalar, x, address)
        w.line(f"{following} = add i64 {lane}, 1")
        w.lines[phi] = f"  {lane} = phi i64 [0, %{before}], [{following}, %{w.block}]"
        w.branch(w(f"icmp ult i64 {following}, {place.active}"), head, after)
        w.label(after)
        if not result:
            return ""
        return self._from_memory(result, w(f"load {result.memory}, ptr {target}, align 64"))

    def _lane_of(self, t: Type, cell: str, lane: str) -> str:
        one = Type(t.dtype)
        address = self.w(f"getelementptr {one.cell}, ptr {cell}, i64 {lane}")
        return self._from_memory(one, self.w(f"load {one.cell}, ptr {address}, align {one.align}"))

    def _spill(self, number: int, t: Type, x: str = "") -> str:
        """Stack memory that holds the vector ``x``; shared by all loops over lanes."""
        key = (t.memory, number)
        if key not in self._spills:
            self._spills[key] = self.w.stack(t.memory, 64)
        if x:
            self.w.line(
                f"store {t.memory} {self._to_memory(t, x)}, ptr {self._spills[key]}, align 64"
            )
        return self._spills[key]


def is_scattered_sum(inst: Inst) -> bool:
    """Whether an instruction is a scatter-add of numbers."""
    scattered = inst.op == "accumulate" and len(inst.args) > 1
    return scattered and inst.param[1] == "add" and inst.dtype != "bool"


def iota(width: int) -> str:
    """The constant vector 0, 1, 2, ..."""
    return f"<{', '.join(f'i64 {lane}' for lane in range(width))}>"
