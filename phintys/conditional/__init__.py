"""Lazy selection of one of two branches: `ifelse`."""

from phintys.conditional.op import IfElse, ifelse

__all__ = ["IfElse", "ifelse"]
