"""Products with a scale and an addition against NumPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tensor_checks import MODES, assert_like, check, check_batched, check_derivatives, evaluate

import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor import blas

RNG = np.random.default_rng(5)
#: op, shapes of the inputs, the same in NumPy
OPS = {
    "gemm": (
        blas.gemm,
        [(3, 4), (), (3, 2), (2, 4), ()],
        lambda z, a, x, y, b: b * z + a * (x @ y),
    ),
    "gemv": (blas.gemv, [(3,), (), (3, 2), (2,), ()], lambda z, a, x, y, b: b * z + a * (x @ y)),
    "ger": (blas.ger, [(3, 4), (), (3,), (4,)], lambda z, a, x, y: z + a * np.outer(x, y)),
    "dot22": (blas._dot22, [(3, 2), (2, 4)], lambda x, y: x @ y),
    "dot22scalar": (blas._dot22scalar, [(3, 2), (2, 4), ()], lambda x, y, a: a * (x @ y)),
    "batched": (blas._batched_dot, [(5, 3, 2), (5, 2, 4)], lambda x, y: x @ y),
}
ops = pytest.mark.parametrize("name", OPS)


def values(shapes, dtype="float64"):
    made = [RNG.normal(size=s).astype(dtype) for s in shapes]
    return [m * (1 + 1j) for m in made] if dtype.startswith("complex") else made


@ops
@pytest.mark.parametrize("dtype", blas.BLAS_DTYPES)
def test_values(name, dtype):
    op, shapes, reference = OPS[name]
    args = [np.asarray(v, dtype) for v in values(shapes, dtype)]
    check(op, lambda *v: np.asarray(reference(*v), dtype), args)


@ops
def test_empty(name):
    op, shapes, reference = OPS[name]
    for old in (2, 3, 4, 5):
        cut = [tuple(0 if n == old else n for n in s) for s in shapes]
        check(op, reference, values(cut))


@ops
def test_constant_factors(name):
    op, shapes, reference = OPS[name]

    def fixed(f):
        return lambda *v: f(*(0.5 if s == () else x for s, x in zip(shapes, v)))

    check(fixed(op), fixed(reference), values(shapes))


@ops
@pytest.mark.parametrize(
    "view, back",
    [
        (lambda s: s.swapaxes(-1, -2) if s.ndim > 1 else s,) * 2,
        (lambda s: s[..., ::-1] if s.ndim else s,) * 2,
        (lambda s: s[::2] if s.ndim else s, lambda a: np.repeat(a, 2, 0) if a.ndim else a),
    ],
    ids=["transposed", "reversed", "strided"],
)
def test_operands_that_are_views(name, view, back):
    op, shapes, reference = OPS[name]
    args = values(shapes)
    given = [np.array(back(a), order="C") for a in args]
    symbols = [pt.tensor(shape=(None,) * a.ndim) for a in given]
    out = op(*(view(s) for s in symbols))
    for mode in MODES:
        for order in ("C", "F"):
            ordered = [np.asarray(a, order=order) for a in given]
            assert_like(evaluate(out, symbols, ordered, mode), reference(*args))


@ops
def test_derivatives_and_batches(name):
    op, shapes, _ = OPS[name]
    check_derivatives(op, values(shapes))
    check_batched(op, values(shapes))


@pytest.mark.parametrize("name", ["gemm", "gemv", "ger"])
@pytest.mark.parametrize("mode", MODES)
def test_target_broadcasts_by_known_ones(name, mode):
    op, shapes, reference = OPS[name]
    z, *rest = values(shapes)
    thin = z[:1]
    symbols = [pt.tensor(shape=(None,) * r.ndim) for r in rest]
    known = pt.tensor(shape=(1, *(None,) * (z.ndim - 1)))
    out = op(known, *symbols)
    assert_like(evaluate(out, [known, *symbols], [thin, *rest], mode), reference(thin, *rest))
    free = pt.tensor(shape=(None,) * z.ndim)
    for wrong in (thin, z[:2]):
        with pytest.raises(ShapeError):
            evaluate(op(free, *symbols), [free, *symbols], [wrong, *rest], mode)
    with pytest.raises(ShapeError):
        op(np.ones((7,) * z.ndim), *rest)


@pytest.mark.parametrize("mode", MODES)
def test_target_is_not_read_where_beta_is_zero(mode):
    nan = np.full((3, 4), np.nan)
    x, y = values([(3, 2), (2, 4)])
    z, beta = pt.dmatrix("z"), pt.dscalar("beta")
    for b in (0.0, beta):
        out = blas.gemm(z, 1.0, x, y, b)
        assert_like(evaluate(out, [z, beta], [nan, 0.0], mode), x @ y)
        out = blas.gemv(z[:, 0], 1.0, x, y[:, 0], b)
        assert_like(evaluate(out, [z, beta], [nan, 0.0], mode), x @ y[:, 0])


@pytest.mark.parametrize("mode", MODES)
def test_inner_lengths_must_agree(mode):
    for op, shapes, _ in OPS.values():
        args = values(shapes)
        symbols = [pt.tensor(shape=(None,) * a.ndim) for a in args]
        if op is blas.ger:
            continue
        k = max(i for i, s in enumerate(shapes) if 2 in s)
        axis = shapes[k].index(2)
        args[k] = np.concatenate([args[k]] * 2, axis)
        with pytest.raises(ShapeError):
            evaluate(op(*symbols), symbols, args, mode)


def test_inplace():
    for name in ("gemm", "gemv", "ger"):
        op, shapes, reference = OPS[name]
        inplace = op.inplace_on_inputs([0])
        assert inplace.destroy_map == {0: [0]} and op.destroy_map == {}
        assert op.inplace_on_inputs([1]) == op != inplace
        args = values(shapes)
        expected = reference(*args)
        node = inplace.make_node(*args)
        storage = [[None]]
        inplace.perform(node, args, storage)
        assert storage[0][0] is args[0]
        assert_like(args[0], expected)


def test_what_they_do_not_take():
    f, i = pt.fmatrix(), pt.lmatrix()
    with pytest.raises(TypeError, match="dtypes float32"):
        blas._dot22(i, i)
    with pytest.raises(TypeError, match="of rank 2 and dtype float32"):
        blas._dot22(f, pt.dmatrix())
    with pytest.raises(TypeError, match="rank 1"):
        blas.gemv(f, 1, f, f, 1)
    with pytest.raises(TypeError, match="0-d"):
        blas.gemm(f, f, f, f, 1)
    with pytest.raises(TypeError, match="scaled by"):
        blas._dot22scalar(f, f, 1j)
    with pytest.raises(TypeError, match="z, alpha, x, y, beta"):
        blas.gemm(f, f)
    with pytest.raises(ShapeError, match="equal length"):
        blas._batched_dot(np.ones((1, 2, 2)), np.ones((3, 2, 2)))


def test_names():
    assert str(blas.gemv_inplace) == "Gemv{inplace}" and str(blas._dot22) == "Dot22"
    for op in (blas.gemm, blas.gemv_inplace, blas.ger, blas._dot22scalar, blas._batched_dot):
        assert pickle.loads(pickle.dumps(op)) == op
    assert blas.gemm != blas.gemm_inplace
