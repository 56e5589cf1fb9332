"""Fit the polynomials of ``vecmath``'s gamma_coefficients and special_coefficients; write these.

    python benchmarks/special_fit.py [polynomial ...]

With names, only these are fitted; the others remain as they are in the modules.
Like ``vecmath_fit.py``, whose exchange algorithm it uses, for the gamma function and its
relatives, the normal distribution and the Bessel functions.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import mpmath as mp
from vecmath_fit import GOALS, TARGET, remez, split

Real = Callable[[mp.mpf], mp.mpf]
mp.mp.dps = 60
ONE = mp.mpf(1)
LEAST = mp.mpf(10) ** -15  # nearer to 0 than this, a limit is computed at this distance


class Row(NamedTuple):
    """A polynomial: what it approximates, the share of the result that it makes up, where."""

    name: str
    doc: str
    function: Real
    weight: Real
    low: mp.mpf
    high: mp.mpf


def _apart(function: Real) -> Real:
    """``function`` where it can be evaluated: not at 0 itself."""
    return lambda x: function(x if abs(x) > LEAST else LEAST)


# ------------------------------------------------------------------------ gamma function

FAR = mp.mpf(3)  # from here on, asymptotic series; for trigamma from 2 on
SLOPE = 1 - mp.euler  # of gammaln at 2
PI_CUBE = mp.pi**3 / 6
STIRLING = mp.log(2 * mp.pi) / 2 - ONE / 2
with mp.workdps(80):
    PSI_ROOT = mp.findroot(mp.digamma, mp.mpf("1.4616321449683623"))
    PSI_SLOPE = mp.psi(1, PSI_ROOT)


def _gammaln(t: mp.mpf) -> mp.mpf:
    return (mp.loggamma(2 + t) / t - SLOPE) / t


def _gammaln_share(t: mp.mpf) -> mp.mpf:
    """Below 1.375, log(1 + t) is subtracted: the result is at least 0.86."""
    result = abs(mp.loggamma(2 + t)) if t > mp.mpf("-0.625") else mp.mpf("0.86")
    return t * t / result if t else abs(t)


def _gammaln_far(z: mp.mpf) -> mp.mpf:
    x = 1 / mp.sqrt(z)
    with mp.workdps(110):
        return x * (mp.loggamma(x) - (x - ONE / 2) * (mp.log(x) - 1) - STIRLING_EXACT)


with mp.workdps(120):
    STIRLING_EXACT = mp.log(2 * mp.pi) / 2 - ONE / 2


def _psi(d: mp.mpf) -> mp.mpf:
    return (mp.digamma(PSI_ROOT + d) / d - PSI_SLOPE) / d


def _psi_far(z: mp.mpf) -> mp.mpf:
    x = 1 / mp.sqrt(z)
    with mp.workdps(110):
        return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) * x * x


def _trigamma_far(z: mp.mpf) -> mp.mpf:
    x = 1 / mp.sqrt(z)
    with mp.workdps(110):
        return (mp.psi(1, x) - 1 / x - 1 / (2 * x * x)) * x**3


def _sinpi(z: mp.mpf) -> mp.mpf:
    return mp.sinpi(mp.sqrt(z)) / mp.sqrt(z)


def _sinpi_rest(z: mp.mpf) -> mp.mpf:
    """What follows the first two terms of the series, divided by z**2."""
    return (_sinpi(z) - mp.pi + PI_CUBE * z) / z**2


def _cotpi(z: mp.mpf) -> mp.mpf:
    r = mp.sqrt(z)
    return (mp.pi * r * mp.cospi(r) / mp.sinpi(r) - 1) / z


# ------------------------------------------------------------------- normal distribution


def _erfcx(t: mp.mpf) -> mp.mpf:
    x = 3 * (1 + t) / (1 - t)
    if x > 10**4:  # DLMF 7.12.1
        terms = (mp.rf(ONE / 2, k) * (-1) ** k / x ** (2 * k) for k in range(12))
        return (1 + 2 * x) / (x * mp.sqrt(mp.pi)) * mp.fsum(terms)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _erfcx_slope(t: mp.mpf) -> mp.mpf:
    return (_erfcx(t) - _erfcx(mp.mpf(0))) / t


def _quantile_mid(z: mp.mpf) -> mp.mpf:
    y = mp.sqrt(z)
    return (mp.sqrt(2) * mp.erfinv(2 * y) / y - mp.sqrt(2 * mp.pi)) / z


def _erfinv_mid(z: mp.mpf) -> mp.mpf:
    return (mp.erfinv(mp.sqrt(z)) / mp.sqrt(z) - mp.sqrt(mp.pi) / 2) / z


def _erfcinv(p: mp.mpf) -> mp.mpf:
    """The inverse of erfc at a small p, by Newton's method on its logarithm."""
    x = mp.sqrt(-mp.log(p))
    for _ in range(60):
        value = mp.erfc(x)
        step = (mp.log(value) - mp.log(p)) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.mpf(10) ** -50:
            return x
    raise ArithmeticError(f"erfcinv of {p}")


TAIL = mp.mpf(7) / 2  # the r that the variable (r - TAIL) / (r + TAIL) maps to 0


def _radius(t: mp.mpf) -> mp.mpf:
    return TAIL * (1 + t) / (1 - t)


def _place(r: float) -> mp.mpf:
    return (mp.mpf(r) - TAIL) / (mp.mpf(r) + TAIL)


def _quantile_far(t: mp.mpf) -> mp.mpf:
    r = _radius(t)
    return mp.sqrt(2) * _erfcinv(2 * mp.exp(-r * r)) / r


def _erfcinv_far(t: mp.mpf) -> mp.mpf:
    r = _radius(t)
    return _erfcinv(mp.exp(-r * r)) / r


# ------------------------------------------------------------------------ Bessel functions


SMALL, MIDDLE, SPLIT = mp.mpf("0.8"), mp.mpf("2.75"), mp.mpf(5)


def _bessel(order: int) -> Real:
    return lambda x: mp.besseli(order, x) * mp.exp(-x)


def _bessel_small(order: int) -> Real:
    """(1 - exp(-x) i0(x))/x, or (1/2 - exp(-x) i1(x)/x)/x."""
    return lambda x: (ONE / (1 + order) - _bessel(order)(x) / x**order) / x


def _bessel_far(order: int) -> Real:
    """sqrt(x) exp(-x) I(x) with t = 2 split / x - 1."""

    def f(t: mp.mpf) -> mp.mpf:
        x = 2 * SPLIT / (t + 1)
        if x > 400:  # DLMF 10.40.1
            mu = 4 * order**2
            term, total = ONE, ONE
            for k in range(1, 40):
                term *= -mp.mpf(mu - (2 * k - 1) ** 2) / (k * 8 * x)
                total += term
            return total / mp.sqrt(2 * mp.pi)
        return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)

    return f


def _relative(f: Real) -> Real:
    return lambda t: 1 / abs(f(t))


def _gamma_rows() -> list[Row]:
    far_z = mp.mpf(1 / FAR**2)
    return [
        Row("gammaln", "(gammaln(2 + t)/t - 1 + euler)/t", _apart(_gammaln),
            _gammaln_share, mp.mpf("-0.8751"), mp.mpf("0.4064")),
        Row("gamma", "gamma(2 + t)", lambda t: mp.mpf(mp.gamma(2 + t)),
            lambda t: 1 / mp.gamma(2 + t), mp.mpf("-0.8751"), mp.mpf("0.4064")),
        Row("gammaln_far", "x (gammaln(x) - (x - 1/2)(log(x) - 1) - log(2 pi)/2 + 1/2), z = 1/x**2",
            _gammaln_far, lambda z: mp.sqrt(z) / mp.loggamma(FAR), mp.mpf(0), far_z),
        Row("psi", "(psi(root + d)/d - slope)/d", _apart(_psi),
            _apart(lambda d: d * d / abs(mp.digamma(PSI_ROOT + d))),
            mp.mpf("0.9999") - PSI_ROOT, mp.mpf("2.1001") - PSI_ROOT),
        Row("psi_far", "x**2 (log(x) - 1/(2 x) - psi(x)), z = 1/x**2", _psi_far,
            lambda z: z / 2, mp.mpf(0), far_z),
        Row("trigamma_far", "x**3 (trigamma(x) - 1/x - 1/(2 x**2)), z = 1/x**2", _trigamma_far,
            lambda z: z, mp.mpf(0), ONE / 4),
        Row("sinpi", "(sin(pi r)/r - pi + z pi**3/6)/z**2, z = r**2", _apart(_sinpi_rest),
            _apart(lambda z: z * z / _sinpi(z)), mp.mpf(0), ONE / 4),
        Row("cotpi", "(pi r cot(pi r) - 1)/z, z = r**2", _apart(_cotpi), lambda z: z,
            mp.mpf(0), ONE / 4),
    ]  # fmt: skip


def _other_rows() -> list[Row]:
    return [
        Row("erfcx", "((1 + 2x) erfcx(x) - 7 erfcx(3))/t, t = (x - 3)/(x + 3)",
            _apart(_erfcx_slope), lambda t: abs(t) / _erfcx(t), -ONE, ONE),
        Row("ndtri_mid", "(ndtri(1/2 + y)/y - sqrt(2 pi))/z, z = y**2", _apart(_quantile_mid),
            lambda z: z / mp.sqrt(2 * mp.pi), mp.mpf(0), mp.mpf("0.375") ** 2),
        Row("erfinv_mid", "(erfinv(x)/x - sqrt(pi)/2)/z, z = x**2", _apart(_erfinv_mid),
            lambda z: z / mp.sqrt(mp.pi) * 2, mp.mpf(0), mp.mpf("0.75") ** 2),
        Row("ndtri_far", "-ndtri(p)/r, r = sqrt(-log(p)), t = (r - 3.5)/(r + 3.5)", _quantile_far,
            _relative(_quantile_far), _place(1.44), _place(27.4)),
        Row("erfcinv_far", "erfcinv(p)/r, r = sqrt(-log(p)), t = (r - 3.5)/(r + 3.5)", _erfcinv_far,
            _relative(_erfcinv_far), _place(0.832), _place(27.4)),
        Row("i0e_small", "(1 - exp(-x) i0(x))/x", _apart(_bessel_small(0)),
            lambda x: x / _bessel(0)(x), mp.mpf(0), SMALL),
        Row("i1e_small", "(1/2 - exp(-x) i1(x)/x)/x", _apart(_bessel_small(1)),
            _apart(lambda x: x * x / _bessel(1)(x)), mp.mpf(0), SMALL),
        *(Row(f"i{k}e_mid", f"exp(-x) i{k}(x), x = 2.75 + t", lambda t, k=k: _bessel(k)(MIDDLE + t),
              lambda t, k=k: 1 / _bessel(k)(MIDDLE + t), SMALL - MIDDLE, SPLIT - MIDDLE)
          for k in (0, 1)),
        *(Row(f"i{k}e_far", f"sqrt(x) exp(-x) i{k}(x), t = 10/x - 1", _bessel_far(k),
              _relative(_bessel_far(k)), -ONE, ONE) for k in (0, 1)),
    ]  # fmt: skip


#: The first number of coefficients to try.
FIRST = {"float64": 7, "narrow": 3}
#: Constants that become sums of two floats.
GAMMA_CONSTANTS = {
    "slope_at_2": SLOPE,
    "euler": mp.euler,
    "stirling": STIRLING_EXACT,
    "stirling_log2": STIRLING_EXACT / mp.log(2),
    "psi_root": PSI_ROOT,
    "psi_slope": PSI_SLOPE,
    "pi": mp.pi,
    "pi_cube_sixth": PI_CUBE,
    "log_pi": mp.log(mp.pi),
}
OTHER_CONSTANTS = {
    "erfcx": _erfcx(mp.mpf(0)),
    "root_2pi": mp.sqrt(2 * mp.pi),
    "half_root_pi": mp.sqrt(mp.pi) / 2,
}
#: The modules and what they hold.
MODULES = {
    TARGET.with_name("gamma_coefficients.py"): (_gamma_rows, GAMMA_CONSTANTS),
    TARGET.with_name("special_coefficients.py"): (_other_rows, OTHER_CONSTANTS),
}


#: Polynomials whose constant term is a sum of two coefficients (`Body.leading`).
TWO_PARTS = {
    "gammaln", "i0e_mid", "i1e_mid", "i0e_far", "i1e_far", "ndtri_far", "erfcinv_far",
}  # fmt: skip


def _rounded(poly: list[mp.mpf], in_two_parts: bool) -> list[float]:
    """The coefficients as floats, of the first one a part of ten bits before the rest."""
    first = split(poly[0], (10,), "float64") if in_two_parts else (float(poly[0]),)
    return [*first, *(float(c) for c in poly[1:])]


def _fit(row: Row, kind: str) -> tuple[list[float], mp.mpf]:
    function, weight = cache(row.function), cache(row.weight)
    step, count = 4, FIRST[kind]
    while count < 60:
        poly, error = remez(function, weight, (row.low, row.high), count)
        if error <= GOALS[kind]:
            if step == 1:
                return _rounded(poly, row.name in TWO_PARTS), error
            count, step = max(count - step + 1, 2), 1
        else:
            count += step
    raise ArithmeticError(f"no polynomial for {row.name}, {kind}")


def _lines(row: Row, kind: str) -> list[str]:
    coefficients, error = _fit(row, kind)
    bound = f"error 2**{float(mp.log(error, 2)):.1f}"
    print(row.name, kind, len(coefficients), bound, flush=True)
    return [
        f"    # {row.doc}",
        f"    # on [{float(row.low):.4g}, {float(row.high):.4g}], {bound}",
        f'    ("{row.name}", "{kind}"): (',
        *(f"        {c!r}," for c in coefficients),
        "    ),",
    ]


def _kept() -> dict[tuple[str, str], list[str]]:
    """The lines of the polynomials that are not to be fitted."""
    pattern = r'    # .*\n    # .*\n    \("(\w+)", "(\w+)"\): \(\n(?:        .*\n)+    \),\n'
    text = "".join(path.read_text() for path in MODULES if len(sys.argv) > 1)
    found = re.finditer(pattern, text)
    return {(m[1], m[2]): m[0].splitlines() for m in found if m[1] not in sys.argv}


def _module(rows: list[Row], constants: dict[str, mp.mpf]) -> str:
    lines = [
        '"""Polynomials of special functions, constant first; written by a fit, not by hand.',
        "",
        "``benchmarks/special_fit.py`` holds the functions and intervals and writes this module.",
        "Keys: (polynomial, precision); ``narrow`` is for float32 computed in float64.  Those that",
        "`Body.leading` or a function itself evaluates have their constant term in two parts.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "COEFFICIENTS: dict[tuple[str, str], tuple[float, ...]] = {",
    ]
    kept = _kept()
    for row in rows:
        for kind in ("float64", "narrow"):
            lines += kept.get((row.name, kind)) or _lines(row, kind)
    lines += ["}", "", "#: Constants as sums of two floats."]
    lines += ["PARTS: dict[str, tuple[float, ...]] = {"]
    for name, value in constants.items():
        bits = 20 if name == "stirling_log2" else 53
        lines.append(f'    "{name}": {split(value, (bits,), "float64")!r},')
    return "\n".join([*lines, "}", ""])


def main() -> None:
    for path, (rows, constants) in MODULES.items():
        path.write_text(_module(rows(), constants))


if __name__ == "__main__":
    main()
