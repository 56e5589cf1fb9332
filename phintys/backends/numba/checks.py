"""Numba functions of checks."""

from __future__ import annotations

from typing import Any

from phintys.backends.numba.dispatch import compiled, define, numba_funcify
from phintys.backends.numba.routines import by_routine
from phintys.tensor.nnet.unshared import FittingFilters
from phintys.tensor.raise_op import CheckAndRaise

numba_funcify.register(FittingFilters)(by_routine)


@numba_funcify.register(CheckAndRaise)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    conditions = [f"c{k}" for k in range(len(node.inputs) - 1)]
    test = " and ".join(conditions) or "True"
    body = [f"if not ({test}):", f"    raise error({op.msg!r})", "return x"]
    return compiled(define("check", ["x", *conditions], body), error=op.exc_type)
