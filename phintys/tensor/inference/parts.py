"""Reading graphs of matrices: transposes, diagonals that are written, masks of triangles."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from phintys.graph.variable import Constant, Variable
from phintys.tensor.convert import constant
from phintys.tensor.creation import Alloc, alloc
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.index_list import FULL
from phintys.tensor.index_ops import AdvancedIncSubtensor
from phintys.tensor.ranges import ARange, Eye
from phintys.tensor.shape import Shape_i
from phintys.tensor.static import known_constant
from phintys.tensor.variable import TensorConstant

#: Diagonals from the first to the second; 0 is the main diagonal, positive ones are above it.
Band = tuple[float, float]
#: dtypes in which differences of positions do not wrap, and dtypes that hold all positions
SIGNED = ("int32", "int64")
WIDE = (*SIGNED, "uint32", "uint64")


class Diagonal(NamedTuple):
    """``base`` with ``values`` written on (or added to) the diagonal with an offset."""

    base: Variable
    values: Variable
    offset: int
    is_set: bool


def rank(v: Variable) -> int:
    """The number of axes of a variable; 0 if it is no tensor."""
    return len(getattr(v.type, "shape", ()))


def same_part(a: slice, b: slice) -> bool:
    """Whether two slices of axes of one length have the same positions."""
    pairs = zip((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return all(
        n is m or (isinstance(n, Variable) and isinstance(m, Variable) and same_length(n, m))
        for n, m in pairs
    )


def fills_matrix(v: Variable) -> bool:
    """Whether all elements of a matrix are one, because both axes have length 1."""
    flags = v.type.broadcastable[-2:]
    return all(flags)


def same_axes(v: Variable, out: Variable) -> bool:
    """Whether an operand of an elementwise function is not repeated along the axes of a matrix."""
    return rank(v) == rank(out) and v.type.broadcastable[-2:] == out.type.broadcastable[-2:]


def transposed(v: Variable) -> Variable | None:
    """``x`` if ``v`` is its transpose in the last two axes, else None."""
    node = v.owner
    is_transpose = (
        node is not None and isinstance(node.op, DimShuffle) and node.op.is_matrix_transpose
    )
    return node.inputs[0] if node is not None and is_transpose else None


def are_transposes(x: Variable, y: Variable) -> bool:
    """Whether one of two matrices is computed as the transpose of the other."""
    return transposed(x) is y or transposed(y) is x


def applied(v: Variable, *names: str) -> bool:
    """Whether a variable is computed by one of some elementwise functions."""
    node = v.owner
    return node is not None and type(node.op) is Elemwise and node.op.scalar_op.name in names


def is_zero(v: Variable) -> bool:
    """Whether all elements are known to be 0."""
    return known_constant(v) == 0


# ------------------------------------------------------------------------------- diagonals


def first_position(v: Variable) -> int | None:
    """``c`` if a vector of indices is ``c, c + 1, c + 2, ...`` with ``c >= 0``, else None."""
    if isinstance(v, TensorConstant):
        values = v.data
        if values.ndim != 1 or not values.size or values.dtype.kind not in "iu" or values[0] < 0:
            return None
        is_run = np.array_equal(values, np.arange(values[0], values[0] + values.size))
        return int(values[0]) if is_run else None
    if applied(v, "add") and v.owner is not None and len(v.owner.inputs) == 2:
        for shift, run in (v.owner.inputs, v.owner.inputs[::-1]):
            c, first = known_constant(shift), _first_of_range(run)
            if isinstance(c, int) and first is not None and c + first >= 0:
                return c + first
        return None
    return _first_of_range(v)


def _first_of_range(v: Variable) -> int | None:
    node = v.owner
    if node is None or not isinstance(node.op, ARange) or node.op.dtype not in WIDE:
        return None
    start, step = known_constant(node.inputs[0]), known_constant(node.inputs[2])
    return int(start.real) if start is not None and start.real >= 0 and step == 1 else None


def written_diagonal(v: Variable) -> Diagonal | None:
    """What ``v`` is, if it is written on a diagonal of its last two axes; else None."""
    node = v.owner
    if node is None or not isinstance(node.op, AdvancedIncSubtensor):
        return None
    base, values, *indices = node.inputs
    *leading, row, column = (FULL, *node.op.idx_list)[-max(len(node.op.idx_list), 2) :]
    if len(node.op.idx_list) != rank(base) or any(e != FULL for e in leading):
        return None
    if not isinstance(row, int) or not isinstance(column, int) or len(indices) != 2:
        return None
    rows, columns = indices[row], indices[column]
    if rows.type.broadcastable != columns.type.broadcastable:  # one of them is repeated
        return None
    down, right = first_position(rows), first_position(columns)
    if down is None or right is None:
        return None
    return Diagonal(base, values, right - down, node.op.set_instead_of_inc)


def diagonal_values(v: Variable) -> Variable | None:
    """``d`` if ``v`` is made as the square matrix with diagonal ``d`` and zeros, else None."""
    node = v.owner
    if node is not None and isinstance(node.op, Eye):
        rows, columns, offset = node.inputs
        whole = known_constant(offset) == 0 and same_length(rows, columns)
        return alloc(constant(1, dtype=node.op.dtype), rows) if whole else None
    found = written_diagonal(v)
    if found is None or found.offset != 0 or not is_zero(found.base):
        return None
    shape, values = v.type.shape, found.values.type.shape
    if shape[-1] is not None:
        whole = shape[-2:] == (shape[-1], shape[-1]) and values[-1:] == shape[-1:]
    else:
        whole = values[-1:] != (1,) and _is_written_whole(v)  # one number fills the diagonal
    same_batch = len(values) == len(shape) - 1 and not any(
        m == 1 and n != 1 for n, m in zip(shape[:-2], values)
    )
    return found.values if whole and same_batch else None


def _is_written_whole(v: Variable) -> bool:
    """Whether the base is a square fill, of the length up to which its diagonal is written."""
    base, _, positions, *_ = v.owner.inputs if v.owner is not None else (v, v, v)
    fill, run = base.owner, positions.owner
    if fill is None or run is None:
        return False
    if not isinstance(fill.op, Alloc) or not isinstance(run.op, ARange):
        return False
    rows, columns = fill.inputs[-2:]
    start, stop, _ = run.inputs
    return same_length(rows, columns) and same_length(stop, rows) and known_constant(start) == 0


def same_length(n: Variable, m: Variable) -> bool:
    """Whether two lengths are one variable, the same number, or those of the same axis."""
    if n is m:
        return True
    if isinstance(n, Constant) and isinstance(m, Constant):
        return known_constant(n) == known_constant(m)
    a, b = n.owner, m.owner
    return (
        a is not None
        and b is not None
        and isinstance(a.op, Shape_i)
        and a.op == b.op
        and a.inputs[0] is b.inputs[0]
    )


# ----------------------------------------------------------------------------------- masks


def mask_band(v: Variable) -> Band | None:
    """The diagonals outside of which a mask is known to be false; None if it is no such mask."""
    if isinstance(v, TensorConstant):
        return _band_of_constant(v.data)
    while v.owner is not None and isinstance(v.owner.op, DimShuffle):
        if not v.owner.op.is_left_expand_dims:
            return None
        v = v.owner.inputs[0]
    if not applied(v, "ge", "gt", "le", "lt") or v.owner is None:
        return None
    name, (a, b) = v.owner.op.scalar_op.name, v.owner.inputs
    if is_offset(a):  # a >= b is b <= a
        name, a, b = {"g": "l", "l": "g"}[name[0]] + name[1], b, a
    k = known_constant(a)
    if not is_offset(b) or k is None:
        return None
    if name[0] == "g":
        return (-inf, k.real if name == "ge" else k.real - 1)
    return (k.real if name == "le" else k.real + 1, inf)


def _band_of_constant(mask: np.ndarray[Any, Any]) -> Band | None:
    if mask.ndim < 2 or mask.dtype.kind != "b":
        return None
    rows, columns = np.nonzero(mask.any(axis=tuple(range(mask.ndim - 2))))
    offsets = columns - rows
    return (float(offsets.min()), float(offsets.max())) if offsets.size else (inf, -inf)


def is_offset(v: Variable) -> bool:
    """Whether ``v`` is a matrix of the offsets of diagonals: column minus row."""
    if v.owner is None or not applied(v, "add", "sub") or len(v.owner.inputs) != 2:
        return False
    if v.type.dtype not in SIGNED:
        return False
    a, b = v.owner.inputs
    if applied(v, "sub"):
        return _counts(a, -1) and _counts(b, -2)
    negated = [(a, b), (b, a)]
    return any(_counts(x, -1) and _is_negative_count(y) for x, y in negated)


def _is_negative_count(v: Variable) -> bool:
    """Whether ``v`` is -1 times the number of the row."""
    if v.owner is None or not applied(v, "mul", "neg"):
        return False
    factors = v.owner.inputs
    if applied(v, "neg"):
        return _counts(factors[0], -2)
    pairs = [factors, factors[::-1]] if len(factors) == 2 else []
    return any(known_constant(x) == -1 and _counts(y, -2) for x, y in pairs)


def _counts(v: Variable, axis: int) -> bool:
    """Whether ``v`` counts 0, 1, 2, ... along one of the last two axes, and no other."""
    if isinstance(v, TensorConstant):
        size = v.data.size
        shape = (1, size) if axis == -1 else (size, 1)
        return v.data.shape == shape and np.array_equal(v.data.ravel(), np.arange(size))
    node = v.owner
    if node is None or not isinstance(node.op, DimShuffle) or rank(v) < 2:
        return False
    order = node.op.new_order
    kept = [i for i, o in enumerate(order) if o != "x"]
    return kept == [len(order) + axis] and first_position(node.inputs[0]) == 0
