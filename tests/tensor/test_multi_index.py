"""`ravel_multi_index` and `unravel_index` on every backend, and their errors."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import BACKENDS, check, check_batched, compiled

import phintys.tensor as pt

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("how", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("mode", BACKENDS)
def test_ravel_multi_index_is_numpys(mode, how, order):
    i, j, n = pt.lmatrix("i"), pt.vector("j", dtype="int8"), pt.lscalar("n")
    f = compiled(mode, [i, j, n], pt.ravel_multi_index((i, j), (3, n), how, order))
    a, b = RNG.integers(0, 3, (4, 5)), RNG.integers(0, 6, 5).astype("int8")
    if how != "raise":
        a, b = 3 * a - 4, 4 * b - 9
    np.testing.assert_array_equal(
        f(a, b, 6), np.ravel_multi_index((a, b[None]), (3, 6), how, order)
    )
    assert f(a[:0], b, 6).shape == (0, 5)
    if how == "raise":
        for wrong in [(a + 3, b), (a, b - 9)]:
            with pytest.raises(ValueError):
                f(*wrong, 6)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mode", BACKENDS)
def test_unravel_index_is_numpys(mode, order):
    i, dims = pt.lmatrix("i"), pt.tensor("dims", dtype="int32", shape=(3,))
    f = compiled(mode, [i, dims], list(pt.unravel_index(i, dims, order)))
    a, lengths = RNG.integers(0, 36, (4, 5)), np.array([3, 6, 2], "int32")
    for found, expected in zip(f(a, lengths), np.unravel_index(a, lengths, order), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == "int64"
    assert [x.shape for x in f(a[:0], 0 * lengths)] == [(0, 5)] * 3
    for wrong in (a - 36, a + 36):
        with pytest.raises(ValueError):
            f(wrong, lengths)


def test_numbers_and_sequences():
    check(lambda i: pt.unravel_index(i, (3, 4))[1], lambda i: i % 4, [np.array(7)])
    check(
        lambda i, j: pt.ravel_multi_index([i, j], np.array([3, 4])),
        lambda i, j: i * 4 + j,
        [np.array(2), np.array([1, 3])],
    )
    check_batched(lambda i: pt.unravel_index(i, (3, 4), "F")[0], [np.arange(5)])
    check_batched(lambda i, j: pt.ravel_multi_index((i, j), (3, 4)), [np.arange(3), np.arange(3)])


@pytest.mark.parametrize("mode", BACKENDS[:3])
def test_shapes_that_are_no_shapes(mode):
    i, n = pt.lvector("i"), pt.lscalar("n")
    for out in (pt.ravel_multi_index((i, i), (2, n)), pt.unravel_index(i, (2, n))[0]):
        f = compiled(mode, [i, n], out)
        for wrong in (-1, 2**62):
            with pytest.raises(ValueError):
                f([0], wrong)


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda x, i: pt.unravel_index(x, (3, 4)), TypeError),
        (lambda x, i: pt.unravel_index(i, i), ValueError),
        (lambda x, i: pt.unravel_index(i, (3, 4), "K"), ValueError),
        (lambda x, i: pt.ravel_multi_index(i, (3,)), TypeError),
        (lambda x, i: pt.ravel_multi_index((i, i), (3,)), ValueError),
        (lambda x, i: pt.ravel_multi_index((x,), (3,)), TypeError),
        (lambda x, i: pt.ravel_multi_index((i,), (3,), mode="nearest"), ValueError),
    ],
)
def test_wrong_arguments(build, error):
    with pytest.raises(error):
        build(pt.dvector("x"), pt.lvector("i"))
