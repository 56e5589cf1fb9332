"""Quotients by exponentials, differentiated as products with exponentials.

``x / exp(a)`` is ``x * exp(-a)``.  The derivative of the quotient as it is written has a factor
``exp(a)`` above and ``exp(a)**2`` below, of which one may be 0 and the other infinite.
"""

from __future__ import annotations

from collections.abc import Container

from phintys.gradient.forms import OtherForm, differentiated_as
from phintys.graph.variable import Apply, Variable
from phintys.tensor.apart import number, number_like
from phintys.tensor.elemwise import DimShuffle, function_of, functions
from phintys.tensor.logarithms import computed_from, like_result
from phintys.tensor.scaled import is_float, sum_of

#: Factors and functions that are looked at, at most.
MOST_PARTS = 16


def differentiated_quotient(node: Apply, kept: Container[Variable]) -> OtherForm | None:
    """The product, if the divisor has a factor that is a power of an exponential; else None."""
    (x, below), (out,) = node.inputs, node.outputs
    if not is_float(out) or below in kept:
        return None
    exponents: list[Variable] = []
    others: list[Variable] = []
    stack = [below]
    for _ in range(MOST_PARTS):
        if not stack:
            break
        v = stack.pop()
        exponent = None if v in kept else _exponent(v, kept)
        if exponent is not None:
            exponents.append(exponent)
        elif v not in kept and function_of(v)[0] == "mul":
            stack += reversed(function_of(v)[1])
        else:
            others.append(v)
    if not exponents:
        return None
    others += stack
    total = sum_of(*exponents)
    assert total is not None, "there are exponents"
    above = functions.true_div(x, functions.mul(*others)) if others else x
    product = functions.mul(above, functions.exp(functions.neg(total)))
    return computed_from(like_result(product, node), node, (), kept)


def _exponent(v: Variable, kept: Container[Variable]) -> Variable | None:
    """The logarithm of a power of an exponential; None for other variables."""
    factor = 1.0
    moves: list[DimShuffle] = []
    for _ in range(MOST_PARTS):
        name, inputs = function_of(v)
        if name == "exp" and is_float(inputs[0]):
            found = inputs[0]
            for move in reversed(moves):
                found = move(found)
            return found if factor == 1 else functions.mul(number_like(factor, found), found)
        if name == "sqr":
            factor *= 2
        elif name == "sqrt":
            factor /= 2
        elif name == "pow" and (power := number(inputs[1])):
            factor *= power
        elif v.owner is not None and type(v.owner.op) is DimShuffle:
            moves.append(v.owner.op)
        else:
            return None
        v = v.owner.inputs[0]  # type: ignore[union-attr]
        if v in kept:
            return None
    return None


differentiated_as(functions.true_div, differentiated_quotient)
