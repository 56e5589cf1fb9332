"""Properties of values, what implies what, and the memo that infers them over a graph.

An `AssumptionKey` is a property, such as ``symmetric``.  What is known about it is a `FactState`.
Rules, by class of op, say what follows for the results of a node from its inputs.  An
`AssumptionFeature` applies them, inputs first, without recursion, and remembers what it has found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from phintys.errors import ConflictingAssumptionsError
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Constant, Variable, late_bound
from phintys.rewriting.database import optdb


class FactState(Enum):
    """What is known about a property: unknown, true, false, or both, which is a conflict."""

    UNKNOWN = 0
    TRUE = 1
    FALSE = 2
    CONFLICT = 3

    @classmethod
    def join(cls, left: FactState, right: FactState) -> FactState:
        """What two sources say together.

        >>> FactState.join(FactState.TRUE, FactState.UNKNOWN)
        <FactState.TRUE: 1>
        """
        return cls(left.value | right.value)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "A FactState has no truth value: compare it with FactState.TRUE, or use "
            "AssumptionFeature.check."
        )


UNKNOWN, TRUE, FALSE, CONFLICT = FactState


class Facts(dict["AssumptionKey", FactState]):
    """States by key; ``inferred`` says whether something is true that the type does not say."""

    inferred = False


class AssumptionKey:
    """A property that values can have; a new one is registered by its name.

    Parameters
    ----------
    name
        the keyword of `assume`; ValueError if another key has it
    short_name
        what printed graphs show; by default the name.  A key whose short name is None is not shown.

    >>> from phintys.assumptions import SYMMETRIC, POSITIVE_DEFINITE
    >>> import phintys.tensor as pt
    >>> SYMMETRIC.holds(POSITIVE_DEFINITE.assume(pt.dmatrix("x")))
    True
    """

    def __init__(self, name: str, short_name: str | None = "") -> None:
        if name in KEY_REGISTRY:
            raise ValueError(f"An assumption of the name {name!r} is registered already.")
        self.name = name
        self.short_name = name if short_name == "" else short_name
        KEY_REGISTRY[name] = self
        _changed()

    def holds(self, var: Variable, fgraph: FunctionGraph | None = None) -> bool:
        """Whether the property is known to be true of a variable."""
        return check_assumption(fgraph, var, self)

    def assume(self, x: Any, *, state: bool = True) -> Any:
        """``x`` with the property declared true, or false; see `assume`."""
        return late_bound["assume"](x, **{self.name: state})

    def __reduce__(self) -> tuple[Callable[[str], AssumptionKey], tuple[str]]:
        return _key_of, (self.name,)

    def __repr__(self) -> str:
        return self.name


def _key_of(name: str) -> AssumptionKey:
    return KEY_REGISTRY[name]


#: The keys by name, in the order of their registration.
KEY_REGISTRY: dict[str, AssumptionKey] = {}


class KeyRegistryView(Sequence[AssumptionKey]):
    """All registered keys, as a sequence that grows."""

    def __getitem__(self, i: Any) -> Any:
        return list(KEY_REGISTRY.values())[i]

    def __len__(self) -> int:
        return len(KEY_REGISTRY)

    def __iter__(self) -> Iterator[AssumptionKey]:
        return iter(list(KEY_REGISTRY.values()))


ALL_KEYS = KeyRegistryView()

#: ``rule(key, op, feature, fgraph, node, input_states)`` returns one state for each output.
InferenceRule = Callable[
    [AssumptionKey, Any, "AssumptionFeature", Any, Apply, Sequence[FactState]],
    Sequence[FactState],
]
#: Inference rules by key and class of op.
ASSUMPTION_INFER_REGISTRY: dict[AssumptionKey, dict[type, list[InferenceRule]]] = {}
#: Inference rules for all keys, by class of op.
UNIVERSAL_RULES: dict[type, list[InferenceRule]] = {}
#: ``{key: function}``, which says what is known of a constant.
CONSTANT_INFER_REGISTRY: dict[AssumptionKey, Callable[[Any], FactState]] = {}
#: ``{key: function}``, which says what is known of a variable from its type.
TYPE_INFER_REGISTRY: dict[AssumptionKey, Callable[[Variable], FactState]] = {}
#: The weaker keys that follow from a key without further conditions.
IMPLIES: dict[AssumptionKey, list[AssumptionKey]] = {}
#: Implications: all of these keys, the key that follows, a condition for the variable.
_implications: list[
    tuple[tuple[AssumptionKey, ...], AssumptionKey, Callable[[Variable], bool] | None]
] = []
#: The classes of ops whose rules were looked up, with and without derived ones: {key: rules}
_rules_by_class: dict[tuple[type, type, bool], dict[AssumptionKey, list[InferenceRule]]] = {}
#: Universal rules that say nothing if nothing is known of the inputs.
_derived: set[InferenceRule] = set()
#: Functions that register the inference rules of this package, before any are looked up or added.
_sources: list[Callable[[], object]] = []
#: Called if rules are registered after those of this package.
_listeners: list[Callable[[], None]] = []


def fill_later(source: Callable[[], object]) -> None:
    """Call ``source``, which registers inference rules, before any are looked up or added."""
    _sources.append(source)


def mark_own() -> None:
    """Declare what is registered to be that of this package: with more, code is not cached."""
    _listeners.append(optdb.touch)


def _fill() -> None:
    while _sources:
        _sources.pop()()


def _changed() -> None:
    """Forget what was looked up."""
    _fill()
    _rules_by_class.clear()
    for listener in _listeners:
        listener()


def register_assumption(
    key: AssumptionKey, *op_types: type, prepend: bool = False
) -> Callable[[InferenceRule], InferenceRule]:
    """Decorator: an inference rule of a key for classes of ops, also of scalar functions.

    ``rule(key, op, feature, fgraph, node, input_states)`` returns a list with one `FactState` for
    each output of ``node``.  ``input_states`` are those of the inputs for ``key``; other keys are
    asked with ``feature.check(variable, key)``.  What several rules say is joined; ``prepend``
    puts a rule before those that are registered.  For a batch (`Blockwise`), ``op`` is the op of
    one item, and properties of matrices are those of the last two axes.

    >>> from phintys.assumptions import SYMMETRIC
    >>> class MyOp: ...
    >>> @register_assumption(SYMMETRIC, MyOp)
    ... def mine_is_symmetric(key, op, feature, fgraph, node, input_states):
    ...     return [FactState.TRUE]
    """

    def register(rule: InferenceRule) -> InferenceRule:
        by_class = ASSUMPTION_INFER_REGISTRY.setdefault(key, {})
        _add(by_class, op_types, rule, prepend)
        return rule

    return register


def register_universal_assumption(
    *op_types: type, derived: bool = False
) -> Callable[[InferenceRule], InferenceRule]:
    """Decorator: an inference rule for all keys; see `register_assumption`.

    A ``derived`` rule is not called where no input has a property that its type does not say.
    """

    def register(rule: InferenceRule) -> InferenceRule:
        _add(UNIVERSAL_RULES, op_types, rule, False)
        if derived:
            _derived.add(rule)
        return rule

    return register


def _add(
    by_class: dict[type, list[InferenceRule]],
    op_types: Sequence[type],
    rule: InferenceRule,
    prepend: bool,
) -> None:
    for cls in op_types:
        rules = by_class.setdefault(cls, [])
        rules.insert(0 if prepend else len(rules), rule)
    _changed()


def register_implies(
    stronger: AssumptionKey | tuple[AssumptionKey, ...],
    *weaker: AssumptionKey,
    when: Callable[[Variable], bool] | None = None,
) -> None:
    """State that a key, or several keys together, imply other keys.

    ``when``: a further condition for the variable, such as a real dtype.
    """
    together = stronger if isinstance(stronger, tuple) else (stronger,)
    _implications.extend((together, key, when) for key in weaker)
    _changed()
    if len(together) == 1 and when is None:
        IMPLIES.setdefault(together[0], []).extend(weaker)


def register_constant_inference(key: AssumptionKey, fn: Callable[[Any], FactState]) -> None:
    """State with a function what is known of a constant; it is called with the constant."""
    CONSTANT_INFER_REGISTRY[key] = fn
    _changed()


def register_type_inference(key: AssumptionKey, fn: Callable[[Variable], FactState]) -> None:
    """State with a function what is known of a variable from its type."""
    TYPE_INFER_REGISTRY[key] = fn
    _changed()


def infer_assumption_for_node(
    key: AssumptionKey,
    op: Any,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: Sequence[FactState],
) -> list[FactState]:
    """What the rules of the class of ``op`` say of the outputs of ``node``."""
    return _joined(rules_of(op).get(key, ()), key, op, feature, fgraph, node, input_states)


def _joined(rules: Sequence[InferenceRule], *args: Any) -> list[FactState]:
    """What rules say together of the outputs of a node; ``args`` are those of a rule."""
    *_, node, _ = args
    found = [UNKNOWN] * len(node.outputs)
    for rule in rules:
        found = [FactState.join(a, b) for a, b in zip(found, rule(*args), strict=True)]
    return found


def rules_of(op: Any, anything: bool = True) -> Mapping[AssumptionKey, list[InferenceRule]]:
    """The rules for an op, by key: those of its class, and of what it applies elementwise.

    ``anything``: whether something is known of inputs; if not, derived rules are left out.
    """
    _fill()
    classes = type(op), type(getattr(op, "rule_key", op)), anything
    found = _rules_by_class.get(classes)
    if found is None:
        found = _rules_by_class[classes] = _looked_up(*classes)
    return found


def _looked_up(
    cls: type, applied: type, anything: bool
) -> dict[AssumptionKey, list[InferenceRule]]:
    classes = list(dict.fromkeys((*cls.__mro__, *applied.__mro__)))
    universal = [r for c in classes for r in UNIVERSAL_RULES.get(c, ())]
    if not anything:
        universal = [r for r in universal if r not in _derived]
    found: dict[AssumptionKey, list[InferenceRule]] = {}
    for key in KEY_REGISTRY.values():
        by_class = ASSUMPTION_INFER_REGISTRY.get(key, {})
        rules = [r for c in classes for r in by_class.get(c, ())] + universal
        if rules:
            found[key] = rules
    return found


# --------------------------------------------------------------------------------- the memo


class AssumptionFeature(Feature):
    """The properties of the variables of a graph: inferred when asked for, and remembered.

    >>> from phintys.assumptions import SYMMETRIC, assume
    >>> import phintys.tensor as pt
    >>> x = assume(pt.dmatrix("x"), symmetric=True)
    >>> AssumptionFeature().check(x.T + x, SYMMETRIC)
    True
    """

    def __init__(self) -> None:
        self.fgraph: FunctionGraph | None = None
        self.cache: WeakKeyDictionary[Variable, Facts] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {"fgraph": self.fgraph}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()
        self.fgraph = state["fgraph"]

    def clone(self) -> AssumptionFeature:
        return type(self)()

    def on_attach(self, fgraph: Any) -> None:
        self.fgraph = fgraph

    def on_detach(self, fgraph: Any) -> None:
        self.fgraph = None

    def on_change_input(
        self, fgraph: Any, node: Apply, i: int, var: Variable, new_var: Variable, reason: Any = None
    ) -> None:
        """Forget what followed from the old input, about the node and those that use it."""
        stack: list[Variable] = list(node.outputs)
        while stack:
            v = stack.pop()
            if self.cache.pop(v, None) is not None:
                for client, _ in fgraph.clients.get(v, ()):
                    stack.extend(client.outputs)

    def on_import(self, fgraph: Any, node: Apply, reason: Any = None) -> None:
        """Forget what was inferred while the node had no place in the graph."""
        for v in node.outputs:
            self.cache.pop(v, None)

    def get(self, var: Any, key: AssumptionKey) -> FactState:
        """What is known of a variable; ConflictingAssumptionsError if that is contradictory."""
        state = self.facts(var).get(key, UNKNOWN)
        if state is CONFLICT:
            raise ConflictingAssumptionsError(
                f"{var} is said to be {key} and not to be {key}. "
                "An assumption that was declared with assume contradicts another one, or what "
                "follows from the ops."
            )
        return state

    def check(self, var: Any, key: AssumptionKey) -> bool:
        """Whether a property is known to be true of a variable."""
        return self.get(var, key) is TRUE

    def facts(self, var: Variable) -> Facts:
        """All that is known of a variable.  Its ancestors are visited first, with a stack."""
        _fill()
        stack, cache = [var], self.cache
        while stack:
            v = stack[-1]
            if v in cache:
                stack.pop()
                continue
            node = v.owner
            if node is None or not getattr(v.type, "ndim", 1) or not rules_of(node.op):
                cache[v] = closed(v, _known_of_leaf(v))
                continue
            missing = [x for x in node.inputs if x not in cache]
            if missing:
                stack.extend(missing)
            else:
                self._infer(node)
        return cache[var]

    def _infer(self, node: Apply) -> None:
        """Find and remember what is known of the outputs of a node, from its inputs."""
        cache = self.cache
        for out in node.outputs:
            cache[out] = closed(out, _known_of_leaf(out))
        given = [cache[x] for x in node.inputs]
        anything = any([facts.inferred for facts in given])
        for key, rules in rules_of(node.op, anything).items():
            states = [facts.get(key, UNKNOWN) for facts in given]
            found = _joined(rules, key, node.op, self, self.fgraph, node, states)
            for out, state in zip(node.outputs, found, strict=True):
                if state is not UNKNOWN:
                    facts = cache[out]
                    facts.inferred = facts.inferred or facts.get(key) is not state
                    facts[key] = FactState.join(facts.get(key, UNKNOWN), state)
        for out in node.outputs:
            closed(out, cache[out])


def _known_of_leaf(v: Variable) -> Facts:
    """What is known of a variable by its type, and by its value if it is a constant."""
    found = Facts()
    for key, fn in TYPE_INFER_REGISTRY.items():
        if (state := fn(v)) is not UNKNOWN:
            found[key] = state
    if isinstance(v, Constant) and getattr(v.data, "size", 0) > 1:
        found.inferred = True
        for key, fn in CONSTANT_INFER_REGISTRY.items():
            if (state := FactState.join(found.get(key, UNKNOWN), fn(v))) is not UNKNOWN:
                found[key] = state
    return found


def closed(v: Variable, facts: Facts) -> Facts:
    """Facts of a variable, to which what they imply is added."""
    if not facts:
        return facts
    changed = True
    while changed:
        changed = False
        for stronger, weaker, when in _implications:
            if when is not None and not when(v):
                continue
            if all(facts.get(key, UNKNOWN) in (TRUE, CONFLICT) for key in stronger):
                changed = _learn(facts, weaker, TRUE) or changed
            if len(stronger) == 1 and facts.get(weaker, UNKNOWN) in (FALSE, CONFLICT):
                changed = _learn(facts, stronger[0], FALSE) or changed
    return facts


def _learn(facts: Facts, key: AssumptionKey, state: FactState) -> bool:
    """Join a state to those of a key; return whether that is new."""
    before = facts.get(key, UNKNOWN)
    after = facts[key] = FactState.join(before, state)
    return after is not before


def feature_of(fgraph: FunctionGraph | None) -> AssumptionFeature:
    """The memo of a graph, which is attached if it has none; for None a new one."""
    if fgraph is None:
        return AssumptionFeature()
    for feature in fgraph._features:  # pyright: ignore[reportPrivateUsage]
        if isinstance(feature, AssumptionFeature):
            return feature
    found = AssumptionFeature()
    fgraph.attach_feature(found)
    return found


def check_assumption(fgraph: FunctionGraph | None, var: Any, key: AssumptionKey) -> bool:
    """Whether a property is known to be true of a variable.

    The memo of ``fgraph`` is used, if one is given; see `AssumptionFeature`.
    ConflictingAssumptionsError if what is known is contradictory.

    >>> from phintys.assumptions import DIAGONAL
    >>> import phintys.tensor as pt
    >>> check_assumption(None, pt.eye(3) + pt.eye(3), DIAGONAL)
    True
    """
    return feature_of(fgraph).check(var, key)


# ------------------------------------------------------------------------- for inference rules


def true_if(cond: bool, else_false: bool = False) -> list[FactState]:
    """The states of one output: true under a condition; else unknown, or false."""
    return [TRUE if cond else FALSE if else_false else UNKNOWN]


def all_inputs_have_key(
    key: AssumptionKey,
    op: Any,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: Sequence[FactState],
) -> list[FactState]:
    """An inference rule: the only output has the property if all inputs have it."""
    return true_if(bool(input_states) and all(s is TRUE for s in input_states))


def propagate_first(
    key: AssumptionKey,
    op: Any,
    feature: AssumptionFeature,
    fgraph: Any,
    node: Apply,
    input_states: Sequence[FactState],
) -> list[FactState]:
    """An inference rule: what is true of the first input is true of the only output."""
    return true_if(input_states[0] is TRUE)
