"""The linker of modes that watch the nodes of a function while they are computed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from phintys.compile.linker import Linker, get_linker
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.perform import Runner, RunNode, run_node
from phintys.graph.variable import Apply


class Thunk:
    """The computation of one node; a call reads the cells ``inputs`` and sets ``outputs``.

    Both are lists with one cell, a list of length 1, per variable.
    """

    def __init__(self, node: Apply, inputs: Sequence[Any]) -> None:
        self.node = node
        self.inputs: list[list[Any]] = [[x] for x in inputs]
        self.outputs: list[list[Any]] = [[None] for _ in node.outputs]

    def __call__(self) -> None:
        results = run_node(self.node, [cell[0] for cell in self.inputs])
        for cell, value in zip(self.outputs, results):
            cell[0] = value

    @property
    def results(self) -> list[Any]:
        """The contents of ``outputs``."""
        return [cell[0] for cell in self.outputs]


class HookedLinker(Linker):
    """The reference backend with another function in the place of `run_node`.

    Graphs inside ops become part of the outer graph where that is possible, so their nodes are
    seen too.
    """

    name = "py"
    required_rewrites = ("minimum_compile", "inline_inner_graphs")

    @abstractmethod
    def hook(self, fgraph: FunctionGraph) -> RunNode:
        """The function that computes a node of the graph from the values of its inputs."""

    def run(self, fgraph: FunctionGraph) -> Runner:
        return Runner(fgraph, self.hook(fgraph))


def require_reference(mode: str, linker: Any) -> None:
    """ValueError if the linker that a mode is given cannot run node by node.

    The linkers of virtual machines in other systems, ``vm`` and ``cvm``, mean the reference here.
    """
    if linker is not None and get_linker(linker).name not in ("py", "llvm"):
        raise ValueError(
            f"{mode} runs a function node by node, which the linker {linker!r} cannot: leave the "
            "linker out."
        )
