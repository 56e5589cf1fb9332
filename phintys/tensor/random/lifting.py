"""Rewrites of draws, which functions do not apply unless they are asked to.

Those that lift an operation from a draw to its parameters serve to derive densities.  Which numbers
a lifted draw gives:

- `local_rv_size_lift` and a `local_dimshuffle_rv_lift` that only adds axes: the same, bit for bit;
- other lifts: others, of the same distribution, since other numbers are drawn, or in another order;
- `sidestep_unused_rng_consumer`: later draws from the generator give other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rewriter import node_rewriter
from phintys.tensor.creation import broadcast_to
from phintys.tensor.elemwise import DimShuffle
from phintys.tensor.index_list import indices_from_subtensor
from phintys.tensor.index_ops import AdvancedSubtensor, Subtensor
from phintys.tensor.random.op import RandomVariable, RNGConsumerOp
from phintys.tensor.random.type import RandomType
from phintys.tensor.random.utils import rv_size_is_none
from phintys.tensor.shape import Shape, Shape_i, lengths_vector, shape_tuple
from phintys.tensor.static import entries
from phintys.tensor.type_other import NoneConst

__all__ = [
    "is_rv_used_in_graph", "local_dimshuffle_rv_lift", "local_rv_size_lift",
    "local_subtensor_rv_lift", "random_make_inplace", "sidestep_unused_rng_consumer",
]  # fmt: skip

Replacements = dict[Variable, Variable] | None


def is_rv_used_in_graph(base_rv: Variable, node: Apply, fgraph: FunctionGraph) -> bool:
    """Whether nodes other than ``node``, or outputs, use the numbers of a draw.

    Nodes that take its shape do not.
    """
    users = [user for user, _ in fgraph.clients.get(base_rv, ())]
    return any(user is not node and not isinstance(user.op, Shape | Shape_i) for user in users)


def _only_draw(fgraph: FunctionGraph, node: Apply) -> Apply | None:
    """The node of the draw that is the first input of ``node``; None if it is used elsewhere."""
    draw = node.inputs[0]
    made = draw.owner
    if made is None or not isinstance(made.op, RandomVariable):
        return None
    return None if is_rv_used_in_graph(draw, node, fgraph) else made


def _lifted(
    node: Apply, made: Apply, size: Variable | None, params: Sequence[Variable]
) -> Replacements:
    """The replacements by a draw with another size and other parameters."""
    new = made.op.make_node(made.op.rng_param(made), size, *params)
    next_rng, draw = new.outputs
    if draw.type.ndim != node.outputs[0].type.ndim:
        return None
    return {node.outputs[0]: draw, made.outputs[0]: next_rng}


@node_rewriter([RandomVariable])
def local_rv_size_lift(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """``normal(0, 1, size=(2, 3))`` becomes ``normal(zeros((2, 3)), ones((2, 3)))``."""
    op, size = node.op, node.op.size_param(node)
    if rv_size_is_none(size):
        return None
    batch, params = entries(size), []
    for p, core in zip(op.dist_params(node), op.ndims_params, strict=True):
        params.append(broadcast_to(p, [*batch, *shape_tuple(p)[p.type.ndim - core :]]))
    return op.make_node(op.rng_param(node), NoneConst, *params).outputs


@node_rewriter([DimShuffle])
def local_dimshuffle_rv_lift(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """``normal(mean, sd).T`` becomes ``normal(mean.T, sd.T)``.

    Not if axes are dropped, or axes of one draw of a vector move, or the draw is used elsewhere.
    """
    made = _only_draw(fgraph, node)
    if made is None or node.op.drop:
        return None
    op, order = made.op, node.op.new_order
    batch = op.batch_ndim(made)
    moved = order[: len(order) - op.ndim_supp]
    if order[len(moved) :] != tuple(range(batch, batch + op.ndim_supp)):
        return None
    params = [
        DimShuffle(input_ndim=p.type.ndim, new_order=[*moved, *range(batch, p.type.ndim)])(p)
        for p in op.dist_params(made)
    ]
    size = op.size_param(made)
    if not rv_size_is_none(size):
        lengths = entries(size)
        size = lengths_vector([1 if k == "x" else lengths[k] for k in moved])
    return _lifted(node, made, size, params)


@node_rewriter([Subtensor, AdvancedSubtensor])
def local_subtensor_rv_lift(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """``normal(mean, sd)[0]`` becomes ``normal(mean[0], sd[0])``; a size becomes that of the part.

    Not if the draw is used elsewhere, is indexed within one draw of a vector, or by tensors of
    integers, which may repeat elements.
    """
    made = _only_draw(fgraph, node)
    if made is None:
        return None
    op = made.op
    index = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
    masks = [i for i in index if isinstance(i, Variable) and i.type.ndim]
    if any(i.type.dtype != "bool" for i in masks):
        return None
    used = sum(i.type.ndim if isinstance(i, Variable) and i.type.ndim else 1 for i in index)
    if used > op.batch_ndim(made):
        return None
    if masks:
        return _lifted(node, made, NoneConst, [p[index] for p in _broadcast(made)])
    length = made.outputs[1].type.shape
    params = [p[_index_of(p, index, length)] for p in op.dist_params(made)]
    size = NoneConst if rv_size_is_none(op.size_param(made)) else _size_of_part(node, made)
    return _lifted(node, made, size, params)


def _size_of_part(node: Apply, made: Apply) -> Variable:
    """The lengths of the batch axes of what ``node`` reads from a draw by numbers and slices."""
    (lengths,) = node.op.infer_shape(node, [_shape_of(made), *[()] * (len(node.inputs) - 1)])
    return lengths_vector(lengths[: len(lengths) - made.op.ndim_supp])


def _shape_of(made: Apply) -> Sequence[Any]:
    """The lengths of a draw as variables."""
    shapes = [(), (), *(shape_tuple(p) for p in made.op.dist_params(made))]
    return made.op.infer_shape(made, shapes)[1]


def _broadcast(made: Apply) -> list[Any]:
    """The parameters of a draw, each of the whole batch shape."""
    op, params = made.op, made.op.dist_params(made)
    batch = _shape_of(made)[: op.batch_ndim(made)]
    cores = [shape_tuple(p)[len(batch) :] for p in params]
    return [broadcast_to(p, [*batch, *core]) for p, core in zip(params, cores)]


def _index_of(param: Any, index: Sequence[Any], lengths: Sequence[int | None]) -> tuple[Any, ...]:
    """The index of a parameter: where it broadcasts, its only element, or that whole axis."""
    found = []
    for i, n, whole in zip(index, param.type.shape, lengths):
        if n == 1 and whole != 1:
            i = slice(None) if isinstance(i, slice) else 0
        found.append(i)
    return tuple(found)


@node_rewriter([RandomVariable], inplace=True)
def random_make_inplace(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """A draw changes the generator that another draw has returned, if nothing else reads it."""
    op, rng = node.op, node.op.rng_param(node)
    if op.inplace or rng.owner is None or len(fgraph.clients[rng]) > 1:
        return None
    return op.with_props(inplace=True).make_node(*node.inputs).outputs


@node_rewriter([RNGConsumerOp])
def sidestep_unused_rng_consumer(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A generator after draws that nothing uses becomes the generator before them."""
    drawn = [v for v in node.outputs if not isinstance(v.type, RandomType)]
    if any(fgraph.clients.get(v) for v in drawn):
        return None
    after = {new: old for old, new in node.op.update(node).items()}
    return {new: old for new, old in after.items() if fgraph.clients.get(new)} or None
