"""A bound of the eigenvalues of symmetric matrices."""

from __future__ import annotations

from operator import index

from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matmul
from phintys.tensor.linalg.norms import trace
from phintys.tensor.variable import TensorVariable

__all__ = ["spectral_radius_bound"]


def spectral_radius_bound(X: TensorLike, log2_exponent: int) -> TensorVariable:
    """An upper bound of the absolute eigenvalues of a symmetric matrix.

    Parameters
    ----------
    X : real symmetric matrix; leading axes are batches
    log2_exponent : positive integer k; the bound is ``trace(X ** (2 ** k)) ** (1 / 2 ** k)``,
        which takes k products, and is at most ``n ** (1 / 2 ** k)`` times the largest one of n
        absolute eigenvalues

    The powers may overflow.  ValueError if ``log2_exponent`` is not positive or ``X`` has less than
    two axes, TypeError if it is no integer, ShapeError if matrices are not square.

    V. Pan, "Estimating the extremal eigenvalues of a symmetric matrix", 1990.

    >>> import phintys.tensor as pt
    >>> bound = pt.linalg.spectral_radius_bound([[0.0, 2.0], [2.0, 3.0]], 5)
    >>> round(float(bound.eval()), 6)
    4.0
    """
    k = index(log2_exponent)
    if k < 1:
        raise ValueError(f"log2_exponent is positive, not {k}.")
    x = as_tensor_variable(X)
    if x.type.ndim < 2:
        raise ValueError(f"A matrix has at least two axes; {x} has {x.type.ndim}.")
    for _ in range(k):
        x = matmul(x, x)
    return trace(x) ** (2.0**-k)
