"""`LazyIfElse`: two branches with the graphs that compute them, of which one is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np

from phintys.dims import Dim
from phintys.errors import MethodNotDefined
from phintys.graph.builder import Builder, V
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.inner import expanded
from phintys.graph.labels import labelled
from phintys.graph.op import HasMultipleInnerGraph, Op, Storage
from phintys.graph.origin import locate
from phintys.graph.perform import Runner
from phintys.graph.results import array_type
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.type import Type
from phintys.graph.variable import Apply


class LazyIfElse(HasMultipleInnerGraph, Op):
    """The outputs of one of two graphs with the same inputs.

    Inputs: the condition, then those of the graphs.  Functions are compiled with such nodes in
    place of `IfElse`; before that, in rewriting and differentiation, there are none.

    Parameters
    ----------
    true_branch, false_branch
        the graphs
    output_types
        the types of the outputs; those of the graphs are the same, or narrower
    origins
        for each node of the graphs, in topological order, the user's line that made it; equality
        ignores them
    """

    # ----- class and static shape
    __props__ = ("true_branch", "false_branch", "output_types")
    not_differentiable = "functions are differentiated before it is introduced: `IfElse`"

    def __init__(
        self,
        true_branch: FrozenFunctionGraph,
        false_branch: FrozenFunctionGraph,
        output_types: Sequence[Type[Any]],
        origins: tuple[Sequence[Any], Sequence[Any]] = ((), ()),
    ) -> None:
        self.true_branch, self.false_branch = true_branch, false_branch
        self.output_types, self.origins = tuple(output_types), origins

    @property
    def inner_graphs(self) -> Mapping[str, FrozenFunctionGraph]:
        return {"true_branch": self.true_branch, "false_branch": self.false_branch}

    def make_node(self, *inputs: Any) -> Apply:
        condition, *given = inputs
        typed = [
            v.type.filter_variable(x) for v, x in zip(self.true_branch.inputs, given, strict=True)
        ]
        return Apply(self, [condition, *typed], [t.make_variable() for t in self.output_types])

    @cached_property
    def graphs(self) -> tuple[FunctionGraph, FunctionGraph]:
        """The graph for a true condition, and that for a false one; they must not be changed."""
        true, false = self.origins
        return _thawed(self.true_branch, true), _thawed(self.false_branch, false)

    def __getstate__(self) -> dict[str, Any]:
        """What the constructor sets, with the user's lines as text."""
        true, false = self.origins
        lines = tuple([locate(line) for line in true]), tuple([locate(line) for line in false])
        return {name: getattr(self, name) for name in self.__props__} | {"origins": lines}

    # ----- perform
    @cached_property
    def runners(self) -> tuple[Runner, Runner]:
        """They compute the graphs node by node."""
        true, false = self.graphs
        return Runner(true), Runner(false)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        condition, *given = inputs
        taken = not condition
        with self._labels(node, self.graphs[taken]):
            found = self.runners[taken](given)
        for cell, value in zip(output_storage, found, strict=True):
            cell[0] = value

    def _labels(self, node: Apply, graph: FunctionGraph) -> AbstractContextManager[None]:
        """A context in which messages call the inputs of a branch as those of the node."""
        return labelled(graph.inputs, lambda i: str(node.inputs[i + 1]))

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * len(node.outputs) for _ in node.inputs]

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> list[V]:
        condition, *given = inputs
        programs = []
        for graph in self.graphs:
            with self._labels(node, graph):
                programs.append(b.inner(graph, given, fixed=False))
        true, false = programs
        return b.branch(condition, true, false, given)

    def __str__(self) -> str:
        return "LazyIfElse"


def _thawed(frozen: FrozenFunctionGraph, origins: Sequence[Any]) -> FunctionGraph:
    """A graph, in which the graphs inside of ops are expanded, with the user's lines."""
    fgraph, memo = frozen.unfreeze(return_memo=True)
    for node, origin in zip(frozen.toposort(), origins):
        memo[node].origin = origin
    return expanded(fgraph)


class Absent(Op):
    """An array in the place of a value that is not computed; nothing reads it.

    Lengths that the type leaves open are 0.
    """

    # ----- class and static shape
    __props__ = ("type_",)
    not_differentiable = "nothing reads its result"

    def __init__(self, type_: Type[Any]) -> None:
        self.type_ = type_

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, [], [self.type_.make_variable()])

    def shape_rule(self, s: ShapeContext) -> list[Shape]:
        return [tuple([Dim.const(n) for n in self.shape])]

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the array."""
        return tuple([n or 0 for n in self.part[1]])

    @property
    def part(self) -> tuple[str, tuple[int | None, ...]]:
        """The dtype and the lengths that the type knows; `MethodNotDefined` if it has no arrays."""
        found = array_type(self.type_)
        if found is None:
            raise MethodNotDefined(f"The values of {self.type_} are no arrays.")
        return found

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        output_storage[0][0] = np.zeros(self.shape, self.part[0])

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return b.broadcast_to(b.const(0, self.part[0]), self.shape)

    def __str__(self) -> str:
        return "Absent"
