"""What programs that derive graphs from graphs ask of lengths and of constants."""

from __future__ import annotations

import numpy as np
import pytest
from phintys.tensor.rewriting.basic import (
    broadcasted_by,
    elemwise_of,
    topo_unconditional_constant_folding,
)
from phintys.tensor.rewriting.shape import ShapeFeature, ShapeOptimizer

import phintys
import phintys.tensor as pt
from phintys.errors import AlreadyThere
from phintys.graph.fgraph import FunctionGraph
from phintys.rewriting import node_rewriter
from phintys.scalar import Cast
from phintys.tensor.basic import infer_shape_db, register_infer_shape
from phintys.tensor.random.op import RandomVariable

x, m = pt.dvector("x"), pt.dmatrix("m")


def test_a_feature_knows_the_lengths_of_variables():
    rng = pt.random.shared_rng(seed=1)
    draw = pt.random.normal(pt.exp(x)[1:], 1.0, rng=rng)
    out = pt.outer(draw, m.sum(axis=0))
    fgraph = FunctionGraph(outputs=[out], clone=False, features=[ShapeFeature()])
    feature = fgraph.shape_feature
    f = phintys.function([x, m], feature.shape_tuple(out), on_unused_input="ignore")
    assert not any(isinstance(n.op, RandomVariable) for n in f.maker.fgraph.toposort())
    assert [int(n) for n in f(np.zeros(4), np.zeros((2, 5)))] == [3, 5]
    assert feature.get_shape(pt.zeros((2, 3)), 1).data == 3
    assert feature.shape_tuple(rng) is None
    with pytest.raises(ValueError, match="has no shape"):
        feature.get_shape(rng, 0)


def test_a_graph_has_one_feature_of_shapes():
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    ShapeOptimizer().rewrite(fgraph)
    feature = fgraph.shape_feature
    with pytest.raises(AlreadyThere):
        ShapeFeature().on_attach(fgraph)
    ShapeOptimizer().rewrite(fgraph)
    assert fgraph.shape_feature is feature
    assert fgraph.clone().shape_feature is not feature
    fgraph.remove_feature(feature)
    assert not hasattr(fgraph, "shape_feature")


def test_lengths_of_draws_do_not_need_the_draws():
    rng = pt.random.shared_rng(seed=1)
    first = pt.random.normal(x, 1.0, rng=rng)
    second = pt.random.normal(first, 1.0, size=(5, first.shape[0]), rng=rng)
    for draw, lengths in ((first, [3]), (second, [5, 3]), (pt.join(0, first, first)[1:], [5])):
        fgraph = FunctionGraph(outputs=[draw.shape], clone=True, copy_inputs=False)
        infer_shape_db.default_query.rewrite(fgraph)
        assert not any(isinstance(n.op, RandomVariable) for n in fgraph.apply_nodes)
        assert fgraph.outputs[0].eval({x: np.zeros(3)}).tolist() == lengths


def test_rules_for_lengths_can_be_added():
    @node_rewriter([pt.exp])
    def exp_to_log(fgraph, node):
        return [pt.log(node.inputs[0])]

    register_infer_shape(exp_to_log)
    try:
        fgraph = FunctionGraph([x], [pt.exp(x)])
        infer_shape_db.default_query.rewrite(fgraph)
        assert fgraph.outputs[0].owner.op == pt.log
    finally:
        infer_shape_db.remove("exp_to_log")


def test_every_constant_node_is_folded_on_request():
    ones = pt.constant(np.ones(3))
    large, wrong = pt.alloc(1.0, 20_000), ones[pt.constant(np.array([7]))]
    outputs = [pt.dot(ones, ones), large, x + pt.exp(ones), wrong]
    fgraph = FunctionGraph(outputs=outputs, clone=True, copy_inputs=False)
    topo_unconditional_constant_folding.apply(fgraph)
    dot, filled, total, failing = fgraph.outputs
    assert dot.data == 3.0 and filled.data.shape == (20_000,)
    assert total.owner.inputs[1].data[0] == np.exp(1.0)
    assert failing.owner.op == wrong.owner.op  # the error is that of the call


def test_patterns_of_elementwise_functions():
    @node_rewriter([elemwise_of(Cast)])
    def without_cast(fgraph, node):
        return [node.inputs[0].copy()]

    fgraph = FunctionGraph([x], [pt.exp(x), pt.cast(x, "int8")], clone=False)
    assert not without_cast.transform(fgraph, fgraph.outputs[0].owner)
    assert without_cast.transform(fgraph, fgraph.outputs[1].owner)


def test_what_is_repeated():
    row, one, three = pt.drow(), pt.dvector(shape=(1,)), pt.dvector(shape=(3,))
    repeated = [(row, m), (x, m), (one, three)]
    assert all(broadcasted_by(a, b) for a, b in repeated)
    assert not any(broadcasted_by(b, a) for a, b in repeated)
    assert not broadcasted_by(one, one) and not broadcasted_by(x, three)
