"""The elementwise functions: one `Elemwise` for each row of the scalar tables.

>>> exp
Exp
>>> print(exp.__doc__)
exp(x): e to the power x.
<BLANKLINE>
Elementwise, with broadcasting.
Range: 0 to inf.  Increasing.  Inverse: log.
Derivative: yes.  Native code: yes.
"""

from __future__ import annotations

from typing import Any

from phintys.scalar.op import TABLE, ScalarOp
from phintys.tensor.elemwise import Elemwise, elementwise

#: Further public names of the functions, and their rows.
ALIASES = {
    "bitwise_and": "and_",
    "bitwise_not": "invert",
    "bitwise_or": "or_",
    "bitwise_xor": "xor",
    "conjugate": "conj",
    "digamma": "psi",
    "divide": "true_div",
    "equal": "eq",
    "expit": "sigmoid",
    "fill": "second",
    "floor_div": "int_div",
    "floor_divide": "int_div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "log1pexp": "softplus",
    "not_equal": "neq",
    "sgn": "sign",
    "square": "sqr",
}


def document(op: ScalarOp, names: list[str]) -> str:
    """The docstring of an elementwise function, from its row."""
    arguments = "x" if op.nin == 1 else "x, y, ..." if op.nin < 0 else ", ".join("xyzw"[: op.nin])
    lines = [f"{names[0]}({arguments}): {op.doc}", "", "Elementwise, with broadcasting."]
    lines += filter(None, [_facts(op.facts), _derivative_and_code(op)])
    if len(names) > 1:
        lines.append(f"Also: {', '.join(names[1:])}.")
    return "\n".join(lines)


def _facts(facts: dict[str, Any]) -> str:
    found = []
    for key in ("domain", "range"):
        bounds = facts.get(key)
        if bounds and isinstance(bounds[0], int | float):
            found.append(f"{key.capitalize()}: {bounds[0]:.4g} to {bounds[1]:.4g}.")
    flags = ("odd", "even", "increasing", "decreasing", "commutative", "associative", "idempotent")
    found += [f"{flag.capitalize()}." for flag in flags if facts.get(flag)]
    if "inverse" in facts:
        found.append(f"Inverse: {facts['inverse']}.")
    return "  ".join(found)


def _derivative_and_code(op: ScalarOp) -> str:
    code = "yes" if op.native is not None else "no, NumPy or SciPy computes it"
    return f"Derivative: {_derivative(op)}.  Native code: {code}."


def _derivative(op: ScalarOp) -> str:
    if op.d is not None:
        return "yes"
    return f"none, {op.not_differentiable}" if op.not_differentiable else "0"


def _public(name: str, op: ScalarOp) -> Elemwise:
    function = elementwise(op)
    aliases = [alias for alias, row in ALIASES.items() if row == name]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = document(op, [name, *aliases])
    return function


_OF_ROWS = {name: _public(name, op) for name, op in TABLE.items() if not name.startswith("cast_")}
FUNCTIONS: dict[str, Elemwise] = {
    **_OF_ROWS,
    **{alias: _OF_ROWS[row] for alias, row in ALIASES.items() if row in _OF_ROWS},
}
globals().update(FUNCTIONS)

__all__ = sorted(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]
