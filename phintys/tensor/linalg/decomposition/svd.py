"""The singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.dims import Dim, dim_max, dim_min
from phintys.gradient.barriers import grad_undefined
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, Positions, routine
from phintys.routines.libraries import LAPACK, LARGEST_INT, gesdd
from phintys.scalar.dtypes import real_of
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import match_dtype
from phintys.tensor.linalg.decomposition.svd_derivatives import (
    pulled_back,
    pulled_back_values,
    pushed_forward,
)
from phintys.tensor.linalg.matrix_op import (
    BLOCK,
    MatrixOp,
    columns_first,
    inexact,
    is_tensor,
    nan_like,
)
from phintys.tensor.linalg.routine_parts import fill_nan, fill_nan_real, is_finite, store_identity
from phintys.tensor.shape import specify_shape
from phintys.tensor.static import known_length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["svd"]

#: codes of LAPACK: all vectors, those of the singular values, none
_ALL, _SOME, _NONE = (ord(c) for c in "ASN")


class SVD(MatrixOp):
    """Orthonormal ``u`` and ``vt`` and singular values ``s``: the matrix is ``u diag(s) vt``.

    Parameters
    ----------
    full_matrices
        whether ``u`` and ``vt`` are square; else they have ``k = min(m, n)`` columns, or rows
    compute_uv
        whether ``u`` and ``vt`` are results; else only ``s`` is
    overwrite_a
        whether the input may be overwritten
    """

    # ----- class and static shape
    __props__ = ("full_matrices", "compute_uv", "overwrite_a")
    handles_missing = True

    def __init__(
        self, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False
    ) -> None:
        self.full_matrices, self.compute_uv = bool(full_matrices), bool(compute_uv)
        self.overwrite_a = bool(overwrite_a)
        self.destroy_map = {0: [0]} if overwrite_a else {}
        vectors = ("(m,m)", "(n,n)") if full_matrices else ("(m,k)", "(k,n)")
        results = f"{vectors[0]},(k),{vectors[1]}" if compute_uv else "(k)"
        self.gufunc_signature = f"(m,n)->{results}"

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        dtype = inexact(x.type.dtype)
        dtypes = [dtype, real_of(dtype), dtype]
        return typed_node(self, [x], *(dtypes if self.compute_uv else dtypes[1:2]))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        (m, n), k = x, dim_min(*x)
        rows, columns = (n, m) if self.full_matrices else (k, k)
        return [(m, columns), (k,), (rows, n)] if self.compute_uv else [(k,)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x = inputs[0].astype(inexact(node.inputs[0].type.dtype), copy=False)
        found = self._computed(x) if self.compute_uv else self._computed(x)[1:2]
        for cell, value in zip(output_storage, found):
            cell[0] = value

    def _computed(self, x: np.ndarray) -> list[np.ndarray]:
        """``u``, ``s`` and ``vt``."""
        from scipy.linalg import get_lapack_funcs

        (m, n), k = x.shape, min(x.shape)
        rows, columns = (n, m) if self.full_matrices else (k, k)
        found = [np.eye(m, columns, dtype=x.dtype), np.zeros(k, real_of(x.dtype.name))]
        found.append(np.eye(rows, n, dtype=x.dtype))
        status = int(not np.isfinite(x).all())
        if k and not status:
            (compute,) = get_lapack_funcs(["gesdd"], [x])
            lwork = work_sizes(Dim.const(m), Dim.const(n), self.compute_uv)[0].evaluate({})
            flags = {"compute_uv": self.compute_uv, "full_matrices": self.full_matrices}
            *found, status = compute(x, lwork=lwork, **flags)
        return [nan_like(y) for y in found] if status else found

    # ----- derivatives
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Sequence[Variable]
    ) -> list[Variable]:
        (x,), given = inputs, self._all(cotangents)
        reasons = [r for g, r in zip(given, self._undefined(x)) if is_tensor(g) and r]
        if reasons:
            return [grad_undefined(self, 0, x, reasons[0])]
        u, s, vt = factors = self._factors(x, outputs)
        gu, gs, gvt = (g if is_tensor(g) else y.zeros_like() for g, y in zip(given, factors))
        if not is_tensor(given[0]) and not is_tensor(given[2]):
            return [match_dtype(pulled_back_values(u, vt, gs), x)]
        gu, gvt = self._with_lengths(gu, gvt, s.shape[0], s.shape[0])
        return [match_dtype(pulled_back(u, s, vt, gu, gs, gvt), x)]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        (x,), (t,) = inputs, tangents
        assert is_tensor(t)
        u, s, vt = self._factors(x, outputs)
        tu, ts, tvt = pushed_forward(u, s, vt, t)
        if not self.compute_uv:
            return [match_dtype(ts, outputs[0])]
        tu, tvt = self._with_lengths(tu, tvt, *x.shape)
        return [
            grad_undefined(self, 0, x, reason) if reason else match_dtype(g, out)
            for g, out, reason in zip((tu, ts, tvt), outputs, self._undefined(x))
        ]

    def _all(self, given: Sequence[Variable]) -> list[Variable]:
        """Derivatives of the three results; missing ones for those that are not computed."""
        if self.compute_uv:
            return list(given)
        return [disconnected_type(), *given, disconnected_type()]

    def _undefined(self, x: TensorVariable) -> tuple[str, str, str]:
        """Why each of the factors has no derivative, as far as lengths are known."""
        m, n = x.type.shape
        if not self.full_matrices or m is None or n is None:
            return "", "", ""
        text = "The last {} are arbitrary; use full_matrices=False."
        left = text.format("columns of u") if m > n else ""
        return left, "", text.format("rows of vt") if n > m else ""

    def _with_lengths(
        self, u: TensorVariable, vt: TensorVariable, columns: TensorVariable, rows: TensorVariable
    ) -> list[TensorVariable]:
        """Derivatives of vectors; ShapeError at run time if the last vectors are arbitrary."""
        if not self.full_matrices:
            return [u, vt]
        return [_specified(u, 1, columns), _specified(vt, 0, rows)]

    def _factors(self, x: TensorVariable, outputs: Tensors) -> list[TensorVariable]:
        """The factors with ``k`` vectors."""
        if not self.compute_uv:
            return SVD(full_matrices=False)(x)
        u, s, vt = outputs
        return [u[:, : s.shape[0]], s, vt[: s.shape[0]]] if self.full_matrices else [u, s, vt]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        dtype = inexact(node.inputs[0].type.dtype)
        real = real_of(dtype)
        *batch, m, n = b.shape(x)
        k = dim_min(m, n)
        rows, columns = (n, m) if self.full_matrices else (k, k)
        job = (_ALL if self.full_matrices else _SOME) if self.compute_uv else _NONE
        if not self.compute_uv:
            rows = columns = Dim.const(0)
        lwork, lrwork = work_sizes(m, n, self.compute_uv)
        _, s, u, vt = b.external(
            factor_singular,
            dtype,
            (job, m, n, columns, rows, lwork),
            updates=[columns_first(b, b.cast(x, dtype))],
            writes=[(real, (k,)), (dtype, (columns, m)), (dtype, (n, rows))],
            batch=batch,
            work=20 * m * n * k,
            scratch=[(dtype, lwork), (real, lrwork), ("int32", 8 * k)],
        )
        return [columns_first(b, u), s, columns_first(b, vt)] if self.compute_uv else [s]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return SVD(self.full_matrices, self.compute_uv, bool(allowed_inplace_inputs))


def _specified(x: TensorVariable, axis: int, length: TensorVariable) -> TensorVariable:
    """``x`` with an asserted length, unless its static shape contradicts."""
    known, other = x.type.shape[axis], known_length(length)
    if known is not None and other is not None and known != other:
        return x
    return specify_shape(x, [length if k == axis else None for k in range(2)])


def work_sizes(m: Dim, n: Dim, vectors: bool) -> tuple[Dim, Dim]:
    """The lengths of workspaces: of the dtype, of real numbers for complex dtypes."""
    small, large = dim_min(m, n), dim_max(m, n)
    whole = 4 * small * small if vectors else Dim.const(0)
    real = 2 * small * (large + 2 * small) + 7 * small if vectors else 7 * small
    return whole + 8 * small + (small + large) * BLOCK, real


@routine(LAPACK, (np.linalg.LinAlgError, "The matrix is too large for LAPACK"))
def factor_singular(
    job: int, m: int, n: int, columns: int, rows: int, lwork: int,
    a: Array, s: Array, u: Array, vt: Array, work: Array, rwork: Array, iwork: Positions,
) -> int:  # fmt: skip
    """Store factors of a[m, n]: u[m, columns], s and vt[rows, n]; matrices column by column."""
    if lwork > LARGEST_INT or m > LARGEST_INT or n > LARGEST_INT:
        return 1
    k = n if n < m else m
    if k == 0:
        store_identity(m, columns, u)
        store_identity(rows, n, vt)
        return 0
    status = 1
    if is_finite(m * n, a) == 1:
        ldu = m if columns > 0 else 1
        ldvt = rows if rows > 0 else 1
        status = gesdd(job, m, n, a, m, s, u, ldu, vt, ldvt, work, lwork, rwork, iwork)
    if status != 0:
        fill_nan(m * columns, u)
        fill_nan_real(k, s)
        fill_nan(rows * n, vt)
    return 0


# ----- user function
def svd(
    a: TensorLike, full_matrices: bool = True, compute_uv: bool = True
) -> list[TensorVariable] | TensorVariable:
    """The factors ``u``, ``s``, ``vt`` of ``a = u diag(s) vt``, or only the singular values ``s``.

    Parameters
    ----------
    a : tensor with at least two axes; the last two are matrices of ``m`` rows and ``n`` columns
    full_matrices : whether ``u`` has the shape (m, m) and ``vt`` (n, n); else ``u`` (m, k) and
        ``vt`` (k, n), with ``k = min(m, n)``
    compute_uv : whether ``u`` and ``vt`` are results; else the result is ``s``

    Singular values do not increase.  The dtype of ``u`` and ``vt`` is float32 or float64, complex64
    or complex128, that of ``s`` its real part.  The results for a matrix with NaN or infinity are
    NaN, and so are those for which LAPACK's iteration does not converge.

    With ``full_matrices``, derivatives of ``u`` exist if ``m <= n``, and of ``vt`` if ``n <= m``:
    the other vectors are arbitrary.  The derivatives of vectors are not finite where singular
    values are equal; those of complex ones are meant for functions that do not depend on the phases
    of the vectors.

    >>> import phintys.tensor as pt
    >>> pt.linalg.svd([[0.0, 2.0], [3.0, 0.0]], compute_uv=False).eval()
    array([3., 2.])
    """
    return Blockwise(SVD(full_matrices, compute_uv))(a)
