"""Lengths and positions at the limits of their dtypes, in the modes that transpile."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError

MODES = ["JAX", "NUMBA"]


def outcome(function, values):
    """The result as a list, or the class of the error."""
    try:
        found = function(*values)
    except (IndexError, ShapeError) as exc:
        return type(exc)
    return found.shape, found.tolist()


def compiled(mode, inputs, output):
    return phintys.function(inputs, output, mode=mode, on_unused_input="ignore")


def assert_as_reference(mode, inputs, output, *draws):
    """The function compiled in the mode and in the reference's has the same outcomes."""
    f, reference = (compiled(m, inputs, output) for m in (mode, "PY"))
    for values in draws:
        assert outcome(f, values) == outcome(reference, values), values


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint64"])
def test_an_axis_may_be_longer_than_the_dtype_of_its_positions_holds(mode, dtype):
    x, i = pt.fvector("x"), pt.vector("i", dtype=dtype)
    n = 300 if dtype.endswith("8") else 70_000
    least = np.array(-100 if dtype[0] == "i" else 100).astype(dtype)
    values = np.arange(n, dtype="float32"), np.array([least, 7, 127], dtype)
    short = values[0][:120], values[1]
    assert_as_reference(mode, [x, i], x[i], values, short)
    assert_as_reference(mode, [x, i], x[i[0]], values)
    assert_as_reference(mode, [x, i], pt.inc_subtensor(x[i], 2.0).sum(), values)


@pytest.mark.parametrize("mode", MODES)
def test_unsigned_positions_do_not_wrap_around(mode):
    x, u = pt.dvector("x"), pt.scalar("u", dtype="uint64")
    numbers = (2, 4, 5, 2**63 - 1, 2**63, 2**64 - 1)
    draws = [(np.arange(5.0), np.uint64(value)) for value in numbers]
    for output in (x[u], x[:u], x[u:], x[::u], pt.set_subtensor(x[u:], 9.0)):
        assert_as_reference(mode, [x, u], output, *draws)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bounds", [(-5, 0), (-5, 0, 2), (0, 3), (3, 0), (5, 0, -2)])
def test_arange_from_or_to_a_constant_zero(mode, bounds):
    i = pt.lscalar("i")
    for at, value in enumerate(bounds):
        given = [i if k == at else bound for k, bound in enumerate(bounds)]
        assert_as_reference(mode, [i], pt.arange(*given), [value])


@cache
def reshapes(mode):
    x, n, m = pt.dvector("x"), pt.lscalar("n"), pt.lscalar("m")
    return compiled(mode, [x, n, m], x.reshape((n, m)) + 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "size, shape",
    [
        (0, (2**32, 2**32)), (0, (0, -1)), (0, (-1, 3)), (0, (3, -1)), (0, (0, 5)), (0, (2**62, 0)),
        (6, (-2, -3)), (6, (-1, -1)), (6, (2, -1)), (6, (4, -1)), (6, (3, 2)), (6, (-1, 2**63 - 1)),
    ],
)  # fmt: skip
def test_reshape_to_lengths_that_fit_or_do_not(mode, size, shape):
    values = np.arange(float(size)), *shape
    assert outcome(reshapes(mode), values) == outcome(reshapes("PY"), values)


@pytest.mark.needs("numba")
def test_no_memory_is_read_of_a_tensor_without_elements():
    x, v = pt.dvector("x"), pt.lvector("v")
    f = phintys.function([x, v], x.reshape(v, ndim=2)[5, 7], mode="NUMBA")
    with pytest.raises(ShapeError):
        f(np.zeros(0), [2**32, 2**32])


@pytest.mark.parametrize("mode", MODES)
def test_positions_broadcast_along_lengths_that_types_know_to_be_one(mode):
    x, i, j = pt.dmatrix("x"), pt.lvector("i"), pt.lvector("j")
    one = pt.tensor("one", dtype="int64", shape=(1,))
    values = np.arange(6.0).reshape(3, 2), [1], [0, 1, 0]
    for part in (lambda i: x[i, j], lambda i: x[i, j].set(7.0), lambda i: x[i, j].inc(j * 1.0)):
        f, reference = (compiled(m, [x, i, j], part(i)) for m in (mode, "PY"))
        assert outcome(f, values) is outcome(reference, values)
        fitting = values[0], [1, 0, 2], [0, 1, 0]
        assert outcome(f, fitting) == outcome(reference, fitting)
        assert_as_reference(mode, [x, one, j], part(one), values)
