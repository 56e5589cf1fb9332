"""The special functions of `vecmath`: errors against mpmath, special values against SciPy.

The table of ``benchmarks/accuracy.py`` holds the points where errors are greatest.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_functions import WIDTHS, C, native
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.backends.llvm.vecmath import CALLED, define, requirements, symbol

pytest.importorskip("mpmath")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
accuracy = importlib.import_module("accuracy")
sys.path.pop(0)

NAMES = sorted(CALLED)
LANES = {"float64": 4, "float32": 8}
#: Greatest error in float64 (in float32, which is computed in float64, it is 0.6); in ulps of 1
#: where the result is smaller for betaln and, of gammaln and psi, for arguments below 0.
BOUND = 2.0
WITHOUT_FMA = 3.0  # corrections of products and quotients are lost
BELOW_WITHOUT_FMA = 6.0  # of functions with poles, for arguments below 0
#: of points in each range; those of the second one are the rest
COUNTS = pytest.mark.parametrize("count", few([30, 120], 30))


@cache
def sample(name: str, dtype: str, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Arguments, in float64 with those of the table, and exact results."""
    args = accuracy.arguments(name, dtype, count)
    exact = accuracy.exact_values(name, args)
    if dtype == "float32":
        return args, exact
    hard, values = accuracy.hard_points(name)
    args = [np.concatenate(pair) for pair in zip(args, hard, strict=True)]
    return args, np.concatenate([exact, values], axis=1)


def check_error(name: str, dtype: str, count: int, wide: np.ndarray, fuses: bool) -> None:
    args, exact = sample(name, dtype, count)
    found, x = accuracy.errors(name, args, wide, exact), args[0]
    bound = 0.6 if dtype == "float32" else BOUND if fuses else WITHOUT_FMA
    assert found[x > 0].max() <= bound, (dtype, [a[np.argmax(found)] for a in args])
    below = bound if fuses else max(bound, BELOW_WITHOUT_FMA)
    assert found.max() <= below, (dtype, [a[np.argmax(found)] for a in args])


@COUNTS
@pytest.mark.parametrize("name", NAMES)
def test_error(name: str, count: int) -> None:
    for dtype, width in LANES.items():
        args, _ = sample(name, dtype, count)
        compiled = accuracy.Compiled(name, dtype, width)
        wide = compiled(*args)
        np.testing.assert_array_equal(accuracy.Compiled(name, dtype, 1)(*args), wide)
        check_error(name, dtype, count, wide, compiled.fuses)


@COUNTS
@pytest.mark.parametrize("name", NAMES)
def test_error_without_a_fused_multiply_add(name: str, count: int) -> None:
    if not accuracy.Compiled(name, "float64", 1).is_x86:
        pytest.skip("describes an x86-64 machine")
    compiled = accuracy.Compiled(name, "float64", 4, "x86-64", "+sse2")
    args, _ = sample(name, "float64", count)
    check_error(name, "float64", count, compiled(*args), False)


@pytest.mark.parametrize("name", accuracy.NAMES)
def test_table_of_hard_points_is_exact(name: str) -> None:
    args, (heads, tails) = accuracy.hard_points(name)
    expected = accuracy.exact_values(name, args)
    np.testing.assert_array_equal(heads, expected[0])
    np.testing.assert_allclose(tails, expected[1], rtol=1e-6, atol=1e-6 * np.abs(tails).max())


@pytest.mark.parametrize(("mode", "settings"), [*WIDTHS, C])
def test_hard_points(mode: str, settings: dict[str, Any]) -> None:
    """In whole vectors and in remainders; the functions that C calls are those of SciPy."""
    fuses = accuracy.Compiled("gamma", "float64", 1).fuses
    for name in accuracy.NAMES:
        args, exact = (np.tile(v, 3) for v in accuracy.hard_points(name))
        inputs = [pt.dvector() for _ in args]
        output = getattr(pt, "tri_gamma" if name == "trigamma" else name)(*inputs)
        found = native(inputs, output, mode, settings)(*args)
        if mode == "C" and name in CALLED:
            np.testing.assert_allclose(found, accuracy.by_scipy(name, *args), rtol=1e-13)
        else:
            error = accuracy.errors(name, args, found, exact)
            bound = BOUND if fuses else BELOW_WITHOUT_FMA
            assert error.max() <= bound, (name, [a[np.argmax(error)] for a in args])


def specials(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    ends = [info.max, info.max / 3, info.smallest_normal, info.smallest_subnormal, 4 / info.eps]
    plain = [0, 1e-20, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 8, 10, 27, 30, 37, 39, 100, 1e5, np.inf]
    x = np.array([*plain, *ends, 1 - info.epsneg / 2, 0.625, 26.7, 2.0**31 + 0.5], dtype)
    return np.concatenate([x, -x, np.array([np.nan], dtype)])


@pytest.mark.parametrize("name", sorted(CALLED - {"betaln"}))
def test_special_values(name: str) -> None:
    """Also NaN and infinities beside ordinary numbers, and the poles."""
    for dtype, width in LANES.items():
        x = specials(dtype)
        found = accuracy.Compiled(name, dtype, width)(x)
        with np.errstate(all="ignore"):
            expected = accuracy.by_scipy(name, x.astype("float64")).astype(dtype)
        if dtype == "float64":  # where SciPy's is infinite
            least = np.abs(x) == np.finfo(dtype).smallest_subnormal
            expected = np.where(least & (name in ("gammaln", "erfcinv")), found, expected)
        info = np.finfo(dtype)
        np.testing.assert_allclose(
            found, expected, rtol=400 * float(info.eps), atol=4 * float(info.tiny)
        )


def test_far_below_zero() -> None:
    """From -2**52 on, all numbers are integers; before, there are halves of them."""
    x = np.array([-(2.0**51) - 0.5, -(2.0**52), -(2.0**52) - 1, -1e300, -np.inf])
    results = {name: accuracy.Compiled(name, "float64", 4)(x) for name in accuracy.WITH_POLES}
    np.testing.assert_array_equal(results["gammaln"][1:], [np.inf, np.inf, np.inf, -np.inf])
    np.testing.assert_array_equal(results["psi"][1:], np.nan)
    np.testing.assert_array_equal(results["trigamma"][1:], np.inf)
    mp = accuracy.mp
    a = mp.mpf(-x[0])  # at -a, |sin(pi a)| is 1
    expected = {
        "gammaln": mp.log(mp.pi / a) - mp.loggamma(a),
        "psi": mp.digamma(a) + 1 / a,
        "trigamma": mp.pi**2 + 1 / a**2 - mp.psi(1, a),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(results[name][0], float(value), rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_requirements_are_declarations_of_what_is_called(name: str) -> None:
    for dtype, width in LANES.items():
        text = define(name, dtype, width)
        called = {
            line.split("@")[1].split("(")[0] for line in text.splitlines() if " call " in line
        }
        called -= {f"{symbol(name, dtype, width)}.slow"}
        declared = {d.split("@")[1].split("(")[0] for d in requirements(name, dtype, width)}
        assert declared == called


def test_kernels_call_vector_functions() -> None:
    """Lengths around the width, strided arguments, and a row of special functions in a sum."""
    x, y = pt.dvector("x"), pt.fmatrix("y")
    names = ("gammaln", "psi", "tri_gamma", "log_ndtr", "ndtri", "i0e", "erfcx")
    functions: list[Any] = [getattr(pt, name) for name in names]
    total = sum((f(y).sum(axis=1) for f in functions[1:]), functions[0](y).sum(axis=1))
    outputs = [*(g(x[::2]) for g in functions), total]
    f = phintys.function([x, y], outputs, mode="FAST_RUN")
    reference = phintys.function([x, y], outputs, mode="FAST_COMPILE")
    for length in (0, 1, 2, 15, 33):
        values = np.linspace(0.01, 0.99, length), np.linspace(0.02, 0.9, 3 * length, dtype="f4")
        values = values[0], values[1].reshape(length, 3)
        for found, expected in zip(f(*values), reference(*values), strict=True):
            rtol = 1e-12 if expected.dtype == "float64" else 2e-6
            np.testing.assert_allclose(found, expected, rtol=rtol)


def test_betaln_where_arguments_are_extreme() -> None:
    """In those lanes it is SciPy's; the others have the same bits as without them."""
    values = [0.5, -0.5, 3.0, 0.0, -2.0, np.nan, np.inf, 2.5, 1e5, -1e-3, 20.0, 1.0, 1e60, 1e308]
    a, b = (v.ravel() for v in np.meshgrid(values, values))
    x, y = pt.dvector("x"), pt.dvector("y")
    f = phintys.function([x, y], pt.betaln(x, y), mode="FAST_RUN")
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(f(a, b), accuracy.special.betaln(a, b), rtol=1e-10, atol=1e-15)
    plain = (a > 0) & (b > 0)
    np.testing.assert_array_equal(f(a, b)[plain], f(a[plain], b[plain]))


def test_betaln_with_a_one_is_minus_the_logarithm_of_the_other() -> None:
    """So it is 0 at (1, 1), and accurate beside it."""
    for dtype, width in LANES.items():
        x = np.array([1, 1 + 2**-20, 1 - 2**-20, 0.125, 7.5, 8, 1e5, 2.0**99], dtype)
        for args in ((x, np.ones_like(x)), (np.ones_like(x), x)):
            found = accuracy.Compiled("betaln", dtype, width)(*args)
            np.testing.assert_allclose(found, -np.log(x), rtol=4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_logit_keeps_its_digits_beside_one_half(mode: str) -> None:
    x = pt.dvector("x")
    values = 0.5 + np.array([-1e-3, -1e-9, 2.0**-52, 1e-5])
    d = values - 0.5
    found = phintys.function([x], pt.special.logit(x), mode=mode)(values)
    np.testing.assert_allclose(found, 4 * d + 16 / 3 * d**3 + 64 / 5 * d**5, rtol=5e-16)
