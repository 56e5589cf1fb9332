"""Numba functions of branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.backends.numba.dispatch import compiled, define, numba_funcify
from phintys.conditional.lazy import Absent, LazyIfElse
from phintys.graph.fgraph import FunctionGraph
from phintys.scalar.type import ScalarType
from phintys.tensor.type import TensorType


@numba_funcify.register(LazyIfElse)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    true, false = map(with_own_memory, op.graphs)
    return compiled(_SELECT, true=true, false=false)


_SELECT = """
def lazy_if_else(condition, *args):
    if condition[()]:
        return true(*args)
    return false(*args)
"""


def with_own_memory(fgraph: FunctionGraph) -> Any:
    """The function of a graph; results share no memory with arguments, constants or each other."""
    results: list[str] = []
    seen: set[Any] = set()
    for k, v in enumerate(fgraph.outputs):
        shares = v.owner is None or v.owner.op.view_map or v in seen
        seen.add(v)
        copied = isinstance(v.type, TensorType) and shares
        results.append(f"r[{k}].copy()" if copied else f"r[{k}]")
    body = ["r = f(*args)", f"return {', '.join(results)}"]
    return compiled(define("branch", ["*args"], body), f=numba_funcify(fgraph))


@numba_funcify.register(Absent)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype, _ = op.part
    zeros = f"np.zeros({op.shape}, np.{np.dtype(dtype).name})"
    if isinstance(op.type_, ScalarType):
        zeros += "[()]"
    return compiled(define("absent", [], [f"return {zeros}"]))
