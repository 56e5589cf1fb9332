"""Numba functions of matrix products and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.backends.numba.dispatch import (
    compiled,
    convert_node,
    define,
    in_object_mode,
    nested,
    numba_funcify,
    tuple_of,
)
from phintys.backends.numba.elemwise import common_length, numpy_name, place
from phintys.backends.numba.routines import (
    depends_on_lengths_only,
    length_source,
    requirement_lines,
    shape_source,
)
from phintys.graph.shapes import answer
from phintys.graph.variable import Apply
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import Dot

BLAS = frozenset(("float32", "float64", "complex64", "complex128"))


def _loop_over_items(op: Any, node: Apply, **kwargs: Any) -> Any:
    """The Numba function of a core op, applied to the items of a batch."""
    found = answer(op, node.inputs)
    is_registered = numba_funcify.dispatch(type(op.core_op)) is not in_object_mode
    if not (is_registered and depends_on_lengths_only(found)):
        return in_object_mode(op, node, **kwargs)
    core, n = convert_node(op.core_op, op.core_node(node), **kwargs), op.batch_ndim(node)
    if not n:
        return core
    names = [f"x{k}" for k in range(len(node.inputs))]
    results = [f"out{k}" for k in range(len(node.outputs))]
    indices = [f"i{k}" for k in range(n)]
    body = list(requirement_lines(found))
    for out, v, shape in zip(results, node.outputs, found.shapes):
        body.append(f"{out} = np.empty({shape_source(shape)}, np.{numpy_name(v.type.dtype)})")
    places = [place(v.type.shape[:n], indices) for v in node.inputs]
    call = f"f({', '.join(f'{x}[{at}]' for x, at in zip(names, places))})"
    at = ", ".join(indices)
    if len(results) == 1:
        inner = [f"out0[{at}] = {call}"]
    else:
        inner = [f"items = {call}"]
        inner += [f"{out}[{at}] = items[{k}]" for k, out in enumerate(results)]
    counts = [length_source(d) for d in found.shapes[0][:n]]
    returned = "out0" if len(results) == 1 else tuple_of(results)
    body += [*nested(indices, counts, inner), f"return {returned}"]
    return compiled(define("batched", names, body), f=core)


def _product(items: Sequence[str], node: Apply) -> str:
    """The source of the product of two vectors or matrices."""
    dtype = node.outputs[0].type.dtype
    args = []
    for item, v in zip(items, node.inputs):
        cast = "" if v.type.dtype == dtype else f".astype(np.{dtype})"
        args.append(f"np.ascontiguousarray({item}{cast})")
    return f"np.dot({', '.join(args)})"


@numba_funcify.register(Dot)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    if node.outputs[0].type.dtype not in BLAS:
        return in_object_mode(op, node, **kwargs)
    body = [
        "if x.shape[-1] != y.shape[0]: raise ValueError('Inner lengths do not agree.')",
        f"return np.asarray({_product(['x', 'y'], node)})",
    ]
    return compiled(define("dot", ["x", "y"], body))


@numba_funcify.register(Blockwise)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """A loop over the batch; object mode for core ops that are not registered."""
    out, n = node.outputs[0].type, op.batch_ndim(node)
    if not isinstance(op.core_op, Dot) and out.dtype in BLAS:
        return _loop_over_items(op, node, **kwargs)
    if not isinstance(op.core_op, Dot) or out.dtype not in BLAS or not n:
        return in_object_mode(op, node, **kwargs)
    shapes = [v.type.shape for v in node.inputs]
    indices, lengths = [f"i{k}" for k in range(n)], [f"n{k}" for k in range(n)]
    body = [line for k in range(n) for line in common_length(lengths[k], k, "xy", shapes)]
    inner = f"y.shape[{n}]"
    body.append(f"if x.shape[-1] != {inner}: raise ValueError('Inner lengths do not agree.')")
    core = [f"x.shape[{n}]"] * (len(shapes[0]) - n - 1) + ["y.shape[-1]"] * (len(shapes[1]) - n - 1)
    body.append(f"out = np.empty({tuple_of([*lengths, *core])}, np.{numpy_name(out.dtype)})")
    items = [f"{x}[{place(shape[:n], indices)}]" for x, shape in zip("xy", shapes)]
    write = f"out[{', '.join(indices)}] = {_product(items, node)}"
    body += [*nested(indices, lengths, [write]), "return out"]
    return compiled(define("batched_dot", ["x", "y"], body))
