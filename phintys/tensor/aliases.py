"""The types of what functions of tensors take: `TensorLike`, `DTypeLike`, `Axis`, `ShapeLike`.

`phintys.tensor.variable` has `Tensors`, the type of what a derivative gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Literal, Union

import numpy as np

from phintys.graph.variable import Apply, Variable

#: what `as_tensor_variable` accepts (``complex`` stands for int, float and bool too), without the
#: classes that other packages register
TensorLike = Union[Variable, Apply, np.ndarray, np.generic, complex, Sequence["TensorLike"]]
#: a name, ``"floatX"`` included, a NumPy dtype, or a class of numbers
DTypeLike = Union[str, np.dtype, type]
#: one axis, or several
Axes = Union[int, np.integer, Sequence[int], np.ndarray]
#: axes of a reduction; None means all
Axis = Union[Axes, None]
#: one length or position
Length = Union[int, np.integer, Variable]
#: lengths, or an integer vector; a single length for vectors
ShapeLike = Union[Length, Sequence[Length], np.ndarray]
#: for each axis a length, or None if it is not known
StaticShape = tuple[int | None, ...]
#: what a type makes a static shape of; True means 1, False not known
ShapeOfType = Union[int, Sequence[int | None]]
#: an entry of a subscript, and a subscript
IndexEntry = Union[TensorLike, slice, EllipsisType, None]
Index = Union[IndexEntry, tuple[IndexEntry, ...]]
#: an entry of the new order of axes in `DimShuffle`
Place = Union[int, Literal["x"]]
#: algorithms of sorting
Kind = Literal["quicksort", "mergesort", "heapsort", "stable"]
#: where a number is inserted among elements that equal it
Side = Literal["left", "right"]
#: the values of a node's inputs, in ``perform``
Arrays = Sequence[np.ndarray]
