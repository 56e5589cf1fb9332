"""Rules for chains of products: the order in which they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rule import Context, Replacement, rule
from phintys.scalar import dtypes
from phintys.tensor.dot import Dot
from phintys.tensor.einsum import with_known_lengths
from phintys.tensor.rules.match import at, some

#: the most factors of a chain whose order is decided, which takes cubic time
LONGEST = 40


def _are_matrices(*variables: Variable) -> bool:
    return all(v.type.ndim == 2 for v in variables)


def _are_inexact(*variables: Variable) -> bool:
    """Whether variables have one dtype, of floats or complex numbers."""
    (dtype, *others) = {v.type.dtype for v in variables}
    return not others and (dtypes.is_float(dtype) or dtypes.is_complex(dtype))


@rule(
    "dot(dot(A, B), v) -> dot(A, dot(B, v))",
    "Dot(x, v)",
    where=at(0, Dot),
    law="finite",
    tags=("reassociate_matmul_chain",),
    tested_on=("dot(dot(M, M.T), w[:2])", "dot(dot(dot(M.T, M), M.T), w[:2])"),
)
def chain_with_column(ctx: Context, x: Variable, v: Variable) -> Replacement:
    """Products with a vector, instead of those of matrices."""
    if v.type.ndim != 1 or not _is_open(ctx, x):
        return None
    factors, _ = _chain(ctx, x)
    if not _are_inexact(v, *factors):
        return None
    for factor in reversed(factors):
        v = Dot()(factor, v)
    return v


@rule(
    "dot(u, dot(A, B)) -> dot(dot(u, A), B)",
    "Dot(u, y)",
    where=at(1, Dot),
    law="finite",
    tags=("reassociate_matmul_chain",),
    tested_on=("dot(w, dot(M.T, M))", "dot(w, dot(M.T, dot(M, M.T)))"),
)
def chain_with_row(ctx: Context, u: Variable, y: Variable) -> Replacement:
    """Products with a vector, instead of those of matrices."""
    if u.type.ndim != 1 or not _is_open(ctx, y):
        return None
    factors, _ = _chain(ctx, y)
    if not _are_inexact(u, *factors):
        return None
    for factor in factors:
        u = Dot()(u, factor)
    return u


@rule(
    "dot(dot(A, B), C) -> dot(A, dot(B, C))",
    "Dot(x, y)",
    where=some(Dot),
    outermost=True,
    law="finite",
    tags=("reassociate_matmul_chain",),
    tested_on=("dot(dot(N.T, N), N.T)", "dot(N, dot(N.T, dot(N, N.T)))"),
)
def cheapest_order(ctx: Context, node: Apply) -> Replacement:
    """Multiply matrices of known lengths in the order with the fewest multiplications."""
    if not _are_matrices(*node.inputs):
        return None
    factors, products = _chain(ctx, node.outputs[0], LONGEST)
    if not 3 <= len(factors) <= LONGEST or not _are_inexact(*factors):
        return None
    lengths = [factors[0].type.shape[0], *(v.type.shape[1] for v in factors)]
    if any(None in v.type.shape for v in factors):
        return None  # nor would parts of the chain agree with the whole on what is cheap
    cost = sum(lengths[i] * lengths[k] * lengths[j] for i, k, j in products)
    splits, least = _best_splits(lengths)
    return _computed(factors, splits) if least < cost else None


#: A product of the factors from the first number on, before the last; split at the middle one.
Split = tuple[int, int, int]


def _chain(
    ctx: Context, product: Variable, most: float = inf
) -> tuple[list[Variable], list[Split]]:
    """The factors of a product of matrices in order, and how it is computed.

    Of more than ``most`` factors only some, and a few more, are returned.
    """
    factors: list[Variable] = []
    nodes: list[tuple[Apply, int]] = []
    stack = [product]
    while stack and len(stack) + len(factors) <= most + 1:
        v = stack.pop()
        if v.owner is None or not (v is product or _is_open(ctx, v)):
            factors.append(v)
            continue
        nodes.append((v.owner, len(factors)))
        stack += reversed(v.owner.inputs)
    factors += stack
    counts: dict[Apply | None, int] = {}
    products: list[Split] = []
    for made, start in reversed(nodes):
        x, y = (counts.get(v.owner, 1) for v in made.inputs)
        counts[made] = x + y
        products.append((start, start + x, start + x + y))
    return factors, products


def _is_open(ctx: Context, v: Variable) -> bool:
    """Whether a factor is a product of matrices that continues the chain."""
    made = v.owner
    if made is None or not isinstance(made.op, Dot) or not ctx.single_use(v):
        return False
    return _are_matrices(*made.inputs)


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
