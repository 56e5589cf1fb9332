"""Search in sorted vectors, and the greatest elements: `searchsorted`, `topk`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.dims import product
from phintys.graph.ignored import ignores
from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply
from phintys.routines import Array, Longs, Real, routine
from phintys.scalar import dtypes
from phintys.tensor.aliases import Side
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.index import take_along_axis
from phintys.tensor.ranges import arange
from phintys.tensor.reshape import flatten
from phintys.tensor.shape import length, normalize_axis_tuple
from phintys.tensor.sort import argsort
from phintys.tensor.static import as_length, known_length
from phintys.tensor.type import typed_node

__all__ = ["argtopk", "searchsorted", "topk", "topk_and_argtopk"]

# ======================================================================== SearchsortedOp


class SearchsortedOp(Op):
    """The positions (int64) at which numbers are inserted into a sorted vector to keep the order.

    Inputs: the vector and the numbers.  NaN is greater than all numbers.

    Parameters
    ----------
    side
        ``"left"``: before elements that equal the number, ``"right"``: after them
    """

    # ----- class and static shape
    __props__ = ("side",)
    not_differentiable = "its results are integers"
    handles_missing = False

    def __init__(self, side: Side = "left") -> None:
        if side not in ("left", "right"):
            raise ValueError(f"The side of searchsorted is 'left' or 'right', not {side!r}.")
        self.side: Side = side

    def make_node(self, x: Any, v: Any, sorter: Any = None) -> Apply:
        x, v = as_tensor_variable(x), as_tensor_variable(v)
        if x.type.ndim != 1:
            raise ValueError(f"searchsorted searches vectors; {x} has type {x.type}.")
        if sorter is not None:
            sorter = as_tensor_variable(sorter)
            if sorter.type.ndim != 1 or sorter.type.dtype not in dtypes.INTEGER:
                raise TypeError(f"The sorter is an integer vector; {sorter} is {sorter.type}.")
            x = x[sorter]
        return typed_node(self, [x, v], "int64")

    def shape_rule(self, s: ShapeContext, x: Shape, v: Shape) -> list[Shape]:
        return [v]

    # ----- perform
    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: list[list[Any]]
    ) -> None:
        x, v = inputs
        output_storage[0][0] = np.asarray(np.searchsorted(x, v, self.side), dtype="int64")

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        x, v = batched_inputs
        if x.type.ndim == 1:
            return self.make_node(x, v)
        axes = ",".join(f"a{k}" for k in range(node.inputs[1].type.ndim))
        return Blockwise(self, f"(n),({axes})->({axes})").make_node(x, v)

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        return self.lower_batched(node, b, *inputs)

    def lower_batched(self, node: Apply, b: Any, x: Any, v: Any) -> Any:
        dtype = common_dtype(node)
        core = b.shape(v)[v.ndim - node.inputs[1].type.ndim :]
        batch = b.broadcast_shape([b.shape(x)[:-1], b.shape(v)[: v.ndim - len(core)]])
        n, m = b.length(x, -1), product(core)
        x = b.broadcast_to(b.cast(x, dtype), (*batch, n))
        v = b.broadcast_to(b.cast(v, dtype), (*batch, *core))
        writes, right = [("int64", core)], int(self.side == "right")
        return b.external(
            insertion_points, dtype, (right, n, m), [x, v], writes=writes, batch=batch, work=64 * m
        )


def common_dtype(node: Apply) -> str:
    """The dtype in which the inputs of a node are compared; uint8 for bools."""
    found = np.result_type(*(x.type.dtype for x in node.inputs)).name
    return {"bool": "uint8", "float16": "float32"}.get(found, found)


def _precedes(a: Real, b: Real, right: int) -> int:
    """1 if ``a < b``, with ``right`` if ``a <= b``, else 0; NaN is greater than all numbers."""
    found = a < b or (b != b and a == a)
    if right == 1:
        found = not (b < a or (a != a and b == b))
    return 1 if found else 0


@routine(
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    (ValueError, "The positions were not found."),
)
def insertion_points(right: int, n: int, m: int, x: Array, v: Array, found: Longs) -> int:
    """Write the positions of the numbers v[m] in x[n].

    The search for a number that is not less than the one before begins where that one was found,
    and otherwise it ends there, as in NumPy up to 2.4.
    """
    low = 0
    high = n
    for i in range(m):
        if _precedes(v[i - 1 if i > 0 else 0], v[i], right) == 1:
            high = n
        else:
            low = 0
            high = high + 1 if high < n else n
        while low < high:
            middle = low + (high - low) // 2
            if _precedes(x[middle], v[i], right) == 1:
                low = middle + 1
            else:
                high = middle
        found[i] = low
    return 0


def searchsorted(x: Any, v: Any, side: Side = "left", sorter: Any = None) -> Any:
    """The positions (int64) at which numbers are inserted into a sorted vector to keep the order.

    Parameters
    ----------
    x : vector in ascending order; NaN is greater than all numbers
    v : tensor of any shape, which the result has as well
    side : ``"left"``: before elements that equal the number, ``"right"``: after them
    sorter : integer vector that sorts ``x`` (`argsort`) if it is not in ascending order

    Raises
    ------
    TypeError if ``x`` or ``sorter`` is not a vector, or ``sorter`` has no integer dtype;
    ValueError for another side.

    >>> import phintys.tensor as pt
    >>> pt.searchsorted([1, 3, 5], [0, 3, 4]).eval()
    array([0, 1, 2])
    >>> pt.searchsorted([1, 3, 5], 3, side="right").eval()
    array(2)
    """
    return SearchsortedOp(side)(x, v, sorter)


# ================================================================== the greatest elements


@ignores("sorted")
def topk_and_argtopk(
    x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64"
) -> list[Any]:
    """The results of `topk` and `argtopk`."""
    x = as_tensor_variable(x)
    if axis is None:
        x, axis = flatten(x), 0
    (axis,) = normalize_axis_tuple(axis, x.type.ndim)
    kept = _kept_positions(as_length(kth), length(x, axis))
    if dtypes.kind(idx_dtype) not in "iu":
        raise TypeError(f"Positions have an integer dtype, not {idx_dtype}.")
    positions = argsort(x, axis, stable=True)[(*[slice(None)] * axis, kept)]
    return [take_along_axis(x, positions, axis), cast(positions, idx_dtype)]


def _kept_positions(kth: Any, n: Any) -> Any:
    """The positions of the elements of `topk` among ``n`` in ascending order, as an index."""
    k, known = known_length(kth), known_length(n)
    if k is None:
        i = arange(functions.minimum(functions.abs(kth), n))
        return functions.switch(functions.gt(kth, 0), n - 1 - i, i)
    if k == 0:
        raise ValueError("kth is the number of elements; it cannot be 0.")
    if known is not None and abs(k) > known:
        raise ValueError(f"There are no {abs(k)} elements along an axis of length {known}.")
    return slice(-1, -k - 1, -1) if k > 0 else slice(0, -k)


def topk(
    x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64"
) -> Any:
    """The ``kth`` greatest elements along an axis, or the ``-kth`` smallest.

    Parameters
    ----------
    x : tensor with at least one axis
    kth : the number of elements, an integer or an integer variable; negative for the smallest
    axis : None flattens
    sorted : accepted for compatibility: the greatest elements are in descending order, the smallest
        ones in ascending order
    idx_dtype : of the positions

    Raises
    ------
    TypeError if ``kth`` is no integer; ValueError if it is known to be 0, or more than there are.
    At run time there are fewer elements then.

    >>> import phintys.tensor as pt
    >>> pt.topk([3, 1, 4, 1, 5], 2).eval()
    array([5, 4])
    >>> pt.topk([3, 1, 4, 1, 5], -3).eval()
    array([1, 1, 3])
    """
    return topk_and_argtopk(x, kth, axis, sorted, idx_dtype)[0]


def argtopk(
    x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64"
) -> Any:
    """The positions of the elements of `topk`."""
    return topk_and_argtopk(x, kth, axis, sorted, idx_dtype)[1]
