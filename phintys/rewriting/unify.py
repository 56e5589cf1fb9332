"""Patterns over graphs: the classes they consist of, matching, and instantiation.

Matching (`match_pattern`) is a backtracking search, because inputs of commutative ops match in any
order.  It recurses over the pattern, which is small, never over the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from phintys.graph.op import Op
from phintys.graph.variable import Apply, Constant, Variable

Constraint = Callable[[Any], bool]


def rule_key(op: Any) -> Any:
    """The property ``rule_key`` of an op; anything else (a class of ops, a pattern) is its own key.

    An op that applies another operation elementwise exposes that operation as its key, so that a
    rule about it covers all ways to apply it.
    """
    key = op.rule_key if isinstance(op, Op) else None
    return op if key is None else key


def same_op(op: Any, other: Any) -> bool:
    """Whether two ops are equal to rules: equal, or of one class and with equal `rule_key`."""
    return op is other or (
        type(op) is type(other) and (op == other or rule_key(op) == rule_key(other))
    )


OpTest = Callable[[Any], bool]


#: Answers that a `SameOp` keeps: ops that users make must not stay for ever.
_MOST_ANSWERS = 512


class SameOp(dict[Any, bool]):
    """A predicate, cached for ops of one class: ``table[op]`` is ``same_op(op, given_op)``."""

    def __init__(self, op: Any) -> None:
        self.op = op

    def __missing__(self, op: Any) -> bool:
        if type(op) is not type(self.op):
            return False
        if len(self) >= _MOST_ANSWERS:
            self.clear()
        found = self[op] = same_op(op, self.op)
        return found


def op_test(op_match: Any) -> OpTest | None:
    """A necessary condition for ops, or other producers, to match; None if there is none."""
    if isinstance(op_match, Op):
        return SameOp(op_match).__getitem__
    if isinstance(op_match, OpPattern):
        is_class = isinstance(op_match.op_type, type)
        return op_test(op_match.op_type) if is_class else op_match.match_type
    if isinstance(op_match, type):
        return lambda producer: isinstance(producer, op_match)
    if not isinstance(op_match, tuple):
        return None
    given = [one.op_type if isinstance(one, OpPattern) else one for one in op_match]
    classes = tuple(one for one in given if isinstance(one, type))
    tests = [SameOp(one).__getitem__ for one in given if isinstance(one, Op)]
    if not tests:
        return lambda producer: isinstance(producer, classes)
    return lambda producer: isinstance(producer, classes) or any(t(producer) for t in tests)


class LiteralString:
    """A string in a pattern that stands for itself; plain strings are pattern variables."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiteralString) and other.value == self.value

    def __hash__(self) -> int:
        return hash((LiteralString, self.value))

    def __repr__(self) -> str:
        return f"LiteralString({self.value!r})"


class PatternVar:
    """A pattern variable: matches any value, and the same value at each further occurrence.

    ``constraint(value)`` must be true for the value.
    """

    __slots__ = ("constraint", "token")

    def __init__(self, token: str, constraint: Constraint | None = None) -> None:
        self.token = token
        self.constraint = constraint

    def __repr__(self) -> str:
        return f"~{self.token}"


class ConstrainedVar(PatternVar):
    """A `PatternVar` with the constraint as its first argument (an older form)."""

    __slots__ = ()

    def __init__(self, constraint: Constraint, token: str | None = None, prefix: str = "") -> None:
        super().__init__(f"{prefix}{token or id(constraint)}", constraint)


def is_constant(v: Any) -> bool:
    """Whether a variable is a constant.  As a constraint it is known before the search."""
    return isinstance(v, Constant)


class Asterisk:
    """A pattern for the remaining inputs of a node, as a tuple; must be the last input pattern."""

    __slots__ = ("token",)

    def __init__(self, token: str) -> None:
        self.token = token

    def __repr__(self) -> str:
        return f"*{self.token}"


class OpPattern:
    """A pattern for ops of a class, or equal to an instance, whose given attributes match.

    An attribute is matched by an equal value, a class, an `OpPattern`, a `LiteralString`, or a
    string, which is a pattern variable.  Attributes that are not given may have any value.

    >>> from phintys.graph.op import Op
    >>> class Sum(Op):
    ...     __props__ = ("axis",)
    ...     def __init__(self, axis): self.axis = axis
    >>> OpPattern(Sum, axis=None).match_op(Sum(None)), OpPattern(Sum, axis=None).match_op(Sum(1))
    (True, False)
    """

    __slots__ = ("op_type", "parameters")

    def __init__(
        self,
        op_type: Any,
        parameters: Mapping[str, Any] | Sequence[tuple[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(op_type, type | Op):
            raise TypeError(f"OpPattern needs an Op class or instance, not {op_type!r}.")
        self.op_type = op_type
        merged = {**dict(parameters or {}), **kwargs}
        self.parameters: tuple[tuple[str, Any], ...] = tuple(sorted(merged.items()))

    @property
    def op_class(self) -> type:
        """The class of which ops must be instances."""
        return self.op_type if isinstance(self.op_type, type) else type(self.op_type)

    def match_type(self, op: Any) -> bool:
        """Whether an op is of the class, or equal to the instance."""
        if isinstance(self.op_type, type):
            return isinstance(op, self.op_type)
        return bool(op == self.op_type)

    def match_op(self, op: Any) -> bool:
        """Whether an op matches."""
        return self.match_type(op) and self.match_parameters(op)

    def match_parameters(self, op: Any) -> bool:
        """Whether the given attributes of an op match."""
        return next(_match_parameters(_converted_op(self, {}), op, {}), None) is not None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OpPattern)
            and other.op_type == self.op_type
            and other.parameters == self.parameters
        )

    def __hash__(self) -> int:
        return hash((self.op_type, tuple(name for name, _ in self.parameters)))

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.parameters)
        name = self.op_type.__name__ if isinstance(self.op_type, type) else str(self.op_type)
        return f"OpPattern({name}{given})"


class PatternNode:
    """A pattern for a node: a pattern for its op, input patterns, and an optional constraint.

    The op is matched by an op, a class, an `OpPattern`, a `PatternVar`, or a tuple of them, one of
    which must match.  ``name`` is a pattern variable for the output of the node.

    Its attributes are precomputed for two quick tests, `may_match` and `looks_like`, which reject
    most nodes before the search.
    """

    __slots__ = (
        "asterisk",
        "constants",
        "constraint",
        "direct",
        "fixed",
        "inputs",
        "n_fixed",
        "name",
        "nested",
        "op_match",
        "ordered",
        "parameters",
        "repeats",
        "test",
        "tests",
    )

    def __init__(
        self,
        op_match: Any,
        inputs: tuple[Any, ...],
        constraint: Any = None,
        name: PatternVar | None = None,
    ) -> None:
        if any(isinstance(p, Asterisk) for p in inputs[:-1]):
            raise ValueError(f"An Asterisk must come last in the pattern of {op_match}.")
        self.op_match = op_match
        self.inputs = inputs
        self.constraint: Constraint | None = constraint
        self.name = name
        last = inputs[-1] if inputs else None
        #: the pattern of the remaining inputs, if any, and the patterns of the others
        self.asterisk: Asterisk | None = last if isinstance(last, Asterisk) else None
        self.fixed = inputs if self.asterisk is None else inputs[:-1]
        self.n_fixed = len(self.fixed)
        #: whether inputs match in their order only
        no_choice = self.n_fixed == 0 or (self.n_fixed == 1 and self.asterisk is None)
        self.ordered = no_choice or _is_ordered(op_match)
        #: a condition for the op, and the attributes that match besides
        self.test = op_test(op_match)
        one = op_match[0] if isinstance(op_match, tuple) else op_match
        self.parameters = one.parameters if isinstance(one, OpPattern) else ()
        #: the conditions for ops that compute inputs, and the places of constant inputs
        inner = [(k, p) for k, p in enumerate(self.fixed) if isinstance(p, PatternNode)]
        self.tests = [(k, p.test, p) for k, p in inner if p.test is not None]
        self.constants = [k for k, p in enumerate(self.fixed) if _is_literal(p)]
        #: the patterns of inputs which `may_match` and `looks_like` can reject
        self.nested = [
            (k, test, p) for k, test, p in self.tests if p.tests or p.constants or p.repeats
        ]
        #: whether a pattern variable occurs twice among the inputs
        names = [p for p in self.fixed if isinstance(p, PatternVar)]
        self.repeats = len(set(names)) < len(names)
        #: whether there is one match at most, which `_fits` finds
        self.direct = self.ordered and self.test is not None and all(p.direct for _, p in inner)

    def fits_op(self, op: Any) -> bool:
        """Whether an op can match, by its class and the values of its attributes."""
        if self.test is not None and not self.test(op):
            return False
        fixed = [(k, v) for k, v in self.parameters if not isinstance(v, PatternVar)]
        return all(_equals_attribute(v, getattr(op, k, None)) for k, v in fixed)

    def may_match(self, producers: Sequence[Any]) -> bool:
        """Whether inputs with these producers (see `producers_of`) can match."""
        n = len(producers)
        if n < self.n_fixed or (n > self.n_fixed and self.asterisk is None):
            return False
        if self.ordered:
            constant = all(producers[k] is Constant for k in self.constants)
            return constant and all(test(producers[k]) for k, test, _ in self.tests)
        if self.constants and Constant not in producers:
            return False
        return all(any(test(p) for p in producers) for _, test, _ in self.tests)

    def looks_like(self, node: Apply) -> bool:
        """Whether a node can match, by its inputs and the nodes that compute them.

        A necessary condition only, for nodes for which `may_match` holds.
        """
        inputs = node.inputs
        if self.repeats and len(set(inputs)) == len(inputs):
            constants = sum(isinstance(v, Constant) for v in inputs)
            if constants < 2:  # two constants may be equal without being the same variable
                return False
        for k, test, pattern in self.nested:
            candidates = inputs[k : k + 1] if self.ordered else inputs
            owners = [v.owner for v in candidates if v.owner is not None and test(v.owner.op)]
            if not any(
                pattern.may_match(producers_of(n)) and pattern.looks_like(n) for n in owners
            ):
                return False
        return True

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, (self.op_match, *self.inputs)))})"


def _is_ordered(op_match: Any) -> bool:
    """Whether all ops that match a pattern are known not to be commutative."""
    if isinstance(op_match, tuple):
        return all(map(_is_ordered, op_match))
    if isinstance(op_match, OpPattern):
        return _is_ordered(op_match.op_type)
    return getattr(op_match, "commutative", None) is False


def producers_of(node: Apply) -> list[Any]:
    """For each input of a node the op that computes it, the class `Constant`, or None."""
    return [
        v.owner.op if v.owner is not None else Constant if isinstance(v, Constant) else None
        for v in node.inputs
    ]


def _is_literal(pattern: Any) -> bool:
    """Whether a pattern matches only constants."""
    if isinstance(pattern, PatternVar):
        return pattern.constraint is is_constant
    return not isinstance(pattern, PatternNode | Asterisk | Variable) or isinstance(
        pattern, Constant
    )


Subs = dict[Any, Any]
Accept = Callable[[Variable], bool]


# ------------------------------------------------------------------ from tuples and strings


def convert_strs_to_vars(x: Any, var_map: dict[str, Any] | None = None) -> Any:
    """The pattern object for a pattern written with tuples, strings, dicts and numbers.

    Names are looked up in, and added to, ``var_map``; pass the same dict for both sides of a
    rewrite.
    """
    names = {} if var_map is None else var_map
    if isinstance(x, str):
        return names.setdefault(x, PatternVar(x))
    if isinstance(x, dict):
        return _convert_constrained(x, names)
    if isinstance(x, tuple):
        op = _converted_op(x[0], names)
        return PatternNode(op, tuple(convert_strs_to_vars(p, names) for p in x[1:]))
    if isinstance(x, PatternVar | Asterisk):
        return names.setdefault(x.token, x)
    return x


def _convert_constrained(x: dict[str, Any], names: dict[str, Any]) -> Any:
    """The pattern object for ``{"pattern": ..., "constraint": ...}``."""
    pattern, constraint = x["pattern"], x.get("constraint")
    if not isinstance(pattern, str):
        node = convert_strs_to_vars(pattern, names)
        return PatternNode(node.op_match, node.inputs, constraint)
    var = names.setdefault(pattern, PatternVar(pattern))
    var.constraint = var.constraint or constraint
    return var


def _converted_op(op: Any, names: dict[str, Any]) -> Any:
    if isinstance(op, str):
        return names.setdefault(op, PatternVar(op))
    if not isinstance(op, OpPattern):
        return op
    return OpPattern(op.op_type, [(k, _converted_op(v, names)) for k, v in op.parameters])


# ------------------------------------------------------------------------------- matching


def match_pattern(
    pattern: Any, node: Any, subs: Subs | None = None, accept: Accept | None = None
) -> Subs | None:
    """The bindings of pattern variables under which ``pattern`` matches ``node``, or None.

    Parameters
    ----------
    node
        an `Apply` or a `Variable`
    subs
        bindings to start from; not modified
    accept
        a predicate of variables that the output of every inner node of the match must fulfil
    """
    return next(matches(pattern, node, subs, accept), None)


def matches(
    pattern: Any, node: Any, subs: Subs | None = None, accept: Accept | None = None
) -> Iterator[Subs]:
    """All bindings of pattern variables under which ``pattern`` matches; see `match_pattern`."""
    bound = subs or {}
    if not isinstance(node, Apply):
        yield from _match(pattern, node, bound, accept)
    elif pattern.constraint is None or pattern.constraint(node.out):
        yield from _match_apply(pattern, node, bound, accept)


def matches_of_rule(
    pattern: PatternNode, node: Apply, given: Subs, accept: Accept | None
) -> Iterable[Subs]:
    """As `matches`, at a node for which `PatternNode.may_match` holds; may modify ``given``.

    Inputs match in the order that the pattern's op says, not the one that the op of the node says.
    """
    if pattern.direct:
        return (given,) if _fits(pattern, node, given, accept) else ()
    return matches(pattern, node, given, accept) if pattern.looks_like(node) else ()


def _fits(pattern: PatternNode, node: Apply, subs: Subs, accept: Accept | None) -> bool:
    """Whether a `direct` pattern matches a node; adds the bindings to ``subs``."""
    inputs, n = node.inputs, pattern.n_fixed
    if len(inputs) != n and (pattern.asterisk is None or len(inputs) < n):
        return False
    if not pattern.test(node.op):  # type: ignore[misc]
        return False
    for name, wanted in pattern.parameters:
        value = getattr(node.op, name, None)
        is_var = isinstance(wanted, PatternVar)
        if not (_binds(wanted, value, subs) if is_var else _equals_attribute(wanted, value)):
            return False
    for p, v in zip(pattern.fixed, inputs):
        if type(p) is PatternVar and p.constraint is None and p not in subs:
            subs[p] = v
            continue
        if isinstance(p, PatternVar):
            found = _binds(p, v, subs)
        elif isinstance(p, PatternNode):
            opens = _opens(p, v, accept)
            found = opens and _fits(p, v.owner, subs, accept)  # type: ignore[arg-type]
            if p.name is not None:
                subs[p.name] = v
        else:
            found = _equals(p, v)
        if not found:
            return False
    return pattern.asterisk is None or _binds_rest(pattern.asterisk, inputs[n:], subs)


def _match(pattern: Any, value: Any, subs: Subs, accept: Accept | None) -> Iterator[Subs]:
    """All bindings, extending ``subs``, under which a pattern matches a variable."""
    if not isinstance(pattern, PatternNode):
        if (bound := _bound(pattern, value, subs)) is not None:
            yield bound
    elif _opens(pattern, value, accept):
        bound = subs if pattern.name is None else {**subs, pattern.name: value}
        yield from _match_apply(pattern, value.owner, bound, accept)


def _bound(pattern: Any, value: Any, subs: Subs) -> Subs | None:
    """The bindings under which a pattern that is not for a node matches a variable, or None."""
    if not isinstance(pattern, PatternVar):
        return subs if _equals(pattern, value) else None
    if pattern in subs:
        return subs if _same_value(subs[pattern], value) else None
    if pattern.constraint is not None and not pattern.constraint(value):
        return None
    return {**subs, pattern: value}


def _opens(pattern: PatternNode, value: Any, accept: Accept | None) -> bool:
    """Whether a variable is computed by a node that the pattern may be compared with."""
    owner = value.owner
    if owner is None or not (accept is None or accept(value)):
        return False
    single = len(owner.outputs) == 1 or value.index == owner.op.default_output
    return single and (pattern.constraint is None or pattern.constraint(value))


def _equals(pattern: Any, value: Any) -> bool:
    """Whether a variable is what a pattern without variables says."""
    if isinstance(pattern, Constant):
        return pattern.equals(value)
    if isinstance(pattern, Variable):
        return pattern is value
    return isinstance(value, Constant) and equals_literal(value, pattern)


def _binds(var: PatternVar, value: Any, subs: Subs) -> bool:
    """Whether a pattern variable matches a value; adds it to ``subs``."""
    if var in subs:
        return _same_value(subs[var], value)
    if var.constraint is None or var.constraint(value):
        subs[var] = value
        return True
    return False


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, Constant):
        return a.equals(b)
    return a is b or (not isinstance(a, Variable) and bool(a == b))


def equals_literal(constant: Constant, number: Any) -> bool:
    """Whether every element of a constant equals a number; dtypes do not matter."""
    if not isinstance(number, bool | int | float | complex | np.generic):
        return False
    data = constant.data
    if not isinstance(data, np.ndarray | np.generic | bool | int | float | complex):
        return False
    values = np.asarray(data)
    if values.dtype.kind not in "biufc" or values.size == 0:
        return False
    first = values[(0,) * values.ndim]
    return bool(first == number) and (values.size == 1 or bool((values == first).all()))


def _match_apply(
    pattern: PatternNode, node: Apply, subs: Subs, accept: Accept | None
) -> Iterator[Subs]:
    n = pattern.n_fixed
    if len(node.inputs) < n or (pattern.asterisk is None and len(node.inputs) != n):
        return
    inputs = node.inputs
    any_order = len(inputs) > 1 and node.op.commutative
    if pattern.test is None or pattern.parameters:
        for bound in _match_op(pattern.op_match, node.op, subs):
            yield from _match_inputs(pattern, inputs, 0, bound, accept, any_order)
    elif pattern.test(node.op):
        yield from _match_inputs(pattern, inputs, 0, subs, accept, any_order)


def _match_op(op_match: Any, op: Any, subs: Subs) -> Iterator[Subs]:
    if isinstance(op_match, PatternVar):
        yield from _match(op_match, op, subs, None)
    elif isinstance(op_match, OpPattern):
        if op_match.match_type(op):
            yield from _match_parameters(op_match, op, subs)
    elif isinstance(op_match, tuple):
        for one in op_match:
            yield from _match_op(one, op, subs)
    elif same_op(op, op_match) or (isinstance(op_match, type) and isinstance(op, op_match)):
        yield subs


def _match_parameters(pattern: OpPattern, op: Any, subs: Subs, k: int = 0) -> Iterator[Subs]:
    if k == len(pattern.parameters):
        yield subs
        return
    name, wanted = pattern.parameters[k]
    for bound in _match_parameter(wanted, getattr(op, name, None), subs):
        yield from _match_parameters(pattern, op, bound, k + 1)


def _match_parameter(wanted: Any, actual: Any, subs: Subs) -> Iterator[Subs]:
    if isinstance(wanted, PatternVar | OpPattern):
        yield from _match_op(wanted, actual, subs)
    elif _equals_attribute(wanted, actual):
        yield subs


def _equals_attribute(wanted: Any, actual: Any) -> bool:
    if isinstance(wanted, LiteralString):
        return bool(actual == wanted.value)
    return (isinstance(wanted, type) and isinstance(actual, wanted)) or bool(actual == wanted)


def _match_inputs(
    pattern: PatternNode,
    left: list[Variable],
    k: int,
    subs: Subs,
    accept: Accept | None,
    any_order: bool,
) -> Iterator[Subs]:
    """Match the input patterns from ``k`` with the inputs ``left``, in any order or in theirs."""
    if k == pattern.n_fixed:
        yield from _bind_rest(pattern.asterisk, left, subs)
        return
    p = pattern.inputs[k]
    for j, value in enumerate(left if any_order else left[:1]):
        for bound in _match(p, value, subs, accept):
            rest = left[:j] + left[j + 1 :]  # made if needed: there may be thousands of inputs
            yield from _match_inputs(pattern, rest, k + 1, bound, accept, any_order)


def _bind_rest(rest: Asterisk | None, inputs: Sequence[Variable], subs: Subs) -> Iterator[Subs]:
    bound = subs if rest is None else dict(subs)
    if rest is None or _binds_rest(rest, inputs, bound):
        yield bound


def _binds_rest(rest: Asterisk, inputs: Sequence[Variable], subs: Subs) -> bool:
    """Whether the remaining inputs, if they are bound, are the same; adds them to ``subs``."""
    if rest not in subs:
        subs[rest] = tuple(inputs)
        return True
    known = subs[rest]
    return len(known) == len(inputs) and all(map(_same_value, known, inputs))


# -------------------------------------------------------------------------------- building


def reify_pattern(pattern: Any, subs: Mapping[Any, Any]) -> Any:
    """The expression that ``pattern`` describes under the bindings of a match.

    An `OpPattern` of a class becomes ``op_class(**parameters)``.
    """
    if isinstance(pattern, PatternVar):
        return subs[pattern]
    if isinstance(pattern, LiteralString):
        return pattern.value
    if isinstance(pattern, OpPattern):
        if not isinstance(pattern.op_type, type):
            return pattern.op_type
        return pattern.op_type(**{k: reify_pattern(v, subs) for k, v in pattern.parameters})
    if isinstance(pattern, PatternNode):
        inputs: list[Any] = [reify_pattern(p, subs) for p in pattern.fixed]
        if pattern.asterisk is not None:
            inputs.extend(subs[pattern.asterisk])
        return reify_pattern(pattern.op_match, subs)(*inputs)
    return pattern
