"""Systems of linear equations whose matrix has a Cholesky factor: `cho_solve`."""

from __future__ import annotations

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.ignored import ignores
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, routine
from phintys.routines.libraries import LAPACK, LARGEST_INT, LOWER, UPPER, potrs
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import conjugate, match_dtype
from phintys.tensor.linalg.elimination import lower_columns
from phintys.tensor.linalg.matrix_op import adjoint, columns_first, nan_like, triangle
from phintys.tensor.linalg.routine_parts import fill_nan, has_zero, triangle_is_finite
from phintys.tensor.linalg.solvers.core import SolveBase, default_b_ndim, outer_product
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["cho_solve"]


class CholeskySolve(SolveBase):
    """The solution ``x`` of ``a x = b`` from a Cholesky factor of ``a``; NaN if it is singular, or
    contains NaN or infinity."""

    # ----- class and static shape
    __props__ = ("lower", "b_ndim", "overwrite_b")

    def __init__(self, *, lower: bool = False, b_ndim: int, overwrite_b: bool = False) -> None:
        super().__init__(lower=lower, b_ndim=b_ndim, overwrite_b=overwrite_b)

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        factor, b = self.converted(node, inputs)
        output_storage[0][0] = substituted_twice(factor, b, self.lower)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (factor, b), (x,), (g,) = inputs, outputs, cotangents
        gb = self(factor, g)
        s = -outer_product(gb, conjugate(x), self.b_ndim)
        s = s + adjoint(s)
        s = (
            matrix_product(s, self._read(factor))
            if self.lower
            else matrix_product(self._read(factor), s)
        )
        return [match_dtype(self._read(s), factor), match_dtype(gb, b)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (factor, _), (x,), (t, tb) = inputs, outputs, tangents
        factor, t = self._read(factor), self._read(t)
        s = matrix_product(factor, adjoint(t)) if self.lower else matrix_product(adjoint(factor), t)
        return [self(factor, tb - matrix_product(s + adjoint(s), x))]

    def _read(self, factor: TensorVariable) -> TensorVariable:
        return triangle(factor, self.lower)

    # ----- batching and lowering
    def lower_batched(self, node: Apply, builder: Builder[V], a: V, b: V) -> list[V]:
        return [lower_factor_substitution(builder, a, b, node, self.lower, self.b_ndim)]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        if 1 not in allowed_inplace_inputs:
            return self
        return CholeskySolve(lower=self.lower, b_ndim=self.b_ndim, overwrite_b=True)


def substituted_twice(factor: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    """The solution of a system with a factor of its matrix; NaN if that is singular, or contains
    NaN or infinity."""
    from scipy.linalg import get_lapack_funcs

    read = np.tril(factor) if lower else np.triu(factor)
    if not np.all(factor.diagonal() != 0) or not np.isfinite(read).all():
        return nan_like(b)
    if b.size == 0:
        return b.copy()
    (potrs,) = get_lapack_funcs(["potrs"], [factor, b])
    return potrs(factor, b, lower=lower)[0].reshape(b.shape)


def lower_factor_substitution(
    builder: Builder[V], factor: V, b: V, node: Apply, lower: bool, b_ndim: int
) -> V:
    """Solutions of systems with factors of their matrices."""
    dtype = node.outputs[0].type.dtype
    columns = columns_first(builder, builder.cast(factor, dtype))
    return lower_columns(builder, substitute_twice, (int(lower),), [columns], b, dtype, b_ndim)


@routine(LAPACK, (np.linalg.LinAlgError, "The matrices are too large for LAPACK"))
def substitute_twice(lower: int, n: int, m: int, a: Array, b: Array) -> int:
    """Replace right sides by solutions, both stored by columns, or by NaN."""
    if n > LARGEST_INT or m > LARGEST_INT:
        return 1
    if has_zero(n, a, n + 1) == 1 or triangle_is_finite(lower, n, a) == 0:
        fill_nan(n * m, b)
    elif n > 0 and m > 0:
        potrs(LOWER if lower == 1 else UPPER, n, m, a, n, b, n)
    return 0


# ----- user function
@ignores("check_finite")
def cho_solve(
    c_and_lower: tuple[TensorLike, bool],
    b: TensorLike,
    *,
    check_finite: bool = True,
    b_ndim: int | None = None,
) -> TensorVariable:
    """The solution ``x`` of ``a x = b`` from a Cholesky factor of ``a``.

    Parameters
    ----------
    c_and_lower : the factor, of which one triangle is read, and whether that is the lower one
    b : right sides: vectors (the last axis) or matrices (the last two)
    b_ndim : 1 if right sides are vectors, 2 if they are matrices; by default 1 if ``b`` has one
        axis
    check_finite : ignored

    The solution is NaN where a factor has a zero on its diagonal, or NaN or infinity in the
    triangle that is read.  ShapeError if shapes do not fit.

    >>> import phintys.tensor as pt
    >>> factor = pt.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    >>> pt.linalg.cho_solve((factor, True), [6.0, 7.0]).eval()
    array([1., 1.])
    """
    (factor, lower), b = c_and_lower, as_tensor_variable(b)
    op = CholeskySolve(lower=lower, b_ndim=default_b_ndim(b, b_ndim))
    return Blockwise(op)(factor, b)
