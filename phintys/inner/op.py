"""`InnerGraphOp`, the base class of ops that contain a graph.

It says once how such a graph is frozen, compared, hashed, pickled, copied and rewritten, and makes
the graphs of its derivatives and of its application to a batch.  A subclass says what it does with
them: `OpFromGraph` computes each once, a loop many times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

from phintys.gradient.forward import forward_sweep
from phintys.gradient.reverse import add, backpropagate
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.flatten import reduce_after
from phintys.graph.inner import expand, nested_ops
from phintys.graph.op import HasInnerGraph, Op, io_connection_pattern
from phintys.graph.origin import inherit, locate
from phintys.graph.replace import graph_replace
from phintys.graph.traversal import io_toposort
from phintys.graph.variable import Apply, Constant, Variable
from phintys.graph.vectorize import vectorize_graph

#: a graph: its inputs and outputs
Graph = tuple[list[Variable], list[Variable]]


class InnerGraphOp(HasInnerGraph, Op):
    """Base class of ops that contain a graph.

    Parameters
    ----------
    inputs, outputs
        variables; the outputs depend only on the inputs and on constants, else ValueError
    name
        a label, which equality ignores

    Attributes
    ----------
    fgraph
        the graph, a `FrozenFunctionGraph`.  Ops are equal if their classes, graphs and other
        ``__props__`` are; names of variables do not matter.
    origins
        for each node of the graph, in topological order, the user's line that made it; equality
        ignores them
    uncompiled_props
        the ``__props__`` that compiled code does not depend on
    has_graph_derivatives
        whether derivatives of the op are those of its inner graph, so that differentiation may
        expand it
    """

    __props__: ClassVar[tuple[str, ...]] = ("fgraph",)
    uncompiled_props: ClassVar[tuple[str, ...]] = ()
    fgraph: FrozenFunctionGraph
    has_graph_derivatives: bool = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A subclass that declares ``__props__`` adds them to those of its bases."""
        super().__init_subclass__(**kwargs)
        inherited = [p for base in cls.__mro__[1:] for p in base.__dict__.get("__props__", ())]
        if "__props__" in cls.__dict__:
            cls.__props__ = tuple(dict.fromkeys([*inherited, *cls.__props__]))

    def __init__(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], name: str | None = None
    ) -> None:
        self.name = name
        self._freeze(inputs, outputs)

    def _freeze(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        order = io_toposort(inputs, outputs)
        self.fgraph = FrozenFunctionGraph.from_toposort(inputs, outputs, order)
        self.origins = tuple([node.origin for node in order])

    # ----- the graph as an ordinary one
    def bind(self, inputs: Sequence[Variable]) -> list[Variable]:
        """The outputs of the inner graph as an ordinary graph on ``inputs``."""
        with inherit(next((o for o in self.origins if o is not None), None)):  # saves a search
            outputs, memo = self.fgraph.bind(inputs, return_memo=True)
        for node, origin in zip(self.fgraph.toposort(), self.origins):
            memo[node].origin = origin
        return list(outputs)

    def thawed(self) -> FunctionGraph:
        """A new FunctionGraph equal to the inner graph; its nodes have the user's lines."""
        inputs = [v.type.make_variable() for v in self.fgraph.inputs]
        return FunctionGraph(inputs, self.bind(inputs), clone=False)

    def thawed_inner_graphs(self) -> dict[str, Any]:
        return {"": self.thawed()}

    @cached_property
    def expanded(self) -> FunctionGraph:
        """The inner graph with the graphs inside it expanded; it must not be changed."""
        fgraph = self.thawed()
        expand(fgraph)
        return fgraph

    # ----- copies
    def clone(self) -> Self:
        """A copy."""
        return _rebuild(type(self), self.state())

    def clone_with_inner_graph(self, inner_fgraph: FunctionGraph | FrozenFunctionGraph) -> Self:
        """The same op with another inner graph, which takes inputs and gives outputs of the types.

        ValueError if the numbers of inputs and outputs differ.
        """
        for what in ("inputs", "outputs"):
            found, own = getattr(inner_fgraph, what), getattr(self.fgraph, what)
            if len(found) != len(own):
                raise ValueError(
                    f"The graph inside {self} has {len(own)} {what}; the new one has {len(found)}."
                )
        copy = self.clone()
        copy._freeze(inner_fgraph.inputs, inner_fgraph.outputs)
        return copy

    def clone_with_inner_graphs(self, graphs: Mapping[str, Any]) -> Any:
        return self.clone_with_inner_graph(graphs[""])

    def state(self) -> dict[str, Any]:
        """The attributes, without those that are computed from others at first use."""
        cached = {n for c in type(self).__mro__ for n, v in vars(c).items() if _is_cached(v)}
        return {name: value for name, value in vars(self).items() if name not in cached}

    def __reduce__(self) -> Any:
        # ops inside the graph are pickled first, deepest first, hence without recursion
        return reduce_after(self, lambda op, known: nested_ops([op], known), _reduce_one)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    # ----- derivatives
    @cached_property
    def smooth(self) -> FunctionGraph:
        """The inner graph, to differentiate; it must not be changed.

        The graphs inside it are expanded, except those of ops with derivatives of their own.
        """
        fgraph = self.thawed()
        expand(fgraph, lambda op: getattr(op, "has_graph_derivatives", False))
        return fgraph

    @cached_property
    def pattern(self) -> list[list[bool]]:
        """``[input][output]``: whether a derivative passes through the inner graph."""
        fgraph = self.smooth
        return io_connection_pattern(fgraph.inputs, fgraph.outputs)

    def pullback_graph(self, given: Sequence[Any], wanted: Sequence[bool]) -> Graph:
        """The cotangents of the inner inputs as functions of inner inputs, outputs and cotangents.

        Parameters
        ----------
        given
            for each output the variable that stands for its cotangent, or None
        wanted
            for each input whether its cotangent is wanted

        Returns
        -------
        ``(inputs, cotangents)``: variables for the inner inputs and then the outputs, and for each
        input its cotangent, or None if it has no influence or is not wanted.  ``cotangents`` may
        contain variables of `NullType`.
        """
        fgraph = self.smooth
        terms: dict[Variable, list[Variable]] = {}
        for v, g in zip(fgraph.outputs, given, strict=True):
            if g is not None:
                terms.setdefault(v, []).append(g)
        starts = {v: add(v, gs) for v, gs in terms.items()}
        found = backpropagate(starts, [v for v, w in zip(fgraph.inputs, wanted) if w])
        known = [v.type.make_variable() for v in fgraph.outputs]
        cotangents = _using(fgraph, known, [found.get(v) for v in fgraph.inputs])
        return [*fgraph.inputs, *known], cotangents

    def pushforward_graph(self, given: Sequence[Any]) -> Graph:
        """The tangents of the outputs as functions of inner inputs, outputs and tangents.

        ``given`` holds for each input the variable that stands for its tangent, or None.  Returns
        ``(inputs, tangents)``, as `pullback_graph`.
        """
        fgraph = self.smooth
        starts = {v: t for v, t in zip(fgraph.inputs, given, strict=True) if t is not None}
        found = forward_sweep(fgraph.outputs, starts)
        known = [v.type.make_variable() for v in fgraph.outputs]
        return [*fgraph.inputs, *known], _using(fgraph, known, found)

    # ----- batching
    def batched_graph(self, inputs: Sequence[Variable]) -> list[Variable]:
        """The outputs of the inner graph for ``inputs`` with additional leading dimensions."""
        fgraph = self.thawed()
        changed = {
            old: new
            for old, new in zip(fgraph.inputs, inputs, strict=True)
            if getattr(new.type, "ndim", 0) != getattr(old.type, "ndim", 0)
        }
        same = {old: new for old, new in zip(fgraph.inputs, inputs) if old not in changed}
        outputs = graph_replace(fgraph.outputs, same, strict=False)
        return list(vectorize_graph(outputs, changed))

    # ----- rewriting
    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        inner = self.expanded
        return all(n.op.do_constant_folding(inner, n) for n in inner.toposort())

    def __str__(self) -> str:
        return self.name or type(self).__name__


def _is_cached(attribute: Any) -> bool:
    return isinstance(attribute, cached_property)


def _reduce_one(op: InnerGraphOp) -> tuple[Any, tuple[Any, ...], Any]:
    """Function, arguments and state of ``__reduce__`` for one op; the ops inside are pickled."""
    state = op.state()
    state["origins"] = tuple([locate(origin) for origin in op.origins])
    return _rebuild, (type(op), state), None


def _rebuild(cls: Any, state: dict[str, Any]) -> Any:
    op = cls.__new__(cls)
    vars(op).update(state)
    return op


def _using(
    fgraph: FunctionGraph, known: Sequence[Variable], derivatives: Sequence[Any]
) -> list[Any]:
    """Derivatives in which the variables ``known`` take the places of the computed outputs."""
    replace = {
        v: new
        for v, new in zip(fgraph.outputs, known, strict=True)
        if v.owner is not None and not isinstance(v, Constant)
    }
    present = [g for g in derivatives if g is not None]
    replaced: Iterator[Any] = iter(graph_replace(present, replace, strict=False))
    return [None if g is None else next(replaced) for g in derivatives]
