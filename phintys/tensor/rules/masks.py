"""Rules that remove reads and writes by masks.

The length of ``x[mask]`` depends on values.  For backends that compile for fixed lengths,
elementwise functions, and others that treat the elements along the selected axis alike, are
computed for all elements, and read by the mask after; reductions use only the elements where the
mask is true.  `phintys.backends.jax` selects this phase.

Other backends compute the elements that are selected, and no others, but where a mask that is
computed of ``x`` selects elements of functions of ``x`` that are written to ``x``, or summed: then
one loop over all elements takes less time than positions of the true ones.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from phintys.graph.variable import Apply, Constant, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar.op import ScalarOp
from phintys.tensor.aliases import Place
from phintys.tensor.convert import constant
from phintys.tensor.creation import Alloc
from phintys.tensor.cumulative import cumsum
from phintys.tensor.elemwise import Elemwise, cast, dimshuffle, functions
from phintys.tensor.index_list import FULL
from phintys.tensor.index_ops import AdvancedIncSubtensor, AdvancedSubtensor
from phintys.tensor.nonzero import some_true
from phintys.tensor.reduce import Argmax, Max, Min, Sum, keep_dims
from phintys.tensor.reshape import JoinDims, flatten
from phintys.tensor.rules.fills import filled_value
from phintys.tensor.rules.match import at, literal, some
from phintys.tensor.rules.reading import index_of, is_full, read
from phintys.tensor.shape import Shape_i, length
from phintys.tensor.variable import TensorVariable

#: Rules of the phase ``masks`` are selected by this tag.
TAGS = ("jax",)


@dataclass(frozen=True)
class Selection:
    """The elements along some axes of tensors where a mask is true: ``x[:, mask]``.

    The axes of the mask begin at ``axis`` and become one axis, at the same place.
    """

    mask: Variable
    axis: int

    @property
    def rank(self) -> int:
        """The number of axes of the mask."""
        found: int = self.mask.type.ndim
        return found

    def read(self, full: Variable) -> Variable:
        """The selected elements of a tensor."""
        return AdvancedSubtensor((FULL,) * self.axis + (0,))(full, self.mask)

    def axes(self, selected: Sequence[int]) -> tuple[int, ...]:
        """Axes of the selected elements as axes of the tensor."""
        found: list[int] = []
        for a in selected:
            first = a if a <= self.axis else a + self.rank - 1
            found += range(first, first + (self.rank if a == self.axis else 1))
        return tuple(found)

    def without(self, axes: Sequence[int]) -> Selection:
        """The selection after other axes of the selected elements are removed."""
        return Selection(self.mask, self.axis - sum(a < self.axis for a in axes))

    def spread(self, v: Variable) -> Variable:
        """An operand with length 1 along the selected axis, with axes for all of the mask."""
        order: list[Place] = [*range(v.type.ndim)]
        return dimshuffle(v, [*order[: self.axis], *["x"] * (self.rank - 1), *order[self.axis :]])

    def where(self, full: Variable, value: Variable, mask: Variable | None = None) -> Variable:
        """``full`` where the mask is true, else ``value``; one of them may have fewer axes."""
        after = max(full.type.ndim, value.type.ndim) - self.axis - self.rank
        order: list[Place] = ["x"] * self.axis
        order += [*range(self.rank)]
        order += ["x"] * after
        chosen = self.mask if mask is None else mask
        return functions.switch(dimshuffle(chosen, order), full, value)

    def filled(self, full: Variable, number: Any) -> Variable:
        """``full`` where the mask is true, else a number."""
        return self.where(full, literal(number, full.type.dtype, full.type.ndim))


def selection(node: Apply, first: int = 1) -> Selection | None:
    """The selection of an indexing node, if its index is one mask; else None.

    Constant masks select a known number of elements.
    """
    entries = [e for e in node.op.idx_list if not (isinstance(e, slice) and is_full(e))]
    if len(entries) != 1 or isinstance(entries[0], slice) or len(node.inputs) != first + 1:
        return None
    x, mask = node.inputs[0], node.inputs[first]
    if mask.type.dtype != "bool" or not mask.type.ndim or isinstance(mask, Constant):
        return None
    found = Selection(mask, node.op.idx_list.index(entries[0]))
    given = x.type.broadcastable[found.axis : found.axis + found.rank]
    return found if given == mask.type.broadcastable else None


def selected(v: Variable) -> tuple[Variable, Selection] | None:
    """``x`` and the selection, if ``v`` is ``x[mask]``; else None."""
    node = v.owner
    if node is None or type(node.op) is not AdvancedSubtensor:
        return None
    found = selection(node)
    return None if found is None else (node.inputs[0], found)


def unselected(v: Variable, by: Selection) -> Variable | None:
    """A tensor whose selected elements are ``v``, an operand of a function of selected elements."""
    found = selected(v)
    if found is not None:
        return found[0] if found[1] == by else None
    return by.spread(v) if v.type.broadcastable[by.axis] else None


@rule(
    "f(x[mask], y[mask]) -> f(x, y)[mask]",
    ops=[ScalarOp],
    where=some(AdvancedSubtensor),
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=("exp(v[b])", "v[b] + w[b] * s", "M[:, b] * N[:, b]", "M[gt(M, 0)] * s"),
)
def select_after_function(ctx: Context, node: Apply) -> Replacement:
    if type(node.op) is not Elemwise or len(node.outputs) != 1:
        return None
    by = next((found[1] for v in node.inputs if (found := selected(v)) is not None), None)
    if by is None:
        return None
    operands = [unselected(v, by) for v in node.inputs]
    known = [v for v in operands if v is not None]
    return by.read(node.op(*known)) if len(known) == len(operands) else None


@rule(
    "dimshuffle(x[mask]) -> dimshuffle(x)[mask]",
    "DimShuffle(part := AdvancedSubtensor(*_), new_order=order)",
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=("M[:, b].T", "v[b].dimshuffle('x', 0)", "K[gt(M, 0)].T", "R[:, b].dimshuffle(1)"),
)
def select_after_dimshuffle(part: TensorVariable, order: tuple[Place, ...]) -> Replacement:
    found = selected(part)
    if found is None or found[1].axis not in order:
        return None
    x, by = found
    places: list[Place] = []
    for o in order:
        new: Sequence[Place] = ["x"] if o == "x" else by.axes([o])
        places += new
    return Selection(by.mask, order.index(by.axis)).read(dimshuffle(x, places))


@rule(
    "x[mask][:, i] -> x[:, i][mask]",
    "Subtensor(part := AdvancedSubtensor(*_), *_)",
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=("M[:, b][0]", "Q[b][:, 1:]"),
)
def select_after_read(node: Apply, part: TensorVariable) -> Replacement:
    found, index = selected(part), index_of(node)
    if found is None or not is_full(index[found[1].axis]):
        return None
    x, by = found
    dropped = [a for a, e in enumerate(index) if not isinstance(e, slice)]
    entries = [*index[: by.axis], *[FULL] * by.rank, *index[by.axis + 1 :]]
    return by.without(dropped).read(read(x, entries))


@rule(
    "length of x[mask] -> number of true elements",
    ops=[Shape_i],
    where=at(0, AdvancedSubtensor),
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=("v[b].shape[0]", "K[gt(M, 0)].shape[0]", "M[:, b].shape[1]"),
)
def length_of_selection(ctx: Context, node: Apply) -> Replacement:
    found = selected(node.inputs[0])
    if found is None:
        return None
    x, by = found
    if node.op.i == by.axis:
        return Sum()(by.mask)
    (axis,) = by.axes([node.op.i])
    return length(x, axis)


# ---------------------------------------------------------------------------- reductions


@rule(
    "sum(x[mask]) -> sum(switch(mask, x, 0))",
    "CAReduce(part := AdvancedSubtensor(*_))",
    phase="masks",
    law="drops_errors",
    tags=(*TAGS, "jax_boolean_indexing_sum"),
    tested_on=(
        "v[b].sum()",
        "M[:, b].prod(axis=1)",
        "M[:, b].max(axis=0)",
        "v[b].max()",
        "Min()(h[b])",
        "gt(v, 0)[b].all()",
        "gt(v, 0)[b].any()",
        "M[gt(M, 0)].sum()",
        "K[gt(M, 0)].sum(axis=1)",
        "Min((0,))(K[gt(M, 0)])",
    ),
)
def reduce_selection(node: Apply, part: TensorVariable) -> Replacement:
    """Elements where the mask is false are replaced by the identity of the reduction.

    A maximum of no elements is an error, which is kept: `some_true` checks the mask.
    """
    found, op, axes = selected(part), node.op, node.op.axes(node)
    if found is None:
        return None
    x, by = found
    inner = op.clone(axis=by.axes(axes))
    if by.axis not in axes:
        return by.without(axes).read(inner(x))
    if isinstance(op, Max | Min):
        lowest = literal(op.initial_value(x.type.dtype), x.type.dtype, x.type.ndim)
        return inner(by.where(x, lowest, some_true(by.mask) if op.needs_elements else None))
    identity = op.scalar_op.identity
    return None if identity is None else inner(by.filled(x, identity))


@rule(
    "argmax(x[mask]) -> rank of the first maximum among true elements",
    "Argmax(part := AdvancedSubtensor(*_))",
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=("argmax(v[b])", "argmin(h[b])", "argmax(M[:, b], axis=1)", "argmax(K[gt(M, 0)], 0)"),
)
def argmax_of_selection(node: Apply, part: TensorVariable) -> Replacement:
    """The first element that is equal to the maximum, or NaN; then its place in the selection."""
    found = selected(part)
    if found is None or node.op.axes(node) != (found[1].axis,):
        return None
    x, by = found
    axes = by.axes([by.axis])
    extreme = (Min if node.op.kind == "argmin" else Max)(axes)
    lowest = literal(extreme.initial_value(x.type.dtype), x.type.dtype, x.type.ndim)
    best = keep_dims(extreme(by.where(x, lowest, some_true(by.mask))), axes)
    equal = functions.or_(functions.eq(x, best), functions.neq(x, x))
    nothing = constant(False, dtype="bool", ndim=x.type.ndim)
    first = Argmax(axes)(by.where(equal, nothing))
    rank: Any = cumsum(cast(flatten(by.mask), "int64")) - 1
    return rank[first]


@rule(
    "ProdOthers(x[mask]) -> ProdOthers(switch(mask, x, 1))[mask]",
    "ProdOthers(part := AdvancedSubtensor(*_), axis=axes)",
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=("ProdOthers((0,))(v[b])", "ProdOthers((0,))(M[:, b])", "ProdOthers((1,))(M[:, b])"),
)
def products_of_selection(node: Apply, part: TensorVariable, axes: tuple[int, ...]) -> Replacement:
    found = selected(part)
    if found is None:
        return None
    x, by = found
    full = by.filled(x, 1) if by.axis in axes else x
    return by.read(type(node.op)(by.axes(axes))(full))


@rule(
    "logsumexp(x[mask]) -> logsumexp(switch(mask, x, -inf))",
    "LogSumExp(part := AdvancedSubtensor(*_), axis=axes)",
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=("logsumexp(v[b])", "logsumexp(M[:, b], axis=1)", "logsumexp(M[:, b], axis=0)"),
)
def logsumexp_of_selection(node: Apply, part: TensorVariable, axes: tuple[int, ...]) -> Replacement:
    found = selected(part)
    if found is None:
        return None
    x, by = found
    inner = type(node.op)(axis=by.axes(axes))
    if by.axis not in axes:
        return by.without(axes).read(inner(x))
    return inner(by.filled(x, -float("inf")))


@rule(
    "softmax(x[mask]) -> softmax(switch(mask, x, -inf))[mask]",
    "Softmax | LogSoftmax(part := AdvancedSubtensor(*_), axis=axes)",
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=("special.softmax(v[b])", "special.log_softmax(M[:, b], axis=1)"),
)
def softmax_of_selection(node: Apply, part: TensorVariable, axes: tuple[int, ...]) -> Replacement:
    found = selected(part)
    if found is None:
        return None
    x, by = found
    full = by.filled(x, -float("inf")) if by.axis in axes else x
    return by.read(type(node.op)(axis=by.axes(axes))(full))


@rule(
    "dot(x[mask], y[mask]) -> dot(switch(mask, x, 0), switch(mask, y, 0))",
    "Dot(a, b)",
    where=some(AdvancedSubtensor),
    phase="masks",
    law="drops_errors",
    tags=TAGS,
    tested_on=(
        "dot(v[b], w[b])",
        "dot(M[:, b], Q[b])",
        "dot(M[gt(M, 0)], N[gt(M, 0)])",
        "dot(Q[b], v)",
        "dot(Q[b], Q)",
        "dot(v, Q[:, b])",
        "dot(Q, Q[:, b])",
    ),
)
def dot_of_selection(node: Apply, a: TensorVariable, b: TensorVariable) -> Replacement:
    """Sums over the selected axis use zeros elsewhere; selected rows are selected afterwards."""
    left, right = selected(a), selected(b)
    inner = a.type.ndim - 1
    if left is not None and left[1].rank == 1 and left[1].axis < inner:
        return left[1].read(node.op(left[0], b))
    if right is not None and right[1].rank == 1 and right[1].axis > 0:
        return Selection(right[1].mask, inner).read(node.op(a, right[0]))
    if left is None or right is None or left[1].mask is not right[1].mask:
        return None
    if left[1].axis != inner or right[1].axis != 0:
        return None
    return node.op(*(JoinDims(by.axis, by.rank)(by.filled(x, 0)) for x, by in (left, right)))


# -------------------------------------------------------------------------------- writes


@rule(
    "set(x, y, mask) -> switch(mask, y, x)",
    ops=[AdvancedIncSubtensor],
    phase="masks",
    law="drops_errors",
    tags=(*TAGS, "jax_boolean_indexing_set_or_inc"),
    tested_on=(
        "set_subtensor(v[b], s)",
        "set_subtensor(v[b], exp(v)[b])",
        "inc_subtensor(v[b], s)",
        "inc_subtensor(M[:, b], v[b])",
        "set_subtensor(M[gt(M, 0)], s)",
        "inc_subtensor(K[gt(M, 0)], K[0, 0])",
        "set_subtensor(Q[b], s)",
        "inc_subtensor(Q[b], v)",
        "set_subtensor(K[gt(M, 0)], s)",
        "inc_subtensor(K[:, b], s)",
        "set_subtensor(h[b], s)",
    ),
)
def write_by_switch(ctx: Context, node: Apply) -> Replacement:
    """Applies where one value is written, or values that are selected by the same mask."""
    by = selection(node, 2)
    if by is None:
        return None
    x, y = node.inputs[:2]
    fill = filled_value(y)
    if fill is not None and isinstance(y.owner_op, Alloc):
        y = fill
    axis = by.axis - (x.type.ndim - by.rank + 1 - y.type.ndim)
    full = unselected(y, Selection(by.mask, axis)) if axis >= 0 else y
    if full is None:
        return None
    return written_everywhere(node, by, full)


def written_everywhere(node: Apply, by: Selection, full: Variable) -> Variable:
    """``x`` with values for all elements set, or added, where the mask is true."""
    x = node.inputs[0]
    full = cast(full, x.type.dtype)
    if not node.op.set_instead_of_inc:
        full = functions.or_(x, full) if x.type.dtype == "bool" else functions.add(x, full)
    return by.where(full, x)


# ------------------------------------------------- reads and writes by masks, on all backends


def elementwise_of(v: Variable) -> Iterator[Variable]:
    """``v``, and the variables of its shape that it is an elementwise function of."""
    stack, seen = [v], {v}
    while stack:
        found = stack.pop()
        yield found
        node = found.owner
        if node is None or type(node.op) is not Elemwise:
            continue
        alike = [w for w in node.inputs if w.type.broadcastable == v.type.broadcastable]
        stack += [w for w in alike if w not in seen]
        seen.update(alike)


def fits(by: Selection, x: Variable, alike: Container[Variable]) -> bool:
    """Whether ``x`` surely has the shape of a mask; ``alike`` are variables that have it."""
    return by.axis == 0 and by.rank == x.type.ndim and any(v in alike for v in elementwise_of(x))


def of_all_elements(y: Variable, by: Selection) -> Variable | None:
    """A tensor whose selected elements are ``y``, an elementwise function of selected elements.

    None if ``y`` is another function, or the mask may not fit what it selects of.
    """
    alike = {*elementwise_of(by.mask)}
    full: dict[Variable, Variable] = {}
    stack = [y]
    while stack:
        v = stack[-1]
        node = v.owner
        found = unselected(v, by)
        if found is not None:
            if not v.type.broadcastable[by.axis] and not fits(by, found, alike):
                return None
            full[v] = found
        elif node is None or type(node.op) is not Elemwise or len(node.outputs) != 1:
            return None
        elif missing := [w for w in node.inputs if w not in full]:
            stack += missing
            continue
        else:
            full[v] = node.op(*(full[w] for w in node.inputs))
        stack.pop()
    return full[y]


@rule(
    "set(x, f(x[mask]), mask) -> switch(mask, f(x), x)",
    ops=[AdvancedIncSubtensor],
    phase="specialize",
    law="rounding",
    tested_on=(
        "set_subtensor(v[gt(v, 0)], exp(v)[gt(v, 0)])",
        "set_subtensor(v[gt(v, 0)], v[gt(v, 0)] / 2)",
        "inc_subtensor(v[gt(v, w)], w[gt(v, w)] * s)",
        "inc_subtensor(M[gt(M, 0)], M[gt(M, 0)])",
        "set_subtensor(h[gt(h, 0)], exp(h[gt(h, 0)]))",
    ),
)
def write_of_functions(ctx: Context, node: Apply) -> Replacement:
    by = selection(node, 2)
    x, y = node.inputs[:2]
    if by is None or by.axis or y.type.ndim != 1 or y.type.broadcastable[0]:
        return None
    if not fits(by, x, {*elementwise_of(by.mask)}):
        return None
    full = of_all_elements(y, by)
    return None if full is None else written_everywhere(node, by, full)


@rule(
    "sum(f(x[mask])) -> sum(switch(mask, f(x), 0))",
    "CAReduce(part)",
    phase="specialize",
    law="rounding",
    tested_on=(
        "v[gt(v, 0)].sum()",
        "exp(v[gt(v, 0)]).sum()",
        "(v[gt(v, w)] * w[gt(v, w)]).sum()",
        "M[gt(M, 0)].sum()",
        "h[gt(h, 0)].prod()",
        "gt(v, 1)[gt(v, 0)].all()",
    ),
)
def reduce_of_functions(node: Apply, part: TensorVariable) -> Replacement:
    by = next((found[1] for v in elementwise_of(part) if (found := selected(v))), None)
    if by is None or part.type.ndim != 1 or isinstance(node.op, Max | Min):
        return None
    full, identity = of_all_elements(part, by), node.op.scalar_op.identity
    if full is None or identity is None:
        return None
    return node.op.clone(axis=None)(by.filled(full, identity))
