"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

from phintys.backends.numba.dispatch import compiled, define, in_object_mode, numba_funcify
from phintys.tensor.dot import Dot

BLAS = frozenset(("float32", "float64", "complex64", "complex128"))


@numba_funcify.register(Dot)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    if dtype not in BLAS:
        return in_object_mode(op, node, **kwargs)
    args = []
    for name, v in zip("xy", node.inputs):
        cast = "" if v.type.dtype == dtype else f".astype(np.{dtype})"
        args.append(f"np.ascontiguousarray({name}{cast})")
    body = [
        "if x.shape[-1] != y.shape[0]: raise ValueError('Inner lengths do not agree.')",
        f"return np.asarray(np.dot({', '.join(args)}))",
    ]
    return compiled(define("dot", ["x", "y"], body))
