"""Index tensors and grids: `tril_indices`, `ix_`, `mgrid`, `meshgrid`, and selection by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from phintys.graph.ignored import ignores
from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.axes import expand_dims
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import spread
from phintys.tensor.elemwise import cast, dimshuffle, functions
from phintys.tensor.index import remainder, set_subtensor, take_along_axis
from phintys.tensor.join import stack
from phintys.tensor.nonzero import flatnonzero, nonzero
from phintys.tensor.ranges import arange, linspace, tri
from phintys.tensor.reshape import reshape
from phintys.tensor.shape import length, shape_tuple
from phintys.tensor.static import as_length

__all__ = [
    "choose",
    "ix_",
    "meshgrid",
    "mgrid",
    "ogrid",
    "put_along_axis",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
]

# ============================================================================= triangles


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Any, Any]:
    """The rows and columns of the elements on and below a diagonal of an ``n`` by ``m`` matrix.

    Parameters
    ----------
    n, m : numbers of rows and columns (default: ``m = n``)
    k : the diagonal: 0 for the main one, positive above it

    >>> import phintys.tensor as pt
    >>> rows, columns = pt.tril_indices(2)
    >>> rows.eval(), columns.eval()
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    rows, columns = nonzero(tri(n, m, k, dtype="bool"))
    return rows, columns


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Any, Any]:
    """The rows and columns of the elements on and above a diagonal; see `tril_indices`."""
    below = tri(n, m, as_length(k) - 1, dtype="bool")
    rows, columns = nonzero(functions.invert(below))
    return rows, columns


def tril_indices_from(a: Any, k: Any = 0) -> tuple[Any, Any]:
    """`tril_indices` for the shape of the matrix ``a``; ValueError if it is no matrix."""
    a = _matrix(a)
    return tril_indices(length(a, 0), k, length(a, 1))


def triu_indices_from(a: Any, k: Any = 0) -> tuple[Any, Any]:
    """`triu_indices` for the shape of the matrix ``a``; ValueError if it is no matrix."""
    a = _matrix(a)
    return triu_indices(length(a, 0), k, length(a, 1))


def _matrix(a: Any) -> Any:
    a = as_tensor_variable(a)
    if a.type.ndim != 2:
        raise ValueError(f"Triangles are those of matrices; {a} has {a.type.ndim} dimensions.")
    return a


# ================================================================================= grids


def ix_(*args: Any) -> tuple[Any, ...]:
    """Index tensors that select the rows, columns, ... at given positions.

    Parameters
    ----------
    args : integer vectors; bool vectors select the positions where they are true

    >>> import phintys.tensor as pt
    >>> x = pt.as_tensor([[1, 2, 3], [4, 5, 6]])
    >>> x[pt.ix_([0, 1], [2, 0])].eval()
    array([[3, 1],
           [6, 4]])
    """
    found: list[Any] = []
    for k, given in enumerate(args):
        empty = isinstance(given, Sequence) and not given
        i = as_tensor_variable(np.empty(0, "int64") if empty else given)
        if i.type.ndim != 1:
            raise ValueError(f"ix_ takes vectors; {i} has {i.type.ndim} dimensions.")
        i = flatnonzero(i) if i.type.dtype == "bool" else i
        found.append(dimshuffle(i, ["x"] * k + [0] + ["x"] * (len(args) - k - 1)))
    return tuple(found)


class _Grid:
    """The class of `mgrid` and `ogrid`."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self.sparse = name, sparse

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _axis(key)
        axes = [_axis(part) for part in key]
        dtype = dtypes.upcast(*(a.type.dtype for a in axes))
        along = ix_(*(cast(a, dtype) for a in axes))
        return list(along if self.sparse else spread(along))


def _axis(part: Any) -> Any:
    """The range of a slice; an imaginary step is a number of points, of which the stop is one."""
    if not isinstance(part, slice) or part.stop is None:
        raise TypeError(f"A grid is made of slices that have a stop, not {part!r}.")
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return linspace(start, part.stop, int(abs(part.step)))
    return arange(start, part.stop, 1 if part.step is None else part.step)


#: ``mgrid[0:n, 0:m]``: the coordinates of the points of a grid, one tensor for each axis, in a
#: list; one slice gives one vector.  The parts of slices may be symbolic.
mgrid = _Grid("mgrid", sparse=False)
#: As `mgrid`, with tensors that have length 1 along all axes but one.
ogrid = _Grid("ogrid", sparse=True)


@ignores("copy")
def meshgrid(
    *xi: Any, indexing: Literal["xy", "ij"] = "xy", sparse: bool = False, copy: bool = True
) -> list[Any]:
    """The coordinates of the points of a grid, one tensor for each axis.

    Parameters
    ----------
    xi : vectors (or numbers) of coordinates along each axis
    indexing : ``"ij"``: axes in the order of the arguments; ``"xy"``: the first two exchanged
    sparse : with length 1 along all axes but one
    copy : accepted for compatibility

    >>> import phintys.tensor as pt
    >>> x, y = pt.meshgrid([1, 2, 3], [4, 5])
    >>> y.eval()
    array([[4, 4, 4],
           [5, 5, 5]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}.")
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        order[:2] = 1, 0
    vectors = [as_tensor_variable(x) for x in xi]
    along = [
        dimshuffle(x, ["x" if axis != k or not x.type.ndim else 0 for axis in order])
        for k, x in enumerate(vectors)
    ]
    return list(along if sparse else spread(along))


# ============================================================================= selection


def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    """Elements of several tensors: ``choices[a[i]][i]`` at each position ``i``.

    Parameters
    ----------
    a : integer tensor
    choices : a sequence of tensors, or a tensor whose first axis numbers them; ``a`` and they
        broadcast against each other
    mode : how numbers out of range, negative ones included, are handled: ``"raise"`` raises
        IndexError at run time, ``"wrap"`` takes them modulo their number, ``"clip"`` takes the
        first or the last tensor

    >>> import phintys.tensor as pt
    >>> pt.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]]).eval()
    array([ 1, 20,  3])
    """
    a = as_tensor_variable(a)
    if not dtypes.is_discrete(a.type.dtype):
        raise TypeError(f"choose takes integers; {a} has dtype {a.type.dtype}.")
    if isinstance(choices, Variable | np.ndarray):
        tensors = as_tensor_variable(choices)
    else:
        tensors = stack(spread([as_tensor_variable(c) for c in choices]), 0)
    ndim = max(a.type.ndim, tensors.type.ndim - 1)
    missing = ndim - (tensors.type.ndim - 1)
    tensors = dimshuffle(tensors, [0, *["x"] * missing, *range(1, tensors.type.ndim)])
    count = length(tensors, 0)
    if mode == "wrap":
        a = remainder(a, count)
    elif mode == "clip":
        a = functions.clip(as_length(a), 0, count - 1)
    elif mode == "raise":  # an index counts from the end if it is negative
        a = functions.switch(functions.lt(a, 0), count, as_length(a))
    else:
        raise ValueError(f"choose has modes 'raise', 'clip' and 'wrap', not {mode!r}.")
    return take_along_axis(tensors, expand_dims(_padded(a, ndim), 0), 0)[0]


def _padded(x: Any, ndim: int) -> Any:
    return dimshuffle(x, ["x"] * (ndim - x.type.ndim) + list(range(x.type.ndim)))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> Any:
    """``arr`` with elements at given positions along an axis replaced.

    Unlike ``numpy.put_along_axis``, it returns the result.  Parameters as of `take_along_axis`;
    ``values`` broadcast against ``indices``.  The last value is kept for repeated positions.

    >>> import phintys.tensor as pt
    >>> x = pt.as_tensor([[3, 1, 2], [6, 5, 4]])
    >>> pt.put_along_axis(x, [[0], [2]], 9, axis=1).eval()
    array([[9, 1, 2],
           [6, 5, 9]])
    """
    arr = as_tensor_variable(arr)
    written = set_subtensor(take_along_axis(arr, indices, axis), values)
    return written if axis is not None else reshape(written, shape_tuple(arr))
