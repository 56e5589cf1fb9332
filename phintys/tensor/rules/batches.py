"""Rules for ops that are applied to batches."""

from __future__ import annotations

from collections.abc import Sequence

from phintys.graph.variable import Apply, Computed, Variable
from phintys.rewriting.rule import Replacement, rule
from phintys.tensor.axes import squeeze, transpose
from phintys.tensor.dot import Dot
from phintys.tensor.index_list import FULL
from phintys.tensor.rules.reading import index_of, is_full, read
from phintys.tensor.variable import TensorVariable


@rule(
    "matmul(A, B)[i] -> matmul(A[i], B[i])",
    "Subtensor(whole := Blockwise(*operands), *_)",
    single_use=True,
    law="drops_errors",
    tags=("local_subtensor_of_batch_dims", "local_blockwise_of_subtensor", "shape_unsafe"),
    tested_on=("matmul(K, K.dimshuffle(0, 2, 1))[0]", "matmul(K, M.T[:, :1].T)[1:]"),
)
def read_of_batch(node: Apply, whole: Computed, operands: Sequence[Variable]) -> Replacement:
    """Compute only the items that are read."""
    op, index = whole.owner.op, index_of(node)
    out = node.inputs[0].type
    batch = out.ndim - len(op.outputs_sig[0])
    if len(op.outputs_sig) > 1 or op.destroy_map or not all(map(is_full, index[batch:])):
        return None
    found = []
    for v in operands:
        short = [b and not o for b, o in zip(v.type.broadcastable[:batch], out.broadcastable)]
        entries = [
            e if not alone else FULL if isinstance(e, slice) else 0
            for e, alone in zip(index, short)
        ]
        found.append(read(v, entries))
    return op(*found)


@rule(
    "batched dot without batch axes -> dot",
    "Blockwise(*operands, core_op=core)",
    given={"core": lambda op: type(op) is Dot},
    law="exact",
    tags=(
        "local_eager_useless_unbatched_blockwise",
        "local_batched_matmul_to_core_matmul",
        "vectors",
    ),
    tested_on=("Blockwise(Dot(), '(m,k),(k,n)->(m,n)')(M, Q)",),
)
def dot_without_batch(node: Apply, operands: Sequence[Variable], core: Dot) -> Replacement:
    """In an early phase: products of matrices become calls of BLAS."""
    return _unbatched(node)


@rule(
    "batched op without batch axes -> op",
    "Blockwise(*_)",
    phase="specialize",
    law="exact",
    tags=("local_useless_unbatched_blockwise",),
    tested_on=("Blockwise(Dot(), '(m,k),(k)->(m)')(M, w)",),
)
def op_without_batch(node: Apply) -> Replacement:
    return _unbatched(node)


def _unbatched(node: Apply) -> Replacement:
    """The results of the op of one item, for inputs that are one item."""
    op = node.op
    if op.destroy_map or node.inputs[0].type.ndim != len(op.inputs_sig[0]):
        return None
    return list(op.core_op.make_node(*node.inputs).outputs)


@rule(
    "matvec(A, X) -> dot(X, A.T), vecmat(X, A) -> dot(X, A)",
    "Blockwise(x, y, core_op=core)",
    given={"core": lambda op: type(op) is Dot},
    law="rounding",
    tags=("local_batched_matvec_to_dot",),
    tested_on=("matvec(M, N)", "vecmat(N, M.T)"),
)
def product_with_one_matrix(
    node: Apply, x: TensorVariable, y: TensorVariable, core: Dot
) -> Replacement:
    """Products of many vectors with one matrix become a matrix product."""
    ranks = [len(sig) for sig in node.op.inputs_sig]
    if ranks == [2, 1] and y.type.ndim == 2 and x.type.broadcastable[0]:
        return core(y, transpose(squeeze(x, 0)))
    if ranks == [1, 2] and x.type.ndim == 2 and y.type.broadcastable[0]:
        return core(x, squeeze(y, 0))
    return None
