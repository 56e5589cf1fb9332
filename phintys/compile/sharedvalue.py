"""Names of PyTensor's ``compile.sharedvalue``."""

from phintys.graph.shared import (
    SharedVariable,
    collect_new_shareds,
    shared,
    shared_constructor,
)

__all__ = ["SharedVariable", "collect_new_shareds", "shared", "shared_constructor"]
