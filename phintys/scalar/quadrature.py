"""Derivatives of the incomplete gamma and beta functions in their shapes, by quadrature.

Both functions are integrals of a density over ``(-inf, theta]``, with theta = log x or logit x.
The derivative in a shape is the integral of the density times ``s(t) - E[s]``, where s is the
statistic of that shape: log t for gamma, log t or log(1 - t) for beta.  The integral of this
product over the whole line is 0.  Hence it can be integrated over the side of theta on which it
does not change sign, so that nothing cancels.  The factor of a second derivative is
``(s - E[s]) (t - E[t])`` minus the covariance of s and t.  The quadrature is the double exponential
rule for a half line, ``r = L exp(pi/2 sinh u)`` (H.  Takahasi and M.  Mori, "Double exponential
formulas for numerical integration", 1974), where L is the decay length of the density at theta.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_STEP = 1 / 24
_U = np.arange(-3.8, 3.2, _STEP)
_NODES = np.exp(np.pi / 2 * np.sinh(_U))
_WEIGHTS = _STEP * np.pi / 2 * np.cosh(_U) * _NODES


def _half_line(length: Any, side: Any, integrand: Any) -> Any:
    """The integral of ``integrand(side * r)`` over r > 0, for arrays of decay lengths and sides."""
    total = np.zeros(np.shape(length))
    for node, weight in zip(_NODES, _WEIGHTS):
        term = integrand(side * length * node)
        total += weight * np.where(np.isfinite(term), term, 0)
    return total * length


class Moment(NamedTuple):
    """A polynomial of the statistics, whose integral over the whole line is 0.

    It is the derivative of the density in the shapes ``of`` (one or two of them), as a multiple of
    the density: ``s - E[s]``, or ``(s - E[s]) (t - E[t])`` minus their covariance.
    """

    of: tuple[int, ...]

    def value(self, deviations: Any, covariance: Any) -> Any:
        """The polynomial, from the deviations of the statistics from their means."""
        first, last = deviations[self.of[0]], deviations[self.of[-1]]
        return first * last - covariance if len(self.of) == 2 else first


def gammainc_der(k: Any, x: Any) -> Any:
    """d gammainc(k, x) / dk, a float64 array; NaN where k <= 0 or x < 0, 0 at x = 0 and x = inf."""
    return _gammainc_der(k, x, Moment((0,)))


def gammainc_der2(k: Any, x: Any) -> Any:
    """The second derivative of gammainc(k, x) in k; see `gammainc_der`."""
    return _gammainc_der(k, x, Moment((0, 0)))


def _gammainc_der(k: Any, x: Any, moment: Moment) -> Any:
    """With ``t = x exp(r)`` the density is ``exp(k r - x expm1(r))``, up to a constant factor."""
    from scipy.special import gammaln, psi, zeta

    k, x = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (k, x)))
    inside = (k > 0) & (x > 0) & np.isfinite(k) & np.isfinite(x)
    k_, x_ = np.where(inside, k, 1.0), np.where(inside, x, 1.0)
    log_x, mean, variance = np.log(x_), psi(k_), zeta(2, k_)
    side = np.where(log_x < mean, -1.0, 1.0)
    length = 1 / (np.abs(k_ - x_) + np.sqrt(x_))

    def integrand(r: Any) -> Any:
        # for r > 0 the variable is s = t / x - 1, because in r the density decays too abruptly
        s = np.maximum(r, 0)
        log_ratio = np.where(r > 0, np.log1p(s), r)
        ratio = np.where(r > 0, s, np.expm1(np.minimum(r, 0)))
        value = moment.value([log_x - mean + log_ratio], variance)
        return value * np.exp(k_ * log_ratio - x_ * ratio) / (1 + s)

    factor = np.exp(k_ * log_x - x_ - gammaln(k_))
    value = -side * factor * _half_line(length, side, integrand)
    edge = np.where((k > 0) & ((x == 0) | (x == np.inf)), 0.0, np.nan)
    return np.where(inside, value, edge)


def betainc_der_a(a: Any, b: Any, x: Any) -> Any:
    """d betainc(a, b, x) / da, a float64 array; NaN outside of a, b > 0 and 0 <= x <= 1."""
    return _betainc_der(a, b, x, Moment((0,)))


def betainc_der_b(a: Any, b: Any, x: Any) -> Any:
    """d betainc(a, b, x) / db, a float64 array; NaN outside of a, b > 0 and 0 <= x <= 1."""
    return _betainc_der(a, b, x, Moment((1,)))


def betainc_der_aa(a: Any, b: Any, x: Any) -> Any:
    """The second derivative of betainc(a, b, x) in a; see `betainc_der_a`."""
    return _betainc_der(a, b, x, Moment((0, 0)))


def betainc_der_ab(a: Any, b: Any, x: Any) -> Any:
    """The derivative of betainc(a, b, x) in a and b; see `betainc_der_a`."""
    return _betainc_der(a, b, x, Moment((0, 1)))


def betainc_der_bb(a: Any, b: Any, x: Any) -> Any:
    """The second derivative of betainc(a, b, x) in b; see `betainc_der_b`."""
    return _betainc_der(a, b, x, Moment((1, 1)))


def _betainc_der(a: Any, b: Any, x: Any, moment: Moment) -> Any:
    """With ``theta = logit(t)`` the density is ``t**a (1 - t)**b``, up to a constant factor."""
    from scipy.special import betaln, psi, zeta

    a, b, x = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, x)))
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & np.isfinite(a) & np.isfinite(b)
    a_, b_, x_ = np.where(inside, a, 1.0), np.where(inside, b, 1.0), np.where(inside, x, 0.5)
    log_x, log_y = np.log(x_), np.log1p(-x_)
    distance = [log_x - (psi(a_) - psi(a_ + b_)), log_y - (psi(b_) - psi(a_ + b_))]
    covariance = -zeta(2, a_ + b_)
    if moment.of[0] == moment.of[-1]:
        covariance = covariance + zeta(2, b_ if moment.of[0] else a_)
    # below theta, log t is smaller than at theta, and log(1 - t) is larger
    which = moment.of[0]
    side = np.where(distance[which] < 0, -1.0, 1.0) * (-1 if which else 1)
    length = 1 / (np.abs(a_ * (1 - x_) - b_ * x_) + np.sqrt((a_ + b_) * x_ * (1 - x_)))

    def integrand(r: Any) -> Any:
        # log(t / x) and log((1 - t) / (1 - x)), for logit(t) = logit(x) + r
        up = _log_ratio(r, x_)
        down = up - r
        value = moment.value([distance[0] + up, distance[1] + down], covariance)
        return value * np.exp(a_ * up + b_ * down)

    factor = np.exp(a_ * log_x + b_ * log_y - betaln(a_, b_))
    value = -side * factor * _half_line(length, side, integrand)
    edge = np.where((a > 0) & (b > 0) & ((x == 0) | (x == 1)), 0.0, np.nan)
    return np.where(inside, value, edge)


def _log_ratio(r: Any, x: Any) -> Any:
    """log(t / x) for ``logit(t) = logit(x) + r``, that is ``-log(x + (1 - x) exp(-r))``."""
    near = -np.log1p((1 - x) * np.expm1(-np.maximum(r, -700)))
    far = r - np.log1p(-x)  # where exp(-r) overflows
    return np.where(r > -700, near, far)
