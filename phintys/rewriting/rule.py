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
Law = Literal["exact", "rounding", "accurate", "finite", "drops_errors", "normwise"]
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
    "normwise": "Equal up to rounding of the matrices, relative to the largest elements and to the "
    "condition of the problem, where the left side raises no error, its inputs and intermediate "
    "results are finite, and the nonzero elements of its inputs are of moderately different sizes.",
}


class Context(Protocol):
    """The first argument of a rule's function: queries on the graph that is being rewritten."""

    fgraph: FunctionGraph
    #: how often rules have moved an operation through a node, or through one that it replaces
    moved: dict[Apply, int]
    #: (variable, axis) -> its length, as far as rules have followed it in this run
    lengths: dict[tuple[Variable, int], Variable]

    def uses(self, variable: Variable) -> int:
        """The number of uses of a variable, as an input of a node or an output of the graph."""
        ...

    def single_use(self, variable: Variable) -> bool:
        """Whether the variable has at most one use."""
        ...

    def client(self, variable: Variable) -> Apply | None:
        """A node that uses the variable; reliable if it has a single use."""
        ...


#: What the function of a rule returns; see `Rule`.
Replacement = Variable | Sequence[Variable | None] | None
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
                f"Rule {self.name}: {self.law!r} is not a law; choose from {', '.join(LAWS)}."
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

    def as_follow_up(self) -> Rule:
        """A copy with ``follow_up`` set."""
        new = object.__new__(type(self))  # copy.copy takes several times as long
        vars(new).update(vars(self))
        new.follow_up = True
        return new

    def transform(self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = True) -> Any:
        """Apply the rule as a node rewriter, outside of the engine."""
        if enforce_tracks or node.op.rule_key is None:
            if self._index is None:
                self._index = TrackIndex([(None, self.tracks())], by="key")
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
        self.moved: dict[Apply, int] = {}
        self.lengths: dict[tuple[Variable, int], Variable] = {}

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
    names: Mapping[str, Any] = field(default_factory=dict)


_defaults = _Defaults()


def set_pattern_defaults(
    variable: Callable[[str], Variable] | None = None, namespace: Mapping[str, Any] | None = None
) -> None:
    """Set the function that makes a pattern variable, and the namespace of equations."""
    if variable is not None:
        _defaults.variable = variable
    if namespace is not None:
        _defaults.names = namespace


#: A pattern and its variables by name.
Pattern = tuple[PatternNode, Mapping[str, Any]]


class Sides:
    """Both sides of a rule: a pattern, and ``rhs``, a function of what it binds.

    Copies of a rule in several databases share this object, so the pattern is made once.
    """

    rhs: Callable[..., Any]

    @cached_property
    def ops(self) -> Sequence[Any]:
        """The ops and classes of ops, one of which the pattern applies last."""
        return [self.found[0].op_match]

    @cached_property
    def found(self) -> Pattern:
        """The pattern and its variables; an exception if what is given is no pattern."""
        raise NotImplementedError

    def keys(self, function: Callable[..., Any]) -> list[Any]:
        """For each parameter of a function the key of its value in the bindings of a match."""
        known = {"ctx": "ctx", "node": "node", **self.found[1]}
        names = parameters(function)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"The pattern does not bind {', '.join(unknown)}.")
        return [known[name] for name in names]


class PatternSides(Sides):
    """The text of a pattern, with conditions for what its variables match, and a function."""

    def __init__(
        self, text: str, rhs: Callable[..., Any], given: Given, names: Mapping[str, Any] | None
    ) -> None:
        self.text, self.rhs, self.given, self._names = text, rhs, given, names

    @property
    def names(self) -> Mapping[str, Any]:
        """The namespace of the text."""
        return _defaults.names if self._names is None else self._names

    @cached_property
    def ops(self) -> Sequence[Any]:
        """The ops before the first parenthesis; the text is not parsed."""
        return [self.names.get(name.strip()) for name in self.text.partition("(")[0].split("|")]

    @cached_property
    def found(self) -> Pattern:
        reader, tree = Reader(self.names, self.given), parsed(self.text, self.text).body
        if self.ops != reader.root(tree)[0]:
            raise ValueError(f"{self.text!r} must be a call.")
        found = reader.applied(tree), reader.variables
        unknown = [name for name in self.given if name not in found[1]]
        if unknown:
            raise ValueError(f"{self.text!r} does not bind {', '.join(unknown)}.")
        return found


@dataclass(eq=False, repr=False)
class PatternRule(Rule):
    """A rule given by a pattern, and a function of what the pattern binds: the right side.

    The function takes some or all of the pattern variables, ``ctx`` and ``node``, by name, and
    returns what a rule's function returns.  ``when`` is a further condition with such parameters.
    Where it is false, or the function returns None, the next match is tried, if inputs can match in
    several orders.
    """

    sides: Any = field(kw_only=True)
    when: Callable[..., bool] | None = None
    single_use: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.function = self.apply_at

    def tracks(self) -> Sequence[Any] | None:
        if self.ops is None:
            ops = self.sides.ops
            if None in ops:
                raise ValueError(f"The pattern of {self.name} does not apply an op.")
            self.ops = [rule_key(op) for op in ops]
        return self.ops

    @property
    def pattern(self) -> PatternNode:
        """The pattern of the left side, made on first use."""
        found: PatternNode = self.sides.found[0]
        return found

    def fits_op(self, op: Any) -> bool:
        return self.pattern.fits_op(op)

    def may_apply(self, producers: Sequence[Any]) -> bool:
        return self.pattern.may_match(producers) and super().may_apply(producers)

    @cached_property
    def _keys(self) -> tuple[list[Any], list[Any]]:
        """The keys of the arguments of the condition and of the right side."""
        when = self.sides.keys(self.when) if self.when is not None else []
        return when, self.sides.keys(self.sides.rhs)

    def apply_at(self, ctx: Any, node: Apply) -> Any:
        """The replacement for the outputs of ``node``; None if the rule does not apply."""
        sides = self.sides
        accept = ctx.single_use if self.single_use else None
        for subs in matches_of_rule(sides.found[0], node, {"ctx": ctx, "node": node}, accept):
            when, keys = self._keys
            if self.when is None or self.when(*[subs[key] for key in when]):
                new = sides.rhs(*[subs[key] for key in keys])
                if new is not None:
                    return self.accepted(node, new)
        return None

    def accepted(self, node: Apply, new: Any) -> Any:
        """What the right side returned, as the replacement; or None."""
        return new


# --------------------------------------------------------------------------- equations


class Expressions(Sides):
    """Both sides of an equation as functions, with the types of variables by name."""

    lhs: Callable[..., Any]

    def __init__(self, name: str, types: Mapping[str, Any] | None) -> None:
        self.name, self.types = name, types

    @cached_property
    def found(self) -> Pattern:
        return self.read() or self.traced()

    def read(self) -> Pattern | None:
        """The pattern of the left side, if it is known without tracing; else None."""
        return None

    def traced(self) -> Pattern:
        """The pattern of the left side, by tracing: from the graph that ``lhs`` builds."""
        given, root = self.left_side()
        names = {name: PatternVar(name) for name in given}
        pattern = _as_pattern(root, {v: names[name] for name, v in given.items()})
        if not isinstance(pattern, PatternNode):
            raise TypeError(f"Rule {self.name}: the left side must apply an op, not {root!r}.")
        return pattern, names

    def left_side(self) -> tuple[dict[str, Variable], Any]:
        """New variables by name, and the left side applied to them."""
        given = {name: self._variable(name) for name in parameters(self.lhs)}
        return given, self.lhs(**given)

    def _variable(self, name: str) -> Variable:
        make = (self.types or {}).get(name) or _defaults.variable
        if make is None:
            raise TypeError(
                f"Rule {self.name}: variable {name} has no type; give types={{{name!r}: ...}}."
            )
        made: Variable = make(name)
        return made


class Equation(PatternRule):
    """A rule given by two expressions: ``lhs(x, ...)`` is replaced by ``rhs(x, ...)``.

    ``when`` and ``rhs`` take some or all of the parameters of ``lhs``, by name.  The rule does not
    apply where the right side has another dtype or shape, for instance because a constant is
    broadcast.
    """

    @property
    def lhs(self) -> Callable[..., Any]:
        """The left side as a function of the pattern variables."""
        return self.sides.lhs  # type: ignore[no-any-return]

    @property
    def types(self) -> Mapping[str, Any] | None:
        """The types of pattern variables that are not of the default type."""
        return self.sides.types  # type: ignore[no-any-return]

    def accepted(self, node: Apply, new: Any) -> Any:
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
    >>> is_signed = {"x": lambda v: v.type.dtype == "float64"}
    >>> @rule("max(-x) -> -min(x)", "Max(neg(x), axis=a)", given=is_signed)
    ... def extreme(x, a):
    ...     return -pt.min(x, axis=a)
    >>> extreme
    <PatternRule max(-x) -> -min(x)>
    """
    file, line = _caller()
    options = {"file": file, "line": line, **options}
    if (lhs is None) != (rhs is None):
        raise TypeError(f"Rule {name}: give both lhs and rhs, or neither.")
    if pattern is None and lhs is None:
        if when is not None or types is not None or single_use:
            raise TypeError(f"Rule {name}: when, types and single_use belong to lhs and rhs.")
        return lambda function: Rule(name, function, **options)
    options |= {"when": when, "single_use": single_use}
    if pattern is not None:
        return lambda function: PatternRule(
            name, sides=PatternSides(pattern, function, given or {}, namespace), **options
        )
    sides = Expressions(name, types)
    sides.lhs, sides.rhs = lhs, rhs  # type: ignore[assignment]
    return Equation(name, sides=sides, **options)


def _caller() -> tuple[str, int]:
    """File and line of the caller of the function that calls this one."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return frame.f_code.co_filename, frame.f_lineno


class TextSides(Expressions):
    """Both sides of an equation as text.  They are parsed and compiled when first needed."""

    def __init__(
        self, text: str, names: Mapping[str, Any], types: Mapping[str, Any] | None
    ) -> None:
        left, arrow, right = text.partition("->")
        if not arrow:
            raise ValueError(f"{text!r} is not an equation: write 'left -> right'.")
        super().__init__(text, types)
        self.names, self._left, self._right = names, left.strip(), right.strip()

    @cached_property
    def ops(self) -> Sequence[Any]:
        try:
            return Reader(self.names).root(self._tree.body)[0]
        except Unreadable:
            return [self.found[0].op_match]

    def read(self) -> Pattern | None:
        """The pattern of a left side that has only ops, variables and numbers; else None."""
        reader = Reader(self.names)
        try:
            return reader.applied(self._tree.body), reader.variables
        except Unreadable:
            return None

    @cached_property
    def _tree(self) -> Any:
        return parsed(self._left, self.name)

    @cached_property
    def free(self) -> list[str]:
        """The names of the pattern variables; ValueError if the right side has further ones."""
        free = [n for n in names_in(self._tree) if n not in self.names]
        right = names_in(parsed(self._right, self.name))
        unbound = [n for n in right if n not in self.names and n not in free]
        if unbound:
            raise ValueError(f"{self.name!r}: {', '.join(unbound)} does not occur on the left.")
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
    sides = TextSides(text, _defaults.names if namespace is None else namespace, types)
    if not deferred:
        sides.free  # noqa: B018  (raises ValueError if the text is not an equation)
    file, line = _caller()
    options = {"file": file, "line": line, **options}
    return Equation(text, sides=sides, when=when, single_use=single_use, **options)
