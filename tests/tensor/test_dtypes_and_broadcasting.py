"""Dtypes and shapes of elementwise functions: what is promoted, and what broadcasts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.config import config
from phintys.errors import ShapeError
from phintys.tensor.variable import TensorVariable

INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS, "complex64", "complex128"]
MODES = ["FAST_COMPILE", "FAST_RUN"]


@pytest.mark.parametrize("first, second", list(product(DTYPES, DTYPES)))
def test_dtypes_are_upcast_as_numpys(first: str, second: str) -> None:
    x, y = pt.vector("x", dtype=first), pt.matrix("y", dtype=second)
    expected = np.result_type(first, second).name
    for found in (x + y, x * y, pt.switch(pt.eq(x, x), x, y)):
        assert found.type.dtype == expected
    assert pt.concatenate([x, y.flatten()]).type.dtype == expected
    if not {"complex64", "complex128"} & {first, second}:
        assert pt.maximum(x, y).type.dtype == expected


def test_upcasts_that_lose_no_digits() -> None:
    def dtype(*given: str) -> str:
        return pt.add(*[pt.scalar(dtype=d) for d in given]).type.dtype

    assert (
        dtype("int64", "float32")
        == dtype("uint64", "int64")
        == dtype("int32", "float32")
        == "float64"
    )
    assert dtype("int8", "float32") == dtype("int16", "float32") == "float32"
    assert dtype("complex64", "float64") == "complex128"


@pytest.mark.parametrize("first, second", list(product(INTEGERS, INTEGERS)))
def test_quotients_of_integers_are_of_float_x(first: str, second: str) -> None:
    x, y = pt.scalar("x", dtype=first), pt.scalar("y", dtype=second)
    for floatx in ("float32", "float64"):
        with config.change_flags(floatX=floatx):
            assert (x / y).type.dtype == pt.true_div(x, y).type.dtype == floatx
    assert (x // y).type.dtype == (x % y).type.dtype == np.result_type(first, second).name


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["exp", "sqrt", "sin", "log1p", "erf", "gammaln", "sigmoid"])
def test_functions_of_integers_do_not_depend_on_float_x(name: str, dtype: str) -> None:
    expected = "float32" if dtype.endswith(("8", "16")) else "float64"
    for floatx in ("float32", "float64"):
        with config.change_flags(floatX=floatx):
            assert getattr(pt, name)(pt.scalar(dtype=dtype)).type.dtype == expected


def test_numpys_numbers_and_arrays_keep_their_dtype() -> None:
    x = pt.fvector("x")
    assert (x * 1.5).type.dtype == (x * np.float32(2)).type.dtype == "float32"
    for value in (np.float64(1.5), np.ones(3), [1.5]):
        assert (x * value).type.dtype == "float64"
    assert (np.ones(3) + x).type.dtype == (np.float64(1) - x).type.dtype == "float64"


@pytest.mark.parametrize("mode", MODES)
def test_bools(mode: str) -> None:
    b, c = pt.vector("b", dtype="bool"), pt.vector("c", dtype="bool")
    values = np.array([True, True, False, False]), np.array([True, False, True, False])
    for found, expected in (
        (b + c, np.logical_or),
        (b * c, np.logical_and),
        (b ^ c, np.logical_xor),
    ):
        assert found.type.dtype == "bool"
        result = phintys.function([b, c], found, mode=mode)(*values)
        np.testing.assert_array_equal(result, expected(*values))
    assert b.sum().type.dtype == b.prod().type.dtype == "int64"
    assert phintys.function([b], b.sum(), mode=mode)(values[0]) == 2
    for refused in (lambda: b - c, lambda: -b):
        with pytest.raises(TypeError, match="bool"):
            refused()


# ------------------------------------------------------------------------- broadcasting

#: functions of two vectors
OF_TWO: dict[str, Callable[[TensorVariable, TensorVariable], TensorVariable]] = {
    "add": lambda x, y: x + y,
    "switch": lambda x, y: pt.switch(pt.gt(x, 0), x, y),
    "clip": lambda x, y: pt.clip(x, y, 9.0),
    "comparison": lambda x, y: pt.lt(x, y),
    "fill": lambda x, y: pt.second(x, y),
}


@pytest.mark.parametrize("name", OF_TWO)
def test_known_lengths_that_differ_are_an_error_when_the_graph_is_built(name: str) -> None:
    x, y = (pt.dvector(shape=(n,)) for n in (2, 3))
    with pytest.raises(ShapeError, match=r"\(2, not 3\)"):
        OF_TWO[name](x, y)
    assert OF_TWO[name](x, pt.dvector(shape=(1,))).type.shape == (2,)
    assert OF_TWO[name](x, pt.drow()).type.shape == (1, 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [n for n in OF_TWO if n != "fill"])
def test_a_length_that_is_one_at_run_time_does_not_broadcast(name: str, mode: str) -> None:
    x, y = pt.dvectors("x", "y")
    with pytest.raises(ShapeError, match="specify_broadcastable"):
        phintys.function([x, y], OF_TWO[name](x, y), mode=mode)([1.0, 2.0], [1.0])


@pytest.mark.parametrize("mode", MODES)
def test_a_length_that_is_said_to_be_one_broadcasts(mode: str) -> None:
    x, y = pt.dvectors("x", "y")
    one = pt.specify_broadcastable(y, 0)
    assert one.type.shape == (1,) and one.type.broadcastable == (True,)
    f = phintys.function([x, y], x + one, mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0], [1.0]), [2, 3])
    with pytest.raises(ShapeError, match="not 1"):
        f([1.0, 2.0], [1.0, 2.0])


@pytest.mark.parametrize("float_x", ["float64", "float32"])
def test_functions_of_python_floats_alone_are_floatx(float_x: str) -> None:
    """``gammaln(500.)`` was float32 where floatX is float64, and wrong by 1e-4."""
    with config.change_flags(floatX=float_x):
        x = pt.vector("x", dtype="float32")
        values = [pt.gammaln(500.0), pt.true_div(500.0, 2), pt.logaddexp(0.5, 1.5, 2.5)]
        assert [v.type.dtype for v in values] == [float_x] * 3
        assert (x * pt.gammaln(500.0)).type.dtype == float_x
        assert (x * 500.0).type.dtype == pt.gammaln(x).type.dtype == "float32"


def test_integers_beside_uint64() -> None:
    """A remainder of uint64 was float64, so the last digits of large numbers were lost."""
    x = pt.vector("x", dtype="uint64")
    value = np.array([2**63 + 5], "uint64")
    for found in (x % 7, 7 % x, x // 7, x & 7, 7 | x, x ^ 2**40):
        assert found.type.dtype == "uint64"
    np.testing.assert_array_equal((x % 7).eval({x: value}), value % 7)
    assert (x % -7).type.dtype == (x + 7).type.dtype == (x % np.int64(7)).type.dtype == "float64"
