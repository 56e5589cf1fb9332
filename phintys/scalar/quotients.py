"""Cotangents that are divided by the value that they belong to, or by one plus or minus it.

The gradient of ``log(f(x))`` contains ``f'(x) / f(x)``.  Both may underflow where the quotient does
not, and derivatives of the quotient are worse.  A row may state the quotient itself (its field
``relative``), which then takes the place of the product of ``1 / f(x)`` and ``f'(x)``.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from phintys.graph.variable import Constant

#: how many products and quotients are taken apart
_MOST = 12


def divided(m: Any, g: Any, y: Any, forms: Container[str]) -> tuple[str, Any] | None:
    """A form of ``y`` and ``q``, so that ``g`` is ``q`` divided by the form; None if there is none.

    ``forms`` are among ``"y"``, ``"1 + y"`` and ``"1 - y"``.  Products and quotients are taken
    apart, and factors of both their sides cancelled.
    """
    above, below, negative = _factors(g)
    above, below = _without_signs(above, below)
    for k, divisor in enumerate(below):
        form = _form(divisor, y)
        if form is not None and form in forms:
            below = below[:k] + below[k + 1 :]
            for x in [x for x in above if any(x is z for z in below)]:
                above = _without(above, x)
                below = _without(below, x)
            if not above:
                return None
            rest = m.mul(*above) if len(above) > 1 else above[0]
            for x in below:
                rest = m.true_div(rest, x)
            return form, m.neg(rest) if negative else rest
    return None


def _factors(g: Any) -> tuple[list[Any], list[Any], bool]:
    """Factors and divisors of an expression, and whether its sign is changed."""
    found: tuple[list[Any], list[Any]] = ([], [])
    left, negative = [(g, 0)], False
    for _ in range(_MOST):
        if not left:
            break
        x, side = left.pop()
        name, inputs = _function(x)
        if name == "mul":
            left += [(v, side) for v in inputs]
        elif name == "true_div":
            left += [(inputs[0], side), (inputs[1], 1 - side)]
        elif name == "neg":
            negative = not negative
            left.append((inputs[0], side))
        else:
            found[side].append(x)
    for x, side in left:
        found[side].append(x)
    return *found, negative


def _without_signs(above: list[Any], below: list[Any]) -> tuple[list[Any], list[Any]]:
    """The same quotient with ``1 / x`` for ``sign(x) / abs(x)``."""
    for k, divisor in enumerate(below):
        name, inputs = _function(divisor)
        if name == "abs":
            sign = next((x for x in above if _function(x) == ("sign", inputs)), None)
            if sign is not None:
                above, below = _without(above, sign), [*below[:k], inputs[0], *below[k + 1 :]]
    return above, below


def _function(x: Any) -> tuple[str, Any]:
    """The name of the scalar function that computes a variable, and its arguments."""
    if x.owner is None:
        return "", ()
    return getattr(getattr(x.owner.op, "scalar_op", x.owner.op), "name", ""), x.owner.inputs


def _form(x: Any, y: Any) -> str | None:
    """The form of an expression: ``"y"``, ``"1 + y"``, ``"1 - y"``; None for others."""
    if x is y:
        return "y"
    name, inputs = _function(x)
    if name not in ("add", "sub") or len(inputs) != 2:
        return None
    first, second = inputs[::-1] if name == "add" and _is_one(inputs[1]) else inputs
    if not _is_one(first):
        return None
    inner, arguments = _function(second)
    opposite = inner == "neg" and arguments[0] is y
    if second is not y and not opposite:
        return None
    return "1 + y" if (name == "add") is not opposite else "1 - y"


def _is_one(x: Any) -> bool:
    """Whether a variable is the constant 1, in any number of axes."""
    while x.owner is not None and hasattr(x.owner.op, "new_order"):
        x = x.owner.inputs[0]
    return isinstance(x, Constant) and x.data.size == 1 and bool((x.data == 1).all())


def _without(given: list[Any], x: Any) -> list[Any]:
    k = next(i for i, z in enumerate(given) if z is x)
    return given[:k] + given[k + 1 :]
