"""Numba functions of shapes, reshape, creation, join and split."""

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
from phintys.backends.numba.elemwise import numpy_name, place
from phintys.graph.shapes import LARGEST
from phintys.scalar.dtypes import is_discrete
from phintys.tensor.creation import Alloc, AllocEmpty
from phintys.tensor.fill_diagonal import FillDiagonal, FillDiagonalOffset
from phintys.tensor.join import Join, Split
from phintys.tensor.lengths import Lengths
from phintys.tensor.ranges import ARange, ARangeLength, Eye
from phintys.tensor.reshape import JoinDims, Reshape, SplitDims
from phintys.tensor.shape import (
    MakeVector,
    ScalarFromTensor,
    Shape,
    Shape_i,
    SpecifyShape,
    TensorFromScalar,
    Unbroadcast,
)
from phintys.tensor.type_other import NoneTypeT

# ----------------------------------------------------------------------- shapes as values


@numba_funcify.register(Shape)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    ndim = node.inputs[0].type.ndim
    lines = [f"out[{i}] = x.shape[{i}]" for i in range(ndim)]
    return compiled(
        define("shape", ["x"], [f"out = np.empty({ndim}, np.int64)", *lines, "return out"])
    )


@numba_funcify.register(Shape_i)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return compiled(define("shape_i", ["x"], [f"return np.asarray(x.shape[{op.i}])"]))


@numba_funcify.register(MakeVector)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    names = [f"x{i}" for i in range(len(node.inputs))]
    lines = [f"out[{i}] = {x}[()]" for i, x in enumerate(names)]
    new = f"out = np.empty({len(names)}, np.{numpy_name(op.dtype)})"
    return compiled(define("make_vector", names, [new, *lines, "return out"]))


@numba_funcify.register(TensorFromScalar)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    new = f"out = np.empty((), np.{numpy_name(node.outputs[0].type.dtype)})"
    return compiled(define("tensor_from_scalar", ["x"], [new, "out[()] = x", "return out"]))


@numba_funcify.register(ScalarFromTensor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return compiled(define("scalar_from_tensor", ["x"], ["return x[()]"]))


@numba_funcify.register(Unbroadcast)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return compiled(define("unbroadcast", ["x"], ["return x"]))


@numba_funcify.register(SpecifyShape)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    names = [f"n{i}" for i in range(len(node.inputs) - 1)]
    checks = [
        f"if x.shape[{i}] != {n}[()]: raise ValueError('The length is not the specified one.')"
        for i, n in enumerate(names)
        if not isinstance(node.inputs[1 + i].type, NoneTypeT)
    ]
    return compiled(define("specify_shape", ["x", *names], [*checks, "return x"]))


@numba_funcify.register(Reshape)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    old = node.inputs[0].type.ndim
    lengths, known = [f"n{i}" for i in range(op.ndim)], [f"m{i}" for i in range(op.ndim)]
    body = ["unknown = 0"]
    for i, (n, m) in enumerate(zip(lengths, known)):
        body.append(f"{n} = {m} = np.int64(shape[{i}])")
        body.append(f"if {n} == -1:")
        body.append(f"  {m} = 1")
        body.append("  unknown += 1")
        body.append(f"elif {n} < 0: raise ValueError('A length is negative.')")
    body += size_of(known)
    fits = "unknown == 1 and size > 0 and x.size % size == 0 or unknown == 0 and size == x.size"
    body.append(f"if not ({fits}): raise ValueError('The sizes do not agree.')")
    body += [f"if {n} == -1: {n} = x.size // size" for n in lengths]
    if old == 0 or op.ndim == 0:
        new = f"out = np.empty({tuple_of(lengths)}, np.{numpy_name(node.outputs[0].type.dtype)})"
        first = place((1,) * old, ["0"] * old)
        body += [new, f"out[{place((1,) * op.ndim, lengths)}] = x[{first}]", "return out"]
    else:
        body.append(f"return np.ascontiguousarray(x).reshape({tuple_of(lengths)})")
    return compiled(define("reshape", ["x", "shape"], body))


@numba_funcify.register(JoinDims)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    axes = range(node.inputs[0].type.ndim)
    lengths = [f"x.shape[{k}]" for k in axes if k not in op.axis_range]
    joined = " * ".join(["1", *(f"x.shape[{k}]" for k in op.axis_range)])
    lengths.insert(op.start_axis, joined)
    return compiled(define("join_dims", ["x"], _reshaped(node, lengths)))


@numba_funcify.register(SplitDims)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    x, out = (v.type.ndim for v in (node.inputs[0], node.outputs[0]))
    names = [f"n{k}" for k in range(out - x + 1)]
    lengths = [f"x.shape[{k}]" for k in range(x)]
    lengths[op.axis : op.axis + 1] = names
    body = [f"{n} = np.int64(shape[{k}])" for k, n in enumerate(names)]
    negative = " or ".join(["False", *(f"{n} < 0" for n in names)])
    size = " * ".join(["1", *names])
    body.append(
        f"if {negative} or {size} != x.shape[{op.axis}]: raise ValueError('Wrong lengths.')"
    )
    return compiled(define("split_dims", ["x", "shape"], [*body, *_reshaped(node, lengths)]))


def _reshaped(node: Any, lengths: list[str]) -> list[str]:
    """Lines that return ``x`` with another shape, of the same size."""
    if node.inputs[0].type.ndim and lengths:
        return [f"return np.ascontiguousarray(x).reshape({tuple_of(lengths)})"]
    new = f"out = np.empty({tuple_of(lengths)}, np.{numpy_name(node.outputs[0].type.dtype)})"
    first = ", ".join(["0"] * node.inputs[0].type.ndim) or "()"
    return [new, f"out[...] = x[{first}]", "return out"]


# -------------------------------------------------------------- tensors made from lengths


def lengths_from(names: list[str]) -> list[str]:
    """Lines that read lengths ``m0``, ``m1``, ... from 0-d arrays; they raise for negative ones."""
    lines = []
    for k, n in enumerate(names):
        lines.append(f"m{k} = np.int64({n}[()])")
        lines.append(f"if m{k} < 0: raise ValueError('A length is negative.')")
    return lines


def size_of(lengths: list[str]) -> list[str]:
    """Lines that set ``size`` to the product of lengths.

    They raise if the product overflows, even if one of the lengths is 0.
    """
    lines = ["size = 1"]
    for n in lengths:
        lines.append(f"if {n} > 1 and size > {LARGEST} // {n}: raise ValueError('Too many.')")
        lines.append(f"size *= max({n}, 1)")
    return [*lines, *(f"if {n} == 0: size = 0" for n in lengths)]


@numba_funcify.register(Lengths)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    names = [f"n{k}" for k in range(len(node.inputs))]
    body = [*lengths_from(names), *size_of([f"m{k}" for k in range(len(names))])]
    results = ", ".join(f"np.asarray(m{k})" for k in range(len(names)))
    return compiled(define("lengths", names, [*body, f"return {results}"]))


@numba_funcify.register(Alloc)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    value, ndim = node.inputs[0].type, node.outputs[0].type.ndim
    names = [f"n{k}" for k in range(ndim)]
    lengths, indices = [f"m{k}" for k in range(ndim)], [f"i{k}" for k in range(ndim)]
    offset = ndim - value.ndim
    checks = [
        f"if x.shape[{k}] != m{offset + k}: raise ValueError('The value does not fit.')"
        for k, n in enumerate(value.shape)
        if n != 1
    ]
    new = f"out = np.empty({tuple_of(lengths)}, np.{numpy_name(value.dtype)})"
    write = f"out[{', '.join(indices) or '()'}] = x[{place(value.shape, indices[offset:])}]"
    body = [*lengths_from(names), *checks, new, *nested(indices, lengths, [write]), "return out"]
    return compiled(define("alloc", ["x", *names], body))


@numba_funcify.register(AllocEmpty)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    names = [f"n{k}" for k in range(len(node.inputs))]
    shape = tuple_of([f"m{k}" for k in range(len(names))])
    body = [*lengths_from(names), f"return np.empty({shape}, np.{numpy_name(op.dtype)})"]
    return compiled(define("alloc_empty", names, body))


#: lines that set ``n`` to the number of elements of an arange; differences are unsigned, since they
#: may not fit in int64
_COUNT = [
    "first, last, by = np.int64(start[()]), np.int64(stop[()]), np.int64(step[()])",
    "if by == 0: raise ValueError('The step is 0.')",
    "low, high = (first, last) if by > 0 else (last, first)",
    "n = 0",
    "if low < high:",
    "  size = np.uint64(by) if by > 0 else np.uint64(0) - np.uint64(by)",
    "  whole = (np.uint64(high) - np.uint64(low) - np.uint64(1)) // size",
    f"  if whole >= np.uint64({LARGEST}): raise ValueError('Too many elements.')",
    "  n = np.int64(whole) + 1",
]


@numba_funcify.register(ARangeLength)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return compiled(
        define("arange_length", ["start", "stop", "step"], [*_COUNT, "return np.asarray(n)"])
    )


@numba_funcify.register(ARange)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    if not all(is_discrete(v.type.dtype) for v in node.inputs):
        return in_object_mode(op, node, **kwargs)
    dtype = numpy_name(op.dtype)
    body = [
        *_COUNT,
        f"out = np.empty(n, np.{dtype})",
        "for i in range(n):",
        f"  out[i] = np.{dtype}(first + i * by)",
        "return out",
    ]
    return compiled(define("arange", ["start", "stop", "step"], body))


@numba_funcify.register(Eye)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    body = [
        *lengths_from(["n", "m"]),
        "offset = np.int64(k[()])",
        f"out = np.zeros((m0, m1), np.{numpy_name(op.dtype)})",
        "for i in range(m0):",
        "  if 0 <= i + offset < m1: out[i, i + offset] = 1",
        "return out",
    ]
    return compiled(define("eye", ["n", "m", "k"], body))


@numba_funcify.register(FillDiagonal)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    ndim = node.inputs[0].type.ndim
    checks = [
        f"if x.shape[{k}] != x.shape[0]: raise ValueError('Lengths differ.')" for k in range(ndim)
    ]
    body = [
        *(checks if ndim > 2 else []),
        "out = x.copy()",
        f"for i in range(min({tuple_of([f'x.shape[{k}]' for k in range(ndim)])})):",
        f"    out[{', '.join(['i'] * ndim)}] = value[()]",
        "return out",
    ]
    return compiled(define("fill_diagonal", ["x", "value"], body))


@numba_funcify.register(FillDiagonalOffset)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    body = [
        "out, k = x.copy(), offset[()]",
        "for i in range(max(0, -k) if k > -x.shape[0] else x.shape[0], x.shape[0]):",
        "    if k >= x.shape[1] - i: break",
        "    out[i, i + k] = value[()]",
        "return out",
    ]
    return compiled(define("fill_diagonal_offset", ["x", "value", "offset"], body))


# ------------------------------------------------------------------------ join and split


@numba_funcify.register(Join)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    out = node.outputs[0].type
    names = [f"x{i}" for i in range(len(node.inputs))]
    body = [f"n = {' + '.join(f'{x}.shape[{op.axis}]' for x in names)}"]
    for axis in (a for a in range(out.ndim) if a != op.axis):
        for x in names[1:]:
            test = f"{x}.shape[{axis}] != x0.shape[{axis}]"
            body.append(f"if {test}: raise ValueError('Lengths do not agree.')")
    shape = tuple_of(["n" if a == op.axis else f"x0.shape[{a}]" for a in range(out.ndim)])
    body += [f"out = np.empty({shape}, np.{numpy_name(out.dtype)})", "start = 0"]
    indices = [f"i{a}" for a in range(out.ndim)]
    target = ", ".join(f"start + {i}" if a == op.axis else i for a, i in enumerate(indices))
    for x in names:
        write = f"out[{target}] = {x}[{', '.join(indices)}]"
        body += nested(indices, [f"{x}.shape[{a}]" for a in range(out.ndim)], [write])
        body.append(f"start += {x}.shape[{op.axis}]")
    return compiled(define("join", names, [*body, "return out"]))


@numba_funcify.register(Split)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    count, before = op.len_splits, ":, " * op.axis
    body = ["start = 0"]
    for i in range(count):
        body.append(f"n{i} = np.int64(lengths[{i}])")
        body.append(f"if n{i} < 0: raise ValueError('A length is negative.')")
        body += [f"e{i} = start", f"start += n{i}"]
    body.append(f"if start != x.shape[{op.axis}]: raise ValueError('Lengths do not add up.')")
    pieces = [f"x[{before}e{i}:e{i} + n{i}]" for i in range(count)]
    return compiled(define("split", ["x", "lengths"], [*body, f"return {', '.join(pieces)}"]))
