"""Functions of NumPy values that NumPy and SciPy do not have; the tables name them."""

from __future__ import annotations

from typing import Any

import numpy as np


def second(x: Any, y: Any) -> Any:
    """``y`` broadcast against ``x``."""
    return np.broadcast_to(y, np.broadcast_shapes(np.shape(x), np.shape(y)))


def multiply_nonzero(x: Any, y: Any) -> Any:
    """The product of those of two numbers that are not zero."""
    return np.where(x == 0, y, np.where(y == 0, x, x * y))


def round_half_away_from_zero(x: Any) -> Any:
    """From the integer part: adding 0.5 would round 0.49999999999999994 up."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(x.dtype)


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, with an exponential that cannot overflow; complex: as written."""
    if np.asarray(x).dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, np.ones_like(small)) / (1 + small)


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``, as ``max(x, 0) + log1p(exp(-|x|))``; complex: as written."""
    if np.asarray(x).dtype.kind == "c":
        return np.log1p(np.exp(x))
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def log1mexp(x: Any) -> Any:
    """``log(1 - exp(x))`` for x < 0, by the cheaper of two exact forms.

    Source: M. Mächler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    return np.where(x < -np.log(2), np.log1p(-np.exp(x)), np.log(-np.expm1(x))).astype(x.dtype)


def complex_from_parts(x: Any, y: Any) -> Any:
    """``x + iy``, exactly: a product with 1j would make NaN of an infinite part."""
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


def complex_from_polar(r: Any, angle: Any) -> Any:
    """``r exp(i angle)``."""
    return complex_from_parts(r * np.cos(angle), r * np.sin(angle))


def tri_gamma(x: Any) -> Any:
    """The second derivative of gammaln."""
    from scipy.special import polygamma

    return polygamma(1, x)


def gammal(k: Any, x: Any) -> Any:
    """The lower incomplete gamma function."""
    from scipy import special

    return special.gammainc(k, x) * special.gamma(k)


def gammau(k: Any, x: Any) -> Any:
    """The upper incomplete gamma function."""
    from scipy import special

    return special.gammaincc(k, x) * special.gamma(k)


def chi2sf(x: Any, k: Any) -> Any:
    """The probability that a chi-squared variable with ``k`` degrees of freedom exceeds ``x``."""
    from scipy.special import gammaincc

    return gammaincc(k / 2, x / 2)
