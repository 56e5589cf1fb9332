"""Removes identities that only affect differentiation, after gradients have been taken."""

from __future__ import annotations

from phintys.rewriting.rule import Replacement, rule
from phintys.tensor.variable import TensorVariable


@rule(
    "barrier of gradients -> its input",
    "ViewOp(x, *_)",
    law="exact",
    tags=("local_view_op", "cleanup"),
    tested_on=("disconnected_grad(v)", "zero_grad(M)", "grad_clip(v, -1, 1)"),
)
def useless_view(x: TensorVariable) -> Replacement:
    return x


@rule(
    "term as it is written -> its input",
    "AsWritten(x)",
    phase="specialize",
    law="exact",
    tested_on=("as_written(v)",),
)
def useless_mark(x: TensorVariable) -> Replacement:
    return x
