"""Names of PyTensor's ``graph.utils``: the base classes of ops and types."""

from phintys.graph.meta import MetaObject, MetaType

__all__ = ["MetaObject", "MetaType"]
