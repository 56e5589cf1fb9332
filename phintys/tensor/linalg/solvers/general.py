"""Systems of linear equations with a matrix of some structure: `solve`."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from phintys.dims import dim_max
from phintys.graph.builder import Builder, V
from phintys.graph.ignored import ignores
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, Positions, routine
from phintys.routines.libraries import LAPACK, LARGEST_INT, LOWER, UPPER, hesv, sysv
from phintys.scalar.dtypes import is_complex
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.axes import matrix_transpose
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import conjugate, match_dtype
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.elimination import (
    factored,
    lower_columns,
    lower_solution,
    substituted,
)
from phintys.tensor.linalg.matrix_op import (
    adjoint,
    columns_first,
    diagonal_part,
    nan_like,
    triangle,
)
from phintys.tensor.linalg.routine_parts import copy, fill_nan, triangle_is_finite
from phintys.tensor.linalg.solvers.cholesky import lower_factor_substitution, substituted_twice
from phintys.tensor.linalg.solvers.core import SolveBase, default_b_ndim, outer_product
from phintys.tensor.linalg.solvers.triangular import solve_triangular
from phintys.tensor.linalg.solvers.tridiagonal import (
    factored_diagonals,
    lower_tridiagonal,
    lower_tridiagonal_substitution,
    substituted_diagonals,
)
from phintys.tensor.ranges import tril, triu
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["solve"]

#: long name -> name
NAMES = {
    "general": "gen", "symmetric": "sym", "hermitian": "her", "positive definite": "pos",
}  # fmt: skip
#: names of structures that `Solve` knows
STRUCTURES = ("gen", "sym", "her", "pos", "tridiagonal", "banded", "diagonal")
#: columns of a matrix that LAPACK updates at once
BLOCK = 32


class Solve(SolveBase):
    """The solution ``x`` of ``a x = b``; NaN if ``a`` is singular.

    Parameters
    ----------
    assume_a
        what ``a`` is assumed to be: ``"gen"``; ``"sym"`` symmetric, ``"her"`` Hermitian or
        ``"pos"`` positive definite, of which one triangle is read; ``"tridiagonal"`` or
        ``"diagonal"``, of which the other elements are not read; ``"banded"``: as ``"gen"``
    lower, b_ndim, overwrite_a, overwrite_b
        see `SolveBase`
    """

    # ----- class and static shape
    __props__ = ("assume_a", "lower", "b_ndim", "overwrite_a", "overwrite_b")

    def __init__(
        self,
        *,
        assume_a: str = "gen",
        lower: bool = False,
        b_ndim: int,
        overwrite_a: bool = False,
        overwrite_b: bool = False,
    ) -> None:
        super().__init__(
            lower=lower, b_ndim=b_ndim, overwrite_a=overwrite_a, overwrite_b=overwrite_b
        )
        self.assume_a = NAMES.get(assume_a, assume_a)
        if self.assume_a not in STRUCTURES:
            raise ValueError(f"assume_a is one of {[*STRUCTURES, *NAMES]}, not {assume_a!r}.")

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        a, b = self.converted(node, inputs)
        output_storage[0][0] = self._solved(a, b)

    def _solved(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import get_lapack_funcs

        match self.assume_a:
            case "sym" | "her":
                return _solved_symmetric(self._hermitian(a.dtype.name), a, b, self.lower)
            case "pos":
                if a.size == 0:
                    return b.copy()
                (potrf,) = get_lapack_funcs(["potrf"], [a])
                factor, status = potrf(a, self.lower)
                return nan_like(b) if status else substituted_twice(factor, b, self.lower)
            case "tridiagonal":
                below, on, above = (a.diagonal(k) for k in (-1, 0, 1))
                return substituted_diagonals(factored_diagonals(below, on, above), b)
            case "diagonal":
                d = a.diagonal()
                d = d if self.b_ndim == 1 else d[:, None]
                return b / d if np.all((d != 0) & np.isfinite(d)) else nan_like(b)
            case _:
                return substituted(*factored(a), b)

    def _hermitian(self, dtype: str) -> bool:
        return self.assume_a == "her" and is_complex(dtype)

    # ----- derivative (M. B. Giles, "An extended collection of matrix derivative results", 2008)
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (a, b), (x,), (g,) = inputs, outputs, cotangents
        gb = self._like(self._adjoint(a), g)
        ga = -outer_product(gb, conjugate(x), self.b_ndim)
        return [match_dtype(self._of_read(ga), a), match_dtype(gb, b)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (a, _), (x,), (ta, tb) = inputs, outputs, tangents
        return [self._like(a, tb - matrix_product(self._read(ta), x))]

    def _like(self, a: TensorVariable, b: TensorVariable) -> TensorVariable:
        return Solve(assume_a=self.assume_a, lower=self.lower, b_ndim=self.b_ndim)(a, b)

    def _adjoint(self, a: TensorVariable) -> TensorVariable:
        """The matrix as given whose meaning is the adjoint."""
        if self.assume_a in ("pos", "her"):
            return a
        return conjugate(a) if self.assume_a == "sym" else adjoint(a)

    def _read(self, a: TensorVariable) -> TensorVariable:
        """What the op takes for its matrix, from the part that it reads."""
        if self.assume_a in ("sym", "her", "pos"):
            other = triangle(a, self.lower, 1)
            if self.assume_a == "sym":
                return triangle(a, self.lower) + other.T
            return other + adjoint(other) + diagonal_part(a)
        return self._band(a)

    def _of_read(self, g: TensorVariable) -> TensorVariable:
        """The cotangent of the part that the op reads, from that of its matrix."""
        if self.assume_a == "sym":
            return triangle(g, self.lower) + triangle(g.T, self.lower, 1)
        if self.assume_a in ("her", "pos"):
            return triangle(g + adjoint(g), self.lower, 1) + diagonal_part(g)
        return self._band(g)

    def _band(self, a: TensorVariable) -> TensorVariable:
        width = {"tridiagonal": 1, "diagonal": 0}.get(self.assume_a)
        return a if width is None else triu(tril(a, width), -width)

    # ----- batching and lowering
    def lower_batched(self, node: Apply, builder: Builder[V], a: V, b: V) -> list[V]:
        dtype = node.outputs[0].type.dtype
        match self.assume_a:
            case "sym" | "her":
                return [self._lower_symmetric(builder, a, b, dtype)]
            case "pos":
                (factor,) = Cholesky(lower=self.lower).lower_batched(node, builder, a)
                arguments = factor, b, node, self.lower, self.b_ndim
                return [lower_factor_substitution(builder, *arguments)]
            case "tridiagonal":
                below, on, above = (_diagonal(builder, a, k) for k in (-1, 0, 1))
                factors = lower_tridiagonal(builder, (below, on, above), dtype)
                arguments = factors, b, dtype, self.b_ndim, False
                return [lower_tridiagonal_substitution(builder, *arguments)]
            case "diagonal":
                return [_lower_division(builder, _diagonal(builder, a, 0), b, dtype, self.b_ndim)]
            case _:
                return [lower_solution(builder, a, b, dtype, self.b_ndim)]

    def _lower_symmetric(self, builder: Builder[V], a: V, b: V, dtype: str) -> V:
        n = builder.length(a, -1)
        columns = columns_first(builder, builder.cast(a, dtype))
        scratch = [(dtype, n * n), ("int32", n), (dtype, n * BLOCK)]
        flags = int(self._hermitian(dtype)), int(self.lower)
        given = [columns], b, dtype, self.b_ndim, scratch
        return lower_columns(builder, solve_symmetric, flags, *given)

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return Solve(
            assume_a=self.assume_a,
            lower=self.lower,
            b_ndim=self.b_ndim,
            overwrite_a=0 in allowed_inplace_inputs,
            overwrite_b=1 in allowed_inplace_inputs,
        )


def _solved_symmetric(hermitian: bool, a: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    """The solution of a system of whose matrix one triangle is read; NaN if it is singular or not
    finite."""
    from scipy.linalg import get_lapack_funcs

    if b.size == 0:
        return b.copy()
    (sysv,) = get_lapack_funcs(["hesv" if hermitian else "sysv"], [a, b])
    if not np.isfinite(np.tril(a) if lower else np.triu(a)).all():
        return nan_like(b)
    *_, found, status = sysv(a, b, lower=lower)
    return nan_like(b) if status else found.reshape(b.shape)


def _diagonal(b: Builder[V], a: V, offset: int) -> V:
    count = dim_max(b.length(a, -1) - abs(offset), 0)
    a = b.slice(a, a.ndim - 2, max(-offset, 0), 1, count)
    return b.diagonal(b.slice(a, a.ndim - 1, max(offset, 0), 1, count), a.ndim - 2, a.ndim - 1)


def _lower_division(builder: Builder[V], d: V, b: V, dtype: str, b_ndim: int) -> V:
    """Right sides divided by diagonals; NaN if one has a zero, or an element that is not finite."""
    d, b = builder.cast(d, dtype), builder.cast(b, dtype)

    def wrong(n: Any, x: Any) -> Any:
        zero = n.const(0, x)
        return n.or_(n.eq(x, zero), n.ne(n.sub(x, x), zero))

    bad = builder.expand(builder.reduce("or", builder.map(wrong, d), [d.ndim - 1]), d.ndim - 1)
    if b_ndim == 2:
        d, bad = builder.expand(d, d.ndim), builder.expand(bad, bad.ndim)
    missing = builder.const(complex(nan, nan) if is_complex(dtype) else nan, dtype)
    return builder.map(lambda n, x, y, bad, z: n.select(bad, z, n.div(x, y)), b, d, bad, missing)


# -------------------------------------------------------------------------- routines


@routine(LAPACK, (np.linalg.LinAlgError, "The matrices are too large for LAPACK"))
def solve_symmetric(
    hermitian: int,
    lower: int,
    n: int,
    m: int,
    a: Array,
    b: Array,
    factors: Array,
    pivots: Positions,
    work: Array,
) -> int:
    """Replace right sides by solutions, both stored by columns, or by NaN."""
    if n > LARGEST_INT // BLOCK or m > LARGEST_INT:
        return 1
    uplo = LOWER if lower == 1 else UPPER
    status = 1
    if n > 0 and m > 0 and triangle_is_finite(lower, n, a) == 1:
        copy(n * n, a, factors)
        if hermitian == 1:
            status = hesv(uplo, n, m, factors, n, pivots, b, n, work, n * BLOCK)
        else:
            status = sysv(uplo, n, m, factors, n, pivots, b, n, work, n * BLOCK)
    if status != 0:
        fill_nan(n * m, b)
    return 0


# ----- user function
@ignores("overwrite_a", "overwrite_b", "check_finite")
def solve(
    a: TensorLike,
    b: TensorLike,
    *,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
    transposed: bool = False,
    b_ndim: int | None = None,
) -> TensorVariable:
    """The solution ``x`` of ``a x = b`` for square matrices, the last two axes of ``a``.

    Parameters
    ----------
    a : tensor with at least two axes
    b : right sides: vectors (the last axis) or matrices (the last two)
    assume_a : what the matrices are taken for: ``"gen"`` or ``"general"``; ``"sym"`` or
        ``"symmetric"``, ``"her"`` or ``"hermitian"``, ``"pos"`` or ``"positive definite"``, of
        which one triangle is read; ``"tridiagonal"``, ``"diagonal"``, ``"upper triangular"``,
        ``"lower triangular"``, of which the other elements are not read; ``"banded"``
    lower : which triangle is read of a symmetric, Hermitian or positive definite matrix
    transposed : whether to solve ``a^T x = b``
    b_ndim : 1 if right sides are vectors, 2 if they are matrices; by default 1 if ``b`` has one
        axis
    overwrite_a, overwrite_b, check_finite : ignored

    The solution is NaN where a matrix is singular, or contains NaN or infinity.  ShapeError if
    shapes do not fit, ValueError if ``assume_a`` is none of the above.

    >>> import phintys.tensor as pt
    >>> pt.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [3.0, 4.0]).eval()
    array([1., 1.])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    b_ndim = default_b_ndim(b, b_ndim)
    if assume_a in ("upper triangular", "lower triangular"):
        below = assume_a.startswith("lower")
        trans = "T" if transposed else "N"
        return solve_triangular(a, b, lower=below, trans=trans, b_ndim=b_ndim)
    if transposed:
        a, lower = matrix_transpose(a), not lower
    return Blockwise(Solve(assume_a=assume_a, lower=lower, b_ndim=b_ndim))(a, b)
