"""`vecmath` against mpmath, and its special values against C through NumPy."""

from __future__ import annotations

import importlib.util
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tiers import few, rest

from phintys.backends.llvm.vecmath import BINARY, CALLED, define, requirements, symbol
from phintys.backends.llvm.vecmath import SUPPORTED as ALL

mp = pytest.importorskip("mpmath")

_PATH = Path(__file__).parents[3] / "benchmarks/vecmath.py"
_SPEC = importlib.util.spec_from_file_location("benchmark_vecmath", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
harness = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(harness)

SUPPORTED = ALL - CALLED  # the others: `test_special_accuracy`
NAMES = sorted(SUPPORTED)
DTYPES = ("float64", "float32")
NATIVE = {"float64": 4, "float32": 8}
EACH = pytest.mark.parametrize("dtype", DTYPES)
UNARY = sorted(SUPPORTED - BINARY)
LOG2_RANGE = {"float64": (-1074.0, 1023.0), "float32": (-149.0, 127.0)}
POINTS = 1500  # per range; there are four to six
#: those that are compared with mpmath, which is slow
COUNTS = pytest.mark.parametrize("count", few([300, 1200], 300))

#: Where the function is neither constant, nor infinite, nor undefined, in float64.
WIDE = {
    "exp": (-745.0, 709.8), "exp2": (-1074.9, 1024.0), "expm1": (-40.0, 709.8), "log": (0.0, 10.0),
    "log2": (0.0, 10.0), "log10": (0.0, 10.0), "log1p": (-1.0, 10.0), "tanh": (-20.0, 20.0),
    "sigmoid": (-745.0, 40.0), "softplus": (-745.0, 40.0), "erf": (-6.0, 6.0),
    "log1mexp": (-745.0, 0.0), "sin": (-6e4, 6e4), "cos": (-6e4, 6e4), "tan": (-6e4, 6e4),
    "sinh": (-710.5, 710.5), "cosh": (-710.5, 710.5), "asinh": (-10.0, 10.0), "acosh": (1.0, 10.0),
    "atanh": (-1.0, 1.0), "asin": (-1.0, 1.0), "acos": (-1.0, 1.0), "atan": (-10.0, 10.0),
    "cbrt": (-10.0, 10.0), "erfc": (-6.0, 27.0),
}  # fmt: skip
NARROW_EXPONENTIALS = {"exp", "expm1", "exp2", "sigmoid", "softplus", "log1mexp", "sinh", "cosh"}

#: Points near which an algorithm changes or a result cancels.
TURNS = {
    "tanh": [0.55], "erf": [1.0, 4.0, 5.9], "log1p": [-1.0, -0.293, 0.414], "log": [1.0, 0.7071],
    "log2": [1.0, 2.0, 0.7071], "log10": [1.0, 10.0, 0.7071], "expm1": [-0.3466, 0.3466, 1.04],
    "exp": [0.34657, -708.4, 709.78], "exp2": [0.5, -1022.0, 1023.9],
    "sigmoid": [-708.4, 1.0], "softplus": [-708.4, -0.5, 0.5],
    "sinh": [0.3466, -1.0397, 710.475], "cosh": [0.3466, -1.0397, 710.475],
    "asinh": [0.35355, -1.0, 1.1e4, 2.7e8], "acosh": [1.0, 1.06066, 1.1e4, 2.7e8],
    "atanh": [0.17157, -0.2, 0.5, 0.6, 1.0, -1.0], "asin": [0.5, -0.5, 1.0, -1.0],
    "acos": [0.5, -0.5, 1.0, -1.0], "atan": [1.0, -1.0],
    "log1mexp": [-0.34657, -0.6931, -1.0397, -36.0, -708.4],
    "erfc": [0.75, -0.75, 1.0, 3.0, 10.05, 26.54],
    "cbrt": [1.0, 2.0, 0.5, 0.7071, -1.4142, 8.0, 27.0],
}  # fmt: skip
#: The closed intervals outside of which a function is not defined.
DOMAINS = {"acosh": (1, np.inf), "asin": (-1, 1), "acos": (-1, 1)}
DOMAINS |= dict.fromkeys(("log", "log2", "log10"), (5e-324, np.inf))
DOMAINS |= {
    "log1mexp": (-np.inf, -5e-324),
    "log1p": (-1 + 2.0**-53, np.inf),
    "atanh": (-1 + 2.0**-53, 1 - 2.0**-53),
}
TRIG_TURNS = [k * float(np.pi) / 4 for k in (1, 2, 3, 4, 7, 8, 200, 32766, 63660)] + [5e4, 1e6]


def _spread(rng: np.random.Generator, low: float, high: float, count: int) -> np.ndarray:
    return np.exp2(rng.uniform(low, high, count)) * rng.choice([-1.0, 1.0], count)


def arguments(name: str, dtype: str, count: int = POINTS) -> np.ndarray:
    """Random points of a unary function: wide, small, of all magnitudes, beside the turns."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {dtype} {count}".encode()))
    low, high = WIDE[name]
    if dtype == "float32" and name in NARROW_EXPONENTIALS:
        low, high = max(low / 7.2, -150.0), high / 8 if high > 100 else high
    turns = np.array(TURNS.get(name, TRIG_TURNS))
    beside = rng.choice(turns, count) * (1 + rng.choice([1, 1e-5, 1e-9], count)
                                         * rng.normal(size=count) * 1e-4)  # fmt: skip
    parts = [
        rng.uniform(low, high, count),
        rng.uniform(-1, 1, count),
        _spread(rng, -12, 8, count),
        _spread(rng, *LOG2_RANGE[dtype], count),
        beside,
        turns,
    ]
    x = np.concatenate(parts).astype(dtype)
    if name in ("log", "log2", "log10", "acosh"):
        x = np.abs(x)
    least, greatest = DOMAINS.get(name, (-np.inf, np.inf))
    return x[(x >= least) & (x <= greatest)]


def points_of_plane(dtype: str, count: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Ordinates and abscissae of all magnitudes, mostly near each other, some equal."""
    rng = np.random.default_rng(count)
    low, high = LOG2_RANGE[dtype]
    y = _spread(rng, low, high, 4 * count)
    ratio = np.exp2(rng.uniform(-1, 1, 4 * count)) ** rng.choice([0, 0.01, 1, 20, 60], 4 * count)
    with np.errstate(all="ignore"):
        x = (np.abs(y) * ratio * rng.choice([-1.0, 1.0], 4 * count)).astype(dtype)
        return y.astype(dtype), np.clip(x, -np.finfo(dtype).max, np.finfo(dtype).max)


def powers(dtype: str, count: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents whose powers cover the range of results and the bases beside 1."""
    rng = np.random.default_rng(count)
    bits = -LOG2_RANGE[dtype][0]
    x = np.exp2(
        np.concatenate([
            rng.uniform(-1, 1, count), rng.uniform(*LOG2_RANGE[dtype], count),
            rng.normal(size=count) * 1e-3, rng.normal(size=count) * 1e-7,
        ])
    ).astype(dtype)  # fmt: skip
    reach = rng.uniform(-bits, bits, len(x)) * rng.choice([1, 0.1, 0.01], len(x))
    with np.errstate(all="ignore"):
        y = (reach / np.log2(x.astype("f8"))).astype(dtype)
    keep = np.isfinite(y) & (x != 1)
    return x[keep], y[keep]


PAIRS = {"pow": powers, "atan2": points_of_plane, "hypot": points_of_plane}


@cache
def compiled(name: str, dtype: str, width: int, cpu: str = "", features: str = ""):
    return harness.Compiled(name, dtype, width, cpu, features)


def sample(name: str, dtype: str, count: int = POINTS) -> tuple[np.ndarray, ...]:
    """Arguments of any function."""
    return PAIRS[name](dtype, count) if name in BINARY else (arguments(name, dtype, count),)


@cache
def with_results(name: str, dtype: str, count: int) -> tuple[tuple[np.ndarray, ...], list]:
    """Arguments and exact results."""
    args = sample(name, dtype, count)
    with mp.workdps(50):
        return args, harness.exact_values(name, *args)


def worst(
    name: str, dtype: str, count: int, cpu: str = "", features: str = ""
) -> tuple[float, tuple]:
    """The greatest error in ulps and where it is."""
    args, exact = with_results(name, dtype, count)
    got = compiled(name, dtype, NATIVE[dtype], cpu, features)(*args)
    with mp.workdps(50):
        errors = harness.ulps(got, exact, dtype)
    at = int(np.argmax(errors))
    return errors[at], (*(a[at] for a in args), got[at])


@EACH
@COUNTS
@pytest.mark.parametrize("name", NAMES)
def test_error_is_at_most_two_ulps(name: str, count: int, dtype: str) -> None:
    error, where = worst(name, dtype, count)
    assert error <= 2, where


@rest
@EACH
@COUNTS
@pytest.mark.parametrize("name", NAMES)
def test_error_without_a_fused_multiply_add(name: str, count: int, dtype: str) -> None:
    if not compiled(name, dtype, 2).is_x86:
        pytest.skip("describes an x86-64 machine")
    function = compiled(name, dtype, NATIVE[dtype], "x86-64", "+sse2")
    assert "fma" not in function.assembly, "a call of libm's fma is slow"
    error, where = worst(name, dtype, count, "x86-64", "+sse2")
    assert error <= 3, where


@EACH
@pytest.mark.parametrize("name", NAMES)
def test_a_lane_depends_on_neither_width_nor_neighbours(name: str, dtype: str) -> None:
    args = sample(name, dtype)
    wide = compiled(name, dtype, NATIVE[dtype])(*args)
    np.testing.assert_array_equal(compiled(name, dtype, 1)(*args), wide)
    np.testing.assert_array_equal(compiled(name, dtype, 2)(*(a[::-1] for a in args))[::-1], wide)


@EACH
@pytest.mark.parametrize("name", NAMES)
def test_optimisation_changes_no_bit(name: str, dtype: str) -> None:
    args = sample(name, dtype)
    optimised = harness.Compiled(name, dtype, NATIVE[dtype], optimise=True)
    np.testing.assert_array_equal(optimised(*args), compiled(name, dtype, NATIVE[dtype])(*args))


def special_values(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    positive = [
        0.0, info.smallest_subnormal, info.smallest_subnormal * 5, info.smallest_normal, 1e-30,
        info.eps / 4, info.eps, 0.5, 1 - info.epsneg, 1.0, 1 + info.eps, 1.5, 2.0, 3.0, 10.0, 20.0,
        88.0, 89.0, 104.0, 127.5, 128.0, 149.0, 150.0, 709.0, 710.0, 745.0, 746.0, 1024.0, 1075.0,
        1e5, 2.0**24 + 2, 2.0**31, 1e15, info.max, np.inf,
    ]  # fmt: skip
    return np.array([*positive, *(-v for v in positive), np.nan], dtype)


def assert_like(got: np.ndarray, expected: np.ndarray, ulps: float, *args: np.ndarray) -> None:
    """Equal zeros with their signs, infinities and NaNs; other numbers close."""
    exact = ~np.isfinite(expected) | (expected == 0)
    same = (got == expected) & (np.signbit(got) == np.signbit(expected))
    same |= np.isnan(got) & np.isnan(expected)
    with np.errstate(all="ignore"):
        distance = np.abs(got - expected) / np.spacing(np.abs(expected))
        good = np.where(exact, same, distance <= ulps)
    bad = np.flatnonzero(~good)
    assert not len(bad), [(*(a[i] for a in args), got[i], expected[i]) for i in bad[:8]]


def by_numpy(name: str, *args: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if name in ("sigmoid", "softplus"):  # SciPy's and NumPy's lose subnormal results
            x = args[0].astype("f8")
            e = np.exp(-np.abs(x))
            logistic = np.where(x < 0, e, 1) / (1 + e)
            y = logistic if name == "sigmoid" else np.maximum(x, 0) + np.log1p(e)
            return y.astype(args[0].dtype)
        peer = harness.NUMPY[name]
        return peer(*args, out=np.empty_like(args[0]))


@EACH
@pytest.mark.parametrize("width", ["one", "native"])
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str, dtype: str, width: str) -> None:
    x = special_values(dtype)
    got = compiled(name, dtype, NATIVE[dtype] if width == "native" else 1)(x)
    assert_like(got, by_numpy(name, x), 4, x)


@EACH
@pytest.mark.parametrize("name", sorted(BINARY & SUPPORTED))
def test_special_values_of_pairs(name: str, dtype: str) -> None:
    base = special_values(dtype)
    more = [-0.5, 0.25, 1 / 3, 4.0, 5.0, 7.0, -7.0, 2.0**53, 2.0**53 - 1, 2.0**52 + 1, 2.0**23 + 1]
    base = np.concatenate([base, np.array(more, dtype)])
    x, y = (a.ravel() for a in np.meshgrid(base, base))
    got = compiled(name, dtype, NATIVE[dtype])(x, y)
    assert_like(got, by_numpy(name, x, y), 3, x, y)


@EACH
@pytest.mark.parametrize("name", ["sinh", "cosh", "exp", "expm1"])
def test_results_overflow_where_those_of_libm_do(name: str, dtype: str) -> None:
    greatest = np.finfo(dtype).max.astype("f8")
    bound = np.arcsinh(greatest) if name.endswith("h") else np.log(greatest)
    x = np.asarray(bound, dtype) + np.arange(-50, 51).astype(dtype) * np.spacing(
        bound.astype(dtype)
    )
    got = compiled(name, dtype, NATIVE[dtype])(x)
    np.testing.assert_array_equal(np.isinf(got), np.isinf(by_numpy(name, x)))
    assert 40 < np.isinf(got).sum() < 60


@EACH
def test_exact_results(dtype: str) -> None:
    native = NATIVE[dtype]
    low, high = LOG2_RANGE[dtype]
    k = np.arange(low, high + 1, dtype="i4")
    powers = np.ldexp(np.ones(len(k), dtype), k)
    np.testing.assert_array_equal(compiled("exp2", dtype, native)(k.astype(dtype)), powers)
    np.testing.assert_array_equal(compiled("log2", dtype, native)(powers), k.astype(dtype))
    ten = np.arange(0, 23 if dtype == "float64" else 11)
    tens = np.array([10.0**i for i in ten], dtype)
    np.testing.assert_array_equal(compiled("log10", dtype, native)(tens), ten.astype(dtype))
    x = np.arange(-40, 41).astype(dtype)
    two = np.full_like(x, 2)
    np.testing.assert_array_equal(compiled("pow", dtype, native)(x, two), x * x)


@EACH
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_arguments_go_through_libm(name: str, dtype: str) -> None:
    x = np.array([1e22, 3.0, -1e7, 0.5, 2.0**100, -4.0, 5e4, 1e6, 1e38], dtype)
    with mp.workdps(80):
        exact = harness.exact_values(name, x)
        assert harness.ulps(compiled(name, dtype, NATIVE[dtype])(x), exact, dtype).max() <= 2


def test_worst_case_for_the_reduction_by_half_pi() -> None:
    """Numbers within the fast range that come closest to multiples of pi/2."""
    with mp.workdps(60):
        n = np.arange(1, 31831)
        near = n * (np.pi / 2)
        distances = [
            abs(mp.mpf(float(v)) - int(k) * mp.pi / 2) / v for k, v in zip(n[::7], near[::7])
        ]
        x = near[::7][np.argsort([float(d) for d in distances])[:200]]
        for name in ("sin", "cos", "tan"):
            exact = harness.exact_values(name, x)
            assert harness.ulps(compiled(name, "float64", 4)(x), exact, "float64").max() <= 2


def test_requirements_are_declarations_of_what_is_called() -> None:
    for name in NAMES:
        for dtype in DTYPES:
            text = define(name, dtype, 4)
            own = {symbol(name, dtype, 4), f"{symbol(name, dtype, 4)}.slow"}
            called = {line.split("@")[1].split("(")[0] for line in text.splitlines()
                      if " call " in line} - own  # fmt: skip
            declared = [d.split("@")[1].split("(")[0] for d in requirements(name, dtype, 4)]
            assert sorted(declared) == sorted(called)


@pytest.mark.parametrize(
    "args", [("gammainc", "float64", 4), ("exp", "int32", 4), ("exp", "float64", 3)]
)
def test_unknown_functions_are_refused(args: tuple[str, str, int]) -> None:
    with pytest.raises(ValueError, match=args[0]):
        define(*args)
