"""Finite differences: wrong gradients are found, right ones pass, every parameter works."""

from __future__ import annotations

import numpy as np
import pytest

import phintys.tensor as pt
from phintys import verify_grad
from phintys.errors import GradientError
from phintys.gradient import grad_scale, numeric_grad
from phintys.graph.op import Op
from phintys.graph.variable import Apply

POINT = np.array([[0.5, -1.2, 0.7], [1.3, 0.4, -0.6]])


class Twice(Op):
    """2 x with a gradient that is wrong by a factor, or in one element."""

    __props__ = ("factor", "element")

    def __init__(self, factor=1.0, element=None):
        self.factor, self.element = factor, element

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [pt.as_tensor(x).type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2

    def pullback(self, inputs, outputs, cotangents):
        g = cotangents[0] * 2 * self.factor
        return [g if self.element is None else pt.set_subtensor(g[self.element], np.nan)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_right_gradients_pass(dtype):
    verify_grad(Twice(), [POINT.astype(dtype)])
    verify_grad(lambda x, y: pt.sin(x) * y, [POINT.astype(dtype), np.array(0.5, dtype)])
    verify_grad(lambda x: x * 2, [1.0])
    verify_grad(lambda x: x.sum(axis=0), [np.zeros((0, 3))])


@pytest.mark.parametrize(
    ("dtype", "factor"), [("float64", 1.001), ("float32", 1.05), ("float16", 1.5), ("float64", -1)]
)
def test_wrong_gradients_are_found(dtype, factor):
    with pytest.raises(GradientError, match=r"argument 0 \(shape \(2, 3\)\) is wrong at \("):
        verify_grad(Twice(factor), [POINT.astype(dtype)])


def test_the_place_is_named():
    with pytest.raises(GradientError, match=r"argument 1 .* wrong at \(1, 2\): nan against"):
        verify_grad(lambda x, y: x + Twice(element=(1, 2))(y), [POINT, POINT])


def test_a_scaled_gradient_is_found():
    with pytest.raises(GradientError):
        verify_grad(lambda x: grad_scale(x, 0.5), [POINT])


def test_tolerances_and_step():
    slightly_wrong = Twice(1.001)
    verify_grad(slightly_wrong, [POINT], rel_tol=1e-2)
    verify_grad(slightly_wrong, [POINT], abs_tol=1e-1)
    with pytest.raises(GradientError):
        verify_grad(Twice(1.00001), [POINT], abs_tol=1e-7, rel_tol=1e-7)
    with pytest.raises(GradientError):
        verify_grad(lambda x: pt.sin(20 * x), [POINT], eps=0.5)


def test_generators_and_number_of_tests():
    class Counting:
        calls = 0

        def uniform(self, lo, hi, size):
            Counting.calls += 1
            return np.full(size, 1.0)

    verify_grad(Twice(), [POINT], n_tests=5, rng=Counting())
    assert Counting.calls == 5
    for rng in (np.random.default_rng(3), np.random.RandomState(3)):
        verify_grad(Twice(), [POINT], rng=rng)
    verify_grad(Twice(), [POINT], mode="FAST_COMPILE", no_debug_ref=False)


def test_output_types():
    seen = []

    def build(x):
        out = pt.exp(x)
        seen.append(out.type.dtype)
        return out

    verify_grad(build, [POINT], out_type="float32")
    verify_grad(build, [POINT], out_type="float32", cast_to_output_type=True)
    with pytest.raises(GradientError):
        verify_grad(build, [POINT], out_type="float32", cast_to_output_type=True, rel_tol=1e-12,
                    abs_tol=1e-12)  # fmt: skip


def test_misuse():
    with pytest.raises(TypeError, match="argument 0 is int64"):
        verify_grad(Twice(), [np.array([1, 2])])
    with pytest.raises(TypeError, match="one output"):
        verify_grad(lambda x: [x, x], [POINT])
    with pytest.raises(TypeError, match="need floats, not int64"):
        verify_grad(lambda x: x.astype("int64"), [POINT])


# --------------------------------------------------------------------- numeric_grad


def test_numeric_grad():
    f = lambda x, y: (x * y**2).sum()  # noqa: E731
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    found = numeric_grad(f, [a, b]).gf
    np.testing.assert_allclose(found[0], b**2, rtol=1e-8)
    np.testing.assert_allclose(found[1], 2 * a * b, rtol=1e-8)
    np.testing.assert_array_equal(a, [1.0, 2.0])
    single = numeric_grad(lambda x: (x**2).sum(), a).gf
    np.testing.assert_allclose(single, 2 * a, rtol=1e-8)
    assert numeric_grad(lambda x: x**2, np.array(3.0)).gf.shape == ()
    assert numeric_grad(lambda x: x**2, np.float32(3.0)).gf.dtype == "float32"
    coarse = numeric_grad(lambda x: (x**3).sum(), a, eps=0.5).gf
    np.testing.assert_allclose(coarse, 3 * a**2 + 0.25)
    rough = numeric_grad(lambda x: np.float32((x**2).sum()), [a], out_type="float32").gf[0]
    np.testing.assert_allclose(rough, 2 * a, rtol=1e-3)


def test_errors_of_gradients():
    numeric = numeric_grad(lambda x: (x * x).sum(), [np.array([1.0, 2.0])])
    arg, at, absolute, relative = numeric.max_err([np.array([2.0, 4.5])], 1e-4, 1e-4)
    assert (arg, at) == (0, 1)
    np.testing.assert_allclose([absolute, relative], [0.5, 0.5 / 8.5], rtol=1e-6)
    ((absolute, relative),) = numeric.abs_rel_errors([np.array([2.0, 4.5])])
    np.testing.assert_allclose(absolute, [0, 0.5], atol=1e-6)
    np.testing.assert_allclose(relative, [0, 0.5 / 8.5], atol=1e-6)
    absolute, relative = numeric_grad.abs_rel_err(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    np.testing.assert_allclose(absolute, [1.0, 0.0])
    np.testing.assert_allclose(relative, [1 / 3, 0.0])
    with pytest.raises(ValueError, match="2 gradients were given for 1 arguments"):
        numeric.abs_rel_errors([np.ones(2), np.ones(2)])
    with pytest.raises(ValueError, match=r"shape \(3,\), the argument \(2,\)"):
        numeric.max_err([np.ones(3)], 1e-4, 1e-4)


def test_nan_is_always_an_error():
    numeric = numeric_grad(lambda x: np.log(x).sum(), [np.array([1.0, 2.0])])
    *_, absolute, _ = numeric.max_err([np.array([1.0, np.nan])], 1e-4, 1e-4)
    assert np.isnan(absolute)
    both = numeric_grad.abs_rel_err(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))
    np.testing.assert_array_equal(both, [[np.nan, 0.0], [np.nan, 0.0]])
    with pytest.raises(GradientError, match="against nan"):
        verify_grad(lambda x: pt.log(-abs(x)), [POINT])
