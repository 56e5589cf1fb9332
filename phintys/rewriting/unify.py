"""Patterns over graphs: what they are made of, how they match, and how they become graphs again.

Matching is a search with backtracking (inputs of commutative ops match in any order).  It recurses
over the *pattern*, which is small, never over the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from phintys.graph.op import Op
from phintys.graph.variable import Apply, Constant, Variable

Constraint = Callable[[Any], bool]


def rule_key(op: Any) -> Any:
    """The property ``rule_key`` of an op; anything else (a class of ops, a pattern) is its own key.

    Ops that only lift another operation over arrays expose that operation, so that a rule about it
    does not depend on how it is lifted.
    """
    return op.rule_key if isinstance(op, Op) else op


def same_op(op: Any, other: Any) -> bool:
    """Whether rules should treat two ops alike."""
    return op is other or (
        type(op) is type(other) and (op == other or rule_key(op) == rule_key(other))
    )


class SameOp(dict[Any, bool]):
    """``table[op]``: whether `same_op` holds for an op and a given one; answers are kept."""

    def __init__(self, op: Any) -> None:
        self.op = op

    def __missing__(self, op: Any) -> bool:
        found = self[op] = same_op(op, self.op)
        return found


class LiteralString:
    """A string in a pattern that is meant as text; bare strings are pattern variables."""

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
    """A named place, bound to the first value it meets if ``constraint(value)`` allows it."""

    __slots__ = ("constraint", "token")

    def __init__(self, token: str, constraint: Constraint | None = None) -> None:
        self.token = token
        self.constraint = constraint

    def __repr__(self) -> str:
        return f"~{self.token}"


class ConstrainedVar(PatternVar):
    """A `PatternVar` given by its constraint first (older spelling)."""

    __slots__ = ()

    def __init__(self, constraint: Constraint, token: str | None = None, prefix: str = "") -> None:
        super().__init__(f"{prefix}{token or id(constraint)}", constraint)


class Asterisk:
    """The remaining inputs of a node, as a tuple.  Must come last among the inputs of a pattern."""

    __slots__ = ("token",)

    def __init__(self, token: str) -> None:
        self.token = token

    def __repr__(self) -> str:
        return f"*{self.token}"


class OpPattern:
    """Ops of a class (or equal to an instance) whose named parameters match.

    A parameter is matched by an equal value, a class, an `OpPattern`, a `LiteralString`, or a
    string: a pattern variable.  Parameters that are not named may have any value.

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
        """The class that ops must have."""
        return self.op_type if isinstance(self.op_type, type) else type(self.op_type)

    def match_type(self, op: Any) -> bool:
        """Whether the class (or instance) fits."""
        if isinstance(self.op_type, type):
            return isinstance(op, self.op_type)
        return bool(op == self.op_type)

    def match_op(self, op: Any) -> bool:
        """Whether class and parameters fit."""
        return self.match_type(op) and self.match_parameters(op)

    def match_parameters(self, op: Any) -> bool:
        """Whether the parameters fit."""
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
    """An op (or `OpPattern`) and patterns of its inputs; perhaps a constraint on its output."""

    __slots__ = (
        "asterisk",
        "constraint",
        "fixed",
        "inputs",
        "n_fixed",
        "needs_constant",
        "needs_ops",
        "nested",
        "op_match",
        "repeats",
    )

    def __init__(self, op_match: Any, inputs: tuple[Any, ...], constraint: Any = None) -> None:
        if any(isinstance(p, Asterisk) for p in inputs[:-1]):
            raise ValueError(f"An Asterisk must come last in the pattern of {op_match}.")
        self.op_match = op_match
        self.inputs = inputs
        self.constraint: Constraint | None = constraint
        last = inputs[-1] if inputs else None
        #: the pattern of the remaining inputs, and those of the others
        self.asterisk: Asterisk | None = last if isinstance(last, Asterisk) else None
        self.fixed = inputs if self.asterisk is None else inputs[:-1]
        self.n_fixed = len(self.fixed)
        #: what some input must be: computed by these ops, or constant
        self.needs_ops = [SameOp(p.op_match) for p in self._of_inputs()]
        self.needs_constant = any(_is_literal(p) for p in self.fixed)
        #: the patterns of inputs that are worth a look of their own
        self.nested = [
            (known, p)
            for known, p in zip(self.needs_ops, self._of_inputs())
            if p.needs_ops or p.needs_constant or p.repeats
        ]
        #: whether the same variable occurs twice among the inputs
        names = [p for p in self.fixed if isinstance(p, PatternVar)]
        self.repeats = len(set(names)) < len(names)

    def _of_inputs(self) -> list[PatternNode]:
        """The patterns of inputs that a certain op computes."""
        nodes = [p for p in self.fixed if isinstance(p, PatternNode)]
        return [p for p in nodes if isinstance(p.op_match, Op)]

    def may_match(self, kinds: Sequence[Any]) -> bool:
        """Whether inputs of these kinds can match: the ops that compute them, `Constant`, None."""
        if self.needs_constant and Constant not in kinds:
            return False
        ops = [k for k in kinds if isinstance(k, Op)]
        return all(any(known[op] for op in ops) for known in self.needs_ops)

    def looks_like(self, node: Apply) -> bool:
        """A quick look at a node for which `may_match` holds, and at what computes its inputs."""
        inputs = node.inputs
        if self.repeats and len(set(inputs)) == len(inputs):
            constants = sum(isinstance(v, Constant) for v in inputs)
            if constants < 2:  # different ones may be equal
                return False
        for known, pattern in self.nested:
            owners = [v.owner for v in inputs if v.owner is not None and known[v.owner.op]]
            if not any(pattern.may_match(kinds_of(n)) and pattern.looks_like(n) for n in owners):
                return False
        return True

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, (self.op_match, *self.inputs)))})"


def kinds_of(node: Apply) -> list[Any]:
    """What the inputs of a node are: the op that computes one, `Constant`, or None."""
    return [
        v.owner.op if v.owner is not None else Constant if isinstance(v, Constant) else None
        for v in node.inputs
    ]


def _is_literal(pattern: Any) -> bool:
    """Whether only a constant can match."""
    return not isinstance(pattern, PatternVar | PatternNode | Asterisk | Variable) or isinstance(
        pattern, Constant
    )


Subs = dict[Any, Any]
Accept = Callable[[Variable], bool]


# ------------------------------------------------------------------ from tuples and strings


def convert_strs_to_vars(x: Any, var_map: dict[str, Any] | None = None) -> Any:
    """A pattern written with tuples, strings, dicts and numbers as pattern objects.

    ``var_map`` maps names to the pattern variables made for them; pass the same one for both sides
    of a rewrite.
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
    """The bindings under which ``pattern`` equals ``node`` (an Apply or a Variable), or None.

    subs
        bindings to start from; not modified.
    accept
        called with the variable of every inner node of the match; False excludes it.
    """
    bound = subs or {}
    if not isinstance(node, Apply):
        return next(_match(pattern, node, bound, accept), None)
    if pattern.constraint is not None and not pattern.constraint(node.out):
        return None
    return next(_match_apply(pattern, node, bound, accept), None)


def _match(pattern: Any, value: Any, subs: Subs, accept: Accept | None) -> Iterator[Subs]:
    if isinstance(pattern, PatternVar):
        yield from _bind(pattern, value, subs)
    elif isinstance(pattern, PatternNode):
        owner = value.owner
        if owner is not None and (accept is None or accept(value)):
            single = len(owner.outputs) == 1 or value.index == owner.op.default_output
            if single and (pattern.constraint is None or pattern.constraint(value)):
                yield from _match_apply(pattern, owner, subs, accept)
    elif isinstance(pattern, Constant):
        if pattern.equals(value):
            yield subs
    elif isinstance(pattern, Variable):
        if pattern is value:
            yield subs
    elif isinstance(value, Constant) and equals_literal(value, pattern):
        yield subs


def _bind(var: PatternVar, value: Any, subs: Subs) -> Iterator[Subs]:
    if var in subs:
        if _same_value(subs[var], value):
            yield subs
    elif var.constraint is None or var.constraint(value):
        yield {**subs, var: value}


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, Constant):
        return a.equals(b)
    return a is b or (not isinstance(a, Variable) and bool(a == b))


def equals_literal(constant: Constant, number: Any) -> bool:
    """Whether every element of a constant, whatever its dtype, equals a number."""
    if not isinstance(number, bool | int | float | complex | np.generic):
        return False
    data = constant.data
    if not isinstance(data, np.ndarray | np.generic | bool | int | float | complex):
        return False
    values = np.asarray(data)
    if values.dtype.kind not in "biufc" or values.size == 0:
        return False
    first = values.flat[0] if values.ndim else values[()]
    return bool(first == number) and (values.size == 1 or bool((values == first).all()))


def _match_apply(
    pattern: PatternNode, node: Apply, subs: Subs, accept: Accept | None
) -> Iterator[Subs]:
    n = pattern.n_fixed
    if len(node.inputs) < n or (pattern.asterisk is None and len(node.inputs) != n):
        return
    for bound in _match_op(pattern.op_match, node.op, subs):
        if node.op.commutative and len(node.inputs) > 1:
            yield from _match_any_order(pattern, list(node.inputs), 0, bound, accept)
        else:
            yield from _match_in_order(pattern, node.inputs, 0, bound, accept)


def _match_op(op_match: Any, op: Any, subs: Subs) -> Iterator[Subs]:
    if isinstance(op_match, PatternVar):
        yield from _bind(op_match, op, subs)
    elif isinstance(op_match, OpPattern):
        if op_match.match_type(op):
            yield from _match_parameters(op_match, op, subs)
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
    elif isinstance(wanted, LiteralString):
        if actual == wanted.value:
            yield subs
    elif (isinstance(wanted, type) and isinstance(actual, wanted)) or actual == wanted:
        yield subs


def _match_in_order(
    pattern: PatternNode, inputs: Sequence[Variable], k: int, subs: Subs, accept: Accept | None
) -> Iterator[Subs]:
    if k == pattern.n_fixed:
        rest = pattern.asterisk
        yield subs if rest is None else {**subs, rest: tuple(inputs[k:])}
        return
    for bound in _match(pattern.inputs[k], inputs[k], subs, accept):
        yield from _match_in_order(pattern, inputs, k + 1, bound, accept)


def _match_any_order(
    pattern: PatternNode, left: list[Variable], k: int, subs: Subs, accept: Accept | None
) -> Iterator[Subs]:
    if k == pattern.n_fixed:
        rest = pattern.asterisk
        yield subs if rest is None else {**subs, rest: tuple(left)}
        return
    for j, value in enumerate(left):
        remaining = left[:j] + left[j + 1 :]
        for bound in _match(pattern.inputs[k], value, subs, accept):
            yield from _match_any_order(pattern, remaining, k + 1, bound, accept)


# -------------------------------------------------------------------------------- building


def reify_pattern(pattern: Any, subs: Mapping[Any, Any]) -> Any:
    """The graph that ``pattern`` describes under the bindings of a match.

    An `OpPattern` becomes an op by calling its class with its parameters.
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
