"""Fourier transforms against NumPy, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import check, check_batched, check_derivatives
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.tensor import fourier
from phintys.tensor.fourier import Fourier

RNG = np.random.default_rng(5)
REAL = RNG.normal(size=(3, 6))
COMPLEX = REAL + 1j * RNG.normal(size=(3, 6))
KINDS = ("fft", "ifft", "rfft", "irfft")


def values(kind):
    return REAL if kind == "rfft" else COMPLEX


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 4, 5, 9])
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind, n, norm):
    for axis in (0, -1):
        ours, numpys = getattr(fourier, kind), getattr(np.fft, kind)
        check(
            lambda x, f=ours, a=axis: f(x, n, a, norm),
            lambda x, f=numpys, a=axis: f(x, n, a, norm),
            [values(kind)],
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_no_numbers_count_as_zeros(kind, mode):
    """Exactly: what is in memory without values may be small."""
    x = pt.dtensor3("x")
    for n in (1, 2, 3, 8):
        found = phintys.function([x], getattr(fourier, kind)(x, n, 1), mode=mode)(
            np.ones((2, 0, 3))
        )
        assert found.shape == (2, n // 2 + 1 if kind == "rfft" else n, 3)
        np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "float32", "float64", "complex64"])
def test_dtypes(dtype):
    """Single precision stays; integers are transformed in double precision."""
    single = dtype in ("float16", "float32", "complex64")
    x = np.array([1, 0, 1, 1]).astype(dtype)
    wanted = "complex64" if single else "complex128"
    wide = x.astype("float32") if dtype == "float16" else x
    check(fourier.fft, lambda _: np.fft.fft(wide).astype(wanted), [x])
    real = "float32" if single else "float64"
    check(fourier.irfft, lambda _: np.fft.irfft(wide).astype(real), [x])


@pytest.mark.parametrize("norm", few(["backward", "ortho", "forward"], "ortho"))
@pytest.mark.parametrize("n", few([4, 5, 8], 4, 5))
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(kind, n, norm):
    """Of real and imaginary parts in real and imaginary parts."""
    f = getattr(fourier, kind)
    weights = np.linspace(0.5, 2.0, 40)

    def real_function(x, y):
        out = f(x if kind == "rfft" else pt.complex(x, y), n, 0, norm)
        w = pt.as_tensor(weights)[: out.shape[0]]
        total = (w * out.real).sum() + (y * 0).sum()
        return total if kind == "irfft" else total + (w[::-1] * out.imag).sum()

    check_derivatives(real_function, [REAL[0], REAL[1]])


@pytest.mark.parametrize("kind", KINDS)
def test_batched(kind):
    check_batched(lambda x: getattr(fourier, kind)(x), [values(kind)[0]])


def test_errors():
    x = pt.dvector("x")
    with pytest.raises(ValueError, match="norm is one of backward"):
        fourier.fft(x, norm="none")
    with pytest.raises(ValueError, match="not negative"):
        Fourier("fft", -1)
    with pytest.raises(ValueError, match="kind is one of fft"):
        Fourier("dct", 0)
    with pytest.raises(TypeError, match="is an integer"):
        fourier.fft(x, 2.5)
    with pytest.raises(TypeError, match="rfft transforms real numbers"):
        fourier.rfft(pt.zvector("z"))
    with pytest.raises(ValueError, match="not positive"):
        phintys.function([x], fourier.fft(x))([])
    with pytest.raises(ValueError, match="cannot differ within a batch"):
        node = Fourier("fft", 0)(x, 3).owner
        node.op.vectorize_node(node, pt.dmatrix("x"), pt.lvector("n"))
