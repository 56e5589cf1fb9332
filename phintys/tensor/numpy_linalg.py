"""The functions of ``numpy.linalg`` on variables: those of the array API, and `norm`.

They are called when a function of NumPy has a symbolic variable as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import phintys.tensor as pt
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.reduce import normalize_axes
from phintys.tensor.standard import linalg


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``numpy.linalg.norm``: of vectors; of matrices if there are two axes and an order is given.

    ValueError for orders of matrices that need singular values.
    """
    x = as_tensor_variable(x)
    axes = normalize_axes(axis, x.type.ndim)
    if ord is None or len(axes) == 1:
        return linalg.vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(
            f"Norms are those of vectors and matrices, not of {len(axes)} axes of {x}."
        )
    found = linalg.matrix_norm(pt.moveaxis(x, axes, (-2, -1)), ord=ord)
    return pt.expand_dims(found, axes) if keepdims else found


def eigh(a: Any, UPLO: str = "L") -> Any:
    """``numpy.linalg.eigh``."""
    return linalg.EighResult(*pt.linalg.eigh(a, UPLO=UPLO.upper()))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """``numpy.linalg.eigvalsh``."""
    return pt.linalg.eigvalsh(a, lower=UPLO.upper() == "L")


def qr(a: Any, mode: str = "reduced") -> Any:
    """``numpy.linalg.qr``; mode "raw" has the transposed reflectors."""
    found = pt.linalg.qr(a, mode)
    if mode == "raw":
        return pt.matrix_transpose(found[0]), found[1]
    return linalg.QRResult(*found) if mode != "r" else _first_rows(found)


def _first_rows(r: Any) -> Any:
    """The rows of triangular factors that are not zero because of their shape."""
    return r[..., : pt.minimum(r.shape[-2], r.shape[-1]), :]


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """``numpy.linalg.svd``; Hermitian matrices are computed as others."""
    found = pt.linalg.svd(a, full_matrices, compute_uv)
    return linalg.SVDResult(*found) if compute_uv else found


#: by name
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(linalg, name) for name in linalg.__all__},
    **{"eigh": eigh, "eigvalsh": eigvalsh, "norm": norm, "qr": qr, "svd": svd},
    "multi_dot": pt.linalg.multi_dot,
    "tensorinv": pt.linalg.tensorinv,
    "tensorsolve": pt.linalg.tensorsolve,
}
