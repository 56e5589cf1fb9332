"""Fit the polynomials of ``phintys/backends/llvm/vecmath/coefficients.py`` and write that module.

    python benchmarks/vecmath_fit.py

Each polynomial minimises the greatest weighted error on an interval (Remez's exchange over a grid
of Chebyshev points, 60 digits), then its coefficients are rounded to the dtype.  The number of
coefficients is the smallest whose error stays below the goal of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60
TARGET = Path(__file__).parents[1] / "phintys/backends/llvm/vecmath/coefficients.py"
GRID = 600
Real = Callable[[mp.mpf], mp.mpf]


def _cubic_remainder(function: Real, lead: int) -> Real:
    """(function(r)/r - 1)/r**2 in terms of z = r*r, with the limit ``lead``/6 at 0."""

    def g(z: mp.mpf) -> mp.mpf:
        r = mp.sqrt(z)
        return (function(r) / r - 1) / z if z else mp.mpf(lead) / 6

    return g


def _atanh_tail(factor: int, first: int) -> Real:
    """The series of factor*atanh(s)/s in z = s*s from the term ``first`` on."""

    def g(z: mp.mpf) -> mp.mpf:
        if not z:
            return mp.mpf(factor) / (2 * first + 1)
        head = mp.fsum(z**k / (2 * k + 1) for k in range(first))
        return factor * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - head) / z**first

    return g


def _exp_tail(r: mp.mpf) -> mp.mpf:
    return (mp.expm1(r) - r) / r**2 if r else mp.mpf(1) / 2


def _exp2_tail(r: mp.mpf) -> mp.mpf:
    return mp.expm1(r * mp.log(2)) / r if r else mp.log(2)


def _cos_tail(z: mp.mpf) -> mp.mpf:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z else mp.mpf(1) / 24


def _cosh_quotient(z: mp.mpf) -> mp.mpf:
    return (mp.cosh(mp.sqrt(z)) - 1) / z if z else mp.mpf(1) / 2


def _erf_tail(z: mp.mpf) -> mp.mpf:
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1 if z else 2 / mp.sqrt(mp.pi) - 1


def _scaled_erfc(t: mp.mpf) -> mp.mpf:
    x = 3 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _scaled_erfc_slope(t: mp.mpf) -> mp.mpf:
    return (_scaled_erfc(t) - _scaled_erfc(mp.mpf(0))) / t


def _log2_quotient(z: mp.mpf) -> mp.mpf:
    s = mp.sqrt(z)
    return 2 * mp.atanh(s) / s / mp.log(2) if z else 2 / mp.log(2)


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0001")
LOG_Z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.001")
TRIG_Z = (mp.pi / 4) ** 2 * mp.mpf("1.0001")
ONE = mp.mpf(1)

#: name, doc, function, weight (share of the result that the polynomial makes up), interval.
ROWS: list[tuple[str, str, Real, Real, tuple[mp.mpf, mp.mpf]]] = [
    ("exp", "(e**r - 1 - r)/r**2", _exp_tail, lambda r: r * r, (-HALF_LN2, HALF_LN2)),
    ("exp2", "(2**r - 1)/r", _exp2_tail, lambda r: abs(r), (-ONE / 2, ONE / 2)),
    ("log", "(2 atanh(s)/s - 2)/z", _atanh_tail(2, 1), lambda z: z / 2, (mp.mpf(0), LOG_Z)),
    ("log1p_unit", "the same for 0 <= f <= 1", _atanh_tail(2, 1), lambda z: z / 2,
     (mp.mpf(0), ONE / 9)),
    ("tanh", "(tanh(r)/r - 1)/z", _cubic_remainder(mp.tanh, -2), lambda z: z,
     (mp.mpf(0), mp.mpf("0.3026"))),
    ("erf", "erf(r)/r - 1", _erf_tail, lambda z: ONE, (mp.mpf(0), ONE)),
    ("erf_far", "-log(1 - erf(1 + t))", lambda t: -mp.log(mp.erfc(1 + t)),
     lambda t: mp.erfc(1 + t), (mp.mpf(0), mp.mpf(5))),
    ("sin", "(sin(r)/r - 1)/z", _cubic_remainder(mp.sin, -1), lambda z: z, (mp.mpf(0), TRIG_Z)),
    ("cos", "(cos(r) - 1 + z/2)/z**2", _cos_tail, lambda z: z * z, (mp.mpf(0), TRIG_Z)),
    ("tan", "(tan(r)/r - 1)/z", _cubic_remainder(mp.tan, 2), lambda z: z, (mp.mpf(0), TRIG_Z)),
    ("atanh3", "(3 atanh(s)/s - 3 - z)/z**2", _atanh_tail(3, 2), lambda z: z * z / 3,
     (mp.mpf(0), LOG_Z)),
    ("log2", "2 atanh(s)/(s log(2))", _log2_quotient, lambda z: ONE / 3, (mp.mpf(0), LOG_Z)),
    ("sinh", "(sinh(r)/r - 1)/z", _cubic_remainder(mp.sinh, 1), lambda z: z,
     (mp.mpf(0), HALF_LN2**2)),
    ("cosh", "(cosh(r) - 1)/z", _cosh_quotient, lambda z: z, (mp.mpf(0), HALF_LN2**2)),
    ("atanh", "(atanh(s)/s - 1)/z", _cubic_remainder(mp.atanh, 2), lambda z: z,
     (mp.mpf(0), mp.mpf("0.273") ** 2)),
    ("asin", "(asin(r)/r - 1)/z", _cubic_remainder(mp.asin, 1), lambda z: z, (mp.mpf(0), ONE / 4)),
    ("atan", "(atan(r)/r - 1)/z", _cubic_remainder(mp.atan, -2), lambda z: z, (mp.mpf(0), ONE)),
    ("erfc", "((1 + 2x) erfcx(x) - 7 erfcx(3))/t, t = (x - 3)/(x + 3)", _scaled_erfc_slope,
     lambda t: abs(t) / _scaled_erfc(t), (mp.mpf("-0.604"), mp.mpf("0.805"))),
    ("cbrt", "cbrt(1 + f)", lambda f: mp.cbrt(1 + f), lambda f: 1 / mp.cbrt(1 + f),
     (mp.sqrt(2) / 2 - 1, mp.sqrt(2) - 1)),
]  # fmt: skip

#: Relative error (of the function's result) that a table may add; ``narrow`` serves functions of
#: float32 that compute in float64.
GOALS = {"float64": mp.mpf(2) ** -56, "float32": mp.mpf(2) ** -28, "narrow": mp.mpf(2) ** -34}
KINDS = {
    "atanh3": ("float64",), "cbrt": ("float64",), "erfc": ("float64",), "log2": ("narrow",),
    "sin": ("float64", "narrow"), "cos": ("float64", "narrow"), "tan": ("float64", "narrow"),
    "exp2": ("float64", "float32", "narrow"),
}  # fmt: skip
#: Shorter intervals of a less precise kind.
SPANS = {("erf_far", "float32"): (mp.mpf(0), mp.mpf(3))}
#: The logarithm inside pow is more precise; the cube root has only to be good for one step.
OTHER_GOALS = {"atanh3": mp.mpf(2) ** -68, "cbrt": mp.mpf(2) ** -18}


def remez(
    g: Real, weight: Real, interval: tuple[mp.mpf, mp.mpf], count: int
) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients (constant first) of the best polynomial, and its weighted error."""
    low, high = interval
    cosines = [mp.cos(mp.pi * (2 * i + 1) / (2 * GRID)) for i in range(GRID)]
    xs = sorted((low + high) / 2 + (high - low) / 2 * c for c in cosines)
    gs, ws = [g(x) for x in xs], [weight(x) for x in xs]
    nodes = [round(i * (GRID - 1) / count) for i in range(count + 1)]
    for _ in range(12):
        rows = [
            [xs[i] ** j for j in range(count)] + [(-1) ** n / max(ws[i], mp.mpf(10) ** -30)]
            for n, i in enumerate(nodes)
        ]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([gs[i] for i in nodes]))
        poly = [solution[j] for j in range(count)]
        errors = [w * (mp.polyval(poly[::-1], x) - y) for x, y, w in zip(xs, gs, ws)]
        fresh = _alternation(errors, count + 1)
        if fresh is None or fresh == nodes:
            break
        nodes = fresh
    return poly, max(abs(e) for e in errors)


def _alternation(errors: list[mp.mpf], wanted: int) -> list[int] | None:
    """Indices of the extrema of alternating sign, trimmed at the weaker end to ``wanted``."""
    peaks: list[int] = []
    for i, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > wanted:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks if len(peaks) == wanted else None


def fit(name: str, g: Real, weight: Real, interval, kind: str) -> tuple[list[float], mp.mpf]:
    goal = OTHER_GOALS.get(name, GOALS[kind])
    for count in range(3, 24):
        poly, error = remez(g, weight, interval, count)
        if error <= goal:
            rounded = np.array([float(c) for c in poly])
            return [float(c) for c in rounded.astype("f4" if kind == "float32" else "f8")], error
    raise ArithmeticError(f"no polynomial for {name}, {kind}")


SPLIT_HEAD = "PARTS: dict[tuple[str, str], tuple[float, ...]] = {"
#: name, kind -> value, bits of each part before the last one (which has all it can hold).
SPLITS = {
    ("ln2", "float64"): (mp.log(2), (42,)),
    ("ln2", "float32"): (mp.log(2), (15,)),
    ("half_pi", "float64"): (mp.pi / 2, (38, 38)),
    ("half_pi", "narrow"): (mp.pi / 2, (33,)),
    ("log2_e", "float64"): (1 / mp.log(2), (32,)),
    ("log10_e", "float64"): (1 / mp.log(10), (32,)),
    ("log10_2", "float64"): (mp.log10(2), (42,)),
    ("two_thirds_log2_e", "float64"): (2 / (3 * mp.log(2)), (21,)),
    ("ln2_pow", "float64"): (mp.log(2), (21,)),
    ("seven_erfcx_3", "float64"): (_scaled_erfc(mp.mpf(0)), (53,)),
    ("quarter_turn", "float64"): (mp.pi / 2, (53,)),
    ("quarter_turn", "float32"): (mp.pi / 2, (24,)),
}


def split(value: mp.mpf, bits: tuple[int, ...], kind: str) -> tuple[float, ...]:
    """``value`` as parts truncated to ``bits`` bits and a rounded rest."""
    parts = []
    for count in bits:
        unit = mp.mpf(2) ** (mp.floor(mp.log(value, 2)) + 1 - count)
        parts.append(float(mp.floor(value / unit) * unit))
        value -= parts[-1]
    last = np.float32(float(value)) if kind == "float32" else float(value)
    return (*parts, float(last))


def main() -> None:
    lines = [
        '"""Polynomial coefficients of `vecmath`, constant first; written by a fit, not by hand.',
        "",
        "``benchmarks/vecmath_fit.py`` holds the functions, intervals and goals and writes this",
        "module.  Keys: (polynomial, precision); ``narrow`` is for float32 computed in float64.",
        "Every name but ``exp``, ``exp2``, ``erf_far``, ``erfc`` and ``cbrt`` is a polynomial in",
        "z, the square of the reduced argument.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "COEFFICIENTS: dict[tuple[str, str], tuple[float, ...]] = {",
    ]
    for name, doc, g, weight, interval in ROWS:
        for kind in KINDS.get(name, ("float64", "float32")):
            ends = SPANS.get((name, kind), interval)
            coefficients, error = fit(name, g, weight, ends, kind)
            bound = f"error 2**{float(mp.log(error, 2)):.1f}"
            span = f"[{float(ends[0]):.4g}, {float(ends[1]):.4g}]"
            lines.append(f"    # {doc} on {span}, {bound}")
            lines.append(f'    ("{name}", "{kind}"): (')
            lines += [f"        {c!r}," for c in coefficients]
            lines.append("    ),")
            print(name, kind, len(coefficients), bound)
    lines += ["}", "", "#: Constants as sums of floats; all but the last have few bits, so that"]
    lines += [
        "#: their product with a small integer (or a float of few bits) is exact.",
        SPLIT_HEAD,
    ]
    for (name, kind), (value, bits) in SPLITS.items():
        lines.append(f'    ("{name}", "{kind}"): {split(value, bits, kind)!r},')
    TARGET.write_text("\n".join([*lines, "}", ""]))


if __name__ == "__main__":
    main()
