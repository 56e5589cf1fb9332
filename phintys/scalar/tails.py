"""Derivatives of the incomplete gamma and beta functions in their shapes, by power series.

The series are those of DLMF 8.7.1 and 8.17.7, differentiated term by term.  They are for arguments
next to an end of the domain: there the integrand of `phintys.scalar.quadrature` can be level over
300 decimal orders.  As in that module, ``m`` has the elementwise functions; a derivative is in the
shapes ``of``, one or two of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: the series are for arguments up to this one
NEAR = 1e-3

#: powers above this one are below the rounding error
_LAST_POWER = 5
#: psi(w) is log(w) - 1 / (2 w) minus the sum of c w**-2n, n = 1, 2, ... (DLMF 5.11.2)
_PSI_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)
#: the recurrence of psi is used this often, then the series
_STEPS = 8


class Jet(NamedTuple):
    """A function of the shapes, its derivatives in the first and last of ``of``, and in both."""

    value: Any
    first: Any
    last: Any
    both: Any

    def times(self, other: Jet) -> Jet:
        """The product of two functions."""
        return Jet(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.last * other.value + self.value * other.last,
            self.both * other.value
            + (self.first * other.last + self.last * other.first)
            + self.value * other.both,
        )

    def of(self, shapes: tuple[int, ...]) -> Any:
        """The derivative in one shape or two."""
        return self.both if len(shapes) == 2 else self.first


def of_gamma(m: Any, of: tuple[int, ...], k: Any, x: Any) -> Any:
    """A derivative of gammainc(k, x) in k, for k > 0 and 0 < x <= `NEAR`.

    gammainc(k, x) is ``x**k / gamma(k + 1)`` times the sum of ``(-x)**n / n! k / (k + n)``.
    """
    terms = [1.0]
    for n in range(1, _LAST_POWER + 1):
        terms.append(terms[-1] * x / -n)
    series = Jet(*(_sum_of_shares(terms, k, order) for order in (0, 1, 1, 2)))
    slope = m.log(x) - m.psi(k + 1)
    power = Jet(1.0, slope, slope, slope * slope - m.tri_gamma(k + 1))
    factor = m.exp(k * m.log(x) - m.gammaln(k + 1))
    return factor * power.times(series).of(of)


def of_beta(m: Any, of: tuple[int, ...], a: Any, b: Any, x: Any) -> Any:
    """A derivative of betainc(a, b, x), for a, b > 0, 0 < x <= `NEAR` and b x <= `NEAR`.

    betainc(a, b, x) is ``x**a / (a beta(a, b))`` times the sum of ``t[n] a / (a + n)``, where t[n]
    is ``(1 - b) ... (n - b) / n! x**n``.  The first factor is ``b / (a + b)`` times a function
    whose logarithm has moderate derivatives: next to 0 the shapes cancel in the former only.
    """
    i, j = of[0], of[-1]
    terms = _terms_of_beta(b, x)
    # t[n] depends on b alone, and the other factor of a term on a alone
    series = Jet(
        *(
            _sum_of_shares(terms[sum(shapes)], a, len(shapes) - sum(shapes))
            for shapes in ((), (i,), (j,), (i, j))
        )
    )
    product = _share_of_b(a, b, i, j).times(_smooth(m, a, b, x, i, j)).times(series)
    return m.exp(a * m.log(x) - m.betaln(a, b)) / a * product.of(of)


def _sum_of_shares(terms: list[Any], k: Any, order: int) -> Any:
    """The sum of ``terms[n] k / (k + n)``, differentiated in k as often as ``order`` says."""
    total = terms[0] if order == 0 else 0.0
    for n, term in enumerate(terms[1:], 1):
        share = (k, n / (k + n), -2 * n / (k + n) ** 2)[order] / (k + n)
        total = total + term * share
    return total


def _terms_of_beta(b: Any, x: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """``(1 - b) ... (n - b) / n! x**n`` for each n, and the first and second derivatives in b."""
    values, slopes, bends = [1.0], [0.0], [0.0]
    for n in range(1, _LAST_POWER + 1):
        step = x / n
        ratio = (n - b) * step
        bends.append(bends[-1] * ratio - 2 * slopes[-1] * step)
        slopes.append(slopes[-1] * ratio - values[-1] * step)
        values.append(values[-1] * ratio)
    return values, slopes, bends


def _share_of_b(a: Any, b: Any, i: int, j: int) -> Jet:
    """``b / (a + b)`` and its derivatives, divided by the value."""
    inverse = 1 / (a + b)
    first = (-inverse, a / b * inverse)
    second = (2 * inverse, (1 - a / b) * inverse, -2 * (a / b) * inverse)
    return Jet(1.0, first[i], first[j], second[i + j] * inverse)


def _smooth(m: Any, a: Any, b: Any, x: Any, i: int, j: int) -> Jet:
    """``x**a gamma(a + b + 1) / (gamma(a + 1) gamma(b + 1))`` likewise."""
    in_psi, in_tri_gamma = _increments(m, b + 1, a)
    first = (m.log(x) + (m.psi(a + b + 1) - m.psi(a + 1)), in_psi)
    mixed = m.tri_gamma(a + b + 1)
    second = (mixed - m.tri_gamma(a + 1), mixed, in_tri_gamma)
    return Jet(1.0, first[i], first[j], first[i] * first[j] + second[i + j])


def _increments(m: Any, z: Any, h: Any) -> tuple[Any, Any]:
    """``psi(z + h) - psi(z)`` and the same of its derivative, for z >= 1, accurate for small h."""
    in_psi = in_tri_gamma = 0.0
    for n in range(_STEPS):
        inverse, moved = 1 / (z + n), 1 / (z + h + n)
        fall = h * inverse * moved
        in_psi = in_psi + fall
        in_tri_gamma = in_tri_gamma - fall * (inverse + moved)
    w = z + _STEPS
    growth = m.log1p(h / w)

    def power(p: int) -> Any:
        return m.exp(-p * m.log(w)) * m.expm1(-p * growth)

    in_psi = in_psi + growth - power(1) / 2
    in_tri_gamma = in_tri_gamma + power(1) + power(2) / 2
    for n, c in enumerate(_PSI_SERIES, 1):
        in_psi = in_psi - c * power(2 * n)
        in_tri_gamma = in_tri_gamma + 2 * n * c * power(2 * n + 1)
    return in_psi, in_tri_gamma
