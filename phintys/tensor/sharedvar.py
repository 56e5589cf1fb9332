"""Names of PyTensor's ``tensor.sharedvar``."""

from phintys.graph.shared import SharedVariable
from phintys.tensor.shared import TensorSharedVariable

__all__ = ["SharedVariable", "TensorSharedVariable"]
