"""Compiled loops give what `perform` gives."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys.backends.c.compiler import COMPILERS
from phintys.backends.llvm.machine.target import current
from phintys.config import config
from phintys.errors import ShapeError
from phintys.loop import Scan, ScanInfo
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Kernel, Loop, Python

RNG = np.random.default_rng(7)
MODES = [("FAST_RUN", 128), ("FAST_RUN", 256), ("FAST_RUN", 512), ("C", 0)]
needs_c = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler")
own = current().register_bits
marks = [needs_c if m == "C" else () if bits == own else rest for m, bits in MODES]
modes = pytest.mark.parametrize(
    "mode, bits", [pytest.param(*m, marks=mark) for m, mark in zip(MODES, marks)]
)


def compiled(inputs, outputs, mode, bits):
    with config.change_flags(vector_bits=bits):
        return phintys.function(inputs, outputs, mode=mode, on_unused_input="ignore")


def same(found, expected, rtol=1e-12):
    for one, two in zip(found, expected, strict=True):
        assert one.shape == two.shape and one.dtype == two.dtype
        np.testing.assert_allclose(one, two, rtol=rtol)


def every_kind(dtype, ndim, as_while=False):
    """A node with arguments of every kind, whose rows have ``ndim`` axes; its inputs."""
    info = ScanInfo(1, ((0, 1),), ((1, 0),), ((-3, -1),), ((-1,),), 1, 1, 1, as_while)
    row, rows = pt.TensorType(dtype, (None,) * ndim), pt.TensorType(dtype, (None,) * (ndim + 1))
    x, m0, m1, t3, t1, s1, u, c = inner = [row() for _ in range(8)]

    def add(*terms):
        return sum(terms[1:], terms[0]) if dtype != "bool" else terms[0] ^ terms[-1]

    outputs = [add(m0, x), add(m1, s1), add(t3, t1, x), add(s1, c), add(x, u), add(u, t3)]
    if as_while:
        outputs.append(pt.gt(x.flatten()[0], 2))
    op = Scan(inner, outputs, info)
    steps, count = pt.lscalars("steps", "count")
    given = [steps, *(rows() for _ in range(4)), row(), count, row()]
    return given, op(*given, return_list=True)


def arguments(dtypes, sizes, last=0):
    """Arguments for `every_kind` of all dtypes, for rows of rank 0 and 1."""
    steps, first, one, count = sizes
    args = []
    for d in dtypes:
        for row in ((), (3,)):
            lengths = (steps + 1, steps + 2, first, one)
            rows = [(RNG.normal(size=(n, *row)) * 2).astype(d) for n in lengths]
            if last:
                rows[0].real[: last - 1], rows[0][last - 1 : last] = 0, 3
            state, constant = (RNG.normal(size=row) * 3).astype(d), np.ones(row, d)
            args += [steps, *rows, state, count, constant]
    return args


def no_python(f):
    return not any(isinstance(s, Python) for s in f.program.steps)


@modes
@pytest.mark.parametrize("as_while", [False, True])
def test_every_kind(mode, bits, as_while):
    """Numbers of steps, and of rows of buffers: as many as needed, fewer, more."""
    dtypes = ["float64", "float16", "complex64", "int8", "bool"]
    dtypes = dtypes[:2] if as_while or bits < 512 else dtypes
    pairs = [every_kind(d, ndim, as_while) for d in dtypes for ndim in (0, 1)]
    inputs = [v for given, _ in pairs for v in given]
    outputs = [v for _, results in pairs for v in results]
    f, reference = (compiled(inputs, outputs, *m) for m in ((mode, bits), ("FAST_COMPILE", 0)))
    assert no_python(f)
    for sizes in ((0, 3, 1, 0), (1, 3, 1, 1), (7, 3, 1, 2), (7, 9, 5, 8), (4, 12, 2, 1)):
        args = arguments(dtypes, sizes, min(3, sizes[0]) if as_while else 0)
        same(f(*args), reference(*args), 1e-3)


@modes
def test_loops_of_users(mode, bits):
    """Taps, a ring of known length, a generator as state, a loop in a loop, going backwards."""
    x, m, n = pt.dvector("x"), pt.dmatrix("m"), pt.lscalar("n")
    two = pt.as_tensor(np.ones((2, 3)))
    info = dict(initial=two, taps=[-2, -1])
    fibonacci = phintys.scan(
        lambda a, b: (a + b) / 2, outputs_info=[info], n_steps=n, return_updates=False
    )
    reverse = phintys.scan(
        lambda e, a: (a * 0.5 + e, a.sum() * e[0]),
        sequences=[m],
        outputs_info=[pt.zeros(3), None],
        go_backwards=True,
        return_updates=False,
    )
    triangle = phintys.scan(
        lambda e: phintys.scan(
            lambda a: a * e + 1, outputs_info=[pt.ones(2)], n_steps=3, return_updates=False
        )[-1],
        sequences=[x],
        return_updates=False,
    )
    info = ScanInfo(0, (), (), ((-2, -1),), (), 0, 0, 0, False)
    a, b = pt.dvectors("a", "b")
    (ring,) = Scan([a, b], [a - b], info)(n, two, return_list=True)
    outputs = [fibonacci, *reverse, triangle, ring]
    f, reference = (
        compiled([x, m, n], outputs, *way) for way in ((mode, bits), ("FAST_COMPILE", 0))
    )
    assert no_python(f)
    for count in (0, 1, 5):
        args = RNG.normal(size=count), RNG.normal(size=(count, 3)), count
        same(f(*args), reference(*args))


@pytest.mark.parametrize("mode", ["FAST_RUN", pytest.param("C", marks=needs_c)])
def test_errors_are_those_of_the_reference(mode):
    steps, x, s = pt.lscalar(), pt.dmatrix(), pt.dmatrix()
    a, b = pt.dvectors("a", "b")
    info = ScanInfo(1, (), (), ((-2,),), (), 0, 0, 0, False)
    f = phintys.function([steps, x, s], Scan([a, b], [a + b], info)(steps, x, s), mode=mode)
    good = 2, np.ones((2, 3)), np.ones((4, 3))
    np.testing.assert_array_equal(f(*good), [[1.0] * 3] * 2 + [[2.0] * 3] * 2)
    for bad in ((3, *good[1:]), (*good[:2], np.ones((1, 3))), (-1, *good[1:])):
        with pytest.raises(ShapeError):
            f(*bad)
    with pytest.raises(ShapeError):
        f(2, np.ones((2, 3)), np.ones((4, 2)))


def test_rows_of_lengths_that_only_a_step_tells():
    """They are computed by the reference."""
    x = pt.dmatrix("x")
    r = phintys.scan(lambda e: e[e > 0], sequences=[x], return_updates=False)
    f = phintys.function([x], r)
    np.testing.assert_array_equal(f([[1.0, -1, 2], [-1, 3, 4]]), [[1, 2], [3, 4]])
    with pytest.raises(ShapeError):
        f([[1.0, -1, 2], [1, 3, 4]])


def test_a_generator_as_state():
    from phintys.tensor.random import normal

    rng = phintys.shared(np.random.default_rng(3))
    new, draw = normal(0, 1, size=(2,), rng=rng).owner.outputs

    def step():
        return [draw], {rng: new}

    with pytest.warns(DeprecationWarning):
        r, updates = phintys.scan(step, n_steps=4)
    f = phintys.function([], r, updates=updates)
    expected = np.random.default_rng(3)
    for _ in range(2):
        np.testing.assert_array_equal(f(), expected.normal(size=(4, 2)))


def backward(shape):
    """The value and the gradient of a recurrence of two terms, over rows of a shape."""
    x = pt.TensorType("float64", (None, *shape))()
    a = pt.dscalar()
    initial = pt.zeros((2, *(x.shape[k + 1] for k in range(len(shape)))))
    y = phintys.scan(
        lambda e, q, p, a: a * p + pt.sin(q) + e,
        *(x, dict(initial=initial, taps=[-2, -1]), a),
        return_updates=False,
    )
    cost = pt.sqr(y).sum()
    return [x, a], [cost, *phintys.grad(cost, [x, a]), y[::-1]]


@pytest.mark.parametrize("mode", ["FAST_RUN", pytest.param("C", marks=needs_c), "interpreter"])
@pytest.mark.parametrize("shape", [(), (None,), (2, None)], ids=str)
def test_loops_that_run_backwards_copy_no_rows(mode, shape):
    inputs, outputs = backward(shape)
    f = compiled(inputs, outputs, "FAST_RUN" if mode == "interpreter" else mode, 0)
    steps = [s for s in f.program.steps if isinstance(s, (Kernel, Loop))]
    reversals = [
        (w.operand.slot, w.operand.strides[0])
        for loop in steps if isinstance(loop, Loop)
        for w in loop.windows if w.writes and w.operand.offset.value != 0
    ]  # fmt: skip
    assert len(reversals) == 2
    copies = [k for k in steps if isinstance(k, Kernel) and len(k.body) == 2 and k.operands[1:]]
    assert all(k.operands[0].offset.value == 0 for k in copies)
    reference = compiled(inputs, outputs, "FAST_COMPILE", 0)
    for n in (0, 1, 2, 5):
        args = RNG.normal(size=(n, *(d or 3 for d in shape))), 0.3
        found = interpret(f.program, *args) if mode == "interpreter" else f(*args)
        same(found, reference(*args))
