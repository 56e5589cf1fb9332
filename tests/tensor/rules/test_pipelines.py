"""Whole pipelines on random graphs: rewritten or not, the values are the same."""

from __future__ import annotations

import numpy as np
import pytest
from expressions import evaluate

import phintys
import phintys.tensor as pt
from phintys.graph.equality import equal_computations
from phintys.rewriting import rewrite_graph

PHASES = {
    "canonicalize": ("canonicalize",),
    "stabilize": ("canonicalize", "stabilize"),
    "specialize": ("canonicalize", "specialize"),
    "fast_run": ("fast_run",),
    "fast_compile": ("fast_compile",),
}
SHAPES = {0: (), 1: (3,), 2: (3, 3)}

UNARY = [
    pt.exp,
    pt.neg,
    pt.sqr,
    pt.tanh,
    pt.sigmoid,
    pt.softplus,
    pt.cos,
    pt.log1p,
    pt.abs,
    pt.expm1,
    lambda x: pt.log(1 + pt.sqr(x)),
    lambda x: pt.sqrt(1 + x * x),
    lambda x: 1 / (1 + pt.exp(-x)),
    lambda x: x - 1,
    lambda x: 2 * x,
    lambda x: x / 3,
    lambda x: x**3,
    lambda x: 1 - x,
    lambda x: pt.switch(pt.gt(x, 0), x, 0.0),
    pt.zeros_like,
    pt.ones_like,
    pt.floor,
    lambda x: pt.cast(pt.cast(x, "float32"), "float64"),
    lambda x: pt.clip(x, -1, 2),
]
BINARY = [
    pt.add,
    pt.mul,
    pt.sub,
    pt.maximum,
    pt.minimum,
    pt.logaddexp,
    lambda x, y: x / (1 + pt.sqr(y)),
    lambda x, y: pt.switch(pt.gt(x, y), x, y),
    lambda x, y: pt.second(x, y) + x,
    lambda x, y: x * y / (2 + pt.cos(x)),
    lambda x, y: pt.log(pt.exp(x) + pt.exp(y)),
]
TO_MATRIX = [
    lambda a, v: a.T,
    lambda a, v: pt.dot(a, a),
    lambda a, v: a + v,
    lambda a, v: pt.join(0, a, a)[1:4],
    lambda a, v: pt.special.softmax(a, axis=1),
    lambda a, v: a[::-1],
    lambda a, v: a.reshape((9,)).reshape((3, 3)),
    lambda a, v: pt.set_subtensor(a[1], v),
    lambda a, v: pt.inc_subtensor(a[:, 0], v),
    lambda a, v: pt.dot(a, a) + 2 * a,
    lambda a, v: pt.exp(a) / pt.exp(a).sum(axis=0, keepdims=True),
    lambda a, v: pt.stack([v, a[0], a[1]]),
    lambda a, v: a[np.array([2, 0, 1])],
    lambda a, v: pt.alloc(v, 3, 3),
    lambda a, v: v.dimshuffle(0, "x") * v,
]
TO_VECTOR = [
    lambda a, v: a.sum(axis=0),
    lambda a, v: a.max(axis=1),
    lambda a, v: a[1],
    lambda a, v: a.T[0],
    lambda a, v: pt.dot(a, v),
    lambda a, v: 1 + pt.dot(a, v),
    lambda a, v: (a * v)[:, 1],
    lambda a, v: pt.logsumexp(a, axis=1),
    lambda a, v: pt.log(pt.exp(a).sum(axis=0)),
    lambda a, v: v[::-1],
    lambda a, v: pt.join(0, v[1:], v[:1]),
    lambda a, v: pt.set_subtensor(v[1:], 0.5),
    lambda a, v: pt.stack([v[0], v.sum(), a.max()]),
    lambda a, v: v[1:][0] * v,
    lambda a, v: pt.alloc(v[0], v.shape[0]),
    lambda a, v: a.flatten()[2:5],
    lambda a, v: pt.cumsum(v),
]
TO_SCALAR = [
    lambda a, v: v.sum(),
    lambda a, v: a.mean(),
    lambda a, v: v[0],
    lambda a, v: pt.dot(v, v),
    lambda a, v: (2 * a).sum(axis=0).max(),
    lambda a, v: v.prod(),
    lambda a, v: a[1, 2],
]
BUILDERS = {0: TO_SCALAR, 1: TO_VECTOR, 2: TO_MATRIX}


def random_graph(seed, size=14):
    """Inputs and outputs; every value is used, and kept in a range that does not overflow."""
    rng = np.random.default_rng(seed)
    inputs = [pt.dmatrix("A"), pt.dmatrix("B"), pt.dvector("v"), pt.dvector("w"), pt.dscalar("s")]
    pools = {0: inputs[4:], 1: inputs[2:4], 2: inputs[:2]}
    pools = {rank: list(found) for rank, found in pools.items()}

    def pick(rank):
        found = pools[rank]
        return found[rng.integers(len(found))]

    for _ in range(size):
        rank = int(rng.integers(3))
        kind = rng.integers(3)
        if kind == 0:
            new = UNARY[rng.integers(len(UNARY))](pick(rank))
        elif kind == 1:
            new = BINARY[rng.integers(len(BINARY))](pick(rank), pick(int(rng.integers(rank + 1))))
        else:
            choices = BUILDERS[rank]
            new = choices[rng.integers(len(choices))](pick(2), pick(1))
        assert new.ndim == rank
        pools[rank].append(pt.tanh(new) if rng.random() < 0.5 else new / (1 + abs(new)))
    return inputs, [pools[rank][-1] for rank in pools]


def values_of(inputs, seed):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-0.9, 2, SHAPES[v.ndim]) for v in inputs]


def assert_same(outputs, rewritten, inputs, seed):
    given = dict(zip(inputs, values_of(inputs, seed), strict=True))
    for out, new in zip(outputs, rewritten, strict=True):
        assert out.type.is_super(new.type)
    for a, b in zip(evaluate(outputs, given), evaluate(rewritten, given), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("seed", range(60))
def test_values(seed, phase):
    inputs, outputs = random_graph(seed)
    rewritten = rewrite_graph(outputs, include=PHASES[phase], clone=True)
    assert_same(outputs, rewritten, inputs, seed)


@pytest.mark.parametrize("seed", range(40))
def test_gradients(seed):
    inputs, outputs = random_graph(seed, size=8)
    cost = sum(out.sum() for out in outputs)
    found = phintys.grad(cost, inputs, disconnected_inputs="ignore")
    rewritten = rewrite_graph(found, include=("fast_run",), clone=True)
    assert_same(found, rewritten, inputs, seed)


@pytest.mark.parametrize("seed", range(20))
def test_normal_form(seed):
    """A second run finds only what uses that ended in the first one have made possible."""
    _, outputs = random_graph(seed)
    for _ in range(4):
        before, outputs = outputs, rewrite_graph(outputs, include=("canonicalize",), clone=True)
        if equal_computations(before, outputs):
            break
    assert equal_computations(before, outputs), f"still changing: {outputs}"
