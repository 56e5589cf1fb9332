"""The linker of modes that watch the nodes of a function while they are computed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from phintys.compile.linker import Linker, get_linker
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.perform import Runner, RunNode, watched
from phintys.graph.variable import Apply, Variable


class WatchedRunner(Runner):
    """Calls ``watch(variable, value)`` for each input that a node reads, before the graph runs."""

    def __init__(
        self, fgraph: FunctionGraph, run: RunNode, watch: Callable[[Variable, Any], Any]
    ) -> None:
        super().__init__(fgraph, run)
        self.watch = watch
        read = {i for _, _, inputs, _ in self.steps for i in inputs}
        self.watched = [(k, v) for k, v in enumerate(fgraph.inputs) if self.position[v] in read]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        for k, v in self.watched:
            self.watch(v, values[k])
        return super().__call__(values)


def with_defined_values(node: Apply, results: list[Any]) -> list[Any]:
    """The results of a node; zeros if they are arbitrary (`Op.has_undefined_values`)."""
    if not node.op.has_undefined_values:
        return results
    return [np.zeros_like(x) if isinstance(x, np.ndarray) else x for x in results]


class HookedLinker(Linker):
    """The reference backend with another function in the place of `run_node`.

    It also computes the nodes of graphs inside ops: the steps of loops, the branches of conditions.
    Other graphs inside ops become part of the outer graph.
    """

    name = "py"
    required_rewrites = ("minimum_compile", "inline_inner_graphs")

    @abstractmethod
    def hook(self, fgraph: FunctionGraph) -> RunNode:
        """The function that computes a node of a graph from the values of its inputs."""

    def check_input(self, v: Variable, value: Any) -> None:
        """Called with the value of each input of a function that a node reads."""

    def run(self, fgraph: FunctionGraph) -> Callable[[Sequence[Any]], list[Any]]:
        hook = cache(self.hook)  # of each graph
        runner = WatchedRunner(fgraph, hook(fgraph), self.check_input)

        def watched_run(values: Sequence[Any]) -> list[Any]:
            with watched(hook):
                return runner(values)

        return watched_run


def require_reference(mode: str, linker: Any) -> None:
    """ValueError if the linker that a mode is given cannot run node by node.

    The linkers of virtual machines in other systems, ``vm`` and ``cvm``, mean the reference here.
    """
    if linker is not None and get_linker(linker).name not in ("py", "llvm"):
        raise ValueError(
            f"{mode} runs a function node by node, which the linker {linker!r} cannot: leave the "
            "linker out."
        )
