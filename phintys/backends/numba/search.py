"""Numba functions of searching and permuting."""

from __future__ import annotations

from typing import Any

from phintys.backends.numba.dispatch import (
    compiled,
    define,
    in_object_mode,
    nested,
    numba_funcify,
    tuple_of,
)
from phintys.backends.numba.elemwise import numpy_name
from phintys.backends.numba.routines import routine_function
from phintys.tensor.permute import PermuteRowElements
from phintys.tensor.search import SearchsortedOp, common_dtype, insertion_points


@numba_funcify.register(SearchsortedOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = common_dtype(node)
    if dtype not in insertion_points.dtypes:
        return in_object_mode(op, node, **kwargs)
    right = int(op.side == "right")
    body = [
        "out = np.empty(v.shape, np.int64)",
        f"sorted, keys = x.astype(np.{dtype}), v.astype(np.{dtype}).reshape(-1)",
        f"f({right}, x.size, v.size, sorted, keys, out.reshape(-1))",
        "return out",
    ]
    f = routine_function(insertion_points, dtype)
    return compiled(define("searchsorted", ["x", "v"], body), f=f)


@numba_funcify.register(PermuteRowElements)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    x, y = (v.type.broadcastable[:-1] for v in node.inputs)
    axes = range(len(x))
    letters = [f"i{k}" for k in axes]
    rows = ["".join(f"{'0' if one[k] else i}, " for k, i in enumerate(letters)) for one in (x, y)]
    lengths = [f"{'y' if x[k] else 'x'}.shape[{k}]" for k in axes]
    out = "".join(f"{i}, " for i in letters)
    assign = f"out[{out}j] = x[{rows[0]}i]" if op.inverse else f"out[{out}i] = x[{rows[0]}j]"
    checks = [
        f"if x.shape[{k}] != y.shape[{k}]: raise ValueError('Lengths do not agree.')"
        for k in [*(k for k in axes if not (x[k] or y[k])), len(x)]
    ]
    dtype = numpy_name(node.outputs[0].type.dtype)
    body = [
        f"j = np.int64(y[{rows[1]}i])",
        "j = j + n if j < 0 else j",
        "if j < 0 or j >= n: raise IndexError('A permutation is out of range.')",
        assign,
    ]
    new = [f"n = x.shape[{len(x)}]", f"out = np.empty({tuple_of([*lengths, 'n'])}, np.{dtype})"]
    if op.inverse:  # not all elements are assigned if it is no permutation
        new.append("out[...] = x")
    lines = [*checks, *new, *nested([*letters, "i"], [*lengths, "n"], body), "return out"]
    return compiled(define("permute_row_elements", ["x", "y"], lines))
