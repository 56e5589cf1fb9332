"""Eigenvalues and eigenvectors: of Hermitian matrices and pairs, of square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar.dtypes import real_of, upcast
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import match_dtype
from phintys.tensor.linalg.decomposition import eigen_derivatives as derivatives
from phintys.tensor.linalg.decomposition.eigen_routines import (
    factor_hermitian,
    factor_hermitian_pair,
    unless_small,
    work_sizes,
)
from phintys.tensor.linalg.decomposition.eigen_small import FRACTION
from phintys.tensor.linalg.matrix_op import (
    MatrixOp,
    columns_first,
    inexact,
    is_tensor,
    nan_like,
    square,
)
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["eig", "eigh", "eigvalsh"]


class _Hermitian(MatrixOp):
    """Base class of ops on a Hermitian matrix, or on a pair of which the second is positive.

    Their first result, ``w``, are the eigenvalues; only one triangle of each matrix is read.
    """

    # ----- class and static shape
    handles_missing = True
    vectors: ClassVar[bool]
    overwrite_a: bool
    overwrite_b: bool

    def __init__(self, lower: bool, overwrite_a: bool, overwrite_b: bool) -> None:
        # the class has the method `Op.lower`, instances the attribute that PyTensor has
        self.lower: bool = bool(lower)  # pyright: ignore[reportIncompatibleMethodOverride]
        self.overwrite_a, self.overwrite_b = bool(overwrite_a), bool(overwrite_b)
        self.gufunc_signature = self.signature(1)
        destroyed = [k for k, given in enumerate((overwrite_a, overwrite_b)) if given]
        self.destroy_map = {0: destroyed} if destroyed else {}

    def signature(self, count: int) -> str:
        """The signature for a number of matrices."""
        return f"{','.join(['(m,m)'] * count)}->{'(m),(m,m)' if self.vectors else '(m)'}"

    def make_node(self, a: TensorLike, b: TensorLike | None = None) -> Apply:
        inputs = [self.matrix(x) for x in (a, b) if x is not None]
        dtype = inexact(*(x.type.dtype for x in inputs))
        return typed_node(self, inputs, real_of(dtype), *([dtype] if self.vectors else []))

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        n = square(s, shapes[0])
        for b in shapes[1:]:
            n = s.equal(n, square(s, b), "The shapes of the matrices differ")
        return [(n,), (n, n)] if self.vectors else [(n,)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        dtype = inexact(*(x.type.dtype for x in node.inputs))
        found = self._computed([x.astype(dtype, copy=False) for x in inputs])
        for cell, value in zip(output_storage, found):
            cell[0] = value

    def _computed(self, matrices: Arrays) -> list[np.ndarray]:
        """``w`` and ``v``."""
        from scipy.linalg import get_lapack_funcs

        a = matrices[0]
        w, v, status = np.zeros(len(a), real_of(a.dtype.name)), np.zeros_like(a), int(len(a) > 0)
        kept = [np.tril(x) if self.lower else np.triu(x) for x in matrices]
        if status and all(np.isfinite(x).all() for x in kept):
            kind, uplo = ("he" if a.dtype.kind == "c" else "sy"), "L" if self.lower else "U"
            (compute,) = get_lapack_funcs([kind + ("evd" if len(kept) == 1 else "gvd")], [a])
            if len(kept) == 1:
                w, v, status = compute(a, compute_v=self.vectors, lower=self.lower)
            else:
                w, v, status = compute(*kept, jobz="V" if self.vectors else "N", uplo=uplo)
        return [nan_like(w), nan_like(v)] if status else [w, signed(v) if self.vectors else v]

    # ----- derivatives
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Sequence[Variable]
    ) -> list[Variable]:
        w, v = self._both(inputs, outputs)
        gw, gv, *_ = [g if is_tensor(g) else None for g in cotangents] + [None]
        gw = w.zeros_like() if gw is None else gw
        found = derivatives.pulled_back(w, v, gw, gv, len(inputs) > 1)
        folded = [derivatives.folded(g, self.lower) for g in found]
        return [match_dtype(g, x) for g, x in zip(folded, inputs)]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        moves = [
            derivatives.hermitian(t if is_tensor(t) else x.zeros_like(), self.lower)
            for x, t in zip(inputs, tangents)
        ]
        (w, v), others = self._both(inputs, outputs), [*moves[1:], None]
        found = derivatives.pushed_forward(w, v, moves[0], others[0])
        return [match_dtype(t, out) for t, out in zip(found, outputs)]

    def _both(self, inputs: Tensors, outputs: Tensors) -> Tensors:
        """The eigenvalues and eigenvectors."""
        return outputs if self.vectors else Eigh(self.lower)(*inputs)

    # ----- batching and lowering
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return Blockwise(self, self.signature(len(batched_inputs))).make_node(*batched_inputs)

    def lower_batched(self, node: Apply, b: Builder[V], *matrices: V) -> list[V]:
        dtype = inexact(*(x.type.dtype for x in node.inputs))
        n, real = b.length(matrices[0], -1), real_of(dtype)
        batch = b.broadcast_shape([b.shape(x)[:-2] for x in matrices])
        given = [b.broadcast_to(b.cast(x, dtype), (*batch, n, n)) for x in matrices]
        sizes = work_sizes(n, self.vectors)
        flags = int(self.vectors), int(self.lower), n, *sizes
        scratch = list(zip((dtype, real, "int32"), sizes))
        if len(given) == 1:
            vectors = [(dtype, (n, n))] if self.vectors else []
            scratch = scratch if self.vectors else [(dtype, n * n), *scratch]
            if dtype == real:
                scratch = [(d, unless_small(n, size)) for d, size in scratch]
            return b.external(
                factor_hermitian, dtype, flags, reads=given, writes=[(real, (n,)), *vectors],
                batch=batch, work=10 * n * n * n, scratch=scratch,
            )  # fmt: skip
        v, _, w = b.external(
            factor_hermitian_pair, dtype, flags, updates=[columns_first(b, x) for x in given],
            writes=[(real, (n,))], batch=batch, work=10 * n * n * n, scratch=scratch,
        )  # fmt: skip
        return [w, columns_first(b, v)] if self.vectors else [w]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        props = {name: getattr(self, name) for name in self.__props__}
        props |= {f"overwrite_{'ab'[k]}": True for k in allowed_inplace_inputs}
        return type(self)(**props)


class Eigh(_Hermitian):
    """Eigenvalues ``w``, which do not decrease, and eigenvectors ``v`` of a Hermitian matrix ``a``.

    With a positive definite matrix ``b``: ``a v = b v diag(w)`` and ``v^H b v = 1``.

    Parameters
    ----------
    lower
        whether to read the lower triangles; else the upper ones
    UPLO
        ``"L"`` or ``"U"``: the same, by letter
    overwrite_a, overwrite_b
        whether the inputs may be overwritten
    driver
        ``"evr"`` or ``"evd"``; neither compiled code nor results depend on it
    """

    __props__ = ("lower", "overwrite_a", "overwrite_b", "driver")
    vectors = True

    def __init__(
        self,
        lower: bool = True,
        UPLO: str | None = None,
        overwrite_a: bool = False,
        overwrite_b: bool = False,
        driver: str = "evr",
    ) -> None:
        if UPLO not in (None, "L", "U"):
            raise ValueError(f"UPLO must be 'L' or 'U', not {UPLO!r}.")
        if driver not in ("evr", "evd"):
            raise ValueError(f"driver must be 'evr' or 'evd', not {driver!r}.")
        self.driver = driver
        super().__init__(lower if UPLO is None else UPLO == "L", overwrite_a, overwrite_b)


class Eigvalsh(_Hermitian):
    """The eigenvalues of a Hermitian matrix, or of a pair, as `Eigh` orders them.

    Parameters
    ----------
    lower
        whether to read the lower triangles; else the upper ones
    overwrite_a, overwrite_b
        whether the inputs may be overwritten
    """

    __props__ = ("lower", "overwrite_a", "overwrite_b")
    vectors = False

    def __init__(
        self, lower: bool = True, overwrite_a: bool = False, overwrite_b: bool = False
    ) -> None:
        super().__init__(lower, overwrite_a, overwrite_b)


class Eig(MatrixOp):
    """Eigenvalues ``w`` and eigenvectors ``v`` of a square matrix, both complex."""

    # ----- class and static shape
    __props__ = ()
    in_python = "a driver of LAPACK whose results are complex for real matrices: NumPy calls it"
    gufunc_signature = "(m,m)->(m),(m,m)"
    handles_missing = True

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        dtype = upcast(inexact(x.type.dtype), "complex64")
        return typed_node(self, [x], dtype, dtype)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        n = square(s, x)
        return [(n,), (n, n)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        x = inputs[0].astype(inexact(node.inputs[0].type.dtype), copy=False)
        w, v = x[:1].ravel(), x
        failed = not np.isfinite(x).all()
        if x.size and not failed:
            try:
                w, v = np.linalg.eig(x)
            except np.linalg.LinAlgError:  # the iteration does not converge
                failed = True
        for cell, value, out in zip(output_storage, (w, v), node.outputs):
            value = value.astype(out.type.dtype, copy=False)
            cell[0] = nan_like(value) if failed else value

    # ----- derivatives
    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Sequence[Variable]
    ) -> list[Variable]:
        gw, gv = (g if is_tensor(g) else None for g in cotangents)
        w, v = outputs
        found = derivatives.pulled_back_general(w, v, w.zeros_like() if gw is None else gw, gv)
        return [match_dtype(found, inputs[0])]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        (w, v), (t,) = outputs, tangents
        assert is_tensor(t)
        found = derivatives.pushed_forward_general(w, v, t)
        return [match_dtype(t, out) for t, out in zip(found, outputs)]


def signed(v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Vectors, the columns of a matrix, times 1 or -1 or a complex number of that size.

    The first component larger than `FRACTION` of the largest one becomes positive.
    """
    if v.size == 0:
        return v
    sizes, columns = np.abs(v), np.arange(v.shape[1])
    first = np.argmax(sizes > sizes.max(0) * v.real.dtype.type(FRACTION), axis=0)
    length = sizes[first, columns]
    found = v * (v[first, columns].conj() / length) + 0
    found[first, columns] = length
    return found


# ----- user functions
def eigh(
    a: TensorLike,
    b: TensorLike | None = None,
    lower: bool = True,
    UPLO: str | None = None,
    driver: str = "evr",
) -> list[TensorVariable]:
    """Eigenvalues ``w`` and eigenvectors ``v`` of Hermitian matrices, the last two axes of ``a``.

    Parameters
    ----------
    a : tensor with at least two axes; only one triangle is read, without imaginary parts on the
        diagonal
    b : None, or positive definite matrices: then ``a v = b v diag(w)`` and ``v^H b v = 1``
    lower : whether to read the lower triangle, else the upper one
    UPLO : ``"L"`` or ``"U"``: the same, by letter
    driver : ``"evr"`` or ``"evd"``; the results do not depend on it

    Eigenvalues do not decrease; their dtype is float32 or float64.  Eigenvectors are the columns of
    ``v``, of length 1 without ``b``; their dtype is that of the eigenvalues, or complex.  Of the
    components of a vector that are larger than 3/8 of its largest one, the first is positive.  The
    results are NaN if the triangle contains NaN or infinity, if ``b`` is not positive definite, and
    if LAPACK's iteration does not converge.  ShapeError if the matrices are not square.

    The derivatives of vectors are not finite where eigenvalues are equal; those of complex ones are
    meant for functions that do not depend on the phases of the vectors.

    >>> import phintys.tensor as pt
    >>> w, v = pt.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> w.eval()
    array([1., 3.])
    """
    op = Eigh(lower, UPLO, driver=driver if b is None else "evd")
    return _of_pair(op, a, b)


def eigvalsh(a: TensorLike, b: TensorLike | None = None, lower: bool = True) -> TensorVariable:
    """The eigenvalues of Hermitian matrices, the last two axes of ``a``; see `eigh`.

    Parameters
    ----------
    a : tensor with at least two axes; only one triangle is read
    b : None, or positive definite matrices
    lower : whether to read the lower triangle, else the upper one

    >>> import phintys.tensor as pt
    >>> pt.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]).eval()
    array([1., 3.])
    """
    return _of_pair(Eigvalsh(lower), a, b)


def _of_pair(op: _Hermitian, a: TensorLike, b: TensorLike | None) -> Any:
    """An op applied to batches of one matrix, or of two."""
    given = [a] if b is None else [a, b]
    return Blockwise(op, op.signature(len(given)))(*given)


def eig(x: TensorLike) -> list[TensorVariable]:
    """Eigenvalues ``w`` and eigenvectors ``v`` of square matrices, the last two axes of ``x``.

    Both are complex, for real matrices too; the columns of ``v`` have length 1.  Eigenvalues are in
    the order of LAPACK.  The results are NaN if a matrix contains NaN or infinity, or if LAPACK's
    iteration does not converge.  ShapeError if the matrices are not square.

    Derivatives are not finite where eigenvalues are equal; those of vectors are meant for functions
    that do not depend on the phases of the vectors.

    >>> import phintys.tensor as pt
    >>> w, v = pt.linalg.eig([[0.0, 1.0], [-1.0, 0.0]])
    >>> w.eval()
    array([0.+1.j, 0.-1.j])
    """
    return Blockwise(Eig())(x)
