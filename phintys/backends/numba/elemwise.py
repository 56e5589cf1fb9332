"""Numba functions of Elemwise, DimShuffle and gradient barriers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.assumptions import SpecifyAssumptions
from phintys.backends.numba.dispatch import (
    compiled,
    convert_node,
    define,
    in_object_mode,
    nested,
    numba_funcify,
    tuple_of,
)
from phintys.backends.numba.scalar import has_source, is_built_in, scalar_lines, typed
from phintys.gradient.barriers import DeepCopyOp, TypeCastingOp
from phintys.graph.variable import Apply
from phintys.tensor.elemwise import DimShuffle, Elemwise


@numba_funcify.register(Elemwise)
def numba_funcify_elemwise(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """The Numba function of an elementwise op: loops over all elements."""
    scalar_op = op.scalar_op
    input_dtypes = [v.type.dtype for v in node.inputs]
    results = [v.type.dtype for v in node.outputs]
    names = [f"a{i}" for i in range(len(input_dtypes))]
    if not is_built_in(scalar_op):
        function = convert_node(scalar_op, node, **kwargs)
        lines, found, env = (
            registered_lines(names, results),
            [f"b{k}" for k in range(len(results))],
            {},
        )
        env["scalar"] = function
    elif has_source(scalar_op, input_dtypes):
        lines, found, env = scalar_lines(scalar_op, names, input_dtypes, results)
    else:
        return in_object_mode(op, node, **kwargs)
    return compiled(_loops(node, lines, found), **env)


def registered_lines(names: Sequence[str], results: Sequence[str]) -> list[str]:
    """The lines that call the Numba function that a user has registered for a scalar op."""
    call = f"scalar({', '.join(names)})"
    if len(results) == 1:
        return [f"b0 = {typed(call, results[0])}"]
    return [f"{', '.join(f'b{k}' for k in range(len(results)))} = {call}"]


def _loops(node: Apply, lines: list[str], found: list[str]) -> str:
    """The source of loops over all elements; only static lengths of 1 broadcast."""
    shapes = [v.type.shape for v in node.inputs]
    names = [f"x{i}" for i in range(len(shapes))]
    ndim = node.outputs[0].type.ndim
    indices = [f"i{k}" for k in range(ndim)]
    lengths = [f"n{k}" for k in range(ndim)]
    body = []
    for axis in range(ndim):
        body += common_length(lengths[axis], axis, names, shapes)
    for k, v in enumerate(node.outputs):
        body.append(f"out{k} = np.empty({tuple_of(lengths)}, np.{numpy_name(v.type.dtype)})")
    reads = [
        f"a{i} = {x}[{place(shape, indices)}]" for i, (x, shape) in enumerate(zip(names, shapes))
    ]
    writes = [f"out{k}[{place((None,) * ndim, indices)}] = {t}" for k, t in enumerate(found)]
    body += nested(indices, lengths, [*reads, *lines, *writes])
    body.append(f"return {', '.join(f'out{k}' for k in range(len(node.outputs)))}")
    return define("elementwise", names, body)


def common_length(
    length: str, axis: int, names: Sequence[str], shapes: Sequence[tuple[int | None, ...]]
) -> list[str]:
    """Lines that set ``length`` to the common length of the operands along an axis.

    Operands of static length 1 broadcast; the lines raise if the others differ.
    """
    free = [x for x, shape in zip(names, shapes) if shape[axis] != 1]
    if not free:
        return [f"{length} = 1"]
    check = [
        f"if {x}.shape[{axis}] != {length}: raise ValueError('Lengths do not agree.')"
        for x in free[1:]
    ]
    return [f"{length} = {free[0]}.shape[{axis}]", *check]


def place(shape: Sequence[int | None], indices: Sequence[str]) -> str:
    """The source of the index of an operand: 0 along axes of static length 1."""
    return ", ".join("0" if n == 1 else i for n, i in zip(shape, indices)) or "()"


def numpy_name(dtype: str) -> str:
    """The name of a dtype as an attribute of NumPy."""
    return "bool_" if dtype == "bool" else dtype


@numba_funcify.register(DimShuffle)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    checks = [
        f"if x.shape[{a}] != 1: raise ValueError('A dropped axis is not 1.')" for a in op.drop
    ]
    if not op.new_order:
        dtype = numpy_name(node.outputs[0].type.dtype)
        first = place((1,) * op.input_ndim, ["0"] * op.input_ndim)
        body = [*checks, f"out = np.empty((), np.{dtype})", f"out[()] = x[{first}]", "return out"]
        return compiled(define("dimshuffle", ["x"], body))
    shape = tuple_of(["1" if o == "x" else f"x.shape[{o}]" for o in op.new_order])
    strides = tuple_of(["0" if o == "x" else f"x.strides[{o}]" for o in op.new_order])
    view = f"return np.lib.stride_tricks.as_strided(x, {shape}, {strides})"
    return compiled(define("dimshuffle", ["x"], [*checks, view]))


@numba_funcify.register(SpecifyAssumptions)
@numba_funcify.register(TypeCastingOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return compiled("def view(x):\n    return x\n")


@numba_funcify.register(DeepCopyOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return compiled("def deep_copy(x):\n    return x.copy()\n")
