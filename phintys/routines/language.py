"""The subset of Python in which routines are written, and its syntax trees.

Values are integers (64 bits), numbers of the routine's dtype (for a complex dtype, its real and
imaginary parts), bools, arrays, which are blocks of memory with one index, and packs: `LANES`
numbers, on which an instruction computes at once.  A function has

- annotated parameters: ``int``, `Real`, `Array` (of the dtype), `Positions` (int32), `Longs`
  (int64), `Pack` and `Packs` (an array of packs; a call may pass an `Array` for it);
- assignments to names and elements, also ``+=`` and the like; a name keeps its type, and one that
  a loop or branch assigns first is local to it;
- ``for name in range(...)`` with a positive constant step, ``while``, ``if``, ``return``;
- ``+ - *`` and comparisons; ``/`` of numbers, ``//`` and ``%`` of integers that are not negative;
  ``and``, ``or``, ``not``, ``x if c else y``, of which both sides are evaluated; ``sqrt``;
- ``exp``, ``sin`` and ``cos`` of numbers;
- ``+ - * /``, ``sqrt`` and ``abs`` of packs, lane by lane; one operand may be a literal;
  comparisons of packs, for ``x if c else y``, which selects lane by lane; ``spread(x)``: a pack of
  equal numbers; ``across(a, step)``: the pack of ``a[0]``, ``a[step]``, ``a[2 * step]`` and so on;
  ``scatter(x, a, step)`` writes a pack to these elements; ``load_square(a, step, s, along)`` and
  ``store_square(s, along, a, step)`` do that with `LANES` packs, ``s[k * along]`` and ``a[k:]``;
- ``rounded(x * y)``: a product that is rounded before it is added to something, also where the
  processor has an instruction for both;
- ``abs`` of a number; ``int`` of one, which must be in the range of integers;
- `in_numbers`: a function on packs as one on numbers, for a single matrix;
- `apart`, a decorator: the function is not inlined, as all others are;
- ``a[k:]``: the array from an element on; ``local(N * LANES)``: a new `Array`, for a constant
  ``N``, whose elements are undefined;
- calls of other functions of the subset, and of functions of `libraries`;
- constants: literals, numbers among the module's globals, `PARTS` and `LANES`.

The counter of a loop must not be assigned to; a loop ends with its bound as it was at its start.
A number that is not from an array must not be divided by zero: the interpreter raises then.

The step of a Program that calls a routine polls for signals between the items of a batch, not
within the routine.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any, NamedTuple, Union

import numpy as np

from phintys.routines.libraries import LibraryFunction

Failure = tuple[type[Exception], str]
Real = Any
Array = Any
Positions = Any
Longs = Any
Pack = Any
Packs = Any

#: dtype -> that of its parts
PART = {"complex64": "float32", "complex128": "float64"}
#: how many numbers an element of an array consists of: 2 if the routine's dtype is complex, else 1
PARTS = 1
#: how many numbers a pack has: in llvm as many as a vector register holds, elsewhere 1
LANES = 1

#: annotation -> type
_TYPES = {
    "int": "int", "Real": "real", "Array": "reals", "Positions": "positions", "Longs": "longs",
    "Pack": "pack", "Packs": "packs", "None": "int",
}  # fmt: skip
_ELEMENT = {"reals": "real", "positions": "int", "longs": "int", "packs": "pack"}
#: types of numbers that may be fractions
_FLOATS = ("real", "pack")
#: type of what is compared -> type of the result, and of a condition -> types that it selects
_TRUTHS = {"pack": "mask"}
#: parameter of a library function -> type
_OUTSIDE = {
    "char": "int", "int": "int", "size": "int", "real": "real", "array": "reals",
    "ints": "positions", "longs": "longs",
}  # fmt: skip
#: array types of integers -> dtype
INTEGERS = {"positions": "int32", "longs": "int64"}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "idiv",
    ast.Mod: "imod", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt",
    ast.GtE: "ge", ast.And: "and", ast.Or: "or",
}  # fmt: skip
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


class Expr(NamedTuple):
    """An expression.

    ``op``: an operator, or ``const``, ``name``, ``parts``, ``lanes``, ``load`` (an element of the
    array ``value``), ``offset`` (that array from an element on), ``local`` (a new array of
    ``value`` packs), ``spread``, ``rounded`` (a product), a key of `IN_LANES`, ``call`` (of a
    `Function` or `LibraryFunction`).
    """

    op: str
    type: str
    args: tuple[Expr, ...] = ()
    value: Any = None


class Assign(NamedTuple):
    name: str
    value: Expr


class Store(NamedTuple):
    array: str
    place: Expr
    value: Expr


class For(NamedTuple):
    name: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Statement, ...]


class While(NamedTuple):
    condition: Expr
    body: tuple[Statement, ...]


class If(NamedTuple):
    condition: Expr
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


class Return(NamedTuple):
    value: Expr


class Run(NamedTuple):
    """A call whose result is not used."""

    value: Expr


Statement = Union[Assign, Store, For, While, If, Return, Run]


class Function(NamedTuple):
    """A function: names and types of parameters, the type of the result, statements.

    ``apart``: whether it is not inlined; ``code``: that of the Python function.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    result: str
    body: tuple[Statement, ...]
    apart: bool
    code: CodeType


ZERO = Expr("const", "int", (), 0)


def variables(body: Sequence[Statement]) -> Iterator[tuple[str, str]]:
    """Names and types of all variables that statements define."""
    for s in body:
        if isinstance(s, Assign):
            yield s.name, s.value.type
        elif isinstance(s, If):
            yield from variables((*s.then, *s.orelse))
        elif isinstance(s, (For, While)):
            yield from [(s.name, "int")] if isinstance(s, For) else []
            yield from variables(s.body)


# ------------------------------------------------------------------------- routines


class Routine:
    """A function of the subset that steps of Programs call, for some dtypes.

    The steps pass the parameters in this order: integers, arrays that are read, arrays that are
    updated, arrays that are only written.  The result is 0, or another integer if it fails.
    A ``grouped`` routine computes several items of a batch, which are adjacent in all its arrays;
    their number comes before the other integers.
    """

    def __init__(
        self,
        python: FunctionType,
        dtypes: tuple[str, ...],
        failure: Failure,
        grouped: bool = False,
    ):
        self.name, self.dtypes, self._function = _new_name(python), dtypes, python
        self.failure, self.grouped = failure, grouped
        self.is_ours = _is_ours(python)  # its text depends on this package only

    def __repr__(self) -> str:
        return f"<Routine {self.name}>"

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The syntax trees of all functions that it consists of; the last one is called first."""
        found: dict[str, Function] = {}
        _parse(self._function, found)
        return tuple(found.values())

    @cached_property
    def libraries(self) -> tuple[LibraryFunction, ...]:
        """The library functions that it calls."""
        calls = (e.value for f in self.functions for e in expressions(f.body) if e.op == "call")
        return tuple(dict.fromkeys(c for c in calls if isinstance(c, LibraryFunction)))

    @property
    def count_of_arrays(self) -> int:
        """How many of its parameters are arrays."""
        return sum([kind in _ELEMENT for _, kind in self.functions[-1].parameters])

    def is_available(self, dtype: str) -> bool:
        """Whether it has the dtype, its source is there, and SciPy has what it calls."""
        try:
            return dtype in self.dtypes and all([f.address(dtype) for f in self.libraries])
        except (LookupError, OSError):
            return False

    def python(
        self,
        dtype: str,
        library: Callable[[LibraryFunction, str], Any] = LibraryFunction.bound,
        compiled: Callable[[Any], Any] = lambda f: f,
        known: dict[CodeType, Any] | None = None,
    ) -> Any:
        """The routine for a dtype as a Python function.

        ``library(row, dtype)`` makes the functions it calls; ``compiled`` is applied to each
        function.  ``known``: those of other routines for the dtype; new ones are added.
        """
        made = {} if known is None else known
        part = np.dtype(PART.get(dtype, dtype))
        new_array = compiled(lambda n: np.empty(n, part))
        unchanged = compiled(lambda x: x)
        in_lanes = {name: compiled(f) for name, f in _IN_LANES.items()}

        def make(f: FunctionType) -> Any:
            names = {**f.__globals__, "PARTS": 2 if dtype in PART else 1, "LANES": 1}
            names |= {
                **{name: getattr(np, name) for name in _FUNCTIONS},
                "local": new_array,
                "spread": unchanged,
                "rounded": unchanged,
                **in_lanes,
            }
            for name in f.__code__.co_names:
                value = f.__globals__.get(name)
                if isinstance(value, LibraryFunction):
                    names[name] = library(value, dtype)
                elif isinstance(value, FunctionType) and value not in _OPERATIONS:
                    names[name] = made.get(value.__code__) or make(value)
            made[f.__code__] = compiled(FunctionType(f.__code__, names, f.__name__))
            return made[f.__code__]

        return make(self._function)


#: all routines by name: that of the function, for functions of others with their module
ROUTINES: dict[str, Routine] = {}


def _new_name(python: FunctionType) -> str:
    """A name for a routine that no other one has.

    ValueError if the function is one of this package, whose names must be the same in each process.
    """
    name, own = python.__name__, _is_ours(python)
    if own and name in ROUTINES:
        raise ValueError(f"There is a routine called {name!r} already.")
    if not own:
        name = re.sub(r"\W", "_", f"{python.__module__}_{name}")
    count = sum(n.partition("__again")[0] == name for n in ROUTINES)
    return f"{name}__again{count}" if count else name


def _is_ours(python: FunctionType) -> bool:
    """Whether a function is one of this package."""
    return str(python.__module__).startswith(_PACKAGE)


_PACKAGE = __name__.partition(".")[0] + "."


def routine(dtypes: str, failure: Failure, grouped: bool = False) -> Callable[[Any], Routine]:
    """A decorator that makes a `Routine` of a function, for dtypes that a text lists.

    ``failure``: the class and the message of the exception if the routine fails where the reference
    does not, because of rounding errors or lack of memory.
    """

    def decorate(function: Any) -> Routine:
        made = Routine(function, tuple(dtypes.split()), failure, grouped)
        ROUTINES[made.name] = made
        return made

    return decorate


def sqrt(x: Real) -> Real:
    """The square root, in routines."""
    return np.sqrt(x)


def exp(x: Real) -> Real:
    """The exponential, in routines."""
    return np.exp(x)


def sin(x: Real) -> Real:
    """The sine, in routines."""
    return np.sin(x)


def cos(x: Real) -> Real:
    """The cosine, in routines."""
    return np.cos(x)


def local(n: int) -> Array:
    """A new array of ``n`` numbers, in routines: a constant times `LANES`."""
    return np.empty(n)


def spread(x: Real) -> Pack:
    """A pack of equal numbers, in routines."""
    return x


def across(a: Array, step: int) -> Pack:
    """A pack of elements that are ``step`` apart, in routines."""
    return a[0]


def scatter(x: Pack, a: Array, step: int) -> None:
    """Write a pack to elements that are ``step`` apart, in routines."""
    a[0] = x


def load_square(a: Array, step: int, s: Packs, along: int) -> None:
    """Write ``across(a[k:], step)`` to ``s[k * along]`` for all k below `LANES`, in routines."""
    s[0] = a[0]


def store_square(s: Packs, along: int, a: Array, step: int) -> None:
    """Do ``scatter(s[k * along], a[k:], step)`` for all k below `LANES`, in routines."""
    a[0] = s[0]


def rounded(x: Real) -> Real:
    """A product that is rounded before it is added to something, in routines."""
    return x


#: operations with elements that belong to lanes -> types of parameters, and of the result
IN_LANES = {
    "across": (["reals", "int"], "pack"),
    "scatter": (["pack", "reals", "int"], "int"),
    "load_square": (["reals", "int", "packs", "int"], "int"),
    "store_square": (["packs", "int", "reals", "int"], "int"),
}
_IN_LANES = {f.__name__: f for f in (across, scatter, load_square, store_square)}
#: functions of numbers; ``sqrt`` is one of packs, too
_FUNCTIONS = {f.__name__: f for f in (sqrt, exp, sin, cos)}
_OPERATIONS = (local, spread, rounded, *_FUNCTIONS.values(), *_IN_LANES.values())


def in_numbers(function: Any) -> Any:
    """A function on packs as a function on numbers and arrays of them.

    The functions on packs that it calls become such functions too.
    """
    name = f"{function.__name__}_in_numbers"
    made = FunctionType(function.__code__, function.__globals__, name)
    made.__module__, made.__dict__["in_numbers"] = function.__module__, True
    return made


def apart(function: Any) -> Any:
    """A decorator of large functions: LLVM takes less time for several than for one."""
    function.__dict__["apart"] = True
    return function


# -------------------------------------------------------------------------- parsing


def expressions(body: Sequence[Statement]) -> Iterator[Expr]:
    """All expressions in statements."""
    for s in body:
        for field in s:
            if isinstance(field, Expr):
                yield from _parts(field)
            elif isinstance(field, tuple):
                yield from expressions(field)


def _parts(e: Expr) -> Iterator[Expr]:
    yield e
    for a in e.args:
        yield from _parts(a)


def _parse(python: FunctionType, found: dict[str, Function]) -> Function:
    """The syntax tree of a function; it and those that it calls are added to ``found``."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(python))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.name = python.__name__
    function = _Parser(python, found).function(tree)
    found[function.name] = function
    return function


class _Parser:
    """Parses one function; ``types`` holds the types of the names that are defined."""

    def __init__(self, python: FunctionType, found: dict[str, Function]):
        self.python, self.found = python, found
        self.types: dict[str, str] = {}
        self.defined: dict[str, str] = {}
        self.counters: set[str] = set()  # of the loops around the statement
        self.result = "int"
        in_numbers = hasattr(python, "in_numbers")
        self.named = {**_TYPES, "Pack": "real", "Packs": "reals"} if in_numbers else _TYPES

    def function(self, tree: ast.FunctionDef) -> Function:
        for a in tree.args.args:
            self.define(a.arg, self.annotated(a.annotation, a), a)
        parameters = tuple(self.types.items())
        self.result = self.annotated(tree.returns, tree.returns or tree)
        body, apart = self.block(tree.body), hasattr(self.python, "apart")
        return Function(tree.name, parameters, self.result, body, apart, self.python.__code__)

    def annotated(self, annotation: ast.expr | None, node: ast.AST) -> str:
        """The type that an annotation of ``node`` names."""
        found = self.named.get(ast.unparse(annotation or ast.Constant(None)))
        if found is None:
            raise self.wrong(node)
        return found

    def wrong(self, node: ast.AST, reason: str = "not in the subset for routines") -> SyntaxError:
        place = f"{self.python.__code__.co_filename}, {self.python.__name__}"
        return SyntaxError(f"{place}: {ast.unparse(node)!r} is {reason}.")

    def define(self, name: str, kind: str, node: ast.AST) -> None:
        """Set the type of a name, which must be the same throughout the function."""
        if self.defined.setdefault(name, kind) != kind:
            raise self.wrong(node)
        self.types[name] = kind

    # ----- statements
    def block(self, body: Sequence[ast.stmt]) -> tuple[Statement, ...]:
        """The statements of a block; names that it defines are local to it."""
        before = dict(self.types)
        made = tuple([s for node in body for s in self.statement(node)])
        self.types = before
        return made

    def statement(self, node: ast.stmt) -> list[Statement]:
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                return []
            case ast.Expr(value=ast.Call()):
                return [Run(self.expr(node.value))]
            case ast.Assign(targets=[target]):
                return [self.assign(target, self.expr(node.value))]
            case ast.AugAssign():
                left = ast.parse(ast.unparse(node.target), mode="eval").body
                value = self.expr(ast.BinOp(left, node.op, node.value))
                return [self.assign(node.target, value)]
            case ast.For(
                target=ast.Name(id=n), iter=ast.Call(func=ast.Name(id="range"), args=span)
            ):
                return [self.loop(n, span, node)]
            case ast.While():
                return [While(self.typed(node.test, "bool"), self.block(node.body))]
            case ast.If():
                test = self.typed(node.test, "bool")
                return [If(test, self.block(node.body), self.block(node.orelse))]
            case ast.Return():
                return [Return(self.typed(node.value, self.result) if node.value else ZERO)]
            case _:
                raise self.wrong(node)

    def assign(self, target: ast.expr, value: Expr) -> Statement:
        match target:
            case ast.Name(id=name) if name not in self.counters:
                self.define(name, value.type, target)
                return Assign(name, value)
            case ast.Subscript(value=ast.Name(id=name)):
                if value.type != _ELEMENT[self.types[name]]:
                    raise self.wrong(target)
                return Store(name, self.typed(target.slice, "int"), value)
            case _:
                raise self.wrong(target)

    def loop(self, name: str, span: Sequence[ast.expr], node: ast.For) -> For:
        first, *rest = [self.typed(a, "int") for a in span]
        start, stop = (first, rest[0]) if rest else (ZERO, first)
        step = rest[1].value if len(rest) > 1 else 1
        if not isinstance(step, int) or step < 1 or name in self.types:
            raise self.wrong(node)
        self.define(name, "int", node)
        self.counters.add(name)
        body = self.block(node.body)
        self.counters.remove(name)
        del self.types[name]
        return For(name, start, stop, step, body)

    # ----- expressions
    def typed(self, node: ast.expr, kind: str) -> Expr:
        """An expression that must be of a type."""
        found = self.expr(node)
        if found.type != kind:
            raise self.wrong(node)
        return found

    def expr(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant():
                return self.constant(node.value, node)
            case ast.Name(id=name):
                return self.name(name, node)
            case ast.UnaryOp(op=ast.USub()):
                x = self.expr(node.operand)
                return Expr("const", x.type, (), -x.value) if x.op == "const" else _minus(x)
            case ast.UnaryOp(op=ast.Not()):
                return Expr("not", "bool", (self.typed(node.operand, "bool"),))
            case ast.BinOp():
                return self.binary(node.op, node.left, node.right, node)
            case ast.Compare(ops=[op], comparators=[right]):
                return self.binary(op, node.left, right, node)
            case ast.BoolOp():
                args = [self.typed(v, "bool") for v in node.values]
                result = args[0]
                for a in args[1:]:
                    result = Expr(_OPERATORS[type(node.op)], "bool", (result, a))
                return result
            case ast.IfExp():
                test, then, orelse = map(self.expr, (node.test, node.body, node.orelse))
                kind = "pack" if test.type == "mask" else then.type
                then, orelse = _in_lanes(then, kind), _in_lanes(orelse, kind)
                if test.type != _TRUTHS.get(kind, "bool") or {then.type, orelse.type} != {kind}:
                    raise self.wrong(node)
                return Expr("select", kind, (test, then, orelse))
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice(lower, None, None)):
                start = self.typed(lower or ast.Constant(0), "int")
                return Expr("offset", self.types[name], (start,), name)
            case ast.Subscript(value=ast.Name(id=name)):
                element = _ELEMENT[self.types[name]]
                return Expr("load", element, (self.typed(node.slice, "int"),), name)
            case ast.Call(func=ast.Name(id=name)):
                return self.call(name, tuple(self.expr(a) for a in node.args), node)
            case _:
                raise self.wrong(node)

    def constant(self, value: Any, node: ast.expr) -> Expr:
        kinds = {bool: "bool", int: "int", float: "real"}
        if type(value) not in kinds:
            raise self.wrong(node)
        return Expr("const", kinds[type(value)], (), value)

    def name(self, name: str, node: ast.expr) -> Expr:
        if name in self.types:
            return Expr("name", self.types[name], (), name)
        if name in ("PARTS", "LANES"):
            return Expr(name.lower(), "int")
        return self.constant(self.python.__globals__.get(name), node)

    def binary(self, op: ast.AST, left: ast.expr, right: ast.expr, node: ast.expr) -> Expr:
        a, b = self.expr(left), self.expr(right)
        a, b = _in_lanes(a, b.type), _in_lanes(b, a.type)
        name = _OPERATORS.get(type(op), "")
        kinds = {"div": _FLOATS, "idiv": ("int",), "imod": ("int",)}
        if not name or a.type != b.type or a.type not in kinds.get(name, (a.type,)):
            raise self.wrong(node)
        if "mask" in (a.type, b.type):
            raise self.wrong(node)
        return Expr(name, _TRUTHS.get(a.type, "bool") if name in COMPARISONS else a.type, (a, b))

    def call(self, name: str, args: tuple[Expr, ...], node: ast.expr) -> Expr:
        function = self.python.__globals__.get(name)
        if function is rounded and len(args) == 1 and args[0].op == "mul":
            return args[0]._replace(op="rounded")
        if name in ("abs", "int") or function is spread:
            return self.conversion(name, args, node)
        if isinstance(function, LibraryFunction):
            made, result, wanted = function, "int", [_OUTSIDE[kind] for kind in function.arguments]
        elif name in _FUNCTIONS and function is _FUNCTIONS[name]:
            result = "pack" if function is sqrt and args and args[0].type == "pack" else "real"
            made, wanted = None, [result]
        elif function is local:
            return self.local(args, node)
        elif name in IN_LANES and function is _IN_LANES[name]:
            if self.named is not _TYPES:  # a function on numbers
                raise self.wrong(node)
            made, (wanted, result) = None, IN_LANES[name]
        elif isinstance(function, FunctionType):
            if self.named is not _TYPES and not hasattr(function, "in_numbers"):
                function = in_numbers(function)
            made = self.found.get(function.__name__) or _parse(function, self.found)
            if made.code is not function.__code__:
                raise self.wrong(
                    node, "a call of another function than one before, of the same name"
                )
            result, wanted = made.result, [t for _, t in made.parameters]
        else:
            raise self.wrong(node)
        found = [a.type if a.type != "reals" or t != "packs" else t for a, t in zip(args, wanted)]
        if len(args) != len(wanted) or found != wanted:
            raise self.wrong(node)
        return Expr("call" if made else name, result, args, made)

    def conversion(self, name: str, args: tuple[Expr, ...], node: ast.expr) -> Expr:
        """``abs(x)``, ``int(x)`` or ``spread(x)``."""
        if len(args) != 1 or args[0].type not in (_FLOATS if name == "abs" else ("real",)):
            raise self.wrong(node)
        (x,) = args
        if name == "spread":
            return Expr("spread", "pack", (x,)) if self.named is _TYPES else x
        return Expr(name, x.type if name == "abs" else "int", (x,))

    def local(self, args: tuple[Expr, ...], node: ast.expr) -> Expr:
        """An array of a constant length, times `LANES` if that is the last factor."""
        match args:
            case (Expr("mul", "int", (Expr("const", _, _, int(n)), Expr("lanes"))),):
                return Expr("local", "reals", (), n)
            case _:
                raise self.wrong(node)


def _in_lanes(x: Expr, kind: str) -> Expr:
    """A literal as a pack of equal numbers, beside a pack."""
    is_literal = x.op == "const" and x.type == "real"
    return x._replace(type="pack") if is_literal and kind == "pack" else x


def _minus(x: Expr) -> Expr:
    return Expr("neg", x.type, (x,))
