"""Systems of linear equations with a triangular matrix."""

from __future__ import annotations

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.ignored import ignores
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, routine
from phintys.routines.language import PARTS
from phintys.routines.libraries import (
    LAPACK,
    LARGEST_INT,
    LOWER,
    NOT_UNIT,
    PLAIN,
    RIGHT,
    TRANSPOSED,
    UNIT,
    UPPER,
    trsm,
)
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.axes import matrix_transpose
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import conjugate, match_dtype
from phintys.tensor.linalg.matrix_op import adjoint, nan_like, triangle
from phintys.tensor.linalg.routine_parts import fill_nan, has_zero
from phintys.tensor.linalg.solvers.core import SolveBase, default_b_ndim, outer_product
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["solve_triangular"]

#: the number of elements of right sides from which on BLAS is faster than the loops below
SMALL = 64


class SolveTriangular(SolveBase):
    """The solution ``x`` of ``a x = b``, where ``a`` is triangular; NaN if ``a`` is singular.

    Parameters
    ----------
    unit_diagonal
        whether to read ones on the diagonal of ``a``
    lower, b_ndim, overwrite_a, overwrite_b
        see `SolveBase`
    """

    # ----- class and static shape
    __props__ = ("unit_diagonal", "lower", "b_ndim", "overwrite_b")

    def __init__(
        self,
        *,
        unit_diagonal: bool = False,
        lower: bool = False,
        b_ndim: int,
        overwrite_b: bool = False,
    ) -> None:
        super().__init__(lower=lower, b_ndim=b_ndim, overwrite_b=overwrite_b)
        self.unit_diagonal = bool(unit_diagonal)

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        from scipy.linalg import get_lapack_funcs

        check_shapes(node, inputs)
        a, b = self.converted(node, inputs)
        found, status = np.zeros_like(b), 0
        if b.size:
            (trtrs,) = get_lapack_funcs(["trtrs"], [a, b])
            flags = {"lower": self.lower, "unitdiag": self.unit_diagonal}
            found, status = trtrs(a, b, overwrite_b=self.overwrite_b, **flags)
        found = found.reshape(b.shape)
        output_storage[0][0] = nan_like(found) if status else found

    # ----- derivative (M. B. Giles, "An extended collection of matrix derivative results", 2008)
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (a, b), (x,), (g,) = inputs, outputs, cotangents
        gb = self._solve(adjoint(a), g, not self.lower)
        ga = -self._read(outer_product(gb, conjugate(x), self.b_ndim))
        return [match_dtype(ga, a), match_dtype(gb, b)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (a, _), (x,), (ta, tb) = inputs, outputs, tangents
        return [self._solve(a, tb - matrix_product(self._read(ta), x), self.lower)]

    def _read(self, a: TensorVariable) -> TensorVariable:
        """The triangle that the op reads."""
        return triangle(a, self.lower, int(self.unit_diagonal))

    def _solve(self, a: TensorVariable, b: TensorVariable, lower: bool) -> TensorVariable:
        op = SolveTriangular(lower=lower, unit_diagonal=self.unit_diagonal, b_ndim=self.b_ndim)
        return Blockwise(op)(a, b)

    # ----- batching and lowering
    def lower_batched(self, node: Apply, builder: Builder[V], a: V, b: V) -> list[V]:
        dtype, axes = node.outputs[0].type.dtype, self.b_ndim
        a, b = builder.cast(a, dtype), builder.cast(b, dtype)
        n = builder.length(a, -1)
        m = builder.length(b, -1) if axes == 2 else 1
        batch = builder.broadcast_shape([builder.shape(a)[:-2], builder.shape(b)[:-axes]])
        a = builder.broadcast_to(a, (*batch, n, n))
        b = builder.broadcast_to(b, (*batch, *builder.shape(b)[len(batch) :]))
        a, transposed = builder.rows_or_columns(a)
        flags = int(self.lower), int(transposed), int(self.unit_diagonal)
        return builder.external(
            substitute, dtype, (*flags, n, m), [a], [b], batch=batch, work=n * n * m
        )

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        if 1 not in allowed_inplace_inputs:
            return self
        props = {name: getattr(self, name) for name in self.__props__}
        return SolveTriangular(**{**props, "overwrite_b": True})


@routine(LAPACK, (np.linalg.LinAlgError, "No solution was found"))
def substitute(lower: int, transposed: int, unit: int, n: int, m: int, a: Array, b: Array) -> int:
    """Replace b[n, m] by the solution, or by NaN; ``transposed``: a holds the transpose."""
    if n == 0 or m == 0:
        return 0
    if unit == 0 and has_zero(n, a, n + 1) == 1:
        fill_nan(n * m, b)
    elif PARTS == 1 and ((n <= 16 and n * m < SMALL) or m > LARGEST_INT):
        down = 1 if transposed == 1 else n
        _substitute(lower, down, n + 1 - down, unit, n, m, a, b)
    elif m > LARGEST_INT:
        return 1
    else:  # to BLAS, the columns of a matrix are its rows: x^T a^T = b^T
        stored_upper = lower == transposed
        trsm(
            RIGHT,
            LOWER if stored_upper else UPPER,
            TRANSPOSED if transposed == 1 else PLAIN,
            UNIT if unit == 1 else NOT_UNIT,
            m,
            n,
            1.0,
            a,
            n,
            b,
            m,
        )
    return 0


def _substitute(
    lower: int, down: int, right: int, unit: int, n: int, m: int, a: Array, b: Array
) -> None:
    """Replace b by the solution, row by row from the end of the triangle with one element."""
    for s in range(n):
        i = s if lower == 1 else n - 1 - s
        row = b[i * m :]
        for t in range(s):
            j = t if lower == 1 else n - 1 - t
            x = a[i * down + j * right]
            other = b[j * m :]
            for c in range(m):
                row[c] -= x * other[c]
        if unit == 0:
            x = a[i * (n + 1)]
            for c in range(m):
                row[c] = row[c] / x


# ----- user function
@ignores("check_finite")
def solve_triangular(
    a: TensorLike,
    b: TensorLike,
    *,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    check_finite: bool = True,
    b_ndim: int | None = None,
) -> TensorVariable:
    """The solution ``x`` of ``a x = b`` for triangular matrices, the last two axes of ``a``.

    Parameters
    ----------
    a : tensor with at least two axes; only one triangle is read
    b : right sides: vectors (the last axis) or matrices (the last two)
    trans : 0 or ``"N"``: ``a x = b``; 1 or ``"T"``: ``a^T x = b``; 2 or ``"C"``: ``a^H x = b``
    lower : which triangle of ``a`` is read
    unit_diagonal : whether to read ones on the diagonal of ``a``
    check_finite : ignored
    b_ndim : 1 if right sides are vectors, 2 if they are matrices; by default 1 if ``b`` has one
        axis

    The solution is NaN where a matrix has a zero on its diagonal.  ShapeError if shapes do not fit,
    ValueError if ``trans`` is none of the above.

    >>> import phintys.tensor as pt
    >>> pt.linalg.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True).eval()
    array([1., 2.])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"trans must be 0, 1, 2, 'N', 'T' or 'C', not {trans!r}.")
    if trans not in (0, "N"):
        a, lower = matrix_transpose(a), not lower
        a = conjugate(a) if trans in (2, "C") else a
    b_ndim = default_b_ndim(b, b_ndim)
    return Blockwise(SolveTriangular(lower=lower, unit_diagonal=unit_diagonal, b_ndim=b_ndim))(a, b)
