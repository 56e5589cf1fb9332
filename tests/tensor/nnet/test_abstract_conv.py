"""Convolutions of images: values against SciPy, parameters, derivatives, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
from tensor_checks import (
    BACKENDS,
    assert_like,
    check_batched,
    check_derivatives,
    compiled,
    evaluate,
    symbols,
)

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.graph.vectorize import vectorize_graph
from phintys.lowering.program import External, Python
from phintys.tensor import nnet
from phintys.tensor.nnet.abstract_conv import causal_conv1d
from phintys.tensor.nnet.conv_shapes import get_conv_output_shape
from phintys.tensor.nnet.corr import CorrMM, CorrMM_gradInputs, CorrMM_gradWeights

DTYPES = ("float32", "float64", "complex64", "complex128")
#: border mode, subsample, dilation, groups, flip
CASES = [
    ("valid", (1, 1), (1, 1), 1, True),
    ("full", (2, 1), (1, 2), 2, True),
    ("half", (1, 3), (2, 1), 1, False),
    (2, (2, 2), (1, 1), 2, True),
    (((0, 1), (3, 2)), (3, 2), (2, 2), 1, True),
]


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def expected(x, w, border="valid", steps=None, dilation=None, groups=1, flip=True):
    """The correlation of each image and filter by SciPy, padded, dilated and cut as asked."""
    ndim = x.ndim - 2
    steps, dilation = steps or (1,) * ndim, dilation or (1,) * ndim
    w = w[(..., *[slice(None, None, -1)] * ndim)] if flip else w
    lengths = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    spread = np.zeros((*w.shape[:2], *lengths), w.dtype)
    spread[(..., *[slice(None, None, d) for d in dilation])] = w
    pads = {
        "valid": [0] * ndim,
        "full": [n - 1 for n in lengths],
        "half": [n // 2 for n in lengths],
    }
    given = pads[border] if isinstance(border, str) else border
    given = [given] * ndim if isinstance(given, int) else given
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) if isinstance(p, int) else p for p in given]])
    each = w.shape[0] // groups
    rows = [
        [
            sum(
                scipy.signal.correlate(
                    image[k // each * w.shape[1] + c], f[c].conj(), "valid", "direct"
                )
                for c in range(len(f))
            )
            for k, f in enumerate(spread)
        ]
        for image in x
    ]
    return np.array(rows)[(..., *[slice(None, None, s) for s in steps])]


def convolution(x, w, border, steps, dilation, groups, flip):
    return nnet.conv2d(
        x, w if groups == 1 else w[:, :2], border_mode=border, subsample=steps,
        filter_dilation=dilation, num_groups=groups, filter_flip=flip,
    )  # fmt: skip


@pytest.mark.parametrize("mode", BACKENDS)
def test_parameters(mode):
    for dtype in {"FAST_RUN": DTYPES, "C": DTYPES[::3]}.get(mode, ("float64",)):
        x, w = random((2, 4, 7, 6), dtype), random((6, 4, 3, 2), dtype, 1)
        inputs = symbols([x, w])
        cases = CASES if mode != "NUMBA" else CASES[1:2]
        f = compiled(mode, inputs, [convolution(*inputs, *c) for c in cases])
        for found, case in zip(f(x, w), cases, strict=True):
            wanted = expected(x, w if case[3] == 1 else w[:, :2], *case)
            assert found.dtype == dtype and found.shape == wanted.shape
            assert found.shape == get_conv_output_shape(x.shape, w.shape, *case[:3])
            rtol = 1e-9 if dtype in ("float64", "complex128") else 1e-4
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C", "JAX"])
def test_gradients(mode):
    """Of all parameters at once, against finite differences in some direction."""
    x, w = random((2, 4, 7, 6)), random((6, 4, 3, 2), seed=1)
    inputs = symbols([x, w])
    cost = sum(pt.sin(convolution(*inputs, *c)).sum() for c in CASES)
    f = compiled(mode, inputs, [cost, *phintys.grad(cost, inputs)])
    if mode in ("FAST_RUN", "C"):
        assert not [s for s in f.program.steps if isinstance(s, Python)]
    tx, tw, h = random(x.shape, seed=2), random(w.shape, seed=3), 1e-5
    difference = (f(x + h * tx, w + h * tw)[0] - f(x - h * tx, w - h * tw)[0]) / (2 * h)
    _, gx, gw = f(x, w)
    np.testing.assert_allclose(np.sum(gx * tx) + np.sum(gw * tw), difference, rtol=1e-6)


def test_images_in_blocks():
    """The matrix of a large image is made in several blocks of lines."""
    x, w = random((1, 8, 43, 40)), random((3, 8, 5, 5), seed=1)
    inputs = symbols([x, w])
    out = nnet.conv2d(*inputs, border_mode=((1, 0), 2), subsample=(1, 2))
    outputs = [out, *phintys.grad((out**2).sum(), inputs)]
    found, expected = (evaluate(outputs, inputs, [x, w], m) for m in ("FAST_RUN", "FAST_COMPILE"))
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)


def test_one_and_three_axes():
    x, w = random((2, 3, 5, 4, 6)), random((2, 3, 2, 3, 2), seed=1)
    case = ("half", (2, 1, 1), (1, 1, 2))
    build = lambda x, w: nnet.conv3d(  # noqa: E731
        x, w, border_mode=case[0], subsample=case[1], filter_dilation=case[2]
    )
    inputs = symbols([x, w])
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        assert_like(evaluate(build(*inputs), inputs, [x, w], mode), expected(x, w, *case))
    check_derivatives(build, [x[:1, :, :3, :3, :3], w[:1, :, :, :2]])
    signals, filters = random((2, 4, 9)), random((6, 2, 3), seed=1)
    found = causal_conv1d(signals, filters, (6, 2, 3), subsample=2, filter_dilation=2, num_groups=2)
    assert_like(found.eval(), expected(signals, filters, [(4, 0)], (2,), (2,), 2))


def test_cotangents():
    """The ops of gradients are the transposes of the convolution in each of its inputs."""
    x, w = random((2, 4, 7, 6), "complex128"), random((6, 2, 3, 2), "complex128", 1)
    props = {"border_mode": (1, 2), "subsample": (2, 1), "num_groups": 2}
    g = random(nnet.conv2d(x, w, **props).eval().shape, "complex128", 2)
    value = np.sum(nnet.conv2d(x, w, **props).eval() * g)
    images = nnet.conv2d_grad_wrt_inputs(g, w, x.shape, **props).eval()
    filters = nnet.conv2d_grad_wrt_weights(x, g, w.shape, **props).eval()
    assert images.shape == x.shape and filters.shape == w.shape
    np.testing.assert_allclose([np.sum(images * x), np.sum(filters * w)], [value] * 2, rtol=1e-10)
    props["input_dilation"] = props.pop("subsample")
    assert_like(nnet.conv2d_transpose(g, w, (None, None, 7, 6), **props).eval(), images)
    x3, w3 = (v.real[:, :, None] for v in (x, w))
    found = nnet.conv3d_grad_wrt_inputs(
        nnet.conv3d(x3, w3, num_groups=2), w3, x3.shape, num_groups=2
    )
    other = nnet.conv2d_grad_wrt_inputs(
        nnet.conv2d(x.real, w.real, num_groups=2), w.real, x.shape, num_groups=2
    )
    assert_like(found.eval()[:, :, 0], other.eval())
    found = nnet.conv3d_grad_wrt_weights(
        x3, nnet.conv3d(x3, w3, num_groups=2), w3.shape, num_groups=2
    )
    assert found.eval().shape == w3.shape


def test_derivatives_of_cotangents():
    x, w, g = random((1, 2, 4, 3)), random((2, 1, 2, 2), seed=1), random((1, 2, 3, 2), seed=2)
    props = {"num_groups": 2, "filter_flip": False}
    check_derivatives(lambda x, w: nnet.conv2d(x, w, **props), [x, w])
    check_derivatives(lambda g, w: nnet.conv2d_grad_wrt_inputs(g, w, x.shape, **props), [g, w])
    check_derivatives(lambda x, g: nnet.conv2d_grad_wrt_weights(x, g, w.shape, **props), [x, g])


def test_separable():
    x, first, second = (
        random((2, 3, 5, 5)),
        random((6, 1, 3, 3), seed=1),
        random((4, 6, 1, 1), seed=2),
    )
    found = nnet.separable_conv2d(x, first, second, 3, border_mode="half").eval()
    assert_like(found, expected(expected(x, first, "half", groups=3), second))
    v = [y[:, :, None] for y in (x, first, second)]
    assert_like(nnet.separable_conv3d(*v, 3, border_mode=(0, 1, 1)).eval()[:, :, 0], found)


def test_shapes_that_are_special():
    """Nothing to compute, filters of one element, batches, strides."""
    inputs = pt.dtensor4s("x", "w")
    f = phintys.function(
        inputs, [nnet.conv2d(*inputs), *phintys.grad(nnet.conv2d(*inputs).sum(), inputs)]
    )
    for s, t in [
        ((0, 2, 3, 3), (1, 2, 2, 2)),
        ((1, 0, 3, 3), (1, 0, 2, 2)),
        ((1, 2, 3, 3), (0, 2, 2, 2)),
    ]:
        x, w = random(s), random(t)
        out, gx, gw = f(x, w)
        assert_like(out, np.zeros((s[0], t[0], 2, 2)))
        assert_like(gx, np.zeros(s))
        assert_like(gw, np.zeros(t))
    x, w = random((2, 3, 4, 5)), random((4, 3, 1, 1), seed=1)
    out, gx, gw = f(x, w)
    assert_like(out, np.einsum("nchw,fc->nfhw", x, w[:, :, 0, 0]))
    assert_like(gx, np.broadcast_to(w[:, :, 0, 0].sum(0)[:, None, None], x.shape))
    assert_like(gw, np.broadcast_to(x.sum((0, 2, 3))[:, None, None], w.shape))
    big = random((4, 3, 12, 10))
    assert_like(f(big[::2, :, ::-2, ::2], w)[0], f(big[::2, :, ::-2, ::2].copy(), w)[0])
    check_batched(lambda x: nnet.conv2d(x, w), [x])
    check_batched(nnet.conv2d, [x, w])
    check_batched(lambda g: nnet.conv2d_grad_wrt_inputs(g, w, (None, None, 4, 5)), [out])
    assert nnet.conv2d(x, w, input_shape=(None, 3, 4, 5)).type.shape == (2, 4, 4, 5)


def test_no_python_on_the_way():
    for dtype in DTYPES:
        x, w = (pt.tensor4(dtype=dtype) for _ in range(2))
        f = phintys.function([x, w], nnet.conv2d(x, w))
        kinds = [type(step) for step in f.program.steps]
        assert kinds.count(External) == 1 and Python not in kinds


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "JAX"])
def test_wrong_shapes(mode):
    x, w = pt.dtensor4s("x", "w")
    f = compiled(mode, [x, w], nnet.conv2d(x, w))
    with pytest.raises(ShapeError, match="differ in channels"):
        f(np.ones((1, 2, 3, 3)), np.ones((1, 3, 2, 2)))
    with pytest.raises(ShapeError, match="longer than padded images"):
        f(np.ones((1, 2, 3, 3)), np.ones((1, 2, 2, 4)))
    g = compiled(mode, [x, w], nnet.conv2d(x, w, num_groups=2))
    with pytest.raises(ShapeError, match="divided into 2 groups"):
        g(np.ones((1, 4, 3, 3)), np.ones((3, 2, 2, 2)))
    h = compiled(mode, [x, w], nnet.conv2d_grad_wrt_inputs(x, w, (None, None, 4, 4)))
    with pytest.raises(ShapeError, match="another length"):
        h(np.ones((1, 2, 3, 2)), np.ones((2, 2, 2, 2)))


def test_filters_known_to_be_too_long():
    """The error is that of a call, as no type has the negative length."""
    with pytest.raises(ShapeError, match="longer than padded images"):
        nnet.conv2d(pt.ones((1, 2, 3, 3)), pt.ones((1, 2, 2, 5)))


def test_wrong_arguments():
    x = pt.dtensor4()
    for wrong in ("same", (1,), (1, -1), ((1, 2, 3), 0)):
        with pytest.raises(ValueError, match="border_mode"):
            nnet.conv2d(x, x, border_mode=wrong)
    with pytest.raises(ValueError, match="positive"):
        nnet.conv2d(x, x, subsample=(0, 1))
    with pytest.raises(ValueError, match="1 to 3 axes"):
        CorrMM(subsample=(1, 1), filter_dilation=(1,))
    with pytest.raises(TypeError, match="takes 4 axes"):
        nnet.conv2d(pt.dmatrix(), x)
    with pytest.raises(ValueError, match="input_shape has"):
        nnet.conv2d_grad_wrt_inputs(x, x, (1, 1, None, 3))
    with pytest.raises(ValueError, match="filter_shape has"):
        nnet.conv2d_grad_wrt_weights(x, x, (1, 1, None, 3))
    with pytest.raises(ShapeError):
        nnet.conv2d(pt.ones((1, 2, 3, 3)), pt.ones((1, 1, 2, 2)))
    assert CorrMM(border_mode=1) == CorrMM(border_mode=((1, 1), (1, 1)))
    assert CorrMM_gradInputs() != CorrMM_gradWeights()


def test_a_batch_of_images_and_filters_is_compiled():
    """Filters that differ from item to item, also beside images that do not: one call each."""
    op = CorrMM(border_mode=((1, 0), (0, 2)), subsample=(1, 2), num_groups=2)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 2, 4, 5, 6)), rng.normal(size=(3, 6, 2, 2, 3))
    items = pt.dtensor4("x"), pt.dtensor4("w")
    six, five = (pt.tensor(shape=(None,) * n, dtype="float64") for n in (6, 5))
    out = op(*items)
    outputs = [
        vectorize_graph(out, {items[0]: six, items[1]: five}),
        vectorize_graph(out, {items[1]: five}),
    ]
    f = phintys.function([six, five, items[0]], outputs)
    assert not [step for step in f.program.steps if isinstance(step, Python)]
    found = f(x, w, x[0, 0])
    one = phintys.function(list(items), out, mode="FAST_COMPILE")
    expected = [[[one(a, b) for a, b in zip(row, w)] for row in x], [one(x[0, 0], b) for b in w]]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, np.array(wanted), rtol=1e-12, atol=1e-12)


def test_parameters_that_are_no_integers():
    images, filters, n = pt.dtensor4("images"), pt.dtensor4("filters"), np.int64(1)
    node = nnet.conv2d(images, filters, border_mode=(n, np.array([0, 2]))).owner
    assert node is not None and node.op.border_mode == ((1, 1), (0, 2))
    for wrong in (1.5, (1.5, 1), None, ((1, 2, 3), 1)):
        with pytest.raises(ValueError, match="border_mode has for each of 2 axes"):
            nnet.conv2d(images, filters, border_mode=wrong)
    for wrong in (2, (1.5, 1)):
        with pytest.raises(TypeError, match="subsample has an integer for each axis"):
            nnet.conv2d(images, filters, subsample=wrong)


def test_a_cotangent_of_filters_has_their_shape():
    x, g = np.ones((1, 1, 4, 4)), np.ones((1, 2, 3, 3))
    with pytest.raises(ShapeError, match="2, not 7"):
        nnet.conv2d_grad_wrt_weights(x, g, (7, 1, 2, 2)).eval()
    with pytest.raises(ValueError, match="filter_shape has 4 entries"):
        nnet.conv2d_grad_wrt_weights(x, g, (2, 2))


@pytest.mark.needs("jax")
def test_a_batch_of_gradients_in_jax():
    x, w = pt.dtensor4("x"), pt.dtensor4("w")
    many = pt.TensorType("float64", (None,) * 5)("many")
    slope = phintys.grad((nnet.conv2d(x, w) ** 2).sum(), w)
    f = phintys.function([many, w], vectorize_graph(slope, {x: many}), mode="JAX")
    images, filters = np.arange(32.0).reshape(2, 1, 1, 4, 4), np.ones((1, 1, 2, 2))
    expected = [slope.eval({x: image, w: filters}) for image in images]
    np.testing.assert_allclose(f(images, filters), expected)
