"""A branch in the step of a loop is computed only if it is taken, wherever rewriting moves it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import ifelse
from phintys.graph.traversal import toposort
from phintys.loop.op import Scan
from phintys.loop.results import until

v, x, m = pt.vector("v"), pt.vector("x"), pt.matrix("m")
i, big = pt.iscalar("i"), pt.scalar("big")
ONE = pt.constant(1.0, dtype="float64")
MODES = ["FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "JAX"]
#: with these, ``v[i]``, ``m @ v`` and ``inv(m)`` fail, and are in no branch that is taken
ARGUMENTS = {v: np.ones(3), x: np.arange(3.0), m: np.ones((3, 4)), i: 7, big: 100.0}
#: with these they do not fail
FITTING = ARGUMENTS | {m: np.ones((3, 3)) + np.eye(3), i: 2}


def loop(step: Any, sequences: Any = None, *given: Any, n_steps: Any = None) -> Any:
    """The states of a loop that starts with 1."""
    start = [ONE]
    return phintys.scan(step, sequences, start, given, n_steps, return_updates=False)


def mapped(step: Any, *given: Any) -> Any:
    return phintys.scan(step, x, [None], given, return_updates=False)


def made_outside() -> Any:
    """A loop in a branch, beside one with as many steps."""
    a = loop(lambda r, s: pt.tanh(r * s) + 1, x)
    b = loop(lambda r, s: pt.tanh(r * s) + (m @ (v * s))[0], x)
    return a.sum() + ifelse(big < 100, b.sum(), ONE)


VALUES = {
    "given": loop(lambda s, v, i: ifelse(s > big, v[i], s) + 1, None, v, i, n_steps=5),
    "computed": loop(lambda s, w: ifelse(s > big, w[i], s) + 1, None, pt.exp(v) - v, n_steps=5),
    "captured": loop(lambda s: ifelse(s > big, v[i], s) + 1, n_steps=5),
    "while": loop(lambda s: (ifelse(s > big, v[i], s) + 1, until(s > 5)), n_steps=9),
    "row": mapped(lambda r: ifelse(r > big, v[i] * r, r)),
    "matrix": loop(lambda s, m: ifelse(s > big, pt.linalg.inv(m).sum(), s) + 1, None, m, n_steps=5),
    "invariant condition": loop(lambda s: ifelse(big < 100, v[i], s) + 1, n_steps=5),
    "invariant choice": loop(lambda s: ifelse(big < 100, v[i], v[0]) + s, n_steps=5),
    "all rows at once": loop(lambda r, s: ifelse(s > big, pt.dot(r, v), s) + 1, m),
    "elements of all rows": loop(lambda r, s: ifelse(s > big, pt.exp(r * v).sum(), s) + 1, m),
    "inner loop": mapped(
        lambda r: phintys.scan(
            lambda s: ifelse(s > big, v[i] * r, s) + 1, None, [r], n_steps=3, return_updates=False
        )[-1]
    ),
    "another loop": made_outside(),
}
PROGRAMS = VALUES | {
    f"gradient, {name}": phintys.grad(VALUES[name][-1] + v.sum(), v)
    for name in ("given", "captured", "row", "elements of all rows")
}
#: JAX compiles for fixed shapes
NOT_ON_JAX = {"while", "gradient, elements of all rows"}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", MODES)
def test_branch_that_is_not_taken_raises_nothing(name: str, mode: str) -> None:
    if mode == "JAX" and name in NOT_ON_JAX:
        pytest.skip("JAX compiles for fixed shapes")
    f = phintys.function([*ARGUMENTS], PROGRAMS[name], mode=mode, on_unused_input="ignore")
    found = f(*ARGUMENTS.values())
    np.testing.assert_allclose(found, f(*FITTING.values()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_branch_that_is_taken_is_computed(name: str) -> None:
    fast, slow = (
        phintys.function([*ARGUMENTS], PROGRAMS[name], mode=mode, on_unused_input="ignore")
        for mode in ("FAST_RUN", "FAST_COMPILE")
    )
    taken = {**FITTING, big: 0.5}
    np.testing.assert_allclose(fast(*taken.values()), slow(*taken.values()))
    with pytest.raises((IndexError, ValueError)):
        fast(*(ARGUMENTS | {big: 0.5}).values())


def test_what_was_computed_before_a_loop_is_computed_once() -> None:
    before = pt.exp(v).sum()
    y = loop(lambda s: ifelse(s > big, before, s) + 1, n_steps=5)
    inner = next(n.op for n in toposort([y]) if isinstance(n.op, Scan))
    assert not any("exp" in str(n.op).lower() for n in inner.fgraph.apply_nodes)


def test_what_cannot_fail_is_computed_once() -> None:
    y = loop(lambda s: ifelse(s > big, s * pt.exp(m).sum(), s) + 1, n_steps=50)
    f = phintys.function([m, big], y)
    inner = next(n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan))
    assert not any("exp" in str(n.op).lower() for n in toposort(inner.fgraph.outputs))
    assert f(np.zeros((2, 2)), 1.5)[0] == 2


def test_short_loops_are_unrolled_if_branches_share_what_cannot_fail() -> None:
    for shared, count in ((pt.exp, 0), (pt.linalg.inv, 1)):
        y = loop(lambda s, f=shared: ifelse(s > big, s * f(m).sum(), s) + 1, n_steps=3)
        f = phintys.function([m, big], y)
        assert sum(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort()) == count
        assert f(np.eye(1), 10.0).tolist() == [2.0, 3.0, 4.0]
        assert len(f(np.eye(1), 1.5)) == 3
