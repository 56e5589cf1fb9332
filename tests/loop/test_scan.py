"""`phintys.scan`: values of its forms against Python loops."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.loop import until

x, y, m0 = pt.dvectors("x", "y", "m0")
x0, k = pt.dscalars("x0", "k")
n = pt.iscalar("n")
XS, YS = np.array([1.0, -2.0, 0.5, 3.0, 1.5]), np.array([0.5, 2.0, -1.0, 1.0])


def scan(*args, **kwargs):
    return phintys.scan(*args, **kwargs, return_updates=False)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_all_kinds_of_arguments(mode):
    def step(x_before, x_now, y_now, s, older, newer, gain):
        return s * gain + x_now, newer + older * y_now, x_before + 1

    outputs = scan(
        step,
        sequences=[dict(input=x, taps=[-1, 0]), y],
        outputs_info=[x0, dict(initial=m0, taps=[-2, -1]), None],
        non_sequences=[k],
        n_steps=n,
    )
    f = phintys.function([x, y, x0, m0, k, n], outputs, mode=mode)
    for steps in (4, 2, 1, 0):
        s, m, expected = 2.0, [1.0, 2.0], []
        for t in range(steps):
            s, new = s * 0.5 + XS[t + 1], m[-1] + m[-2] * YS[t]
            m.append(new)
            expected.append((s, new, XS[t] + 1))
        found = np.array(f(XS, YS, 2.0, m[:2], 0.5, steps))
        np.testing.assert_allclose(found, np.array(expected).reshape(-1, 3).T, rtol=1e-13)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_until(mode):
    def step(x_now, s):
        return x_now + s, until(x_now + s < -0.5)

    f = phintys.function([x, x0], scan(step, sequences=x, outputs_info=x0), mode=mode)
    np.testing.assert_array_equal(f(XS, 0.0), [1.0, -1.0])
    np.testing.assert_array_equal(f(XS, 9.0), 9 + np.cumsum(XS))
    assert f([], 0.0).shape == (0,)
