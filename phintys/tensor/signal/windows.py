"""Windows that move over the last axes: what pooling and neighbourhoods have in common."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Constant
from phintys.tensor.aliases import Length
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.index import getitem, slice_at_axis, take
from phintys.tensor.raise_op import CheckAndRaise
from phintys.tensor.ranges import arange
from phintys.tensor.reshape import split_dims
from phintys.tensor.static import as_length
from phintys.tensor.variable import TensorVariable


def sliding_windows(
    x: TensorVariable, counts: Sequence[Length], sizes: Sequence[Length], steps: Sequence[Length]
) -> TensorVariable:
    """Windows of some sizes at multiples of some steps, along the last axes.

    Result: the axes of ``x``, with the numbers of windows as the lengths of the last ones, then
    axes of the sizes of windows.  The windows must be within ``x``.

    >>> import phintys.tensor as pt
    >>> sliding_windows(pt.arange(5), [2], [3], [2]).eval()
    array([[0, 1, 2],
           [2, 3, 4]])
    """
    ndim = len(counts)
    batch = x.type.ndim - ndim
    for k in reversed(range(ndim)):
        x = windows_along(x, batch + k, *(as_length(given[k]) for given in (counts, sizes, steps)))
    pairs = range(batch, batch + 2 * ndim)
    return dimshuffle(x, *range(batch), *pairs[::2], *pairs[1::2])


def windows_along(
    x: TensorVariable, axis: int, count: TensorVariable, size: TensorVariable, step: TensorVariable
) -> TensorVariable:
    """Windows along one axis, which becomes two: their number, and their size."""
    if _is_same(size, step):
        part = getitem(x, slice_at_axis(slice(0, count * size), axis))
        return split_dims(part, (count, size), axis)
    positions = dimshuffle(arange(count) * step, 0, "x") + arange(size)
    return take(x, positions, axis)


def required(n: TensorVariable, message: str, *conditions: TensorVariable) -> TensorVariable:
    """An integer.  A call raises ValueError if one of the conditions does not hold."""
    return cast(CheckAndRaise(ValueError, message)(n, *conditions), "int64")


def positive(n: TensorVariable, message: str) -> TensorVariable:
    """A length; one that is not known is checked at run time."""
    return n if isinstance(n, Constant) else required(n, message, functions.ge(n, 1))


def _is_same(a: TensorVariable, b: TensorVariable) -> bool:
    """Whether two lengths are known to be equal."""
    if isinstance(a, Constant) and isinstance(b, Constant):
        return int(a.data) == int(b.data)
    return a is b
