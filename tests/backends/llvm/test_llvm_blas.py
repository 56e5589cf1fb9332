# pyright: basic
"""`Call` steps: every form of operand, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hand_built import ONE, ZERO, Builder, native

import phintys
import phintys.tensor as pt
from phintys.backends.llvm.machine.target import current
from phintys.backends.llvm.runtime import cells
from phintys.dims import Dim, as_dim
from phintys.lowering.program import Call, Operand

pytestmark = pytest.mark.widths

rng = np.random.default_rng(1)


SIZES = [
    (3, 4, 5),
    (1, 1, 1),
    (0, 3, 2),
    (3, 0, 2),
    (3, 2, 0),
    (1, 5, 2),
    (5, 1, 2),
    (4, 4, 1),
    (9, 13, 7),
    (8, 16, 32),
    (32, 27, 5),
    (33, 3, 4),
    (9, 1, 7),
    (40, 1, 50),
    (6, 11, 300),
    (40, 30, 50),
    (30, 40, 50),
]
#: forms of a matrix: (shape of memory, strides) from the lengths (r, c)
FORMS = {
    "rows": lambda r, c: ((r, c), (c, 1)),
    "columns": lambda r, c: ((c, r), (1, r)),
    "wide rows": lambda r, c: ((r, c + 3), (c + 3, 1)),
    "wide columns": lambda r, c: ((c, r + 2), (1, r + 2)),
    "no unit": lambda r, c: ((r, 2 * c), (2 * c, 2)),
    "same rows": lambda r, c: ((1, c), (0, 1)),
}
VECTORS = {
    "unit": lambda n: (n, 1, 0),
    "strided": lambda n: (3 * n + 1, 3, 1),
    "backwards": lambda n: (n + 1, -1, n),
    "same": lambda n: (1, 0, 0),
}
#: the forms of x and y
PAIRS = [*itertools.product(VECTORS, ["unit"]), ("unit", "strided"), ("strided", "backwards")]


def _blas(name, dtype, sizes, operands, target_shape, alpha=1.0, beta=0.0, batch=()):
    """Run one `Call` whose first operand is an updated copy of an input; gives memory after."""
    b = Builder()
    slots = [b.input(dtype, array.shape) for array, _, _ in operands]
    target = b.copy(slots[0], b.output(dtype, slots[0].shape))
    made = [
        Operand(slot, tuple(map(as_dim, strides)), as_dim(offset))
        for slot, (_, strides, offset) in zip((target, *slots[1:]), operands)
    ]
    factors: list[Any] = []
    for value in (alpha, beta):
        if isinstance(value, np.ndarray):
            factors.append(Operand(b.constant(value), (), ZERO))
        else:
            factors.append(value)
    b.add(
        Call(
            name,
            dtype,
            tuple(map(as_dim, sizes)),
            tuple(made),
            factors[0],
            factors[1],
            tuple(map(as_dim, batch)),
        )
    )
    f = native(b.program(target, legal=False), single=True)
    return f(*(array for array, _, _ in operands))


def _view(array, shape, strides, offset=0):
    size = array.itemsize
    flat = array.reshape(-1)[offset:]
    return np.lib.stride_tricks.as_strided(flat, shape, [s * size for s in strides])


def _random_matrix(dtype, form, r, c):
    shape, strides = FORMS[form](r, c)
    return rng.normal(size=shape).astype(dtype), strides, 0


def _random_vector(dtype, form, n):
    length, stride, offset = VECTORS[form](n)
    return rng.normal(size=length).astype(dtype), (stride,), offset if n else 0


def _close(result, wanted, dtype):
    np.testing.assert_allclose(
        result, wanted, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-5
    )


@pytest.mark.parametrize("form_a, form_b", [*itertools.product(FORMS, FORMS)])
@pytest.mark.parametrize("sizes", [(6, 11, 5), (3, 35, 5)], ids=["narrow", "BLAS"])
def test_gemm_forms(form_a, form_b, sizes):
    m, n, k = sizes
    dtype = "float32" if form_a == form_b else "float64"
    a, b = _random_matrix(dtype, form_a, m, k), _random_matrix(dtype, form_b, k, n)
    c = _random_matrix(dtype, "rows", m, n)
    result = _blas("gemm", dtype, (m, n, k), (c, a, b), (m, n))
    _close(result, _view(a[0], (m, k), a[1]) @ _view(b[0], (k, n), b[1]), dtype)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("form", ["rows", "columns", "wide rows", "no unit"])
@pytest.mark.parametrize("beta", [0.0, 0.5, np.array(2.0)])
def test_gemm_targets(sizes, form, beta):
    m, n, k = sizes
    a, b = _random_matrix("float64", "rows", m, k), _random_matrix("float64", "columns", k, n)
    c = _random_matrix("float64", form, m, n)
    if isinstance(beta, float) and beta == 0:
        c[0][...] = np.nan
    wanted = c[0].copy()
    old = _view(wanted, (m, n), c[1])
    product = -1.5 * (_view(a[0], (m, k), a[1]) @ _view(b[0], (k, n), b[1]))
    old[...] = product + (beta * old if np.any(beta != 0) else 0)
    _close(_blas("gemm", "float64", sizes, (c, a, b), (m, n), -1.5, beta), wanted, "float64")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("x_form, y_form", PAIRS)
def test_gemv(form, x_form, y_form):
    dtype = "float32" if x_form == y_form else "float64"
    sizes = [(3, 4), (0, 2), (2, 0), (1, 1), (9, 13), (6, 35)]
    for (m, k), beta in itertools.product(sizes, [0.0, 0.5]):
        a = _random_matrix(dtype, form, m, k)
        x, y = _random_vector(dtype, x_form, k), _random_vector(dtype, y_form, m)
        if beta == 0:
            y[0][...] = np.nan
        wanted = y[0].copy()
        old = _view(wanted, (m,), y[1], y[2])
        product = 2 * (_view(a[0], (m, k), a[1]) @ _view(x[0], (k,), x[1], x[2]))
        old[...] = product + (beta * old if beta else 0)
        _close(_blas("gemv", dtype, (m, k), (y, a, x), (m,), 2.0, beta), wanted, dtype)


@pytest.mark.parametrize("form", ["rows", "columns", "wide columns", "no unit"])
@pytest.mark.parametrize("x_form, y_form", PAIRS)
def test_ger(form, x_form, y_form):
    for m, n in [(3, 4), (0, 2), (2, 0), (1, 1)]:
        a = _random_matrix("float64", form, m, n)
        x, y = _random_vector("float64", x_form, m), _random_vector("float64", y_form, n)
        wanted = a[0].copy()
        vectors = (_view(v[0], (d,), v[1], v[2]) for v, d in ((x, m), (y, n)))
        _view(wanted, (m, n), a[1])[...] += -0.5 * np.outer(*vectors)
        _close(_blas("ger", "float64", (m, n), (a, x, y), (m, n), -0.5, 1.0), wanted, "float64")


@pytest.mark.parametrize("x_form, y_form", [*itertools.product(VECTORS, VECTORS)])
def test_dot(x_form, y_form):
    dtype = "float32" if x_form == y_form else "float64"
    for k in (0, 1, 7):
        x, y = _random_vector(dtype, x_form, k), _random_vector(dtype, y_form, k)
        r = np.full((), np.nan, dtype), (), 0
        wanted = _view(x[0], (k,), x[1], x[2]) @ _view(y[0], (k,), y[1], y[2])
        _close(_blas("dot", dtype, (k,), (r, x, y), ()), wanted, dtype)


def test_batched_gemm():
    a, b = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(3, 5, 6))
    c = np.zeros((2, 3, 4, 6))
    operands = ((c, (72, 24, 6, 1), 0), (a, (60, 20, 5, 1), 0), (b, (0, 30, 6, 1), 0))
    result = _blas("gemm", "float64", (4, 6, 5), operands, c.shape, batch=(2, 3))
    np.testing.assert_allclose(result, a @ b)
    result = _blas("gemm", "float64", (4, 6, 5), operands, c.shape, batch=(0, 3))
    np.testing.assert_array_equal(result, c)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_remainder_of_small_products(dtype):
    columns = [*range(1, 10), 15, 16, 17, 18]
    for (m, k), n in itertools.product([(1, 2), (3, 1), (4, 5), (6, 2)], columns):
        a, b = _random_matrix(dtype, "rows", m, k), _random_matrix(dtype, "rows", k, n)
        c = np.full((m, n), np.inf, dtype), (n, 1), 0
        _close(_blas("gemm", dtype, (m, n, k), (c, a, b), (m, n)), a[0] @ b[0], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batches_of_every_remainder(dtype):
    """Blocks of 8 and 4 rows, of 4, 2 and 1 vectors; factors by rows and by columns; no terms."""
    x, y = pt.tensor4("x", dtype=dtype), pt.tensor3("y", dtype=dtype)
    z = pt.tensor3("z", dtype=dtype)
    f = phintys.function([x, y, z], [x @ y, x @ z.swapaxes(1, 2)])
    rows = [1, 3, 4, 7, 8, 9, 12, 17]
    columns = [1, 2, 5, 8, 9, 16, 17, 24, 31, 32, 33, 66]
    for m, n, k in itertools.product(rows, columns, (0, 1, 5, 130)):
        if (m + n + k) % 3 == 0:
            a = rng.normal(size=(2, 3, m, k)).astype(dtype)
            b = rng.normal(size=(3, k, n)).astype(dtype)
            for found in f(a, b, np.ascontiguousarray(b.swapaxes(1, 2))):
                _close(found, a @ b, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_remainder_of_short_rows(dtype):
    for m, k in itertools.product([1, 3, 4, 7, 8, 9, 16, 17], [1, 3, 4, 5, 8, 17, 32, 33]):
        a, x = _random_matrix(dtype, "rows", m, k), _random_vector(dtype, "unit", k)
        y = np.full(m, np.nan, dtype), (1,), 0
        _close(_blas("gemv", dtype, (m, k), (y, a, x), (m,)), a[0] @ x[0], dtype)


def test_nan_in_small_products_stays_in_its_row_and_column():
    a, b = np.ones((5, 6)), np.ones((6, 7))
    a[2, 3], b[1, 6] = np.nan, np.inf
    c = np.zeros((5, 7)), (7, 1), 0
    with np.errstate(invalid="ignore"):
        wanted = a @ b
    result = _blas("gemm", "float64", (5, 7, 6), (c, (a, (6, 1), 0), (b, (7, 1), 0)), (5, 7))
    np.testing.assert_array_equal(result, wanted)


def test_sizes_beyond_32_bits():
    b = Builder()
    k = b.input("int64")
    x = b.input("float64", (1,))
    r = b.output("float64", ())
    length = Dim.symbol(("item", k.number))
    operands = (Operand(r, (), ZERO), Operand(x, (ONE,), ZERO), Operand(x, (ONE,), ZERO))
    b.add(Call("dot", "float64", (length,), operands))
    f = native(b.program(r), single=True)
    assert f(1, np.array([3.0])) == 9
    with pytest.raises(OverflowError, match="too large for BLAS"):
        f(2**31, np.array([3.0]))


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("name", ["product", "short", "narrow", "dots"])
@pytest.mark.parametrize("rows", [4, 100_000])
def test_code_for_small_products_cannot_be_made(name, error, rows, monkeypatch):
    """The error is the call's; the next call tries again.  Large ones give up the lock."""
    lanes = current().lanes(8)
    columns = {"product": 2 * lanes, "short": lanes, "narrow": lanes - 1, "dots": 1}[name]
    if name == "narrow" and columns == 1:
        pytest.skip("products with one column take dots")
    a, b = pt.dmatrix("a"), pt.dvector("b") if name == "dots" else pt.dmatrix("b")
    f = phintys.function([a, b], pt.dot(a, b))
    x, y = np.arange(3.0 * rows).reshape(rows, 3), np.arange(3.0 * columns).reshape(3, columns)
    y = y[:, 0] if name == "dots" else y
    cell = cells.product(name, "float64", current())
    make = cell._make
    cell._word.value = None

    def fail():
        raise error("no")

    monkeypatch.setattr(cell, "_make", fail)
    for _ in range(2):
        with pytest.raises(error, match="no"):
            f(x, y)
    monkeypatch.setattr(cell, "_make", make)
    np.testing.assert_array_equal(f(x, y), x @ y)
    assert cell._word.value
