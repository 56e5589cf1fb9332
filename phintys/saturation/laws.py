"""Equations that have no preferred direction, or change more than one node of an expression.

The ordered rules contain some of them as functions that collect whole sums, and others not at all,
because which side is cheaper depends on what surrounds it.  All are equal up to rounding where no
intermediate result, of either side, is infinite.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from phintys.graph.variable import Variable
from phintys.tensor.axes import matrix_transpose
from phintys.tensor.diagonal import diagonal
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import dimshuffle
from phintys.tensor.reduce import Sum
from phintys.tensor.rules.language import NAMES
from phintys.tensor.type import TensorType

#: "left = right" is used in both directions, "left -> right" in one.  Variables: x y z have any
#: rank, all the same; s is a number; u v w are vectors; A B C are matrices.
ELEMENTWISE = """
x * (y + z) = x * y + x * z
(x + y) / z = x / z + y / z
(x * y) / z = x * (y / z)
x / (y * z) = (x / y) / z
x / (y / z) = (x * z) / y
exp(x) * exp(y) = exp(x + y)
exp(x) / exp(y) = exp(x + -1 * y)
x * x = sqr(x)
sqr(x) * sqr(y) = sqr(x * y)
x + x = 2 * x
x + -1 * y = x - y
sqr(x) - sqr(y) = (x + y) * (x - y)
sqrt(x) / x -> 1 / sqrt(x)
"""
PRODUCTS = """
dot(dot(A, B), C) = dot(A, dot(B, C))
dot(dot(A, B), v) = dot(A, dot(B, v))
dot(dot(u, A), B) = dot(u, dot(A, B))
dot(dot(u, A), v) = dot(u, dot(A, v))
dot(A, B + C) = dot(A, B) + dot(A, C)
dot(A + B, C) = dot(A, C) + dot(B, C)
dot(A, v + w) = dot(A, v) + dot(A, w)
dot(A + B, v) = dot(A, v) + dot(B, v)
dot(u, A + B) = dot(u, A) + dot(u, B)
dot(u + w, A) = dot(u, A) + dot(w, A)
dot(fill2(s) * A, B) = fill2(s) * dot(A, B)
dot(A, fill2(s) * B) = fill2(s) * dot(A, B)
dot(fill2(s) * A, v) = fill1(s) * dot(A, v)
dot(A, fill1(s) * v) = fill1(s) * dot(A, v)
dot(u, v) = dot(v, u)
dot(A, v) = dot(v, T(A))
T(dot(A, B)) = dot(T(B), T(A))
T(A + B) = T(A) + T(B)
T(A * B) = T(A) * T(B)
T(T(A)) -> A
dot(row(u) * A, v) = dot(A, u * v)
dot(A * row(u), B) = dot(A, column(u) * B)
column(u) * dot(A, B) = dot(column(u) * A, B)
row(u) * dot(A, B) = dot(A, row(u) * B)
column(u) * row(v) = dot(column(u), row(v))
dot(column(u) * row(v), w) = u * fill1(dot(v, w))
"""
SUMS = """
sum(A + B) = sum(A) + sum(B)
sum0(A + B) = sum0(A) + sum0(B)
sum1(A + B) = sum1(A) + sum1(B)
sum(v + w) = sum(v) + sum(w)
sum(fill2(s) * A) = s * sum(A)
sum(fill1(s) * v) = s * sum(v)
sum0(row(u) * A) = u * sum0(A)
sum1(column(u) * A) = u * sum1(A)
sum(sum0(A)) = sum(A)
sum(sum1(A)) = sum(A)
sum(T(A)) = sum(A)
sum0(dot(A, B)) = dot(sum0(A), B)
sum1(dot(A, B)) = dot(A, sum1(B))
sum(dot(A, v)) = dot(sum0(A), v)
sum(dot(u, A)) = dot(u, sum1(A))
sum(u * v) = dot(u, v)
sum1(A * row(v)) = dot(A, v)
sum0(A * column(u)) = dot(u, A)
sum1(A * B) = diagonal(dot(A, T(B)))
sum(column(u) * row(v)) = sum(u) * sum(v)
sum0(T(A)) = sum1(A)
sum1(T(A)) = sum0(A)
diagonal(A + B) = diagonal(A) + diagonal(B)
diagonal(T(A)) = diagonal(A)
"""
RANKS = {**dict.fromkeys("ABC", 2), **dict.fromkeys("uvw", 1), "s": 0}
_dot = Dot()
FUNCTIONS: dict[str, Any] = {
    **NAMES,
    "dot": _dot,
    "T": matrix_transpose,
    "diagonal": diagonal,
    "sum": lambda x: Sum(axis=None)(x),
    "sum0": lambda x: Sum(axis=0)(x),
    "sum1": lambda x: Sum(axis=1)(x),
    "fill1": lambda s: dimshuffle(s, ["x"]),
    "fill2": lambda s: dimshuffle(s, ["x", "x"]),
    "row": lambda v: dimshuffle(v, ["x", 0]),
    "column": lambda v: dimshuffle(v, [0, "x"]),
}


class Law(NamedTuple):
    """An equation as text, its sides and variables, and whether it has both directions."""

    text: str
    left: str
    right: str
    names: tuple[str, ...]
    both: bool

    def sides(self, types: Mapping[str, TensorType]) -> tuple[Variable, Variable, list[Variable]]:
        """Both sides for new variables of some types, and these variables."""
        given = {n: types[n](n) for n in self.names}
        left, right = (eval(side, FUNCTIONS | given) for side in (self.left, self.right))
        return left, right, list(given.values())


@cache
def laws() -> list[Law]:
    """All equations."""
    lines = [line for line in (ELEMENTWISE + PRODUCTS + SUMS).splitlines() if line]
    return [_law(line) for line in lines]


def _law(text: str) -> Law:
    both = " = " in text
    left, right = text.split(" = " if both else " -> ")
    used = compile(left, text, "eval").co_names
    return Law(text, left, right, tuple(sorted(n for n in used if n not in FUNCTIONS)), both)
