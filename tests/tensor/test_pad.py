"""Padding in all modes and interpolation against NumPy; derivatives."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from tensor_checks import check, check_batched, check_derivatives, evaluate
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.tensor.pad import STATISTICS, PadMode

RNG = np.random.default_rng(13)
X = RNG.normal(size=(3, 5))
DTYPES = ["float64", "float32", "int8", "uint8", "bool", "complex128"]
DEFAULTS = [{"mode": mode} for mode in get_args(PadMode)]
ARGUMENTS = [
    *DEFAULTS,
    {"mode": "constant", "constant_values": 2},
    {"mode": "constant", "constant_values": ((1, 2), (3, 4))},
    {"mode": "linear_ramp", "end_values": (7, -3)},
    {"mode": "linear_ramp", "end_values": ((1, 2), (3, 4))},
    *({"mode": mode, "stat_length": 2} for mode in STATISTICS),
    {"mode": "mean", "stat_length": ((1, 2), (3, 9))},
    {"mode": "symmetric", "reflect_type": "odd"},
    {"mode": "reflect", "reflect_type": "odd"},
    {"mode": "reflect", "reflect_type": "even"},
]
#: arguments of which ``make test`` looks at derivatives and values; of the default ones at values
QUICK = [
    {"mode": "edge"},
    {"mode": "linear_ramp", "end_values": ((1, 2), (3, 4))},
    {"mode": "mean", "stat_length": ((1, 2), (3, 9))},
    {"mode": "reflect", "reflect_type": "odd"},
]


def padded(x, width, **arguments):
    """What NumPy gives; but ramps of integers exactly, which NumPy computes with floats."""
    if arguments["mode"] != "linear_ramp" or x.dtype.kind not in "iu":
        return np.pad(x, width, **arguments)
    pairs = np.broadcast_to(arguments.get("end_values", 0), (x.ndim, 2)).tolist()

    def ramps(row, widths, axis, _):
        (first, last), (before, after) = pairs[axis], widths
        inside = row[before : len(row) - after]
        left = [first + (int(inside[0]) - first) * i // before for i in range(before)]
        right = [last + (int(inside[-1]) - last) * i // after for i in range(after)]
        row[:] = np.array([*left, *inside.tolist(), *right[::-1]]).astype(row.dtype)

    return np.pad(x, width, ramps)


@pytest.mark.parametrize("dtype", few(DTYPES, "float64"))
@pytest.mark.parametrize("arguments", few(ARGUMENTS, *QUICK, *DEFAULTS), ids=str)
def test_pad_is_numpys(arguments, dtype):
    x = (9 * X).astype(dtype) if dtype != "bool" else X > 0.5
    if dtype == "bool" and arguments.get("reflect_type") == "odd":
        pytest.skip("NumPy does not subtract bools")
    if dtype == "complex128" and arguments["mode"] in ("maximum", "minimum", "median"):
        with pytest.raises(TypeError, match="complex"):
            pt.pad(x, 1, **arguments)
        return
    widths = (2, ((0, 3), (4, 0)), ((7, 8), (11, 12)), (1, 2))
    variable = pt.matrix(dtype=dtype)
    outputs = [pt.pad(variable, w, **arguments) for w in widths]
    rtol = 1e-5 if dtype == "float32" else 1e-12
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        for value in (x, x[:1], x[:, :1]):
            for w, found in zip(widths, evaluate(outputs, [variable], [value], mode), strict=True):
                expected = padded(value, w, **arguments)
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_pad_of_large_integers(dtype):
    """Differences times the number of steps exceed 64 bits; float64 does not hold the numbers."""
    x = np.array([2**62, 5, 7]).astype(dtype)
    for n in (2, 4, 5):
        ramp = pt.pad(x, n, mode="linear_ramp", end_values=(0, 3)).eval()
        if dtype == "int64":
            assert ramp[:n].tolist() == [2**62 * i // n for i in range(n)]
        np.testing.assert_allclose(ramp, np.pad(x, n, "linear_ramp", end_values=(0, 3)), rtol=1e-15)
        for mode in ("reflect", "symmetric"):
            odd = pt.pad(x + np.array(11, dtype), n, mode, reflect_type="odd")
            expected = np.pad(x + np.array(11, dtype), n, mode, reflect_type="odd")
            np.testing.assert_array_equal(odd.eval(), expected)


@pytest.mark.parametrize("mode", ["mean", "median", "maximum", "minimum"])
def test_statistics_of_bools(mode):
    for x in ([True, False, False, False], [True, True, False, True], [False, False]):
        expected = np.pad(np.array(x), 2, mode)
        np.testing.assert_array_equal(pt.pad(np.array(x), 2, mode).eval(), expected)


@pytest.mark.parametrize("arguments", [{"pad_width": 1.5}, {"mode": "mean", "stat_length": 1.5}])
def test_lengths_that_are_no_integers(arguments):
    with pytest.raises(TypeError, match="is an integer"):
        pt.pad(pt.dvector(), **{"pad_width": 1, **arguments})


def test_widths_of_all_forms():
    x, n, w = pt.dmatrix("x"), pt.lscalar("n"), pt.tensor("w", dtype="int64", shape=(2, 2))
    given = np.array([[1, 0], [2, 3]])
    outputs = [pt.pad(x, n), pt.pad(x, (n, 1)), pt.pad(x, [[n, 1], [0, n]]), pt.pad(x, w, "edge")]
    outputs += [pt.pad(x, (2,)), pt.pad(x, ((1,), (2,))), pt.pad(x, w[0]), pt.pad(x, 0, "wrap")]
    found = evaluate(outputs, [x, n, w], [X, np.array(2), given])
    widths = [2, (2, 1), [[2, 1], [0, 2]], given, 2, ((1,), (2,)), given[0], 0]
    for k, (value, width) in enumerate(zip(found, widths, strict=True)):
        np.testing.assert_array_equal(value, np.pad(X, width, "edge" if k == 3 else "constant"))
    assert pt.pad(3.0, 2).eval() == 3.0 and pt.pad(3.0, 2, "edge").eval() == 3.0
    f = phintys.function([x, n], pt.pad(x, n, "edge"))
    with pytest.raises(ValueError):
        f(X, -1)
    with pytest.raises(IndexError):
        f(X[:0], 1)


@pytest.mark.parametrize("arguments", few(ARGUMENTS, *QUICK), ids=str)
def test_derivatives_of_pad(arguments):
    x = X[:2, :3]
    weights = RNG.normal(size=np.pad(x, ((1, 2), (3, 0))).shape)
    check_derivatives(lambda x: pt.pad(x, ((1, 2), (3, 0)), **arguments) * weights, [x])


def test_batches_of_pad():
    for mode in ("constant", "edge", "mean", "reflect"):
        check_batched(lambda x, mode=mode: pt.pad(x, 2, mode), [X])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pad_width": 1, "mode": "none"}, "no mode"),
        ({"pad_width": 1, "mode": "edge", "constant_values": 1}, "an argument of the modes"),
        ({"pad_width": 1, "mode": "reflect", "reflect_type": "some"}, "'even' or 'odd'"),
        ({"pad_width": -1}, "no negative"),
        ({"pad_width": (1, 2, 3)}, "a pair for each"),
        ({"pad_width": ((1, 2), (3, 4), (5, 6))}, "a pair for each"),
        ({"pad_width": pt.lvector("w")}, "must be known"),
    ],
)
def test_wrong_arguments_of_pad(arguments, message):
    with pytest.raises(ValueError, match=message):
        pt.pad(pt.dmatrix("x"), **arguments)


# ------------------------------------------------------------------------ interpolation

XP, FP = np.array([0.0, 1.0, 2.5, 4.0]), np.array([3.0, 5.0, 4.0, -1.0])
AT = np.array([[-1.0, 0.0, 0.5, 1.0], [2.0, 4.0, 5.0, np.nan], [np.inf, -np.inf, 3.9, 1e-9]])


@pytest.mark.parametrize(
    "arguments",
    [{}, {"left": 7, "right": 9.5}, {"period": 3}, {"period": -3.5}, {"period": -128}],
    ids=str,
)
def test_interp_is_numpys(arguments):
    x = AT[:2] if "period" in arguments else AT
    for points, values in ((XP, FP), (XP[:1], FP[:1]), (np.array([0, 1, 1, 2]), np.arange(4))):
        x = x[:1] if len(points) == 1 else x  # NumPy gives the value there for NaN too
        check(
            lambda x, p, v: pt.interp(x, p, v, **arguments),
            lambda x, p, v: np.interp(x, p, v, **arguments),
            [x, points, values],
        )
    check(lambda x: pt.interp(x, XP, FP), lambda x: np.interp(x, XP, FP), [np.array(3)])


def test_interp_of_infinities():
    inf, nan = np.inf, np.nan
    points = [-inf, 0.0, 1.0, inf]
    at = np.array([-inf, -5.0, 0.0, 0.5, 1.0, 5.0, inf, nan])
    for values in ([1, 2, 3, 4], [inf, inf, 1, -inf], [1, inf, -inf, 2], [inf, -inf, nan, nan]):
        with np.errstate(all="ignore"):
            expected = np.interp(at, points, values)
            finite = np.interp(at, XP, values)
        np.testing.assert_array_equal(pt.interp(at, points, values).eval(), expected)
        np.testing.assert_array_equal(pt.interp(at, XP, values).eval(), finite)


def test_there_is_one_value_for_each_point():
    x, y = pt.dvectors("x", "y")
    for build in (lambda: pt.interp(0.5, x, y), lambda: pt.interpolate1d(x, y)(0.5)):
        f = phintys.function([x, y], build())
        for n in (2, 4):
            with pytest.raises(ValueError, match=f"{n}, not 3|3, not {n}"):
                f(np.arange(3.0), np.arange(n))


def test_interp_has_the_slope_of_the_line_at_a_point():
    check_derivatives(lambda x: pt.interp(x, XP, 2 * XP), [XP[1:-1]])


def test_derivatives_of_interpolation():
    x = np.array([-1.0, 0.3, 1.7, 3.0, 5.0])
    check_derivatives(pt.interp, [x, XP, FP])
    for method in ("linear", "mean"):
        check_derivatives(lambda x, f, m=method: pt.interpolate1d(XP, f, m)(x) * x, [x, FP])
    for wrong in (lambda: pt.interp(x, XP[None], FP), lambda: pt.interpolate1d(XP, FP, "best")):
        with pytest.raises(ValueError):
            wrong()


#: PyTensor's results for the points 0, 1, 2 with values 3, 5, 4 at these places
PLACES = np.array([-1.0, 0, 0.4, 0.5, 0.6, 1.25, 2, 3])
TABLE = {
    ("linear", True): [1, 3, 3.8, 4, 4.2, 4.75, 4, 3],
    ("nearest", True): [3, 3, 3, 3, 5, 5, 4, 4],
    ("first", True): [3, 3, 3, 3, 3, 5, 5, 4],
    ("last", True): [3, 3, 5, 5, 5, 4, 4, 4],
    ("mean", True): [4, 4, 4, 4, 4, 4.5, 4.5, 4.5],
    ("linear", False): [3, 3, 3.8, 4, 4.2, 4.75, 4, 4],
    ("nearest", False): [3, 3, 3, 3, 5, 5, 4, 4],
    ("first", False): [3, 3, 3, 3, 3, 5, 5, 4],
    ("last", False): [3, 3, 5, 5, 5, 4, 4, 4],
    ("mean", False): [3, 3, 4, 4, 4, 4.5, 4.5, 4],
}


@pytest.mark.parametrize(("method", "extrapolate"), TABLE)
def test_interpolate1d(method, extrapolate):
    points, values = np.arange(3.0), np.array([3.0, 5.0, 4.0])
    expected = np.array(TABLE[method, extrapolate], "float64")

    def build(x, p, v):
        return pt.interpolate1d(p, v, method, extrapolate=extrapolate)(x)

    check(build, lambda *_: expected, [PLACES, points, values])
    padded = pt.interpolate1d(points, values, method, 7.0, 9.0, extrapolate)(PLACES)
    if not extrapolate:
        expected = np.array([7, 7, *expected[2:-1], 9])
    np.testing.assert_allclose(padded.eval(), expected)
