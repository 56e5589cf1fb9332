"""Running sums and products: native code against ``perform``."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from tensor_checks import check, check_batched, check_derivatives, compiled

import phintys
import phintys.tensor as pt
from phintys.lowering.program import Scan
from phintys.scalar.native import NATIVE_DTYPES
from phintys.tensor.recurrence import LinearRecurrence

pytestmark = pytest.mark.widths

SHAPES = [(0, 3), (3, 0), (1, 1), (1, 9), (9, 1), (5, 7), (3, 70)]
NATIVE = [
    "FAST_RUN",
    pytest.param("C", marks=pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")),
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
@pytest.mark.parametrize("dtype", sorted(NATIVE_DTYPES))
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


def test_derivatives_of_products_at_zeros():
    """Any number of zeros in a row, also in the second derivative."""
    x = np.array([[1.5, 0.0, 0.5, 2.0], [0.0, 3.0, 0.0, 0.0], [2.0, 1.0, 0.5, 0.0]])
    for axis in (0, 1):
        check_derivatives(lambda x, axis=axis: pt.cumprod(x, axis), [x])
        check_derivatives(lambda x, axis=axis: _slope(x, axis), [x])


def _slope(x, axis):
    weights = np.arange(1.0, 13.0).reshape(3, 4)
    return phintys.grad((pt.cumprod(x, axis) * weights).sum(), x)


# -------------------------------------------------------------------------- recurrences


def recurred(a, b, reverse):
    if reverse:  # y[k] depends on y[k + 1] through a[k + 1]
        a, b = np.roll(a, -1, -1)[..., ::-1], b[..., ::-1]
    y = b.copy()
    for k in range(1, y.shape[-1]):
        y[..., k] = a[..., k] * y[..., k - 1] + b[..., k]
    return y[..., ::-1] if reverse else y


@pytest.mark.own_width
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("mode", [*NATIVE, "FAST_COMPILE", "NUMBA", "JAX"])
@pytest.mark.filterwarnings("ignore:Numba has no values")
def test_recurrences(mode, dtype):
    a, b = (pt.tensor(name, dtype=dtype, shape=(None, None)) for name in "ab")
    outputs = [
        LinearRecurrence(reverse)(*given)
        for reverse in (False, True)
        for given in ((a, b), (a[:, ::2], b[:, ::2]), (a.T, b.T))
    ]
    f = compiled(mode, [a, b], outputs)
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        x, y = ((rng.normal(size=shape) + 1j * rng.normal(size=shape)) for _ in range(2))
        x, y = (v.astype(dtype) if dtype[0] == "c" else v.real.astype(dtype) for v in (x, y))
        found = iter(f(x, y))
        for reverse in (False, True):
            for u, v in ((x, y), (x[:, ::2], y[:, ::2]), (x.T, y.T)):
                one = next(found)
                assert one.dtype == dtype
                rtol = {"float16": 0.1, "float32": 1e-3, "complex64": 1e-3}.get(dtype, 1e-10)
                np.testing.assert_allclose(one, recurred(u, v, reverse), rtol=rtol, atol=rtol)
    with pytest.raises(ValueError):
        f(np.ones((2, 3), dtype), np.ones((2, 4), dtype))


def test_the_first_factor_is_not_used():
    a, b = np.array([np.inf, 2.0, np.nan]), np.array([1.0, 2.0, 3.0])
    check(LinearRecurrence(), lambda a, b: np.array([1.0, 4.0, np.nan]), [a, b])
    check(
        LinearRecurrence(reverse=True), lambda a, b: np.array([7.0, 5.0, 3.0]),
        [np.array([np.inf, 1.2, 1.0]), b],
    )  # fmt: skip


def test_batches_and_wrong_inputs_of_recurrences():
    rng = np.random.default_rng(3)
    for reverse in (False, True):
        check_batched(LinearRecurrence(reverse), [rng.normal(size=5), rng.normal(size=5)])
        op, fixed = LinearRecurrence(reverse), rng.normal(size=(2, 5))
        check_batched(lambda b, op=op, fixed=fixed: op(fixed, b), [fixed + 1])
    for given in ((pt.dvector(), pt.dmatrix()), (pt.lvector(), pt.lvector()), (1.0, 2.0)):
        with pytest.raises(TypeError, match="floating tensors of one rank"):
            LinearRecurrence()(*given)
