"""Fused multiply-adds: a value has the same bits in every kernel that computes it."""

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.lowering.contraction import contracted
from phintys.lowering.program import Inst, Kernel

WIDTHS = [128, 256, 512]
GEN = np.random.default_rng(5)


def instructions(f):
    return [i.op for s in f.program.steps if isinstance(s, Kernel) for i in s.body]


def function(inputs, outputs, bits):
    with phintys.config.change_flags(vector_bits=bits):
        return phintys.function(inputs, outputs, mode="llvm")


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 3, 17, 130])
def test_products_that_are_stored_and_recomputed_are_equal(bits, dtype, n):
    x, y, z = (pt.vector(name, dtype=dtype) for name in "xyz")
    difference = function([x, y, z], x * y - z, bits)
    both = function([x, y, z], [x * y, x * y - z], bits)
    a, b = GEN.normal(size=(2, n)).astype(dtype)
    stored, _ = both(a, b, a)
    assert (both(a, b, stored)[1] == 0).all()  # not the rounding error of the product
    assert np.abs(difference(a, b, stored)).max() <= np.finfo(dtype).eps * np.abs(stored).max()


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("make", [pt.softmax, pt.log_softmax, pt.logsumexp])
def test_maxima_of_large_products(bits, make):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    options = {"axis": -1}
    f = function([x, y], make(x * y, **options), bits)
    reference = phintys.function([x, y], make(x * y, **options), mode="FAST_COMPILE")
    a, b = GEN.normal(size=(2, 40, 3)) * 1e12
    np.testing.assert_allclose(f(a, b), reference(a, b), rtol=1e-12)


@pytest.mark.parametrize(
    "text", ["x * y + z", "z + x * y", "x * y - z", "z - x * y", "x * y * z + x"]
)
def test_single_products_are_fused(text):
    x, y, z = pt.dvectors("x", "y", "z")
    f = phintys.function([x, y, z], eval(text), mode="llvm")
    found = instructions(f)
    assert found.count("fma") == 1
    assert "add" not in found and "sub" not in found
    a, b, c = GEN.normal(size=(3, 21))
    expected = eval(text, {"x": a, "y": b, "z": c})
    np.testing.assert_allclose(f(a, b, c), expected, rtol=1e-14, atol=1e-15)


def test_products_with_other_uses_stay():
    x, y, z = pt.dvectors("x", "y", "z")
    w = x * y
    for outputs in ([w, w + z], [w + z, w - z], [pt.exp(w) * (w + z)]):
        assert "fma" not in instructions(phintys.function([x, y, z], outputs, mode="llvm"))


def test_smaller_products_stay_outside_the_loop():
    x, y, z = pt.drow("x"), pt.drow("y"), pt.dmatrix("z")
    found = instructions(phintys.function([x, y, z], x * y + z, mode="llvm"))
    assert "fma" not in found


def test_integers_and_mixed_dtypes_stay():
    x, y = pt.lvector("x"), pt.fvector("y")
    found = instructions(
        phintys.function([x, y], [x * x + x, pt.cast(y * y, "float64") + x], mode="llvm")
    )
    assert "fma" not in found


@pytest.mark.parametrize("values", [(0.0, -0.0), (np.inf, -np.inf, np.nan), (1e308, -1e308, 0.0)])
@pytest.mark.parametrize("text", ["x * y - z", "z - x * y"])
def test_zeros_and_infinities(values, text):
    x, y, z = pt.dvectors("x", "y", "z")
    f = phintys.function([x, y, z], eval(text), mode="llvm")
    a, b, c = (np.ravel(v) for v in np.meshgrid(values, [1.0, -1.0, 0.0], values))
    with np.errstate(all="ignore"):
        expected = eval(text, {"x": a, "y": b, "z": c})
    found = f(a, b, c)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


def test_instructions_after_a_fusion_refer_to_the_same_values():
    body = (
        Inst("mul", "float64", (0, 1)),
        Inst("exp", "float64", (2,)),
        Inst("sub", "float64", (4, 3)),
        Inst("mul", "float64", (5, 4)),
    )
    new, result = contracted(body, 6, 3)
    assert [(i.op, i.args) for i in new] == [
        ("exp", (2,)), ("neg", (0,)), ("fma", (4, 1, 3)), ("mul", (5, 3)),
    ]  # fmt: skip
    assert result == 6
