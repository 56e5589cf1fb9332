"""`OpFromGraph`: a graph as an op, inlined or not, with derivatives of one's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from phintys.errors import MethodNotDefined, MissingInputError, UnusedInputError
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.labels import labelled
from phintys.graph.origin import describe, stacklevel
from phintys.graph.perform import Runner
from phintys.graph.replace import graph_replace
from phintys.graph.shared import SharedVariable
from phintys.graph.traversal import ancestors, graph_inputs, io_toposort
from phintys.graph.type import DisconnectedType, NullType, disconnected_type
from phintys.graph.variable import (
    Apply,
    AtomicVariable,
    Constant,
    NominalVariable,
    Variable,
    late_bound,
)
from phintys.inner.op import InnerGraphOp
from phintys.inner.overrides import (
    BatchedPullback,
    BatchedPushforward,
    Override,
    WithoutOutputs,
    as_override,
    derivatives,
    or_zeros,
)
from phintys.inner.shapes import infer_shape

#: options of `phintys.function`, which have no effect: the graph is compiled with the outer one
_IGNORED = frozenset(
    "mode profile accept_inplace rebuild_strict allow_input_downcast trust_input".split()
)


class OpFromGraph(InnerGraphOp):
    """An op that computes a graph.

    Parameters
    ----------
    inputs, outputs
        lists of variables.  The inputs may be computed from others; the graph ends at them.  A
        constant among the inputs is a parameter of the graph like others.
    inline
        True: rewriting replaces the op by its graph, before anything else.  False: rewrites see the
        op as one node; its graph is rewritten separately, and compiled backends inline it late.
    pullback
        the derivative in reverse mode, in place of that of the graph.  A function of the lists
        (inputs, outputs, cotangents of the outputs) that returns a list of the cotangents of the
        inputs; or an `OpFromGraph` of all these arguments; or a list with, for each input, one of
        these (of one result), None (the derivative of the graph), or a variable of
        `DisconnectedType` or `NullType`.  A cotangent that is missing is passed as zeros.
    pushforward
        the same in forward mode, a function of the lists (inputs, tangents of the inputs)
    lop_overrides, rop_overrides
        older names of ``pullback`` and ``pushforward``
    grad_overrides
        like ``pullback``, a function of (inputs, cotangents)
    connection_pattern
        ``[input][output]``: whether a derivative passes, in place of what the graph says
    strict
        True: shared variables of the graph must be among the inputs.  False: those that are not
        become further inputs, in the attribute ``shared_inputs``.
    name
        a label; equality ignores it
    destroy_map
        as for `Op`, declared for graphs that work in place
    fgraph
        the graph as a `FrozenFunctionGraph`, instead of that of ``outputs``
    on_unused_input
        ``"ignore"``, ``"warn"`` or ``"raise"``
    **kwargs
        options of `phintys.function`, ignored: the graph is compiled with the outer one

    Two such ops are equal if their graphs are, up to names, and their options and overrides.

    Raises
    ------
    MissingInputError
        if the outputs depend on a variable that is not given (or on a shared one, and ``strict``)
    UnusedInputError
        if an input is given twice, or not used and ``on_unused_input`` says so
    TypeError
        if an input or output is no variable, or an override or option is of another kind

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dvectors("x", "y")
    >>> op = OpFromGraph([x, y], [pt.exp(x) * y], name="scaled")
    >>> z = op(x, 2 * y)
    >>> z.owner
    scaled{inline=False}(x, Mul.0)
    >>> z.eval({x: [0.0], y: [3.0]})
    array([6.])
    >>> twice = OpFromGraph([x], [x**2], pullback=lambda inputs, outputs, cotangents: [inputs[0]])
    >>> phintys.grad(twice(y).sum(), y).eval({y: [5.0]})
    array([5.])
    """

    # ----- class and static shape
    is_expandable = True
    __props__ = (
        "is_inline",
        "shared_inputs",
        "pullback_overrides",
        "pushforward_overrides",
        "given_pattern",
        "destroyed",
    )
    uncompiled_props = (
        "shared_inputs",
        "pullback_overrides",
        "pushforward_overrides",
        "given_pattern",
    )

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        *,
        inline: bool = False,
        pullback: Override = None,
        pushforward: Override = None,
        lop_overrides: Override = None,
        grad_overrides: Override = None,
        rop_overrides: Override = None,
        connection_pattern: Sequence[Sequence[bool]] | None = None,
        strict: bool = False,
        name: str | None = None,
        destroy_map: Mapping[int, Sequence[int]] | None = None,
        fgraph: FrozenFunctionGraph | None = None,
        on_unused_input: str = "ignore",
        **kwargs: Any,
    ) -> None:
        unknown = sorted(kwargs.keys() - _IGNORED)
        if unknown:
            raise TypeError(f"OpFromGraph has no option {unknown[0]!r}.")
        inputs, outputs = list(inputs), list(outputs)
        _check_variables(inputs, outputs)
        inputs, outputs = _without_constants(inputs, outputs)
        shared = [] if fgraph is not None else _captured(inputs, outputs, strict, name)
        super().__init__([*inputs, *shared], outputs, name)
        if fgraph is not None:
            copy = self.clone_with_inner_graph(fgraph)
            self.fgraph, self.origins = copy.fgraph, copy.origins
        _check_used(inputs, outputs, on_unused_input)
        self.is_inline = bool(inline)
        self.shared_inputs = tuple(shared)
        grad = None if grad_overrides is None else _without_outputs(grad_overrides)
        pullback = _only_one("pullback", pullback, lop_overrides, grad)
        pushforward = _only_one("pushforward", pushforward, rop_overrides)
        self.pullback_overrides = as_override(pullback, "pullback", len(inputs))
        self.pushforward_overrides = as_override(pushforward, "pushforward", len(outputs))
        self.given_pattern = _as_pattern(connection_pattern, len(inputs), len(outputs))
        self.destroy_map = {o: list(i) for o, i in (destroy_map or {}).items()}
        self.destroyed = tuple(sorted((o, tuple(i)) for o, i in self.destroy_map.items()))

    def make_node(self, *inputs: Any) -> Apply:
        """The node; captured shared variables may be given after the other inputs, or left out."""
        types = [v.type for v in self.fgraph.inputs]
        given = list(inputs)
        if len(given) == len(types) - len(self.shared_inputs):
            given += self.shared_inputs
        if len(given) != len(types):
            count = len(types) - len(self.shared_inputs)
            raise ValueError(f"{self} takes {count} inputs, not {len(inputs)}.")
        typed = []
        for i, (type_, x) in enumerate(zip(types, given, strict=True)):
            try:
                typed.append(type_.filter_variable(x))
            except TypeError as exc:
                raise TypeError(f"{self}: input {i} must be of type {type_}: {exc}") from exc
        if any(_is_known_as_1(x.type, t) for x, t in zip(typed, types)):
            return self._for_types([x.type for x in typed]).make_node(*typed)
        return Apply(self, typed, [v.type.make_variable() for v in self.fgraph.outputs])

    def _for_types(self, types: Sequence[Any]) -> OpFromGraph:
        """This op with a graph that is built for inputs of narrower types.

        A length that is known to be 1 broadcasts inside of it.
        """
        inputs = [t.make_variable() for t in types]
        return self.clone_with_inner_graph(FunctionGraph(inputs, self.bind(inputs), clone=False))

    @property
    def input_types(self) -> list[Any]:
        """The types of the inputs, captured shared variables excluded."""
        count = len(self.fgraph.inputs) - len(self.shared_inputs)
        return [v.type for v in self.fgraph.inputs[:count]]

    @property
    def output_types(self) -> list[Any]:
        """The types of the outputs."""
        return [v.type for v in self.fgraph.outputs]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """The shapes of the outputs, from those of the nodes of the graph; None if not known."""
        flat = self.expanded
        outputs = graph_replace(
            flat.outputs, dict(zip(flat.inputs, node.inputs, strict=True)), strict=False
        )
        return infer_shape(outputs, node.inputs, shapes)

    # ----- perform
    @cached_property
    def runner(self) -> Runner:
        """Computes the graph node by node."""
        return Runner(self.expanded)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        with labelled(self.expanded.inputs, lambda i: str(node.inputs[i])):
            found = self.runner(inputs)
        for cell, value in zip(output_storage, found, strict=True):
            cell[0] = value

    # ----- rewriting
    def inline_node(self, node: Apply) -> list[Variable]:
        return self.bind(node.inputs)

    def simplify_node(self, node: Apply, used: Sequence[bool]) -> list[Variable | None] | None:
        if type(self) is not OpFromGraph or self.destroyed or not self.has_graph_derivatives:
            return None
        given = dict(zip(self.fgraph.inputs, node.inputs, strict=True))
        outputs = self.fgraph.outputs
        pairs = zip(outputs, used, strict=True)
        wanted = dict.fromkeys(v for v, u in pairs if u and v.owner is not None)
        reached = set(ancestors(wanted))
        kept = [v for v in given if v in reached]
        if len(wanted) == len(outputs) and len(kept) == len(given):
            return None
        found = {v: given.get(v, v) for v in outputs if v.owner is None}
        if wanted:
            op = self._restricted(kept, list(wanted))
            new = op.make_node(*[given[v] for v in kept])
            found.update(zip(wanted, new.outputs, strict=True))
        return [found.get(v) for v in outputs]

    def _restricted(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Any:
        """The op that computes a part of the frozen graph; user's lines of its nodes are kept."""
        op = OpFromGraph(inputs, outputs, inline=self.is_inline, name=self.name)
        lines = dict(zip(self.fgraph.toposort(), self.origins))
        op.origins = tuple([lines[n] for n in io_toposort(inputs, outputs)])  # type: ignore[index]
        return op

    # ----- derivatives
    @property
    def has_graph_derivatives(self) -> bool:  # type: ignore[override]
        given = (self.pullback_overrides, self.pushforward_overrides, self.given_pattern)
        return (
            all(x is None for x in given)
            and not self._has_own_pullback
            and (type(self).pushforward is OpFromGraph.pushforward)
        )

    @property
    def _has_own_pullback(self) -> bool:
        """Whether the class defines `pullback`."""
        return type(self).pullback is not OpFromGraph.pullback

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        pattern = self.pattern
        if self.given_pattern is not None:  # the rows of captured variables are derived
            pattern = [*self.given_pattern, *pattern[len(self.given_pattern) :]]
        return [list(row) for row in pattern]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return self._pulled_back(inputs, outputs, cotangents, [True] * len(inputs))

    def wanted_pullback(self, inputs: Any, outputs: Any, cotangents: Any, wanted: Any) -> list[Any]:
        if self._has_own_pullback:
            return list(self.pullback(inputs, outputs, cotangents))
        return self._pulled_back(inputs, outputs, cotangents, wanted)

    def _pulled_back(self, inputs: Any, outputs: Any, cotangents: Any, wanted: Any) -> list[Any]:
        def of_graph(wanted: Sequence[bool]) -> list[Any]:
            seeds = [_stand_in(g) for g in cotangents]
            variables, found = self.pullback_graph(seeds, wanted)
            return self._applied(
                "pullback", variables, [*inputs, *outputs], seeds, cotangents, found
            )

        if self.pullback_overrides is None:
            return of_graph(wanted)
        count = len(inputs) - len(self.shared_inputs)
        arguments = (inputs[:count], outputs, or_zeros(cotangents, outputs))
        found = derivatives(f"{self}.pullback", self.pullback_overrides, arguments, count)
        found += [None] * len(self.shared_inputs)
        return _filled(found, of_graph)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        def of_graph(wanted: Sequence[bool]) -> list[Any]:
            seeds = [_stand_in(t) for t in tangents]
            variables, found = self.pushforward_graph(seeds)
            return self._applied(
                "pushforward", variables, [*inputs, *outputs], seeds, tangents, found
            )

        if self.pushforward_overrides is None:
            if self.pullback_overrides is not None:
                raise MethodNotDefined(f"{self} has a pullback of its own, and no pushforward.")
            return of_graph([True] * len(outputs))
        count = len(inputs) - len(self.shared_inputs)
        if not all(isinstance(t.type, DisconnectedType) for t in tangents[count:]):
            raise MethodNotDefined(f"{self} has a pushforward without its captured variables.")
        arguments = (inputs[:count], or_zeros(tangents[:count], inputs[:count]))
        override, name = self.pushforward_overrides, f"{self}.pushforward"
        return _filled(derivatives(name, override, arguments, len(outputs)), of_graph)

    def _applied(
        self,
        what: str,
        variables: Sequence[Variable],
        values: Sequence[Variable],
        seeds: Sequence[Variable | None],
        given: Sequence[Variable],
        found: Sequence[Any],
    ) -> list[Any]:
        """The derivatives ``found``, functions of ``variables`` and ``seeds``, as results of an op.

        The op is applied to those of ``values`` and ``given`` in their places.  A derivative that
        is missing, None, has `DisconnectedType`.
        """
        pairs = [*zip(variables, values, strict=True)]
        pairs += [(s, g) for s, g in zip(seeds, given, strict=True) if s is not None]
        defined = [g for g in found if g is not None and not isinstance(g.type, NullType)]
        reached = set(ancestors(defined))
        pairs = [(v, x) for v, x in pairs if v in reached]
        computed: dict[Any, Any] = {}
        if defined:
            name = f"{self.name or type(self).__name__}_{what}"
            op = OpFromGraph([v for v, _ in pairs], defined, inline=self.is_inline, name=name)
            results = op.make_node(*[x for _, x in pairs]).outputs
            computed = dict(zip(defined, results, strict=True))
        return [disconnected_type() if g is None else computed.get(g, g) for g in found]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        stand_ins = [x.type.make_variable() for x in batched_inputs]
        outputs = self.batched_graph(stand_ins)
        options: dict[str, Any] = {"inline": self.is_inline, "name": self.name}
        if not self.has_graph_derivatives:
            by_items: Apply = late_bound["blockwise"](node, *batched_inputs)
            for v, out in zip(outputs, by_items.outputs, strict=True):
                if v.type.broadcastable != out.type.broadcastable:
                    return by_items  # an output is not computed for every item
            types = tuple(v.type for v in node.inputs)
            options |= {
                "pullback": BatchedPullback(self, types),
                "pushforward": BatchedPushforward(self, types),
                "connection_pattern": self.connection_pattern(node),
            }
        return OpFromGraph(stand_ins, outputs, **options).make_node(*batched_inputs)

    def __str__(self) -> str:
        return f"{self.name or type(self).__name__}{{inline={self.is_inline}}}"


def _filled(found: Sequence[Any], of_graph: Callable[[Sequence[bool]], list[Any]]) -> list[Any]:
    """Derivatives, with those of the graph, ``of_graph(wanted)``, in place of None."""
    missing = [g is None for g in found]
    if not any(missing):
        return list(found)
    filled = of_graph(missing)
    return [new if m else g for g, m, new in zip(found, missing, filled, strict=True)]


def _stand_in(g: Variable) -> Variable | None:
    """A new variable of the type of a derivative; None if there is none."""
    return None if isinstance(g.type, DisconnectedType) else g.type.make_variable()


# ------------------------------------------------------------------------ arguments


def _is_known_as_1(given: Any, declared: Any) -> bool:
    """Whether a type knows a length as 1 that the declared one does not know."""
    pairs = zip(getattr(given, "shape", ()), getattr(declared, "shape", ()))
    return any(n == 1 and m is None for n, m in pairs)


def _check_variables(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    for what, given in (("Inputs", inputs), ("Outputs", outputs)):
        for v in given:
            if not isinstance(v, Variable):
                raise TypeError(f"{what} of an OpFromGraph must be Variables, not {v!r}.")
    twice = [v for i, v in enumerate(inputs) if v in inputs[:i] and not isinstance(v, Constant)]
    if twice:
        raise UnusedInputError(f"{twice[0]} (type {twice[0].type}) is given twice as an input.")
    if not outputs:
        raise ValueError("An OpFromGraph needs outputs.")


def _without_constants(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """The graph with variables in the place of the constants among its inputs."""
    if not any(isinstance(v, Constant) for v in inputs):
        return list(inputs), list(outputs)
    formal = [v.type.make_variable(v.name) if isinstance(v, Constant) else v for v in inputs]
    stands = dict(zip(reversed(inputs), reversed(formal)))  # the first of equal constants
    return formal, list(graph_replace(outputs, stands, strict=False))


def _captured(
    inputs: Sequence[Variable], outputs: Sequence[Variable], strict: bool, name: str | None
) -> list[Variable]:
    """The shared variables that the outputs depend on, apart from the inputs.

    MissingInputError for other variables, and for these if ``strict``.
    """
    found: list[Variable] = []
    known = set(inputs)
    for v in graph_inputs(outputs, blockers=inputs):
        if v in known or (isinstance(v, AtomicVariable) and not isinstance(v, NominalVariable)):
            continue
        if isinstance(v, SharedVariable) and not strict:
            found.append(v)
            continue
        hint = " strict=True refuses shared variables." if isinstance(v, SharedVariable) else ""
        raise MissingInputError(
            f"{v} (type {v.type}) is needed to compute the outputs of {name or 'OpFromGraph'} but "
            f"is not among its inputs.{hint}\n{describe(v.origin)}".rstrip()
        )
    return found[::-1]


def _check_used(inputs: Sequence[Variable], outputs: Sequence[Variable], policy: str) -> None:
    if policy not in ("ignore", "warn", "raise"):
        raise ValueError(f"on_unused_input must be raise, warn or ignore, not {policy!r}.")
    if policy == "ignore":
        return
    used = set(ancestors(outputs, blockers=inputs))
    for k, v in enumerate(inputs):
        if v not in used:
            message = f"Input {k}, {v} (type {v.type}), is not used by any output."
            if policy == "raise":
                raise UnusedInputError(f"{message}\n{describe(v.origin)}".rstrip())
            warnings.warn(message, stacklevel=stacklevel())


def _without_outputs(given: Override) -> Override:
    """An override of (inputs, cotangents) as one of (inputs, outputs, cotangents)."""
    if isinstance(given, list | tuple):
        return [_without_outputs(entry) for entry in given]
    return WithoutOutputs(given) if callable(given) else given


def _only_one(what: str, *given: Override) -> Override:
    """The one of several spellings of an option that is not None; TypeError if there are two."""
    found = [x for x in given if x is not None]
    if len(found) > 1:
        raise TypeError(f"{what} is given twice, under two names.")
    return found[0] if found else None


def _as_pattern(given: Any, nin: int, nout: int) -> Any:
    """A connection pattern as tuples of bools; ValueError if its lengths are wrong."""
    if given is None:
        return None
    pattern = tuple(tuple(bool(x) for x in row) for row in given)
    if len(pattern) != nin or any(len(row) != nout for row in pattern):
        raise ValueError(
            f"connection_pattern needs one row per input ({nin}), each with one entry per output "
            f"({nout})."
        )
    return pattern
