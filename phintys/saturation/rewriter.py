"""The phase ``saturate``."""

from __future__ import annotations

from importlib.util import find_spec

from phintys.graph.fgraph import FunctionGraph
from phintys.rewriting.rewriter import GraphRewriter
from phintys.saturation.limits import LIMITS, Limits


class Saturation(GraphRewriter):
    """Replaces what a graph computes by the cheapest forms that the rules give.

    ImportError if the package egglog is not installed; of functions that is a RewriteError.
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        super().__init__()
        self.limits = limits

    def apply(self, fgraph: FunctionGraph) -> None:
        if find_spec("egglog") is None:
            raise ImportError(
                "The phase saturate needs the package egglog: pip install 'phintys[egglog]'."
            )
        # imported late, because few programs use it
        from phintys.saturation.search import saturate_graph

        saturate_graph(fgraph, self.limits)
