"""NumPy's broadcasting, for arrays of up to 64 axes: its own functions take 32."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

_MOST_AXES = 32


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which arrays of these shapes are broadcast; ValueError if there is none.

    >>> broadcast_shapes((2, 1), (3,)), len(broadcast_shapes((1,) * 40, (2,)))
    ((2, 3), 40)
    """
    if max(map(len, shapes), default=0) <= _MOST_AXES:
        return np.broadcast_shapes(*shapes)
    backwards = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    lengths = [np.broadcast_shapes(*((n,) for n in axis))[0] for axis in backwards]
    return tuple(reversed(lengths))


def broadcast_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``x`` broadcast to a shape, as a view that cannot be written to.

    >>> broadcast_to(np.ones(2), (1,) * 39 + (2,)).ndim
    40
    """
    if len(shape) <= _MOST_AXES:
        return np.broadcast_to(x, shape)
    kept = tuple(0 if n == 1 else stride for n, stride in zip(x.shape, x.strides))
    strides = (0,) * (len(shape) - x.ndim) + kept
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
