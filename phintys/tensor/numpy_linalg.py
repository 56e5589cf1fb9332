"""The functions of ``numpy.linalg`` on variables: those of the array API, and more.

They are called when a function of NumPy has a symbolic variable as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import phintys.tensor as pt
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.standard import linalg


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``numpy.linalg.norm``: of vectors or matrices; of all elements without axis and order."""
    x = as_tensor_variable(x)
    if axis is None and ord is None:
        return pt.linalg.vector_norm(x, keepdims=keepdims)
    if axis is None and x.type.ndim > 2:
        axes = f"{x.type.ndim} axes of {x}"
        raise ValueError(f"Norms are those of vectors and matrices, not of {axes}.")
    return pt.linalg.norm(x, ord, axis, keepdims)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """``numpy.linalg.pinv``, with the default of ``rtol`` of the array API."""
    return pt.linalg.pinv(a, hermitian, rtol=rtol if rcond is None else rcond)


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
    **{name: getattr(pt.linalg, name) for name in ("cond", "lstsq", "matrix_rank", "multi_dot")},
    **{name: getattr(pt.linalg, name) for name in ("tensorinv", "tensorsolve")},
    **{"eigh": eigh, "eigvalsh": eigvalsh, "norm": norm, "pinv": pinv, "qr": qr, "svd": svd},
}
