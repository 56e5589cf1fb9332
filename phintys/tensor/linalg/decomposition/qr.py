"""The QR decomposition, with or without pivoting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.dims import Dim, dim_max, dim_min
from phintys.errors import ShapeError
from phintys.gradient.barriers import grad_undefined
from phintys.graph.builder import Builder, V
from phintys.graph.ignored import ignores
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, Positions, routine
from phintys.routines.language import PARTS
from phintys.routines.libraries import LAPACK, LARGEST_INT, geqp3, geqrf, orgqr
from phintys.scalar.dtypes import real_of
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import functions, match_dtype
from phintys.tensor.join import concatenate
from phintys.tensor.linalg.decomposition.qr_derivatives import pulled_back, pushed_forward
from phintys.tensor.linalg.matrix_op import (
    BLOCK,
    MatrixOp,
    columns_first,
    inexact,
    is_tensor,
    nan_like,
)
from phintys.tensor.linalg.routine_parts import copy, fill_nan, is_finite, store_identity
from phintys.tensor.raise_op import CheckAndRaise
from phintys.tensor.sort import argsort
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["qr"]

#: mode -> the names of its results
RESULTS = {
    "full": ("q", "r"), "economic": ("q", "r"), "r": ("r",), "raw": ("h", "tau", "r"),
}  # fmt: skip
_ARBITRARY = "The last columns of q are arbitrary; use mode 'economic'."
_ALIASES = {"complete": "full", "reduced": "economic"}


class QR(MatrixOp):
    """An orthonormal matrix ``q`` and a triangular one ``r`` whose product is the matrix.

    Parameters
    ----------
    mode
        which results there are for a matrix of ``m`` rows and ``n`` columns, with
        ``k = min(m, n)``: ``"full"``: ``q`` (m, m) and ``r`` (m, n); ``"economic"``: ``q`` (m, k)
        and ``r`` (k, n); ``"r"``: ``r`` (m, n); ``"raw"``: LAPACK's reflectors (m, n), their
        factors (k) and ``r`` (k, n)
    overwrite_a
        whether the input may be overwritten
    pivoting
        whether columns are exchanged so that the diagonal of ``r`` does not increase; the last
        result is then their order, int32
    """

    # ----- class and static shape
    __props__ = ("overwrite_a", "mode", "pivoting")
    handles_missing = True

    def __init__(
        self, mode: str = "full", overwrite_a: bool = False, pivoting: bool = False
    ) -> None:
        if mode not in RESULTS:
            raise ValueError(f"mode must be one of {', '.join(RESULTS)}, not {mode!r}.")
        self.mode, self.overwrite_a, self.pivoting = mode, bool(overwrite_a), bool(pivoting)
        self.destroy_map = {0: [0]} if overwrite_a else {}
        names = {"q": "(m,m)", "r": "(m,n)", "h": "(m,n)", "tau": "(k)", "order": "(n)"}
        if mode == "economic":
            names["q"] = "(m,k)"
        if mode in ("economic", "raw"):
            names["r"] = "(k,n)"
        self.gufunc_signature = f"(m,n)->{','.join(names[x] for x in self.results)}"

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return (*RESULTS[self.mode], *(["order"] if self.pivoting else []))

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        dtype = inexact(x.type.dtype)
        return typed_node(self, [x], *("int32" if r == "order" else dtype for r in self.results))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        (m, n), k = x, dim_min(*x)
        columns, rows = self.columns(m, k), self.rows(m, k)
        shapes: dict[str, Shape] = {"q": (m, columns), "r": (rows, n), "h": (m, n)}
        shapes |= {"tau": (k,), "order": (n,)}
        return [shapes[name] for name in self.results]

    def columns(self, m: Dim, k: Dim) -> Dim:
        """The number of columns of ``q``."""
        return {"full": m, "economic": k}.get(self.mode, Dim.const(0))

    def rows(self, m: Dim, k: Dim) -> Dim:
        """The number of rows of ``r``."""
        return k if self.mode in ("economic", "raw") else m

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x = inputs[0].astype(node.outputs[0].type.dtype, copy=False)
        found = self._computed(x)
        for cell, name in zip(output_storage, self.results):
            cell[0] = found[name]

    def _computed(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The results by name."""
        from scipy.linalg import get_lapack_funcs

        (m, n), k = x.shape, min(x.shape)
        columns = self.columns(Dim.const(m), Dim.const(k)).evaluate({})
        rows = self.rows(Dim.const(m), Dim.const(k)).evaluate({})
        finite = bool(np.isfinite(x).all())
        h, tau, order = np.zeros_like(x), np.zeros(k, x.dtype), np.arange(n, dtype="int32")
        q = np.eye(m, columns, dtype=x.dtype)
        if k and finite:
            lwork = BLOCK * (max(n, columns) + 1) + 2 * n
            names = ("geqp3", "geqrf", "ungqr" if x.dtype.kind == "c" else "orgqr")
            pivoted, plain, generate = get_lapack_funcs(names, [x])
            if self.pivoting:
                h, order, tau, *_ = pivoted(x, lwork=lwork)
                order = (order - 1).astype("int32")
            else:
                h, tau, *_ = plain(x, lwork=lwork)
            if columns:
                q[:, : min(columns, n)] = h[:, :columns]
                q = generate(q, tau, lwork=lwork)[0]
        found = {"q": q, "r": np.triu(h[:rows]), "h": h, "tau": tau}
        if not finite:
            found = {name: nan_like(y) for name, y in found.items()}
        return {**found, "order": order}

    # ----- derivatives
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Sequence[Variable]
    ) -> list[Variable]:
        (x,), given = inputs, dict(zip(self.results, cotangents, strict=True))
        connected = {name: g for name, g in given.items() if is_tensor(g) and name != "order"}
        reason = next(filter(None, (self._undefined(x, name) for name in connected)), "")
        if reason:
            return [grad_undefined(self, 0, x, reason)]
        x, q, r = self._factors(x, outputs)
        gq, gr = connected.get("q"), connected.get("r")
        gq = q.zeros_like() if gq is None else self._with_columns(gq, q.shape[1])
        gr = r.zeros_like() if gr is None else gr[: q.shape[1]]
        found = pulled_back(x, q, r, gq, gr)
        if self.pivoting:
            found = found[:, argsort(outputs[-1])]
        return [match_dtype(found, inputs[0])]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        (x,), (t,) = inputs, tangents
        assert isinstance(t, TensorVariable)
        t = t[:, outputs[-1]] if self.pivoting else t
        ordered, q, r = self._factors(x, outputs)
        tq, tr = pushed_forward(ordered, q, r, t)
        below = outputs[self.results.index("r")][q.shape[1] :].zeros_like()
        found: dict[str, Variable] = {"r": concatenate([tr, below]), "order": disconnected_type()}
        for name in ("q", "h", "tau"):
            reason = self._undefined(x, name)
            if reason:
                found[name] = grad_undefined(self, 0, x, reason)
            else:
                found[name] = self._with_columns(tq, x.shape[0])
        return [
            match_dtype(g, out) if is_tensor(g := found[name]) else g
            for name, out in zip(self.results, outputs)
        ]

    def _undefined(self, x: TensorVariable, name: str) -> str:
        """Why a result is not differentiable; empty if it is, as far as lengths are known."""
        m, n = x.type.shape
        if name in ("h", "tau"):
            return "Reflectors of mode 'raw' have no derivative here; use mode 'economic'."
        tall = m is not None and n is not None and m > n
        if name == "q" and self.mode == "full" and tall:
            return _ARBITRARY
        return ""

    def _with_columns(self, q: TensorVariable, count: TensorVariable) -> TensorVariable:
        """A derivative of ``q``; ShapeError at run time if the last columns are arbitrary."""
        if self.mode != "full":
            return q
        message = f"{self} of a matrix with more rows than columns: {_ARBITRARY}"
        return CheckAndRaise(ShapeError, message)(q, functions.eq(q.shape[1], count))

    def _factors(self, x: TensorVariable, outputs: Tensors) -> tuple[TensorVariable, ...]:
        """The matrix with its columns in order, and its economic factors."""
        found = dict(zip(self.results, outputs))
        x = x[:, found["order"]] if self.pivoting else x
        if "q" not in found:
            return x, *QR("economic")(x)
        k = functions.minimum(*x.shape)
        return x, found["q"][:, :k], found["r"][:k]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        dtype = node.outputs[0].type.dtype
        *batch, m, n = b.shape(x)
        k = dim_min(m, n)
        columns, rows = self.columns(m, k), self.rows(m, k)
        lwork = BLOCK * (dim_max(n, columns) + 1) + 2 * n
        writes = [(dtype, (columns, m)), (dtype, (n, rows)), (dtype, (k,)), ("int32", (n,))]
        h, q, r, tau, order = b.external(
            factor_orthogonal,
            dtype,
            (int(self.pivoting), m, n, columns, rows, lwork),
            updates=[columns_first(b, b.cast(x, dtype))],
            writes=writes,
            batch=batch,
            work=m * n * k,
            scratch=[(dtype, lwork), (real_of(dtype), 2 * n)],
        )
        found = {"q": columns_first(b, q), "r": columns_first(b, r), "h": columns_first(b, h)}
        found |= {"tau": tau, "order": order}
        return [found[name] for name in self.results]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return QR(self.mode, bool(allowed_inplace_inputs), self.pivoting)


@routine(LAPACK, (np.linalg.LinAlgError, "The matrix is too large for LAPACK"))
def factor_orthogonal(
    pivoting: int, m: int, n: int, columns: int, rows: int, lwork: int,
    a: Array, q: Array, r: Array, tau: Array, order: Positions, work: Array, rwork: Array,
) -> int:  # fmt: skip
    """Replace a[m, n] by reflectors, and store q[m, columns], r[rows, n]; all column by column."""
    if lwork > LARGEST_INT or m > LARGEST_INT:
        return 1
    k = n if n < m else m
    finite = is_finite(m * n, a)
    for i in range(n):
        order[i] = 0
    status = 0
    if finite == 1 and k > 0:
        if pivoting == 1:
            status = geqp3(m, n, a, m, order, tau, work, lwork, rwork)
        else:
            status = geqrf(m, n, a, m, tau, work, lwork)
    for i in range(n):
        order[i] = order[i] - 1 if pivoting == 1 and finite == 1 and k > 0 else i
    _store_triangle(m, n, rows, a, r)
    copy(m * (columns if columns < n else n), a, q)
    if k > 0 and columns > 0 and finite == 1:
        status += orgqr(m, columns, k, q, m, tau, work, lwork)
    elif k == 0:
        store_identity(m, columns, q)
    if finite == 0:
        fill_nan(m * n, a)
        fill_nan(m * columns, q)
        fill_nan(rows * n, r)
        fill_nan(k, tau)
    return status


def _store_triangle(m: int, n: int, rows: int, a: Array, r: Array) -> int:
    """The upper triangle of a[m, n] as r[rows, n], column by column."""
    for j in range(n):
        stop = j + 1 if j < rows else rows
        copy(stop, a[j * m * PARTS :], r[j * rows * PARTS :])
        for i in range((j * rows + stop) * PARTS, (j + 1) * rows * PARTS):
            r[i] = 0.0
    return 0


# ----- user function
@ignores("overwrite_a", "lwork")
def qr(
    A: TensorLike,
    mode: str = "full",
    overwrite_a: bool = False,
    pivoting: bool = False,
    lwork: int | None = None,
) -> list[TensorVariable] | TensorVariable:
    """The factors ``q``, with orthonormal columns, and ``r``, upper triangular, of ``A = q r``.

    Parameters
    ----------
    A : tensor with at least two axes; the last two are matrices of ``m`` rows and ``n`` columns
    mode : with ``k = min(m, n)``, ``"full"`` or ``"complete"``: ``q`` (m, m), ``r`` (m, n);
        ``"economic"`` or ``"reduced"``: ``q`` (m, k), ``r`` (k, n); ``"r"``: only ``r`` (m, n);
        ``"raw"``: LAPACK's reflectors (m, n) and their factors (k), ``r`` (k, n)
    pivoting : whether columns are exchanged so that the diagonal of ``r`` does not increase in
        absolute value; the last result is then their order ``p``, int32, with ``A[:, p] = q r``
    overwrite_a, lwork : ignored

    The dtype is float32 or float64, complex64 or complex128.  The diagonal of ``r`` is real, of any
    sign.  The results for a matrix with NaN or infinity are NaN, their order that of the columns.
    ValueError for other modes.

    The results for which derivatives exist are ``r``, and ``q`` but for the last columns of mode
    ``"full"`` if ``m > n``.  They are not finite where the first ``k`` columns (in order) are
    linearly dependent.

    >>> import phintys.tensor as pt
    >>> q, r = pt.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> r.eval()
    array([[-5. , -2.2],
           [ 0. ,  0.4]])
    """
    return Blockwise(QR(_ALIASES.get(mode, mode), pivoting=pivoting))(A)
