"""Graphs, variables and constants as text, as PyTensor writes them."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.basic import as_string, op_as_string
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Constant
from phintys.tensor.type_other import NoneConst

x, y = pt.dvectors("x", "y")
z = x + y
first, second = pt.split(x, [1, 1], n_splits=2)
SPLIT = "Split{len_splits=2, axis=0}(x, [1 1])"


@pytest.mark.parametrize(
    ("inputs", "outputs", "texts"),
    [
        ([x, y], [pt.exp(z) * z], ["Mul(Exp(*1 -> Add(x, y)), *1)"]),
        ([x], [z], ["Add(x, y)"]),
        ([z], [pt.exp(z)], ["Exp(Add.0)"]),
        ([x, y], [x], ["x"]),
        ([x], [first, second], [f"*1 -> {SPLIT}", "*1::1"]),
        ([x], [second + first], [f"Add(*1 -> {SPLIT}, *1)"]),
        (
            [x],
            [x + np.ones(3), pt.log(pt.constant(2.0, name="c"))],
            ["Add(x, [1. 1. 1.])", "Log(c{2.0})"],
        ),
        ([x, y], [z, z], ["*1 -> Add(x, y)", "*1"]),
    ],
)
def test_formulas(inputs, outputs, texts):
    """A FunctionGraph printed the number of its nodes, and there was no as_string."""
    assert as_string(inputs, outputs) == texts
    if all(v.owner is None for v in inputs) and y not in outputs:
        graph = FunctionGraph(None, outputs, clone=False)
        assert str(graph) == repr(graph) == f"FunctionGraph({', '.join(texts)})"


def test_formatters():
    node = (pt.exp(z) * z).owner
    assert op_as_string([x, y], z.owner, leaf_formatter=lambda v: f"<{v}>") == "Add(<x>, <y>)"
    texts = as_string([x, y], [node.out], node_formatter=lambda n, a: f"{n.op}<{' '.join(a)}>")
    assert texts == ["Mul<Exp<*1 -> Add<x y>> *1>"]


def test_formulas_of_deep_graphs_take_linear_time():
    v = x
    for _ in range(20_000):
        v = pt.exp(v)
    assert len(as_string([x], [v])[0]) == 20_000 * len("Exp()") + 1


@pytest.mark.parametrize(
    ("variable", "text", "representation"),
    [
        (
            pt.constant([1, 2]),
            "[1 2]",
            "TensorConstant(TensorType(int64, shape=(2,)), data=array([1, 2]))",
        ),
        (
            pt.constant(np.arange(100.0), name="c"),
            "c{[ 0.  1. ... . 98. 99.]}",
            "TensorConstant(TensorType(float64, shape=(100,)), data=array([ 0. ... 98., 99.]))",
        ),
        (pt.constant([[1, 2], [3, 4]]), "[[1 2] [3 4]]", None),
        (NoneConst, "NoneConst{None}", None),
        (z, "Add.0", "Add.0"),
        (second, "Split{len_splits=2, axis=0}.1", None),
        (x.dimshuffle("x", 0, "x"), "ExpandDims{axes=(0, 2)}.0", None),
        (pt.drow("r").squeeze(0), "Squeeze{axis=0}.0", None),
        (pt.dmatrix("m").T, "m.T", "m.T"),
    ],
)
def test_variables(variable, text, representation):
    assert str(variable) == text
    assert representation is None or repr(variable) == representation
    assert isinstance(variable, Constant) or repr(variable) == text


def test_inputs_of_frozen_graphs():
    graph = FunctionGraph([x, y], [z], clone=False).freeze()
    assert str(graph.outputs[0].owner) == "Add(i0, i1)"
    assert repr(graph.inputs[1]) == "NominalTensorVariable(1, TensorType(float64, shape=(None,)))"
    assert str(graph) == f"FrozenFunctionGraph(inputs={list(graph.inputs)}, outputs=[Add.0])"


def test_uses_are_in_the_order_of_an_import_of_one_output_after_the_other():
    after = pt.exp(z)
    graph = FunctionGraph([x, y], [z, after], clone=False)
    assert [str(node.op) for node, _ in graph.clients[z]] == ["output[0]", "Exp"]
    graph = FunctionGraph([x, y], [after, z, x], clone=False)
    assert [str(node.op) for node, _ in graph.clients[z]] == ["Exp", "output[1]"]
    assert [str(node.op) for node, _ in graph.clients[x]] == ["Add", "output[2]"]


def test_replacements_are_printed(capsys):
    graph = FunctionGraph([x], [pt.exp(x)], clone=False)
    graph.replace(graph.outputs[0], pt.log(x), reason="mine", verbose=True)
    printed = "rewriting: rewrite mine replaces Exp.0 of Exp(x) with Log.0 of Log(x)\n"
    assert capsys.readouterr().out == printed
    graph.replace_all_validate([(graph.outputs[0], x)], reason="yours", verbose=True)
    assert "rewrite yours replaces Log.0 of Log(x) with x of None" in capsys.readouterr().out


def test_types_of_unnamed_leaves_are_printed():
    shown = phintys.dprint(pt.exp(pt.dscalar()), print_type=True, file="str").splitlines()[1]
    kind = "<Scalar(float64, shape=())>"
    assert shown == f" └─ {kind} [id B] {kind}"


def test_origins_of_the_nodes_of_a_function():
    """check_stack_trace raised AttributeError for a function."""
    from phintys.rewriting.origins import check_stack_trace

    assert check_stack_trace(phintys.function([x], pt.exp(x)), ops_to_check="all")
