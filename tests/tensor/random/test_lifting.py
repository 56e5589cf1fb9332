"""Rewrites of draws: what they make, which numbers that gives, and that none is applied unasked."""

from __future__ import annotations

import numpy as np
import pytest
from phintys.tensor.random.rewriting import (
    is_rv_used_in_graph,
    local_dimshuffle_rv_lift,
    local_rv_size_lift,
    local_subtensor_rv_lift,
    random_make_inplace,
    sidestep_unused_rng_consumer,
)
from scipy import stats

import phintys
import phintys.tensor as pt
from phintys.graph.fgraph import FunctionGraph
from phintys.tensor.random.op import RandomVariable

V, M, S = pt.dvector("v"), pt.dmatrix("m"), pt.dscalar("s")
MASK = pt.tensor("mask", dtype="bool", shape=(None, None))
VALUES = {
    V: np.array([0.0, 10.0, 20.0]),
    M: np.array([[0.0, 10.0, 20.0], [30.0, 40.0, 50.0]]),
    S: np.array(5.0),
    MASK: np.array([[True, False, True], [False, True, False]]),
}
COV = np.eye(3) * 0.5 + 0.5
RNG = pt.random.rng("rng")


def normal(*args, **kwargs):
    return pt.random.normal(*args, rng=RNG, **kwargs)


def mvnormal(*args, **kwargs):
    return pt.random.multivariate_normal(*args, rng=RNG, **kwargs)


def lifted(rewriter, x, others=()):
    """The replacement of ``x``; None if there is none."""
    fgraph = FunctionGraph(outputs=[x, *others], clone=False)
    found = rewriter.transform(fgraph, x.owner)
    if not found:
        return None
    return found[x] if isinstance(found, dict) else found[x.index]


def values(x, count=1):
    """Values of a variable, one call after the other from one stream."""
    made = next(n for n in FunctionGraph(outputs=[x], clone=False).toposort()
                if isinstance(n.op, RandomVariable))  # fmt: skip
    f = phintys.function([RNG, *VALUES], [x, made.outputs[0]], on_unused_input="ignore")
    rng, found = np.random.default_rng(1), []
    for _ in range(count):
        value, rng = f(rng, *VALUES.values())
        found.append(value)
    return np.array(found)


SAME = {
    "size": (local_rv_size_lift, normal(S, [1.0, 2.0], size=(3, 2))),
    "size of a batch": (local_rv_size_lift, normal(M, 1.0, size=(2, 3))),
    "size of vectors": (local_rv_size_lift, mvnormal(V, COV, size=(4,))),
    "new axis": (local_dimshuffle_rv_lift, normal(V, 1.0).dimshuffle("x", 0)),
    "new axes": (local_dimshuffle_rv_lift, normal(S, 1.0, size=(2, 3)).dimshuffle(0, "x", 1, "x")),
    "new axis of vectors": (local_dimshuffle_rv_lift, mvnormal(V, COV).dimshuffle("x", 0)),
}
ALIKE = {
    "transposed": (local_dimshuffle_rv_lift, normal(M, V).T),
    "transposed with a size": (local_dimshuffle_rv_lift, normal(M, 2.0, size=(2, 3)).T),
    "vectors transposed": (
        local_dimshuffle_rv_lift,
        mvnormal(M[:, None, :] + M, COV).dimshuffle(1, 0, 2),
    ),
    "item": (local_subtensor_rv_lift, normal(V, 1.0)[1]),
    "slice": (local_subtensor_rv_lift, normal(V, [1.0, 2.0, 3.0])[1:3]),
    "row": (local_subtensor_rv_lift, normal(M, V + 1)[1]),
    "column": (local_subtensor_rv_lift, normal(M, V + 1)[:, -1]),
    "steps": (local_subtensor_rv_lift, normal(M, 1.0)[1, ::2]),
    "rows that broadcast": (local_subtensor_rv_lift, normal(V, pt.exp(-M / 50))[0:1]),
    "mask": (local_subtensor_rv_lift, normal(M, V + 1)[MASK]),
    "mask of a vector": (local_subtensor_rv_lift, normal(V, 1.0)[V > 5]),
    "a vector": (local_subtensor_rv_lift, mvnormal(M, COV)[1]),
    "item of a size": (local_subtensor_rv_lift, normal(S, 1.0, size=4)[1]),
    "row of a size": (local_subtensor_rv_lift, normal(V, 1.0, size=(2, 3))[0]),
    "slice of a size": (local_subtensor_rv_lift, normal(S, 1.0, size=(M.shape[1],))[1:]),
    "mask of a size": (local_subtensor_rv_lift, normal(S, 1.0, size=3)[V > 5]),
    "vectors of a size": (local_subtensor_rv_lift, mvnormal(V, COV, size=(4,))[:2]),
}


@pytest.mark.parametrize("name", SAME)
def test_lifts_with_the_same_numbers(name):
    rewriter, x = SAME[name]
    y = lifted(rewriter, x)
    assert isinstance(y.owner.op, RandomVariable)
    np.testing.assert_array_equal(values(x, 2), values(y, 2))


@pytest.mark.parametrize("name", ALIKE)
def test_lifts_of_the_same_distribution(name):
    rewriter, x = ALIKE[name]
    y = lifted(rewriter, x)
    assert isinstance(y.owner.op, RandomVariable)
    first, second = values(x, 300), values(y, 300)
    assert first.shape == second.shape
    for a, b in zip(first.reshape(300, -1).T, second.reshape(300, -1).T, strict=True):
        assert stats.ks_2samp(a, b).pvalue > 1e-4


@pytest.mark.parametrize(
    ("rewriter", "x"),
    [
        (local_rv_size_lift, normal(V, 1.0)),
        (local_dimshuffle_rv_lift, mvnormal(M, COV).T),
        (local_dimshuffle_rv_lift, normal(S, 1.0, size=(1, 3)).dimshuffle(1)),
        (local_dimshuffle_rv_lift, (normal(M, 1.0) + 1).T),
        (local_subtensor_rv_lift, normal(M, V)[pt.lvector("positions")]),
        (local_subtensor_rv_lift, mvnormal(V, COV)[0]),
        (local_subtensor_rv_lift, mvnormal(M, COV)[0, 1]),
    ],
)
def test_what_is_not_lifted(rewriter, x):
    assert lifted(rewriter, x) is None


def test_draws_that_are_used_elsewhere_are_not_lifted():
    x = normal(V, 1.0)
    item, row = x[0], x.dimshuffle("x", 0)
    for rewriter, y in ((local_subtensor_rv_lift, item), (local_dimshuffle_rv_lift, row)):
        for others in ([x], [x * 2]):
            assert lifted(rewriter, y, others) is None
        for others in ([x.shape], [x.owner.outputs[0]], [x.shape[0]]):
            assert lifted(rewriter, y, others) is not None
    fgraph = FunctionGraph(outputs=[item, x.shape], clone=False)
    assert not is_rv_used_in_graph(x, item.owner, fgraph)
    fgraph = FunctionGraph(outputs=[item, x], clone=False)
    assert is_rv_used_in_graph(x, item.owner, fgraph)


def test_a_generator_is_changed_only_where_nothing_else_reads_it():
    first, x = pt.random.normal(V, 1.0, rng=RNG, return_next_rng=True)
    second, y = pt.random.normal(x, 1.0, rng=first, return_next_rng=True)
    fgraph = FunctionGraph(outputs=[x, y, second], clone=False)
    assert not random_make_inplace.transform(fgraph, x.owner)  # the generator of the caller
    new = random_make_inplace.transform(fgraph, y.owner)[1]
    assert new.owner.op.inplace
    assert new.owner.op.destroy_map == {0: [0]}
    fgraph = FunctionGraph(outputs=[x, y, first], clone=False)
    assert not random_make_inplace.transform(fgraph, y.owner)
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        f = phintys.function([RNG, V], [x, new], mode=mode, accept_inplace=True)
        g = phintys.function([RNG, V], [x, y], mode=mode)
        found = [h(np.random.default_rng(1), VALUES[V]) for h in (f, g)]
        np.testing.assert_array_equal(*found)


def test_a_draw_that_nothing_uses_is_skipped_on_request_only():
    first, _ = pt.random.normal(V, 1.0, rng=RNG, return_next_rng=True)
    _, y = pt.random.normal(V, 1.0, rng=first, return_next_rng=True)
    fgraph = FunctionGraph(outputs=[y], clone=False)
    assert sidestep_unused_rng_consumer.transform(fgraph, first.owner) == {first: RNG}
    assert not sidestep_unused_rng_consumer.transform(fgraph, y.owner)
    expected = np.random.default_rng(1)
    expected.normal(VALUES[V])
    found = phintys.function([RNG, V], y)(np.random.default_rng(1), VALUES[V])
    np.testing.assert_array_equal(found, expected.normal(VALUES[V]))
