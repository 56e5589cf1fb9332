"""A `Scan` applied to a batch: one loop, with the axes of the batch behind that of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.errors import MethodNotDefined
from phintys.graph.variable import Apply
from phintys.inner import OpFromGraph
from phintys.loop.influence import positions
from phintys.loop.parts import BUFFERS, Part, apply_parts, parts_of
from phintys.tensor.creation import broadcast_batches
from phintys.tensor.elemwise import dimshuffle, functions
from phintys.tensor.type import TensorType

STATES = BUFFERS | {"untraced_sit_sot"}
ROWS = BUFFERS | {"seq"}


def batched_node(op: Any, node: Apply, batched_inputs: Sequence[Any]) -> Apply:
    """The node that applies a loop to all items of a batch.

    MethodNotDefined if a number of steps, a length or the condition differs between items.
    """
    inputs = [x.type.make_variable() for x in batched_inputs]
    outputs = _Batch(op, node, inputs).outputs()
    return OpFromGraph(inputs, outputs, inline=True, name="batch_of_loops").make_node(
        *batched_inputs
    )


class _Batch:
    """A loop on inputs with additional leading axes.

    A state that differs between items has all axes of the batch, other arguments those that they
    are given with.
    """

    def __init__(self, op: Any, node: Apply, inputs: Sequence[Any]) -> None:
        self.op, self.inputs = op, inputs
        self.parts = positions(op)
        self.extra = [_ndim(x) - _ndim(v) for x, v in zip(inputs, node.inputs, strict=True)]
        tensors = [k for k, x in enumerate(inputs) if isinstance(x.type, TensorType)]
        own = [_ndim(node.inputs[k]) for k in tensors]
        full = broadcast_batches([inputs[k] for k in tensors], own)
        self.full = dict(zip(tensors, full, strict=True))
        self.batch = max(self.extra)
        counts = [0, *(p.outer for p in self.parts if p.kind == "nit_sot")]
        if any(self.extra[k] for k in counts):
            raise MethodNotDefined(f"{op}: a number of steps differs within a batch.")

    def outputs(self) -> list[Any]:
        """The outer outputs, with leading axes for the batch."""
        inner, computed, batched = self._step()
        condition = computed[-1] if self.op.info.as_while else None
        if condition is not None and condition.type.ndim:
            raise MethodNotDefined(f"{self.op}: the condition differs within a batch.")
        new = parts_of(self.op, self.inputs, inner, computed)
        for k, p in enumerate(self.parts):
            new[k].outer = self._outer(p, k in batched)
        results = zip(self.parts, apply_parts(self.op, self.inputs[0], new, condition), strict=True)
        return [self._batch_first(p, v) for p, v in results if p.result is not None]

    def _step(self) -> tuple[list[Any], list[Any], set[int]]:
        """The inner inputs and outputs of the loop, and which states differ between items."""
        states = {k: p for k, p in enumerate(self.parts) if p.kind in STATES}
        batched = {k for k, p in states.items() if self.extra[p.outer]}
        own = self.op.fgraph.outputs
        while True:
            inner = [v.type.make_variable() for v in self.op.fgraph.inputs]
            for k, p in enumerate(self.parts):
                for i in p.inputs:
                    inner[i] = self._row_type(p, k in batched).make_variable()
            outputs = self.op.batched_graph(inner)
            grown = {o for o, v in enumerate(own) if _ndim(outputs[o]) > _ndim(v)}
            more = {k for k, p in states.items() if not grown.isdisjoint(p.outputs)}
            if more <= batched:
                break
            batched |= more
        for k in batched:
            p = states[k]
            if not p.inputs:
                raise MethodNotDefined(f"{self.op} has a buffer that it does not read.")
            for o in p.outputs:
                outputs[o] = _like(outputs[o], inner[p.inputs[0]])
        return inner, outputs, batched

    def _outer(self, p: Part, batched: bool) -> Any:
        """The outer input of a part, with the axis of time first."""
        x = self.full[p.outer] if batched else self.inputs[p.outer]
        if p.kind != "seq" and p.kind not in BUFFERS:
            return x
        axis = self.batch if batched else self.extra[p.outer]
        return dimshuffle(x, [axis, *(k for k in range(x.type.ndim) if k != axis)]) if axis else x

    def _row_type(self, p: Part, batched: bool) -> Any:
        """The type of the inner inputs of a part."""
        outer = self._outer(p, batched).type
        return TensorType(outer.dtype, outer.shape[1:]) if p.kind in ROWS else outer

    def _batch_first(self, p: Part, found: Any) -> Any:
        """An outer output with the axes of the batch before that of time."""
        if p.kind == "untraced_sit_sot":
            return found
        extra = found.type.ndim - 1 - _ndim(self.op.fgraph.outputs[p.outputs[0]])
        axes = [*range(1, extra + 1), 0, *range(extra + 1, found.type.ndim)]
        return dimshuffle(found, axes) if extra else found


def _like(x: Any, row: Any) -> Any:
    """``x`` broadcast to the shape of ``row``, whose last axes are its own."""
    same = x.type.ndim == row.type.ndim
    if same and all(n != 1 or m == 1 for n, m in zip(x.type.shape, row.type.shape)):
        return x
    return functions.second(row, x)


def _ndim(v: Any) -> int:
    return getattr(v.type, "ndim", 0)
