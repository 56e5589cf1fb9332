"""Names of PyTensor's ``graph.basic``: nodes, clones, comparison."""

from phintys.graph.clone import clone, clone_get_equiv, clone_node_and_cache
from phintys.graph.equality import equal_computations
from phintys.graph.frozen import FrozenApply
from phintys.graph.notation import as_string, default_node_formatter, op_as_string
from phintys.graph.variable import (
    Apply,
    AtomicVariable,
    Constant,
    Node,
    NominalVariable,
    Variable,
)

__all__ = [
    "Apply",
    "AtomicVariable",
    "Constant",
    "FrozenApply",
    "Node",
    "NominalVariable",
    "Variable",
    "as_string",
    "clone",
    "clone_get_equiv",
    "clone_node_and_cache",
    "default_node_formatter",
    "equal_computations",
    "op_as_string",
]
