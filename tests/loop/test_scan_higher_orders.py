"""Third derivatives of loops, branches and inner graphs: reverse mode against forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys.gradient import pushforward
from phintys.loop import scan_checkpoints, until

w, s0 = pt.dscalars("w", "s0")
x = pt.dvector("x")
V = {x: np.array([0.5, 1.2, 2.0, 0.7]), s0: 0.4, w: 1.5}
OPTIONS: dict[str, Any] = {"return_updates": False}


def step(a: Any, s: Any) -> Any:
    return pt.sin(a * s) * w + a


def scan(*args: Any, **kwargs: Any) -> Any:
    return phintys.scan(*args, **kwargs, **OPTIONS)


def two_taps(a: Any, older: Any, newer: Any) -> Any:
    return pt.sin(older * w) * newer + a


FORMS = {
    "map": phintys.map(lambda a: step(w, a), x, **OPTIONS),
    "reduce": phintys.reduce(step, x, s0, **OPTIONS),
    "foldl": phintys.foldl(step, x, s0, **OPTIONS),
    "foldr": phintys.foldr(step, x, s0, **OPTIONS),
    "checkpoints": scan_checkpoints(step, x, s0, save_every_N=2, **OPTIONS),
    "while": scan(lambda s: (pt.sin(s) * w + s, until(s > 3)), outputs_info=s0, n_steps=6),
    "taps": scan(two_taps, x, dict(initial=pt.stack([s0, w]), taps=[-2, -1])),
    "backwards": scan(lambda a, b: step(a, w) * b, dict(input=x, taps=[-1, 1]), go_backwards=True),
    "symbolic steps": scan(lambda s: step(s0, s), outputs_info=w * 1, n_steps=x.shape[0]),
    "one step": scan(lambda s: step(w, s), outputs_info=s0, n_steps=1),
    "nested": scan(lambda a: scan(lambda s: step(a, s), outputs_info=w, n_steps=3)[-1], x),
    "untraced": scan(lambda a, s: (step(a, s), step(s, s)), x, [None, s0])[0],
    "branches": phintys.ifelse(s0 > 0, pt.sin(x * w), pt.exp(x * w)),
    "inner graph": phintys.OpFromGraph([x, w], [pt.sin(x * w)])(x, w),
}


@cache
def derivatives(name: str) -> Sequence[Any]:
    """The third derivative of a form with respect to ``w`` in reverse and in forward mode."""
    reverse = forward = (FORMS[name] ** 2).sum()
    for _ in range(3):
        reverse = phintys.grad(reverse, w)
        forward = pushforward(forward, w, pt.ones(()))
    return reverse, forward


#: short forms; the derivatives of the others are compared in one mode
IN_BOTH_MODES = "branches", "inner graph", "one step", "foldl"


CASES = [
    *((name, "FAST_COMPILE") for name in FORMS),
    *((name, "FAST_RUN") for name in IN_BOTH_MODES),
    *(pytest.param(n, "FAST_RUN", marks=rest) for n in FORMS if n not in IN_BOTH_MODES),
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_third_derivatives_of_both_directions_agree(name: str, mode: str):
    f = phintys.function([x, s0, w], derivatives(name), mode=mode, on_unused_input="ignore")
    reverse, forward = f(*V.values())
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)
    assert abs(reverse) > 1e-3
