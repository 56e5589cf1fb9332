"""The rules of tensors as equations between terms.

A rule is applied to an instance of its pattern: to new variables of which it can know the kind and
nothing else.  What it returns is the other side of an equation that holds for all variables of
these kinds.  So rules whose right side is a function are translated as well, without a second
version of them; those that need to know more, such as a length or the uses of a variable, do not
apply to an instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

from phintys.errors import PhintysError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.traversal import ancestors, apply_ancestors
from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rule import Equation, GraphContext, PatternRule, parameters
from phintys.rewriting.unify import Asterisk, PatternNode, PatternVar, op_test, rule_key
from phintys.saturation.language import as_number, dtype_of, kind, type_of_kind
from phintys.saturation.laws import RANKS, Law, laws
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import functions
from phintys.tensor.rules import RULES

PHASES = ("canonicalize", "stabilize", "specialize")
#: the most choices of kinds for the variables of one rule
MOST_CHOICES = 64


@dataclass(frozen=True, eq=False)
class Instance:
    """Both sides of an equation, as expressions of new variables.

    ``replaces``: the left side is not to be computed, because the right one is more accurate.
    """

    name: str
    left: Variable
    right: Variable
    variables: Sequence[Variable]
    replaces: bool = False

    @cached_property
    def needs(self) -> set[Any]:
        """The keys of the ops of the left side."""
        return {rule_key(node.op) for node in _applied(self.left)}

    @cached_property
    def makes(self) -> dict[Any, Op]:
        """The ops of the right side, by key."""
        return {rule_key(node.op): node.op for node in _applied(self.right)}


def _applied(v: Variable) -> list[Apply]:
    """The nodes that compute a variable, but for those that widen a number."""
    return [node for node in apply_ancestors([v]) if as_number(node.outputs[0]) is None]


def translated(kinds: Iterable[str], ops: Iterable[Op]) -> list[Instance]:
    """The equations that can apply to variables of these kinds, computed by these ops.

    They are those whose left side consists of these ops, and of ops that other equations make.
    """
    floats = tuple(sorted({k for k in kinds if dtypes.is_float(dtype_of(k))}))
    by_key = {rule_key(op): op for op in ops}
    found = _reached(_as_data(floats), by_key)
    others = [i for i in _as_data(floats) if i not in set(found)]
    return found + _reached([*_of_patterns(floats, list(by_key.values())), *others], by_key)


def _reached(candidates: Iterable[Instance], by_key: dict[Any, Op]) -> list[Instance]:
    """Those whose left side has known ops; the ops of their right sides become known."""
    found: list[Instance] = []
    waiting = list(candidates)
    while True:
        new = [i for i in waiting if i.needs <= by_key.keys()]
        if not new:
            return found
        found += new
        waiting = [i for i in waiting if not i.needs <= by_key.keys()]
        for instance in new:
            by_key |= instance.makes


@lru_cache(maxsize=32)
def _as_data(kinds: tuple[str, ...]) -> list[Instance]:
    """The equations that are data, for variables of these kinds."""
    return [*_of_laws(kinds), *_of_facts(kinds), *_of_equations(kinds)]


def _rules() -> list[PatternRule]:
    """The rules that are patterns, in phases of all backends."""
    return [r for r in RULES if isinstance(r, PatternRule) and r.phase in PHASES]


# ------------------------------------------------------------------------ equations as data


def _choices(names: Sequence[str], kinds: Sequence[str]) -> Iterator[dict[str, str]]:
    """Kinds of one dtype and rank for each variable, in all ways; or the same for all if many."""
    groups: dict[tuple[str, int], list[str]] = {}
    for k in kinds:
        groups.setdefault((dtype_of(k), len(k)), []).append(k)
    for alike in groups.values():
        if len(alike) ** len(names) > MOST_CHOICES:
            alike = [k for k in alike if "1" not in k] or alike[:1]
        yield from (dict(zip(names, c)) for c in product(alike, repeat=len(names)))


def _of_laws(kinds: Sequence[str]) -> Iterator[Instance]:
    for law in laws():
        for types in _types_of(law, kinds):
            left, right, variables = law.sides(types)
            if kind(left) == kind(right):
                yield Instance(law.text, left, right, variables)
                if law.both:
                    yield Instance(law.text, right, left, variables)


def _types_of(law: Law, kinds: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The types of the variables of a law."""
    if any(n not in RANKS for n in law.names):
        for choice in _choices(law.names, kinds):
            yield {n: type_of_kind(k) for n, k in choice.items()}
        return
    for dtype in sorted(set(map(dtype_of, kinds))):
        yield {n: type_of_kind(f"{dtype}:{'n' * RANKS[n]}") for n in law.names}


def _of_facts(kinds: Sequence[str]) -> Iterator[Instance]:
    """The operands of commutative and associative functions in any order."""
    for name in ("add", "mul", "maximum", "minimum"):
        f: Callable[..., Any] = getattr(functions, name)
        assert TABLE[name].commutative and TABLE[name].associative
        for choice in _choices("xyz", kinds):
            x, y, z = variables = [type_of_kind(k)(n) for n, k in choice.items()]
            yield Instance(f"{name} is commutative", f(x, y), f(y, x), variables[:2])
            yield Instance(f"{name} is associative", f(f(x, y), z), f(x, f(y, z)), variables)


def _of_equations(kinds: Sequence[str]) -> Iterator[Instance]:
    for rule in _rules():
        if not isinstance(rule, Equation) or rule.types is not None:
            continue
        for choice in _choices(parameters(rule.lhs), kinds):
            variables = {n: type_of_kind(k)(n) for n, k in choice.items()}
            if rule.when is None or rule.when(*[variables[n] for n in parameters(rule.when)]):
                left = rule.lhs(*variables.values())
                found = _instance(rule, left, rule.sides.rhs(*variables.values()))
                if found is not None:
                    yield found


def _instance(rule: PatternRule, left: Variable, right: Any) -> Instance | None:
    """The equation, if its sides have the same kind and depend on the same variables."""
    if isinstance(right, list | tuple):
        right = right[0] if len(right) == 1 else None
    if not isinstance(right, Variable):
        try:
            right = None if right is None else left.type.filter_variable(right)
        except TypeError:
            return None
    if right is None or kind(left) != kind(right):
        return None
    free, other = (_variables(v) for v in (left, right))
    if set(free) != set(other):
        return None
    return Instance(rule.name, left, right, free, rule.law == "accurate")


def _variables(v: Variable) -> list[Variable]:
    return [w for w in ancestors([v]) if w.owner is None and not isinstance(w, Constant)]


# --------------------------------------------------------------- patterns with a function


def _of_patterns(kinds: Sequence[str], ops: Sequence[Op]) -> Iterator[Instance]:
    for rule in _rules():
        if not isinstance(rule, Equation):
            for left in _expressions(rule.pattern, kinds, ops):
                right = _applied_at(rule, left)
                found = None if right is None else _instance(rule, left, right)
                if found is not None:
                    yield found


def _applied_at(rule: PatternRule, left: Variable) -> Any:
    """What a rule returns at the node of an expression; None if it does not apply."""
    node = left.owner
    if node is None:
        return None
    fgraph = FunctionGraph(outputs=[left], clone=False)
    try:
        return rule.apply_at(GraphContext(fgraph), node)
    except (TypeError, ValueError, PhintysError):  # a type that its function does not expect
        return None


def _expressions(
    pattern: PatternNode, kinds: Sequence[str], ops: Sequence[Op]
) -> Iterator[Variable]:
    """Expressions that a pattern matches, with ops of the graph and variables of each kind."""
    names = _free(pattern)
    if names is None or len(kinds) ** len(names) > MOST_CHOICES:
        kinds = [k for k in kinds if "1" not in k]
    if names is None or len(kinds) ** len(names) > MOST_CHOICES:
        return
    for choice in product(kinds, repeat=len(names)):
        variables = {n: type_of_kind(k)(n) for n, k in zip(names, choice)}
        yield from _built(pattern, variables, ops)


def _free(pattern: PatternNode) -> list[str] | None:
    """The names of the variables of a pattern; None if it has any number of operands."""
    found: dict[str, None] = {}
    stack: list[Any] = [pattern]
    for p in stack:
        if isinstance(p, Asterisk):
            return None
        if isinstance(p, PatternVar):
            found[p.token] = None
        elif isinstance(p, PatternNode):
            stack += p.inputs
    return list(found)


def _built(pattern: Any, variables: Mapping[str, Variable], ops: Sequence[Op]) -> list[Variable]:
    """What a pattern matches, for values of its variables; a pattern is small."""
    if isinstance(pattern, PatternVar):
        return [variables[pattern.token]]
    if not isinstance(pattern, PatternNode):
        return [pattern]
    found: list[Variable] = []
    operands = [_built(p, variables, ops) for p in pattern.inputs]
    for op in _candidates(pattern.op_match, ops):
        for inputs in product(*operands):
            try:
                out = op(*inputs)
            except (TypeError, ValueError, PhintysError):
                continue
            if isinstance(out, Variable):
                found.append(out)
    return found


def _candidates(op_match: Any, ops: Sequence[Op]) -> list[Op]:
    """The ops that a pattern of an op matches: itself, or those that are known."""
    if isinstance(op_match, Op):
        return [op_match]
    test = op_test(op_match)
    return [] if test is None else [op for op in ops if test(op)]
