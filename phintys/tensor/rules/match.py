"""What rules look at: constants, and which elementwise function a node applies."""

from __future__ import annotations

from typing import Any

from phintys.graph.variable import Apply, Variable
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.variable import TensorConstant


def number(v: Variable) -> Any:
    """The Python number that every entry of a constant equals, or None."""
    if not isinstance(v, TensorConstant):
        return None
    found = v.__dict__.get("_cached_number", v)
    if found is v:
        value = v.unique_value
        found = v.__dict__["_cached_number"] = None if value is None else value.item()
    return found


def scalar_op_name(node: Apply | None) -> str | None:
    """The name of the scalar function that an elementwise node applies, or None."""
    if node is None or type(node.op) is not Elemwise:
        return None
    return node.op.scalar_op.name


def applied(v: Variable, name: str) -> Apply | None:
    """The node that computes ``v`` if it applies the elementwise function ``name``."""
    return v.owner if scalar_op_name(v.owner) == name else None
