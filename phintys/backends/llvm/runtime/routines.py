"""Routines as LLVM IR: one library for each routine and dtype."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.backends.llvm.ir.conversions import cast
from phintys.backends.llvm.ir.instructions import emit
from phintys.backends.llvm.ir.loops import Phis
from phintys.backends.llvm.ir.transposed import columns
from phintys.backends.llvm.ir.types import KernelWriter, Type, select
from phintys.backends.llvm.machine.target import Target
from phintys.routines.language import (
    PART,
    Assign,
    Expr,
    For,
    Function,
    If,
    Return,
    Routine,
    Run,
    Statement,
    Store,
    While,
    variables,
)
from phintys.routines.libraries import LibraryFunction

#: the types of what library functions take by address, besides numbers
_CELLS = {"char": "i8", "int": "i32", "status": "i32"}


def symbol(routine: Routine, dtype: str) -> str:
    """The symbol of a routine."""
    return f"phintys.routine.{routine.name}.{dtype}"


def library_symbol(function: LibraryFunction, dtype: str) -> str:
    """The symbol of a library function: ``phintys.lapack.dpotrf``."""
    return f"phintys.{function.library}.{function.symbol(dtype)}"


def signature(routine: Routine) -> str:
    """The types of the parameters of a routine in IR."""
    return ", ".join("i64" if t == "int" else "ptr" for _, t in routine.functions[-1].parameters)


def routine_text(routine: Routine, dtype: str, target: Target) -> str:
    """The IR of a routine."""
    texts: list[str] = []
    declares: set[str] = set()
    for function in routine.functions:
        emitter = _Emitter(routine, function, dtype, KernelWriter(target))
        texts.append(emitter.text(is_entry=function is routine.functions[-1]))
        declares |= emitter.w.declares
    return "\n".join([*sorted(declares), *texts])


class _Emitter:
    """Emits one function; ``values`` holds the current values of its names."""

    def __init__(self, routine: Routine, function: Function, dtype: str, w: KernelWriter) -> None:
        self.routine, self.function, self.dtype, self.w = routine, function, dtype, w
        self.real = Type(PART.get(dtype, dtype))
        self.pack = Type(self.real.dtype, w.target.register_bits // self.real.bits)
        self.types = {"int": Type("int64"), "bool": Type("bool"), "real": self.real}
        self.types |= {"pack": self.pack, "mask": self.pack.of("bool")}
        self.values = {name: f"%{name}" for name, _ in function.parameters}
        self.kinds = dict(function.parameters) | dict(variables(function.body))

    def kind(self, name: str) -> str:
        """The type of a value in IR."""
        return self.types[name].text if name in self.types else "ptr"

    def name(self, function: Function) -> str:
        if function is self.routine.functions[-1]:
            return f'"{symbol(self.routine, self.dtype)}"'
        return f'"{self.routine.name}.{function.name}"'

    def text(self, is_entry: bool) -> str:
        f = self.function
        if self.block(f.body):
            self.w.line("ret i64 0")
        parameters = ", ".join(f"{self.kind(t)} %{name}" for name, t in f.parameters)
        scope = "" if is_entry else "internal "
        inlining = "noinline" if f.apart else "alwaysinline"  # for constants among the arguments
        attribute = "" if is_entry else f" {inlining}"
        head = f"{scope}{self.kind(f.result)} @{self.name(f)}({parameters}){attribute}"
        return self.w.text(head)

    # ----- statements: they return whether control continues after them
    def block(self, body: Sequence[Statement]) -> bool:
        return all([self.statement(s) for s in body])

    def statement(self, s: Statement) -> bool:
        match s:
            case Assign():
                self.values[s.name] = self.expr(s.value)
            case Store():
                self.store(s)
            case Run():
                self.expr(s.value)
            case Return():
                self.w.line(f"ret {self.kind(s.value.type)} {self.expr(s.value)}")
                return False
            case If():
                return self.branch(s)
            case For() | While():
                self.loop(s)
        return True

    def store(self, s: Store) -> None:
        value, place = self.expr(s.value), self.element(s.array, self.expr(s.place))
        if self.kinds[s.array] == "positions":
            value = self.w(f"trunc i64 {value} to i32")
        self.w.line(f"store {self.memory(s.array)} {value}, ptr {place}{self.aligned(s.array)}")

    def branch(self, s: If) -> bool:
        w, before = self.w, dict(self.values)
        then, orelse, end = w.name("then"), w.name("else"), w.name("end")
        w.branch(self.expr(s.condition), then, orelse)
        ends: list[tuple[str, dict[str, str]]] = []
        for label, body in ((then, s.then), (orelse, s.orelse)):
            w.label(label)
            self.values = dict(before)
            if self.block(body):
                ends.append((w.block, self.values))
                w.line(f"br label %{end}")
        self.values = before
        if not ends:
            return False
        w.label(end)
        for name, old in before.items():
            found = [values[name] for _, values in ends]
            if found != [old] * len(found):
                edges = ", ".join(f"[{v}, %{block}]" for v, (block, _) in zip(found, ends))
                self.values[name] = w(f"phi {self.kind(self.kinds[name])} {edges}")
        return True

    def loop(self, s: For | While) -> None:
        w = self.w
        start = self.expr(s.start) if isinstance(s, For) else ""
        stop = self.expr(s.stop) if isinstance(s, For) else ""
        changed = [n for n in dict(variables(s.body)) if n in self.values]
        before, head, inside, after = w.block, w.name("head"), w.name("body"), w.name("exit")
        w.line(f"br label %{head}")
        w.label(head)
        phis = Phis(w)
        (counter,) = phis.add(["i64"], "i") if isinstance(s, For) else ("",)
        current = phis.add([self.kind(self.kinds[n]) for n in changed], "s")
        phis.edge(before, [start] * bool(start) + [self.values[n] for n in changed])
        self.values.update(zip(changed, current))
        outer = dict(self.values)
        if isinstance(s, For):
            self.values[s.name] = counter
            goes_on = w(f"icmp slt i64 {counter}, {stop}")
        else:
            goes_on = self.expr(s.condition)
        w.branch(goes_on, inside, after)
        w.label(inside)
        if self.block(s.body):
            following = [w(f"add i64 {counter}, {s.step}")] if isinstance(s, For) else []
            phis.edge(w.block, following + [self.values[n] for n in changed])
            w.line(f"br label %{head}")
        phis.write()
        w.label(after)
        self.values = outer

    # ----- expressions
    def element(self, array: str, index: str) -> str:
        """Emit the address of an element."""
        return self.w(f"getelementptr {self.memory(array)}, ptr {self.values[array]}, i64 {index}")

    def memory(self, array: str) -> str:
        """The type of the elements of an array."""
        types = {"positions": "i32", "longs": "i64", "packs": self.pack.memory}
        return types.get(self.kinds[array], self.real.memory)

    def aligned(self, array: str) -> str:
        """The alignment of the elements of an array, as the end of a load or store."""
        return f", align {self.pack.align}" if self.kinds[array] == "packs" else ""

    def expr(self, e: Expr) -> str:
        w = self.w
        args = [self.expr(a) for a in e.args]
        match e.op:
            case "const":
                return (
                    str(e.value).lower()
                    if e.type == "bool"
                    else self.types[e.type].literal(e.value)
                )
            case "name":
                return self.values[e.value]
            case "parts":
                return "2" if self.dtype in PART else "1"
            case "lanes":
                return str(self.pack.width)
            case "local":
                return w.stack(
                    f"[{e.value} x {self.pack.memory}]", self.pack.bytes * self.pack.width
                )
            case "offset":
                return self.element(e.value, args[0])
            case "load":
                return self.load(e, args[0])
            case "call":
                return self.call(e, args)
            case "across" | "scatter" | "load_square" | "store_square":
                return str(getattr(self, e.op)(*args))
            case "spread" | "rounded" | "int":
                return self.conversion(e, args)
            case "select":
                found = select(w, self.types[e.type], *args)
                # without freeze, LLVM makes masked stores of it, which some processors do slowly
                return w(f"freeze {self.pack.text} {found}") if e.type == "pack" else found
            case "idiv" | "imod":
                return w(f"{'sdiv' if e.op == 'idiv' else 'srem'} i64 {args[0]}, {args[1]}")
            case "add" | "sub" if self.types[e.args[0].type].kind == "f":  # with products
                return w(f"f{e.op} contract {self.types[e.args[0].type].text} {', '.join(args)}")
            case _:
                t = self.types[e.args[0].type]
                return emit(w, e.op, t, tuple(args), t.dtype)

    def load(self, e: Expr, index: str) -> str:
        place = self.element(e.value, index)
        found = self.w(f"load {self.memory(e.value)}, ptr {place}{self.aligned(e.value)}")
        narrow = self.kinds[e.value] == "positions"
        return self.w(f"sext i32 {found} to i64") if narrow else found

    def conversion(self, e: Expr, args: Sequence[str]) -> str:
        """Emit a pack of equal numbers, a rounded product or the integer of a number."""
        t, w = self.pack.text, self.w
        if e.op == "rounded":
            return w(f"fmul {self.types[e.type].text} {', '.join(args)}")
        if e.op == "int" and self.real.kind != "f":
            return cast(w, self.types["int"], self.real.dtype, args[0])
        if e.op == "int":
            return w(f"fptosi {self.real.text} {args[0]} to i64")
        first = w(f"insertelement {t} poison, {self.real.text} {args[0]}, i64 0")
        order = f"<{self.pack.width} x i32> zeroinitializer"
        return w(f"shufflevector {t} {first}, {t} poison, {order}")

    def places(self, kind: Type, array: str, step: str) -> list[str]:
        """Emit the addresses of the first elements of a type, ``step`` apart, for each lane."""
        found = [array]
        for _ in range(self.pack.width - 1):
            found.append(self.w(f"getelementptr {kind.memory}, ptr {found[-1]}, i64 {step}"))
        return found

    def across(self, array: str, step: str) -> str:
        """Emit a pack of elements that are ``step`` apart."""
        w, real, found = self.w, self.real, "poison"
        for lane, place in enumerate(self.places(real, array, step)):
            x = w(f"load {real.memory}, ptr {place}")
            found = w(f"insertelement {self.pack.text} {found}, {real.text} {x}, i64 {lane}")
        return found

    def scatter(self, pack: str, array: str, step: str) -> str:
        """Emit stores of the lanes of a pack, ``step`` apart."""
        w, real = self.w, self.real
        for lane, place in enumerate(self.places(real, array, step)):
            x = w(f"extractelement {self.pack.text} {pack}, i64 {lane}")
            w.line(f"store {real.memory} {x}, ptr {place}")
        return "0"

    def load_square(self, array: str, step: str, packs: str, along: str) -> str:
        """Emit the loads of as many elements as lanes, ``step`` apart, and stores of packs."""
        return self.square((self.real, array, step), (self.pack, packs, along))

    def store_square(self, packs: str, along: str, array: str, step: str) -> str:
        """Emit what undoes `load_square`."""
        return self.square((self.pack, packs, along), (self.real, array, step))

    def square(self, source: tuple[Type, str, str], target: tuple[Type, str, str]) -> str:
        """Emit the transposed copy of a square; types, addresses and steps of both sides."""
        w, pack, size = self.w, self.pack.memory, self.real.bytes
        rows = [
            w(f"load {pack}, ptr {place}, align {source[0].align}")
            for place in self.places(*source)
        ]
        found = columns(w, self.real.memory, size, rows)
        for x, place in zip(found, self.places(*target), strict=True):
            w.line(f"store {pack} {x}, ptr {place}, align {target[0].align}")
        return "0"

    def call(self, e: Expr, args: Sequence[str]) -> str:
        w, f = self.w, e.value
        if isinstance(f, Function):
            passed = ", ".join(f"{self.kind(a.type)} {x}" for a, x in zip(e.args, args))
            return w(f"call {self.kind(f.result)} @{self.name(f)}({passed})")
        if f.returns_status:
            return self.call_by_value(f, args)
        given = zip(f.arguments, args, f.passed(self.dtype))
        pointers = [self.cell(kind, x) for kind, x, passed in given if passed]
        status = w.stack("i32")
        if f.has_status:
            w.line(f"store i32 0, ptr {status}")
            pointers.append(status)
        name = f'@"{library_symbol(f, self.dtype)}"'
        w.declares.add(f"declare void {name}({', '.join(['ptr'] * len(pointers))})")
        w.line(f"call void {name}({', '.join(f'ptr {p}' for p in pointers)})")
        return w(f"sext i32 {w(f'load i32, ptr {status}')} to i64") if f.has_status else "0"

    def call_by_value(self, f: LibraryFunction, args: Sequence[str]) -> str:
        """Emit the call of a function of C; its status."""
        types = ["i64" if kind == "size" else "ptr" for kind in f.parameters]
        passed = ", ".join(f"{t} {x}" for t, x in zip(types, [*args, "null"]))
        name = f'@"{library_symbol(f, self.dtype)}"'
        self.w.declares.add(f"declare i32 {name}({', '.join(types)})")
        return self.w(f"sext i32 {self.w(f'call i32 {name}({passed})')} to i64")

    def cell(self, kind: str, x: str) -> str:
        """Emit the address of an argument of a library function."""
        w, real = self.w, self.real
        if kind in ("array", "ints"):
            return x
        place = w.stack(f"[2 x {real.text}]" if kind == "real" else "i64")
        if kind == "real":
            w.store(real.text, x, place)
            w.store(real.text, real.literal(0), place, real.bytes)
        else:
            w.store(_CELLS[kind], w(f"trunc i64 {x} to {_CELLS[kind]}"), place)
        return place
