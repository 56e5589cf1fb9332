"""Rules for reads at tensors of positions, and by constant masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.graph.variable import Apply, Computed, Variable
from phintys.rewriting.rule import Replacement, rule
from phintys.tensor.convert import constant
from phintys.tensor.diagonal import ExtractDiag
from phintys.tensor.elemwise import cast
from phintys.tensor.index_list import (
    FULL,
    Entry,
    flatten_index_variables,
    unflatten_index_variables,
)
from phintys.tensor.index_ops import AdvancedSubtensor, IncSubtensor, may_repeat
from phintys.tensor.ranges import ARange
from phintys.tensor.rules.match import number
from phintys.tensor.rules.reading import is_full, read
from phintys.tensor.shape import Shape_i
from phintys.tensor.variable import TensorConstant, TensorVariable


def positions_along(index: object, n: int | None) -> range | None:
    """Constant positions in an axis of length ``n``, if they are in range and evenly spaced."""
    if not isinstance(index, TensorConstant) or n is None:
        return None
    data = index.data
    if data.ndim != 1 or data.dtype.kind not in "iu" or not data.size:
        return None
    if data.min() < -n or data.max() >= n:
        return None  # a slice is clipped where positions raise IndexError
    data = data.astype("int64")  # a narrow dtype may not hold the length
    found = np.where(data < 0, data + n, data)
    steps = np.unique(np.diff(found))
    step = int(steps[0]) if len(steps) else 1
    if len(steps) > 1 or step == 0:
        return None
    return range(int(found[0]), int(found[-1]) + (1 if step > 0 else -1), step)


def _as_slice(r: range) -> slice:
    return slice(r.start, None if r.stop < 0 else r.stop, None if r.step == 1 else r.step)


@rule(
    "x[constant positions] -> slice",
    "AdvancedSubtensor(x, *variables, idx_list=idx_list)",
    law="exact",
    tags=("local_adv_idx_to_slice",),
    tested_on=(
        "N[np.array([0, 1])]",
        "N[:, np.array([2, 1, 0])]",
        "N[np.array([-1])]",
        "K[:, arange(K.shape[1])]",
        "N[1:, np.array([0, 2])]",
    ),
)
def positions_to_slice(
    x: TensorVariable, variables: Sequence[Variable], idx_list: tuple[Entry, ...]
) -> Replacement:
    """Applies to constant, evenly spaced positions, known to be in range, and to all positions."""
    index: list[Any] = list(unflatten_index_variables(variables, idx_list))
    places = [axis for axis, e in enumerate(index) if not isinstance(e, slice)]
    if len(places) != 1:
        return None
    (axis,) = places
    if _is_every_position(index[axis], x, axis):
        index[axis] = FULL
        return read(x, index)
    found = positions_along(index[axis], x.type.shape[axis])
    if found is None:
        return None
    index[axis] = _as_slice(found)
    return read(x, index)


@rule(
    "set(x, y, constant positions) -> set(x, y, slice)",
    "AdvancedIncSubtensor(x, y, *variables, inplace=False, idx_list=idx_list)",
    law="exact",
    tags=("local_adv_idx_to_slice",),
    tested_on=(
        "set_subtensor(N[np.array([1, 0])], N)",
        "inc_subtensor(N[:, np.array([0, 2])], s)",
    ),
)
def write_at_slice(
    node: Apply,
    x: TensorVariable,
    y: TensorVariable,
    variables: Sequence[Variable],
    idx_list: tuple[Entry, ...],
) -> Replacement:
    """Applies to constant, evenly spaced positions, known to be in range."""
    index: list[Any] = list(unflatten_index_variables(variables, idx_list))
    places = [axis for axis, e in enumerate(index) if not isinstance(e, slice)]
    found = positions_along(index[places[0]], x.type.shape[places[0]]) if places else None
    if len(places) != 1 or found is None:
        return None
    index[places[0]] = _as_slice(found)
    part, entries = flatten_index_variables(index)
    return IncSubtensor(part, set_instead_of_inc=node.op.set_instead_of_inc)(x, y, *entries)


def _is_every_position(v: Variable, x: Variable, axis: int) -> bool:
    """Whether ``v`` is ``arange(x.shape[axis])``."""
    node = v.owner
    if node is None or type(node.op) is not ARange:
        return False
    start, stop, step = node.inputs
    inner = stop.owner
    if number(start) != 0 or number(step) != 1 or inner is None:
        return False
    return type(inner.op) is Shape_i and inner.op.i == axis and inner.inputs[0] is x


@rule(
    "x[[0, 1], [0, 1]] -> diagonal(x)",
    "AdvancedSubtensor(x, rows, columns, idx_list=(0, 1))",
    law="exact",
    tags=("local_adv_idx_to_diagonal",),
    tested_on=("N[np.arange(2), np.arange(2)]", "N[np.array([0, 1]), np.array([1, 2])]"),
)
def positions_to_diagonal(
    x: TensorVariable, rows: TensorVariable, columns: TensorVariable
) -> Replacement:
    """Applies to constant positions of a matrix that are known to be in range."""
    if x.type.ndim != 2:
        return None
    found = [positions_along(v, n) for v, n in zip((rows, columns), x.type.shape)]
    known = [r for r in found if r is not None and r.step == 1]
    if len(known) < 2 or len(known[0]) != len(known[1]):
        return None
    return ExtractDiag()(read(x, [_as_slice(r) for r in known]))


@rule(
    "x[constant mask] -> x[positions]",
    "AdvancedSubtensor(x, mask, idx_list=idx_list)",
    law="exact",
    tags=("bool_idx_to_nonzero",),
    tested_on=(
        "N[np.array([True, False])]",
        "N[np.array([[True, False, True], [False, True, True]])]",
        "N[:, np.array([False, True, True])]",
    ),
)
def mask_to_positions(
    x: TensorVariable, mask: TensorVariable, idx_list: tuple[Entry, ...]
) -> Replacement:
    """Applies to constant masks that are known to fit; the length of the result is known then."""
    if not isinstance(mask, TensorConstant) or mask.type.dtype != "bool" or not mask.type.ndim:
        return None
    if not all(isinstance(e, int) or is_full(e) for e in idx_list):
        return None
    axis, rank = idx_list.index(0), mask.type.ndim
    if x.type.shape[axis : axis + rank] != mask.data.shape:
        return None
    places = [constant(p, dtype="int64") for p in np.nonzero(mask.data)]
    return AdvancedSubtensor((*[FULL] * axis, *range(rank)))(x, *places)


@rule(
    "dot(A, B)[positions] -> dot(A[positions], B)",
    "AdvancedSubtensor(product := Dot(a, b), at, idx_list=idx_list)",
    single_use=True,
    law="rounding",
    tags=("local_advanced_subtensor_of_dot",),
    tested_on=("dot(N, Q)[np.array([1, 0])[:1]]", "dot(Q, N.T)[:, np.array([0, 0])]"),
)
def positions_of_dot(
    node: Apply,
    product: Computed,
    a: TensorVariable,
    b: TensorVariable,
    at: TensorVariable,
    idx_list: tuple[Entry, ...],
) -> Replacement:
    """Applies where no more rows, or columns, are read than there are."""
    axis = len(idx_list) - 1
    if at.type.ndim != 1 or at.type.dtype == "bool" or idx_list not in ((0,), (FULL, 0)):
        return None
    read_, whole = at.type.shape[0], node.inputs[0].type.shape[axis]
    if read_ is None or whole is None or read_ > whole:
        return None
    rows = a.type.ndim - 1
    if axis < rows:
        return product.owner.op(AdvancedSubtensor((0,))(a, at), b)
    return product.owner.op(a, AdvancedSubtensor((FULL, 0))(b, at)) if b.type.ndim == 2 else None


@rule(
    "set(x, y, positions)[positions] -> y",
    "AdvancedSubtensor(write := AdvancedIncSubtensor(x, y, *at, inplace=False, idx_list=part),"
    " *at, idx_list=part)",
    law="drops_errors",
    tags=(
        "local_read_of_write_same_indices",
        "local_advanced_read_of_write_constant_indices",
        "shape_unsafe",
    ),
    tested_on=(
        "set_subtensor(N[:, np.array([0, 2, 1])], N)[:, np.array([0, 2, 1])]",
        "inc_subtensor(N[:, np.array([0, 2, 1])], s)[:, np.array([0, 2, 1])]",
        "set_subtensor(v[b], w[b])[b]",
    ),
)
def read_of_write_at_positions(
    node: Apply,
    write: Computed,
    x: TensorVariable,
    y: TensorVariable,
    at: Sequence[Variable],
    part: tuple[Entry, ...],
) -> Replacement:
    """Applies to masks, and to constant positions that do not repeat and are in range."""
    op = write.owner.op
    index: list[Any] = list(unflatten_index_variables(at, part))
    if may_repeat([v for v in at if isinstance(v, TensorVariable)]):
        return None
    if not all(map(_is_in_range, index, x.type.shape)):
        return None
    y = cast(y, x.type.dtype)
    if not op.set_instead_of_inc:
        return node.op(x, *at) + y if x.type.dtype != "bool" else None
    return y if y.type.broadcastable == node.outputs[0].type.broadcastable else None


def _is_in_range(e: Any, n: int | None) -> bool:
    """Whether an entry is a slice, a mask, or positions known to be in range of a length."""
    if isinstance(e, slice) or e.type.dtype == "bool":
        return True
    if not isinstance(e, TensorConstant) or n is None:
        return False
    return not e.data.size or bool(-n <= e.data.min() and e.data.max() < n)
