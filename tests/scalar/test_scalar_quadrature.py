"""Derivatives of incomplete gamma and beta functions, against differences of many digits."""

from __future__ import annotations

from itertools import product

import mpmath as mp
import numpy as np
import pytest

from phintys.scalar import quadrature

DIGITS = 110
STEP = mp.mpf(10) ** -15
SHAPES = [1e-10, 1e-6, 1e-3, 0.05, 0.7, 4.0, 60.0, 1e3]
PLACES = [1e-300, 1e-100, 1e-30, 1e-10, 1e-5, 9e-4, 2e-3, 0.1, 0.5, 1.0, 5.0, 50.0]
FRACTIONS = [*PLACES[:9], 0.9, 0.99, 1 - 2e-3, 1 - 9e-4, 1 - 1e-10, 1 - 2.0**-52]
#: so many of the combinations for beta are drawn
DRAWN = 60


def gamma_function(shapes, x):
    (k,) = shapes
    return mp.power(x, k) * mp.exp(-x) * mp.hyp1f1(1, k + 1, x) / mp.gamma(k + 1)


def beta_function(shapes, x):
    """betainc, or that minus 1 where x is above 1/2."""
    a, b = shapes
    if x > 0.5:
        return -beta_function((b, a), 1 - x)
    factor = mp.exp(mp.loggamma(a + b) - mp.loggamma(a + 1) - mp.loggamma(b))
    return factor * mp.power(x, a) * mp.power(1 - x, b) * mp.hyp2f1(a + b, 1, a + 1, x)


def derivative(values, steps, of):
    """From values at points next to a point, by their distances in steps."""

    def at(*moves):
        return values[tuple(sum(m for i, m in moves if i == k) for k in range(len(steps)))]

    i, j = of[0], of[-1]
    if len(of) == 1:
        return (at((i, 1)) - at((i, -1))) / (2 * steps[i])
    if i == j:
        return (at((i, 1)) + at((i, -1)) - 2 * at()) / steps[i] ** 2
    corners = [(p, q, p * q * at((i, p), (j, q))) for p, q in product((-1, 1), repeat=2)]
    return sum(term for _, _, term in corners) / (4 * steps[i] * steps[j])


def expected(function, shapes, x, orders):
    """The derivatives, and the sizes of the terms of which they consist."""
    with mp.workdps(DIGITS):
        shapes, x = [mp.mpf(k) for k in shapes], mp.mpf(x)
        steps = [k * STEP for k in shapes]
        moves = product((-1, 0, 1), repeat=len(shapes))
        values = {
            move: function([k + m * h for k, m, h in zip(shapes, move, steps)], x) for move in moves
        }
        value = abs(values[(0,) * len(shapes)])
        value = min(value, abs(1 - value))
        found = []
        for of in orders:
            exact = derivative(values, steps, of)
            slopes = [abs(derivative(values, steps, (i,))) for i in of]
            size = abs(exact)
            if len(of) == 2:  # the logarithm has moderate derivatives
                size = max(size, slopes[0] * slopes[1] / value)
            found.append((float(exact), float(size)))
    return found


def cases(family):
    if family == "gamma":
        return gamma_function, [((k,), x) for k, x in product(SHAPES, PLACES)]
    every = list(product(product(SHAPES, SHAPES), FRACTIONS))
    chosen = np.random.default_rng(0).choice(len(every), DRAWN, replace=False)
    return beta_function, [every[i] for i in chosen]


@pytest.mark.parametrize("family", ["gamma", "beta"])
def test_small_shapes_and_places_next_to_the_ends(family):
    function, points = cases(family)
    names = [n for n in quadrature.DERIVATIVES if n.startswith(family)]
    orders = [quadrature.DERIVATIVES[n][1].of for n in names]
    exact = np.array([expected(function, *point, orders) for point in points])
    args = np.array([[*shapes, x] for shapes, x in points]).T
    for name, values, sizes in zip(names, exact[..., 0].T, exact[..., 1].T):
        found = getattr(quadrature, name)(*args)
        told = sizes > 1e-25  # below this the differences are rounding errors
        error = abs(found - values)[told] / sizes[told]
        worst = error.argmax()
        assert error[worst] < 1e-8, (name, args[:, told][:, worst], error[worst])


@pytest.mark.parametrize("x", [1e-300, 1e-30, 1e-10])
@pytest.mark.parametrize("a", [1e-10, 1e-5, 1e-2])
def test_closed_forms(a, x):
    """betainc(a, 1, x) is x**a."""
    log_x = np.log(x)
    for found, exact in (
        (quadrature.betainc_der_a(a, 1, x), log_x * x**a),
        (quadrature.betainc_der_aa(a, 1, x), log_x**2 * x**a),
    ):
        np.testing.assert_allclose(found, exact, rtol=1e-13)
