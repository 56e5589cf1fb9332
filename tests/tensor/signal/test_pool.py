"""Pooling against loops over windows: parameters, dtypes, derivatives, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tensor_checks import assert_like, check_batched, check_derivatives, compiled
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.tensor.signal.pool import max_pool_2d_same_size, pool_2d, pool_3d
from phintys.tensor.signal.windows import sliding_windows

POOL_MODES = ("max", "sum", "average_inc_pad", "average_exc_pad")
#: windows, strides, ignore_border, pad
SETTINGS = [
    ((2, 2), None, True, (0, 0)),
    ((2, 2), None, False, (0, 0)),
    ((3, 2), (1, 1), True, (1, 0)),
    ((3, 2), (2, 3), True, (2, 1)),
    ((3, 2), (4, 1), False, (0, 0)),
]


def windows_of(n, size, step, ignore_border, pad):
    """The first and last positions of windows along an axis."""
    if ignore_border:
        starts = range(0, n + 2 * pad - size + 1, step)
    elif step >= size:
        starts = range(0, n, step)
    else:
        starts = range(0, max(n - size + step - 1, 0) // step * step + 1, step)
    return [(s - pad, s - pad + size) for s in starts]


def pooled(x, mode, ws, stride, ignore_border, pad):
    stride = stride or ws
    axes = [
        windows_of(n, *given, ignore_border, p)
        for n, given, p in zip(x.shape[-2:], zip(ws, stride), pad)
    ]
    out = np.empty((*x.shape[:-2], *map(len, axes)))
    for place in itertools.product(*(range(len(a)) for a in axes)):
        spans = [a[i] for a, i in zip(axes, place)]
        part = x[(..., *[slice(max(a, 0), b) for a, b in spans])]
        ends = [min(b, n + p) - a for (a, b), n, p in zip(spans, x.shape[-2:], pad)]
        value = part.max((-2, -1)) if mode == "max" else part.sum((-2, -1))
        if mode.startswith("average"):
            value = value / (
                np.prod(ends) if "inc" in mode else part[..., :, :].size / x[..., 0, 0].size
            )
        out[(..., *place)] = value
    return out


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "JAX"])
def test_pool_2d(mode):
    settings = [(m, *s) for m in POOL_MODES for s in SETTINGS]
    settings = settings if mode != "JAX" else settings[3::6]
    x = np.random.default_rng(0).normal(size=(2, 3, 7, 6))
    v = pt.dtensor4()
    outs = [pool_2d(v, ws, border, stride, pad, m) for m, ws, stride, border, pad in settings]
    for found, s in zip(compiled(mode, [v], outs)(x), settings, strict=True):
        assert_like(found, pooled(x, *s))


def test_other_forms():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 5, 6))
    expected = pooled(x, "max", (2, 3), None, True, (0, 0))
    assert_like(pool_2d(x, (2, 3), True).eval(), expected)
    n = pt.lscalar()
    assert_like(pool_2d(x, (n, 3), True).eval({n: 2}), expected)
    assert_like(pool_2d(x, 2, True).eval(), pooled(x, "max", (2, 2), None, True, (0, 0)))
    found = pool_3d(x, (2, 2, 3), True, mode="average_exc_pad").eval()
    assert_like(found, x[:, :4].reshape(2, 2, 2, 2, 2, 3).mean((1, 3, 5)))
    integers = rng.integers(-9, 9, (5, 5)).astype("int8")
    for dtype, m in (("int8", "max"), ("int8", "sum"), ("float32", "average_exc_pad")):
        out = pool_2d(integers, (2, 2), False, mode=m)
        assert out.type.dtype == dtype
        assert_like(out.eval(), pooled(integers, m, (2, 2), None, False, (0, 0)), dtype)
    assert pool_2d(np.zeros((0, 4, 4)), (2, 2)).eval().shape == (0, 2, 2)
    assert pool_2d(np.zeros((3, 1, 4)), (2, 2), True).eval().shape == (3, 0, 2)
    x[0, 0, 0] = np.nan
    assert np.isnan(pool_2d(x, (2, 2)).eval()).sum() == 1
    peaks = max_pool_2d_same_size([[1.0, 2.0, 9.0], [2.0, -1.0, 9.0]], (2, 2)).eval()
    assert_like(peaks, [[0, 2.0, 0], [2.0, 0, 0]])


def test_windows_are_views_of_each_other():
    x = np.arange(24.0).reshape(4, 6)
    v = pt.dmatrix()
    found = compiled("FAST_RUN", [v], sliding_windows(v, [2, 3], [2, 4], [2, 1]))(x)
    expected = np.lib.stride_tricks.sliding_window_view(x, (2, 4))[::2]
    assert_like(found, expected)


@pytest.mark.parametrize("mode", few(POOL_MODES, "max", "average_exc_pad"))
def test_derivatives(mode):
    x = np.random.default_rng(0).permutation(30).reshape(1, 6, 5) / 7.0
    for ws, stride, border, pad in SETTINGS[1:4:2]:
        arguments = ws, border, stride, pad, mode
        check_derivatives(lambda x, arguments=arguments: pool_2d(x, *arguments), [x])
    check_batched(lambda x: pool_2d(x, (2, 2), mode=mode), [x])


def test_gradients_of_equal_elements():
    x = pt.dmatrix()
    g = phintys.grad(pool_2d(x, (2, 2)).sum(), x)
    assert_like(g.eval({x: np.array([[1.0, 1.0], [0.0, 1.0]])}), [[1.0, 1.0], [0.0, 1.0]])


def test_errors():
    x = pt.dtensor4()
    for message, arguments in {
        "at least 2 axes": (pt.dvector(), (2, 2)),
        "mode is one of": (x, (2, 2), None, None, (0, 0), "min"),
        "ws has 2": (x, (2, 2, 2)),
        "ws has 2 numbers": (x,),
        "stride has": (x, (2, 2), True, (1,)),
        "are positive": (x, (2, 2), True, (0, 1)),
        "needs ignore_border": (x, (2, 2), False, None, (1, 1)),
        "less than the length": (x, (2, 2), True, None, (2, 0)),
        "not negative": (x, (2, 2), True, None, (-1, 0)),
    }.items():
        with pytest.raises(ValueError, match=message):
            pool_2d(*arguments)


def test_lengths_as_a_vector():
    x, sizes = pt.dmatrix("x"), pt.lvector("sizes")
    value = np.arange(12.0).reshape(3, 4)
    outputs = [pool_2d(x, sizes, ignore_border=True), pool_2d(x, np.array([3, 2]))]
    for found in phintys.function([x, sizes], outputs)(value, [3, 2]):
        np.testing.assert_array_equal(found, [[9.0, 11.0]])


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_wrong_lengths_at_run_time(mode):
    """They are refused as those that are known before."""
    x, a, b = pt.dmatrix("x"), pt.lscalar("a"), pt.lscalar("b")
    x4, rows = x[None, None], pt.dmatrix("rows")
    value = np.arange(42.0).reshape(6, 7)
    neibs = phintys.function([x, a, b], pt.nnet.images2neibs(x4, (2, 7), (a, b)), mode=mode)
    back = phintys.function(
        [rows, a, b], pt.nnet.neibs2images(rows, (a, b), (1, 1, 6, 7)), mode=mode
    )
    given = [pool_2d(x, (a, 2), True, (b, 1)), pool_2d(x, (a, 2), True, None, (b, 0), "sum")]
    given.append(pt.nnet.images2neibs(x4, (a, b), mode="wrap_centered"))
    pool, padded, wrapped = (phintys.function([x, a, b], out, mode=mode) for out in given)
    assert pool(value, 2, 2).shape == (3, 6)
    assert padded(value, 2, 1).shape == (4, 3)
    assert wrapped(value, 3, 3).shape == (6, 9)
    assert neibs(value, 2, 7).shape == (3, 14)
    assert back(value.reshape(3, 14), 2, 7).shape == (1, 1, 6, 7)
    for f, args, message in (
        *((pool, args, "are positive") for args in ((0, 1), (-1, 1), (2, 0), (2, -1))),
        *((padded, args, "less than the length") for args in ((2, 2), (2, -1))),
        (wrapped, (2, 3), "odd lengths"),
        *((f, args, "are positive") for f in (neibs, back) for args in ((0, 7), (2, -1))),
    ):
        with pytest.raises(ValueError, match=message):
            f(value if f is not back else value.reshape(3, 14), *args)
