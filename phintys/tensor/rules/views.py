"""Removes identities that only affect differentiation, after gradients have been taken."""

from __future__ import annotations

from typing import Any

from phintys.rewriting.rule import rule


@rule(
    "barrier of gradients -> its input",
    "ViewOp(x)",
    law="exact",
    tags=("local_view_op", "cleanup"),
    tested_on=("disconnected_grad(v)", "zero_grad(M)", "grad_clip(v, -1, 1)"),
)
def useless_view(x: Any) -> Any:
    return x
