"""Neighbourhoods of images as rows of a matrix, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from phintys.graph.variable import Constant
from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import dimshuffle, functions
from phintys.tensor.index import take
from phintys.tensor.pad import pad
from phintys.tensor.ranges import arange
from phintys.tensor.shape import shape_tuple, specify_shape
from phintys.tensor.signal.windows import positive, required, sliding_windows
from phintys.tensor.static import as_length
from phintys.tensor.variable import TensorVariable

__all__ = ["images2neibs", "neibs2images"]

NeibMode = Literal["valid", "ignore_borders", "wrap_centered", "half", "full"]
Lengths = Sequence[Length] | TensorVariable


_POSITIVE = "neib_shape and neib_step are positive."
_ODD = "In the mode 'wrap_centered' neighbourhoods have odd lengths."


def _pair(lengths: Lengths) -> tuple[TensorVariable, TensorVariable]:
    return as_length(lengths[0]), as_length(lengths[1])


def images2neibs(
    ten4: TensorLike,
    neib_shape: Lengths,
    neib_step: Lengths | None = None,
    mode: NeibMode = "valid",
) -> TensorVariable:
    """A matrix with a row for each neighbourhood of each channel of images.

    Parameters
    ----------
    ten4 : images (batch, channels, rows, columns)
    neib_shape : the lengths of neighbourhoods
    neib_step : their distances; None: their lengths
    mode : where they are: ``"valid"`` and ``"ignore_borders"``: where they fit in; ``"half"``,
        ``"full"``: as well around the images, by half their length, or by all but one element,
        where zeros are; ``"wrap_centered"``: around the elements at all multiples of the steps,
        beyond the end the image begins again

    ValueError for other modes, and for even lengths if they are centered.  ShapeError if elements
    belong to no neighbourhood, but for the mode ``"ignore_borders"``.

    >>> import phintys.tensor as pt
    >>> pt.nnet.images2neibs(pt.arange(8).reshape((1, 1, 2, 4)), (2, 2)).eval()
    array([[0, 1, 4, 5],
           [2, 3, 6, 7]])
    """
    if mode not in get_args(NeibMode):
        raise ValueError(f"The mode is one of {', '.join(get_args(NeibMode))}; not {mode!r}.")
    x, sizes = as_tensor_variable(ten4), _pair(neib_shape)
    if x.type.ndim != 4:
        raise TypeError(f"images2neibs takes tensors with 4 axes; {x} has {x.type.ndim}.")
    steps = sizes if neib_step is None else _pair(neib_step)
    if any(isinstance(k, Constant) and int(k.data) < 1 for k in (*sizes, *steps)):
        raise ValueError(_POSITIVE)
    same = neib_step is None
    sizes = tuple([positive(k, _POSITIVE) for k in sizes])
    steps = sizes if same else tuple([positive(k, _POSITIVE) for k in steps])
    lengths = [as_length(n) for n in shape_tuple(x)[2:]]
    if mode == "wrap_centered":
        if any(isinstance(k, Constant) and int(k.data) % 2 == 0 for k in sizes):
            raise ValueError(_ODD)
        sizes = tuple(
            [
                k if isinstance(k, Constant) else required(k, _ODD, functions.eq(k % 2, 1))
                for k in sizes
            ]
        )
        counts = [(n - 1) // s + 1 for n, s in zip(lengths, steps)]
        for axis, (n, c, s, k) in enumerate(zip(lengths, counts, steps, sizes), 2):
            positions = arange((c - 1) * s + k) - k // 2
            x = take(x, functions.mod(positions, n), axis)
    else:
        margins = {"half": [k // 2 for k in sizes], "full": [k - 1 for k in sizes]}.get(mode)
        if margins is not None:
            x = pad(x, [(0, 0), (0, 0), *[(m, m) for m in margins]])
            lengths = [n + 2 * m for n, m in zip(lengths, margins)]
        counts = [
            functions.maximum((n - k) // s + 1, as_length(0))
            for n, s, k in zip(lengths, steps, sizes)
        ]
        if mode != "ignore_borders":
            needed = [
                functions.maximum(c - 1, as_length(0)) * s + k
                for c, s, k in zip(counts, steps, sizes)
            ]
            x = specify_shape(x, [None, None, *needed])
    windows = sliding_windows(x, counts, sizes, steps)
    return windows.reshape((-1, sizes[0] * sizes[1]))


def neibs2images(
    neibs: TensorLike,
    neib_shape: Lengths,
    original_shape: Lengths,
    mode: Literal["valid", "ignore_borders"] = "valid",
) -> TensorVariable:
    """The images of which `images2neibs` makes rows of neighbourhoods that are next to each other.

    ``original_shape`` is the shape of the images.  Elements of which there is no neighbourhood
    become zeros if the mode is ``"ignore_borders"``; in the mode ``"valid"`` they are a ShapeError.
    ValueError for other modes.
    """
    if mode not in ("valid", "ignore_borders"):
        raise ValueError(f"The mode is 'valid' or 'ignore_borders', not {mode!r}.")
    rows, sizes = as_tensor_variable(neibs), [positive(k, _POSITIVE) for k in _pair(neib_shape)]
    batch, channels, *lengths = (as_length(original_shape[k]) for k in range(4))
    counts = [n // k for n, k in zip(lengths, sizes)]
    x = dimshuffle(rows.reshape((batch, channels, *counts, *sizes)), 0, 1, 2, 4, 3, 5)
    whole = [n * k for n, k in zip(counts, sizes)]
    if mode == "valid":
        return x.reshape((batch, channels, *lengths))
    x = x.reshape((batch, channels, *whole))
    return pad(x, [(0, 0), (0, 0), *[(0, n - m) for n, m in zip(lengths, whole)]])
