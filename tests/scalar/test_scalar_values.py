"""Values of every row: against mpmath in the domain, and against float64 over all dtypes."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from rows import CASTS, DTYPES, REFERENCE, ROWS, accepts, arity, edges, grid, points

from phintys.scalar.op import TABLE

#: rows that answer a question about numbers exactly, or work on bits: tested one by one below
EXACT = {
    "eq", "neq", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "signbit", "and_", "or_",
    "xor", "invert", "left_shift", "right_shift", "logical_and", "logical_or", "logical_xor",
    "logical_not", "gcd", "lcm", "nextafter", "complex", "complex_from_polar",
}  # fmt: skip


#: rows -> points where another formula than at the drawn ones computes them: steps backwards
OTHER_POINTS = dict.fromkeys(
    ("gammaln_increment", "psi_increment", "tri_gamma_increment"),
    ([3.0, 2.5, 1e-3, 300.0, 7.0, -1.5], [-2.9999, -0.75, -9e-4, -200.0, -3.6, -1.75]),
)


def test_every_row_has_a_reference() -> None:
    assert set(ROWS) == set(REFERENCE) | EXACT


@pytest.mark.parametrize("name", REFERENCE)
def test_value_is_that_of_mpmath(name: str) -> None:
    more = OTHER_POINTS.get(name, [()] * arity(TABLE[name]))
    values = [np.append(v, v.dtype.type(m)) for v, m in zip(points(name), more, strict=True)]
    found = TABLE[name].compute(*values)
    with mp.workdps(25):
        expected = [float(mp.re(REFERENCE[name](*map(mp.mpf, row)))) for row in zip(*values)]
    np.testing.assert_allclose(found, expected, rtol=3e-12, atol=1e-15)


@pytest.mark.parametrize("name", [n for n in REFERENCE if arity(TABLE[n]) == 1])
def test_value_far_away_is_that_of_mpmath(name: str) -> None:
    """Arguments near 0, large ones, and ones next to multiples of pi."""
    sizes = [1e-300, 1e-20, 1e-8, 1e-3, 0.9, 1.1, 3.14159265, 6.2831853, 44, 355, 710, 1e4]
    values = np.array([*sizes, *(-v for v in sizes)])
    with np.errstate(all="ignore"):
        found = TABLE[name].compute(values)
    compared = 0
    for value, result in zip(values, found):
        if np.isfinite(result):
            with mp.workdps(60):
                expected = float(mp.re(REFERENCE[name](mp.mpf(float(value)))))
            if 1e-290 < abs(expected) < np.inf:  # otherwise 60 digits do not hold it
                compared += 1
                np.testing.assert_allclose(result, expected, rtol=1e-11, err_msg=str(value))
    assert compared or name == "imag"  # 0 everywhere


@pytest.mark.parametrize("name", ROWS)
def test_dtype_of_value_is_the_announced_one(name: str) -> None:
    op = TABLE[name]
    n = arity(op)
    tried = 0
    for i, first in enumerate(DTYPES):
        given = [first, *(DTYPES[(5 * i + k) % len(DTYPES)] for k in range(n - 1))]
        for dtypes in (given, [first] * n):
            if accepts(op, *dtypes):
                tried += 1
                value = op.compute(*(np.ones(2, dt) for dt in dtypes))
                assert [value.dtype.name] == op.output_dtypes(*dtypes), dtypes
                assert value.shape == (2,)
    assert tried


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "float16", "float32"])
def test_narrow_values_are_rounded_wide_ones(name: str, dtype: str) -> None:
    """A function of integers is that of floats; of float16 and float32, that of float64 rounded."""
    op = TABLE[name]
    n = arity(op)
    given = ["int8" if name == "polygamma" else dtype, *[dtype] * (n - 1)]
    if not accepts(op, *given):
        pytest.skip(f"{name} is not defined for {dtype}")
    lower = 0 if np.dtype(dtype).kind in "bu" else -3
    arguments = grid(*[np.arange(lower, 4).astype(dtype)] * n)
    if name == "pow" or name == "polygamma":
        arguments = [np.abs(a) for a in arguments]
    arguments[0] = arguments[0].astype(given[0])
    found = op.compute(*arguments)
    if np.dtype(found.dtype).kind == "f":
        wide = [a.astype("float64") for a in arguments]
        if name == "polygamma":
            wide[0] = arguments[0]
        info = np.finfo(found.dtype)
        with np.errstate(over="ignore"):
            expected = op.compute(*wide).astype(found.dtype)
        # sinc at integers: sin(pi x) of a rounded pi
        near_zero = info.eps if name == "sinc" else 1e3 * info.tiny
        np.testing.assert_allclose(found, expected, rtol=3 * info.eps, atol=near_zero)
    else:
        wide = [a.astype("int64") for a in arguments]
        with np.errstate(all="ignore"):
            expected = op.compute(*wide).astype(found.dtype)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", CASTS)
@pytest.mark.parametrize("source", DTYPES)
def test_cast(name: str, source: str) -> None:
    target = name.removeprefix("cast_")
    lower = 0 if np.dtype(source).kind in "bu" or np.dtype(target).kind == "u" else -2
    values = (np.arange(lower, 4) * (1.25 if np.dtype(source).kind in "fc" else 1)).astype(source)
    found = TABLE[name].compute(values)
    assert found.dtype.name == target
    plain = values.real if np.dtype(target).kind not in "cb" else values
    expected = [np.dtype(target).type(v) for v in plain.tolist()]
    np.testing.assert_array_equal(found, expected)


def test_cast_truncates_and_asks_for_zero() -> None:
    x = np.array([-1.9, -0.5, 0.0, 0.5, 1.9, np.nan])
    np.testing.assert_array_equal(TABLE["cast_int8"].compute(x[:-1]), [-1, 0, 0, 0, 1])
    np.testing.assert_array_equal(
        TABLE["cast_bool"].compute(x), [True, True, False, True, True, True]
    )


COMPARISONS = {
    "eq": lambda x, y: x == y,
    "neq": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("int64", "uint64"), ("float32", "float64"),
                                    ("bool", "int16"), ("float64", "float64")])  # fmt: skip
def test_comparison_is_pythons(name: str, dtypes: tuple[str, str]) -> None:
    x, y = grid(*map(edges, dtypes))
    expected = [COMPARISONS[name](a, b) for a, b in zip(x.tolist(), y.tolist())]
    np.testing.assert_array_equal(TABLE[name].compute(x, y), expected)


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge"])
def test_complex_numbers_compare_by_real_then_imaginary_part(name: str) -> None:
    x, y = grid(edges("complex128"), edges("complex128"))
    pairs = [((a.real, a.imag), (b.real, b.imag)) for a, b in zip(x.tolist(), y.tolist())]
    expected = [COMPARISONS[name](a, b) for a, b in pairs]
    np.testing.assert_array_equal(TABLE[name].compute(x, y), expected)


BITS = {
    "and_": lambda x, y: x & y,
    "or_": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "gcd": np.gcd,
    "lcm": np.lcm,
}


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64"])
def test_bits(name: str, dtype: str) -> None:
    values = np.arange(0, 12).astype(dtype)
    x, y = grid(values, values)
    expected = [int(BITS[name](a, b)) for a, b in zip(x.tolist(), y.tolist())]
    np.testing.assert_array_equal(TABLE[name].compute(x, y), expected)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "invert", "left_shift", "gcd"])
def test_bits_of_floats_raise(name: str) -> None:
    op = TABLE[name]
    with pytest.raises(TypeError, match=f"{name} of float64.*bit operations"):
        op.output_dtypes(*["float64"] * op.nin)


def test_shifts_and_complement() -> None:
    x = np.array([1, -8, 100], "int32")
    np.testing.assert_array_equal(
        TABLE["left_shift"].compute(x, np.array([3, 2, 1])), [8, -32, 200]
    )
    np.testing.assert_array_equal(TABLE["right_shift"].compute(x, np.array([1, 2, 3])), [0, -2, 12])
    np.testing.assert_array_equal(TABLE["invert"].compute(x), [-2, 7, -101])
    np.testing.assert_array_equal(TABLE["invert"].compute(np.array([True, False])), [False, True])


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "float64", "complex64"])
def test_classifications(dtype: str) -> None:
    x = edges(dtype)
    items = [complex(v) for v in x.tolist()]
    parts = [(v.real, v.imag) for v in items]
    nan = [any(p != p for p in v) for v in parts]
    infinite = [any(abs(p) == np.inf for p in v) for v in parts]
    finite = [not (a or b) for a, b in zip(nan, infinite)]
    for name, expected in (("isnan", nan), ("isinf", infinite), ("isfinite", finite)):
        np.testing.assert_array_equal(TABLE[name].compute(x), expected)


def test_signbit_and_nextafter() -> None:
    x = np.array([0.0, -0.0, 1.0, -2.0])
    np.testing.assert_array_equal(TABLE["signbit"].compute(x), [False, True, False, True])
    assert TABLE["nextafter"].compute(np.float64(1), np.float64(2)) == 1 + 2**-52


@pytest.mark.parametrize("dtype", ["bool", "int8", "float64"])
def test_logic(dtype: str) -> None:
    x, y = grid(edges(dtype), edges(dtype))
    truth = [(bool(a), bool(b)) for a, b in zip(x.tolist(), y.tolist())]
    for name, f in (
        ("logical_and", lambda a, b: a and b),
        ("logical_or", lambda a, b: a or b),
        ("logical_xor", lambda a, b: a != b),
    ):
        np.testing.assert_array_equal(TABLE[name].compute(x, y), [f(a, b) for a, b in truth])
    np.testing.assert_array_equal(TABLE["logical_not"].compute(x), [not a for a, _ in truth])


def test_complex_parts() -> None:
    x, y = np.array([1.0, -2.0, 0.0]), np.array([0.5, np.inf, -0.0])
    z = TABLE["complex"].compute(x, y)
    np.testing.assert_array_equal(z.real, x)
    np.testing.assert_array_equal(z.imag, y)
    w = TABLE["complex_from_polar"].compute(np.float32(2), np.float32(0.5))
    assert w.dtype == "complex64"
    np.testing.assert_allclose(TABLE["abs"].compute(w), 2, rtol=1e-6)
    np.testing.assert_allclose(TABLE["angle"].compute(w), 0.5, rtol=1e-6)
    np.testing.assert_allclose(TABLE["sign"].compute(w), w / 2, rtol=1e-6)


# ------------------------------------------------------- rows of the table of semantics


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float32", "float64"])
def test_floor_division_and_remainder_follow_python(dtype: str) -> None:
    values = np.array([-7, -3, -1, 1, 2, 3, 7] if dtype[0] != "u" else [1, 2, 3, 7], dtype)
    x, y = grid(values, values)
    pairs = list(zip(x.tolist(), y.tolist()))
    np.testing.assert_array_equal(TABLE["int_div"].compute(x, y), [a // b for a, b in pairs])
    np.testing.assert_array_equal(TABLE["mod"].compute(x, y), [a % b for a, b in pairs])


def test_floor_division_uses_the_exact_remainder() -> None:
    assert TABLE["int_div"].compute(np.float64(1), np.float64(0.1)) == 9


@pytest.mark.parametrize("name", ["int_div", "mod"])
def test_integer_division_by_zero_is_zero(name: str) -> None:
    x = np.array([5, -5, 0])
    np.testing.assert_array_equal(TABLE[name].compute(x, np.zeros(3, int)), [0, 0, 0])


@pytest.mark.parametrize("float_x", ["float32", "float64"])
def test_quotient_of_integers_is_floatx(float_x: str) -> None:
    from phintys.config import config

    with config.change_flags(floatX=float_x):
        assert TABLE["true_div"].output_dtypes("int8", "int64") == [float_x]
        assert TABLE["exp"].output_dtypes("int8") == ["float32"]
        assert TABLE["exp"].output_dtypes("int64") == ["float64"]


def test_integer_to_a_negative_integer_power_raises() -> None:
    with pytest.raises(ValueError, match="negative integer powers"):
        TABLE["pow"].compute(np.array([2, 3]), np.array([1, -1]))


def test_bools() -> None:
    x, y = grid(edges("bool"), edges("bool"))
    np.testing.assert_array_equal(TABLE["add"].compute(x, y), x | y)
    np.testing.assert_array_equal(TABLE["mul"].compute(x, y), x & y)
    for name, given in (("sub", 2), ("neg", 1)):
        with pytest.raises(TypeError, match="bool is not supported"):
            TABLE[name].output_dtypes(*["bool"] * given)


@pytest.mark.parametrize("name", ["maximum", "minimum", "clip"])
def test_nan_propagates(name: str) -> None:
    n = TABLE[name].nin
    for i in range(n):
        arguments = [np.float64(np.nan if i == k else 1) for k in range(n)]
        assert np.isnan(TABLE[name].compute(*arguments))


def test_rounding_of_halves() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999999999999994])
    np.testing.assert_array_equal(TABLE["round_half_to_even"].compute(x), [0, 2, 2, 0, -2, 0])
    np.testing.assert_array_equal(
        TABLE["round_half_away_from_zero"].compute(x), [1, 2, 3, -1, -3, 0]
    )


def test_stable_forms() -> None:
    far = np.array([-800.0, 800.0])
    np.testing.assert_array_equal(TABLE["sigmoid"].compute(far), [0, 1])
    np.testing.assert_array_equal(TABLE["softplus"].compute(far), [0, 800])
    np.testing.assert_allclose(
        TABLE["log1mexp"].compute(np.array([-1e-300])), -690.775527898, rtol=1e-9
    )
    np.testing.assert_allclose(TABLE["erfcx"].compute(np.array([100.0])), 0.005641613782989)
    assert TABLE["erfc"].compute(np.float64(100)) == 0
    np.testing.assert_allclose(TABLE["logaddexp"].compute(far, far), far + np.log(2))
    np.testing.assert_array_equal(TABLE["xlogy"].compute(np.zeros(2), np.array([0.0, 1])), [0, 0])
