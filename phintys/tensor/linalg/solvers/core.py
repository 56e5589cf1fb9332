"""The base class of ops that solve systems of linear equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.errors import ShapeError
from phintys.graph.variable import Apply
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.linalg.matrix_op import MatrixOp, inexact
from phintys.tensor.type import TensorType


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
    __props__: tuple[str, ...] = ("lower", "b_ndim", "overwrite_a", "overwrite_b")

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
        self.lower, self.b_ndim = bool(lower), b_ndim
        self.overwrite_a, self.overwrite_b = bool(overwrite_a), bool(overwrite_b)
        self.gufunc_signature = "(m,m),(m)->(m)" if b_ndim == 1 else "(m,m),(m,n)->(m,n)"
        overwritten = [k for k, on in enumerate((overwrite_a, overwrite_b)) if on]
        self.destroy_map = {0: overwritten[:1]} if overwritten else {}

    def make_node(self, a: Any, b: Any) -> Apply:
        a, b = self.matrix(a, square=True), as_tensor_variable(b)
        if b.type.ndim != self.b_ndim:
            raise TypeError(f"{self} takes b with {self.b_ndim} dimensions, not {b.type.ndim}.")
        known = {n for n in (*a.type.shape, b.type.shape[0]) if n is not None}
        if len(known) > 1:
            raise ShapeError(_mismatch(self, a.type.shape, b.type.shape))
        shape = (next(iter(known), None), *b.type.shape[1:])
        return Apply(self, [a, b], [TensorType(inexact(a.type.dtype, b.type.dtype), shape)()])

    # ----- perform
    def converted(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        """The inputs in the dtype of the result; ShapeError if their shapes do not fit."""
        self.require_system(*(x.shape for x in inputs))
        return [x.astype(node.outputs[0].type.dtype, copy=False) for x in inputs]

    def require_system(self, a: tuple[int, ...], b: tuple[int, ...]) -> None:
        """ShapeError unless the shapes are those of a square matrix and of right sides for it."""
        self.require_square(a)
        if a[0] != b[0]:
            raise ShapeError(_mismatch(self, a, b))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]


def _mismatch(op: SolveBase, a: Any, b: Any) -> str:
    return f"{op}: a matrix of shape {a} and right sides of shape {b} do not fit."


def default_b_ndim(b: Any, b_ndim: int | None) -> int:
    """The number of axes of a right side: given, or 1 for a vector, else 2."""
    return min(b.type.ndim, 2) if b_ndim is None else b_ndim
