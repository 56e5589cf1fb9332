"""Names of PyTensor's ``graph.fg``: graphs that record the users of each variable."""

from phintys.errors import MissingInputError
from phintys.graph.clients import Output
from phintys.graph.fgraph import FrozenFunctionGraph, FunctionGraph

__all__ = ["FrozenFunctionGraph", "FunctionGraph", "MissingInputError", "Output"]
