"""Intermediate results of float32 functions are computed in float64, where that cannot be seen."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.mode import get_mode

x, y, s = pt.fvectors("x", "y", "s")
THIRDS = np.arange(1, 50, dtype="float32")


def compiled(outputs, mode=None):
    return phintys.function([x, y, s], outputs, mode=mode, on_unused_input="ignore")


def dtypes_of(f):
    variables = [v for node in f.maker.fgraph.toposort() for v in node.outputs]
    return {v.type.dtype for v in variables}


def test_squares_out_of_range():
    """The square of a quotient, and the square of a scale, are out of the range of float32."""
    density = -pt.log(s) - pt.log1p(((x - y) / s) ** 2)
    slope = pt.grad(density.sum(), s)
    curvature = pt.grad(slope.sum(), s)
    large, one, small = (np.array([v], "float32") for v in (1e6, 1, 1e-17))
    got = compiled([density, slope, curvature])(large, one, small)
    exact = float(small[0])
    truth = [-np.log(exact) - 2 * np.log(999999 / exact), 1 / exact, -1 / exact**2]
    assert [v.dtype for v in got] == ["float32"] * 3
    np.testing.assert_allclose(np.concatenate(got), truth, rtol=1e-5)


ROUNDED = {  # results that are 0 if both operands of the difference are rounded, or none
    "an element": lambda z: z[0] - z.sum() * 0 - z[:1],
    "floor": lambda z: pt.minimum(z * 3 - pt.floor(z * 3), 0),
    "a copy": lambda z: pt.exp(z - pt.max(pt.switch(z > 0, z, -1))).max() - 1,
    "the largest": lambda z: pt.neq(pt.eq(z, pt.max(z)).sum(), 1) * (z + 1),
    "a comparison with an input": lambda z: pt.switch(pt.eq(z, y), 0, z),
    "another function": lambda z: z * 1 - pt.sort(z),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_a_number_is_rounded_everywhere_or_nowhere(name):
    three = np.full(49, 3, "float32")
    got = compiled(ROUNDED[name](x / s))(THIRDS, THIRDS / three, three)
    assert got.dtype == "float32"
    np.testing.assert_array_equal(got, np.zeros(np.shape(got)))


def test_comparisons_of_results_see_what_is_selected():
    """A quotient that overflows in float32 is compared with another one as it is."""
    square = pt.sqr(x) / y
    result = pt.switch(pt.gt(square, pt.sqr(s) / y), pt.log(square), 0)
    large, larger = np.array([1e25], "float32"), np.array([1e26], "float32")
    (got,) = compiled(result)(larger, larger, large)
    np.testing.assert_allclose(got, np.log(1e26), rtol=1e-6)


@pytest.mark.parametrize(
    "outputs",
    [pt.maximum(x * y + s, 0), x / y, pt.log(x), pt.sigmoid(x) * y, pt.exp(x / 2)],
    ids=["no singular function", "one quotient", "one logarithm", "sigmoid", "exponential"],
)
def test_stays_in_float32(outputs):
    assert dtypes_of(compiled(outputs)) == {"float32"}


def test_can_be_excluded():
    density = pt.log1p((x / s) ** 2)
    mode = get_mode("FAST_RUN")
    assert "float64" in dtypes_of(compiled(density, mode))
    assert "float64" not in dtypes_of(compiled(density, mode.excluding("wide_intermediates")))


def test_explicit_casts_round():
    """What a program casts to float32 has its 24 bits."""
    z = pt.dvector("z")
    narrow = pt.cast(z, "float32")
    f = phintys.function([z], (pt.log(2 / narrow) - narrow) * narrow)
    np.testing.assert_array_equal(f(np.array([1 + 1e-10])), f(np.ones(1)))


def test_sums_and_stacks_are_part_of_a_chain():
    both = pt.stack([x / s, y / s])
    result = pt.log(pt.sqr(both).sum(axis=0))
    one, small = np.ones(1, "float32"), np.full(1, 1e-30, "float32")
    np.testing.assert_allclose(
        compiled(result)(one, one, small), [np.log(2) + 60 * np.log(10)], rtol=1e-6
    )
