"""Builds the FunctionGraph from the arguments of `function`: givens, updates, shared variables."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from phintys.compile.io import In, Out, SymbolicInput, SymbolicOutput, as_input
from phintys.config import config
from phintys.errors import MissingInputError, UnusedInputError
from phintys.graph.clone import clone_get_equiv
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import describe, stacklevel
from phintys.graph.packed import PackedGraph
from phintys.graph.shared import SharedVariable, shared
from phintys.graph.traversal import ancestors, graph_inputs, walk
from phintys.graph.variable import AtomicVariable, Variable
from phintys.locks import exclusive


@dataclass
class Specification:
    """The checked arguments of `function` and its graph before rewriting.

    The inputs of ``fgraph`` are ``inputs``, then ``shared``; its outputs are ``outputs``, then the
    updates.  ``fgraph.update_mapping`` maps positions of updates to positions of inputs.
    """

    inputs: list[SymbolicInput]
    outputs: list[SymbolicOutput]
    shared: list[SharedVariable]
    #: ``fgraph``, or that in little memory; both have ``inputs`` and ``update_mapping``
    held: FunctionGraph | PackedGraph
    #: what a call returns: "single", "list", "nothing" (an empty list) or "dict"
    unpack: str
    #: the keys of a dict of outputs
    keys: list[Any] = field(default_factory=list)
    #: the items of the argument ``inputs`` of `function`: ``inputs``, and those kept in a cell
    arguments: list[SymbolicInput] = field(default_factory=list)
    #: the shared variables, of ``shared``, that stand for inputs kept in a cell
    kept: dict[SymbolicInput, SharedVariable] = field(default_factory=dict)

    @property
    @exclusive
    def fgraph(self) -> FunctionGraph:
        """The graph."""
        graph = self.held
        if isinstance(graph, PackedGraph):
            graph = self.held = graph.unpack()
        return graph

    def pack(self) -> None:
        """Keep the graph in little memory until it is asked for."""
        if isinstance(self.held, FunctionGraph):
            self.held = PackedGraph(self.held)

    def __getstate__(self) -> dict[str, Any]:
        held = self.held
        return vars(self) | {"held": PackedGraph(held) if isinstance(held, FunctionGraph) else held}

    def all_inputs(self) -> list[SymbolicInput]:
        """An `In` for each input of ``fgraph``; see `FunctionMaker.inputs`."""
        fgraph, n = self.fgraph, len(self.inputs)
        updates = {i: fgraph.outputs[o] for o, i in fgraph.update_mapping.items()}
        implicit = {s: i.implicit for i, s in self.kept.items() if i.variable is not s}
        return self.inputs + [
            In(
                v,
                value=s.container,
                update=updates.get(k),
                mutable=k in updates,
                borrow=True,
                implicit=implicit.get(s, True),
                shared=True,
            )
            for k, (v, s) in enumerate(zip(fgraph.inputs[n:], self.shared, strict=True), n)
        ]


@dataclass
class Expressions:
    """Substitutes givens in expressions, and collects the shared variables that they use.

    ``shared`` and ``updates`` have the order in which PyTensor meets the variables, since programs
    seed generators in this order: first inputs first, depth first.
    """

    inputs: Sequence[Variable]
    memo: dict[Any, Any]
    default_updates: Any
    shared: list[SharedVariable] = field(default_factory=list)
    updates: dict[SharedVariable, Variable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.default_updates, bool | list):
            raise TypeError(
                "no_default_updates must be a bool or a list of shared variables, not "
                f"{self.default_updates!r}."
            )

    @cached_property
    def _given(self) -> frozenset[Variable]:
        return frozenset(self.inputs)

    def collect(
        self, results: Sequence[Variable], updates: Iterable[tuple[SharedVariable, Variable]]
    ) -> list[Variable]:
        """The results with givens substituted; what they and the updates use is collected."""
        found = self._substituted(results)
        for target, new in updates:
            self._update(target, new)
        self._add_default_updates()
        return found

    def _substituted(self, expressions: Sequence[Variable]) -> list[Variable]:
        """The expressions with givens substituted; shared variables stay the same objects."""
        if self.memo:
            memo = dict(self.memo)
            clone_get_equiv(
                self.inputs, expressions, copy_inputs=False, copy_orphans=False, memo=memo
            )
            expressions = [memo[v] for v in expressions]
        for v in self._leaves(expressions):
            self._use(v)
        return list(expressions)

    def _leaves(self, expressions: Sequence[Variable]) -> Iterator[Variable]:
        """The variables without an owner that are not behind an input, as they are met."""

        def expand(v: Variable) -> Iterable[Variable] | None:
            return None if v.owner is None or v in self._given else reversed(v.owner.inputs)

        for v in walk(reversed(expressions), expand, bfs=False):
            if v.owner is None:
                yield v

    def _use(self, v: Variable) -> None:
        if isinstance(v, SharedVariable) and v not in self.shared and v not in self._given:
            self.shared.append(v)

    def _update(self, target: SharedVariable, expression: Variable) -> None:
        (self.updates[target],) = self._substituted([expression])
        self._use(target)

    def _add_default_updates(self) -> None:
        """Add the default updates of shared variables, also of those that these updates use."""
        for v in self.shared:  # grows
            if v in self.updates or v.default_update is None:
                continue
            if self.default_updates is not True and v not in self._excluded():
                self._update(v, v.type.filter_variable(v.default_update))

    def _excluded(self) -> set[Any]:
        return set(self.default_updates) if isinstance(self.default_updates, list) else set()


def specify(
    inputs: Iterable[Any],
    outputs: Any = None,
    updates: Any = None,
    givens: Any = None,
    no_default_updates: Any = False,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    on_unused_input: str | None = None,
    fgraph: FunctionGraph | None = None,
) -> Specification:
    """The checked arguments of `function` and its graph; parameters are those of `function`.

    ``fgraph`` is a graph that exists already, from the inputs to the outputs: it is not copied.
    """
    arguments = [as_input(x, allow_input_downcast) for x in _sequence(inputs)]
    outs, unpack, keys = _as_outs(outputs)
    _check_inputs([i.variable for i in arguments])
    kept = {i: _cell(i) for i in arguments if _is_kept(i)}
    ins = [i for i in arguments if i not in kept]
    variables = [i.variable for i in ins]
    updated = [(s, i.update) for i, s in kept.items() if i.update is not None]
    pairs = update_pairs([*_pairs(updates, "updates"), *updated])
    memo = checked_givens(givens, [i.variable for i in arguments], rebuild_strict)
    memo.update((i.variable, s) for i, s in kept.items() if i.variable is not s)
    expressions = Expressions(variables, memo, no_default_updates)
    results = expressions.collect([o.variable for o in outs], pairs)
    targets = [s for s in expressions.shared if s in expressions.updates]
    graph_outputs = [*results, *(expressions.updates[t] for t in targets)]
    _check_used(variables, graph_outputs, on_unused_input or config.on_unused_input)
    roots = [*variables, *expressions.shared]
    _check_complete(graph_outputs, roots, memo)
    mapping = {len(outs) + k: roots.index(t) for k, t in enumerate(targets)}
    if fgraph is None:
        computed = {v: v.clone() for v in roots if v.owner is not None}
        fgraph = FunctionGraph(
            *(roots, graph_outputs), copy_inputs=False, memo=computed, update_mapping=mapping
        )
    kept = {i: s for i, s in kept.items() if s in expressions.shared}
    return Specification(ins, outs, expressions.shared, fgraph, unpack, keys, arguments, kept)


# ------------------------------------------------------------------------ arguments


def _sequence(inputs: Any) -> list[Any]:
    if isinstance(inputs, list | tuple):
        return list(inputs)
    raise TypeError(
        f"The inputs of a function must be a list or a tuple, even of one variable; got {inputs!r}."
    )


def _is_kept(i: SymbolicInput) -> bool:
    """Whether an input is read from a cell, as shared variables are, and not passed by calls."""
    return (
        i.update is not None
        or (i.implicit and i.value is not None)
        or isinstance(i.variable, SharedVariable)
    )


def _cell(i: SymbolicInput) -> SharedVariable:
    """The shared variable that takes the place of an input."""
    if isinstance(i.variable, SharedVariable):
        return i.variable
    if i.source is not None:
        return i.source
    container = i.value
    if container is None or i.owns_value:  # of each function its own
        container = i.new_container(None if container is None else deepcopy(container.value))
    return SharedVariable(i.variable.type, container=container, name=i.name)


def _as_outs(outputs: Any) -> tuple[list[SymbolicOutput], str, list[Any]]:
    """The outputs, how a call returns them, and their keys if that is in a dict."""
    if outputs is None:
        return [], "nothing", []
    if isinstance(outputs, Mapping):
        return [_as_out(o) for o in outputs.values()], "dict", list(outputs)
    is_array = hasattr(outputs, "dtype")
    if isinstance(outputs, Iterable) and not is_array and not isinstance(outputs, Variable | str):
        return [_as_out(o) for o in outputs], "list", []
    return [_as_out(outputs)], "single", []


def _as_out(o: Any) -> SymbolicOutput:
    if isinstance(o, SymbolicOutput):
        return o
    if isinstance(o, Variable):
        return Out(o)
    raise TypeError(f"Outputs of a function are Variables, not {o!r} ({type(o).__name__}).")


def _pairs(pairs: Any, what: str) -> list[tuple[Any, Any]]:
    if pairs is None:
        return []
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    found = []
    for pair in items:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"{what} are pairs (variable, expression) or a dict, not {pair!r}.")
        found.append((pair[0], pair[1]))
    return found


def _check_inputs(variables: Sequence[Variable]) -> None:
    seen: set[Variable] = set()
    for k, v in enumerate(variables):
        if v in seen:
            raise UnusedInputError(f"{v} (type {v.type}) is given twice as an input (number {k}).")
        seen.add(v)


# -------------------------------------------------------------------------- updates


def update_pairs(updates: Any) -> list[tuple[SharedVariable, Variable]]:
    """The argument ``updates`` of `function`, checked and converted to types."""
    found: dict[SharedVariable, Variable] = {}
    for target, new in _pairs(updates, "updates"):
        if not isinstance(target, SharedVariable):
            raise TypeError(f"Only shared variables can be updated, not {target!r}.")
        if target in found:
            raise ValueError(f"There are two updates for the shared variable {target}.")
        found[target] = _converted_update(target, new)
    return list(found.items())


def _converted_update(target: SharedVariable, new: Any) -> Variable:
    try:
        return target.type.filter_variable(new)
    except TypeError as exc:
        if not isinstance(new, Variable):
            raise TypeError(f"The update of {target} is not a value of its type: {exc}") from exc
        new_type = getattr(new, "type", type(new).__name__)
        fix = ""
        if getattr(new_type, "ndim", None) == getattr(target.type, "ndim", None):
            fix = f" Cast it, e.g. with .astype({getattr(target.type, 'dtype', 'dtype')!r})."
        raise TypeError(
            f"The update of {target} must have its type, {target.type}; the expression {new} has "
            f"type {new_type}.{fix}\n{_made(new)}".rstrip()
        ) from exc


def _made(v: Any) -> str:
    """The line of the user's program that made a variable, or the node that computes it."""
    return describe(getattr(getattr(v, "owner", None) or v, "origin", None))


# --------------------------------------------------------------------------- givens


def checked_givens(givens: Any, inputs: Sequence[Variable], strict: bool) -> dict[Any, Any]:
    """The argument ``givens`` of `function`, checked and converted to types."""
    memo: dict[Any, Any] = {}
    for old, new in _pairs(givens, "givens"):
        if not isinstance(old, Variable):
            raise TypeError(f"givens replace Variables, not {old!r}.")
        if old in inputs:
            raise RuntimeError(f"{old} is an input of the function: givens cannot replace it.")
        if old in memo:
            raise ValueError(f"There are two givens for {old}.")
        memo[old] = _replacement(old, new, strict)
    return memo


def _replacement(old: Variable, new: Any, strict: bool) -> Variable:
    try:
        if not isinstance(new, Variable):
            new = shared(old.type.filter(new))
        return old.type.filter_variable(new) if strict else new
    except TypeError as exc:
        raise TypeError(f"{new} cannot be given for {old}: {exc}\n{_made(new)}".rstrip()) from exc


# --------------------------------------------------------------------------- checks


def _check_used(variables: Sequence[Variable], outputs: Sequence[Variable], policy: str) -> None:
    if policy not in ("ignore", "warn", "raise"):
        raise ValueError(f"on_unused_input must be raise, warn or ignore, not {policy!r}.")
    if policy == "ignore":
        return
    used = set(ancestors(outputs))
    for k, v in enumerate(variables):
        if v in used:
            continue
        message = (
            f"Input {k}, {v} (type {v.type}), is not used by any output or update. Remove it, or "
            "pass on_unused_input='ignore'."
        )
        if policy == "raise":
            raise UnusedInputError(f"{message}\n{describe(v.origin)}".rstrip())
        warnings.warn(message, stacklevel=stacklevel())


def _check_complete(
    outputs: Sequence[Variable], roots: Sequence[Variable], givens: Mapping[Any, Any]
) -> None:
    known = set(roots)
    for v in graph_inputs(outputs, blockers=known):
        if v in known or isinstance(v, AtomicVariable):
            continue
        advice = "Add it to the inputs, or give it a value with givens."
        if v in givens:
            advice = "givens replace it in the outputs, not in the expressions of other givens."
        raise MissingInputError(
            f"{v} (type {v.type}) is needed to compute the outputs but is not among the inputs. "
            f"{advice}\n{describe(v.origin)}".rstrip()
        )
