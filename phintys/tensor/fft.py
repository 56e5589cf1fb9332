"""Transforms of batches of real numbers, whose complex numbers are pairs along a last axis.

`phintys.tensor.fourier` has transforms with complex dtypes.
"""

from __future__ import annotations

from typing import Literal

from phintys.scalar import dtypes
from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import functions
from phintys.tensor.fourier import Fourier, Norm
from phintys.tensor.join import stack
from phintys.tensor.shape import length, specify_shape
from phintys.tensor.variable import TensorVariable

__all__ = ["irfft", "rfft"]

OlderNorm = Literal["ortho", "no_norm"] | None


def rfft(inp: TensorLike, norm: OlderNorm = None) -> TensorVariable:
    """The discrete Fourier transforms of real numbers, over all axes but the first.

    Parameters
    ----------
    inp : tensor (batch, n, ..., m) of real numbers
    norm : None or ``"no_norm"``: sums without a factor; ``"ortho"``: divided by the square root of
        the number of elements of an item of the batch

    The result has the shape (batch, n, ..., m // 2 + 1, 2): real parts, then imaginary parts.
    TypeError for complex numbers or without an axis to transform, ValueError for another norm.

    >>> import phintys.tensor as pt
    >>> from phintys.tensor.fft import rfft
    >>> rfft(pt.as_tensor([[1.0, 2.0]])).eval().tolist()
    [[[3.0, 0.0], [-1.0, 0.0]]]
    """
    kind: Norm = "ortho" if _checked(norm) == "ortho" else "backward"
    x = as_tensor_variable(inp)
    if x.type.ndim < 2:
        raise TypeError(f"rfft takes a batch and at least one axis; {x} has {x.type.ndim}.")
    last = x.type.ndim - 1
    x = Fourier("rfft", last, kind)(x, length(x, last))
    for axis in range(1, last):
        x = Fourier("fft", axis, kind)(x, length(x, axis))
    return stack([functions.real(x), functions.imag(x)], axis=-1)


def irfft(inp: TensorLike, norm: OlderNorm = None, is_odd: bool = False) -> TensorVariable:
    """The inverse of `rfft`.

    Parameters
    ----------
    inp : tensor (batch, n, ..., m // 2 + 1, 2): real parts, then imaginary parts
    norm : None: sums divided by the number of elements of an item of the result; ``"ortho"``: by
        its square root; ``"no_norm"``: without a factor
    is_odd : whether the last length m of the result is odd

    TypeError for complex numbers or without an axis to transform, ValueError for another norm.
    """
    norms: dict[OlderNorm, Norm] = {None: "backward", "ortho": "ortho", "no_norm": "forward"}
    kind = norms[_checked(norm)]
    x = as_tensor_variable(inp)
    if dtypes.is_complex(x.type.dtype):
        raise TypeError(f"irfft takes real and imaginary parts as real numbers, not {x.type}.")
    if x.type.ndim < 3:
        raise TypeError(f"irfft takes a batch, an axis and parts; {x} has {x.type.ndim} axes.")
    x = specify_shape(x, [*[None] * (x.type.ndim - 1), 2])
    z = functions.complex(x[..., 0], x[..., 1])
    last = z.type.ndim - 1
    for axis in range(1, last):
        z = Fourier("ifft", axis, kind)(z, length(z, axis))
    return Fourier("irfft", last, kind)(z, (length(z, last) - 1) * 2 + int(is_odd))


def _checked(norm: OlderNorm) -> OlderNorm:
    if norm not in (None, "ortho", "no_norm"):
        raise ValueError(f"norm is None, 'ortho' or 'no_norm', not {norm!r}.")
    return norm
