# pyright: basic
"""The cost of each stage of compilation is proportional to the length of a chain of steps.

Calls of functions are counted, which are the same on every machine.
"""

from __future__ import annotations

from cProfile import Profile

import numpy as np
import pytest
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys.compile.mode import get_mode
from phintys.graph.collection import collection_paused
from phintys.lowering.from_graph import lower_graph

STEPS = 20
#: a stage that makes fewer calls than this may depend on limits of fusion and the like
NEGLIGIBLE = 50_000


def _inner_graph(z):
    a = pt.dvector("a")
    return phintys.OpFromGraph([a], [pt.sin(a) * 1.5])(z)


def _loop(z):
    return phintys.scan(
        lambda s: pt.sin(s) * 1.5, outputs_info=[z], n_steps=3, return_updates=False
    )[-1]


def _exchanged(z):
    first, second = pt.split(z, splits_size=[2, 4], n_splits=2)
    return pt.concatenate([second, pt.sin(first)])


#: name -> step; steps keep the length unless the name starts with "shorter"
VECTORS = {
    "elementwise": lambda z: pt.sin(z * 1.5),
    "reversed": lambda z: pt.sin(z * 1.5)[::-1],
    "shorter in front": lambda z: pt.exp(z[1:]),
    "shorter behind": lambda z: pt.exp(z[:-1]),
    "shorter by half": lambda z: pt.exp(z[: z.shape[0] // 2 + 1]),
    "shorter by stride": lambda z: pt.exp(z[::2]),
    "shorter by stack": lambda z: pt.sin(pt.stack([z[1:], z[:-1]]).sum(axis=0)),
    "cut and joined": lambda z: pt.concatenate([z[:2], pt.exp(-z[2:])]),
    "rotated": lambda z: pt.concatenate([z[1:], pt.sin(z[:1])]),
    "longer": lambda z: pt.concatenate([z, pt.sin(z[-1:])]),
    "broadcast": lambda z: (z[:, None] * 1.5 + z[None, :]).sum(axis=1),
    "its length": lambda z: pt.sin(z) + pt.ones(z.shape[0]),
    "centred": lambda z: pt.sin(z - z.mean()),
    "set": lambda z: z[2:5].set(pt.sin(z[1:4])),
    "incremented": lambda z: z[2:5].inc(pt.sin(z[1:4])),
    "gathered": lambda z: pt.sin(z[np.array([2, 0, 1, 1, 3, 4])]),
    "read at a position": lambda z: z * z[pt.argmax(z)],
    "sorted positions": lambda z: pt.sin(z[pt.argsort(z)]),
    "where": lambda z: pt.where(z > 0.5, pt.sin(z), z * 2),
    "quotients": lambda z: pt.log(pt.exp(z) + 1.5),
    "cumsum": lambda z: pt.cumsum(pt.sin(z)),
    "sorted": lambda z: pt.sort(z) - pt.sin(z),
    "inner graph": _inner_graph,
    "branches": lambda z: phintys.ifelse(z.sum() > 1.5, pt.sin(z), z * 2),
    "loop": _loop,
    "split": _exchanged,
    "padded": lambda z: pt.pad(pt.sin(z), 1)[1:-1],
    "rolled": lambda z: pt.sin(pt.roll(z, 1)),
    "repeated": lambda z: pt.sin(pt.repeat(z, 2))[::2],
    "diagonal": lambda z: pt.diag(pt.sin(pt.diag(z))),
}
MATRICES = {
    "transposed": lambda z: pt.sin(z).T,
    "axes swapped": lambda z: pt.sin(pt.swapaxes(z, 0, 1))[::-1],
    "shorter rows": lambda z: pt.sin(z)[1:, :-1],
    "reshaped": lambda z: pt.sin(z).reshape((z.shape[1], z.shape[0])),
    "raveled": lambda z: pt.sin(z.ravel()).reshape(z.shape),
    "rows": lambda z: pt.exp(z - z.max(axis=1, keepdims=True)),
    "product": lambda z: pt.tanh(z @ z.T),
    "outer": lambda z: pt.sin(z[0][:, None] * z[:, 0][None, :]),
    "solved": lambda z: pt.linalg.solve(z + pt.eye(z.shape[0]) * 10, z),
    "cholesky": lambda z: pt.linalg.cholesky(z @ z.T + pt.eye(z.shape[0])),
}
CASES = [
    (name, step, shape, known)
    for table, shape in ((VECTORS, (6,)), (MATRICES, (4, 4)))
    for name, step in table.items()
    for known in (False, True)
    if not (known and name.startswith("shorter"))
]


def _calls(task):
    """The number of calls of Python functions in a task, and its result."""
    with collection_paused(), Profile(builtins=False) as profile:
        result = task()
    return sum(entry.callcount for entry in profile.getstats()), result


def _chain(step, shape, known, n):
    x = z = pt.tensor("x", dtype="float64", shape=shape if known else (None,) * len(shape))
    for _ in range(n):
        z = step(z)
    return phintys.FunctionGraph([x], [z, phintys.grad(z.sum(), x)])


def _work(step, shape, known, n):
    """The number of calls of each stage."""
    building, fgraph = _calls(lambda: _chain(step, shape, known, n))
    rewriting, _ = _calls(lambda: get_mode("FAST_RUN").optimizer.rewrite(fgraph))
    lowering, _ = _calls(lambda: lower_graph(fgraph))
    return {"building": building, "rewriting": rewriting, "lowering": lowering}


#: the chains that ``make test`` looks at: one of each kind, whose lengths are not known
QUICK = {
    *("elementwise", "shorter in front", "cut and joined", "set", "gathered", "cumsum", "branches"),
    *("inner graph", "padded", "rows", "transposed", "product"),
}


def _case(name, step, shape, known):
    marks = () if name in QUICK and not known else rest
    return pytest.param(
        name, step, shape, known, id=f"{name}, {'known' if known else 'unknown'}", marks=marks
    )


@pytest.mark.parametrize(("name", "step", "shape", "known"), [_case(*case) for case in CASES])
def test_twice_the_steps_take_twice_the_work(name, step, shape, known):
    _work(step, shape, known, 2)  # fills caches
    once, twice = (_work(step, shape, known, n) for n in (STEPS, 2 * STEPS))
    growth = {stage: twice[stage] / once[stage] for stage in once if twice[stage] > NEGLIGIBLE}
    assert max(growth.values(), default=0) < 2.5, growth
