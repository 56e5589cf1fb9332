"""Numbers with exact derivatives: Taylor series in mpmath, of which truths are made.

A truth is a function ``(mp, *inputs)`` whose first argument is this module.  Its inputs are
`Series`: the number, and what multiplies products of at most three small changes of inputs.
Products of changes of three different inputs are left out, because no derivative of a Hessian's
diagonal needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache

import mpmath
from mpmath import mpf, pi

#: a product of changes: the sorted numbers of the inputs
Monomial = tuple[int, ...]
Number = "Series | float | mpf"
inf = mpf("inf")
#: beyond it, exp is 0 or infinity: no double is near
LARGEST_EXPONENT = mpf(10) ** 100


class Series:
    """A number and its derivatives up to the third, as a polynomial in changes of inputs."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, mpf]) -> None:
        self.terms = terms

    @property
    def constant(self) -> mpf:
        return self.terms.get((), mpf(0))

    def __add__(self, other: Number) -> Series:
        terms = dict(self.terms)
        for monomial, factor in series(other).terms.items():
            terms[monomial] = terms[monomial] + factor if monomial in terms else factor
        return Series(terms)

    def __mul__(self, other: Number) -> Series:
        terms: dict[Monomial, mpf] = {}
        right = series(other).terms.items()
        for left, a in self.terms.items():
            for monomial, b in right:
                product = times(left, monomial)
                if product in terms:
                    terms[product] += a * b
                elif product is not None:
                    terms[product] = a * b
        return Series(terms)

    def __pow__(self, power: Number) -> Series:
        if isinstance(power, int) and power >= 0:
            return math.prod([self] * power, start=series(1))
        if isinstance(power, Series):
            return exp(power * log(self))
        return composed(self, lambda c: [falling(power, k) * c ** (power - k) for k in range(4)])

    def __neg__(self) -> Series:
        return Series({monomial: -a for monomial, a in self.terms.items()})

    def __sub__(self, other: Number) -> Series:
        return self + -series(other)

    def __rsub__(self, other: Number) -> Series:
        return -self + other

    def __truediv__(self, other: Number) -> Series:
        return self * series(other) ** -1

    def __rtruediv__(self, other: Number) -> Series:
        return self**-1 * other

    def __rpow__(self, base: Number) -> Series:
        return series(base) ** self

    __radd__ = __add__
    __rmul__ = __mul__

    def __lt__(self, other: Number) -> bool:
        return self.constant < series(other).constant

    def __gt__(self, other: Number) -> bool:
        return self.constant > series(other).constant

    def __le__(self, other: Number) -> bool:
        return self.constant <= series(other).constant

    def __ge__(self, other: Number) -> bool:
        return self.constant >= series(other).constant


@cache
def times(left: Monomial, right: Monomial) -> Monomial | None:
    """The product of two monomials; None if it is left out."""
    product = tuple(sorted(left + right))
    return None if len(product) > 3 or len(set(product)) > 2 else product


def series(x: Number) -> Series:
    """A number as a series that does not change."""
    return x if isinstance(x, Series) else Series({(): mpf(x)})


def variable(number: int, value: float) -> Series:
    """The input of this number, at this value."""
    return Series({(): mpf(value), (number,): mpf(1)})


def falling(power: float, k: int) -> mpf:
    """``power * (power - 1) * ...``, k factors."""
    result = mpf(1)
    for j in range(k):
        result *= power - j
    return result


def composed(x: Series, derivatives: Callable[[mpf], list[mpf]]) -> Series:
    """f(x), of a function that gives the value of f and its first three derivatives."""
    value, *slopes = derivatives(x.constant)
    change = Series({m: a for m, a in x.terms.items() if m and a != 0})
    if not change.terms:
        return series(value)
    result = change * (slopes[2] / 6) + slopes[1] / 2
    result = change * result + slopes[0]
    return change * result + value


def exp(x: Number) -> Series:
    def derivatives(c: mpf) -> list[mpf]:
        if abs(c) > LARGEST_EXPONENT:
            return [inf if c > 0 else mpf(0)] * 4
        return [mpmath.exp(c)] * 4

    return composed(series(x), derivatives)


def log(x: Number) -> Series:
    """The logarithm.

    Raises
    ------
    ZeroDivisionError
        at 0: the digits of its argument have cancelled
    """

    def derivatives(c: mpf) -> list[mpf]:
        slope = 1 / c
        return [mpmath.log(c), slope, -(slope**2), 2 * slope**3]

    return composed(series(x), derivatives)


def sqrt(x: Number) -> Series:
    return series(x) ** mpf("0.5")


def log1p(x: Number) -> Series:
    def derivatives(c: mpf) -> list[mpf]:
        slope = 1 / (1 + c)
        return [mpmath.log1p(c), slope, -(slope**2), 2 * slope**3]

    return composed(series(x), derivatives)


def expm1(x: Number) -> Series:
    x = series(x)
    return (
        Series(exp(x).terms | {(): mpmath.expm1(x.constant)}) if abs(x.constant) < 1 else exp(x) - 1
    )


def sin(x: Number) -> Series:
    def derivatives(c: mpf) -> list[mpf]:
        s, k = mpmath.sin(c), mpmath.cos(c)
        return [s, k, -s, -k]

    return composed(series(x), derivatives)


def cos(x: Number) -> Series:
    return sin(pi / 2 - series(x))


def cosh(x: Number) -> Series:
    return (exp(x) + exp(-series(x))) / 2


def absolute(x: Number) -> Series:
    """The absolute value, which has no derivatives at 0."""

    def derivatives(c: mpf) -> list[mpf]:
        return [abs(c), mpmath.sign(c) if c else mpmath.nan, *[mpf(0) if c else mpmath.nan] * 2]

    return composed(series(x), derivatives)


def sigmoid(x: Number) -> Series:
    return 1 / (1 + exp(-series(x)))


def softplus(x: Number) -> Series:
    """log(1 + exp(x)); no digits are lost for large x."""
    x = series(x)
    return x + log1p(exp(-x)) if x > 0 else log1p(exp(x))


def log1mexp(x: Number) -> Series:
    """log(1 - exp(x)) of negative x."""
    x = series(x)
    return log1p(-exp(x)) if x < -1 else log(-expm1(x))


def logsumexp(*xs: Number) -> Series:
    largest, *others = sorted(map(series, xs), key=lambda t: -t.constant)
    return largest + log1p(total(exp(t - largest) for t in others))


def total(xs: Iterable[Number]) -> Series:
    result = series(0)
    for x in xs:
        result = result + x
    return result


def lgamma(x: Number) -> Series:
    def derivatives(c: mpf) -> list[mpf]:
        return [mpmath.loggamma(c), *(mpmath.psi(k, c) for k in range(3))]

    return composed(series(x), derivatives)


def betaln(a: Number, b: Number) -> Series:
    return lgamma(a) + lgamma(b) - lgamma(series(a) + b)


def log_choose(n: Number, k: Number) -> Series:
    """The logarithm of a binomial coefficient."""
    n = series(n)
    return lgamma(n + 1) - lgamma(series(k) + 1) - lgamma(n - k + 1)


def erfc(x: Number) -> Series:
    def derivatives(c: mpf) -> list[mpf]:
        slope = -2 / mpmath.sqrt(pi) * mpmath.exp(-(c**2))
        return [mpmath.erfc(c), slope, -2 * c * slope, (4 * c**2 - 2) * slope]

    return composed(series(x), derivatives)


def log_ndtr(x: Number) -> Series:
    """The logarithm of the standard normal distribution function."""
    z = series(x) / mpmath.sqrt(2)
    return log1p(-erfc(z) / 2) if z > 0 else log(erfc(-z) / 2)


def ndtri(u: Number) -> Series:
    """The standard normal number at a probability."""

    def derivatives(c: mpf) -> list[mpf]:
        z = mpmath.sqrt(2) * mpmath.erfinv(2 * c - 1)
        density = mpmath.npdf(z)
        return [z, 1 / density, z / density**2, (1 + 2 * z**2) / density**3]

    return composed(series(u), derivatives)


def log_normal(z: Number) -> Series:
    """The logarithm of the standard normal density."""
    return -(series(z) ** 2) / 2 - log(2 * pi) / 2


def log_i0(z: Number) -> Series:
    """The logarithm of the modified Bessel function of order 0; the ratio r = I1/I0 has the
    derivative 1 - r/z - r**2 (https://dlmf.nist.gov/10.29)."""

    def derivatives(c: mpf) -> list[mpf]:
        if c == 0:
            return [mpf(0), mpf(0), mpf("0.5"), mpf(0)]
        i0 = mpmath.besseli(0, c)
        r = mpmath.besseli(1, c) / i0
        slope = 1 - r / c - r**2
        return [mpmath.log(i0), r, slope, -slope / c + r / c**2 - 2 * r * slope]

    return composed(series(z), derivatives)


def asinh(x: Number) -> Series:
    def derivatives(c: mpf) -> list[mpf]:
        root = mpmath.sqrt(1 + c**2)
        return [mpmath.asinh(c), 1 / root, -c / root**3, (2 * c**2 - 1) / root**5]

    return composed(series(x), derivatives)
