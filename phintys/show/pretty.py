"""`pp`: an expression as one line of text with infix operators."""

from __future__ import annotations

from typing import Any

from phintys.graph.traversal import toposort
from phintys.graph.variable import Apply, Constant, Variable

#: scalar op name -> (symbol, precedence)
OPERATORS = {
    "or_": ("|", 1), "xor": ("^", 2), "and_": ("&", 3),
    "eq": ("==", 4), "neq": ("!=", 4), "lt": ("<", 4), "le": ("<=", 4),
    "gt": (">", 4), "ge": (">=", 4),
    "add": ("+", 5), "sub": ("-", 5),
    "mul": ("*", 6), "true_div": ("/", 6), "int_div": ("//", 6), "mod": ("%", 6),
    "neg": ("-", 7), "pow": ("**", 8),
}  # fmt: skip
_ATOM = 10


def pp(graph: Variable) -> str:
    """An expression as one line of text, with infix operators.

    Changes of axes are not shown, except transposition.

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dscalars("x", "y")
    >>> phintys.pp(pt.exp(x + y) * 2)
    '(exp((x + y)) * 2)'
    """
    texts: dict[Variable, tuple[str, int]] = {}
    for node in toposort([graph]):
        text = _node(node, [texts.get(v) or (_leaf(v), _ATOM) for v in node.inputs])
        for k, v in enumerate(node.outputs):
            suffix = f".{k}" if len(node.outputs) > 1 else ""
            texts[v] = (text[0] + suffix, text[1])
    return texts.get(graph, (_leaf(graph), _ATOM))[0]


def _leaf(v: Variable) -> str:
    if v.name is not None:
        return v.name
    if isinstance(v, Constant):
        return " ".join(str(v.data).split())
    return f"<{v.type}>"


def _node(node: Apply, inputs: list[tuple[str, int]]) -> tuple[str, int]:
    scalar_op: Any = getattr(node.op, "scalar_op", None)
    if scalar_op is not None and hasattr(node.op, "inplace_pattern"):
        operator = OPERATORS.get(scalar_op.name)
        if operator is not None and len(inputs) > 1:
            return "(" + f" {operator[0]} ".join(t for t, _ in inputs) + ")", _ATOM
        if operator is not None:
            return f"({operator[0]}{inputs[0][0]})", _ATOM
        return f"{scalar_op}({', '.join(t for t, _ in inputs)})", _ATOM
    if hasattr(node.op, "new_order"):  # DimShuffle
        transposed = getattr(node.op, "is_transpose", False)
        return (f"{inputs[0][0]}.T" if transposed else inputs[0][0]), _ATOM
    return f"{node.op}({', '.join(t for t, _ in inputs)})", _ATOM


pprint = pp
