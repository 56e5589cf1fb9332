"""Running sums and products: native code against ``perform``."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from tensor_checks import check, check_batched, check_derivatives
from tiers import few, rest

import phintys
import phintys.tensor as pt
from phintys.lowering.program import Scan
from phintys.scalar.native import NATIVE_DTYPES

pytestmark = pytest.mark.widths

SHAPES = [(0, 3), (3, 0), (1, 1), (1, 9), (9, 1), (5, 7), (3, 70)]
NATIVE = [
    "FAST_RUN",
    pytest.param(
        "C", marks=[rest, pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")]
    ),
]


def drawn(dtype, shape):
    values = np.random.default_rng(4).integers(-3, 4, shape).astype(dtype)
    return values * np.asarray(1.25, dtype) if values.dtype.kind == "f" else values


def results(mode, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    outputs = [
        op(part, axis=axis)
        for op in (pt.cumsum, pt.cumprod)
        for part in (x, x[::-1, ::2], x.T, pt.broadcast_to(x[:, :1], x.shape))
        for axis in (None, 0, 1)
    ]
    return phintys.function([x], outputs, mode=mode)


@pytest.mark.parametrize("mode", NATIVE)
@pytest.mark.parametrize(
    "dtype", few(sorted(NATIVE_DTYPES), "float32", "float64", "int8", "int64", "bool")
)
def test_as_perform_does(mode, dtype):
    native, reference = results(mode, dtype), results("FAST_COMPILE", dtype)
    for shape in SHAPES:
        x = drawn(dtype, shape)
        with np.errstate(over="ignore"):
            for found, expected in zip(native(x), reference(x), strict=True):
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", NATIVE)
def test_special_values(mode):
    x = pt.dvector("x")
    f = phintys.function([x], [pt.cumsum(x), pt.cumprod(x)], mode=mode)
    for values in ([-0.0, -0.0, 0.0], [1, np.inf, -np.inf, 2], [np.nan, 1], [1e308, 1e308], []):
        array = np.array(values, "float64")
        with np.errstate(invalid="ignore", over="ignore"):
            expected = np.cumsum(array), np.cumprod(array)
        for found, wanted in zip(f(array), expected):
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_run_through_perform(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype) + 1j
    check(lambda x: pt.cumsum(x, axis=1), lambda x: np.cumsum(x, 1), [x.astype(dtype)])


def test_is_one_step():
    x = pt.dmatrix("x")
    steps = phintys.function([x], pt.cumsum(x, axis=0)).program.steps
    assert [type(s) for s in steps] == [Scan]


def test_many_empty_rows_take_no_time():
    n = pt.lscalar("n")
    f = phintys.function([n], pt.cumsum(pt.zeros((n, n, 0)), axis=2).shape[0])
    g = phintys.function([n], pt.cumsum(pt.zeros((n, 0)), axis=1))
    assert f(10) == 10
    assert g(2**50).shape == (2**50, 0)


def test_of_an_updated_shared_variable():
    total = phintys.shared(np.arange(4.0))
    f = phintys.function([], total.sum(), updates={total: pt.cumsum(total)})
    assert f() == 6
    np.testing.assert_array_equal(total.get_value(), [0, 1, 3, 6])


def test_of_a_length_that_is_computed():
    x, k = pt.dvector("x"), pt.lvector("k")
    f = phintys.function([x, k], pt.cumsum(x[: k.sum()]) * 2)
    np.testing.assert_array_equal(f(np.ones(5), [1, 2]), [2, 4, 6])
    assert phintys.function([k], pt.cumsum(k)[-1])([1, 2]) == 3


def test_a_result_as_a_length():
    k = pt.lvector("k")
    f = phintys.function([k], pt.arange(pt.cumsum(k)[-1]))
    np.testing.assert_array_equal(f([1, 2]), [0, 1, 2])


@pytest.mark.parametrize("mode", ["add", "mul"])
def test_derivatives(mode):
    op = pt.cumsum if mode == "add" else pt.cumprod
    check_derivatives(lambda x: op(x, axis=1), [np.array([[1.5, -2.0, 0.5], [2.0, 1.0, 3.0]])])


def test_batched():
    check_batched(lambda x: pt.cumsum(x, axis=0), [np.arange(12.0).reshape(2, 3, 2)])
