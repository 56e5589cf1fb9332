"""Masked reads and writes in mode JAX, whose lengths depend on values: equal to the reference."""

from __future__ import annotations

import numpy as np
import pytest
from tiers import few
from transpiler_cases import assert_same

import phintys
import phintys.tensor as pt
from phintys.errors import UnsupportedError
from phintys.tensor.type import TensorType

pytest.importorskip("jax")

DTYPES = ("float64", "float32", "int64", "int8", "uint8", "bool")
MASKS = {
    "some": [True, False, True, True, False],
    "one": [False, False, False, True, False],
    "none": [False] * 5,
    "all": [True] * 5,
}
VECTOR = np.array([2, 3, -4, 3, 100])
MATRIX = np.array([[1, -2, 3, 0, 5], [3, 3, -1, 2, 0], [2, 100, 2, -7, 1]])


def variables(dtype):
    """A vector, another one, a matrix and a mask, all of unknown lengths."""
    x, y = (TensorType(dtype, (None,))(name) for name in "xy")
    return x, y, TensorType(dtype, (None, None))("A"), TensorType("bool", (None,))("m")


def values(dtype, mask):
    x = VECTOR.astype(dtype)
    if dtype[0] == "f":
        x = x / np.dtype(dtype).type(4)
    return x, x[::-1].copy(), MATRIX.astype(dtype), np.array(MASKS[mask])


def results_of_any_mask(x, y, A, m):
    """What is defined for masks without true elements too."""
    return {
        "sum": x[m].sum(),
        "prod": x[m].prod(),
        "any": x[m].any(),
        "all": x[m].all(),
        "size": x[m].size,
        "length": x[m].shape[0],
        "compared": x[pt.gt(x, 1)].sum(),
        "of a function": pt.exp(x[m]).sum(),
        "of two": (x[m] * y[m]).sum(),
        "with a scalar": (x[m] * y[0]).sum(),
        "rows": A[:, m].sum(axis=1),
        "other axis": A[:, m].sum(axis=0).sum(),
        "transposed": A.T[m].sum(axis=0),
        "all axes": A[pt.neq(A, 2)].sum(),
        "product": pt.dot(x[m], y[m]),
        "set": x[m].set(y[0]),
        "inc": x[m].inc(y[0]),
        "set to selected": x[m].set(y[m]),
        "set columns": A[:, m].set(x[:3].dimshuffle(0, "x")),
        "set elements": A[pt.neq(A, 2)].inc(x[0]),
        "set rows to a number": A.T[m].set(y[0]),
        "inc rows by a row": A.T[m].inc(y[:3]),
        "first rows": A[:, m][:2].sum(),
    }


def results_of_elements(x, y, A, m):
    """What is not defined for masks without true elements."""
    return {
        "mean": x[m].mean(),
        "var": x[m].var(),
        "max": x[m].max(),
        "min": x[m].min(),
        "argmax": x[m].argmax(),
        "argmin": x[m].argmin(),
        "argmax of rows": A[:, m].argmax(axis=1),
        "max of rows": A[:, m].max(axis=1),
        "logsumexp": pt.logsumexp(x[m]),
        "softmax": (pt.special.softmax(x[m]) * y[m]).sum(),
    }


def compare(inputs, named, draws):
    """The functions of both modes, compiled once, agree for several values of the inputs."""
    f, expected = (
        phintys.function(inputs, list(named.values()), mode=mode, on_unused_input="ignore")
        for mode in ("JAX", "PY")
    )
    for given in draws:
        for name, a, b in zip(named, f(*given), expected(*given), strict=True):
            assert_same(a, b, name)


@pytest.mark.parametrize("dtype", few(DTYPES, "float32", "uint8"))
def test_values(dtype):
    inputs = variables(dtype)
    compare(inputs, results_of_any_mask(*inputs), [values(dtype, mask) for mask in MASKS])
    found = results_of_elements(*inputs)
    compare(inputs, found, [values(dtype, mask) for mask in MASKS if mask != "none"])


def test_special_values():
    """NaN and infinities count where the mask is true, and nowhere else."""
    inputs = variables("float64")
    inf, nan = np.inf, np.nan
    drawn = [
        (np.array(special), np.ones(5), np.ones((3, 5)), np.array(MASKS["some"]))
        for special in ([nan, nan, 1, 2, nan], [1, inf, 2, 3, -inf], [-inf, nan, -inf, -inf, 0])
    ]
    compare(inputs, results_of_any_mask(*inputs) | results_of_elements(*inputs), drawn)


def test_gradients():
    x, y, A, m = variables("float64")
    costs = {
        "sum": (pt.exp(x[m]) * y[m]).sum(),
        "mean": x[m].mean(),
        "var": x[m].var(),
        "prod": x[m].prod(),
        "max": x[m].max(),
        "logsumexp": pt.logsumexp(x[m]),
        "product": pt.sqr(pt.dot(A[:, m], x[m])).sum(),
        "regression": pt.sqr(pt.dot(A.T[m], y[:3]) - x[m]).sum(),
        "set": pt.sqr(x[m].set(y[m] * 2)).sum(),
    }
    wanted = {
        f"{name} {v}": g
        for name, cost in costs.items()
        for v, g in zip("xy", phintys.grad(cost, [x, y], disconnected_inputs="ignore"))
    }
    drawn = [values("float64", mask) for mask in MASKS if mask != "none"]
    compare([x, y, A, m], wanted, drawn)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_of_no_elements_raise(name):
    x, _, _, m = variables("float64")
    f = phintys.function([x, m], getattr(x[m], name)(), mode="JAX")
    with pytest.raises(ValueError, match="No result for an empty axis"):
        f([1.0, 2.0], [False, False])
    assert f([1.0, 2.0], [True, False]) == (0 if name.startswith("arg") else 1)


def test_mask_that_does_not_fit():
    x, _, _, m = variables("float64")
    f = phintys.function([x, m], pt.exp(x[m]).sum(), mode="JAX")
    for mask in ([True], [True, True, True]):
        with pytest.raises((IndexError, ValueError)):
            f([1.0, 2.0], mask)


REMAINING = {
    "the elements": lambda x, m: x[m],
    "sort": lambda x, m: pt.sort(x[m]),
    "cumsum": lambda x, m: pt.cumsum(x[m])[-1],
    "two masks": lambda x, m: x[m] + x[~m],
    "nonzero": lambda x, m: x[m.nonzero()].sum(),
}


@pytest.mark.parametrize("name", REMAINING)
def test_error_names_what_depends_on_values(name):
    x, _, _, m = variables("float64")
    f = phintys.function([x, m], REMAINING[name](x, m), mode="JAX")
    with pytest.raises(
        UnsupportedError, match=r"a length of .* depends on the values of (m|Invert)"
    ):
        f([1.0, 2.0], [True, False])
