"""The public helpers for tests find planted faults, and accept what is right."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import GradientError
from phintys.graph.op import Op
from phintys.graph.replace import graph_replace
from phintys.graph.variable import Apply
from phintys.rewriting import node_rewriter, out2in
from phintys.testing import (
    InferShapeTester,
    OpContractTestMixin,
    OptimizationTestMixin,
    RewriteTester,
    assert_equal_computations,
    check_op,
)

VALUES = [np.array([[0.5, -1.0], [2.0, 3.0]])]


class Cube(Op):
    """The cube of a matrix of floats, with one planted fault."""

    __props__ = ("fault",)

    def __init__(self, fault=""):
        self.fault = fault

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        out = x.type.clone(shape=(5, 5)) if self.fault == "static" else x.type
        return Apply(self, [x], [out()])

    def infer_shape(self, node, shapes):
        return [shapes[0][::-1]] if self.fault == "shape" else shapes

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        wrong = self.fault == "perform" or (self.fault == "strides" and x.strides[0] < 0)
        output_storage[0][0] = x**2 if wrong else x**3

    def pullback(self, inputs, outputs, cotangents):
        return [(2 if self.fault == "pullback" else 3) * inputs[0] ** 2 * cotangents[0]]

    def pushforward(self, inputs, outputs, tangents):
        return [(4 if self.fault == "pushforward" else 3) * inputs[0] ** 2 * tangents[0]]

    def vectorize_node(self, node, x):
        if self.fault == "first item":
            x = pt.zeros_like(x) + x[:1]
        return self.make_node(-x if self.fault == "batch" else x)


def test_an_op_without_fault():
    check_op(Cube(), VALUES, expected=lambda x: x**3)
    check_op(lambda x: [Cube()(x), pt.ones(3), x.shape], VALUES)  # two have no batch


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("static", ValueError, "shape"),
        ("perform", AssertionError, "expected values, output 0"),
        ("strides", AssertionError, "reversed views"),
        ("pullback", GradientError, "wrong at"),
        ("pushforward", AssertionError, "pushforward"),
        ("batch", AssertionError, "batch"),
        ("first item", AssertionError, "batch"),
    ],
)
def test_planted_faults(fault, error, message):
    with pytest.raises(error, match=message):
        check_op(Cube(fault), VALUES, expected=lambda x: x**3, modes=["FAST_COMPILE"])


def test_a_batch_that_is_computed_as_one_item(monkeypatch):
    """A result without a batch has to be that of every item."""

    def first_item(outputs, replace):
        return graph_replace(outputs, {x: batch[0] for x, batch in replace.items()}, strict=False)

    monkeypatch.setattr("phintys.testing.ops.vectorize_graph", first_item)
    with pytest.raises(AssertionError, match="batch, output 0"):
        check_op(pt.exp, VALUES, modes=[], derivatives=False)
    check_op(lambda x: [x.shape, pt.ones(3)], VALUES, modes=[], derivatives=False)


def test_a_wrong_shape():
    with pytest.raises(AssertionError, match=r"inferred shape, output 0: \(3, 2\)"):
        check_op(Cube("shape"), [np.ones((2, 3))], modes=[])


def test_several_outputs_and_integers():
    check_op(
        lambda x, k: [x[k], x.sum(), k + 1],
        [np.arange(4.0), np.array([2, 0])],
        expected=lambda x, k: [x[k], x.sum(), k + 1],
        modes=["FAST_RUN"],
    )


x, y = pt.dvectors("x", "y")


def test_computations_that_differ_are_shown():
    assert_equal_computations([x + y], [x + y])
    with pytest.raises(AssertionError, match=r"(?s)found:.*Exp.*expected:.*Log.*original:"):
        assert_equal_computations([pt.exp(x)], [pt.log(x)], original=pt.sqrt(x))


def test_rewrites():
    tester = RewriteTester([x, y], [pt.log(pt.exp(x)) + y])
    tester.assert_graph([x + y])
    tester.assert_eval([[1.0], [2.0]])
    with pytest.raises(AssertionError, match="original:"):
        tester.assert_graph([x - y])


def test_a_wrong_rewrite():
    @node_rewriter([pt.exp])
    def wrong(fgraph, node):
        return [pt.sin(node.inputs[0])]

    tester = RewriteTester([x], [pt.exp(x)], include=(), custom_rewrite=out2in(wrong))
    tester.assert_graph([pt.sin(x)])
    with pytest.raises(AssertionError, match="Mismatched elements"):
        tester.assert_eval([[1.0]])


def test_ops_of_functions():
    check = OptimizationTestMixin()
    f = phintys.function([x], pt.exp(x) + pt.exp(x).sum())
    check.assertFunctionContains1(f, pt.exp)
    check.assertFunctionContains0(f, pt.log)
    check.assertFunctionContainsN(f, pt.exp, 1)
    check.assertFunctionContainsClass(f, type(pt.exp), min=2)
    with pytest.raises(AssertionError, match="1 nodes have"):
        check.assertFunctionContains0(f, pt.exp)
    with pytest.raises(AssertionError, match="expected 9 to 9"):
        check.assertFunctionContainsClassN(f, type(pt.exp), 9)


class TestContract(OpContractTestMixin):
    ops = (Cube(), Cube("perform"))
    other_op = pt.exp


def test_shapes():
    m = pt.dmatrix("m")
    tester = InferShapeTester()
    tester._compile_and_check([m], [Cube()(m)], VALUES, Cube)
    with pytest.raises(AssertionError):
        tester._compile_and_check([m], [Cube("shape")(m)], [np.ones((2, 3))], Cube)
