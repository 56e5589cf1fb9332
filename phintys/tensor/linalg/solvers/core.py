"""The base class of ops that solve systems of linear equations."""

from __future__ import annotations

import numpy as np

from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matrix_product, outer
from phintys.tensor.linalg.matrix_op import MatrixOp, inexact, square
from phintys.tensor.type import typed_node
from phintys.tensor.variable import TensorVariable


class SolveBase(MatrixOp):
    """The solution ``x`` of ``a x = b``.

    Parameters
    ----------
    lower
        which triangle of ``a`` is read, if only one is
    b_ndim
        1 if ``b`` is a vector, 2 if it is a matrix
    overwrite_a, overwrite_b
        whether the inputs may be overwritten
    """

    # ----- class and static shape
    __props__ = ("lower", "b_ndim", "overwrite_a", "overwrite_b")

    def __init__(
        self,
        *,
        lower: bool = False,
        b_ndim: int,
        overwrite_a: bool = False,
        overwrite_b: bool = False,
    ) -> None:
        if b_ndim not in (1, 2):
            raise ValueError(f"b_ndim must be 1 or 2, not {b_ndim}.")
        # the class has the method `Op.lower`, instances the attribute that PyTensor has
        self.lower: bool = bool(lower)  # pyright: ignore[reportIncompatibleMethodOverride]
        self.b_ndim = b_ndim
        self.overwrite_a, self.overwrite_b = bool(overwrite_a), bool(overwrite_b)
        self.gufunc_signature = "(m,m),(m)->(m)" if b_ndim == 1 else "(m,m),(m,n)->(m,n)"
        overwritten = [k for k, on in enumerate((overwrite_a, overwrite_b)) if on]
        self.destroy_map = {0: overwritten[:1]} if overwritten else {}

    def make_node(self, *inputs: TensorLike) -> Apply:
        a, b = inputs
        a, b = self.matrix(a), as_tensor_variable(b)
        self.require_b(b)
        return typed_node(self, [a, b], inexact(a.type.dtype, b.type.dtype))

    def require_b(self, b: TensorVariable) -> None:
        """TypeError if the right side has the wrong number of axes."""
        if b.type.ndim != self.b_ndim:
            raise TypeError(f"{self} takes b with {self.b_ndim} dimensions, not {b.type.ndim}.")

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        a, b = shapes
        n = s.equal(square(s, a), b[0], "The matrix and the right sides do not fit")
        return [(n, *b[1:])]

    # ----- perform
    def converted(self, node: Apply, inputs: Arrays) -> list[np.ndarray]:
        """The inputs in the dtype of the result."""
        return [x.astype(node.outputs[0].type.dtype, copy=False) for x in inputs]


def outer_product(u: TensorVariable, v: TensorVariable, b_ndim: int) -> TensorVariable:
    """The sum of the outer products of the columns of two right sides or solutions."""
    return outer(u, v) if b_ndim == 1 else matrix_product(u, v.T)


def default_b_ndim(b: TensorVariable, b_ndim: int | None) -> int:
    """The number of axes of a right side: given, or 1 for a vector, else 2."""
    return min(b.type.ndim, 2) if b_ndim is None else b_ndim
