"""Masks, counts of repeats and complex products in machine code: the numbers of ``perform``."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.tensor import blas

NATIVE = pytest.mark.parametrize("mode", ["FAST_RUN", "C"])
RNG = np.random.default_rng(5)
V = np.array([0.5, np.nan, -0.0, 3.0, -np.inf, 2.0, -1.0])
M = RNG.normal(size=(4, 5))
T = RNG.normal(size=(2, 3, 4))


def same_bits(inputs, outputs, values, mode):
    """Check that a function without calls of Python has the bits of the reference."""
    f = phintys.function(inputs, outputs, mode=mode, on_unused_input="ignore")
    assert phintys.explain(f).python_ops == []
    reference = phintys.function(inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore")
    for found, expected in zip(f(*values), reference(*values), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
        if found.dtype.kind in "fc":
            np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))


def reads_and_writes(x, b, m):
    """Reads and writes by a mask ``b`` of the first axis, and ``m`` of all axes."""
    part = x[m] if x.type.dtype == "bool" else x[m] + x[m]
    return [
        x[b], x[m], x[m][::-1], x[..., m] if m.type.ndim == x.type.ndim else x, x[b, ...][1:],
        pt.set_subtensor(x[m], part), pt.set_subtensor(x[b], x[b][::-1]),
        pt.set_subtensor(x[m], x[m][::-1]), *pt.nonzero(m), *pt.nonzero(x),
    ]  # fmt: skip


@NATIVE
@pytest.mark.parametrize("dtype", "bool int8 uint64 float16 float32 float64 complex128".split())
@pytest.mark.parametrize("value", [V, M, T, M[::2, ::-1], M[:0], M[:, :0], T.T], ids=np.shape)
def test_reads_and_writes_by_masks(value, dtype, mode):
    x, m = (
        pt.TensorType(dtype, (None,) * value.ndim)(),
        pt.TensorType("bool", (None,) * value.ndim)(),
    )
    b = pt.bvector("b").astype("bool")
    with np.errstate(all="ignore"):
        data = np.nan_to_num(value, posinf=9).astype(dtype) if dtype[0] in "biu" else value
        data = data.astype(dtype)
    for threshold in (0, 5, -5):
        mask = value > threshold
        rows = np.arange(len(value)) % 2 if threshold == 0 else np.full(len(value), threshold < 0)
        inputs = [x, b.owner.inputs[0], m]
        same_bits(inputs, reads_and_writes(x, b, m), [data, rows.astype("int8"), mask], mode)


@NATIVE
def test_a_mask_along_inner_axes(mode):
    t, m = pt.dtensor3("t"), pt.TensorType("bool", (None, None))("m")
    outputs = [
        t[:, m], t[m], t[1, m[0]], t[:, 1:, m[0]], pt.inc_subtensor(t[m], t[m] * 3),
        pt.inc_subtensor(t[:, 1:, m[0]], t[:, 1:, m[0]] * 3),
    ]  # fmt: skip
    value = RNG.normal(size=(4, 4, 4))
    for mask in (value[0] > 0, value[0] > 9, value[0] < 9):
        same_bits([t, m], outputs, [value, mask], mode)


@NATIVE
def test_functions_of_selected_elements(mode):
    v, w = pt.dvectors("v", "w")
    big = v > 0.25
    outputs = [
        pt.set_subtensor(v[big], pt.exp(v[big]) / 2),
        pt.inc_subtensor(v[v > w], w[v > w] * v[v > w] - 1),
        pt.set_subtensor(v[w > 0], pt.exp(w[w > 0])),
    ]
    same_bits([v, w], outputs, [V, V[::-1].copy()], mode)
    sums = [pt.exp(v[big]).sum(), v[big].mean(), v[big].prod(), v[w > 0].sum(), v[big].max()]
    f = phintys.function([v, w], sums, mode=mode)
    reference = phintys.function([v, w], sums, mode="FAST_COMPILE")
    x, y = RNG.normal(size=(2, 1000))
    for found, expected in zip(f(x, y), reference(x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@NATIVE
def test_a_mask_in_a_step(mode):
    s = pt.dvector("s")
    out = phintys.scan(
        lambda s: pt.set_subtensor(s[s > 0.5], s[s > 0.5] / 2) + 0.3,
        outputs_info=s,
        n_steps=7,
        return_updates=False,
    )
    same_bits([s], [out, out[-1]], [V], mode)
    f = phintys.function([s], out)
    assert not any("scatter" in text for text in phintys.explain(f).kernels)


@pytest.mark.parametrize("mode", ["FAST_RUN", "C", "FAST_COMPILE"])
def test_a_mask_that_does_not_fit(mode):
    v, m = pt.dvector("v"), pt.TensorType("bool", (None,))("m")
    for out in (v[m], v[m].sum(), pt.set_subtensor(v[m], v[m] * 2)):
        f = phintys.function([v, m], out, mode=mode)
        with pytest.raises(IndexError, match="The mask does not fit axis 0"):
            f([1.0, 2.0], [True, False, True])


@NATIVE
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "bool"])
def test_repeats_by_counts(dtype, mode):
    x, n = pt.dmatrix("x"), pt.TensorType(dtype, (None,))("n")
    outputs = [pt.repeat(x, n, axis=1), pt.repeat(x[::-1].T, n, axis=0), pt.repeat(x[0], n)]
    for counts in ([1, 0, 1, 1, 0], [0] * 5, [1] * 5, [3, 0, 2, 1, 7]):
        same_bits([x, n], outputs, [M, np.array(counts).astype(dtype)], mode)
    same_bits([x, n], outputs, [M[:, :0], np.zeros(0, dtype)], mode)


@pytest.mark.parametrize("mode", ["FAST_RUN", "C", "FAST_COMPILE"])
def test_counts_that_are_wrong(mode):
    v, n = pt.dvector("v"), pt.lvector("n")
    f = phintys.function([v, n], pt.repeat(v, n), mode=mode)
    with pytest.raises(ShapeError, match="There is not one count for each element"):
        f([1.0, 2.0], [1])
    with pytest.raises(ValueError, match="negative"):
        f([1.0, 2.0], [5, -3])


@pytest.mark.parametrize("mode", ["FAST_RUN", "C"])
def test_more_elements_than_memory_holds(mode):
    """NumPy's own function ends the process if the sum of the counts overflows."""
    v, n = pt.dvector("v"), pt.lvector("n")
    f = phintys.function([v, n], pt.repeat(v, n), mode=mode)
    for counts in ([2**62, 2**62, 2**62, 2**62 + 4], [2**62, 2**62, 2**62 + 5, 0]):
        with pytest.raises(MemoryError):
            f(np.arange(4.0), counts)


def complex_values(dtype, *shapes):
    return [(RNG.normal(size=s) + 1j * RNG.normal(size=s)).astype(dtype) for s in shapes]


SHAPES = [
    ((3, 4), (4, 5)), ((3, 4), (4,)), ((4,), (4, 5)), ((4,), (4,)), ((0, 4), (4, 5)),
    ((3, 0), (0, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 2)), ((1, 1), (1, 1)),
]  # fmt: skip


@NATIVE
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products(dtype, mode):
    for shapes in SHAPES:
        x, y = variables = [
            pt.TensorType(dtype, tuple(1 if n == 1 else None for n in s))() for s in shapes
        ]
        outputs = [x @ y]
        if x.type.ndim == y.type.ndim == 2:
            outputs += [pt.dot(y.T, x.T), (pt.conj(x)[:, ::-1] @ y)[::-1], 2j * pt.dot(x, y)]
        compare_products(variables, outputs, complex_values(dtype, *shapes), mode)


@NATIVE
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_ops_of_blas_of_complex_numbers(dtype, mode):
    cases = {
        blas.gemm: [(3, 5), (), (3, 4), (4, 5), ()],
        blas.gemv: [(3,), (), (3, 4), (4,), ()],
        blas.ger: [(3, 5), (), (3,), (5,)],
        blas._batched_dot: [(2, 3, 4), (2, 4, 5)],
    }
    for op, shapes in cases.items():
        variables = [pt.TensorType(dtype, (None,) * len(s))() for s in shapes]
        values = complex_values(dtype, *shapes)
        compare_products(variables, [op(*variables)], values, mode)
    z, alpha, x, y, beta = complex_values(dtype, *cases[blas.gemm])
    variables = [pt.TensorType(dtype, (None,) * v.ndim)() for v in (z, alpha, x, y, beta)]
    values = [z * np.nan, alpha, x, y, beta * 0]  # where beta is 0, z is not read
    compare_products(variables, [blas.gemm(*variables)], values, mode)


def compare_products(variables, outputs, values, mode):
    f = phintys.function(variables, outputs, mode=mode)
    assert phintys.explain(f).python_ops == []
    reference = phintys.function(variables, outputs, mode="FAST_COMPILE")
    rtol = 1e-5 if values[0].dtype == "complex64" else 1e-12
    for found, expected in zip(f(*values), reference(*values), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_stacks(name):
    v, m, t = pt.dvector("v"), pt.dmatrix("m"), pt.dtensor3("t")
    values = {v: V[:4], m: M[:, :4], t: T}
    function, expected = getattr(pt, name), getattr(np, name)
    groups = {"hstack": [(v, v), (m, m), (t, t)], "vstack": [(v, m), (v, v), (t, t)]}
    groups |= {"dstack": [(v, v), (m, m), (t, t)], "column_stack": [(v, m), (v, v), (t, t)]}
    for group in groups[name]:
        found = function(group).eval({x: values[x] for x in group})
        np.testing.assert_array_equal(found, expected([values[x] for x in group]))


def test_outer_functions():
    v, m = pt.dvector("v"), pt.dmatrix("m")
    found = pt.sub.outer(m, v).eval({v: V, m: M})
    np.testing.assert_array_equal(found, np.subtract.outer(M, V))
    with pytest.raises(TypeError, match="takes 1 arguments, not 2"):
        pt.exp.outer(v, v)
