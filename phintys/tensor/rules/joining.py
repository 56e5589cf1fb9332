"""Rules for `Join` and `Split`."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.tensor.aliases import Place
from phintys.tensor.axes import expand_dims
from phintys.tensor.creation import Alloc
from phintys.tensor.elements import Shares, elements
from phintys.tensor.elemwise import DimShuffle, Elemwise, cast, dimshuffle, function_of, functions
from phintys.tensor.index_list import literal
from phintys.tensor.index_ops import Subtensor
from phintys.tensor.join import Join
from phintys.tensor.reduce import Sum
from phintys.tensor.reshape import Reshape
from phintys.tensor.rules.fills import filled_value, has_plain_lengths
from phintys.tensor.rules.match import at, like, number, some
from phintys.tensor.rules.reading import Index, index_of, kept_axes, read
from phintys.tensor.rules.wide import SINGULAR
from phintys.tensor.shape import MakeVector, as_length, lengths_vector, product, shape_tuple
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax
from phintys.tensor.type import MAX_NDIM
from phintys.tensor.variable import TensorVariable

#: Functions that are looked at, at most.
MOST_FUNCTIONS = 40
#: Ops of logits, which densities use.
OF_LOGITS = (LogSoftmax, LogSumExp, Softmax)


@rule(
    "join(x) -> x",
    "Join(x)",
    law="exact",
    tags=("local_join_1", "cleanup"),
    tested_on=("Join(0)(v)",),
)
def join_of_one(x: TensorVariable) -> Replacement:
    return x


@rule(
    "join(x, empty) -> x",
    "Join(*pieces, axis=axis)",
    law="drops_errors",
    tags=("local_join_empty", "cleanup"),
    tested_on=(
        "join(0, v, zeros((0,)))",
        "join(0, h, zeros((0,), 'int32'), h)",
        "join(0, h.dimshuffle(0), zeros((0,)))",
    ),
)
def join_without_empty(node: Apply, pieces: Sequence[Variable], axis: int) -> Replacement:
    """The result is cast to the dtype that it had with the empty tensors."""
    kept = [x for x in pieces if x.type.shape[axis] != 0]
    if len(kept) == len(pieces) or not kept:
        return None
    dtype = node.outputs[0].type.dtype
    first, *rest = kept
    return node.op(cast(first, dtype), *rest) if rest else cast(first, dtype)


@rule(
    "join(join(x, y), z) -> join(x, y, z)",
    ops=[Join],
    law="exact",
    outermost=True,
    tags=("local_join_join", "cleanup"),
    tested_on=("join(0, join(0, v, w), v)", "join(1, join(1, M, M), join(1, M, N))"),
)
def flatten_joins(ctx: Context, node: Apply) -> Replacement:
    pieces: list[Variable] = []
    stack = [node.outputs[0]]
    dtype = node.outputs[0].type.dtype
    while stack:
        v = stack.pop()
        inside = v.owner is node or (ctx.single_use(v) and v.type.dtype == dtype)
        if inside and v.owner is not None and v.owner.op == node.op:
            stack.extend(reversed(v.owner.inputs))
        else:
            pieces.append(v)
    return None if pieces == node.inputs else node.op(*pieces)


@rule(
    "join(vector(a, b), vector(c)) -> vector(a, b, c)",
    ops=[Join],
    law="exact",
    tags=("local_join_make_vector", "cleanup"),
    tested_on=("join(0, stack([s, t]), stack([t, s]))", "join(0, v, stack([s, t]), stack([t]), w)"),
)
def join_of_vectors(ctx: Context, node: Apply) -> Replacement:
    """Merge adjacent operands of equal dtype that are vectors of known 0-d items."""
    runs: list[list[Variable]] = []
    for x in node.inputs:
        if runs and _are_alike(runs[-1][-1], x):
            runs[-1].append(x)
        else:
            runs.append([x])
    if len(runs) == len(node.inputs):
        return None
    merged = [_vector(run) if len(run) > 1 else run[0] for run in runs]
    dtype = node.outputs[0].type.dtype
    return cast(merged[0], dtype) if len(merged) == 1 else node.op(*merged)


def _are_alike(x: Variable, y: Variable) -> bool:
    """Whether both are vectors of known 0-d items, of one dtype."""
    return bool(_items(x) and _items(y)) and x.type.dtype == y.type.dtype


def _vector(run: Sequence[Variable]) -> TensorVariable:
    """The vector of the items of vectors that are alike."""
    return MakeVector(run[0].type.dtype)(*(item for x in run for item in _items(x)))


def _items(x: Variable) -> list[Variable]:
    """The 0-d tensors of which `MakeVector`, or a new axis, makes a vector; else none."""
    node = x.owner
    if node is None or x.type.ndim != 1:
        return []
    is_made = type(node.op) is MakeVector
    is_made |= type(node.op) is DimShuffle and node.inputs[0].type.ndim == 0
    return node.inputs if is_made else []


@rule(
    "split(x) in one piece -> x",
    "Split(x, *_, len_splits=1)",
    law="drops_errors",
    tags=("local_useless_split", "cleanup", "shape_unsafe"),
    tested_on=("split(v, [3])[0]",),
)
def useless_split(x: TensorVariable) -> Replacement:
    return x


@rule(
    "split(join(x, y)) -> x, y",
    "Split(Join(*pieces, axis=axis), *_, axis=axis)",
    law="drops_errors",
    tags=("local_split_of_join", "cleanup", "shape_unsafe"),
    tested_on=("split(join(0, N, N), [2, 2])[1]",),
)
def split_of_join(node: Apply, pieces: Sequence[Variable], axis: int) -> Replacement:
    """Applies where the lengths of the pieces are known to be those of the joined tensors."""
    if len(pieces) != len(node.outputs):
        return None
    lengths = [(x.type.shape[axis], o.type.shape[axis]) for x, o in zip(pieces, node.outputs)]
    if any(a is None or a != b for a, b in lengths):
        return None
    return [cast(x, o.type.dtype) for x, o in zip(pieces, node.outputs)]


# ------------------------------------------------------------------- functions of a few stacked


@rule(
    "sum(f(stack(x, y), z), axis) -> f(x, z) + f(y, z)",
    ops=[Sum],
    where=at(0, Elemwise),
    phase="stabilize",
    law="rounding",
    tested_on=(
        "sum(sqr(stack([v, w])), axis=0)",
        "sum(stack([v, w]) * t - stack([w, t * v]), axis=0)",
        "sum(sqr(stack([s, t])) * exp(stack([t, s])))",
        "sum(sqr(stack([M, N], axis=1)), axis=(1, 2))",
    ),
)
def sum_of_elements(ctx: Context, node: Apply) -> Replacement:
    """Terms of the sum then cancel others, or are simplified with them."""
    axes = node.op.axes(node)
    x, dtype = node.inputs[0], node.outputs[0].type.dtype
    for axis in axes if x.type.dtype == dtype else ():
        found = _elements(x, axis)
        if found is not None:
            rest = tuple([a - (a > axis) for a in axes if a != axis])
            added = dtype if _are_parts_of_a_density(found) else node.op.acc_dtype or dtype
            terms = [cast(v, added) for v in found]
            total = functions.add(*terms)
            whole = node.op.clone(axis=rest)(total) if rest else total
            return like(node, cast(whole, dtype))
    return None


@rule(
    "split(f(stack(x, y), z)) -> f(x, z), f(y, z)",
    "Split(x, lengths, axis=axis)",
    where=at(0, Elemwise),
    phase="stabilize",
    law="rounding",
    tags=("shape_unsafe",),
    tested_on=("split(exp(stack([v, w]) * t), [1, 1])[1]",),
)
def split_of_elements(
    node: Apply, x: TensorVariable, lengths: TensorVariable, axis: int
) -> Replacement:
    if number(lengths) != 1 or (found := _elements(x, axis)) is None:
        return None
    if len(found) != len(node.outputs):
        return None
    return [
        out.type.filter_variable(expand_dims(cast(v, out.type.dtype), axis))
        for v, out in zip(found, node.outputs, strict=True)
    ]


def _are_parts_of_a_density(terms: Sequence[Variable]) -> bool:
    """Whether terms are added in their own dtype: casts would hide which of them cancel.

    So logarithms, of which `phintys.tensor.rules.wide` computes most in float64 anyway.
    """
    stack = [*terms]
    for _ in range(MOST_FUNCTIONS):
        if not stack:
            break
        v = stack.pop()
        if v.owner is None:
            continue
        if function_of(v)[0] in SINGULAR or type(v.owner.op) in OF_LOGITS:
            return True
        stack += v.owner.inputs if type(v.owner.op) in (DimShuffle, Elemwise) else ()
    return False


def _elements(x: Variable, axis: int) -> list[Variable] | None:
    """The elements along an axis of a function of a few stacked tensors, without the axis."""
    shares: Shares = {}
    found = elements(x, axis, (), shares)
    return None if shares else found


# --------------------------------------------------------------- joins of parts and of fills


@rule(
    "join(x[:i], x[i:]) -> x",
    "Join(*pieces, axis=axis)",
    where=some(Subtensor),
    law="exact",
    tags=("local_join_subtensors", "cleanup"),
    tested_on=(
        "join(0, v[:2], v[2:])",
        "join(0, v[:n], v[n:])",
        "join(0, w, v[1:2], v[2:5], v[5:], w)",
        "join(1, M[:, :-1], M[:, -1:])",
        "join(0, M[:2, 1], M[2:, 1])",
    ),
)
def join_of_adjacent_reads(node: Apply, pieces: Sequence[Variable], axis: int) -> Replacement:
    merged = [pieces[0]]
    for x in pieces[1:]:
        both = _adjacent(merged[-1], x, axis)
        merged[-1:] = [merged[-1], x] if both is None else [both]
    if len(merged) == len(pieces):
        return None
    dtype = node.outputs[0].type.dtype
    return node.op(*merged) if len(merged) > 1 else cast(merged[0], dtype)


def _adjacent(a: Variable, b: Variable, axis: int) -> Variable | None:
    """The part of a tensor that begins as ``a`` and ends as ``b``, if ``b`` begins where a ends."""
    nodes = [v.owner for v in (a, b) if v.owner is not None and type(v.owner.op) is Subtensor]
    if len(nodes) < 2 or nodes[0].inputs[0] is not nodes[1].inputs[0]:
        return None
    first, second = map(index_of, nodes)
    along = kept_axes(first)[axis]
    e, f = first[along], second[along]
    if not (isinstance(e, slice) and isinstance(f, slice) and _same_beside(first, second, along)):
        return None
    if e.step is not None or f.step is not None or e.stop is None or not _same(e.stop, f.start):
        return None
    if not (_ordered(e.start, e.stop) and (f.stop is None or _ordered(f.start, f.stop))):
        return None
    first[along] = slice(e.start, f.stop)
    return read(nodes[0].inputs[0], first)


def _same_beside(a: Index, b: Index, along: int) -> bool:
    """Whether two indices agree along all axes but one."""
    return len(a) == len(b) and all(
        _same_entry(e, f) for k, (e, f) in enumerate(zip(a, b)) if k != along
    )


def _same_entry(e: object, f: object) -> bool:
    if isinstance(e, slice) and isinstance(f, slice):
        return all(_same(p, q) for p, q in zip(_bounds(e), _bounds(f)))
    return _same(e, f)


def _bounds(e: slice) -> tuple[object, object, object]:
    return e.start, e.stop, e.step


def _same(p: object, q: object) -> bool:
    """Whether two bounds are known to be equal."""
    return p is q or (literal(p) is not None and literal(p) == literal(q))


def _ordered(p: object, q: object) -> bool:
    """Whether the position ``p`` is known not to be after ``q``, in an axis of any length."""
    if p is None:
        return True
    i, j = literal(p), literal(q)
    return i is not None and j is not None and i <= j and (i >= 0) == (j >= 0)


@rule(
    "join(fill(a), fill(a)) -> fill(a), join(fill(a), fill(b)) -> fill(join(a, b))",
    "Join(*pieces, axis=axis)",
    where=some(Alloc),
    law="drops_errors",
    tags=("local_join_of_alloc", "shape_unsafe"),
    tested_on=(
        "join(0, alloc(s, v.shape[0]), alloc(s, 2))",
        "join(0, zeros((2, 3)), zeros((4, 3)))",
        "join(1, alloc(v, 4, 3), alloc(w, 4, 3))",
        "join(1, alloc(v, 4, 3), alloc(f, 4, 3))",
    ),
)
def join_of_fills(node: Apply, pieces: Sequence[Variable], axis: int) -> Replacement:
    """Applies to fills whose lengths need no check."""
    fills = [v.owner for v in pieces if v.owner is not None and type(v.owner.op) is Alloc]
    if not 1 < len(pieces) == len(fills) or not all(map(has_plain_lengths, pieces)):
        return None
    values = [v for piece in pieces if (v := filled_value(piece)) is not None]
    pattern = values[0].type.broadcastable
    if any(v.type.broadcastable != pattern for v in values) or not any(pattern):
        return None
    lengths = [as_length(n) for n in fills[0].inputs[1:]]
    lengths[axis] = functions.add(*(as_length(fill.inputs[1 + axis]) for fill in fills))
    if not pattern[axis]:
        return Alloc()(node.op(*values), *lengths)
    first, *others = [fill.inputs[0] for fill in fills]
    k = number(first)
    if any(v is not first and (k is None or number(v) != k) for v in others):
        return None
    return Alloc()(cast(values[0], node.outputs[0].type.dtype), *lengths)


@rule(
    "join(x, x, x) -> alloc(x)",
    "Join(*pieces, axis=axis)",
    phase="specialize",
    law="exact",
    tags=("local_join_to_repeat",),
    tested_on=("join(0, v, v, v)", "stack([v, v])", "join(1, C, C, C)", "join(1, M, M)"),
)
def join_of_equals(pieces: Sequence[Variable], axis: int) -> Replacement:
    """The parts are read from one tensor; the lengths of the result are those of that tensor."""
    x, count = pieces[0], len(pieces)
    if count < 2 or any(v is not x for v in pieces):
        return None
    lengths = list(shape_tuple(x))
    if x.type.broadcastable[axis]:
        lengths[axis] = as_length(count)
        return Alloc()(x, *lengths)
    if x.type.ndim == MAX_NDIM:
        return None
    order: list[Place] = [*range(x.type.ndim)]
    copies = dimshuffle(x, [*order[:axis], "x", *order[axis:]])
    copies = Alloc()(copies, *lengths[:axis], count, *lengths[axis:])
    lengths[axis] = product([as_length(count), lengths[axis]])
    return Reshape(x.type.ndim)(copies, lengths_vector(lengths))
