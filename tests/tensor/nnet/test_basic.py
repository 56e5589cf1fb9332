"""Activations, losses, normalization, neighbourhoods: values, derivatives, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from tensor_checks import assert_like, check, check_derivatives, compiled, symbols

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor import nnet

X = np.array([[-3.0, -0.5, 0.25], [800.0, -800.0, 1.0]])


def random(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# --------------------------------------------------------------------- activations

ALPHA = 1.6732632423543772
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
    "softsign": lambda x: x / (1 + abs(x)),
    "hard_sigmoid": lambda x: np.clip(x * 0.2 + 0.5, 0, 1),
    "softmax": lambda x: scipy.special.softmax(x, -1),
    "logsoftmax": lambda x: scipy.special.log_softmax(x, -1),
    "sigmoid": scipy.special.expit,
    "softplus": lambda x: np.logaddexp(0, x),
}  # fmt: skip


def test_activations():
    for dtype in ("float64", "float32"):
        given = X.astype(dtype)
        (v,) = symbols([given])
        f = compiled("FAST_RUN", [v], [getattr(nnet, name)(v) for name in ACTIVATIONS])
        for found, (name, reference) in zip(f(given), ACTIVATIONS.items(), strict=True):
            assert_like(found, reference(given).astype(dtype)), name
    v = pt.dmatrix()
    cost = sum(getattr(nnet, name)(v).sum() for name in ("relu", "elu", "selu", "hard_sigmoid"))
    assert np.isfinite(phintys.grad(cost, v).eval({v: X})).all()
    x = random((2, 3))
    for name in ACTIVATIONS:
        check_derivatives(getattr(nnet, name), [x])
    check(lambda x: nnet.relu(x, 0.1), lambda x: np.where(x > 0, x, 0.1 * x), [X])
    check(lambda x: nnet.elu(x, 2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x)), [x])
    assert_like(nnet.relu(np.int8([-1, 2])).eval(), np.int8([0, 2]))
    assert_like(nnet.relu([-np.inf, np.inf]).eval(), [0, np.inf])
    assert_like(nnet.softmax_with_bias(x, x[0]).eval(), scipy.special.softmax(x + x[0], -1))


def test_h_softmax():
    x, (w1, b1, w2, b2) = random((4, 5)), (random(s) for s in ((5, 3), (3,), (3, 5, 2), (3, 2)))
    first = scipy.special.softmax(x @ w1 + b1, -1)
    second = scipy.special.softmax(np.einsum("bf,cfo->bco", x, w2) + b2, -1)
    expected = (first[:, :, None] * second).reshape(4, 6)
    every = nnet.h_softmax(x, 4, 5, 3, 2, w1, b1, w2, b2)
    assert_like(every.eval(), expected[:, :5])
    target = np.array([0, 5, 3, 2])
    some = nnet.h_softmax(x, 4, 6, 3, 2, w1, b1, w2, b2, target=target)
    assert_like(some.eval(), expected[range(4), target])


# -------------------------------------------------------------------------- losses


def test_crossentropies():
    x, y = random((4, 5)), np.array([1, 0, 4, 2])
    p, q = scipy.special.softmax(x, -1), scipy.special.softmax(2 * x, -1)
    check(nnet.binary_crossentropy, lambda p, q: -q * np.log(p) - (1 - q) * np.log(1 - p), [p, q])
    check(nnet.categorical_crossentropy, lambda p, q: -(q * np.log(p)).sum(-1), [p, q])
    for f in (nnet.categorical_crossentropy, nnet.crossentropy_categorical_1hot):
        check(f, lambda p, y: -np.log(p[range(4), y]), [p, y])
    stable = lambda x, t: t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x)  # noqa: E731
    check(nnet.sigmoid_binary_crossentropy, stable, [X, X * 0 + 0.3])
    check_derivatives(lambda x: nnet.crossentropy_softmax_1hot(x, y)[0], [x])
    b = random(5, 1)
    for bias, found in (
        (b, nnet.crossentropy_softmax_max_and_argmax_1hot_with_bias(x, b, y)),
        (0, nnet.crossentropy_softmax_max_and_argmax_1hot(x, y)),
        (b, nnet.crossentropy_softmax_1hot_with_bias(x, b, y)),
    ):
        probabilities = scipy.special.softmax(x + bias, -1)
        expected = [
            -np.log(probabilities[range(4), y]), probabilities, probabilities.max(-1),
            probabilities.argmax(-1),
        ]  # fmt: skip
        for v, e in zip(found, expected):
            assert_like(v.eval(), e)
    with pytest.raises(TypeError, match="rank"):
        nnet.categorical_crossentropy(p, p[0])


def test_confusion_matrix_and_columns():
    actual, predicted = np.array([1, 0, 4, 2, 1]), np.array([1, 1, 4, 0, 7])
    matrix, order = (v.eval() for v in nnet.confusion_matrix(actual, predicted))
    assert order.tolist() == [0, 1, 2, 4, 7]
    expected = np.zeros((5, 5), "int64")
    np.add.at(expected, (np.searchsorted(order, actual), np.searchsorted(order, predicted)), 1)
    assert_like(matrix, expected)
    with pytest.raises(TypeError, match="vectors of integers"):
        nnet.confusion_matrix([0.5], [1])
    x = random((2, 3))
    assert_like(nnet.prepend_scalar_to_each_row(2.5, x).eval(), np.insert(x, 0, 2.5, 1))
    assert_like(nnet.prepend_0_to_each_row(x).eval(), np.insert(x, 0, 0, 1))
    assert_like(nnet.prepend_1_to_each_row(x).eval(), np.insert(x, 0, 1, 1))


# ------------------------------------------------------------------- normalization


@pytest.mark.parametrize("axes", ["per-activation", "spatial", (0, 2)])
def test_batch_normalization(axes):
    x = random((4, 3, 2, 5)).astype("float32")
    over = {"per-activation": (0,), "spatial": (0, 2, 3)}.get(axes, axes)
    shape = [1 if i in over else n for i, n in enumerate(x.shape)]
    gamma, beta, mean, var = (random(shape, k).astype("float32") for k in range(4))
    inputs = symbols([x, gamma, beta, mean, var])
    v, g, b, m, u = inputs
    train = nnet.batch_normalization_train(v, g, b, axes, 0.01, 0.2, m, u)
    test = nnet.batch_normalization_test(v, g, b, m, pt.exp(u), axes, 0.01)
    plain = nnet.batch_normalization(x, gamma, beta, mean, np.exp(var))
    mu, sigma = x.mean(over, keepdims=True), x.var(over, keepdims=True)
    n = x.size / mu.size
    inverse = 1 / np.sqrt(sigma + 0.01)
    expected = [
        (x - mu) * inverse * gamma + beta, mu, inverse, 0.8 * mean + 0.2 * mu,
        0.8 * var + 0.2 * sigma * n / (n - 1),
        (x - mean) / np.sqrt(np.exp(var) + 0.01) * gamma + beta,
    ]  # fmt: skip
    found = compiled("FAST_RUN", inputs, [*train, test])(x, gamma, beta, mean, var)
    for value, wanted in zip(found, expected, strict=True):
        assert value.dtype == "float32" and value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(
        plain.eval(), (x - mean) * gamma / np.exp(var) + beta, rtol=1e-4, atol=1e-4
    )


def test_parameters_of_normalization():
    x, g = random((3, 2, 2)), random(2)
    _, mean, inverse = nnet.batch_normalization_train(x, g, g, "spatial")
    assert_like(mean.eval(), x.mean((0, 2)))
    assert inverse.type.ndim == 1
    check_derivatives(lambda x, g: nnet.batch_normalization_train(x, g, g, "spatial")[0], [x, g])
    for wrong in ("rows", (0, 3), (0, 0), ()):
        with pytest.raises(ValueError, match="axes are"):
            nnet.batch_normalization_train(x, g, g, wrong)
    with pytest.raises(ValueError, match="3 or 2 axes"):
        nnet.batch_normalization_train(x, g, g)
    with pytest.raises(ValueError, match="running_mean and running_var"):
        nnet.batch_normalization_train(x, g, g, "spatial", running_mean=g)


# ------------------------------------------------------- neighbourhoods, upsampling


def test_neighbourhoods():
    x = np.arange(1.0, 33.0).reshape(1, 2, 4, 4)
    view = np.lib.stride_tricks.sliding_window_view
    halves = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    around = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], "wrap")
    for arguments, expected in (
        (((2, 2),), view(x, (2, 2), (2, 3))[:, :, ::2, ::2]),
        (((2, 3), (1, 1), "valid"), view(x, (2, 3), (2, 3))),
        (((3, 3), (2, 2), "ignore_borders"), view(x, (3, 3), (2, 3))[:, :, ::2, ::2]),
        (((3, 3), (1, 1), "half"), view(halves, (3, 3), (2, 3))),
        (((2, 2), (1, 1), "full"), view(halves, (2, 2), (2, 3))),
        (((3, 3), (2, 2), "wrap_centered"), view(around, (3, 3), (2, 3))[:, :, ::2, ::2]),
    ):
        found = nnet.images2neibs(x, *arguments).eval()
        assert_like(found, expected.reshape(-1, np.prod(arguments[0])))
    assert_like(nnet.neibs2images(nnet.images2neibs(x, (2, 4)), (2, 4), x.shape).eval(), x)
    rows = nnet.images2neibs(x, (3, 2), mode="ignore_borders")
    back = nnet.neibs2images(rows, (3, 2), x.shape, "ignore_borders").eval()
    assert_like(back, x * (np.arange(4) < 3)[:, None])
    check_derivatives(lambda x: nnet.images2neibs(x, (3, 3), (1, 1), "wrap_centered"), [x])
    with pytest.raises(ShapeError):
        nnet.images2neibs(pt.as_tensor(x), (3, 3)).eval()
    with pytest.raises(ValueError, match="odd"):
        nnet.images2neibs(x, (2, 2), mode="wrap_centered")
    for f in (nnet.images2neibs, lambda *a: nnet.neibs2images(a[0], a[1], x.shape, a[3])):
        with pytest.raises(ValueError, match="mode is"):
            f(x, (2, 2), None, "all")
    with pytest.raises(TypeError, match="4 axes"):
        nnet.images2neibs(x[0], (2, 2))


def test_products_with_chosen_blocks():
    w, h, b = random((3, 4, 2, 5)), random((2, 2, 2)), random((4, 5))
    i, j = np.array([[0, 2], [1, 1]]), np.array([[3, 0, 1], [2, 2, 0]])
    blocks = w[i[:, :, None], j[:, None]]
    expected = b[j] + np.einsum("bir,bijrc->bjc", h, blocks)
    assert_like(nnet.sparse_block_dot(w, h, i, b, j).eval(), expected)
    assert_like(nnet.sparse_block_dot(w, h[0], i[0], b, j[0]).eval(), expected[:1])
    check_derivatives(lambda w, h, b: nnet.sparse_block_dot(w, h, i, b, j), [w, h, b])


def test_upsampling():
    x = random((2, 1, 3, 4))
    for ratios in ((2, 2), (3, 3), ((3, 2), (5, 3))):
        pairs = [(r, 1) if isinstance(r, int) else r for r in ratios]
        expected = x
        for axis, (p, q) in enumerate(pairs, 2):
            n = x.shape[axis]
            places = (np.arange(-(-n * p // q)) * q - (p - 1) // 2) / p
            expected = np.apply_along_axis(
                lambda v, places=places, n=n: np.interp(places, np.arange(n), v), axis, expected
            )
        given = {"ratio": ratios[0]} if isinstance(ratios[0], int) else {"frac_ratio": ratios}
        assert_like(nnet.bilinear_upsampling(x, **given).eval(), expected)
    assert_like(
        nnet.bilinear_upsampling(x, frac_ratio=(2, 1)).eval(), nnet.bilinear_upsampling(x, 2).eval()
    )
    check_derivatives(lambda x: nnet.bilinear_upsampling(x, 2), [x])
    with pytest.raises(ValueError, match="either"):
        nnet.bilinear_upsampling(x)
    with pytest.raises(ValueError, match="positive"):
        nnet.bilinear_upsampling(x, 0)
    with pytest.raises(ValueError, match="pair"):
        nnet.bilinear_upsampling(x, frac_ratio=((1, 2), 3))


def test_crossentropies_have_finite_derivatives_where_probabilities_underflow():
    x, target, weights = pt.dmatrix("x"), pt.lvector("target"), pt.dmatrix("weights")
    by_log = pt.log(pt.nnet.softmax(x))[pt.arange(2), target]
    binary = pt.nnet.binary_crossentropy(pt.nnet.sigmoid(x), weights)
    costs = [pt.nnet.categorical_crossentropy(pt.nnet.softmax(x), target).sum(), -by_log.sum()]
    outputs = [*costs, *(phintys.grad(c, x) for c in (*costs, binary.sum()))]
    logits, share = np.array([[900.0, 0.0], [-900.0, 0.0]]), np.array([[0.5, 0.5], [1.0, 0.25]])
    found = phintys.function([x, target, weights], outputs)(logits, [1, 0], share)
    np.testing.assert_array_equal(found[:2], [1800.0, 1800.0])
    np.testing.assert_array_equal(found[2], [[1.0, -1.0], [-1.0, 1.0]])
    np.testing.assert_array_equal(found[3], found[2])
    np.testing.assert_array_equal(found[4], [[0.5, 0.0], [-1.0, 0.25]])


def test_neighbourhoods_that_are_not_there():
    image = np.ones((1, 1, 2, 1))
    with pytest.raises(ShapeError):
        nnet.images2neibs(image, (3, 3), (1, 1)).eval()
    assert nnet.images2neibs(image, (3, 3), (1, 1), "ignore_borders").eval().shape == (0, 9)
    with pytest.raises(ShapeError):
        nnet.neibs2images(np.ones((4, 4)), (2, 2), (1, 1, 5, 4)).eval()
    with pytest.raises(ValueError, match="positive"):
        nnet.images2neibs(image, (1, 1), (0, 1))
