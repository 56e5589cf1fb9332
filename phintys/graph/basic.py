"""Names of PyTensor's ``graph.basic``: nodes, clones, comparison."""

from phintys.graph.clone import clone, clone_get_equiv
from phintys.graph.equality import equal_computations
from phintys.graph.variable import Apply, Constant, Variable

__all__ = ["Apply", "Constant", "Variable", "clone", "clone_get_equiv", "equal_computations"]
