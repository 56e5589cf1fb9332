"""The shape rule of every op: the shapes that follow from it agree with those of values.

The nodes are those of the matrix's expressions, and some more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from matrix_nodes import alone, computed, examples, package_ops

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.perform import run_node
from phintys.graph.shapes import check_shapes, result_shapes
from phintys.graph.variable import Apply, Constant
from phintys.lowering.from_graph import lower_graph
from phintys.lowering.interpret import interpret
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.ranges import ARange
from phintys.tensor.static import as_length
from phintys.tensor.type import TensorType

#: ops that take inputs of any lengths
LENIENT = """
    Absent Assert CheckAndRaise DeepCopyOp Print
    QR SVD SearchsortedOp Unique UnravelIndex FillDiagonalOffset JoinDims
    ARange ARangeLength AllocEmpty Any_ All Prod ProdWithoutZeros Sum CumOp Eye Lengths
    LogSoftmax LogSumExp Softmax MakeVector ScalarFromTensor TensorFromScalar Shape Shape_i SortOp
    ArgSortOp ExtractDiag Fourier LU Subtensor DisconnectedGrad ZeroGrad UndefinedGrad GradClip
    GradScale SomeTrue BlockDiagonal KroneckerProduct PivotToPermutations SpecifyAssumptions
    Unbroadcast KnownSlopes AsWritten
"""
#: ops that give a length as a variable, so that their rule does not know it
BY_VARIABLES = ("ChoiceWithoutReplacement",)


def rule_ops() -> dict[str, type[Op]]:
    """The ops of this package that have a shape rule, by name."""
    return {name: cls for name, cls in package_ops().items() if cls.shape_rule is not None}


def inferred(node: Apply, values: Sequence[Any]) -> list[tuple[int, ...] | None]:
    """The shapes by ``infer_shape``, for values of the inputs."""
    known = dict(zip(node.inputs, values, strict=True))
    shapes = []
    for v, x in zip(node.inputs, values, strict=True):
        lengths = np.shape(x) if isinstance(v.type, TensorType) else ()
        symbols = [TensorType("int64", ())() for _ in lengths]
        known.update(zip(symbols, map(np.asarray, lengths)))
        shapes.append(tuple(symbols))
    results = []
    for shape in node.op.infer_shape(node, shapes):
        lengths = [] if shape is None else [as_length(n) for n in shape]
        computed(lengths, known)
        results.append(None if shape is None else tuple(int(known[n]) for n in lengths))
    return results


def test_every_rule_has_examples():
    assert [n for n, cls in rule_ops().items() if not examples().get(cls)] == []


@pytest.mark.parametrize("name", rule_ops())
def test_shapes_agree(name):
    for node, values in examples()[rule_ops()[name]]:
        with np.errstate(all="ignore"):
            expected = [np.shape(value) for value in run_node(node, values)]
        for v, shape in zip(node.outputs, expected, strict=True):
            static = getattr(v.type, "shape", ())
            assert len(static) == len(shape)
            assert all(n in (None, m) for n, m in zip(static, shape, strict=True))
        inputs, same, places = alone(node)
        assert all(s in (None, e) for s, e in zip(inferred(same, values), expected, strict=True))
        assert name in BY_VARIABLES or result_shapes(node, values) == expected
        program = lower_graph(FunctionGraph(inputs, same.outputs, clone=False))
        found = interpret(program, *(values[k] for k in places))
        assert [np.shape(value) for value in found] == expected


def wrong_lengths(node: Apply, values: Sequence[Any]) -> tuple[list[Any], Exception] | None:
    """Values that the rule of a node refuses because of a length, and its error."""
    for k, x in enumerate(values):
        for axis, known in enumerate(getattr(node.inputs[k].type, "shape", ())):
            if known is not None or isinstance(node.inputs[k], Constant) or not x.size:
                continue
            n = x.shape[axis]
            for wrong in (n - 1, n + 1, 0):
                others = list(values)
                others[k] = np.take(x, np.arange(wrong) % n, axis)
                try:
                    check_shapes(node, others)
                except (ValueError, IndexError) as exc:
                    return others, exc
    return None


@pytest.mark.parametrize("name", [n for n in rule_ops() if n not in LENIENT.split()])
def test_wrong_lengths(name):
    """Compiled code and ``perform`` refuse what the rule refuses, with its message."""
    found = (wrong_lengths(alone(node)[1], values) for node, values in examples()[rule_ops()[name]])
    at = next(k for k, wrong in enumerate(found) if wrong is not None)
    node, values = examples()[rule_ops()[name]][at]
    inputs, same, places = alone(node)
    values, expected = wrong_lengths(same, values)
    for linker in ("py", "llvm"):
        f = phintys.function(inputs, same.outputs, mode=Mode(linker, None))
        with pytest.raises(type(expected)) as caught:
            f(*(values[k] for k in places))
        assert str(caught.value) == str(expected)


@pytest.mark.parametrize("name", LENIENT.split())
def test_ops_that_take_any_lengths(name):
    assert all(wrong_lengths(*e) is None for e in examples()[rule_ops()[name]])


def test_lengths_that_are_values_are_not_cached_by_type():
    """Constants and unknown numbers in turn, for single items and in batches of batches."""
    counts = [3, 5, None, 3]
    variables = [pt.lscalar() if k is None else pt.constant(k, dtype="int64") for k in counts]
    zero, one = (pt.constant(k, dtype="int64") for k in (0, 1))
    ranges = Blockwise(ARange("int64"), "(),(),()->(n)")
    makers = [
        lambda n: pt.zeros((n,)),
        lambda n: ranges(zero, n, one),
        lambda n: Blockwise(ranges, "(),(),()->(n)")(zero, n, one),
        lambda n: pt.random.normal(size=(n,), rng=np.random.default_rng(1)),
    ]
    for make in makers:
        assert [make(n).type.shape for n in variables] == [(k,) for k in counts]
