"""Names of PyTensor's ``graph.basic``: nodes, clones, comparison."""

from phintys.graph.clone import clone, clone_get_equiv, clone_node_and_cache
from phintys.graph.equality import equal_computations
from phintys.graph.frozen import FrozenApply
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
    "clone",
    "clone_get_equiv",
    "clone_node_and_cache",
    "equal_computations",
]
