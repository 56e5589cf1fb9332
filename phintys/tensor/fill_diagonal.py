"""Tensors with one number on a diagonal: `fill_diagonal`, `fill_diagonal_offset`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.creation import zeros_like
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.type import typed_node

__all__ = ["fill_diagonal", "fill_diagonal_offset"]


class FillDiagonal(Op):
    """A tensor with the elements whose positions are equal along all axes replaced by a number.

    Inputs: the tensor, with two or more axes (of equal lengths if they are more), and the number.
    """

    # ----- class and static shape
    __props__ = ()
    is_linear = True
    handles_missing = False

    def make_node(self, *inputs: Any) -> Apply:
        a, val = inputs
        a, val = _operands(self, a, val)
        return typed_node(self, [a, val], a.type.dtype)

    def shape_rule(self, s: ShapeContext, a: Shape, *others: Shape) -> list[Shape]:
        if len(a) > 2:
            for axis, n in enumerate(a):
                s.equal(n, a[0], f"The length of axis {axis} is not that of axis 0")
        return [a]

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        check_shapes(node, inputs)
        out = inputs[0].copy()
        places = np.arange(min(out.shape))
        out[(places,) * out.ndim] = inputs[1]
        output_storage[0][0] = out

    # ----- derivative
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable | None]:
        (_, _, *offset), (g,) = inputs, cotangents
        is_filled = self(zeros_like(g, "bool"), np.array(True), *offset)
        zero = constant(0, dtype=g.type.dtype)
        kept, taken = (functions.switch(is_filled, *pair) for pair in ((zero, g), (g, zero)))
        return [kept, cast(sum_over(taken), g.type.dtype), *[None] * len(offset)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        axes = ",".join(f"a{k}" for k in range(node.inputs[0].type.ndim))
        numbers = ",()" * (len(node.inputs) - 1)
        return Blockwise(self, f"({axes}){numbers}->({axes})").make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        b.result_shapes(node, *inputs)
        return self.lower_batched(node, b, *inputs)

    def lower_batched(self, node: Apply, b: Any, a: Any, *numbers: Any) -> Any:
        core = node.inputs[0].type.ndim
        batch = b.broadcast_shape(
            [b.shape(v)[: v.ndim - k] for v, k in zip((a, *numbers), (core, 0, 0))]
        )
        shape = (*batch, *b.shape(a)[a.ndim - core :])
        places = [b.index(len(batch) + k, shape) for k in range(core)]
        for _ in range(core):
            numbers = tuple([b.expand(v, v.ndim) for v in numbers])
        return b.map(self.lowered_element, a, *numbers, *places)

    def lowered_element(self, n: Any, x: Any, value: Any, first: Any, *others: Any) -> Any:
        """An element of the result, from its positions."""
        equal = n.eq(others[0], first)
        for i in others[1:]:
            equal = n.and_(equal, n.eq(i, first))
        return n.select(equal, value, x)


def _operands(op: Op, a: Any, val: Any) -> tuple[Any, Any]:
    """The tensor, and the number in its dtype."""
    a, val = as_tensor_variable(a), as_tensor_variable(val)
    if a.type.ndim < 2:
        raise TypeError(f"{op} needs at least two dimensions; {a} has {a.type.ndim}.")
    if val.type.ndim != 0:
        raise TypeError(f"{op} fills diagonals with a number; {val} has type {val.type}.")
    if dtypes.upcast(a.type.dtype, val.type.dtype) != a.type.dtype:
        raise TypeError(f"{val} of dtype {val.type.dtype} does not fit into {a}: {a.type}.")
    return a, cast(val, a.type.dtype)


class FillDiagonalOffset(FillDiagonal):
    """A matrix with one diagonal replaced by a number.

    Inputs: the matrix, the number, and the diagonal (0 for the main one, positive above it).
    """

    # ----- class and static shape
    def make_node(self, *inputs: Any) -> Apply:
        a, val, offset = inputs
        a, val = _operands(self, a, val)
        offset = as_tensor_variable(offset)
        if a.type.ndim != 2:
            raise TypeError(f"{self} needs a matrix; {a} has {a.type.ndim} dimensions.")
        if offset.type.ndim != 0 or offset.type.dtype not in dtypes.INTEGER:
            raise TypeError(f"The diagonal is an integer; {offset} has type {offset.type}.")
        return typed_node(self, [a, val, cast(offset, "int64")], a.type.dtype)

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        a, value, offset = inputs
        n, m = a.shape
        is_filled = np.eye(n, m, int(np.clip(offset, -n, m)), dtype=bool)
        output_storage[0][0] = np.where(is_filled, value, a)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True], [False]]

    # ----- lowering
    def lowered_element(self, n: Any, x: Any, value: Any, first: Any, *others: Any) -> Any:
        row, column = others
        return n.select(n.eq(n.sub(column, row), first), value, x)


def fill_diagonal(a: Any, val: Any) -> Any:
    """``a`` with its main diagonal replaced by a number.

    Parameters
    ----------
    a : tensor with at least two axes; if they are more, their lengths must be equal, and the
        elements whose positions along all axes are equal are replaced
    val : the number, of a dtype that fits into that of ``a``

    Raises
    ------
    TypeError for fewer dimensions, no number, or a dtype that does not fit.

    >>> import phintys.tensor as pt
    >>> pt.fill_diagonal(pt.zeros((3, 2)), 5).eval()
    array([[5., 0.],
           [0., 5.],
           [0., 0.]])
    """
    return FillDiagonal()(a, val)


def fill_diagonal_offset(a: Any, val: Any, offset: Any) -> Any:
    """The matrix ``a`` with a diagonal replaced by a number.

    ``offset``: an integer, 0 for the main diagonal, positive above it.  Other parameters and errors
    as of `fill_diagonal`.

    >>> import phintys.tensor as pt
    >>> pt.fill_diagonal_offset(pt.zeros((2, 2)), 5, 1).eval()
    array([[0., 5.],
           [0., 0.]])
    """
    return FillDiagonalOffset()(a, val, offset)
