"""Compiled arithmetic has the bits of NumPy's: products are not fused into sums."""

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.compile.mode import Mode

pytestmark = pytest.mark.widths
GEN = np.random.default_rng(5)
EXPRESSIONS = [
    "x * y - z",
    "z - x * y",
    "x * y + z * x",
    "x * x - y * y",
    "x * y - y * x + z",
    "(x * 1.7 + y) * z + 0.3",
    "x * y + (z - x) * y / 3",
]


@pytest.mark.parametrize("mode", ["llvm", "C"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_bits_are_those_of_numpy(mode, dtype, text):
    variables = [pt.vector(name, dtype=dtype) for name in "xyz"]
    out = eval(text, dict(zip("xyz", variables)))
    compiled, numpy = (
        phintys.function(variables, out, mode=m, on_unused_input="ignore")
        for m in (mode, Mode("py", "fast_run"))  # the same graph
    )
    for n in (1, 3, 17, 130):
        values = (GEN.normal(size=(3, n)) * 10.0 ** GEN.integers(-5, 5, n)).astype(dtype)
        np.testing.assert_array_equal(compiled(*values), numpy(*values))


@pytest.mark.parametrize("make", [pt.softmax, pt.log_softmax, pt.logsumexp])
@pytest.mark.parametrize("scale", [1e12, 1e19])
def test_maxima_of_large_products_are_exact(make, scale):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    out = make(x * y, axis=-1)
    a, b = GEN.normal(size=(2, 40, 3)) * np.sqrt(scale)
    found = phintys.function([x, y], out, mode="llvm")(a, b)
    expected = phintys.function([x, y], out, mode="FAST_COMPILE")(a, b)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_differences_of_equal_squares_have_a_root():
    x, y = pt.dvector("x"), pt.dvector("y")
    f = phintys.function([x, y], pt.sqrt(x * x - y * y), mode="llvm")
    a = GEN.normal(size=350)
    np.testing.assert_array_equal(f(a, -a), 0.0)
