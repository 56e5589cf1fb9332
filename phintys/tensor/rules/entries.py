"""Operations on matrices of two or three rows that are written entry by entry."""

from __future__ import annotations

from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.rewriting.rule import Context, Replacement
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.entries import SOLVERS, from_entries
from phintys.tensor.linalg.inverse import MatrixInverse
from phintys.tensor.linalg.summary import Det
from phintys.tensor.rules.matrices import fitted, matrix_rule


@matrix_rule(
    "cholesky of [[s**2, r s t], [r s t, t**2]] -> its entries, and others",
    Cholesky,
    MatrixInverse,
    Det,
    *SOLVERS,
    law="drops_errors",
    tested_on=("linalg.cholesky(join(0, join(0, [2], [0.5])[None], join(0, [0.5], [3])[None]))",),
)
def from_written_entries(ctx: Context, node: Apply, op: Op) -> Replacement:
    """See `phintys.tensor.linalg.entries`."""
    found = from_entries(node)
    return None if found is None else fitted(node, found)
