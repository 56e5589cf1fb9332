"""Derivatives of logarithms of functions that underflow or overflow, first and second."""

from __future__ import annotations

from functools import partial

import mpmath as mp
import numpy as np
from mpmath import mp as exact

import phintys
import phintys.tensor as pt
from phintys import grad

exact.dps = 60

#: expression, the same in mpmath, points
CASES = {
    "log(sigmoid(x))": (lambda m, x: m.log(_sigmoid(m, x)), (-800, -40, -3, 0.5, 30, 50)),
    "log(1 - sigmoid(x))": (lambda m, x: m.log(1 - _sigmoid(m, x)), (-50, -3, 0.5, 40)),
    "log1p(exp(x))": (lambda m, x: m.log(1 + m.exp(x)), (-800, -30, 0.5, 3, 300)),
    "log(3 + 3 exp(x))": (lambda m, x: m.log(3 * (1 + m.exp(x))), (-30, 0.5, 3)),
    "log(1 - exp(x))": (lambda m, x: m.log(1 - m.exp(x)), (-800, -40, -1, -1e-5)),
    "log(i0(x))": (lambda m, x: m.log(_i0(m, x)), (-800, -3, 2, 300)),
    "log(erfc(x))": (lambda m, x: m.log(m.erfc(x)), (-3, 0, 2, 38, 800)),
    "log(0.5 erfc(-x))": (lambda m, x: m.log(0.5 * m.erfc(-x)), (-800, -30, -1, 2)),
    "log(cosh(x))": (lambda m, x: m.log(m.cosh(x)), (-15, 0, 1)),
    "log(1 - 1/(1 + exp(-x)))": (
        lambda m, x: m.log(1 - 1 / (1 + m.exp(-x))),
        (-800, -3, 0.5, 40),
    ),
    "log(1 - 0.5(1 + erf(x)))": (lambda m, x: m.log(1 - 0.5 * (1 + m.erf(x))), (-3, 0, 2, 7)),
    "log(1 - (p + (1 - p) sigmoid(x)))": (
        lambda m, x: m.log(1 - (x + (1 - x) * _sigmoid(m, 100 * x))),
        (1e-3, 0.3, 0.9),
    ),
    "log(sigmoid(x + 1) - sigmoid(x))": (
        lambda m, x: m.log(_sigmoid(m, x + 1) - _sigmoid(m, x)),
        (-800, -3, 0.5, 40),
    ),
    "log(erf(x + 1/8) - erf(x))": (
        lambda m, x: m.log(m.erf(x + 0.125) - m.erf(x)),
        (-7, -3, 0, 0.5, 6),
    ),
    "log(erf(2x) - erf(-x))": (lambda m, x: m.log(m.erf(2 * x) - m.erf(-x)), (1e-3, 0.5, 40)),
    "log(1 + x**(3x))": (lambda m, x: m.log(1 + x ** (3 * x)), (1e-3, 0.5, 1, 400)),
    "log(1 - x**(x/9))": (lambda m, x: m.log(1 - x ** (x / 9)), (1e-3, 0.5, 0.99999)),
    "log(x**-x + x**(-x/2) - 1)": (
        lambda m, x: m.log(x**-x + x ** (-x / 2) - 1),
        (1e-3, 0.25, 0.999),
    ),
    "log(x / (x + exp(-30)))": (lambda m, x: m.log(x / (x + m.exp(-30))), (1e-3, 0.5, 1e9)),
    "(x / exp(90 x))**(0.1 / x)": (lambda m, x: (x / m.exp(90 * x)) ** (0.1 / x), (0.5, 3, 30)),
    "log(sinh(x))": (lambda m, x: m.log(m.sinh(x)), (1e-3, 1, 15)),
    "log(expm1(x))": (lambda m, x: m.log(m.expm1(x)), (1e-3, 1, 800)),
    "square of a tail": (
        lambda m, x: x**2 / 2 + 3 * x + m.log(0.5 * m.erfc((x + 3) * 0.5**0.5)),
        (-20, -3, 0, 5, 100),
    ),
    "log(i0(x)) and a square": (
        lambda m, x: m.log(_i0(m, 3 * x)) - 0.5 * (x**2 + 9),
        (1e-3, 0.5, 3, 1e3),
    ),
    "polynomial over x": (lambda m, x: (x - 3) ** 2 / (2 * x), (1e-12, 0.5, 3, 1e9)),
    "a constant beside exp": (lambda m, x: x - m.exp(x), (-1e-20, 0, 1e-9, 3)),
    "a constant beside sigmoid": (lambda m, x: x / 2 - m.log(1 + m.exp(x)), (-1e-20, 1e-9, 3)),
    "x**2 / exp(3 x)": (lambda m, x: (7 / m.exp(3 * x)) ** 2, (-50, 0, 300)),
    "product of complements": (
        lambda m, x: m.log(1 - (1 - m.exp(-x)) * (1 - m.exp(-2 * x))),
        (1e-3, 1, 50),
    ),
}


def _sigmoid(m, x):
    return pt.sigmoid(x) if m is pt else 1 / (1 + m.exp(-x))


def _i0(m, x):
    return pt.i0(x) if m is pt else m.besseli(0, x)


def test_tails():
    """In one function, where no part of a derivative is used once only."""
    xs = [pt.dvector(name) for name in CASES]
    outputs = []
    for x, (build, _) in zip(xs, CASES.values()):
        value = build(pt, x)
        g = phintys.grad(value.sum(), x)
        outputs += [g, phintys.grad(g.sum(), x), value]
    points = [np.asarray(p, "float64") for _, p in CASES.values()]
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        found = phintys.function(xs, outputs, mode=mode)(*points)
        for k, (name, (build, at)) in enumerate(CASES.items()):
            for order in (1, 2):
                expected = [mp.diff(partial(build, mp), mp.mpf(p), order) for p in at]
                # second derivatives of sums are differences of numbers of the size of the first
                size = 1e-9 if order == 1 else 1e-12 * np.abs(found[3 * k]).max()
                np.testing.assert_allclose(
                    found[3 * k + order - 1], np.array(expected, float), 1e-8, size, err_msg=name
                )


def test_narrow_floats():
    for dtype in ("float32", "float16"):
        x = pt.vector(dtype=dtype)
        g = phintys.grad(pt.log(pt.erfc(x)).sum() + pt.log(pt.sigmoid(x)).sum(), x)
        assert g.type.dtype == dtype
        found = phintys.function([x], g)(np.asarray([-12, 0, 12], dtype))
        np.testing.assert_allclose(found, [1, 0.5 - 2 / np.sqrt(np.pi), -24.0825], rtol=2e-3)


def test_increments_of_gammaln():
    """Steps of any size, also those that end next to 0."""
    x = np.array([828.0, 109, 561, 1e5, 900, 1e8, 1.0, 3.0, 1.0])
    h = np.array([-825.0, -108, -560, -99998, -300, 2.5, -0.5, -1.6, 30.0])
    u, v = pt.dvectors("u", "v")
    found = phintys.function([u, v], pt.gammaln(u + v) - pt.gammaln(u))(x, h)
    expected = [float(exact.loggamma(a + b) - exact.loggamma(a)) for a, b in zip(x, h)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    slope = phintys.function([u, v], grad((pt.gammaln(u + v) - pt.gammaln(u)).sum(), u))(x, h)
    expected = [float(exact.digamma(a + b) - exact.digamma(a)) for a, b in zip(x, h)]
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


def test_products_and_determinants():
    """Numbers that underflow, in one function with their derivatives."""
    v, m, s = pt.dvector(), pt.dmatrix(), pt.dscalar()
    outputs = [pt.log(pt.prod(v)), pt.log(3 * pt.linalg.det(m)), pt.log(pt.softplus(s))]
    joined = pt.log(pt.concatenate([pt.exp(v), [2.0]])).sum()
    stacked = pt.log(pt.stack([pt.exp(s), s**2])).sum()
    slopes = [grad(outputs[0], v), grad(outputs[1], m), grad(outputs[2], s)]
    f = phintys.function([v, m, s], [*outputs, joined, stacked, *slopes, grad(joined, v)])
    found = f(np.full(400, 1e-2), 1e-200 * np.eye(2), -900.0)
    size = 400 * np.log(1e-2)
    expected = [size, np.log(3) - 400 * np.log(10), -900, 4 + np.log(2), -900 + 2 * np.log(900)]
    np.testing.assert_allclose(found[:5], expected, rtol=1e-13)
    for slope, value in zip(found[5:], (np.full(400, 1e2), 1e200 * np.eye(2), 1.0, np.ones(400))):
        np.testing.assert_allclose(slope, value, rtol=1e-12)


def test_intermediate_variables():
    """A derivative with respect to a variable that another form looks through."""
    x, y, m = pt.dvector("x"), pt.dvector("y"), pt.dscalar("m")
    p = pt.sigmoid(x)
    u, v = (x - m) / 2, (y - m) / 2
    interval = pt.log(pt.erf(u) - pt.erf(v)).sum()
    outputs = [*grad(pt.log(1 - p).sum(), [p, x]), *grad(interval, [u, v]), *grad(interval, [x, y])]
    found = phintys.function([x, y, m], outputs)([1.0, 2.0], [0.5, 0.1], 0.25)
    rest = 1 + np.exp([1.0, 2.0])
    np.testing.assert_allclose(found[0], -rest, rtol=1e-12)
    np.testing.assert_allclose(found[1], 1 / rest - 1, rtol=1e-12)
    np.testing.assert_allclose(found[2:4], 2 * np.array(found[4:6]), rtol=1e-12)


def test_intermediate_variables_of_sums():
    """They count, also those that a polynomial looks through, or that are computed twice."""
    x, m = pt.dvector("x"), pt.dscalar("m")
    z, again = x - m, x - m
    total = (z**2 / 2 - m * z + pt.log(0.5 * pt.erfc((z - m) / 2**0.5)) + again * z).sum()
    outputs = grad(total, [z, again, x])
    found = phintys.function([x, m], outputs)([-9.0, 2.0, 11.0], 0.5)
    expected = phintys.function([x, m], outputs, mode="FAST_COMPILE")([-9.0, 2.0, 11.0], 0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found[1], [-9.5, 1.5, 10.5], rtol=1e-12)
    np.testing.assert_allclose(found[0] + found[1], found[2], rtol=1e-12)


def test_powers_at_zero():
    """Of a sum that is computed from logarithms, derivatives at a base of 0 are those of x**p."""
    x, p = pt.dvector("x"), pt.dvector("p")
    outputs = [pt.log(1 + x**p), *grad(pt.log(1 + x**p).sum(), [x, p])]
    found = phintys.function([x, p], outputs)([0.0, 0.0, -2.0], [1.0, 2.5, 2.0])
    np.testing.assert_allclose(found[0], [0, 0, np.log(5)], rtol=1e-12)
    np.testing.assert_allclose(found[1], [1, 0, -0.8], rtol=1e-12)


def test_differences_of_gammaln():
    x, a = pt.dvector("x"), pt.dvector("a")
    outputs = [pt.gammaln(x + a) - pt.gammaln(x), pt.gammaln(x + 1) - pt.gammaln(x - a + 1)]
    outputs += grad(outputs[0].sum(), [x, a])
    at = np.array([1e12, 1e6, 3.0]), np.array([2.5, 3.0, 1e-9])
    found = phintys.function([x, a], outputs)(*at)
    for k, (z, h) in enumerate(zip(*(map(mp.mpf, v) for v in at), strict=True)):
        rise = mp.loggamma(z + h) - mp.loggamma(z)
        fall = mp.loggamma(z + 1) - mp.loggamma(z - h + 1)
        slopes = mp.psi(0, z + h) - mp.psi(0, z), mp.psi(0, z + h)
        expected = [float(q) for q in (rise, fall, *slopes)]
        np.testing.assert_allclose([v[k] for v in found], expected, rtol=1e-12)
