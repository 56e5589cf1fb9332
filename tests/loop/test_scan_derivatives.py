"""Derivatives of loops: both directions, first and second, against differences and Python loops."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from derivative_checks import check, point_of
from tensor_checks import evaluate
from tiers import rest

import phintys
import phintys.tensor as pt
from phintys import grad
from phintys.errors import DisconnectedInputError, NullTypeGradError
from phintys.graph.traversal import ancestors
from phintys.loop import Scan, ScanInfo, scan_checkpoints, until

RNG = np.random.default_rng(3)
x, y0 = pt.dvectors("x", "y0")
s0, w = pt.dscalars("s0", "w")
n = pt.lscalar("n")


def scan(*args, **kwargs):
    return phintys.scan(*args, **kwargs, return_updates=False)


def values(*shapes):
    return [np.asarray(RNG.normal(size=shape) / 2) for shape in shapes]


def loops(*outputs):
    """The nodes of loops in the graph of variables."""
    owners = {v.owner for v in ancestors(outputs) if v.owner is not None}
    return [node for node in owners if isinstance(node.op, Scan)]


# ------------------------------------------------------- forms, against finite differences


def every_kind(x, s0, y0, w):
    """Sequences with taps, states with one tap and several, an output that is not read."""

    def step(before, now, s, older, newer, w):
        return pt.tanh(s * w + now), newer * s + older * before, pt.sin(s) * now

    states = [s0, dict(initial=y0, taps=[-3, -1]), None]
    return scan(step, [dict(input=x, taps=[-1, 1])], states, [w])


def mapped(x, w):
    return scan(lambda a, w: pt.exp(a * w), [x], non_sequences=[w])


def backwards(x, s0):
    return scan(lambda a, s: pt.tanh(s) * a, [x], [s0], go_backwards=True)


def of_matrices(x, h0, w, u):
    return scan(lambda a, h, w, u: pt.tanh(h @ w + a @ u), [x], [h0], [w, u])


def last_only(x, s0):
    return scan(lambda a, s: a * s + pt.cos(s), [x], [s0])[-1]


def stopped(x, s0, w):
    return scan(lambda a, s, w: (pt.sin(s * w) + a, until(a > 0.3)), [x], [s0], [w])


def nested(x, s0, w):
    def step(row, s, w):
        inner = scan(lambda a, t, w: pt.tanh(a * t + w), [row], [s], [w])
        return inner[-1] + inner.sum() * w

    return scan(step, [x], [s0], [w])


def folds_and_checkpoints(x, s0, w):
    def step(a, s):
        return pt.sin(a * s) + w

    options = {"return_updates": False}
    return [
        phintys.reduce(step, x, s0, [], **options),
        phintys.foldl(step, x, s0, [], **options),
        phintys.foldr(step, x, s0, [], **options),
        phintys.map(lambda a: step(a, w), x, [], **options),
        scan_checkpoints(lambda a, s, w: step(a, s) * w, x, s0, w, save_every_N=2, **options),
    ]


def untraced(x, s0, w):
    """A loop of which only the last value of a state is kept."""
    a, s, g = pt.dscalars("a", "s", "g")
    op = Scan([a, s, g], [pt.sin(s * a) + g * s], ScanInfo(1, (), (), (), (), 0, 1, 1, False))
    return op(x.shape[0], x, s0, w)


def stopped_untraced(x, s0, w):
    a, s, g = pt.dscalars("a", "s", "g")
    info = ScanInfo(1, (), (), (), (), 0, 1, 1, True)
    return Scan([a, s, g], [pt.sin(s * a) + g * s, a > 0.3], info)(x.shape[0], x, s0, w)


def read_and_written(buffer, x):
    """A buffer of which a step writes a row that it reads, and one that it does not read."""
    a, b, c = pt.dscalars("a", "b", "c")
    info = ScanInfo(1, ((0, 2),), ((2, 1),), (), (), 0, 0, 0, False)
    return Scan([a, b, c], [pt.sin(b) * c + a, b * a], info)(x.shape[0], x, buffer)


def read_only(buffer, x):
    """A buffer of which no row is written."""
    a, b = pt.dscalars("a", "b")
    info = ScanInfo(1, ((1,),), ((),), (), (), 1, 0, 0, False)
    return Scan([a, b], [pt.sin(a) * b], info)(x.shape[0], x, buffer, x.shape[0])[1]


def with_an_integer_state(x, s0):
    count = pt.constant(np.int64(0))
    return scan(lambda a, s, k: (s * a + k, k + 1), [x], [s0, count])[0]


ASCENDING = np.array([-0.2, 0.1, 0.2, 0.4, 0.6])
FORMS = {
    every_kind: values(6, (), 3, ()),
    mapped: values(3, ()),
    backwards: values(3, ()),
    of_matrices: values((3, 2), (3,), (3, 3), (2, 3)),
    last_only: values(4, ()),
    stopped: [ASCENDING, *values((), ())],
    nested: values((2, 3), (), ()),
    folds_and_checkpoints: values(4, (), ()),
    untraced: values(3, (), ()),
    stopped_untraced: [ASCENDING, *values((), ())],
    read_and_written: values(5, 3),
    read_only: values(5, 3),
    with_an_integer_state: values(3, ()),
}


#: forms of loops, and the number of elements of the sequence for which no step is made
WITHOUT_STEPS = {
    **{every_kind: 2, backwards: 0, of_matrices: 0, mapped: 0, stopped: 0},
    **{untraced: 0, with_an_integer_state: 0},
}


@pytest.mark.parametrize("build", FORMS, ids=lambda f: f.__name__)
def test_first_and_second_derivatives(build):
    assert check(point_of(build, FORMS[build])) == []


@cache
def without_steps(build):
    """Variables; a form without steps and its derivatives; their values."""
    given = FORMS[build]
    variables = [pt.tensor(dtype="float64", shape=(None,) * v.ndim) for v in given]
    out = build(variables[0][: WITHOUT_STEPS[build]], *variables[1:])
    outs = out if isinstance(out, list) else [out]
    cost = sum((v**2).sum() for v in outs)
    first = grad(cost, variables, disconnected_inputs="ignore")
    second = grad(sum((v**2).sum() for v in first), variables, disconnected_inputs="ignore")
    outputs = [*outs, *first, *second]
    return variables, outputs, evaluate(outputs, variables, given)


#: DebugMode also compares the results of each rewrite, for which one short loop is enough
IN_MODES = [(build, "NUMPY") for build in WITHOUT_STEPS]
IN_MODES += [
    pytest.param(build, "DebugMode", marks=() if build is with_an_integer_state else rest)
    for build in WITHOUT_STEPS
]


@pytest.mark.parametrize("build, mode", IN_MODES, ids=lambda v: getattr(v, "__name__", v))
def test_static_shapes_of_loops_without_steps(build, mode):
    """Each value that is computed has the static shape of its variable: these modes assert it."""
    variables, outputs, expected = without_steps(build)
    found = evaluate(outputs, variables, FORMS[build], mode=mode)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_derivatives_of_complex_numbers():
    given = [v + 0.3j * w for v, w in zip(FORMS[every_kind], values(6, (), 3, ()))]
    assert check(point_of(every_kind, given)) == []


@pytest.mark.parametrize("steps", [0, 1])
def test_short_loops(steps):
    assert check(point_of(every_kind, values(steps + 2, (), 3, ()))) == []


def test_compiled_derivatives_are_those_of_the_reference():
    inputs = [x, s0, y0, w]
    cost = sum((out**2).sum() for out in every_kind(*inputs))
    first = grad(cost, inputs)
    outputs = [cost, *first, *grad(sum((g**2).sum() for g in first), inputs)]
    given = FORMS[every_kind]
    found, expected = (
        evaluate(outputs, inputs, given, mode) for mode in ("FAST_RUN", "FAST_COMPILE")
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


# --------------------------------------------------------------- which inputs are connected


def test_a_gradient_is_one_more_loop():
    cost = (every_kind(x, s0, y0, w)[0] ** 2).sum()
    assert len(loops(cost)) == 1
    (reverse,) = set(loops(*grad(cost, [x, s0, w]))) - set(loops(cost))
    assert reverse.op.info.n_mit_mot == 1, "the other outputs do not matter for the cost"
    assert len(loops(grad(cost, w))) == 2


def test_results_of_the_forward_loop_are_not_computed_again():
    def step(a, s):
        e = pt.exp(a)
        return pt.tanh(s * e), e

    one = scan(lambda a, s: step(a, s)[0], [x], [s0])
    both, _ = scan(step, [x], [s0, None])
    for out, exps in ((one, 1), (both, 0)):
        reverse = max(loops(*grad(out.sum(), [x, s0])), key=lambda node: node.op.info.n_mit_mot)
        ops = [str(n.op) for n in reverse.op.fgraph.toposort()]
        assert ops.count("Exp") == exps and ops.count("Tanh") == 0


def test_what_an_output_does_not_depend_on_is_disconnected():
    s, _, mapped_x = every_kind(x, s0, y0, w)
    with pytest.raises(DisconnectedInputError):
        grad(s.sum(), y0)
    with pytest.raises(DisconnectedInputError):
        grad(scan(lambda s: 2 * s, outputs_info=[s0], n_steps=n).sum(), n)
    assert (
        grad(mapped_x.sum(), y0, return_disconnected="none", disconnected_inputs="ignore") is None
    )
    (node,) = loops(s)
    through_s, nothing, only_y = [True] * 3, [False] * 3, [True, False, False]
    assert dict(zip(node.inputs, node.op.connection_pattern(node))) == dict(
        zip(node.inputs, [nothing, only_y, through_s, only_y, through_s, nothing, through_s])
    )


def test_a_condition_has_no_derivative():
    out = scan(
        lambda s, w: (s * 2, until(s * w > 8)), outputs_info=[s0], non_sequences=[w], n_steps=9
    )
    with pytest.raises(DisconnectedInputError):
        grad(out[-1], w)
    found = evaluate(grad(out[-1], s0), [s0, w], [1.0, 1.0])
    assert found == 32.0  # 2, 4, 8, 16, 32


def test_gradients_in_integers():
    k = pt.lscalar("k")
    out = scan(lambda s, k: s * k, outputs_info=[s0], non_sequences=[k], n_steps=3)
    gk, gs = evaluate(grad(out.sum(), [k, s0]), [k, s0], [2, 1.5])
    assert (gk, gs) == (1.5 * (1 + 2 * 2 + 3 * 4), 2 + 4 + 8)  # of s * (k + k**2 + k**3)


def test_a_constant_is_considered_constant():
    c = s0 * 3
    out = scan(lambda s, c: s * c, outputs_info=[s0], non_sequences=[c], n_steps=2)
    assert evaluate(grad(out[-1], s0, consider_constant=[c]), [s0], [2.0]) == 36.0


def test_shared_variables_that_the_step_captures():
    shared = phintys.shared(np.array([2.0, 3.0]))
    out = scan(lambda s: s * shared, outputs_info=[pt.ones(2)], n_steps=3)
    np.testing.assert_allclose(evaluate(grad(out[-1].sum(), shared)), [12.0, 27.0])


# -------------------------------------------------------------------- values by hand


def truncated_reference(xs, s, w, steps):
    """The gradients of the sum of squares of ``s[t] = tanh(w * s[t-1] + x[t])``, truncated."""
    states = [s]
    for a in xs:
        states.append(np.tanh(w * states[-1] + a))
    gx, gw, carried = np.zeros_like(xs), 0.0, 0.0
    for t in range(len(xs) - 1, max(len(xs) - 1 - steps, -1), -1):
        g = (2 * states[t + 1] + carried) * (1 - states[t + 1] ** 2)
        gx[t], gw, carried = g, gw + g * states[t], g * w
    return gx, carried if steps >= len(xs) else 0.0, gw


@pytest.mark.parametrize("steps", [1, 3, 5, 9])
def test_truncated_gradient(steps):
    out = scan(lambda a, s: pt.tanh(w * s + a), [x], [s0], truncate_gradient=steps)
    given = [*values(5, ()), np.array(0.7)]
    found = evaluate(grad((out**2).sum(), [x, s0, w]), [x, s0, w], given)
    for a, b in zip(found, truncated_reference(*given, steps), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_draws_in_a_loop():
    """The gradient of what was drawn needs the draws, which are repeated."""
    rng = phintys.shared(np.random.default_rng(5))

    def step(rng, w):
        following, z = rng.normal(0.0, 1.0)
        return following, w * z + w**2

    _, out = scan(step, outputs_info=[rng, None], non_sequences=[w], n_steps=4)
    f = phintys.function([w], [out, grad(out.sum(), w)])
    drawn, g = f(2.0)
    np.testing.assert_allclose(g, ((drawn - 4) / 2 + 4).sum())


def test_an_undefined_gradient_is_reported():
    rng = phintys.shared(np.random.default_rng(5))

    def step(s, w):
        return s + rng.normal(w, 1.0)[1]

    out = scan(step, outputs_info=[s0], non_sequences=[w], n_steps=2)
    with pytest.raises(NullTypeGradError):
        grad(out.sum(), w)
    assert evaluate(grad(out.sum(), s0), [s0, w], [1.0, 1.0]) == 2.0


# ------------------------------------------------------------------ matrices, and batches


def test_jacobian_and_hessian():
    out = scan(lambda a, s, w: s * w + a**2, [x], [s0], [w])
    given = [np.array([1.0, 2.0, 3.0]), 0.5, 2.0]
    d, h = evaluate(
        [phintys.jacobian(out, x), phintys.hessian((out**2).sum(), x)], [x, s0, w], given
    )
    powers = np.tril(2.0 ** (np.arange(3)[:, None] - np.arange(3)))
    np.testing.assert_allclose(d, powers * 2 * given[0])
    states = 0.5 * 2.0 ** np.arange(1, 4) + powers @ given[0] ** 2
    np.testing.assert_allclose(h, 2 * d.T @ d + np.diag(4 * states @ powers))


@rest
def test_fifth_derivatives_of_nested_loops_compile():
    """One of LLVM's passes, NewGVN, aborts the process on this program at 256 bits."""
    s, v = pt.dscalar("s"), pt.dmatrix("v", shape=(3, 3))

    def halved(row):
        last = phintys.scan(
            lambda a, h: pt.switch(h > a, h / 2, a), [row], [s], return_updates=False
        )
        return last[-1]

    rows = phintys.scan(halved, [v], return_updates=False)
    out = phintys.loop.scan_checkpoints(
        lambda a, h: pt.tanh(h * 0.5 + a), [rows], [s], save_every_N=1, return_updates=False
    )
    cost = pt.sum(phintys.jacobian(out, v) ** 2)
    for wrt in (rows, rows, s):
        (slope,) = phintys.grad(cost, [wrt], disconnected_inputs="ignore")
        cost = pt.sum(slope**2)
    (slope,) = phintys.grad(cost, [s], disconnected_inputs="ignore")
    with phintys.config.change_flags(vector_bits=256):
        f = phintys.function([s, v], [slope])
    assert np.isfinite(f(-1.5, np.eye(3) + 0.1))
