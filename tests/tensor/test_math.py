"""Functions made of elementwise ones; diagonals; repeats."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import MODES, assert_like, check, check_batched, check_derivatives, evaluate
from tiers import few

import phintys.tensor as pt
from phintys.tensor.diagonal import ExtractDiag
from phintys.tensor.repeat import Repeat

RNG = np.random.default_rng(0)
EXTREMES = np.array([0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])


def test_rounding():
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994])
    check(pt.round, np.round, [x])
    away = np.sign(x) * np.where(np.abs(x) < 0.5, 0, np.floor(np.abs(x) + 0.5))
    check(lambda x: pt.round(x, "half_away_from_zero"), lambda x: away, [x])
    check(pt.iround, lambda x: np.round(x).astype("int64"), [x])
    with pytest.raises(ValueError, match="mode of round"):
        pt.round(pt.dvector(), "up")


def test_power_of_numbers_is_a_number():
    assert pt.power(10, 3) == 1000 and pt.power(2, -1) == 0.5
    np.testing.assert_array_equal(pt.power(2, np.arange(3)), [1, 2, 4])
    check(lambda x: pt.power(x, 2), np.square, [EXTREMES])


def test_logaddexp_of_one_or_more():
    x = np.array([-1000.0, 0.0, 1000.0])
    check(pt.logaddexp, lambda x: x, [x])
    check(lambda x: pt.logaddexp(x, x, x), lambda x: x + np.log(3), [x])
    with pytest.raises(TypeError, match="one argument or more"):
        pt.logaddexp()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "bool"])
def test_quotients_that_are_rounded_up(dtype):
    x = np.array([0, 1, 4, 5, 7, 100], dtype)
    found = pt.ceil_intdiv(x, np.array(5, dtype) if dtype != "bool" else 5).eval()
    np.testing.assert_array_equal(found, np.ceil(x.astype("float64") / 5))


@pytest.mark.parametrize("equal_nan", [False, True])
def test_closeness(equal_nan):
    x, y = np.meshgrid(EXTREMES, np.concatenate([EXTREMES, [1 + 1e-9, 1 + 1e-4]]))
    check(
        lambda x, y: pt.isclose(x, y, equal_nan=equal_nan),
        lambda x, y: np.isclose(x, y, equal_nan=equal_nan),
        [x, y],
    )
    check(lambda x, y: pt.isclose(x, y), np.isclose, [np.uint8([1, 2, 3]), np.uint8([2, 1, 3])])
    check(lambda x: pt.allclose(x, x), lambda x: np.array(False), [EXTREMES])


def test_infinities_and_nan():
    check(pt.isposinf, np.isposinf, [EXTREMES])
    check(pt.isneginf, np.isneginf, [EXTREMES.astype("float32")])
    for dtype in ("float32", "float64"):
        check(pt.nan_to_num, np.nan_to_num, [EXTREMES.astype(dtype)])
    check(
        lambda x: pt.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
        lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
        [EXTREMES],
    )
    pairs = np.add.outer(EXTREMES, np.zeros_like(EXTREMES)) + 0j
    pairs.imag = EXTREMES
    for dtype in ("complex64", "complex128"):
        check(pt.nan_to_num, np.nan_to_num, [pairs.astype(dtype)])
    i = pt.ivector("i")
    assert pt.nan_to_num(i) is i


def test_integer_quotients():
    a, b = np.array([7, -7, 8, -8, 0]), np.array([2, 2, -4, 3, 5])
    check(pt.ceil_intdiv, lambda a, b: -(-a // b), [a, b])
    for i in range(2):
        check(lambda a, b, i=i: pt.divmod(a, b)[i], lambda a, b, i=i: np.divmod(a, b)[i], [a, b])


def test_choice():
    x, y, z = RNG.normal(size=(3, 4))
    check(pt.largest, lambda *v: np.max(v, axis=0), [x, y, z])
    check(pt.smallest, lambda *v: np.min(v, axis=0), [x, y, z])
    check(lambda x, y: pt.where(x > 0, x, y), lambda x, y: np.where(x > 0, x, y), [x, y])
    (found,) = pt.where(pt.as_tensor(x) > 0)
    assert_like(evaluate(found), np.nonzero(x > 0)[0])
    with pytest.raises(ValueError, match="one argument, or three"):
        pt.where(x > 0, x)


# ------------------------------------------------------------------------------ diagonals


@pytest.mark.parametrize("offset", few([-3, -1, 0, 1, 2, 5], -1, 2))
@pytest.mark.parametrize("axes", few([(0, 1), (2, 0), (-1, -2)], (0, 1), (2, 0)))
def test_diagonal(offset, axes):
    x = RNG.normal(size=(3, 4, 2))
    check(lambda x: pt.diagonal(x, offset, *axes), lambda x: np.diagonal(x, offset, *axes), [x])
    check(lambda x: pt.trace(x, offset, *axes), lambda x: np.trace(x, offset, *axes), [x])
    if -2 < offset < 2:
        check_derivatives(lambda x: pt.diagonal(x, offset, *axes) ** 2, [x])
        check_batched(lambda x: pt.diagonal(x, offset, *axes), [x])


@pytest.mark.parametrize("k", [-2, 0, 1])
def test_diag(k):
    check(lambda v: pt.diag(v, k), lambda v: np.diag(v, k), [np.arange(1.0, 4.0)])
    check(lambda m: pt.diag(m, k), lambda m: np.diag(m, k), [RNG.normal(size=(3, 4))])
    check_derivatives(lambda v: pt.diag(v, k) ** 2, [np.arange(1.0, 4.0)])
    batch = RNG.normal(size=(2, 3))
    expected = np.stack([np.diag(v, k) for v in batch])
    check(lambda v: pt.alloc_diag(v, k, 1, 2), lambda v: expected, [batch])
    check(lambda v: pt.alloc_diag(v, k, 2, 1), lambda v: expected.swapaxes(1, 2), [batch])


def test_diagonal_misuse():
    assert pt.diagonal(pt.dmatrix()).owner.op == ExtractDiag(0, 0, 1)
    assert pt.tensor(shape=(3, 5)).diagonal(1).type.shape == (3,)
    for wrong in (
        lambda: pt.diag(pt.dscalar()),
        lambda: pt.diag(pt.dtensor3()),
        lambda: pt.diagonal(pt.dvector()),
        lambda: pt.diagonal(pt.dmatrix(), 0, 1, 1),
        lambda: ExtractDiag(0, 0, 2)(pt.dmatrix()),
        lambda: pt.alloc_diag(pt.dscalar()),
    ):
        with pytest.raises(ValueError):
            wrong()


# -------------------------------------------------------------------------------- repeats


@pytest.mark.parametrize("axis", few([None, 0, 1, -1], None, 1))
def test_repeat(axis):
    x = RNG.normal(size=(2, 3))
    n = 6 if axis is None else x.shape[axis]
    for repeats in (3, np.array([2]), np.arange(n)):
        check(lambda x, r=repeats: pt.repeat(x, r, axis),
              lambda x, r=repeats: np.repeat(x, r, axis), [x])  # fmt: skip
        check_derivatives(lambda x, r=repeats: pt.repeat(x, r, axis) ** 2, [x])
    check(lambda x, r: x.repeat(r, axis), lambda x, r: np.repeat(x, r, axis), [x, np.arange(n)])
    if axis is not None:
        check_batched(lambda x: pt.repeat(x, np.arange(n), axis), [x])


def test_repeat_structure_and_misuse():
    x = pt.dmatrix("x")
    assert pt.repeat(x, pt.lvector(), 1).owner.op == Repeat(1)
    assert pt.repeat(pt.tensor(shape=(2, 3)), 2, axis=0).type.shape == (4, 3)
    for wrong, error in ((pt.dscalar(), TypeError), (pt.lmatrix(), ValueError)):
        with pytest.raises(error):
            pt.repeat(x, wrong)
    for mode in MODES:
        r = pt.lvector("r")
        with pytest.raises(ValueError):
            evaluate(pt.repeat(x, r, 0), [x, r], [np.ones((2, 3)), np.array([1, 2, 3])], mode)
        with pytest.raises(ValueError):  # NumPy would repeat the only count
            evaluate(pt.repeat(x, r, 0), [x, r], [np.ones((2, 3)), np.array([2])], mode)


@pytest.mark.parametrize("reps", [2, (2,), (1, 3), (2, 1, 2), ()])
def test_tile(reps):
    for x in (np.arange(3.0), RNG.normal(size=(2, 3)), np.zeros((0, 2))):
        check(lambda x: pt.tile(x, reps), lambda x: np.tile(x, reps), [x])
    check_derivatives(lambda x: pt.tile(x, reps) ** 2, [np.arange(3.0)])


@pytest.mark.parametrize("shift", few([-7, -1, 0, 1, 3, 10], -7, 1))
@pytest.mark.parametrize("axis", few([None, 0, -1], None, -1))
def test_roll(shift, axis):
    x = RNG.normal(size=(2, 3))
    check(lambda x: pt.roll(x, shift, axis), lambda x: np.roll(x, shift, axis), [x])
    check(lambda x, s: pt.roll(x, s, axis), lambda x, s: np.roll(x, s, axis), [x, shift])
    check_derivatives(lambda x: pt.roll(x, shift, axis) ** 2, [x])


@pytest.mark.parametrize(
    "shift, axis",
    [
        ((1, 1), 0),
        ((1, 2), (0, 1)),
        (1, (0, 1)),
        ((1, -3), (1, -1)),
        ((2,), (0, 1)),
        ((1, 2), None),
    ],
)
def test_roll_along_several_axes(shift, axis):
    """It was a ValueError; PyTensor's is a TypeError."""
    x = RNG.normal(size=(2, 3))
    check(lambda x: pt.roll(x, shift, axis), lambda x: np.roll(x, shift, axis), [x])
    check_derivatives(lambda x: pt.roll(x, shift, axis) ** 2, [x])


def test_roll_by_a_vector_of_shifts():
    x, shifts = RNG.normal(size=(2, 3)), np.array([1, 2])
    for axis in (0, (0, 1)):
        check(
            lambda x, s, axis=axis: pt.roll(x, s, axis),
            lambda x, s, axis=axis: np.roll(x, s, axis),
            [x, shifts],
        )
    with pytest.raises(ValueError, match="zip"):
        pt.roll(x, (1, 2, 3), axis=(0, 1))


@pytest.mark.parametrize(
    ("shift", "dtype"), [(-128, "int8"), (255, "uint8"), (2**64 - 1, "uint64")]
)
def test_roll_by_the_extremes_of_a_dtype(shift, dtype):
    expected = np.roll(np.arange(7.0), int(shift) % 7)
    check(
        lambda x, s: pt.roll(x, s), lambda x, s: expected, [np.arange(7.0), np.array(shift, dtype)]
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64"])
def test_isclose_of_integers_that_are_far_apart(dtype):
    info = np.iinfo(dtype) if dtype != "bool" else None
    low, high = (info.min, info.max) if info else (0, 1)
    a, b = np.array([low, high, high, 1], dtype), np.array([high, low, high, 0], dtype)
    check(lambda x, y: pt.isclose(x, y), np.isclose, [a, b])


def test_functions_of_other_modules_that_pytensor_has_in_tensor_math():
    names = (
        "alloc arange as_tensor concatenate constant expand_dims join ones_like shape "
        "specify_shape stack tensor"
    )
    for name in names.split():
        assert getattr(pt.math, name) is getattr(pt, name)


@pytest.mark.parametrize("conj", [pt.conj, pt.conjugate, lambda x: x.conj()])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_the_conjugate_of_a_real_tensor_is_the_tensor(conj, dtype):
    x = pt.vector(dtype=dtype)
    assert conj(x) is x
