"""Images enlarged by linear interpolation."""

from __future__ import annotations

from operator import index

from phintys.config import config
from phintys.graph.ignored import ignores
from phintys.graph.variable import Constant
from phintys.scalar import dtypes
from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.index import take
from phintys.tensor.ranges import arange
from phintys.tensor.shape import length
from phintys.tensor.signal.windows import positive
from phintys.tensor.static import as_length
from phintys.tensor.variable import TensorVariable

__all__ = [
    "bilinear_kernel_1D",
    "bilinear_kernel_2D",
    "bilinear_upsampling",
    "frac_bilinear_upsampling",
]

Ratio = tuple[int, int]


@ignores("batch_size", "num_input_channels", "use_1D_kernel")
def bilinear_upsampling(
    input: TensorLike,
    ratio: int | None = None,
    frac_ratio: Ratio | tuple[Ratio, Ratio] | None = None,
    batch_size: int | None = None,
    num_input_channels: int | None = None,
    use_1D_kernel: bool = True,
) -> TensorVariable:
    """Images with ``ratio`` times as many rows and columns, by linear interpolation.

    Parameters
    ----------
    input : images (batch, channels, rows, columns)
    ratio : a positive integer
    frac_ratio : instead of it, a fraction (numerator, denominator), or one for each axis; the
        lengths are rounded up
    batch_size, num_input_channels, use_1D_kernel : ignored

    Element ``i`` of an image becomes element ``ratio * i + (ratio - 1) // 2`` of the result;
    elements before the first and after the last one are equal to these.  ValueError if there is not
    exactly one ratio, or it is not positive.

    >>> import phintys.tensor as pt
    >>> pt.nnet.bilinear_upsampling([[[[0.0, 6.0]]]], 3).eval()[0, 0, 0]
    array([0., 0., 2., 4., 6., 6.])
    """
    x = as_tensor_variable(input)
    if (ratio is None) == (frac_ratio is None):
        raise ValueError("Give either ratio or frac_ratio.")
    if x.type.ndim != 4:
        raise TypeError(f"bilinear_upsampling takes tensors with 4 axes; {x} has {x.type.ndim}.")
    x = cast(x, dtypes.float_of(x.type.dtype))
    for axis, fraction in enumerate(_ratios(ratio, frac_ratio), 2):
        numerator, denominator = map(index, fraction)
        if numerator < 1 or denominator < 1:
            raise ValueError(f"A ratio is positive, not {numerator} / {denominator}.")
        x = _along(x, axis, numerator, denominator)
    return x


def frac_bilinear_upsampling(
    input: TensorLike, frac_ratio: Ratio | tuple[Ratio, Ratio]
) -> TensorVariable:
    """`bilinear_upsampling` by a fraction."""
    return bilinear_upsampling(input, frac_ratio=frac_ratio)


def bilinear_kernel_1D(ratio: Length, normalize: bool = True) -> TensorVariable:
    """The filter that interpolates a vector with ``ratio - 1`` zeros between its elements.

    Parameters
    ----------
    ratio : a positive integer, or a variable
    normalize : False: the filter times ``ratio``, whose elements are integers

    The result has the length ``2 * ratio - 1`` and the dtype `floatX`.  ValueError if the ratio is
    not positive.

    >>> import phintys.tensor as pt
    >>> pt.nnet.bilinear_kernel_1D(2).eval()
    array([0.5, 1. , 0.5])
    """
    n = as_length(ratio)
    message = f"A ratio is positive, not {ratio}."
    if isinstance(n, Constant) and int(n.data) < 1:
        raise ValueError(message)
    n = positive(n, message)
    found = cast(n - functions.abs(arange(2 * n - 1) - (n - 1)), config.floatX)
    return found / cast(n, config.floatX) if normalize else found


def bilinear_kernel_2D(ratio: Length, normalize: bool = True) -> TensorVariable:
    """The outer product of `bilinear_kernel_1D` with itself, a filter for images.

    >>> import phintys.tensor as pt
    >>> pt.nnet.bilinear_kernel_2D(2, normalize=False).eval()
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]])
    """
    found = bilinear_kernel_1D(ratio, normalize)
    return dimshuffle(found, 0, "x") * found


def _ratios(ratio: int | None, given: Ratio | tuple[Ratio, Ratio] | None) -> list[Ratio]:
    """The fraction for each axis."""
    if ratio is not None or given is None:
        return [(ratio or 0, 1)] * 2
    first, second = given
    if isinstance(first, tuple) and isinstance(second, tuple):
        return [first, second]
    if isinstance(first, int) and isinstance(second, int):
        return [(first, second)] * 2
    raise ValueError(f"frac_ratio is a pair of integers, or one for each axis, not {given!r}.")


def _along(x: TensorVariable, axis: int, numerator: int, denominator: int) -> TensorVariable:
    """Interpolation along one axis, between which there are ``numerator`` steps."""
    n = as_length(length(x, axis))
    places = arange((n * numerator + denominator - 1) // denominator) * denominator
    places = functions.clip(places - (numerator - 1) // 2, 0, (n - 1) * numerator)
    left = places // numerator
    right = functions.minimum(left + 1, n - 1)
    weights = cast(places % numerator, x.type.dtype) / numerator
    weights = dimshuffle(weights, 0, *["x"] * (x.type.ndim - axis - 1))
    low, high = (take(x, positions, axis) for positions in (left, right))
    return low + (high - low) * weights
