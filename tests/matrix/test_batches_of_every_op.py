"""Every op applied to a batch gives what it gives item by item, or says why it cannot.

The nodes are those of the matrix's expressions, and some more; see ``matrix_nodes.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from matrix_nodes import alone, computed, examples, package_ops

from phintys.errors import UnsupportedError
from phintys.graph.op import Op
from phintys.graph.traversal import apply_ancestors
from phintys.graph.variable import Apply, Variable
from phintys.graph.vectorize import vectorize_graph
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.linalg.matrix_op import MatrixOp
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.type import TensorType

#: the most examples of an op
FEW = 4
#: ops whose inputs are no tensors, and those without values
NO_BATCHES = {
    "MakeSlice": "an input is not a tensor",
    "TensorFromScalar": "its input is not a tensor",
    "SliceParts": "its input is a slice",
    **dict.fromkeys(
        "Append Count Extend GetItem Index Insert Length MakeList Remove Reverse".split(),
        "an input or the result is a list",
    ),
    **dict.fromkeys(("DefaultGeneratorMakerOp", "SpawnOp"), "the results are generators"),
    "Absent": "nothing reads its elements",
    "LoadFromDisk": "its input is a path",
    "AllocEmpty": "its elements are not defined",
    "ARangeLength": "one length is that of all items",
    "Lengths": "one length is that of all items",
}
#: ops that have a lowering, and are applied item by item: values decide the lengths of an item
BY_ITEMS = {"ARange", "Eye", "LazyIfElse", "Scan", "CorrMM_gradInputs", "CorrMM_gradWeights"}
#: what is said of inputs that are the same for all items, and of results that differ in shape
REFUSED = "cannot differ", "Items of a batch have results of shapes"

Case = tuple[Apply, dict[Variable, Variable], dict[Variable, Any], list[list[Any]]]


def cases(cls: type[Op]) -> Iterator[Case]:
    """A node, batched variables for some inputs, all values, and the results for each item."""
    nodes = examples("float64").get(cls, [])
    some = nodes[:: max(1, len(nodes) // FEW)][:FEW]
    for node, values in some:
        inputs, new, places = alone(node)
        given = dict(zip(inputs, [values[k] for k in places], strict=True))
        tensors = [v for v in inputs if isinstance(v.type, TensorType)]
        choices = [[v] for v in tensors] + ([tensors] if len(tensors) > 1 else [])
        for chosen in choices:
            others = {v: np.asarray(given[v]) for v in chosen}
            reversed_ = {v: x[::-1] if x.ndim else x for v, x in others.items()}
            for second in (reversed_, others):
                try:
                    expected = [results(new, given | item) for item in (others, second)]
                except Exception:  # of these values
                    continue
                replace = {v: TensorType(v.type.dtype, (2, *v.type.shape))() for v in chosen}
                stacked = {replace[v]: np.stack([others[v], second[v]]) for v in chosen}
                yield new, dict(replace), {**given, **stacked}, expected
                break


def results(node: Apply, known: dict[Any, Any]) -> list[Any]:
    known = dict(known)
    computed(node.outputs, known)
    return [known[v] for v in node.outputs]


def assert_batched(case: Case) -> Sequence[Variable]:
    """The outputs for a batch, whose values are those of the items."""
    node, replace, known, expected = case
    outputs = vectorize_graph(list(node.outputs), replace)
    known = dict(known)
    computed(outputs, known)
    for k, out in enumerate(outputs):
        value = np.stack([item[k] for item in expected])
        if known[out].ndim < value.ndim:  # it is the same for all items
            value = value[0]
        assert known[out].dtype == value.dtype and known[out].shape == value.shape
        np.testing.assert_allclose(known[out], value, rtol=1e-9, atol=1e-12)
    return outputs


def names() -> list[str]:
    """The ops whose batches are compared: not draws, whose items are other random numbers."""
    draws = {name for name, cls in package_ops().items() if issubclass(cls, RandomVariable)}
    return [name for name in package_ops() if name not in {*draws, *NO_BATCHES}]


@pytest.mark.parametrize("name", names())
def test_every_op_of_a_batch(name):
    cls = package_ops()[name]
    count = 0
    for case in cases(cls):
        try:
            outputs = assert_batched(case)
        except (ValueError, UnsupportedError) as exc:
            assert any(text in str(exc) for text in REFUSED), case
            continue
        count += 1
        for node in apply_ancestors(outputs):
            core = getattr(node.op, "core_op", None)
            if isinstance(node.op, Blockwise) and core.lower_batched is None:
                has_lowering = type(core).lower not in (Op.lower, MatrixOp.lower)
                assert not has_lowering or type(core).__name__ in BY_ITEMS, core
    assert count, f"no example of {name} was applied to a batch"
