"""Graphs: types, variables, operations, and what can be done with them without computing."""

from phintys.graph.clone import clone
from phintys.graph.equality import equal_computations
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from phintys.graph.op import Op
from phintys.graph.replace import clone_replace, graph_replace
from phintys.graph.traversal import ancestors, explicit_graph_inputs, graph_inputs
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Constant, Variable
from phintys.graph.vectorize import vectorize_graph

__all__ = [
    "Apply",
    "Constant",
    "FrozenFunctionGraph",
    "FunctionGraph",
    "Op",
    "Type",
    "Variable",
    "ancestors",
    "clone",
    "clone_replace",
    "equal_computations",
    "explicit_graph_inputs",
    "graph_inputs",
    "graph_replace",
    "vectorize_graph",
]
