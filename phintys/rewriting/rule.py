"""`Rule`: a rewrite with metadata, among it its law: the sense in which both sides are equal.

A rule is tried at nodes with certain ops.  It is defined by a function

    @rule("x + 0 -> x", ops=[add])
    def drop_zero(ctx, node): ...

by a pattern, written as text (`phintys.rewriting.syntax`), and a function of what it binds

    @rule("exp(log_softmax(x)) -> softmax(x)", "exp(LogSoftmax(x, axis=a))")
    def exp_of_log_softmax(x, a):
        return Softmax(axis=a)(x)

or by two expressions over pattern variables

    rule("log(1 + x) -> log1p(x)", lhs=lambda x: log(1 + x), rhs=lambda x: log1p(x))
    equation("log(1 + x) -> log1p(x)")

of which the left one is converted to a pattern when the rule is first needed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.index import TrackIndex, tracked_ops
from phintys.rewriting.rewriter import NodeRewriter
from phintys.rewriting.syntax import Reader, Unreadable, names_in, parsed
from phintys.rewriting.unify import PatternNode, PatternVar, matches_of_rule, rule_key

#: The senses in which both sides of a rule can be equal.
Law = Literal["exact", "rounding", "accurate", "finite", "drops_errors"]
LAWS: dict[Law, str] = {
    "exact": "The same bits. Every NaN is equal to every other.",
    "rounding": "Equal up to rounding and the signs of zeros, where no intermediate result, of "
    "either side, overflows or underflows.",
    "accurate": "The right side is at least as close to the exact value as the left side, also "
    "where that overflows. Without an exact value both are NaN. Digits that intermediate results "
    "of the right side lose by underflow do not count.",
    "finite": "As rounding, where all inputs, and all intermediate results of the left side, are "
    "finite.",
    "drops_errors": "As rounding, where the left side raises no error.",
}


class Context(Protocol):
    """The first argument of a rule's function: queries on the graph that is being rewritten."""

    fgraph: FunctionGraph

    def uses(self, variable: Variable) -> int:
        """The number of uses of a variable, as an input of a node or an output of the graph."""
        ...

    def single_use(self, variable: Variable) -> bool:
        """Whether the variable has at most one use."""
        ...

    def client(self, variable: Variable) -> Apply | None:
        """A node that uses the variable; reliable if it has a single use."""
        ...


RuleFunction = Callable[[Any, Apply], Any]
#: Conditions for what pattern variables match, by name.
Given = Mapping[str, Callable[[Any], bool]]


def _never(ctx: Any, node: Apply) -> None:
    """The default function of a rule, which never applies."""


@dataclass(eq=False, repr=False)
class Rule(NodeRewriter):
    """A rewrite of one node, for the engine (`phintys.rewriting.engine`).

    It is also a `NodeRewriter`, so it can be registered, queried and applied by walkers like
    others.

    Parameters
    ----------
    name
        the equation, or a name
    function
        ``function(ctx, node)`` returns None (no change), a variable, or a list with one variable
        per output (None for an output that is not used).  The inputs of ``node`` are in normal
        form; ``ctx`` is a `Context`.
    ops
        the ops, op classes, OpPatterns or rule keys at which it is tried; None: every op
    phase, tags
        phase of compilation and tags under which it is registered in databases
    law
        the sense in which both sides are equal, a key of `LAWS`; tested by
        `phintys.rewriting.check`
    tested_on
        inputs on which to test it, in a form that the tests define
    where
        ``where(producers)`` returns whether it can apply at a node, given for each input the op
        that computes it, the class `Constant`, or None.  The result is cached.
    outermost
        whether to try it only at the last node of a chain: not at a node whose only use is in a
        node at which the same rule is tried, and which sees the whole chain
    idempotent
        whether it never applies to the node that it has made, while that has the same inputs
    follow_up
        whether to try it only at nodes that the run makes or changes, because an earlier phase has
        tried it at all others
    file, line
        where it is defined

    Raises
    ------
    ValueError
        if there is no such law, or ``ops`` is empty

    >>> import phintys.tensor as pt
    >>> from phintys.rewriting.engine import RuleSet
    >>> def square(ctx, node):
    ...     x, y = node.inputs
    ...     return pt.sqr(x) if x is y else None
    >>> rule = Rule("x * x -> sqr(x)", square, ops=[pt.mul])
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [x * x], clone=False)
    >>> RuleSet([rule]).apply(fgraph), fgraph.toposort()
    (True, [Sqr(x)])
    """

    name: str
    function: RuleFunction = _never
    ops: Sequence[Any] | None = None
    phase: str = "canonicalize"
    tags: tuple[str, ...] = ()
    law: Law = "exact"
    tested_on: Any = None
    where: Callable[[Sequence[Any]], bool] | None = None
    outermost: bool = False
    idempotent: bool = False
    follow_up: bool = False
    file: str = ""
    line: int = 0
    _index: TrackIndex[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise ValueError(
                f"Rule {self.name}: {self.law!r} is no law; choose from {', '.join(LAWS)}."
            )
        if self.ops is not None:
            self.ops = tracked_ops(self.ops)
            if not self.ops:
                raise ValueError(f"Rule {self.name} tracks no op; write ops=None for every op.")

    def tracks(self) -> Sequence[Any] | None:
        return self.ops

    def fits_op(self, op: Any) -> bool:
        """Whether it can apply at nodes with an op that it tracks."""
        return True

    def may_apply(self, producers: Sequence[Any]) -> bool:
        """Whether it can apply at a node whose inputs have these producers (see ``where``)."""
        return self.where is None or self.where(producers)

    def transform(self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = True) -> Any:
        """Apply the rule as a node rewriter, outside of the engine."""
        if enforce_tracks:
            if self._index is None:
                self._index = TrackIndex([(None, self.tracks())])
            if not self._index[node.op]:
                return False
        result = self.function(GraphContext(fgraph), node)
        if result is None or result is False:
            return False
        return [result] if isinstance(result, Variable) else result

    def __call__(self, ctx: Any, node: Apply) -> Any:
        return self.function(ctx, node)


class GraphContext:
    """The `Context` of a rule that is applied outside of the engine."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph

    def uses(self, variable: Variable) -> int:
        return len(self.fgraph.clients.get(variable, ()))

    def single_use(self, variable: Variable) -> bool:
        return self.uses(variable) <= 1

    def client(self, variable: Variable) -> Apply | None:
        clients = self.fgraph.clients.get(variable)
        return clients[0][0] if clients else None


# ---------------------------------------------------------------------------- patterns


@dataclass
class _Defaults:
    """The default type of pattern variables, and the functions that the text of equations may use.

    The tensor layer sets both, because this folder knows neither types nor ops.
    """

    variable: Callable[[str], Variable] | None = None
    namespace: Mapping[str, Any] | None = None


_defaults = _Defaults()


def set_pattern_defaults(
    variable: Callable[[str], Variable] | None = None, namespace: Mapping[str, Any] | None = None
) -> None:
    """Set the function that makes a pattern variable, and the namespace of equations."""
    if variable is not None:
        _defaults.variable = variable
    if namespace is not None:
        _defaults.namespace = namespace


#: A pattern and its variables by name.
Pattern = tuple[PatternNode, dict[str, Any]]


class LeftSide:
    """The pattern of a `PatternRule`, read when it is first needed; copies of the rule share it."""

    def __init__(self, text: str, given: Given | None, namespace: Mapping[str, Any] | None) -> None:
        self.text, self.given, self.namespace = text, given, namespace

    @cached_property
    def ops(self) -> list[Any]:
        """The ops and classes of ops that the pattern may apply last; the rest is not read."""
        found, _ = Reader(self._names).root(self._tree)
        return found

    @cached_property
    def pattern(self) -> PatternNode:
        """The pattern; ValueError if the text is none."""
        return self._read[0]

    @property
    def variables(self) -> Mapping[str, Any]:
        """The pattern variables by name."""
        return self._read[1]

    @cached_property
    def _tree(self) -> Any:
        return parsed(self.text, self.text).body

    @property
    def _names(self) -> Mapping[str, Any]:
        return (_defaults.namespace or {}) if self.namespace is None else self.namespace

    @cached_property
    def _read(self) -> Pattern:
        reader = Reader(self._names, self.given)
        pattern = reader.applied(self._tree)
        unknown = set(self.given or ()) - set(reader.variables)
        if unknown:
            raise ValueError(f"{self.text!r} does not bind {', '.join(sorted(unknown))}.")
        return pattern, reader.variables


@dataclass(eq=False, repr=False)
class PatternRule(Rule):
    """A rule given by a pattern, and a function of what the pattern binds: the right side.

    ``build`` takes some or all of the pattern variables, ``ctx`` and ``node``, by name, and returns
    what a rule's function returns.  Where it returns None the next match is tried, if inputs can
    match in several orders.  ``given`` are conditions for what pattern variables match, by name.
    """

    left: LeftSide = field(kw_only=True)
    build: Callable[..., Any] = field(kw_only=True)
    single_use: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.function = self.apply_at

    def tracks(self) -> Sequence[Any] | None:
        if self.ops is None:
            self.ops = [rule_key(op) for op in self.left.ops]
        return self.ops

    def fits_op(self, op: Any) -> bool:
        return self.left.pattern.fits_op(op)

    def may_apply(self, producers: Sequence[Any]) -> bool:
        return self.left.pattern.may_match(producers) and super().may_apply(producers)

    @cached_property
    def _arguments(self) -> list[Any]:
        """For each parameter of ``build`` the key of its value in the bindings of a match."""
        known = {"ctx": "ctx", "node": "node", **self.left.variables}
        unknown = [name for name in parameters(self.build) if name not in known]
        if unknown:
            raise ValueError(f"{self.left.text!r} does not bind {', '.join(unknown)}.")
        return [known[name] for name in parameters(self.build)]

    def apply_at(self, ctx: Any, node: Apply) -> Any:
        """The replacement for the outputs of ``node``; None if the rule does not apply."""
        given = {"ctx": ctx, "node": node}
        accept = ctx.single_use if self.single_use else None
        for subs in matches_of_rule(self.left.pattern, node, given, accept):
            new = self.build(*[subs[key] for key in self._arguments])
            if new is not None:
                return new
        return None


# --------------------------------------------------------------------------- equations


class Sides:
    """Both sides of an equation as functions, with the pattern of the left side when it is known.

    Copies of a rule in several databases share this object, so the pattern is made once.
    """

    def __init__(self, lhs: Callable[..., Any], rhs: Callable[..., Any]) -> None:
        self.lhs = lhs
        self.rhs = rhs
        self.pattern: PatternNode | None = None
        self.vars: dict[str, PatternVar] = {}

    def root(self) -> Any:
        """The op that the left side applies last, if it is known without tracing; else None."""
        return None

    def read(self) -> Pattern | None:
        """The pattern of the left side, if it is known without tracing; else None."""
        return None


@dataclass(eq=False, repr=False)
class Equation(Rule):
    """A rule given by two expressions: ``lhs(x, ...)`` is replaced by ``rhs(x, ...)``.

    ``when`` and ``rhs`` take some or all of the parameters of ``lhs``, by name; the rule applies
    where ``when`` is true.  It does not apply where the right side has another dtype or shape, for
    instance because a constant is broadcast.
    """

    sides: Sides = field(kw_only=True)
    when: Callable[..., bool] | None = None
    types: Mapping[str, Any] | None = None
    single_use: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.function = self.apply_at

    @property
    def lhs(self) -> Callable[..., Any]:
        """The left side as a function of the pattern variables."""
        return self.sides.lhs

    @property
    def rhs(self) -> Callable[..., Any]:
        """The right side as a function of some of the pattern variables."""
        return self.sides.rhs

    def tracks(self) -> Sequence[Any] | None:
        if self.ops is None:
            root = self.sides.root()
            self.ops = [rule_key(self.pattern.op_match if root is None else root)]
        return self.ops

    @property
    def pattern(self) -> PatternNode:
        """The pattern of the left side, made on first use."""
        sides = self.sides
        if sides.pattern is None:
            sides.pattern, sides.vars = sides.read() or self.traced()
        return sides.pattern

    def left_side(self) -> tuple[dict[str, Variable], Any]:
        """New variables by name, and the left side applied to them."""
        given = {name: self._variable(name) for name in parameters(self.lhs)}
        return given, self.lhs(**given)

    def _variable(self, name: str) -> Variable:
        if self.types is not None and name in self.types:
            typed: Variable = self.types[name](name)
            return typed
        if _defaults.variable is None:
            raise TypeError(
                f"Rule {self.name}: variable {name} has no type; give types={{{name!r}: ...}}."
            )
        return _defaults.variable(name)

    def traced(self) -> Pattern:
        """The pattern of the left side, by tracing: from the graph that ``lhs`` builds."""
        given, root = self.left_side()
        names = {name: PatternVar(name) for name in given}
        pattern = _as_pattern(root, {v: names[name] for name, v in given.items()})
        if not isinstance(pattern, PatternNode):
            raise TypeError(f"Rule {self.name}: the left side must apply an op, not {root!r}.")
        return pattern, names

    def may_apply(self, producers: Sequence[Any]) -> bool:
        return self.pattern.may_match(producers) and super().may_apply(producers)

    def match(self, ctx: Any, node: Apply) -> dict[str, Any] | None:
        """The bindings of the pattern variables at ``node``, by name; None if it does not match."""
        pattern = self.sides.pattern or self.pattern
        accept = ctx.single_use if self.single_use else None
        for subs in matches_of_rule(pattern, node, {}, accept):
            return {name: subs[var] for name, var in self.sides.vars.items() if var in subs}
        return None

    def apply_at(self, ctx: Any, node: Apply) -> Any:
        """The replacement for the output of ``node``; None if the rule does not apply."""
        bound = self.match(ctx, node)
        if bound is None or not (self.when is None or _call(self.when, bound)):
            return None
        new = _call(self.rhs, bound)
        try:
            return node.out.type.filter_variable(new)
        except TypeError:
            return None


def parameters(fn: Callable[..., Any]) -> list[str]:
    """The names of the parameters of a function."""
    code: Any = getattr(fn, "__code__", None)
    if code is not None:
        return list(code.co_varnames[: code.co_argcount])
    return list(inspect.signature(fn).parameters)


def _call(fn: Callable[..., Any], bound: Mapping[str, Any]) -> Any:
    """Call a function with the bindings that its parameters name."""
    return fn(*[bound[name] for name in parameters(fn)])


def _as_pattern(variable: Any, names: Mapping[Any, PatternVar]) -> Any:
    """The pattern of a traced expression; constants with one element match by value alone."""
    if variable in names:
        return names[variable]
    if isinstance(variable, Constant):
        value = np.asarray(variable.data)
        return value.item() if value.size == 1 and value.dtype.kind in "biufc" else variable
    if variable.owner is None:
        raise TypeError(f"{variable} in the left side of a rule is not one of its parameters.")
    node: Apply = variable.owner
    return PatternNode(node.op, tuple(_as_pattern(v, names) for v in node.inputs))


def rule(
    name: str,
    pattern: str | None = None,
    *,
    given: Given | None = None,
    namespace: Mapping[str, Any] | None = None,
    lhs: Callable[..., Any] | None = None,
    rhs: Callable[..., Any] | None = None,
    when: Callable[..., bool] | None = None,
    types: Mapping[str, Any] | None = None,
    single_use: bool = False,
    **options: Any,
) -> Any:
    """An `Equation` if ``lhs`` and ``rhs`` are given, else a decorator.

    With a pattern the decorator makes a `PatternRule`, else a `Rule`.

    Parameters
    ----------
    name
        the equation in mathematical notation
    pattern
        the text of the pattern, see `phintys.rewriting.syntax`
    given
        conditions for what the variables of the pattern match, by name
    namespace
        the ops and classes of ops that the text names; the default is set with
        `set_pattern_defaults`
    lhs, rhs
        both sides as functions of the pattern variables
    when
        a further condition, a function of some of the pattern variables
    types
        ``{name: type}`` of pattern variables that are not of the default type
    single_use
        match only if the inner nodes of the left side have no other use
    **options
        ``ops``, ``phase``, ``tags``, ``law``, ``tested_on``, ``where``, ``outermost``,
        ``idempotent``, ``follow_up`` (see `Rule`)

    Raises
    ------
    TypeError
        if only one of ``lhs`` and ``rhs`` is given, or the other arguments do not fit

    >>> import phintys.tensor as pt
    >>> @rule("x * x -> sqr(x)", ops=[pt.mul])
    ... def square(ctx, node):
    ...     x, y = node.inputs
    ...     return pt.sqr(x) if x is y else None
    >>> square
    <Rule x * x -> sqr(x)>
    """
    file, line = _caller()
    options = {"file": file, "line": line, **options}
    if (lhs is None) != (rhs is None):
        raise TypeError(f"Rule {name}: give both lhs and rhs, or neither.")
    if lhs is None or rhs is None:
        if when is not None or types is not None or (single_use and pattern is None):
            raise TypeError(f"Rule {name}: when, types and single_use belong to lhs and rhs.")
        if pattern is None:
            return lambda function: Rule(name, function, **options)
        left = LeftSide(pattern, given, namespace)
        return lambda build: PatternRule(
            name, left=left, build=build, single_use=single_use, **options
        )
    options |= {"when": when, "types": types, "single_use": single_use}
    return Equation(name, sides=Sides(lhs, rhs), **options)


def _caller() -> tuple[str, int]:
    """File and line of the caller of the function that calls this one."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return frame.f_code.co_filename, frame.f_lineno


class TextSides(Sides):
    """Both sides of an equation as text.  They are parsed and compiled when first needed."""

    def __init__(self, text: str, names: Mapping[str, Any]) -> None:
        left, arrow, right = text.partition("->")
        if not arrow:
            raise ValueError(f"{text!r} is not an equation: write 'left -> right'.")
        self.text, self.names = text, names
        self._left, self._right = left.strip(), right.strip()
        self.pattern = None
        self.vars = {}

    def root(self) -> Any:
        try:
            (op,), _ = Reader(self.names).root(self._tree.body)
        except Unreadable:
            return None
        return op

    def read(self) -> Pattern | None:
        """The pattern of a left side that has only ops, variables and numbers; else None."""
        reader = Reader(self.names)
        reader.variables = names = {name: PatternVar(name) for name in self.free}
        try:
            pattern = reader.read(self._tree.body)
        except Unreadable:
            return None
        return (pattern, names) if isinstance(pattern, PatternNode) else None

    @cached_property
    def _tree(self) -> Any:
        return parsed(self._left, self.text)

    @cached_property
    def free(self) -> list[str]:
        """The names of the pattern variables; ValueError if the right side has further ones."""
        free = [n for n in names_in(self._tree) if n not in self.names]
        right = names_in(parsed(self._right, self.text))
        unbound = [n for n in right if n not in self.names and n not in free]
        if unbound:
            raise ValueError(f"{self.text!r}: {', '.join(unbound)} does not occur on the left.")
        return free

    @cached_property
    def lhs(self) -> Callable[..., Any]:  # type: ignore[override]
        return self._compiled(self._left)

    @cached_property
    def rhs(self) -> Callable[..., Any]:  # type: ignore[override]
        return self._compiled(self._right)

    def _compiled(self, side: str) -> Any:
        return eval(f"lambda {', '.join(self.free)}: ({side})", dict(self.names))


def equation(
    text: str,
    *,
    namespace: Mapping[str, Any] | None = None,
    deferred: bool = False,
    when: Callable[..., bool] | None = None,
    types: Mapping[str, Any] | None = None,
    single_use: bool = False,
    **options: Any,
) -> Equation:
    """A rule written as text, "left -> right", two Python expressions.

    Parameters
    ----------
    text
        the equation
    namespace
        functions and constants by name; all other names in the text are pattern variables.  The
        default is set with `set_pattern_defaults`.  If it defines the ops of `OPERATORS`, the
        pattern is made from the text, without calling the functions.
    deferred
        whether the text is checked only when a node with the op of the left side is met, which
        makes the import of tables of many rules faster
    when, types, single_use, **options
        see `rule`

    Raises
    ------
    ValueError
        if the text is not an equation, or the right side has other pattern variables than the left

    >>> import phintys.tensor as pt
    >>> equation("log(1 + x) -> log1p(x)", namespace={"log": pt.log, "log1p": pt.log1p})
    <Equation log(1 + x) -> log1p(x)>
    """
    names = namespace if namespace is not None else _defaults.namespace or {}
    sides = TextSides(text, names)
    if not deferred:
        sides.free  # noqa: B018  (raises ValueError if the text is not an equation)
    file, line = _caller()
    options = {"file": file, "line": line, **options}
    options |= {"when": when, "types": types, "single_use": single_use}
    return Equation(text, sides=sides, **options)
