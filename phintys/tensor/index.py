"""User functions for indexing: reading (``x[i]``), setting and incrementing parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from phintys.errors import UnsupportedError
from phintys.graph.op import Op
from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.scalar.type import ScalarType
from phintys.tensor.aliases import Axis, Index, IndexEntry, Length, Place, TensorLike
from phintys.tensor.axes import expand_dims
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import DimShuffle, cast, dimshuffle, functions
from phintys.tensor.index_list import (
    FULL,
    flatten_index_variables,
    parts,
)
from phintys.tensor.index_ops import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from phintys.tensor.inferred import infer_shape
from phintys.tensor.nonzero import flatnonzero
from phintys.tensor.ranges import arange
from phintys.tensor.reshape import flatten
from phintys.tensor.shape import length, normalize_axis_tuple, shape_tuple
from phintys.tensor.static import as_length, known_length
from phintys.tensor.type import TensorType
from phintys.tensor.type_other import NoneTypeT, SliceType, slice_of
from phintys.tensor.variable import TensorVariable

#: an entry of a subscript after `_entry`
Subscript = Variable | int | slice | None
Parsed = Subscript | EllipsisType

__all__ = [
    "compress",
    "flip",
    "inc_subtensor",
    "nonzero_values",
    "set_subtensor",
    "slice_at_axis",
    "take",
    "take_along_axis",
]

# ------------------------------------------------------------------------------ reading


def getitem(x: TensorVariable, key: Index) -> TensorVariable:
    """``x[key]``: integers, slices, None, Ellipsis, integer and boolean tensors, as in NumPy.

    Slices may be variables (`make_slice`).  A list that contains slices is taken for a tuple.

    Raises
    ------
    TypeError
        for floats, Python bools and other things that are not indices
    IndexError
        for too many indices, or a constant index out of range

    >>> import numpy as np
    >>> import phintys.tensor as pt
    >>> x = pt.as_tensor(np.arange(6).reshape(2, 3))
    >>> getitem(x, (slice(None), [2, 0])).eval()
    array([[2, 0],
           [5, 3]])
    """
    if type(key) is int and x.type.ndim:  # frequent, and four times faster than the general case
        return _ENTRY(x, key)
    if isinstance(key, list) and any(isinstance(e, slice) for e in key):
        key = tuple(key)
    entries = [_entry(e) for e in (key if isinstance(key, tuple) else (key,))]
    x, entries, own_axes = _new_axes(x, _expand_ellipsis(x, entries))
    only_new_axes = own_axes is not None and all(
        isinstance(e, slice) and e == FULL for e in entries
    )
    found = x if only_new_axes else _read(x, entries)
    if own_axes is not None:
        found.tag.own_axes = own_axes
    return found


def _read(x: TensorVariable, entries: Sequence[Subscript]) -> TensorVariable:
    """The part of ``x`` that integers, slices and tensors without new axes select."""
    idx_list, indices = flatten_index_variables(entries)
    advanced = any(isinstance(e, Variable) and _is_advanced(e) for e in entries)
    return (AdvancedSubtensor if advanced else Subtensor)(idx_list)(x, *indices)


#: The op of ``x[i]``.
_ENTRY = Subtensor((0,))


def _is_advanced(i: Variable) -> bool:
    return i.type.ndim > 0 or i.type.dtype == "bool"


def _entry(e: IndexEntry) -> Parsed:
    """An index entry as None, Ellipsis, a slice, an int, a scalar or a tensor variable."""
    if isinstance(e, EllipsisType):
        return e
    if e is None or _is_none(e):
        return None
    if isinstance(e, Variable) and isinstance(e.type, SliceType):
        e = slice_of(e)
    if isinstance(e, slice):
        return slice(*(None if _is_none(p) else _slice_part(p) for p in parts(e)))
    if isinstance(e, bool | np.bool_):
        raise TypeError(
            "A Python bool is not an index: use None to add an axis, np.array(True) for a 0-d mask."
        )
    if isinstance(e, int | np.integer):
        return int(e)
    if isinstance(e, Variable) and isinstance(e.type, ScalarType):
        return e
    if isinstance(e, list | tuple) and _holds_bools(e):
        raise TypeError(
            "A list of bools is not an index: use an array, np.array([...]), or a boolean tensor."
        )
    return _tensor_index(e)


def _tensor_index(e: TensorLike) -> TensorVariable:
    if isinstance(e, list | tuple) and not e:
        return as_tensor_variable(np.empty(0, "int64"))
    if isinstance(e, str):
        raise TypeError(f"A string is not an index: {e!r}.")
    found = as_tensor_variable(e)
    if not dtypes.is_discrete(found.type.dtype):
        raise TypeError(
            "Indices are integers, slices, None, Ellipsis, and integer or boolean tensors; "
            f"{e} has dtype {found.type.dtype}."
        )
    return found


def _integer_index(e: TensorLike) -> TensorVariable:
    """As `_tensor_index`; NumPy's function raises IndexError for floats."""
    try:
        return _tensor_index(e)
    except TypeError as exc:
        raise IndexError(str(exc)) from None


def _is_none(e: object) -> bool:
    return e is None or isinstance(getattr(e, "type", None), NoneTypeT)


def _holds_bools(e: Sequence[object]) -> bool:
    return any(isinstance(i, bool) for i in np.ravel(np.array(e, dtype=object)))


def _slice_part(p: object) -> Variable | int:
    if isinstance(p, int | np.integer) and not isinstance(p, bool):
        return int(p)
    if isinstance(p, np.ndarray) and p.ndim == 0 and p.dtype.kind in "iu":
        return int(p)
    if not isinstance(p, Variable) or getattr(p.type, "ndim", None) != 0:
        raise TypeError(f"The parts of a slice are integers or integer scalars, not {p!r}.")
    if p.type.dtype in dtypes.INTEGER:
        return p
    raise TypeError(f"The parts of a slice are integers; {p} has dtype {p.type.dtype}.")


def _consumed(e: Subscript) -> int:
    """The number of axes that an entry indexes."""
    if e is None:
        return 0
    return e.type.ndim if isinstance(e, Variable) and e.type.dtype == "bool" else 1


def _expand_ellipsis(x: TensorVariable, entries: list[Parsed]) -> list[Subscript]:
    """The entries with an Ellipsis replaced by full slices; IndexError for too many indices."""
    dots = [k for k, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("An index can contain only one Ellipsis.")
    others = [e for e in entries if not isinstance(e, EllipsisType)]
    used = sum(map(_consumed, others))
    if used > x.type.ndim:
        raise IndexError(f"Too many indices: {used} for {x}, which has {x.type.ndim} dimensions.")
    if not dots:
        return others
    return [*others[: dots[0]], *[FULL] * (x.type.ndim - used), *others[dots[0] :]]


def _new_axes(
    x: TensorVariable, entries: list[Subscript]
) -> tuple[TensorVariable, list[Subscript], list[int] | None]:
    """``x`` with an axis of length 1 for every None and every 0-d mask, and the new entries.

    None becomes a full slice; a 0-d mask becomes a mask of length 1 on the new axis.  The last
    result are the positions of the other axes, None if there are no new ones.
    """
    if all(_consumed(e) for e in entries):
        return x, entries, None
    order: list[Place] = []
    axis = 0
    for e in entries:
        n = _consumed(e)
        if n:
            order += range(axis, axis + n)
        else:
            order.append("x")
        axis += n
    order += range(axis, x.type.ndim)
    own_axes = [k for k, place in enumerate(order) if place != "x"]
    return dimshuffle(x, order), [_on_new_axis(e) for e in entries], own_axes


def _on_new_axis(e: Subscript) -> Subscript:
    """The entry of the tensor with new axes; see `_new_axes`."""
    if e is None:
        return FULL
    return expand_dims(e, 0) if isinstance(e, Variable) and not _consumed(e) else e


# ------------------------------------------------------------------------------ writing


def set_subtensor(
    x: TensorLike, y: TensorLike, inplace: bool = False, tolerate_inplace_aliasing: bool = False
) -> TensorVariable:
    """The tensor that the indexing expression ``x`` reads from, with that part set to ``y``.

    ``y`` broadcasts, and is cast to the dtype of the tensor (floats are truncated to integers).
    For repeated indices the last value is kept.

    >>> import phintys.tensor as pt
    >>> x = pt.zeros(4)
    >>> pt.set_subtensor(x[1:3], 5).eval()
    array([0., 5., 5., 0.])
    """
    return inc_subtensor(x, y, inplace, True, tolerate_inplace_aliasing)


def inc_subtensor(
    x: TensorLike,
    y: TensorLike,
    inplace: bool = False,
    set_instead_of_inc: bool = False,
    tolerate_inplace_aliasing: bool = False,
    ignore_duplicates: bool = False,
) -> TensorVariable:
    """The tensor that the indexing expression ``x`` reads from, with ``y`` added to that part.

    Repeated indices accumulate, unless ``ignore_duplicates``.  The result has the axes of that
    tensor, without those that None adds to the indexing expression.  TypeError if ``x`` is not an
    indexing expression, or is a slice of integers to which floats are added.

    ``inplace`` overwrites the tensor, in graphs with a `DestroyHandler`; where the index is basic,
    ``tolerate_inplace_aliasing`` permits ``y`` to share its memory.

    >>> import phintys.tensor as pt
    >>> x = pt.zeros(3)
    >>> pt.inc_subtensor(x[[0, 0, 2]], 1).eval()
    array([2., 0., 1.])
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    own_axes = getattr(x.tag, "own_axes", None)
    if own_axes is not None and isinstance(x.owner_op, DimShuffle):  # ``x[:, None]``
        x = _read(x, [FULL] * x.type.ndim)
    node = x.owner
    if node is None or not isinstance(node.op, Subtensor | AdvancedSubtensor):
        raise TypeError(
            f"Only an indexing expression such as a[1:3] can be set or incremented, not {x}. To "
            "replace a whole tensor use the new value itself."
        )
    base, *indices = node.inputs
    if isinstance(node.op, Subtensor):
        if not set_instead_of_inc and x.type.ndim:
            _check_sum(base, y)
        tolerated = [(0, 1)] if tolerate_inplace_aliasing else None
        op: Op = IncSubtensor(node.op.idx_list, inplace, set_instead_of_inc, tolerated)
    else:
        op = AdvancedIncSubtensor(node.op.idx_list, inplace, set_instead_of_inc, ignore_duplicates)
    written = op(base, y, *indices)
    return written if own_axes is None else dimshuffle(written, own_axes)


def _check_sum(x: Variable, y: TensorVariable) -> None:
    """TypeError if floats are added to integers: as for ``x[1:] += y``."""
    to, added = x.type.dtype, y.type.dtype
    if dtypes.is_discrete(to) and dtypes.is_float(added):
        raise TypeError(
            f"{y} of dtype {added} cannot be added to a slice of {x}, which has dtype {to}. Cast "
            "one of them with astype."
        )


# ------------------------------------------------------------------ functions of an axis


def take(
    a: TensorLike, indices: TensorLike, axis: int | None = None, mode: str = "raise"
) -> TensorVariable:
    """Elements at integer positions along an axis; ``axis`` None: of the flattened tensor.

    ``mode`` tells how positions out of range are handled: ``"raise"`` raises IndexError, ``"clip"``
    clips them to the range (negative ones to 0), ``"wrap"`` takes them modulo the length.

    >>> import phintys.tensor as pt
    >>> pt.take(pt.as_tensor([10, 20, 30]), [0, 4], mode="wrap").eval()
    array([10, 20])
    """
    a = as_tensor_variable(a)
    if axis is None:
        a, axis = flatten(a), 0
    (axis,) = normalize_axis_tuple(axis, a.type.ndim)
    found = _tensor_index(indices)
    if mode == "clip":
        found = functions.clip(as_length(found), 0, length(a, axis) - 1)
    elif mode == "wrap":
        found = remainder(found, length(a, axis))
    elif mode != "raise":
        raise ValueError(f"take has modes 'raise', 'clip' and 'wrap', not {mode!r}.")
    return a[(*[FULL] * axis, found)]


def remainder(position: TensorVariable, n: TensorVariable) -> TensorVariable:
    """The remainder of positions of any integer dtype by a length, in a signed dtype."""
    if position.type.dtype == "uint64":  # mod would convert both to float64
        return cast(functions.mod(position, cast(n, "uint64")), "int64")
    return functions.mod(position, n)


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: int | None = 0) -> TensorVariable:
    """Elements at given positions along an axis, different for each entry of the other axes.

    ``indices`` has the rank of ``arr`` and broadcasts against its other axes.  ``axis`` None: both
    are flattened.

    >>> import phintys.tensor as pt
    >>> x = pt.as_tensor([[3, 1, 2], [6, 5, 4]])
    >>> pt.take_along_axis(x, [[2, 1], [0, 0]], axis=1).eval()
    array([[2, 1],
           [6, 6]])
    """
    arr, indices = as_tensor_variable(arr), _integer_index(indices)
    if axis is None:
        arr, axis = flatten(arr), 0
    if arr.type.ndim != indices.type.ndim:
        raise ValueError(
            f"take_along_axis needs indices of the rank of the tensor: {arr} has {arr.type.ndim} "
            f"dimensions, {indices} has {indices.type.ndim}."
        )
    (axis,) = normalize_axis_tuple(axis, arr.type.ndim)
    key = [
        dimshuffle(arange(length(arr, k)), ["x"] * k + [0] + ["x"] * (arr.type.ndim - k - 1))
        for k in range(arr.type.ndim)
    ]
    key[axis] = indices
    return arr[tuple(key)]


def compress(condition: TensorLike, x: TensorLike, axis: int | None = None) -> TensorVariable:
    """The slices of ``x`` along an axis at which ``condition``, a vector, is not zero.

    >>> import phintys.tensor as pt
    >>> pt.compress([0, 1, 1], pt.as_tensor([10, 20, 30])).eval()
    array([20, 30])
    """
    return take(x, flatnonzero(as_tensor_variable(condition)), axis=axis)


def nonzero_values(a: TensorLike) -> TensorVariable:
    """The elements that are not zero, as a vector.

    >>> import phintys.tensor as pt
    >>> pt.nonzero_values(pt.as_tensor([[0, 3], [4, 0]])).eval()
    array([3, 4])
    """
    a = as_tensor_variable(a)
    return flatten(a)[flatnonzero(a)]


def flip(arr: TensorLike, axis: Axis = None) -> TensorVariable:
    """``arr`` with the order of elements reversed along axes; None: along all.

    >>> import phintys.tensor as pt
    >>> pt.flip(pt.as_tensor([[1, 2], [3, 4]]), axis=1).eval()
    array([[2, 1],
           [4, 3]])
    """
    arr = as_tensor_variable(arr)
    axes = normalize_axis_tuple(range(arr.type.ndim) if axis is None else axis, arr.type.ndim)
    return arr[tuple(slice(None, None, -1) if k in axes else FULL for k in range(arr.type.ndim))]


def slice_at_axis(sl: slice, axis: int) -> tuple[slice | EllipsisType, ...]:
    """The index that slices one axis and keeps the others.

    >>> slice_at_axis(slice(0, 2), axis=1)
    (slice(None, None, None), slice(0, 2, None), Ellipsis)
    """
    if axis >= 0:
        return (*[FULL] * axis, sl, Ellipsis)
    return (Ellipsis, sl, *[FULL] * (-axis - 1))


# ------------------------------------------------------------------- shapes of results


def indexed_result_shape(
    array_shape: Sequence[Length], indices: Sequence[IndexEntry], indices_are_shapes: bool = False
) -> tuple[TensorVariable, ...]:
    """The shape of ``x[indices]`` from the shape of ``x``, as 0-d int64 variables.

    ``indices_are_shapes``: tensors among the indices are given as (tuples that are) their shapes.
    UnsupportedError where boolean indices make the shape depend on values.

    >>> [n.eval().item() for n in indexed_result_shape((10, 4), (slice(1, None), [0, 2, 3]))]
    [9, 3]
    """
    lengths = [as_length(n) for n in array_shape]
    given: dict[Variable, list[TensorVariable]] = {}
    entries: list[Any] = []
    for e in indices:
        if e is None:
            lengths.insert(len(entries), as_length(1))
        elif isinstance(e, tuple) and indices_are_shapes:
            shape = [as_length(n) for n in e]
            e = TensorType("int64", tuple(known_length(n) for n in shape))()
            given[e] = shape
        entries.append(FULL if e is None else _entry(e))
    idx_list, variables = flatten_index_variables(entries)
    tensors = [as_tensor_variable(v) for v in variables]
    x = TensorType("bool", tuple(map(known_length, lengths)))()
    node = AdvancedSubtensor(idx_list).make_node(x, *tensors)
    shapes = [lengths, *(given.get(t, shape_tuple(t)) for t in tensors)]
    (found,) = infer_shape(node, shapes)
    if found is None:
        raise UnsupportedError("The shape of a boolean index depends on its values.")
    return tuple(found)


def basic_shape(
    shape: Sequence[Length], indices: Sequence[IndexEntry]
) -> tuple[TensorVariable, ...]:
    """The shape of ``x[indices]`` for integers, slices and None; see `indexed_result_shape`."""
    return indexed_result_shape(shape, indices)
