"""Conversions between all dtypes, and integers at their limits: one meaning on every backend."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.backends.llvm.machine.target import current
from phintys.scalar.conversion import converted
from phintys.scalar.dtypes import ALL, COMPLEX, FLOAT, INTEGER, SIGNED

EDGES = [2.0**k + d for k in (7, 8, 15, 16, 31, 32, 33, 62, 63, 64) for d in (-1, 0, 0.5, 1, 5)]
EDGES += [2.0**63 - 1024, 2.0**63 + 2048, 2.0**64 - 2048, 2.0**64 + 4096, 2.0**63 - 2.0**39]
EDGES += [2.0**63 + 2.0**40, 2.0**64 - 2.0**40, 1.5e19, 1e20, 1e30, 300.7, 1.5, 0.5, 1.0]
FLOATS = [float("nan"), float("inf"), 0.0, *EDGES]
FLOATS += [-x for x in FLOATS]
COMPLEXES = [complex(x, y) for x in FLOATS[:40] for y in (0.0, 1.0, float("nan"))]


# ---------------------------------------------------------------- what a conversion means


def lowest(number, dtype):
    """The number whose lowest bits a dtype holds."""
    bits = 8 * np.dtype(dtype).itemsize
    number %= 2**bits
    return number - 2**bits if dtype in SIGNED and number >= 2 ** (bits - 1) else number


def signed(x, bits):
    if math.isfinite(x) and -(2 ** (bits - 1)) <= int(x) < 2 ** (bits - 1):
        return int(x)
    return -(2 ** (bits - 1))


def integer(x, dtype):
    """A float as an integer, in Python's numbers."""
    if dtype == "uint64" and x >= 2.0**63:
        return lowest(signed(x - 2.0**63, 64) ^ 2**63, dtype)
    narrow = np.dtype(dtype).itemsize <= 2 or dtype == "int32"
    return lowest(signed(x, 32 if narrow else 64), dtype)


def expected(values, dtype):
    if dtype == "bool":
        return np.array([x != 0 for x in values.tolist()], bool)
    if values.dtype.kind == "c" and dtype not in COMPLEX:
        values = values.real
    if values.dtype.kind == "f" and dtype in INTEGER:
        return np.array([integer(x, dtype) for x in values.tolist()], dtype)
    if values.dtype.kind in "biu" and dtype in INTEGER:
        return np.array([lowest(int(x), dtype) for x in values.tolist()], dtype)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def special(dtype):
    """Numbers of a dtype where conversions differ."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGER:
        limits = np.iinfo(dtype)
        near = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 100]
        powers = [s * 2**k + d for k in (7, 8, 15, 16, 24, 31, 32, 53, 63) for d in (-1, 0, 1)
                  for s in (1, -1)]  # fmt: skip
        return np.array([n for n in near + powers if limits.min <= n <= limits.max], dtype)
    with np.errstate(over="ignore"):
        return np.array(COMPLEXES if dtype in COMPLEX else FLOATS).astype(dtype)


def assert_same(found, wanted):
    found = np.asarray(found)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    if wanted.dtype.kind == "f":
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(wanted[real]))


@pytest.mark.parametrize("source", ALL)
def test_the_reference(source):
    values = special(source)
    for target in ALL:
        assert_same(converted(values, target), expected(values, target))
        for x in values:
            assert_same(converted(np.asarray(x), target), expected(values[:0], target).dtype.type(
                expected(np.array([x]), target)[0]))  # fmt: skip


@pytest.mark.parametrize("source", [*FLOAT, *COMPLEX])
def test_numpy_agrees_where_it_is_defined(source):
    """On every machine for what fits."""
    values = special(source)
    for target in [*INTEGER, "bool"]:
        exact = expected(values, target)
        real = values.real.astype("float64")
        limits = (0, 1) if target == "bool" else (np.iinfo(target).min, np.iinfo(target).max)
        inside = np.isfinite(values) & (real > limits[0] - 1.0) & (real < float(limits[1]))
        if target == "bool":
            inside = np.isfinite(values)
        given = values[inside] if target == "bool" else values.real[inside]
        assert_same(given.astype(target), exact[inside])


#: for tests that take long with JAX; `test_casts` of `test_transpilers` is a short one
native_first = pytest.mark.parametrize(
    "mode",
    few(["FAST_RUN", "FAST_COMPILE", "C", "NUMBA", "JAX"], "FAST_RUN", "FAST_COMPILE", "C"),
    indirect=True,
)
SOURCES = {"NUMBA": ["float32", "float64"], "JAX": ["float32", "float64", "uint64"]}


@native_first
def test_every_pair(mode):
    for source in SOURCES.get(mode, ALL):
        values = special(source)
        # a complex number is made real by real or abs
        targets = [t for t in (COMPLEX if source in COMPLEX else ALL) if t != source]
        if mode == "NUMBA":
            targets = [t for t in targets if t != "float16"]
        x = pt.tensor("x", dtype=source, shape=(None,))
        f = phintys.function([x], [pt.cast(x, t) for t in targets], mode=mode)
        for part in (values, values[::-1], values[:1], values[1:4], np.repeat(values, 3)[::2]):
            for found, target in zip(f(part), targets):
                assert_same(found, expected(part, target))


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C"])
def test_conversions_within_larger_expressions(mode):
    """Constants, 0-d arguments, fused code, values that are written at positions."""
    for target in INTEGER:
        x, s = pt.dvector("x"), pt.dscalar("s")
        n = pt.tensor("n", dtype=target, shape=(None,))
        values, one = np.array(FLOATS), np.array(1, target)
        wanted = expected(values, target)
        outs = [pt.cast(x * 1.0, target) ^ one, pt.set_subtensor(n[:], x), pt.cast(s, target)]
        outs += [pt.cast(pt.constant(values), target), pt.set_subtensor(n[pt.arange(3)], x[:3])]
        outs += [pt.cast(pt.cast(x, "float32").astype("float64"), target)]
        f = phintys.function([x, s, n], outs, mode=mode)
        single = values.astype("float32").astype("float64")
        for k in (0, 1, 5, len(values) - 1):
            found = f(values, values[k], np.zeros(len(values), target))
            assert_same(found[0], wanted ^ one)
            assert_same(found[1], wanted)
            assert_same(found[2][None], wanted[k : k + 1])
            assert_same(found[3], wanted)
            assert_same(found[4][:3], wanted[:3])
            assert_same(found[5], expected(single, target))


# ------------------------------------------------------------------- integers at their limits


def integer_pairs(dtype):
    limits = np.iinfo(dtype)
    numbers = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 3, 7, 100]
    numbers += [-1, -2, -3, -7] if dtype in SIGNED else []
    x, y = np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype))
    return x.ravel(), y.ravel()


def by_python(name, dtype, x, y):
    """A function of two integers, in Python's numbers."""
    if name in ("int_div", "mod"):
        if y == 0:
            return 0
        return lowest(x // y if name == "int_div" else x % y, dtype)
    if name in ("left_shift", "right_shift"):
        bits = 8 * np.dtype(dtype).itemsize
        inside = 0 <= y < bits
        if name == "left_shift":
            return lowest(x << y, dtype) if inside else 0
        return x >> y if inside else (-1 if x < 0 else 0)
    functions = {
        "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "neg": lambda: -x,
        "abs": lambda: abs(x), "sqr": lambda: x * x, "minimum": lambda: min(x, y),
        "maximum": lambda: max(x, y), "sign": lambda: (x > 0) - (x < 0), "invert": lambda: ~x,
        "bitwise_xor": lambda: x ^ y, "bitwise_and": lambda: x & y, "bitwise_or": lambda: x | y,
    }  # fmt: skip
    return lowest(functions[name](), dtype)


BINARY = ["add", "sub", "mul", "int_div", "mod", "left_shift", "right_shift", "minimum", "maximum"]
BINARY += ["bitwise_xor", "bitwise_and", "bitwise_or"]
UNARY = ["neg", "abs", "sqr", "sign", "invert"]


@native_first
def test_integers(mode):
    for dtype in INTEGER if mode not in ("JAX", "NUMBA") else ["int8", "uint64"]:
        a, b = integer_pairs(dtype)
        x, y = (pt.tensor(n, dtype=dtype, shape=(None,)) for n in "xy")
        names = [n for n in BINARY + UNARY if n != "neg" or dtype in SIGNED]
        outs = [getattr(pt, n)(x, y) if n in BINARY else getattr(pt, n)(x) for n in names]
        f = phintys.function([x, y], outs, mode=mode)
        for part in (slice(None), slice(0, 1), slice(3, 20)):
            results = f(a[part], b[part])
            for name, found in zip(names, results):
                want = [by_python(name, dtype, int(i), int(j)) for i, j in zip(a[part], b[part])]
                np.testing.assert_array_equal(np.asarray(found), want, err_msg=f"{name} {dtype}")
                assert found.dtype == dtype


def test_extremes_of_floats(mode):
    """NaN wins in min and max; the sign of NaN is NaN, of zero 0."""
    for dtype in ("float32", "float64"):
        numbers = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], dtype)
        a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
        x, y = (pt.tensor(n, dtype=dtype, shape=(None,)) for n in "xy")
        f = phintys.function(
            [x, y], [pt.minimum(x, y), pt.maximum(x, y), pt.sign(x), abs(x), -x], mode=mode
        )
        with np.errstate(invalid="ignore"):
            wanted = [np.minimum(a, b), np.maximum(a, b), np.sign(a), np.abs(a), -a]
        for found, want in zip(f(a, b), wanted):
            np.testing.assert_array_equal(np.asarray(found), want)


@pytest.mark.parametrize("bits", few([128, 256, 512], current().register_bits))
def test_every_width_of_vectors(bits):
    with phintys.config.change_flags(vector_bits=bits):
        test_conversions_within_larger_expressions("FAST_RUN")
        test_integers("FAST_RUN")
        for source in ("float32", "float64"):
            values = special(source)
            x = pt.tensor("x", dtype=source, shape=(None,))
            f = phintys.function([x], [pt.cast(x, t) for t in INTEGER])
            for n in (1, 3, 8, 17, len(values)):
                for found, target in zip(f(values[:n]), INTEGER):
                    assert_same(found, expected(values[:n], target))
