"""Rules for chains of products: the order in which they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar import dtypes
from phintys.tensor.contraction_path import TYPICAL_LENGTH
from phintys.tensor.dot import Dot
from phintys.tensor.einsum import with_known_lengths
from phintys.tensor.rules.match import some


@rule(
    "dot(dot(A, B), C) -> dot(A, dot(B, C))",
    "Dot(x, y)",
    where=some(Dot),
    outermost=True,
    law="finite",
    tested_on=(
        "dot(dot(M, M.T), v)",
        "dot(w, dot(M.T, M))",
        "dot(dot(dot(M.T, M), M.T), v)",
        "dot(dot(M, M.T), dot(M, v))",
    ),
)
def cheapest_order(ctx: Context, node: Apply) -> Replacement:
    """Multiply a chain in the order with the fewest multiplications, of all that there are.

    Lengths that are not known count as `TYPICAL_LENGTH`.
    """
    out = node.outputs[0].type.dtype
    if not (dtypes.is_float(out) or dtypes.is_complex(out)):
        return None
    factors, products = _chain(ctx, node)
    if len(factors) < 3 or any(v.type.dtype != out for v in factors):
        return None
    lengths = _lengths(factors)
    cost = sum(lengths[i] * lengths[k] * lengths[j] for i, k, j in products)
    splits, least = _best_splits(lengths)
    return _computed(factors, splits) if least < cost else None


#: A product of the factors from the first number on, before the last; split at the middle one.
Split = tuple[int, int, int]


def _chain(ctx: Context, node: Apply) -> tuple[list[Variable], list[Split]]:
    """The factors of a chain of products in order, and how it is computed."""
    factors: list[Variable] = []
    nodes: list[tuple[Apply, int]] = []
    stack: list[tuple[Variable, bool]] = [(node.outputs[0], True)]
    while stack:
        v, is_open = stack.pop()
        if not is_open or v.owner is None:
            factors.append(v)
            continue
        nodes.append((v.owner, len(factors)))
        x, y = v.owner.inputs
        stack += [(y, _is_open(ctx, y, 1)), (x, _is_open(ctx, x, 0))]
    counts: dict[Apply | None, int] = {}
    products: list[Split] = []
    for made, start in reversed(nodes):
        x, y = (counts.get(v.owner, 1) for v in made.inputs)
        counts[made] = x + y
        products.append((start, start + x, start + x + y))
    return factors, products


def _is_open(ctx: Context, v: Variable, side: int) -> bool:
    """Whether a factor on the left (0) or right (1) is a product that continues the chain.

    A row continues it to the left, and a column to the right.
    """
    made = v.owner
    if made is None or not isinstance(made.op, Dot) or not ctx.single_use(v):
        return False
    return v.type.ndim == 2 or made.inputs[side].type.ndim == 1


def _lengths(factors: Sequence[Variable]) -> list[int]:
    """The lengths at the start of the chain, between factors, and at its end."""
    shapes = [v.type.shape for v in factors]
    first = shapes[0][0] if len(shapes[0]) == 2 else 1
    last = shapes[-1][1] if len(shapes[-1]) == 2 else 1
    between = [y[0] if x[-1] is None else x[-1] for x, y in pairwise(shapes)]
    return [TYPICAL_LENGTH if n is None else n for n in (first, *between, last)]


def _best_splits(lengths: Sequence[int]) -> tuple[dict[tuple[int, int], int], int]:
    """Where to split each part of a chain, and the number of multiplications of the whole."""
    count = len(lengths) - 1
    cost = {(i, i + 1): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for width in range(2, count + 1):
        for i in range(count - width + 1):
            j = i + width
            cost[i, j], splits[i, j] = min(
                (cost[i, k] + cost[k, j] + lengths[i] * lengths[k] * lengths[j], k)
                for k in range(i + 1, j)
            )
    return splits, cost[0, count]


def _computed(factors: Sequence[Variable], splits: dict[tuple[int, int], int]) -> Variable:
    """The product of a chain, computed as the splits say."""
    parts = {(i, i + 1): v for i, v in enumerate(factors)}
    order = [(0, len(factors))]
    for i, j in order:
        k = splits.get((i, j))
        order += [] if k is None else [(i, k), (k, j)]
    for i, j in reversed(order):
        k = splits.get((i, j))
        if k is not None:
            parts[i, j] = Dot()(parts[i, k], parts[k, j])
    return parts[0, len(factors)]


@rule(
    "einsum of known lengths -> its products",
    "Einsum(*_)",
    law="finite",
    tags=("optimize_einsum_inner_graph", "inline_optimized_einsum"),
    tested_on=("einsum_op('ij,jk,kl->il', [M.type, M.T.type, M.type], True)(N, N.T, N)",),
)
def einsum_of_known_lengths(node: Apply) -> Replacement:
    """Decide the order of the products again, now that all lengths are known."""
    op = with_known_lengths(node.op, node.inputs)
    return None if op is None else op.bind(node.inputs)
