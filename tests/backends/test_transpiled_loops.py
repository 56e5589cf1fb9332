"""Modes JAX and NUMBA: loops agree with the reference, gradients included."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import compiled, symbols
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys import grad
from phintys.errors import ShapeError, UnsupportedError
from phintys.loop import Scan, ScanInfo, until

RNG = np.random.default_rng(1)
a, s, u = pt.dscalars("a", "s", "u")
x, y, s0 = pt.dvector("x"), pt.dvector("y"), pt.dscalar("s0")


@pytest.fixture(params=["JAX", "NUMBA"])
def mode(request):
    return request.param


def scan(*args, **kwargs):
    return phintys.scan(*args, **kwargs, return_updates=False)


def values(*shapes):
    return [np.asarray(RNG.normal(size=shape) / 2) for shape in shapes]


def assert_agrees(mode, build, *batches):
    """The results of ``build``, for several sets of values, are those of the reference."""
    inputs = symbols(batches[0])
    outputs = build(*inputs)
    f, g = (compiled(m, inputs, outputs) for m in (mode, "FAST_COMPILE"))
    for given in batches:
        for found, expected in zip(f(*given), g(*given), strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_every_kind_of_argument_and_gradients(mode):
    def step(before, now, s, older, newer, w):
        return pt.tanh(s * w + now), newer * s + older * before, pt.sin(s) * now

    def build(x, s0, y0, w):
        states = [s0, dict(initial=y0, taps=[-3, -1]), None]
        outputs = scan(step, [dict(input=x, taps=[-1, 1])], states, [w])
        if mode == "NUMBA":  # which compiles for long
            return [*outputs, *grad((outputs[1] ** 2).sum(), [y0, w])]
        return [*outputs, *grad(sum((out**2).sum() for out in outputs), [x, s0, y0, w])]

    assert_agrees(mode, build, *(values(n, (), 3, ()) for n in (6, 3, 2)))


@pytest.mark.needs("jax")
def test_second_derivatives_by_jax():
    def build(x, s0, w):
        out = scan(lambda a, s, w: pt.tanh(s * w + a), [x], [s0], [w])
        return grad(sum((g**2).sum() for g in grad((out**2).sum(), [x, s0, w])), [x, s0, w])

    assert_agrees("JAX", build, values(4, (), ()), values(0, (), ()))


@pytest.mark.needs("jax")
def test_nested_loops_of_matrices_by_jax():
    def step(row, h, w):
        return scan(lambda a, s, w: pt.tanh(a + s @ w), [row], [h], [w])[-1]

    def build(x, h, w):
        out = scan(step, [x], [h], [w])
        return [out, *grad((out**2).sum(), [x, h, w])]

    assert_agrees("JAX", build, values((3, 2), 2, (2, 2)))


def test_rows_of_matrices(mode):
    def build(x, h, w):
        return scan(lambda a, h, w: [pt.tanh(a + h @ w), h + a], [x], [h, None], [w])

    assert_agrees(mode, build, *(values((n, 2), 2, (2, 2)) for n in (3, 0)))


def in_turns(s0, n):
    """A state that keeps two rows, an output that keeps one, and an untraced state."""
    info = ScanInfo(0, (), (), (), ((-1,),), 1, 1, 0, False)
    return Scan([s, a], [s * 2 + a, s + 1, a + 1], info)(n, pt.stack([s0, s0]), s0, 2)


def test_the_last_rows(mode):
    n = pt.lscalar("n")
    f, g = (phintys.function([s0, n], in_turns(s0, n), mode=m) for m in (mode, "FAST_COMPILE"))
    for steps in (5, 2, 1):
        for found, expected in zip(f(0.5, steps), g(0.5, steps), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.needs("numba")
def test_a_loop_without_steps_has_memory_of_its_own():
    n = pt.lscalar("n")
    v = pt.dvector("v")
    op = Scan([v], [2 * v], ScanInfo(0, (), (), (), (), 0, 1, 0, False))
    f = compiled("NUMBA", [v, n], op(n, v))
    given = np.ones(3)
    assert not np.shares_memory(f(given, 0), given)


def test_while(mode):
    info = ScanInfo(1, (), (), (), ((-1,),), 0, 1, 0, True)
    op = Scan([a, s, u], [a + s, u * a, a > 0.3], info)

    def build(x, s0):
        buffer = pt.stack([s0])  # the last row
        return op(4, x, buffer, s0)

    xs = np.array([0.1, 0.2, 0.5, 0.6])
    assert_agrees(mode, build, [xs, np.array(0.5)], [-xs, np.array(0.5)])


@rest
@pytest.mark.needs("numba")
@pytest.mark.needs("jax")
def test_the_rows_of_a_while_loop():
    def build(x):
        out = scan(lambda a: (a * a, until(a > 0.3)), [x])
        return [out, grad(out.sum(), x)]

    xs = np.array([0.1, 0.2, 0.5, 0.6])
    assert_agrees("NUMBA", build, [xs], [-xs])
    with pytest.raises(UnsupportedError, match="rows of a result of a loop depends on values"):
        compiled("JAX", [x], build(x))(xs)


def test_a_while_loop_without_steps(mode):
    def step(row, last):
        return [last + row, 2 * row], until(last > 2)

    def build(x, s0):
        outputs = scan(step, [x], [s0, None])
        return [out[first:] for out in outputs for first in (-1, -2, -3)]

    assert_agrees(mode, build, values(0, ()))


@pytest.mark.parametrize("n", [0, 1])
def test_a_while_loop_of_a_known_number_of_steps(mode, n):
    def build(s0):
        out = scan(lambda s: (s + 1, until(s > 2)), None, s0, n_steps=n)
        return [out[-1:], s0 + out.sum()]

    assert_agrees(mode, build, values(()))


def test_a_while_loop_of_a_given_number_of_steps(mode):
    n = pt.lscalar("n")
    out = scan(lambda s: (s + 1, until(s > 2)), None, x[0], n_steps=n)[-1:]
    f = compiled(mode, [n, x], [out])
    for steps, last in ((0, []), (2, [2.5]), (9, [3.5])):
        np.testing.assert_array_equal(f(steps, [0.5])[0], last)


def test_errors(mode):
    f = phintys.function([x, y], scan(lambda a, s: a * s[:1], [x], [y]), mode=mode)
    with pytest.raises(ShapeError):
        f(np.ones(3), np.ones(2))
    i = pt.lvector("i")
    g = phintys.function([x, i], scan(lambda k: x[k], [i]), mode=mode)
    np.testing.assert_array_equal(g(np.arange(3.0), [2, 0]), [2.0, 0.0])
    with pytest.raises(IndexError):
        g(np.arange(3.0), [2, 3])


def test_draws(mode):
    rng = phintys.shared(np.random.default_rng(5))
    following, out = scan(
        lambda rng: list(rng.normal(0.0, 1.0)), outputs_info=[rng, None], n_steps=1000
    )
    f = phintys.function([], out, updates={rng: following}, mode=mode)
    first, second = f(), f()
    assert abs(first.mean()) < 0.15 and abs(first.std() - 1) < 0.1
    assert len(np.unique([first, second])) == 2000
