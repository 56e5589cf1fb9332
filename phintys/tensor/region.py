"""The part of a graph that is looked at from a node, with the same computations only once."""

from __future__ import annotations

from collections.abc import Container, Sequence

from phintys.graph.variable import Apply, Constant, Variable
from phintys.tensor.apart import number
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.join import Join
from phintys.tensor.reduce import Sum
from phintys.tensor.shape import MakeVector
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax

#: Nodes that are looked at, at most.
MOST_NODES = 150
#: The ops that are looked through.
OPS = (Blockwise, DimShuffle, Elemwise, Join, LogSoftmax, LogSumExp, MakeVector, Softmax, Sum)


def region(node: Apply, kept: Container[Variable]) -> list[Apply]:
    """``node`` and nodes before it, in topological order; not through variables ``kept``."""
    order: list[Apply] = []
    seen: set[Apply] = set()
    stack = [(node, False)]
    while stack:
        top, done = stack.pop()
        if done:
            order.append(top)
            continue
        if top in seen or len(seen) == MOST_NODES:
            continue
        seen.add(top)
        stack.append((top, True))
        made = [v.owner for v in top.inputs if v.owner is not None and v not in kept]
        stack.extend((n, False) for n in made if type(n.op) in OPS and n.nout == 1)
    return order


def merged(node: Apply, nodes: Sequence[Apply]) -> Apply:
    """``node``, the last of ``nodes``, computed from nodes that are different from each other."""
    same: dict[Variable, Variable] = {}
    first: dict[object, Variable] = {}
    made = node
    for made in nodes:
        inputs = [same.get(v, v) for v in made.inputs]
        key = (made.op, *[_key(v) for v in inputs])
        (out,) = made.outputs
        if key in first:
            same[out] = first[key]
            continue
        if any(v is not w for v, w in zip(inputs, made.inputs)):
            made = made.op.make_node(*inputs)
            same[out] = made.outputs[0]
        first[key] = made.outputs[0]
    return made


def _key(v: Variable) -> object:
    """The same for variables with the same value."""
    known = number(v) if isinstance(v, Constant) else None
    return v if known is None else (v.type, known)
