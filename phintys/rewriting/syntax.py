"""The text of patterns: Python expressions, which are read and not evaluated.

================== =======================================================================
``exp(x)``         an op of the namespace, with patterns of its inputs
``Sum(x)``         any op of a class of the namespace
``Max | Min(x)``   one of several ops
``Sum(x, axis=a)`` an op with an attribute, which the pattern variable ``a`` is bound to
``Sum(x, axis=0)`` an op whose attribute has a value
``x + 2 * y``      the ops under the keys of `OPERATORS` in the namespace
``x``              a pattern variable; in several places it must match the same
``_``              anything
``s := Sum(x)``    a pattern, and a pattern variable for what it matches
``add(*terms)``    the remaining inputs, in last place, as a tuple
``2.5``            a constant all of whose elements are this number
================== =======================================================================

Inputs of commutative ops match in any order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from phintys.graph.op import Op
from phintys.rewriting.unify import (
    Asterisk,
    LiteralString,
    OpPattern,
    PatternNode,
    PatternVar,
)

#: The keys of a namespace that define the ops of operators.
OPERATORS: dict[Any, str] = {
    ast.Add: "__add__",
    ast.Sub: "__sub__",
    ast.Mult: "__mul__",
    ast.Div: "__truediv__",
    ast.Pow: "__pow__",
    ast.USub: "__neg__",
}


class Unreadable(ValueError):
    """A syntax tree that is no pattern."""


class Reader:
    """Makes patterns of syntax trees; ``variables`` are their pattern variables by name.

    ``given`` are conditions for what pattern variables match, by name.
    """

    def __init__(
        self, names: Mapping[str, Any], given: Mapping[str, Callable[[Any], bool]] | None = None
    ) -> None:
        self.names = names
        self.given = given or {}
        self.variables: dict[str, Any] = {}

    def read(self, e: Any) -> Any:
        """The pattern of a syntax tree; `Unreadable` if it is none."""
        match e:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Name(id=name):
                return self.named(name)
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                node = self.read(inner)
                return PatternNode(
                    node.op_match, node.inputs, self.given.get(name), self.variable(name)
                )
            case ast.Starred(value=ast.Name(id=name)):
                return self.rest(name)
            case _:
                return self.applied(e)

    def named(self, name: str) -> Any:
        """The pattern that a name stands for: a number of the namespace, or a variable."""
        known = self.names.get(name)
        if known is None:
            return self.variable(name)
        if isinstance(known, float):
            return known
        raise Unreadable(f"{name} is no pattern.")

    def variable(self, name: str) -> PatternVar:
        if name == "_":
            return PatternVar(name)
        return self.variables.setdefault(name, PatternVar(name, self.given.get(name)))

    def rest(self, name: str) -> Asterisk:
        return Asterisk(name) if name == "_" else self.variables.setdefault(name, Asterisk(name))

    def applied(self, e: Any) -> PatternNode:
        """The pattern of a call or of an operator."""
        ops, call = self.root(e)
        keywords = getattr(call, "keywords", ())
        parameters = [(k.arg, self.attribute(k.value)) for k in keywords]
        if parameters:
            ops = [OpPattern(op, parameters) for op in ops]
        operands = [getattr(call, k) for k in ("left", "right", "operand") if hasattr(call, k)]
        inputs = tuple(self.read(x) for x in getattr(call, "args", operands))
        return PatternNode(ops[0] if len(ops) == 1 else tuple(ops), inputs)

    def root(self, e: Any) -> tuple[list[Any], Any]:
        """The ops, one of which a syntax tree applies last, and the call; else `Unreadable`."""
        others: list[str] = []
        call = e
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.BitOr):
            others = names_in(e.left)
            call = e.right
        if isinstance(call, ast.Call):
            own = getattr(call.func, "id", "")
        else:
            own = OPERATORS.get(type(getattr(call, "op", None)), "")
        ops = [self.names.get(name) for name in (*others, own)]
        if not all(
            isinstance(op, Op) or (isinstance(op, type) and issubclass(op, Op)) for op in ops
        ):
            raise Unreadable(f"{ast.unparse(e)} does not apply an op.")
        return ops, call

    def attribute(self, e: Any) -> Any:
        """The pattern of an attribute: a pattern variable or a value."""
        if isinstance(e, ast.Name):
            return self.variable(e.id)
        value = ast.literal_eval(e)
        return LiteralString(value) if isinstance(value, str) else value


def parsed(expression: str, text: str) -> ast.Expression:
    """The syntax tree of an expression in ``text``; ValueError if it is not valid."""
    try:
        return ast.parse(expression, mode="eval")
    except SyntaxError as exc:
        raise ValueError(f"{text!r}: {expression!r} is not an expression ({exc.msg}).") from exc


def names_in(tree: ast.AST) -> list[str]:
    """The names in a syntax tree, in order of first appearance."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    found.sort(key=lambda n: (n.lineno, n.col_offset))
    return list(dict.fromkeys(n.id for n in found))
