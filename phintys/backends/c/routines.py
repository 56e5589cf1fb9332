"""Routines as C functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phintys.backends.c.kernels import TYPES, literal
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

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "idiv": "/", "imod": "%", "eq": "==",
    "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&&", "or": "||",
}  # fmt: skip
_FUNCTIONS = {"abs": "fabs", "sqrt": "sqrt", "exp": "exp", "sin": "sin", "cos": "cos"}


def pointer(function: LibraryFunction, dtype: str) -> str:
    """The name of the C variable with the address of a library function."""
    return f"{function.library}_{function.symbol(dtype)}"


def entry(routine: Routine, dtype: str) -> str:
    """The name of the C function of a routine."""
    return f"{routine.name}_{dtype}_{routine.functions[-1].name}"


def emit_routine(routine: Routine, dtype: str) -> str:
    """The C functions of a routine."""
    emit = _Emitter(routine, dtype)
    return "\n".join([emit.function(f) for f in routine.functions])


def emit_library(f: LibraryFunction, dtype: str) -> str:
    """The variable of a library function, and a function that calls it with numbers."""
    real = TYPES[PART.get(dtype, dtype)]
    if f.returns_status:
        types = {"array": f"{real} *", "longs": "int64_t *", "size": "int64_t"}
        names = [f"x{k}" for k in range(len(f.arguments))]
        head = ", ".join(f"{types[kind]} {x}" for kind, x in zip(f.arguments, names))
        kinds = ", ".join("int64_t" if kind == "size" else "void *" for kind in f.parameters)
        name, body = pointer(f, dtype), ", ".join([*names, "NULL"])
        return (
            f"static int (*{name})({kinds});\n"
            f"static int64_t call_{name}({head}) {{ return {name}({body}); }}"
        )
    kinds = {"char": "char", "int": "int", "real": real, "status": "int"}
    kinds |= {"array": real, "ints": "int32_t"}
    name, parameters, types, cells, passed = pointer(f, dtype), [], [], [], []
    for k, (kind, is_passed) in enumerate(zip(f.arguments, f.passed(dtype))):
        is_array = kind in ("array", "ints")
        number = real if kind == "real" else "int64_t"
        parameters.append(f"{kinds[kind]} *x{k}" if is_array else f"{number} x{k}")
        if not is_passed:
            continue
        types.append(f"{kinds[kind]} *")
        if is_array:
            passed.append(f"x{k}")
        else:
            cells.append(f"{kinds[kind]} c{k}[2] = {{({kinds[kind]})x{k}, 0}};")
            passed.append(f"c{k}")
    if f.has_status:
        types.append("int *")
        passed.append("&status")
    body = [*cells, "int status = 0;", f"{name}({', '.join(passed)});", "return status;"]
    head = f"static int64_t call_{name}({', '.join(parameters)})"
    return "\n    ".join([f"static void (*{name})({', '.join(types)});\n{head} {{", *body]) + "\n}"


class _Emitter:
    def __init__(self, routine: Routine, dtype: str) -> None:
        self.dtype, self.prefix = dtype, f"{routine.name}_{dtype}_"
        self.part = PART.get(dtype, dtype)
        real = TYPES[self.part]
        self.types = {"int": "int64_t", "bool": "int", "real": real, "pack": real, "mask": "int"}
        self.types |= dict.fromkeys(("reals", "packs"), f"{real} *")
        self.types |= {"positions": "int32_t *", "longs": "int64_t *"}

    def function(self, f: Function) -> str:
        parameters = ", ".join(f"{self.types[t]} {name}" for name, t in f.parameters)
        head = f"static {self.types[f.result]} {self.prefix}{f.name}({parameters}) {{"
        names = dict(f.parameters)
        local = {name: t for name, t in variables(f.body) if name not in names}
        declared = [f"{self.types[t]} {name} = 0;" for name, t in local.items()]
        lines = [*declared, *self.block(f.body, ""), "return 0;"]
        return "\n".join([head, *("    " + line for line in lines), "}"])

    # ----- statements
    def block(self, body: Sequence[Statement], indent: str = "    ") -> Iterator[str]:
        for statement in body:
            for line in self.statement(statement):
                yield indent + line

    def statement(self, s: Statement) -> Iterator[str]:
        match s:
            case Assign(value=Expr("local")):
                yield f"{self.types['real']} {s.name}_elements[{s.value.value}];"
                yield f"{s.name} = {s.name}_elements;"
            case Assign():
                yield f"{s.name} = {self.expr(s.value)};"
            case Store():
                yield f"{s.array}[{self.expr(s.place)}] = {self.expr(s.value)};"
            case Run():
                yield f"{self.expr(s.value)};"
            case Return():
                yield f"return {self.expr(s.value)};"
            case If():
                yield f"if ({self.expr(s.condition)}) {{"
                yield from self.block(s.then)
                yield "} else {"
                yield from self.block(s.orelse)
                yield "}"
            case While():
                yield f"while ({self.expr(s.condition)}) {{"
                yield from self.block(s.body)
                yield "}"
            case For():
                yield f"{s.name} = {self.expr(s.start)};"
                stop = f"int64_t {s.name}_stop = {self.expr(s.stop)}"
                yield f"for ({stop}; {s.name} < {s.name}_stop; {s.name} += {s.step}) {{"
                yield from self.block(s.body)
                yield "}"

    # ----- expressions
    def expr(self, e: Expr) -> str:
        if e.op == "call":
            own = isinstance(e.value, Function)
            name = self.prefix + e.value.name if own else "call_" + pointer(e.value, self.dtype)
            return f"{name}({', '.join(self.expr(a) for a in e.args)})"
        if e.op == "const":
            return self.constant(e)
        args = [self.expr(a) for a in e.args]
        if e.op in _BINARY:
            return f"({args[0]} {_BINARY[e.op]} {args[1]})"
        if e.op in _FUNCTIONS:
            suffix = "f" if self.types["real"] == "float" else ""
            return f"{_FUNCTIONS[e.op]}{suffix}({args[0]})"
        return {
            "name": lambda: e.value,
            "parts": lambda: str(2 if self.dtype in PART else 1),
            "lanes": lambda: "1",
            "load": lambda: f"{e.value}[{args[0]}]",
            "offset": lambda: f"({e.value} + {args[0]})",
            "neg": lambda: f"(-{args[0]})",
            "not": lambda: f"(!{args[0]})",
            "select": lambda: f"({args[0]} ? {args[1]} : {args[2]})",
            "spread": lambda: args[0],
            "across": lambda: f"{args[0]}[0]",
            "scatter": lambda: f"{args[1]}[0] = {args[0]}",
            "load_square": lambda: f"{args[2]}[0] = {args[0]}[0]",
            "store_square": lambda: f"{args[2]}[0] = {args[0]}[0]",
            "rounded": lambda: f"({args[0]} * {args[1]})",
            "int": lambda: f"(int64_t)({args[0]})",
        }[e.op]()

    def constant(self, e: Expr) -> str:
        if e.type == "int":
            return f"INT64_C({e.value})"
        return str(int(e.value)) if e.type == "bool" else literal(e.value, self.part)
