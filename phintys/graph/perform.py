"""Running one node by its ``perform``, as every backend does for ops that it cannot compile."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.errors import ShapeError
from phintys.graph.op import Op
from phintys.graph.results import declared_result
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply

_PACKAGE_PREFIX = __name__.partition(".")[0] + "."


def run_node(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    """The results of ``perform``, without effect on ``inputs`` and with memory of their own.

    An input that the op overwrites is copied first, since it may belong to the caller, to a shared
    variable, to a constant, or be read by a later node.  A result that shares memory with an input
    or an earlier result is copied, unless ``view_map`` declares that.  Ops that are not of this
    package get views of their inputs, so that assigning to the shape of one affects no other user
    of the array.

    If ``perform`` raises, and lengths are not as the op's `shape_rule` requires, that is the error.
    Results are converted and checked by `declared_result`, which raises TypeError or ShapeError.
    """
    op = node.op
    if not type(op).__module__.startswith(_PACKAGE_PREFIX):
        inputs = [x[...] if type(x) is np.ndarray else x for x in inputs]
    if op.destroy_map:
        inputs = list(inputs)
        for i in destroyed_inputs(op):
            inputs[i] = copy.deepcopy(inputs[i])
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    try:
        op.perform(node, inputs, storage)
    except Exception as exc:
        _explain_shapes(node, inputs, exc)
        raise
    results = [declared_result(node, k, cell[0]) for k, cell in enumerate(storage)]
    for k, value in enumerate(results):
        if isinstance(value, np.ndarray) and _is_shared(value, k, op, inputs, results):
            results[k] = value.copy()
    return results


def _explain_shapes(node: Apply, inputs: Sequence[Any], exc: Exception) -> None:
    """Raise the error of the node's shape rule, if a requirement does not hold."""
    if node.op.shape_rule is None or isinstance(exc, ShapeError):
        return
    try:
        check_shapes(node, inputs)
    except (ValueError, IndexError) as found:
        raise found from exc


def _is_shared(
    value: np.ndarray, k: int, op: Op, inputs: Sequence[Any], results: Sequence[Any]
) -> bool:
    """Whether result ``k`` shares memory with an input or an earlier result, undeclared."""
    others = inputs if k == 0 else [*inputs, *results[:k]]
    if value.base is None:  # owns its memory
        for x in others:
            if x is value:
                return k not in op.view_map and k not in op.destroy_map
        return False
    if k in op.view_map or k in op.destroy_map:
        return False
    return any(isinstance(x, np.ndarray) and np.may_share_memory(value, x) for x in others)


def destroyed_inputs(op: Op) -> list[int]:
    """The positions of the inputs that an op overwrites."""
    return list(dict.fromkeys(i for ins in op.destroy_map.values() for i in ins))
