"""Sums over the steps of a loop of outer products become matrix products after the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Constant
from phintys.loop.parts import Part
from phintys.loop.rules.memory import first_rows, read_from_end
from phintys.loop.whole import Replacements, Whole, nodes_of, taken_apart
from phintys.tensor.axes import squeeze
from phintys.tensor.dot import Dot
from phintys.tensor.elemwise import DimShuffle, functions
from phintys.tensor.rules.match import scalar_op_name
from phintys.tensor.tensordot import tensordot

#: two factors and the axes of the products of their rows, after the axis of steps
Product = tuple[Any, Any, tuple[list[int], list[int]]]


def push_out_products(fgraph: FunctionGraph, node: Apply) -> Replacements | None:
    """Replace the last value of a state ``s = s + outer(a, b)`` by its first one plus ``A.T @ B``.

    ``A`` and ``B`` have a row for each step.  Other terms of the sum stay in the loop.
    """
    loop = taken_apart(node)
    if loop.condition is not None:
        return None
    uses = _uses(loop)
    sums = [(p, f) for p in loop.of_kind("sit_sot") if (f := _products(fgraph, loop, p, uses))]
    if not sums:
        return None
    factors = [v for _, (_, products) in sums for a, b, _ in products for v in (a, b)]
    for p, (rest, _) in sums:
        p.outputs = [rest]
    loop.parts = [p for p in loop.parts if p.outputs != p.inputs or p.kind != "sit_sot"]
    loop.parts += [Part("nit_sot", loop.steps, [], [v]) for v in factors]
    results = loop.applied()
    found = loop.outputs_for(results)
    rows = iter(results[-len(factors) :])
    for p, (_, products) in sums:
        out = node.outputs[p.result]  # type: ignore[index]
        last: Any = found.pop(out, None)
        total = first_rows(p.outer, 1)[0] if last is None else last[-1]
        for _, _, axes in products:
            total = functions.add(total, tensordot(next(rows), next(rows), axes))
        found.update((client.outputs[0], total) for client, _ in fgraph.clients[out])
    return found


def _uses(loop: Whole) -> Counter[Any]:
    """Variable -> number of its uses in a step: as an input of nodes, and as an output."""
    used = [v for node in nodes_of(loop) for v in node.inputs]
    return Counter([*loop.expressions(), *used])


def _products(
    fgraph: FunctionGraph, loop: Whole, p: Part, uses: Counter[Any]
) -> tuple[Any, list[Product]] | None:
    """The next value of a state without its terms that are products, and these.

    None if there are none, if the loop uses the state or its next value otherwise, or more than the
    last value is used after the loop.
    """
    (state,), (new,) = p.inputs, p.outputs
    node = new.owner
    if (
        state.type.ndim != 2
        or node is None
        or scalar_op_name(node) != "add"
        or list(node.inputs).count(state) != 1
        or not uses[state] == uses[new] == 1
    ):
        return None
    if p.result is None or not _only_last(fgraph, loop.node.outputs[p.result]):
        return None
    terms = [v for v in node.inputs if v is not state]
    products = {v: found for v in terms if (found := _as_product(v)) is not None}
    rest = [state, *(v for v in terms if v not in products)]
    if not products:
        return None
    return rest[0] if len(rest) == 1 else functions.add(*rest), list(products.values())


def _only_last(fgraph: FunctionGraph, out: Any) -> bool:
    """Whether all uses of a result are ``out[-1]``."""
    return all(read_from_end(client, out) == 1 for client, _ in fgraph.clients[out])


def _as_product(v: Any) -> Product | None:
    """A matrix as a product of matrices, or of a column and a row as vectors."""
    node = v.owner
    if node is None or v.type.dtype not in ("float32", "float64"):
        return None
    if isinstance(node.op, Dot) and all(x.type.ndim == 2 for x in node.inputs):
        (a, i), (b, j) = (_untransposed(x, k) for x, k in zip(node.inputs, (2, 1)))
        return a, b, ([0, i], [0, j])
    return _as_outer(node.inputs) if scalar_op_name(node) == "mul" else None


def _untransposed(x: Any, axis: int) -> tuple[Any, int]:
    """A matrix, or the one that it is the transpose of, and the axis of its rows of all steps."""
    node = x.owner
    if node is not None and isinstance(node.op, DimShuffle) and node.op.new_order == (1, 0):
        return node.inputs[0], 3 - axis
    return x, axis


def _as_outer(factors: Sequence[Any]) -> Product | None:
    """Factors of which each is a column, a row, or one number, as a product of two vectors."""
    columns = [x for x in factors if x.type.broadcastable[1]]
    rows = [x for x in factors if x.type.broadcastable == (True, False)]
    if len(columns) + len(rows) < len(factors) or not rows:
        return None
    if not any(x.type.broadcastable == (False, True) for x in columns):
        return None
    vectors = [_squeezed(x, 1) for x in columns], [_squeezed(x, 0) for x in rows]
    a, b = (functions.mul(*xs) if len(xs) > 1 else xs[0] for xs in vectors)
    if isinstance(a, Constant) or isinstance(b, Constant) or a.type.dtype != b.type.dtype:
        return None
    return a, b, ([0], [0])


def _squeezed(x: Any, axis: int) -> Any:
    """``x`` without an axis of length 1."""
    node = x.owner
    if node is not None and isinstance(node.op, DimShuffle) and node.inputs[0].type.ndim == 1:
        return node.inputs[0]
    return squeeze(x, axis)
