"""The extension ``linalg`` of the array API: products, norms and factors of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import phintys.tensor as pt
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.standard.products import matmul, matrix_transpose, tensordot, vecdot
from phintys.tensor.standard.statistical import sum


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor of positive definite matrices: the lower one, or the upper one."""
    return pt.linalg.cholesky(x, lower=not upper, on_error="raise")


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross products of vectors along an axis of both.

    ShapeError if their length is not 3, at run time if that is not known before.
    """
    moved = [pt.moveaxis(as_tensor_variable(x), axis, -1) for x in (x1, x2)]
    a, b = (pt.specify_shape(x, [*[None] * (x.type.ndim - 1), 3]) for x in moved)
    a0, a1, a2 = (a[..., i] for i in range(3))
    b0, b1, b2 = (b[..., i] for i in range(3))
    found = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return pt.moveaxis(pt.stack(found, -1), -1, axis)


def det(x: Any, /) -> Any:
    """The determinants of square matrices."""
    return pt.linalg.det(x)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices, as the last axis of the result."""
    return pt.diagonal(x, offset, -2, -1)


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Any
    S: Any
    Vh: Any


def eig(x: Any, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, both complex."""
    return EigResult(*pt.linalg.eig(x))


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues, which do not decrease, and eigenvectors of Hermitian matrices."""
    return EighResult(*pt.linalg.eigh(x))


def eigvals(x: Any, /) -> Any:
    """The eigenvalues of square matrices, complex."""
    return pt.linalg.eig(x)[0]


def eigvalsh(x: Any, /) -> Any:
    """The eigenvalues of Hermitian matrices, which do not decrease."""
    return pt.linalg.eigvalsh(x)


def inv(x: Any, /) -> Any:
    """The inverses of square matrices; LinAlgError at run time if one is singular."""
    return pt.linalg.inv(x)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norms of matrices, of the order "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    return pt.linalg.matrix_norm(x, ord, keepdims)


def matrix_power(x: Any, n: int, /) -> Any:
    """The powers of square matrices; a negative one is that of the inverses."""
    return pt.linalg.matrix_power(x, n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """The number of singular values that are greater than ``rtol`` times the greatest one."""
    return pt.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Any, x2: Any, /) -> Any:
    """The product of every element of ``x1`` with every element of ``x2``, both vectors."""
    return pt.outer(x1, x2)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Factors with orthonormal columns and triangular ones; ``mode``: "reduced" or "complete".

    ValueError for other modes.
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', not {mode!r}.")
    return QRResult(*pt.linalg.qr(x, mode))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Factors ``U``, ``S``, ``Vh``: the matrices are ``U diag(S) Vh``."""
    return SVDResult(*pt.linalg.svd(x, full_matrices))


def svdvals(x: Any, /) -> Any:
    """The singular values of matrices, which do not increase."""
    return pt.linalg.svd(x, compute_uv=False)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverses of matrices; see `phintys.tensor.linalg.pinv`."""
    return pt.linalg.pinv(x, rtol=rtol)


class SlogdetResult(NamedTuple):
    """The signs of determinants, and the logarithms of their absolute values."""

    sign: Any
    logabsdet: Any


def slogdet(x: Any, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their absolute values."""
    return SlogdetResult(*pt.linalg.slogdet(x))


def solve(x1: Any, x2: Any, /) -> Any:
    """The solutions of ``x1 @ x = x2``, for a vector or for matrices; NaN if one is singular."""
    return pt.linalg.solve(x1, x2)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of diagonals of matrices; 64 bit for integers, unless a dtype is given."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """``(sum |x|^ord)^(1/ord)`` over axes; the extremes of ``|x|`` for ``ord`` inf and -inf."""
    return pt.linalg.vector_norm(x, ord, axis, keepdims)


__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
