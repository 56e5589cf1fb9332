"""Graph rewriters that change nothing: they attach features to a graph, or print it."""

from __future__ import annotations

import sys
from typing import Any

from phintys.errors import AlreadyThere
from phintys.graph.destroy import DestroyHandler
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import late_bound
from phintys.rewriting.rewriter import GraphRewriter


class AddFeatureOptimizer(GraphRewriter):
    """A graph rewriter that attaches a feature, unless it is attached already.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [x + 1])
    >>> AddFeatureOptimizer(DestroyHandler()).rewrite(fgraph)
    >>> fgraph.has_destroyers(fgraph.inputs)
    False
    """

    def __init__(self, feature: Any) -> None:
        self.feature = feature

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        try:
            fgraph.attach_feature(self.feature)
        except AlreadyThere:
            pass

    def apply(self, fgraph: FunctionGraph) -> None:
        """Do nothing: the feature is attached before any rewriter runs."""


class AddDestroyHandler(GraphRewriter):
    """A graph rewriter that attaches a `DestroyHandler`: what is illegal in place is rejected."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        try:
            fgraph.attach_feature(DestroyHandler())
        except AlreadyThere:
            pass

    def apply(self, fgraph: FunctionGraph) -> None:
        """Do nothing: the feature is attached before any rewriter runs."""


class PrintCurrentFunctionGraph(GraphRewriter):
    """A graph rewriter that prints the graph, below ``header``, as it is at its position."""

    def __init__(self, header: str) -> None:
        self.header = header

    def apply(self, fgraph: FunctionGraph) -> None:
        text = late_bound["dprint"](fgraph, file="str")
        sys.stdout.write(f"PrintCurrentFunctionGraph: {self.header}\n{text}")
