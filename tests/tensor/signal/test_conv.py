"""Convolutions of signals: values, batches, boundaries, derivatives, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
from tensor_checks import (
    BACKENDS,
    assert_like,
    check,
    check_batched,
    check_derivatives,
    compiled,
    symbols,
)
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.lowering.program import Python
from phintys.tensor.signal import convolve1d, convolve2d
from phintys.tensor.signal.conv import Convolve1d, Convolve2d

MODES = ("full", "valid", "same")


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 3
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def expected1d(x, y, mode):
    if mode == "valid" and len(x) < len(y):
        x, y = y, x
    return scipy.signal.convolve(x, y, mode, "direct")


@pytest.mark.parametrize("mode", BACKENDS)
def test_vectors(mode):
    for dtype in ("float64", "complex64") if mode == "FAST_RUN" else ("float64",):
        types = symbols([random((1,), dtype)] * 2)
        f = compiled(mode, types, [convolve1d(*types, mode=m) for m in MODES])
        sizes = [(1, 1), (5, 3), (3, 5), (2500, 7), (40, 1100), (10, 700), (700, 695)]
        for n, k in sizes if mode != "JAX" else sizes[1:3]:
            x, y = random(n, dtype), random(k, dtype, 1)
            for found, m in zip(f(x, y), MODES, strict=True):
                expected = expected1d(x, y, m).astype(dtype)
                assert found.dtype == dtype and found.shape == expected.shape
                np.testing.assert_allclose(
                    found, expected, rtol=1e-3 if dtype != "float64" else 1e-9, atol=1e-4
                )


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C", "JAX"])
def test_matrices(mode):
    combinations = [
        (m, boundary, fill)
        for m in MODES
        for boundary, fill in (("fill", 0), ("fill", 2.5), ("wrap", 0), ("symm", 0))
    ]
    x, y = pt.dmatrices("x", "y")
    f = compiled(mode, [x, y], [convolve2d(x, y, *c) for c in combinations])
    shapes = [((7, 6), (3, 2)), ((4, 4), (4, 4)), ((5, 9), (1, 4)), ((3, 4), (5, 7))]
    for s, t in shapes if mode != "JAX" else shapes[:1]:
        a, b = random(s), random(t, seed=1)
        for found, c in zip(f(a, b), combinations, strict=True):
            assert_like(found, scipy.signal.convolve2d(a, b, *c))


def test_methods_and_dtypes():
    for dtype in ("int8", "int64", "float32", "complex128"):
        x, y = random((3, 9, 8), dtype), random((3, 4, 3), dtype, 1)
        expected = np.stack([scipy.signal.convolve2d(a, b, "same") for a, b in zip(x, y)])
        for method in ("direct", "fft", "auto"):
            inputs = symbols([x, y])
            found = compiled("FAST_RUN", inputs, convolve2d(*inputs, "same", method=method))(x, y)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert convolve1d(pt.ivector(), pt.fvector()).type.dtype == "float64"
    assert (
        convolve1d(pt.vector(dtype="float16"), pt.vector(dtype="float16")).type.dtype == "float16"
    )
    x, y = np.array([1, 2, 3], "float16"), np.array([2, 1], "int8")
    check(convolve1d, lambda x, y: np.convolve(x, y), [x, y])


def test_batches_and_layouts():
    x, y = random((3, 1, 9)), random((2, 4), seed=1)
    expected = [[np.convolve(a, b, "valid") for b in y] for a in x[:, 0]]
    assert_like(convolve1d(x, y, "valid").eval(), expected)
    big, small = random((40, 30)), random((9, 6), seed=1)
    check(
        lambda x, y: convolve2d(x[::2, ::-3].T, y[::-2, 1::2]),
        lambda x, y: scipy.signal.convolve2d(x[::2, ::-3].T, y[::-2, 1::2]),
        [big, small],
    )
    check_batched(lambda x, y: convolve1d(x, y, "same"), [random(5), random(3, seed=1)])
    v, m = pt.dvector("v"), pt.dmatrix("m")
    batched = phintys.graph.vectorize.vectorize_graph(convolve1d(v, [1.0, 2.0]), {v: m})
    assert_like(batched.eval({m: random((2, 4))}), [np.convolve(r, [1, 2]) for r in random((2, 4))])


def test_without_elements():
    inputs = pt.dvectors("x", "y")
    f = compiled("FAST_RUN", inputs, [convolve1d(*inputs, mode=m) for m in MODES])
    empty = np.zeros(0)
    for (n, k), lengths in {(0, 3): (2, 4, 0), (3, 0): (2, 4, 3), (0, 0): (0, 1, 0)}.items():
        found = f(empty if n == 0 else random(n), empty if k == 0 else random(k))
        for r, length in zip(found, lengths, strict=True):
            assert_like(r, np.zeros(length))


def test_missing_values_spread_to_what_they_meet():
    x, y = random(3000), random(9, seed=1)
    x[[7, 2000]] = np.nan, np.inf
    check(convolve1d, lambda x, y: np.convolve(x, y), [x, y])
    x, y = random((9, 9)), random((3, 3), seed=1)
    x[4, 4] = np.nan
    check(convolve2d, lambda x, y: scipy.signal.convolve2d(x, y), [x, y])


@pytest.mark.parametrize("mode", few(MODES, "same"))
def test_derivatives(mode):
    def gradients(x, y):
        g = phintys.grad((convolve1d(x, y, mode) ** 2).sum(), [x, y])
        return pt.concatenate(g)

    for n, k in ((5, 3), (3, 5)):
        check_derivatives(lambda x, y: convolve1d(x, y, mode), [random(n), random(k, seed=1)])
    check_derivatives(gradients, [random(5), random(3, seed=1)])
    values = [random((1, 4, 3)), random((2, 2, 4), seed=1)]
    check_derivatives(
        lambda x, y: convolve2d(pt.specify_shape(x, (1, None, None)), y, mode), values
    )
    check_derivatives(
        lambda x, y: convolve2d(x, y, mode, "symm", method="fft"), [v[0] for v in values]
    )


def test_gradients_are_native():
    x, y = pt.dmatrices("x", "y")
    f = phintys.function([x, y], phintys.grad(pt.sin(convolve2d(x, y)).sum(), [x, y]))
    assert not [s for s in f.program.steps if isinstance(s, Python)]


def test_errors():
    x = pt.dmatrix()
    with pytest.raises(ValueError, match="mode is one of"):
        convolve1d(x, x, "middle")
    with pytest.raises(ValueError, match="boundary is one of"):
        convolve2d(x, x, boundary="none")
    with pytest.raises(ValueError, match="method is one of"):
        convolve2d(x, x, method="fast")
    with pytest.raises(ValueError, match="at least 2"):
        convolve2d(pt.dvector(), [1.0])
    with pytest.raises(ValueError, match="2 starts"):
        Convolve2d()(x, x, 0, 0)
    with pytest.raises(ShapeError):
        convolve1d(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(ValueError, match="negative"):
        Convolve1d()([1.0], [1.0], 0, -1)
    f = phintys.function([x, y := pt.dmatrix()], convolve1d(x, y))
    with pytest.raises(ShapeError):
        f(np.ones((2, 3)), np.ones((3, 3)))


def test_transforms_have_the_precision_of_the_result():
    rng = np.random.default_rng(0)
    x, y, none = rng.normal(size=(5, 6)), rng.normal(size=(3, 2)).astype("f4"), np.ones((0, 2))
    found = pt.signal.convolve2d(x, y, method="fft").eval()
    np.testing.assert_allclose(found, scipy.signal.convolve2d(x, y), atol=1e-13)
    assert pt.signal.convolve2d(none, np.ones((1, 1)), method="fft").eval().shape == (0, 2)
