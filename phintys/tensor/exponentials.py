"""Exponentials of logarithms, differentiated without these.

The derivative of ``exp(log(y))`` as it is written is ``0 * inf`` where ``y`` is 0; that of ``y`` is
1.  Such are probabilities that are stated by their logarithms: those of distribution functions.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

import numpy as np

from phintys.gradient.forms import OtherForm, differentiated_as
from phintys.graph.variable import Apply, Variable
from phintys.tensor.elemwise import DimShuffle, function_of, functions, scalar_op_name
from phintys.tensor.logarithms import computed_from, like_result
from phintys.tensor.raise_op import CheckAndRaise
from phintys.tensor.scaled import is_float

#: Nodes that are looked through, at most.
MOST_NODES = 40
#: The exponentials of logarithms.
NUMBERS: Mapping[str, Callable[[Variable], Variable]] = {
    "log": lambda y: y,
    "log1p": lambda y: functions.add(1, y),
    "log1mexp": lambda y: functions.neg(functions.expm1(y)),
}
#: Products, which may be in range where a factor is not; their logarithms stay.
PRODUCTS = ("exp", "mul", "true_div", "reciprocal", "pow", "sqr", "sqrt")


def differentiated_exponential(node: Apply, kept: Container[Variable]) -> OtherForm | None:
    """``y`` for ``exp(log(y))``, in branches and under checks too; None without a logarithm."""
    (x,), (out,) = node.inputs, node.outputs
    nodes = _selecting(x, kept)
    numbers = {v: w for v in _branches(x, nodes) if v not in kept and (w := _number(v)) is not None}
    if not is_float(out) or not numbers:
        return None
    for made in nodes:
        inputs, where = list(made.inputs), _selected(made)
        inputs[where] = [numbers[v] if v in numbers else functions.exp(v) for v in inputs[where]]
        numbers[made.outputs[0]] = made.op.make_node(*inputs).outputs[0]
    return computed_from(like_result(numbers[x], node), node, (), kept)


def _selecting(x: Variable, kept: Container[Variable]) -> list[Apply]:
    """The nodes that select the elements of ``x``, in topological order."""
    order: list[Apply] = []
    seen: set[Apply] = set()
    stack = [(x, False)]
    while stack:
        v, done = stack.pop()
        node = v.owner
        if node is None or v in kept or not node.inputs[_selected(node)]:
            continue
        if done:
            order.append(node)
        elif node not in seen and len(seen) < MOST_NODES:
            seen.add(node)
            stack += [(v, True), *((part, False) for part in node.inputs[_selected(node)])]
    return order


def _selected(node: Apply) -> slice:
    """The positions of the inputs whose elements are those of the output."""
    if type(node.op) is DimShuffle or isinstance(node.op, CheckAndRaise):
        return slice(0, 1)
    return slice(1, 3) if scalar_op_name(node) == "switch" else slice(0)


def _branches(x: Variable, nodes: list[Apply]) -> list[Variable]:
    """``x``, or what is selected from for it."""
    made = {node.outputs[0] for node in nodes}
    found = [x, *(v for node in nodes for v in node.inputs[_selected(node)])]
    return [v for v in found if v not in made]


def _number(v: Variable) -> Variable | None:
    """The exponential of a logarithm, NaN below 0; None for other functions, and for products."""
    name, inputs = function_of(v)
    if (
        name is None
        or name not in NUMBERS
        or (name == "log" and function_of(inputs[0])[0] in PRODUCTS)
    ):
        return None
    number = NUMBERS[name](inputs[0])
    return functions.switch(functions.lt(number, 0), functions.mul(np.nan, number), number)


differentiated_as(functions.exp, differentiated_exponential)
