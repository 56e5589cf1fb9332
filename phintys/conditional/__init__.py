"""Lazy selection of one of two branches: `ifelse`."""

from phintys.conditional.lazy import LazyIfElse
from phintys.conditional.op import IfElse, ifelse

__all__ = ["IfElse", "LazyIfElse", "ifelse"]
