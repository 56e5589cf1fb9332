"""Reductions: axes, dtypes, empty arrays, wrong axes."""

from __future__ import annotations

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from helpers import both
from pytensor.tensor.elemwise import CAReduce

M = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
NAMES = "sum prod mean var std max min argmax argmin any all".split()


def axes():
    x = pt.dmatrix("x")
    for axis in (None, 0, 1, -1, (0, 1), (1,), [0]):
        yield [axis, both(pt.sum(x, axis=axis), {x: M}), both(pt.max(x, axis=axis), {x: M})]


def axes_that_are_wrong():
    x = pt.dmatrix("x")
    for name in NAMES:
        for axis in (2, -3, 0.5, "a", (0, 0), (0, 2)):
            yield [name, str(axis), lambda name=name, axis=axis: getattr(pt, name)(x, axis=axis)]


def keepdims():
    x = pt.matrix("x", shape=(2, None))
    for name in NAMES:
        f = getattr(pt, name)
        yield [name, both(f(x, axis=1, keepdims=True), {x: M}), f(x, keepdims=True), f(x, axis=0)]


def dtypes():
    for dtype in ("bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64"):
        x = pt.vector("x", dtype=dtype)
        names = "sum prod mean var std max min argmax any all cumsum cumprod".split()
        yield [dtype, *([name, lambda name=name, x=x: getattr(pt, name)(x)] for name in names)]


def dtypes_of_complex_numbers():
    z = pt.zvector("z")
    for name in "sum prod mean".split():
        yield [name, both(getattr(pt, name)(z), {z: [1 + 1j, 2.0]})]
    yield lambda: pt.argmax(z)


def dtypes_that_are_given():
    x, i = pt.fvector("x"), pt.bvector("i")
    yield [
        x.sum(dtype="float64"),
        i.sum(dtype="int8"),
        i.sum(dtype="float32"),
        i.mean(dtype="float32"),
    ]
    yield [x.sum(acc_dtype="float64"), x.mean(acc_dtype="float64"), i.prod(dtype="int16")]
    yield lambda: x.sum(dtype="int8")
    yield lambda: pt.dvector("d").sum(acc_dtype="float32")
    yield lambda: pt.zvector("z").sum(dtype="float64")


def reductions_of_nothing():
    x = pt.dvector("x")
    for name in "sum prod any all cumsum".split():
        yield [name, both(getattr(pt, name)(x), {x: np.zeros(0)})]
    for name in "max min argmax".split():
        yield [name, lambda name=name: getattr(pt, name)(x).eval({x: np.zeros(0)})]
    yield both(pt.mean(x), {x: np.zeros(0)})


def reductions_of_numbers():
    x = pt.dscalar("x")
    for name in NAMES:
        yield [name, lambda name=name: both(getattr(pt, name)(x), {x: 3.0})]
    yield lambda: pt.sum(x, axis=0)


def methods():
    x = pt.dmatrix("x")
    for name in "sum prod mean var std max min argmax argmin any all cumsum cumprod ptp".split():
        yield [name, both(getattr(x, name)(axis=0), {x: M})]
    yield both(x.norm(2, axis=0), {x: M})
    yield both(x.norm(1), {x: M})


def ties_and_nan():
    x = pt.dvector("x")
    values = {x: [1.0, np.nan, 3.0, 3.0]}
    yield [both(f(x), values) for f in (pt.max, pt.min, pt.argmax, pt.argmin, pt.sum)]
    yield [both(f(x), {x: [2.0, 3.0, 3.0]}) for f in (pt.argmax, pt.argmin)]


def max_and_argmax():
    x = pt.dmatrix("x")
    yield [both(y, {x: M}) for y in pt.max_and_argmax(x, axis=1)]
    yield [both(y, {x: M}) for y in pt.max_and_argmax(x, keepdims=True)]
    yield lambda: pt.max_and_argmax(x, axis=5)


def argmax_of_several_axes():
    x = pt.tensor3("x")
    value = np.arange(24.0).reshape(2, 3, 4) % 7
    yield both(pt.argmax(x, axis=(0, 2)), {x: value})
    yield both(pt.argmax(x), {x: value})
    yield both(pt.argmin(x, axis=(1, 2)), {x: value})


def cumulative():
    x = pt.dmatrix("x")
    yield both(pt.cumsum(x), {x: M})
    yield both(pt.cumsum(x, axis=0), {x: M})
    yield both(pt.cumprod(x, axis=-1), {x: M})
    yield both(pt.diff(x), {x: M})
    yield both(pt.diff(x, n=2), {x: M})
    yield lambda: pt.cumsum(x, axis=2)
    yield lambda: pt.cumsum(x, axis=-3)
    yield lambda: pt.diff(x, axis=4)


def logsumexp():
    x = pt.dmatrix("x")
    yield both(pt.logsumexp(x), {x: M * 400})
    yield both(pt.logsumexp(x, axis=1, keepdims=True), {x: M * 400})
    yield both(pt.logsumexp(x, axis=0), {x: np.full((2, 3), -np.inf)})


def deviations():
    x = pt.dmatrix("x")
    yield both(pt.var(x, ddof=1), {x: M})
    yield both(pt.std(x, axis=0, ddof=1, keepdims=True), {x: M})
    yield both(pt.var(x, corrected=True), {x: M})


def median():
    x = pt.dmatrix("x")
    yield both(pt.median(x), {x: M})
    yield both(pt.median(x, axis=0), {x: M})
    yield both(pt.median(x, axis=1), {x: M})


def ranges_and_norms():
    x = pt.dmatrix("x")
    yield both(pt.ptp(x, axis=1), {x: M})
    yield both(pt.linalg.norm(x), {x: M})
    yield both(pt.linalg.norm(x, ord=1), {x: M})
    yield both(pt.linalg.norm(x, ord="nuc"), {x: M})
    yield both(pt.linalg.norm(x, axis=0), {x: M})
    yield lambda: pt.linalg.norm(x, ord="no such order")
    yield lambda: pt.linalg.norm(x, ord=3)


def initial_values():
    x = pt.dvector("x")
    yield lambda: both(pt.max(x, initial=5.0), {x: [1.0]})
    yield lambda: both(pt.min(x, initial=5.0), {x: np.zeros(0)})


def reduce_by_a_scalar_op():
    x = pt.dmatrix("x")
    yield both(CAReduce(ps.add, axis=(0,))(x), {x: M})
    yield both(CAReduce(ps.maximum, axis=(1,))(x), {x: M})
    yield [
        str(CAReduce(ps.add, axis=(0,))),
        str(pt.sum(x, axis=0).owner.op),
        str(pt.prod(x).owner.op),
    ]
    yield lambda: CAReduce(ps.sub, axis=(0,))(x)
    yield lambda: CAReduce(ps.add, axis=(3,))(x)
    yield CAReduce(ps.add, axis=(0,)) == CAReduce(ps.add, axis=(0,))


def logical():
    x = pt.lmatrix("x")
    value = np.array([[1, 0], [2, 3]])
    yield both(pt.any(x, axis=0), {x: value})
    yield both(pt.all(x, axis=1), {x: value})
    yield both(x.any(), {x: value})


def products_with_zeros():
    x = pt.dvector("x")
    yield both(pt.prod(x), {x: [2.0, 0.0, 3.0]})
    yield both(pt.prod(x, no_zeros_in_input=True), {x: [2.0, 5.0]})


def covariance():
    x = pt.dmatrix("x")
    yield both(pt.cov(x), {x: M})
    yield both(pt.cov(x, rowvar=False), {x: M})
    yield both(pt.cov(x, ddof=0), {x: M})
