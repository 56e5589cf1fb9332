"""Numba functions of reductions, argmax, cumulative sums and softmax."""

from __future__ import annotations

from collections.abc import Sequence
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
from phintys.backends.numba.scalar import has_source, is_built_in, literal, scalar_lines, typed
from phintys.graph.variable import Apply
from phintys.scalar.op import TABLE
from phintys.tensor.cumulative import CumOp
from phintys.tensor.reduce import Argmax, CAReduce, Max, Min
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax


class Axes:
    """Generates loops over the kept and the reduced axes of an array ``x``.

    ``element`` is the source of the element of ``x`` in the loops, ``result`` that of ``out``.
    """

    def __init__(self, ndim: int, reduced: Sequence[int]) -> None:
        self.all = [f"i{k}" for k in range(ndim)]
        self.kept = [k for k in range(ndim) if k not in reduced]
        self.reduced = list(reduced)
        self.element = f"x[{', '.join(self.all) or '()'}]"
        self.result = f"out[{', '.join(self.all[k] for k in self.kept) or '()'}]"

    def over(self, axes: Sequence[int], body: Sequence[str]) -> list[str]:
        """The lines of loops over some axes."""
        return nested([self.all[k] for k in axes], [f"x.shape[{k}]" for k in axes], body)

    def new(self, dtype: str) -> str:
        """The line that allocates the result ``out``."""
        shape = tuple_of([f"x.shape[{k}]" for k in self.kept])
        return f"out = np.empty({shape}, np.{numpy_name(dtype)})"

    def not_empty(self) -> list[str]:
        """Lines that raise if a reduced axis is empty."""
        return [
            f"if x.shape[{k}] == 0: raise ValueError('An axis is empty.')" for k in self.reduced
        ]


@numba_funcify.register(CAReduce)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    input_dtype, output_dtype = node.inputs[0].type.dtype, node.outputs[0].type.dtype
    acc = op.acc_dtype or output_dtype
    extreme = isinstance(op, Max | Min)
    start = op.initial_value(acc) if extreme else op.scalar_op.identity
    native = op.is_native(node) and is_built_in(op.scalar_op)
    if start is None or not native or not has_source(op.scalar_op, [acc, acc]):
        return in_object_mode(op, node, **kwargs)
    axes = Axes(node.inputs[0].type.ndim, op.axes(node))
    cast, (value,), _ = scalar_lines(TABLE[f"cast_{acc}"], ["a"], [input_dtype], [acc])
    step, (total,), env = scalar_lines(op.scalar_op, ["acc", "b"], [acc, acc], [acc])
    inner = [f"a = {axes.element}", *cast, f"b = {value}", *step, f"acc = {total}"]
    end, (result,), _ = scalar_lines(TABLE[f"cast_{output_dtype}"], ["acc"], [acc], [output_dtype])
    outer = [f"acc = {literal(start, acc)}", *axes.over(axes.reduced, inner)]
    outer += [*end, f"{axes.result} = {result}"]
    checks = axes.not_empty() if op.needs_elements else []
    body = [*checks, axes.new(output_dtype), *axes.over(axes.kept, outer), "return out"]
    return compiled(define("reduction", ["x"], body), **env)


@numba_funcify.register(Argmax)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    if not has_source(TABLE["lt"], [node.inputs[0].type.dtype] * 2):
        return in_object_mode(op, node, **kwargs)
    axes = Axes(node.inputs[0].type.ndim, op.axes(node))
    better = ">" if op.kind == "argmax" else "<"
    inner = [
        f"a = {axes.element}",
        f"if position == 0 or a {better} best or (a != a and best == best):",
        "    best = a",
        "    found = position",
        "position += 1",
    ]
    first = ", ".join("0" if k in axes.reduced else i for k, i in enumerate(axes.all)) or "()"
    outer = [f"best = x[{first}]", "position = found = 0", *axes.over(axes.reduced, inner)]
    outer.append(f"{axes.result} = found")
    body = [*axes.not_empty(), axes.new("int64"), *axes.over(axes.kept, outer), "return out"]
    return compiled(define("argmax", ["x"], body))


@numba_funcify.register(CumOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype, ndim = node.outputs[0].type.dtype, node.outputs[0].type.ndim
    scalar_op = TABLE["add" if op.mode == "add" else "mul"]
    if not has_source(scalar_op, [dtype, dtype]):
        return in_object_mode(op, node, **kwargs)
    axes = Axes(ndim, [])
    here = ", ".join(axes.all)
    before = ", ".join(f"{i} - 1" if k == op.axis else i for k, i in enumerate(axes.all))
    step, (total,), env = scalar_lines(scalar_op, ["a", "b"], [dtype, dtype], [dtype])
    inner = [
        f"if i{op.axis} > 0:",
        *(f"    {line}" for line in [f"a = out[{before}]", f"b = out[{here}]", *step]),
        f"    out[{here}] = {total}",
    ]
    body = ["out = x.copy()", *axes.over(axes.kept, inner), "return out"]
    return compiled(define("running", ["x"], body), **env)


# ---------------------------------------------------------------------------------- softmax


def _exponentials(node: Apply, zero_infinite_top: bool) -> tuple[Axes, list[str]]:
    """Lines that set ``top`` to the maximum and ``total`` to the sum of ``exp(x - top)``.

    With ``zero_infinite_top`` an infinite maximum is replaced by 0.
    """
    axes = Axes(node.inputs[0].type.ndim, node.op.axis or ())
    greatest = [f"a = {axes.element}", "if a > top or a != a: top = a"]
    finite = ["if np.isinf(top): top = 0.0"] if zero_infinite_top else []
    summed = [f"total += np.exp({axes.element} - top)"]
    lines = ["top = -np.inf", *axes.over(axes.reduced, greatest), *finite, "total = 0.0"]
    return axes, [*lines, *axes.over(axes.reduced, summed)]


@numba_funcify.register(Softmax)
@numba_funcify.register(LogSoftmax)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    axes, lines = _exponentials(node, False)
    shifted = f"{axes.element} - top"
    is_log = isinstance(op, LogSoftmax)
    value = f"{shifted} - np.log(total)" if is_log else f"np.exp({shifted}) / total"
    target = f"out[{', '.join(axes.all) or '()'}]"
    last = axes.over(axes.reduced, [f"{target} = {typed(value, node.outputs[0].type.dtype)}"])
    body = ["out = np.empty_like(x)", *axes.over(axes.kept, [*lines, *last]), "return out"]
    return compiled(define("softmax", ["x"], body))


@numba_funcify.register(LogSumExp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    axes, lines = _exponentials(node, True)
    dtype = node.outputs[0].type.dtype
    last = f"{axes.result} = {typed('np.log(total) + top', dtype)}"
    body = [axes.new(dtype), *axes.over(axes.kept, [*lines, last]), "return out"]
    return compiled(define("logsumexp", ["x"], body))
