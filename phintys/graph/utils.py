"""Names of PyTensor's ``graph.utils``: base classes of ops and types, exceptions, containers."""

from phintys.errors import InconsistencyError, MethodNotDefined, MissingInputError
from phintys.graph.containers import AssocList
from phintys.graph.meta import MetaObject, MetaType, Scratchpad

__all__ = [
    "AssocList",
    "InconsistencyError",
    "MetaObject",
    "MetaType",
    "MethodNotDefined",
    "MissingInputError",
    "Scratchpad",
]
