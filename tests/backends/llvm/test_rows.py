"""Sums over rows, several rows at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt
from phintys.backends.llvm import costs
from phintys.backends.llvm.machine import jit

pytestmark = pytest.mark.widths

DTYPES = ["float64", "float32", "int64", "int32", "bool"]
OPS = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "any": np.any, "all": np.all}


@pytest.fixture(scope="module")
def shorter():
    """Rows count as long from a few elements on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "ROWS_LENGTH", 3)
        yield


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_reductions_over_any_axes(shorter, data):
    rank = data.draw(st.integers(2, 4))
    shape = data.draw(st.tuples(*[st.integers(1, 11)] * rank))
    known = data.draw(st.tuples(*[st.booleans()] * rank))
    axes = tuple(data.draw(st.sets(st.integers(0, rank - 1), min_size=1)))
    dtype, op = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(sorted(OPS)))
    x = pt.tensor("x", dtype=dtype, shape=[d if k else None for d, k in zip(shape, known)])
    values = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    f = phintys.function([x], getattr(x, op)(axis=axes))
    expected = OPS[op](values, axis=axes)
    np.testing.assert_allclose(f(values), expected, rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 9, 64])
def test_sums_of_expressions_that_broadcast(shorter, n):
    x, y, z = pt.matrix("x"), pt.vector("y"), pt.col("z")
    outputs = [(x * y).sum(axis=0), (x + z).max(axis=0, initial=-np.inf), (y + z).sum(axis=0)]
    f = phintys.function([x, y, z], outputs)
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=(n, 7)), rng.normal(size=7), rng.normal(size=(n, 1))
    product, largest, total = f(x, y, z)
    np.testing.assert_allclose(product, (x * y).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(largest, (x + z).max(axis=0, initial=-np.inf))
    np.testing.assert_allclose(total, (y + z).sum(axis=0), atol=1e-12)


def test_nan_in_any_row_is_seen(shorter):
    x = pt.matrix("x")
    f = phintys.function([x], [x.max(axis=0), x.min(axis=0), x.sum(axis=0)])
    for row in range(9):
        values = np.ones((9, 6))
        values[row, row % 6] = np.nan
        for result in f(values):
            assert np.isnan(result).nonzero()[0].tolist() == [row % 6]


NUMBERS = itertools.count(1.375)


def test_groups_of_long_rows_have_no_function_for_short_rows(monkeypatch):
    texts, generate = [], jit.generate
    monkeypatch.setattr(jit, "generate", lambda text, *args: texts.append(text) or generate(text))
    x = pt.matrix("x")
    phintys.function([x], (x * next(NUMBERS)).sum(axis=0))  # nothing that is kept already
    (text,) = (text for text in texts if "@phintys.entry(" in text)
    assert text.count(".rest(") == 2  # one is defined and called
