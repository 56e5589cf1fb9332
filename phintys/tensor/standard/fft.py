"""The extension ``fft`` of the array API: discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import phintys.tensor as pt
from phintys.config import config
from phintys.tensor import fourier
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.fourier import SWAPPED, Norm
from phintys.tensor.shape import length, normalize_axis_tuple
from phintys.tensor.standard.elementwise import conj
from phintys.tensor.standard.manipulation import roll
from phintys.tensor.standard.promotion import check_device
from phintys.tensor.static import as_length

Lengths = Sequence[Any] | None
Axes = Sequence[int] | None


def fft(x: Any, /, *, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The discrete Fourier transform along an axis."""
    return fourier.fft(x, n, axis, norm)


def ifft(x: Any, /, *, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The inverse of `fft`."""
    return fourier.ifft(x, n, axis, norm)


def rfft(x: Any, /, *, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The first half of the `fft` of real numbers."""
    return fourier.rfft(x, n, axis, norm)


def irfft(x: Any, /, *, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The inverse of `rfft`."""
    return fourier.irfft(x, n, axis, norm)


def hfft(x: Any, /, *, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The real transform of numbers of which the second half are conjugates of the first."""
    return fourier.irfft(conj(x), n, axis, SWAPPED[norm])


def ihfft(x: Any, /, *, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The inverse of `hfft`."""
    return conj(fourier.rfft(x, n, axis, SWAPPED[norm]))


def _steps(x: Any, s: Lengths, axes: Axes) -> list[tuple[int, Any]]:
    """The axes to transform, with the lengths of the transforms, or None for those of ``x``."""
    ndim = x.type.ndim
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    found = normalize_axis_tuple(axes, ndim)
    return list(zip(found, [None] * len(found) if s is None else s, strict=True))


def fftn(x: Any, /, *, s: Lengths = None, axes: Axes = None, norm: Norm = "backward") -> Any:
    """The transform along several axes; None: all."""
    x = as_tensor_variable(x)
    for axis, n in _steps(x, s, axes):
        x = fourier.fft(x, n, axis, norm)
    return x


def ifftn(x: Any, /, *, s: Lengths = None, axes: Axes = None, norm: Norm = "backward") -> Any:
    """The inverse of `fftn`."""
    x = as_tensor_variable(x)
    for axis, n in _steps(x, s, axes):
        x = fourier.ifft(x, n, axis, norm)
    return x


def rfftn(x: Any, /, *, s: Lengths = None, axes: Axes = None, norm: Norm = "backward") -> Any:
    """The transform of real numbers along several axes, of which the last is halved."""
    x = as_tensor_variable(x)
    *others, (last, n) = _steps(x, s, axes)
    x = fourier.rfft(x, n, last, norm)
    for axis, n in others:
        x = fourier.fft(x, n, axis, norm)
    return x


def irfftn(x: Any, /, *, s: Lengths = None, axes: Axes = None, norm: Norm = "backward") -> Any:
    """The inverse of `rfftn`."""
    x = as_tensor_variable(x)
    *others, (last, n) = _steps(x, s, axes)
    for axis, m in others:
        x = fourier.ifft(x, m, axis, norm)
    return fourier.irfft(x, n, last, norm)


def fftfreq(n: Any, /, *, d: Any = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the numbers that `fft` returns, for samples at distance ``d``."""
    check_device(device)
    n = as_length(n)
    i = pt.arange(n)
    return _frequencies(functions.switch(functions.lt(2 * i, n), i, i - n), n, d, dtype)


def rfftfreq(n: Any, /, *, d: Any = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the numbers that `rfft` returns, for samples at distance ``d``."""
    check_device(device)
    n = as_length(n)
    return _frequencies(pt.arange(n // 2 + 1), n, d, dtype)


def _frequencies(k: Any, n: Any, d: Any, dtype: Any) -> Any:
    found = cast(k, "float64") / (cast(n, "float64") * d)
    return cast(found, config.floatX if dtype is None else dtype)


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """``x`` with the frequency 0 in the middle of axes; None: of all."""
    return _shifted(x, axes, 1)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    x = as_tensor_variable(x)
    chosen = normalize_axis_tuple(range(x.type.ndim) if axes is None else axes, x.type.ndim)
    return roll(x, tuple(sign * (length(x, axis) // 2) for axis in chosen), axis=chosen)


__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip
