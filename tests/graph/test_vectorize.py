"""`vectorize_graph`: every family of ops, several batch axes, what is shared."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_nodes import GROUPS, SMOOTH
from tensor_checks import RTOL, assert_like, check_batched, evaluate, symbols
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.graph.op import Op
from phintys.graph.traversal import apply_ancestors
from phintys.graph.vectorize import vectorize_graph

RNG = np.random.default_rng(0)
#: the shape of the result depends on the values
RAGGED = {"Nonzero", "ARange"}


@pytest.mark.parametrize("group", few(GROUPS, "shapes", "indices", "products", "decompositions"))
def test_every_family(group):
    """Batches of two: one function of many batches, and one of their items."""
    inputs, outputs, batched, found, batches = [], [], [], [], []
    names = [name for name in GROUPS[group] if name not in RAGGED]
    for name in names:
        build, values = SMOOTH[name]
        values = [np.asarray(v) for v in values]
        stacks = [np.stack([v, v[::-1] if v.ndim else v + 1]) for v in values]
        xs, many = symbols(values), symbols(stacks)
        out = build(*xs)
        found.append(vectorize_graph(out, dict(zip(xs, many, strict=True))))
        inputs, outputs = inputs + xs, [*outputs, out]
        batched, batches = batched + many, batches + stacks
    results = evaluate(found, batched, batches)
    f = phintys.function(inputs, outputs, on_unused_input="ignore")
    items = zip(*(f(*(b[i] for b in batches)) for i in range(2)), strict=True)
    for name, result, expected in zip(names, results, items, strict=True):
        expected = np.stack(expected)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype), name
        rtol = RTOL.get(expected.dtype.name, 1e-12)
        np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("name", ["Dot", "Softmax", "AdvancedSubtensor", "Join", "Prod", "Reshape"])
def test_gradients_are_batched(name):
    build, values = SMOOTH[name]
    check_batched(lambda *x: phintys.grad((build(*x) ** 2).sum(), x[0]), values)


def test_several_batch_axes_and_one_input_only():
    x, y = pt.dvector("x"), pt.dvector("y")
    out = (x * y).sum() + y.max()
    xs = pt.tensor(dtype="float64", shape=(None, None, None), name="xs")
    values = RNG.normal(size=(2, 3, 4)), RNG.normal(size=4)
    found = evaluate(vectorize_graph(out, {x: xs}), [xs, y], values)
    assert_like(found, values[0] @ values[1] + values[1].max())


def test_form_and_identity():
    x, y = pt.dvector("x"), pt.dvector("y")
    xs = pt.dmatrix("xs")
    a, b = x.sum(), y.sum()
    found = vectorize_graph([a, b], {x: xs})
    assert isinstance(found, list) and found[1] is b and found[0].type.ndim == 1
    assert vectorize_graph(x, {x: xs}) is xs
    assert vectorize_graph(b, {x: xs}) is b
    shared = vectorize_graph(x * pt.exp(y), {x: xs})
    assert sum(node.op == pt.exp(y).owner.op for node in apply_ancestors([shared])) == 1


def test_intermediate_variables_may_be_replaced():
    x = pt.dvector("x")
    y = pt.exp(x)
    ys = pt.dmatrix("ys")
    out = vectorize_graph(y.sum() + x.sum(), {y: ys})
    found = evaluate(out, [x, ys], [np.ones(2), np.ones((3, 2))])
    assert_like(found, np.full(3, 4.0))
    first, second = pt.split(x, [1, 1], n_splits=2)
    out = vectorize_graph(first + second, {second: ys})
    found = evaluate(out, [x, ys], [np.array([1.0, 2.0]), np.ones((3, 1))])
    assert_like(found, np.full((3, 1), 2.0))


def test_an_op_without_rule_is_applied_item_by_item():
    class Largest(Op):
        __props__ = ()
        itypes = (pt.dvector,)
        otypes = (pt.dscalar,)

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.asarray(inputs[0].max())

    x, xs = pt.dvector("x"), pt.dmatrix("xs")
    value = RNG.normal(size=(3, 4))
    out = vectorize_graph(Largest()(x) * 2, {x: xs})
    assert_like(evaluate(out, [xs], [value]), 2 * value.max(1))


def test_depth_is_no_limit():
    x, xs = pt.dscalar("x"), pt.dvector("xs")
    y = x
    for _ in range(5000):
        y = -y
    assert vectorize_graph(y, {x: xs}).type.ndim == 1


def test_lengths_are_those_of_one_item():
    x, xs = pt.dvector("x"), pt.dmatrix("xs")
    value = RNG.normal(size=(2, 6))
    half = vectorize_graph(x[: x.shape[0] // 2] / x.shape[0], {x: xs})
    assert_like(evaluate(half, [xs], [value]), value[:, :3] / 6)
