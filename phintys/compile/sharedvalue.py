"""Names of PyTensor's ``compile.sharedvalue``."""

from phintys.graph.shared import SharedVariable, shared

__all__ = ["SharedVariable", "shared"]
