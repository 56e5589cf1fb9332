"""Names of PyTensor's ``graph.utils``: the base classes of ops and types, small containers."""

from phintys.graph.containers import AssocList
from phintys.graph.meta import MetaObject, MetaType

__all__ = ["AssocList", "MetaObject", "MetaType"]
