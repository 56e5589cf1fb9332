"""Derivatives of the incomplete gamma and beta functions in their shapes, by quadrature.

Both functions are integrals of a density over ``(-inf, theta]``, with theta = log x or logit x.
The derivative in a shape is the integral of the density times ``s(t) - E[s]``, where s is the
statistic of that shape: log t for gamma, log t or log(1 - t) for beta.  The integral of this
product over the whole line is 0.  Hence it can be integrated over the side of theta on which it
does not change sign, so that nothing cancels.  The factor of a second derivative is
``(s - E[s]) (t - E[t])`` minus the covariance of s and t.  The quadrature is the double exponential
rule for a half line, ``r = L exp(pi/2 sinh u)`` (H.  Takahasi and M.  Mori, "Double exponential
formulas for numerical integration", 1974), where L is the decay length of the density at theta.
Next to the ends of the domain the density can be level over many decimal orders: there
`phintys.scalar.tails` has power series.

The formulas are written for NumPy's arrays and for tensors: ``m`` has the elementwise functions,
and ``half_line`` integrates.  In compiled functions a rule replaces the derivatives by them
(`phintys.tensor.rules.quadratures`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from phintys.scalar import tails

#: the exponent of the density of beta, on the side of the integral, above which this is over odds
ABRUPT = 1.5

Integrand = Callable[[Any], Any]
#: (decay lengths, sides, integrand) -> integrals of ``integrand(side * r)`` over r > 0
HalfLine = Callable[[Any, Any, Integrand], Any]

_STEP = 1 / 24
_U = np.arange(-3.8, 3.2, _STEP)
NODES = np.exp(np.pi / 2 * np.sinh(_U))
WEIGHTS = _STEP * np.pi / 2 * np.cosh(_U) * NODES
#: numbers that are computed at once, except that a whole array is
_BLOCK = 4096


class Moment(NamedTuple):
    """A polynomial of the statistics, whose integral over the whole line is 0.

    It is the derivative of the density in the shapes ``of`` (one or two of them), as a multiple of
    the density: ``s - E[s]``, or ``(s - E[s]) (t - E[t])`` minus their covariance.
    """

    of: tuple[int, ...]

    def value(self, deviations: Any, singular: Any, constant: Any) -> Any:
        """The polynomial, where the deviations of the statistics are ``deviations + singular``.

        The second terms are those that grow as a shape approaches 0.  Their product cancels with
        the covariance there; ``constant`` is the difference of the two.
        """
        i, j = self.of[0], self.of[-1]
        first, last = deviations[i], deviations[j]
        if len(self.of) == 1:
            return first + singular[i]
        return first * last + (first * singular[j] + last * singular[i]) + constant


def of_gamma(m: Any, half_line: HalfLine, moment: Moment, k: Any, x: Any) -> Any:
    """A derivative of gammainc(k, x) in k; NaN where k <= 0 or x < 0, 0 at x = 0 and x = inf.

    With ``t = x exp(r)`` the density is ``exp(k r - x expm1(r))``, up to a constant factor.
    """
    inside = (k > 0) & (x > 0) & (k < inf) & (x < inf)
    k_, x_ = m.switch(inside, k, 1.0), m.switch(inside, x, 1.0)
    # psi(k) is psi(k + 1) - 1 / k, and the derivative of that the variance of log t
    distance, constant = m.log(x_) - m.psi(k_ + 1), -m.tri_gamma(k_ + 1)
    side = m.switch(distance + 1 / k_ < 0, -1.0, 1.0)
    length = 1 / (abs(k_ - x_) + m.sqrt(x_))

    def integrand(r: Any) -> Any:
        # for r > 0 the variable is s = t / x - 1, because in r the density decays too abruptly
        s = m.maximum(r, 0.0)
        log_ratio = m.switch(r > 0, m.log1p(s), r)
        ratio = m.switch(r > 0, s, m.expm1(m.minimum(r, 0.0)))
        value = moment.value([distance + log_ratio], [1 / k_], constant)
        return value * m.exp(k_ * log_ratio - x_ * ratio) / (1 + s)

    factor = m.exp(k_ * m.log(x_) - x_ - m.gammaln(k_))
    value = -side * factor * half_line(length, side, integrand)
    near = x_ <= tails.NEAR
    series = tails.of_gamma(m, moment.of, k_, m.switch(near, x_, tails.NEAR))
    value = m.switch(near, series, value)
    edge = m.switch((k > 0) & (m.eq(x, 0) | m.eq(x, inf)), 0.0, nan)
    return m.switch(inside, value, edge)


def of_beta(m: Any, half_line: HalfLine, moment: Moment, a: Any, b: Any, x: Any) -> Any:
    """A derivative of betainc(a, b, x) in its shapes; NaN outside of a, b > 0 and 0 <= x <= 1.

    With ``theta = logit(t)`` the density is ``t**a (1 - t)**b``, up to a constant factor.
    """
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < inf) & (b < inf)
    a_, b_, x_ = m.switch(inside, a, 1.0), m.switch(inside, b, 1.0), m.switch(inside, x, 0.5)
    log_x, log_y = m.log(x_), m.log1p(-x_)
    mean = m.psi(a_ + b_ + 1)
    distance = [log_x - (m.psi(a_ + 1) - mean), log_y - (m.psi(b_ + 1) - mean)]
    singular, constant = _singular_of_beta(m, moment, a_, b_)
    which = moment.of[0]
    # below theta, log t is smaller than at theta, and log(1 - t) is larger
    side = m.switch(distance[which] + singular[which] < 0, -1.0, 1.0) * (-1 if which else 1)
    abrupt = m.switch(side > 0, b_, a_) > ABRUPT
    length = _length_of_beta(m, a_, b_, x_, side, abrupt)

    def integrand(q: Any) -> Any:
        # where the density decays abruptly in r, the variable is the ratio of the odds minus 1
        size = m.switch(abrupt, m.log1p(abs(q)), abs(q))
        r = side * size
        # log(t / x) and log((1 - t) / (1 - x)), for logit(t) = logit(x) + r
        near = -m.log1p((1 - x_) * m.expm1(-m.maximum(r, -700.0)))
        far = r - log_y  # where exp(-r) overflows
        up = m.switch(r > -700, near, far)
        down = up - r
        value = moment.value([distance[0] + up, distance[1] + down], singular, constant)
        return value * m.exp(a_ * up + b_ * down) / m.switch(abrupt, 1 + abs(q), 1.0)

    factor = m.exp(a_ * log_x + b_ * log_y - m.betaln(a_, b_))
    value = -side * factor * half_line(length, side, integrand)
    value = _near_ends(m, moment.of, a_, b_, x_, value)
    edge = m.switch((a > 0) & (b > 0) & (m.eq(x, 0) | m.eq(x, 1)), 0.0, nan)
    return m.switch(inside, value, edge)


def _singular_of_beta(m: Any, moment: Moment, a: Any, b: Any) -> tuple[Any, Any]:
    """What `Moment.value` takes: psi(a) is psi(a + 1) - 1 / a, and so are psi(b) and psi(a + b)."""
    inverse = 1 / (a + b)
    products = (-2 * (b / a) * inverse, 2 * inverse, -2 * (a / b) * inverse)
    constant = products[moment.of[0] + moment.of[-1]] * inverse + m.tri_gamma(a + b + 1)
    if moment.of[0] == moment.of[-1]:
        constant = constant - m.tri_gamma((b if moment.of[0] else a) + 1)
    return [b / a * inverse, a / b * inverse], constant


def _length_of_beta(m: Any, a: Any, b: Any, x: Any, side: Any, abrupt: Any) -> Any:
    """The decay length of the density, in the variable of the integral."""
    bend = (a + b) * x * (1 - x)
    above = b * m.switch(abrupt, x, 1.0)
    below = a * m.switch(abrupt, 1 - x, 1.0)
    at_theta = abs(a * (1 - x) - b * x) + m.sqrt(bend)
    # a density that bends slowly soon has the slope of its tail
    return 1 / m.switch(bend < 1, m.switch(side > 0, above, below), at_theta)


def _near_ends(m: Any, of: tuple[int, ...], a: Any, b: Any, x: Any, between: Any) -> Any:
    """A derivative of betainc: ``between``, or a power series where x or 1 - x is small."""
    swapped = tuple(1 - i for i in of)
    for shapes, first, last, z, sign in ((of, a, b, x, 1), (swapped, b, a, 1 - x, -1)):
        near = (z <= tails.NEAR) & (last * z <= tails.NEAR)
        series = tails.of_beta(
            m, shapes, first, m.switch(near, last, 1.0), m.switch(near, z, tails.NEAR)
        )
        between = m.switch(near, sign * series, between)
    return between


#: derivative -> its formula and the moment that it integrates
DERIVATIVES: dict[str, tuple[Callable[..., Any], Moment]] = {
    "gammainc_der": (of_gamma, Moment((0,))),
    "gammainc_der2": (of_gamma, Moment((0, 0))),
    "betainc_der_a": (of_beta, Moment((0,))),
    "betainc_der_b": (of_beta, Moment((1,))),
    "betainc_der_aa": (of_beta, Moment((0, 0))),
    "betainc_der_ab": (of_beta, Moment((0, 1))),
    "betainc_der_bb": (of_beta, Moment((1, 1))),
}

# ------------------------------------------------------------------- in NumPy


class _Functions:
    """The elementwise functions that formulas use, of arrays; each is looked up once."""

    _OF_NUMPY = {"switch": "where", "eq": "equal"}

    def __getattr__(self, name: str) -> Any:
        from scipy import special

        if name == "tri_gamma":
            found: Any = partial(special.zeta, 2)
        else:
            of_numpy = self._OF_NUMPY.get(name, name)
            found = getattr(special if hasattr(special, name) else np, of_numpy)
        setattr(self, name, found)
        return found


_FUNCTIONS = _Functions()


def _half_line(length: Any, side: Any, integrand: Integrand) -> Any:
    """The integral, a block of nodes after the other, along a new first axis."""
    total = np.zeros(np.shape(length))
    count = 1 + _BLOCK // (1 + total.size)
    for start in range(0, len(NODES), count):
        block = np.s_[start : start + count, *(None,) * total.ndim]
        term = integrand(side * length * NODES[block])
        total += np.sum(WEIGHTS[block] * np.where(np.isfinite(term), term, 0), axis=0)
    return total * length


def _computed(name: str, *args: Any) -> Any:
    formula, moment = DERIVATIVES[name]
    given = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in args))
    return formula(_FUNCTIONS, _half_line, moment, *given)


def gammainc_der(k: Any, x: Any) -> Any:
    """d gammainc(k, x) / dk, a float64 array; NaN where k <= 0 or x < 0, 0 at x = 0 and x = inf."""
    return _computed("gammainc_der", k, x)


def gammainc_der2(k: Any, x: Any) -> Any:
    """The second derivative of gammainc(k, x) in k; see `gammainc_der`."""
    return _computed("gammainc_der2", k, x)


def betainc_der_a(a: Any, b: Any, x: Any) -> Any:
    """d betainc(a, b, x) / da, a float64 array; NaN outside of a, b > 0 and 0 <= x <= 1."""
    return _computed("betainc_der_a", a, b, x)


def betainc_der_b(a: Any, b: Any, x: Any) -> Any:
    """d betainc(a, b, x) / db, a float64 array; NaN outside of a, b > 0 and 0 <= x <= 1."""
    return _computed("betainc_der_b", a, b, x)


def betainc_der_aa(a: Any, b: Any, x: Any) -> Any:
    """The second derivative of betainc(a, b, x) in a; see `betainc_der_a`."""
    return _computed("betainc_der_aa", a, b, x)


def betainc_der_ab(a: Any, b: Any, x: Any) -> Any:
    """The derivative of betainc(a, b, x) in a and b; see `betainc_der_a`."""
    return _computed("betainc_der_ab", a, b, x)


def betainc_der_bb(a: Any, b: Any, x: Any) -> Any:
    """The second derivative of betainc(a, b, x) in b; see `betainc_der_b`."""
    return _computed("betainc_der_bb", a, b, x)
