"""Index lists of indexing ops, and the lengths of slices.

``idx_list`` of every indexing op has the form of PyTensor 3: one entry per indexed axis, an int
(the position of the index among the index inputs) or a slice whose parts are such positions or
None.  Index inputs of `Subtensor` and `IncSubtensor` are integer scalars, those of the advanced ops
are tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from phintys.dims import Dim, DimLike, as_dim, dim_max, dim_min, from_end, slice_range
from phintys.errors import NotScalarConstantError
from phintys.graph.op import Op
from phintys.graph.variable import Constant, Variable
from phintys.scalar import dtypes
from phintys.scalar.type import ScalarConstant, as_scalar, scalar_type
from phintys.scalar.type import constant as scalar_constant
from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import functions
from phintys.tensor.inferred import as_variable
from phintys.tensor.static import as_length
from phintys.tensor.type_other import NoneTypeT, SliceConstant
from phintys.tensor.variable import TensorVariable

FULL = slice(None, None, None)
_INT64 = scalar_type("int64")
Entry = int | slice
T = TypeVar("T")
#: an index along one axis: a position, or a slice whose parts are positions or None
AxisIndex = Variable | int | slice


class IndexOp(Op):
    """Base class of indexing ops, which have an ``idx_list``."""

    __props__ = ("idx_list",)
    equality_props = ("hashable",)
    handles_missing = False
    idx_list: tuple[Entry, ...]

    def __init__(self, idx_list: Sequence[Entry]) -> None:
        self.idx_list = tuple(idx_list)
        self.n_indices = 1 + max([p for e in self.idx_list for p in positions(e)], default=-1)
        # slices are not hashable before Python 3.12
        entries = (parts(e) if isinstance(e, slice) else e for e in self.idx_list)
        self.hashable = (*entries, *(getattr(self, p) for p in self.__props__ if p != "idx_list"))

    def key(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The Python index, with ``values`` in place of positions."""
        return indices_from_subtensor([_within_int64(v) for v in values], self.idx_list)

    def entry(self, axis: int) -> Entry:
        """The entry of an axis of basic indexing; axes that are not named are kept whole."""
        return self.idx_list[axis] if axis < len(self.idx_list) else FULL

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.text()}}}"

    def text(self) -> str:
        """The entries as text: index inputs are called i, j, ..., and start, stop or step.

        >>> IndexOp([0, slice(1, None), slice(None, 2, 3), 4]).text()
        'i, start:, :stop:step, j'
        """
        names = iter("ijklmnopqrstuvwxyz")
        return ", ".join(
            [_text(e) if isinstance(e, slice) else next(names, "i") for e in self.idx_list]
        )


def _within_int64(index: Any) -> Any:
    """An index; a 0-d uint64 beyond int64, which NumPy rejects, becomes the largest int64."""
    is_number = isinstance(index, np.ndarray | np.generic) and index.ndim == 0
    too_large = is_number and index.dtype == "uint64" and int(index) >= 2**63
    return 2**63 - 1 if too_large else index


def _text(e: slice) -> str:
    names = zip(("start", "stop", "step"), parts(e))
    start, stop, step = ("" if p is None else name for name, p in names)
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


def parts(e: slice) -> tuple[Any, Any, Any]:
    """The start, stop and step of a slice."""
    return e.start, e.stop, e.step


def positions(e: Entry) -> list[int]:
    """The positions of the index inputs that an entry uses."""
    return [e] if isinstance(e, int) else [p for p in parts(e) if p is not None]


# ------------------------------------------------------------ between indices and idx_list


def flatten_index_variables(idx_vars: Sequence[T | slice | None]) -> tuple[list[Entry], list[T]]:
    """The ``idx_list`` of a Python index, and its index variables in order.

    >>> flatten_index_variables([slice(2, None), 5])
    ([slice(0, None, None), 1], [2, 5])
    """
    found: list[T] = []

    def place(value: T | None) -> int | None:
        if value is None or isinstance(getattr(value, "type", None), NoneTypeT):
            return None
        found.append(value)
        return len(found) - 1

    entries: list[Any] = [
        slice(*(place(p) for p in parts(e))) if isinstance(e, slice) else place(e) for e in idx_vars
    ]
    return entries, found


def indices_from_subtensor(
    op_indices: Sequence[T], idx_list: Sequence[Entry]
) -> tuple[T | slice, ...]:
    """The Python index, from the index inputs of an op and its ``idx_list``.

    >>> indices_from_subtensor([2, 5], (slice(0, None), 1))
    (slice(2, None, None), 5)
    """

    def at(p: int | None) -> T | None:
        return None if p is None else op_indices[p]

    return tuple(
        slice(*(at(p) for p in parts(e))) if isinstance(e, slice) else op_indices[e]
        for e in idx_list
    )


def unflatten_index_variables(
    flat: Sequence[T], idx_list: Sequence[Entry]
) -> tuple[T | slice, ...]:
    """The inverse of `flatten_index_variables`."""
    return indices_from_subtensor(flat, idx_list)


def get_idx_list(inputs: Sequence[T], idx_list: Sequence[Entry]) -> tuple[T | slice, ...]:
    """The Python index, from all inputs of a `Subtensor` or `AdvancedSubtensor`."""
    return indices_from_subtensor(inputs[1:], idx_list)


# ----------------------------------------------------------------------- index variables


def literal(v: object) -> int | None:
    """The integer of a constant index, else None."""
    if isinstance(v, (int, np.integer)):
        return int(v)
    return int(v.data) if isinstance(v, Constant) and np.ndim(v.data) == 0 else None


def index_scalar(i: Length) -> Variable:
    """An index as an integer scalar variable; constants become int64."""
    if type(i) is int:
        return ScalarConstant(_INT64, np.int64(i))
    if not isinstance(i, Variable):
        return scalar_constant(np.int64(i))
    if type(i) is ScalarConstant and i.type.dtype == "int64":
        return i
    if i.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"Indices are integers; {i} has dtype {i.type.dtype}.")
    known = literal(i)
    return as_scalar(i) if known is None else scalar_constant(np.int64(known))


def index_tensor(i: TensorLike) -> TensorVariable:
    """An index as an integer or boolean tensor variable."""
    found = as_tensor_variable(i)
    if not dtypes.is_discrete(found.type.dtype):
        raise TypeError(f"Indices are integers or booleans; {i} has dtype {found.type.dtype}.")
    return found


# ------------------------------------------------------------------------------- slices


class Symbols:
    """Conversion of integers and integer variables to Dims, and of Dims to tensor variables."""

    def __init__(self) -> None:
        self.variables: dict[Dim, Variable] = {}

    def dim(self, x: Length, kind: str = "item") -> Dim:
        """The Dim of a number or variable; kind ``len`` says that it is not negative."""
        known = literal(x)
        if known is not None:
            return Dim.const(known)
        symbol = Dim.symbol((kind, len(self.variables)))
        self.variables[symbol] = as_length(x)
        return symbol

    def tensor(self, dim: Dim) -> TensorVariable:
        """The value of a Dim, a 0-d int64 variable."""
        found = as_variable(dim, self.variables)
        assert found is not None
        return found

    def number(self, dim: Dim) -> TensorVariable | int:
        """The value of a Dim: an int if it is known, else a variable."""
        return self.tensor(dim) if dim.value is None else dim.value


def slice_dims(
    e: slice, dims: Sequence[Dim] | Mapping[int, Dim], n: DimLike, forward: bool = True
) -> tuple[Dim, Dim, Dim]:
    """(first position, step, length) of a slice entry; ``dims`` are the values of the indices.

    ``forward`` is the sign of a step that is not constant.  ValueError for step 0.
    """
    start, stop, step = (None if p is None else dims[p] for p in parts(e))
    step = as_dim(1) if step is None else step
    if step.value == 0:
        raise ValueError("The step of a slice cannot be 0.")
    first, length = slice_range(start, stop, step, n, forward)
    return first, step, length


def slice_length(e: slice, dims: Sequence[Dim] | Mapping[int, Dim], n: DimLike) -> Dim:
    """The length of a slice of ``n`` elements; ``dims`` are the values of the indices."""
    start, stop, step = (None if p is None else dims[p] for p in parts(e))
    if step is None or step.value is not None:
        return slice_dims(e, dims, n)[2]
    ahead = dim_min(dim_max(step, 0), 1)  # 1 where the step is positive, else 0
    forwards = slice_range(start, stop, dim_max(step, 1), n, True)[1]
    backwards = slice_range(start, stop, dim_min(step, -1), n, False)[1]
    return ahead * forwards + (1 - ahead) * backwards


def flatten_slice(slc: slice) -> tuple[slice, list[Length]]:
    """`flatten_index_variables` of one slice."""
    (entry,), indices = flatten_index_variables([slc])
    return cast("slice", entry), indices


def symbolic_length(e: slice, indices: Sequence[Length], n: Length) -> TensorVariable:
    """The length of a slice of ``n`` elements, as a 0-d int64 variable."""
    symbols = Symbols()
    dims = [symbols.dim(i) for i in indices]
    return symbols.tensor(slice_length(e, dims, symbols.dim(n, "len")))


def slice_len(slc: slice, n: Length) -> TensorVariable:
    """The length of a slice of ``n`` elements as a 0-d int64 variable.

    >>> slice_len(slice(1, None, 2), 6).eval()
    array(3)
    """
    entry, indices = flatten_slice(slc)
    return symbolic_length(entry, indices, n)


def slice_static_length(slc: slice, dim_length: int | None) -> int | None:
    """The length of a slice of ``dim_length`` elements, or None if it is not known.

    >>> slice_static_length(slice(1, None), 10)
    9
    """
    entry, indices = flatten_slice(slc)
    symbols = Symbols()
    n = Dim.symbol(("len", "n")) if dim_length is None else dim_length
    return slice_length(entry, [symbols.dim(i) for i in indices], n).value


def get_canonical_form_slice(
    theslice: slice | Length, length: Length
) -> tuple[slice | TensorVariable | int, TensorVariable | int]:
    """An index of non-negative numbers equivalent to ``theslice``, and its direction.

    A slice becomes one with a positive step, within ``length``; the direction is -1 if its elements
    must be reversed, else 1.  An integer becomes a position (not checked), with 1.

    >>> get_canonical_form_slice(slice(None, None, -1), 10)
    (slice(0, 10, 1), -1)
    """
    symbols = Symbols()
    n = symbols.dim(length, "len")
    if not isinstance(theslice, slice):
        return symbols.number(from_end(symbols.dim(theslice), n)), 1
    entry, indices = flatten_slice(theslice)
    dims = [symbols.dim(i) for i in indices]

    def canonical(forward: bool) -> slice:
        first, step, count = slice_dims(entry, dims, n, forward)
        span = (count - 1) * step
        bounds = (first, first + span + 1) if forward else (first + span, first + 1)
        start, stop = (symbols.number(dim_max(d, 0)) for d in bounds)
        return slice(start, stop, symbols.number(step if forward else -step))

    step = as_dim(1) if theslice.step is None else dims[-1]
    if step.value is not None:
        return canonical(step.value > 0), 1 if step.value > 0 else -1
    ahead = functions.gt(symbols.tensor(step), 0)
    pairs = zip(parts(canonical(True)), parts(canonical(False)))
    return slice(*(functions.switch(ahead, a, b) for a, b in pairs)), functions.switch(ahead, 1, -1)


def as_index_literal(index: Any) -> Any:
    """An index of numbers, slices and None in place of one with constants.

    NotScalarConstantError if it is not constant, TypeError if it is no index.

    >>> import phintys.tensor as pt
    >>> as_index_literal(slice(1, pt.constant(3)))
    slice(1, 3, None)
    """
    if index is None or isinstance(index, int | np.integer):
        return index
    if isinstance(index, slice):
        return slice(*map(_as_part, (index.start, index.stop, index.step)))
    if not isinstance(index, Variable):
        raise TypeError(f"{index!r} is not an index along an axis.")
    return as_index_literal(index.data) if isinstance(index, SliceConstant) else _as_part(index)


def _as_part(index: Any) -> Any:
    if not isinstance(index, Variable):
        return index
    if not isinstance(index, Constant) or np.ndim(index.data) > 0:
        raise NotScalarConstantError(f"{index} is not one constant index.")
    return index.data if index.data is None else index.data.item()
