"""The shapes of the results of a graph, from the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.graph.traversal import toposort
from phintys.graph.variable import Apply, Variable, late_bound

#: lengths; None: not known, or not without computing arrays
Shape = tuple[Any, ...] | None


def infer_shape(
    outs: Sequence[Variable], inputs: Sequence[Variable], input_shapes: Sequence[Any]
) -> list[Shape]:
    """The shapes of ``outs``, from the shapes of ``inputs``: a tuple of 0-d int64 each, or None.

    They are those that ``infer_shape`` of the nodes gives.  None for a shape that cannot be found
    without computing the array.  The shape of a variable that is no array is ().

    >>> import phintys.tensor as pt
    >>> x, n = pt.dvector("x"), pt.lscalar("n")
    >>> infer_shape([pt.exp(x) * 2], [x], [(n,)])
    [(n,)]
    """
    shapes: dict[Variable, Shape] = dict(zip(inputs, input_shapes, strict=True))
    for node in toposort(outs, blockers=inputs):
        for v in node.inputs:
            if v not in shapes:
                shapes[v] = _static(v)
        for v, shape in zip(node.outputs, _of_node(node, [shapes[v] for v in node.inputs])):
            shapes.setdefault(v, shape)
    return [shapes[v] if v in shapes else _static(v) for v in outs]


def _of_node(node: Apply, given: Sequence[Shape]) -> list[Shape]:
    """The shapes of the outputs of a node."""
    static = [_static(v) for v in node.outputs]
    if None not in static or node.op.infer_shape is None or None in given:
        return static
    found = node.op.infer_shape(node, given)
    return [
        known if known is not None else shape for known, shape in zip(static, found, strict=True)
    ]


def _static(v: Any) -> Shape:
    """The shape that the type of a variable fixes; None if it does not fix all lengths."""
    shape = getattr(v.type, "shape", None)
    if shape is None:
        return ()
    if None in shape:
        return None
    return tuple(late_bound["as_tensor_variable"](np.int64(n)) for n in shape)
