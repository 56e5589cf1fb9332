"""Derivatives of logarithms of sums of a few weighted exponentials, first and second."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import phintys
import phintys.tensor as pt

mp.dps = 150


def _log_sum(m: Any, *logs: Any) -> Any:
    """The logarithm of the sum of exponentials, written with an op for each number of terms."""
    if m is mp:
        return mpmath.log(sum([mpmath.exp(v) for v in logs]))
    return pt.logaddexp(*logs) if len(logs) == 2 else pt.logsumexp(pt.stack(logs, -1), axis=-1)


def _bell(x: Any, mean: Any) -> Any:
    return -((x - mean) ** 2) / 2


def _normal(m: Any, x: Any, mean: Any, scale: Any) -> Any:
    return _bell(x / scale, mean / scale) - m.log(scale)


def _softmax(m: Any, *logits: Any) -> list[Any]:
    if m is pt:
        weights = pt.special.softmax(pt.stack(logits, axis=-1), axis=-1)
        return [weights[..., k] for k in range(len(logits))]
    total = sum([mpmath.exp(v) for v in logits])
    return [mpmath.exp(v) / total for v in logits]


def _mixed(m: Any, w: Any, mean: Any) -> Any:
    return m.log(w * m.exp(_bell(1, mean)) + (1 - w) * m.exp(_bell(1, 0 * mean)))


def _chain(m: Any, w: Any, a: Any) -> Any:
    """A hidden Markov model with two states and two steps."""
    first, second = (m.log(v) for v in (w, 1 - w))
    stay = _log_sum(m, a + first, second)
    move = _log_sum(m, a + second, first)
    return _log_sum(m, stay + a, move)


def _of_weights(m: Any, a: Any, mean: Any) -> Any:
    """Weights softmax(a, 0, 1)."""
    logs = [_bell(1, v) for v in (mean, -mean, 0 * mean)]
    if m is pt:
        stacked = pt.stack([a, a * 0, a * 0 + 1], axis=-1)
        return pt.logsumexp(pt.special.log_softmax(stacked, -1) + pt.stack(logs, -1), axis=-1)
    weights = _softmax(mp, a, mpf(0), mpf(1))
    return mpmath.log(sum([w * mpmath.exp(v) for w, v in zip(weights, logs)]))


#: functions ``(m, x, y)``, and points
CASES: dict[str, tuple[Callable[..., Any], list[tuple[float, float]]]] = {
    "w exp(..) + (1 - w) exp(..)": (_mixed, [(0.5, 0), (1e-30, 3), (1 - 1e-9, 40), (1e-3, 1e-9)]),
    "logaddexp(log(w) + .., log1p(-w) + ..)": (
        lambda m, w, a: _log_sum(m, m.log(w) + a, m.log(1 - w) + 2 * a),
        [(0.5, 0), (1e-9, 30), (1e-30, -1e-12), (0.25, 700)],
    ),
    "two scales": (
        lambda m, x, s: _log_sum(m, _normal(m, x, 0, s), _normal(m, x, 1, s)),
        [(1e9, 1e-20), (0.5, 1e-9), (1e-12, 1e6), (-3, 2)],
    ),
    "log(p) of softmax": (
        lambda m, x, y: m.log(_softmax(m, x, 2 * y, 0 * x)[0]) + 3 * y,
        [(0, 0), (40, 1), (-40, 300), (1e-9, -50)],
    ),
    "logsumexp(log_softmax(..) + ..)": (
        _of_weights,
        [(0, 0), (30, 1e-9), (-400, 5), (1, 1e-20)],
    ),
    "hidden Markov model": (_chain, [(0.5, 0.125), (1e-20, 30), (0.999, -700), (1e-9, 3)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_mixtures(name: str, mode: str) -> None:
    """Each derivative is right relative to it and to its change with the inputs."""
    build, points = CASES[name]
    x, y = pt.dvectors("x", "y")
    value = build(pt, x, y)
    first = phintys.grad(value.sum(), [x, y])
    second = [phintys.grad(g.sum(), v) for g, v in zip(first, (x, y))]
    found = phintys.function([x, y], [*first, *second], mode=mode)(*np.array(points).T)
    for k, point in enumerate(points):
        exact = [mpf(p) for p in point]
        for result, order in zip(found, [(1, 0), (0, 1), (2, 0), (0, 2)]):
            slope = partial(mpmath.diff, partial(build, mp), tuple(exact))
            expected = slope(order)
            more = [slope((order[0] + 1, order[1])), slope((order[0], order[1] + 1))]
            size = abs(expected) + sum([abs(p * d) for p, d in zip(exact, more)])
            assert abs(result[k] - expected) <= 1e-9 * size + 1e-60, (point, order, result[k])


def test_variables_without_influence() -> None:
    """A term with the weight 0 cancels; the derivative in its exponent is 0, and defined."""
    a, b, t = pt.dscalars("a", "b", "t")
    y = pt.log(0.0 * pt.exp(a) + 0.25 * pt.exp(b) + 0.75 * pt.exp(2 * b))
    slopes = phintys.grad(y, [a, b])
    forward = phintys.pushforward(y, [a], [t])
    f = phintys.function([a, b, t], [*slopes, forward], on_unused_input="ignore")
    found = f(900.0, 0.0, 1.0)
    np.testing.assert_allclose(found, [0, 1.75, 0], rtol=1e-14)


def test_intermediate_variables() -> None:
    """Derivatives in variables that are looked through, and in the elements of a stack."""
    w, a = pt.dvector("w"), pt.dvector("a")
    rest, logs = 1 - w, pt.stack([a, 2 * a], axis=-1)
    y = pt.logsumexp(pt.stack([pt.log(w), pt.log(rest)], axis=-1) + logs, axis=-1).sum()
    found = phintys.function([w, a], phintys.grad(y, [rest, logs, w, a]))([0.25], [1.0])
    total = 0.25 * np.e + 0.75 * np.e**2
    shares = np.array([0.25 * np.e, 0.75 * np.e**2]) / total
    np.testing.assert_allclose(found[0], [np.e**2 / total], rtol=1e-14)
    np.testing.assert_allclose(found[1], [shares], rtol=1e-14)
    np.testing.assert_allclose(found[2], [(np.e - np.e**2) / total], rtol=1e-14)
    np.testing.assert_allclose(found[3], [shares @ [1, 2]], rtol=1e-14)


def test_impossible_terms() -> None:
    """Logarithms that are -inf, as of forbidden transitions."""
    a, b = pt.dvectors("a", "b")
    for y in (pt.logaddexp(a, b), pt.logsumexp(pt.stack([a, b], axis=-1), axis=-1)):
        f = phintys.function([a, b], phintys.grad(y.sum(), [a, b]))
        found = f([-np.inf, 1.0, 3.0], [2.0, -np.inf, 3.0])
        np.testing.assert_allclose(found, [[0, 1, 0.5], [1, 0, 0.5]], rtol=1e-15)
        both = f([-np.inf], [-np.inf])
        np.testing.assert_allclose(np.sum(both), 1)


def test_narrow_floats() -> None:
    for dtype in ("float32", "float16"):
        w, a = pt.vector("w", dtype=dtype), pt.vector("a", dtype=dtype)
        y = pt.log(w * pt.exp(a) + (1 - w) * pt.exp(-a))
        g = phintys.grad(y.sum(), [w, a])
        assert {v.type.dtype for v in g} == {dtype}
        found = phintys.function([w, a], g)(np.array([0.5, 0.25], dtype), np.array([0, 60], dtype))
        np.testing.assert_allclose(found, [[0, 4], [0, 1]], rtol=1e-3)
