"""`phintys.scan`: values of its forms against Python loops."""

from __future__ import annotations

import numpy as np
import pytest
from phintys.scan.views import filter as scan_filter

import phintys
import phintys.tensor as pt
from phintys.errors import MissingInputError, ShapeError
from phintys.loop import Scan, scan_checkpoints, until
from phintys.tensor.index_ops import IncSubtensor
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.random.type import random_generator_type

pytestmark = [
    pytest.mark.filterwarnings("ignore:Setting default_update:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The no_default_updates:DeprecationWarning"),
]

x, y, m0 = pt.dvectors("x", "y", "m0")
x0, k = pt.dscalars("x0", "k")
n = pt.iscalar("n")
XS, YS = np.array([1.0, -2.0, 0.5, 3.0, 1.5]), np.array([0.5, 2.0, -1.0, 1.0])


def scan(*args, **kwargs):
    return phintys.scan(*args, **kwargs, return_updates=False)


def scan_op(v):
    """The op of the loop that an output comes from."""
    while not isinstance(v.owner.op, Scan):
        v = v.owner.inputs[0]
    return v.owner.op


def op_names(op):
    return [str(node.op) for node in op.fgraph.toposort()]


def all_kinds(mode):
    """A function of a loop with every kind of argument."""

    def step(x_before, x_now, y_now, s, older, newer, gain):
        return s * gain + x_now, newer + older * y_now, x_before + 1

    outputs = scan(
        step,
        sequences=[dict(input=x, taps=[-1, 0]), y],
        outputs_info=[x0, dict(initial=m0, taps=[-2, -1]), None],
        non_sequences=[k],
        n_steps=n,
    )
    return phintys.function([x, y, x0, m0, k, n], outputs, mode=mode)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_all_kinds_of_arguments(mode):
    f = all_kinds(mode)
    for steps in (4, 2, 1, 0):
        s, m, expected = 2.0, [1.0, 2.0], []
        for t in range(steps):
            s, new = s * 0.5 + XS[t + 1], m[-1] + m[-2] * YS[t]
            m.append(new)
            expected.append((s, new, XS[t] + 1))
        found = np.array(f(XS, YS, 2.0, m[:2], 0.5, steps))
        np.testing.assert_allclose(found, np.array(expected).reshape(-1, 3).T, rtol=1e-13)


# ------------------------------------------------------------------------------ sequences


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("taps", [[0], [1], [-1], [2, 3], [-3, -2], [1, -1], [-1, 0, 2]], ids=str)
def test_taps_of_sequences(taps, backwards):
    first, last = min(0, *taps), max(0, *taps)
    times = range(-first, len(XS) - last)
    expected = [[XS[t + tap] for tap in taps] for t in times]
    if backwards:
        expected.reverse()
    outputs = scan(
        lambda *rows: list(rows),
        sequences=dict(input=x, taps=taps),
        go_backwards=backwards,
        return_list=True,
    )
    found = phintys.function([x], outputs, mode="FAST_COMPILE")(XS)
    np.testing.assert_array_equal(np.transpose(found), expected)


def test_sequences_of_several_lengths_and_directions():
    """The loop ends with the shortest; a dict reverses its own sequence."""
    together = scan(lambda a, b: a * b, sequences=[x, y])
    one = scan(lambda a, b: a * b, sequences=[dict(input=x, go_backwards=True), y])
    both = scan(lambda a, b: a * b, sequences=[x, y], go_backwards=True)
    fixed = scan(lambda a, b: a * b, sequences=(x, YS), n_steps=2)
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        f = phintys.function([x, y], [together, one, both, fixed], mode=mode)
        for ys in (YS, YS[:1], YS[:0]):
            size = len(ys)
            found = f(XS, ys)
            np.testing.assert_array_equal(found[0], XS[:size] * ys)
            np.testing.assert_array_equal(found[1], XS[::-1][:size] * ys)
            np.testing.assert_array_equal(found[2], XS[::-1][:size] * ys[::-1])
            np.testing.assert_array_equal(found[3], XS[:2] * YS[:2])


def test_errors_of_sequences():
    for given, message in (
        (dict(inputs=x), r"sequences\[0\] has the keys \['inputs'\].*needs 'input'"),
        ([x, dict(input=x, tap=[0])], r"sequences\[1\] has the keys"),
        (x0, r"sequences\[0\], x0, is 0-d.*non_sequences"),
        (dict(input=x, taps=[0.5]), "must be integers"),
        (dict(input=x, taps=[]), "must be integers"),
        (dict(input=x, taps="ab"), r"taps of sequences\[0\] must be integers, not 'ab'"),
    ):
        with pytest.raises(ValueError, match=message):
            scan(lambda *rows: rows[0], sequences=given)
    with pytest.raises(ShapeError, match="sequence in input 1 is shorter"):
        scan(lambda a, s: a + s, x, x0, n_steps=6)[-1].eval({x: XS, x0: 0.0})
    with pytest.raises(ShapeError, match=r"\(5, not 6\)"):  # without a loop
        scan(lambda a: a, sequences=x, n_steps=n).eval({x: XS, n: 6})


def test_a_step_may_take_a_row_of_a_sequence_twice():
    products = scan(lambda a, b, c: a * b + c, dict(input=x, taps=[0, 0, 1]))
    np.testing.assert_array_equal(products.eval({x: XS}), XS[:-1] ** 2 + XS[1:])
    with pytest.raises(ValueError, match="must be distinct"):
        scan(lambda a, b: a + b, None, dict(initial=x, taps=[-1, -1]), n_steps=2)


def test_the_truncation_of_gradients_may_be_a_constant():
    out = scan(lambda a, s: a * s, x, x0, truncate_gradient=pt.constant(2))
    wanted = scan(lambda a, s: a * s, x, x0, truncate_gradient=2)
    a, b = (phintys.grad(v[-1], x).eval({x: XS, x0: 1.0}) for v in (out, wanted))
    np.testing.assert_array_equal(a, b)
    for wrong in (pt.constant(2.5), pt.constant([2]), n):
        with pytest.raises(TypeError, match="truncate_gradient must be a number of steps"):
            scan(lambda a, s: a * s, x, x0, truncate_gradient=wrong)


# ------------------------------------------------------------------------------ n_steps


def test_numbers_of_steps():
    def powers(steps):
        return scan(lambda s: 2 * s, outputs_info=x0, n_steps=steps)

    m = pt.bscalar("m")  # int8: 127 + 1 must not overflow
    found = phintys.function([x0, m], [powers(m), powers(3), powers(np.int64(0)), powers(1)])(
        1, 127
    )
    for values, steps in zip(found, (127, 3, 0, 1)):
        np.testing.assert_array_equal(values, 2.0 ** np.arange(1, steps + 1))
    assert powers(3).type.shape == (None,)  # as in PyTensor
    f = phintys.function([x0], [powers(n).shape[0] for n in (0, 3)])
    assert [int(n) for n in f(1)] == [0, 3] and not f.maker.fgraph.apply_nodes


def test_a_longer_loop_takes_the_place_of_a_part_of_a_result():
    """PyMC exchanges ``result[1:]`` by the rows of a loop that has one more."""
    v = pt.vector("v", shape=(5,))
    part = scan(lambda a, s: s + a, sequences=v[:4], outputs_info=x0)
    longer = scan(lambda a: 2 * a, sequences=v)
    (found,) = phintys.clone_replace([part.sum()], {part: longer})
    np.testing.assert_array_equal(found.eval({v: np.arange(5.0)}), 20.0)
    for row in (4, -5):
        f = phintys.function([v, x0], part[row])
        with pytest.raises(IndexError):  # of the call: the number of rows is not known before
            f(np.arange(5.0), 0)


def test_a_sequence_of_one_row_is_a_loop_until_it_is_compiled():
    """Programs read the loop behind a result; PyTensor leaves it out for n_steps=1 only."""
    v = pt.vector("v", shape=(1,))
    sums = scan(lambda a, s: s + a, sequences=v, outputs_info=x0)
    ended = scan(lambda a, s: (s + a, until(a > 0)), sequences=v, outputs_info=x0)
    rows = scan(lambda a: 2 * a, sequences=v)
    for result in (sums, ended):
        assert isinstance(result.owner.inputs[0].owner.op, Scan)
    assert isinstance(rows.owner.op, Scan)
    f = phintys.function([v, x0], [sums, ended, rows, sums.owner.inputs[0][-1]])
    assert not any(isinstance(n.op, Scan | IncSubtensor) for n in f.maker.fgraph.toposort())
    assert [float(np.squeeze(r)) for r in f([3.0], 1.0)] == [4.0, 4.0, 6.0, 4.0]


@pytest.mark.parametrize("taps", [(-1,), range(-1, 0)])
def test_a_tuple_of_the_only_tap_means_that_the_initial_value_has_rows(taps):
    """As in PyTensor, where the list ``[-1]`` means that it is one row."""

    def walk(initial, taps):
        state = dict(initial=initial, taps=taps)
        return scan(lambda a, s: s + a, sequences=x, outputs_info=state)

    found, plain = walk(m0, taps), walk(m0[-1], [-1])
    assert found.type.ndim == 1
    assert found.owner.inputs[0].owner.op.info.mit_sot_in_slices == ((-1,),)
    outputs = [v for r in (found, plain) for v in (r, *phintys.grad((r**2).sum(), [x, m0]))]
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        values = phintys.function([x, m0], outputs, mode=mode)(XS, [1.5])
        for value, wanted in zip(values[:3], values[3:]):
            np.testing.assert_allclose(value, wanted)
    one = phintys.function(
        [m0], scan(lambda s: 2 * s, None, dict(initial=m0, taps=taps), n_steps=1)
    )
    np.testing.assert_array_equal(one([3.0]), [6.0])
    with pytest.raises(ValueError, match="needs a first axis with 1 value"):
        walk(x0, taps)


def test_a_draw_stays_in_the_step():
    """Programs derive the density of a loop from the draws in its steps."""
    rng, v = pt.random.shared_rng(seed=1), pt.vector("v", shape=(3,))
    mean = pt.random.normal(x0, rng=rng)
    drawn = scan(lambda a: a * pt.random.normal(mean, rng=rng), sequences=v)
    (inside,) = [n for n in drawn.owner.op.fgraph.toposort() if isinstance(n.op, RandomVariable)]
    assert mean in drawn.owner.inputs and inside.outputs[1].type.ndim == 0
    u = np.random.default_rng(1).normal()
    f = phintys.function([v, x0], drawn)
    assert not any(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort())
    np.testing.assert_allclose(f([1.0, 2.0, 3.0], 4.0), (4 + 2 * u) * np.arange(1, 4))


def test_one_step_needs_no_loop():
    outputs = scan(
        lambda a, b, s, m: [s + a * b, s + m, b],
        sequences=dict(input=x, taps=[-1, 0]),
        outputs_info=[x0, dict(initial=m0, taps=[-2]), None],
        n_steps=pt.constant(1),
        go_backwards=True,
    )
    f = phintys.function([x, x0, m0], outputs)
    assert not any(isinstance(node.op, Scan) for node in f.maker.fgraph.toposort())
    found = f(XS, 10.0, [5.0, 7.0])
    np.testing.assert_array_equal(found, [[10 + XS[-2] * XS[-1]], [15], [XS[-1]]])


def test_errors_of_numbers_of_steps():
    for steps, message in (
        (None, "needs to know the number of steps"),
        (-2, "must not be negative: n_steps is -2"),
        (2.5, "must be a 0-d integer"),
        (k, "must be a 0-d integer, not k"),
        (pt.lvector("v"), "must be a 0-d integer, not v"),
    ):
        with pytest.raises(ValueError, match=message):
            scan(lambda s: s, outputs_info=x0, n_steps=steps)
    with pytest.raises(TypeError, match="n_steps of scan, 'a', is no tensor"):
        scan(lambda s: s, outputs_info=x0, n_steps="a")
    f = phintys.function([n], scan(lambda: [x0 * 0 + 1], n_steps=n), givens={x0: 1.0})
    with pytest.raises(ValueError, match="negative"):
        f(-1)


# ------------------------------------------------------------------------------ outputs


def test_what_is_returned():
    one = scan(lambda a: a, sequences=x)
    assert isinstance(one, pt.TensorVariable)
    assert [v.type for v in scan(lambda a: [a], sequences=x, return_list=True)] == [one.type]
    assert len(scan(lambda a: (a, a), sequences=x)) == 2
    with pytest.warns(DeprecationWarning, match="return_updates=False"):
        found, updates = phintys.scan(lambda a: a, sequences=x)
    assert found.type == one.type and updates == {}
    with pytest.warns(FutureWarning, match="ignores mode"):
        found = scan(lambda a: a, sequences=x, mode="FAST_RUN")
    assert scan_op(found).mode == "FAST_RUN" and scan_op(one).mode is None
    assert scan_op(scan(lambda a: a, sequences=x, name="rnn", profile=True)).name == "rnn"
    assert scan_op(scan(lambda a: a, sequences=x, truncate_gradient=3)).truncate_gradient == 3


def test_outputs_keep_their_order():
    """In the op, states with several taps come first, then others, then outputs without states."""

    def step(a, s, older, newer, z):
        return a, s + 1, a * 2, newer - older, z * 2

    outputs = scan(
        step,
        sequences=x,
        outputs_info=[None, x0, None, dict(initial=m0, taps=(-2, -1)), dict(initial=k)],
    )
    op = scan_op(outputs[0])
    assert (op.info.n_mit_sot, op.info.n_sit_sot, op.info.n_nit_sot) == (1, 2, 2)
    found = phintys.function([x, x0, m0, k], outputs)(XS, 0.0, [1.0, 3.0], 1.0)
    m = [1.0, 3.0]
    for _ in XS:
        m.append(m[-1] - m[-2])
    expected = [XS, np.arange(1, 6), 2 * XS, m[2:], 2.0 ** np.arange(1, 6)]
    np.testing.assert_array_equal(found, expected)


def test_states_are_slices_of_buffers():
    """Clients take loops apart by this convention."""
    (state, row) = scan(lambda a, s: [s + a, a], sequences=x, outputs_info=[x0, None])
    whole, first = state.owner.inputs
    assert state.owner.op.idx_list == (slice(0, None),) and first.data == 1
    buffer = whole.owner.inputs[2]
    assert buffer.owner.op.set_instead_of_inc
    empty, initial = buffer.owner.inputs[:2]
    assert str(empty.owner.op).startswith("AllocEmpty") and initial.owner.inputs[0] is x0
    assert row.owner is whole.owner


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
def test_dtypes_of_states(dtype):
    start = pt.tensor("start", dtype=dtype, shape=(None, None))
    flip = (lambda s: s[::-1]) if dtype == "bool" else (lambda s: s[::-1] + s)
    value = np.array([[1, 0, 2], [3, 4, 5]]).astype(dtype)
    f = phintys.function([start], scan(flip, outputs_info=start, n_steps=3))
    found, expected = f(value), []
    for _ in range(3):
        value = value[::-1] if dtype == "bool" else value[::-1] + value
        expected.append(value)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_until(mode):
    def step(x_now, s):
        return x_now + s, until(x_now + s < -0.5)

    f = phintys.function([x, x0], scan(step, sequences=x, outputs_info=x0), mode=mode)
    np.testing.assert_array_equal(f(XS, 0.0), [1.0, -1.0])
    np.testing.assert_array_equal(f(XS, 9.0), 9 + np.cumsum(XS))
    assert f([], 0.0).shape == (0,)


def test_conditions():
    countdown = scan(lambda i: (i - 1, until(i - 2)), outputs_info=pt.lscalar("i"), n_steps=9)
    assert scan_op(countdown).fgraph.outputs[-1].type.dtype == "bool"
    with pytest.raises(ValueError, match="must be 0-d"):
        scan(lambda a: (a, until(x > 3)), sequences=x)


# ------------------------------------------------------------------------------ errors of steps


def test_errors_of_the_dtype_of_a_state():
    with pytest.raises(ValueError) as error:
        scan(lambda a, s: [a, s * k], sequences=x, outputs_info=[None, 1.0])
    message = str(error.value)
    assert "Output 1 of the step function" in message
    assert "dtype float32" in message and "dtype float64" in message
    assert ".astype('float64')" in message and "1.0 is float32" in message
    assert "scan(lambda a, s: [a, s * k]" in message  # the user's line


@pytest.mark.parametrize(
    "steps, error", [(-5, ValueError), ("a", TypeError), (2.5, TypeError), (True, TypeError)]
)
def test_errors_of_truncation(steps, error):
    with pytest.raises(error, match=f"truncate_gradient must be a number of steps.*{steps}"):
        scan(lambda s: s, outputs_info=x0, n_steps=3, truncate_gradient=steps)


def test_errors_of_conditions():
    for condition in (True, "a"):
        with pytest.raises(TypeError, match=f"The condition of until, {condition!r}, is no tensor"):
            until(condition)


def test_errors_of_the_step_function():
    for fn, info, message in (
        (lambda s: s + x, x0, "x0, has rank 0 at one step, .* has rank 1"),
        (lambda s: s.sum(), x, "x, has rank 1 at one step, .* has rank 0"),
        (lambda s: (s, s), x0, "returns 2 outputs, and outputs_info describes 1"),
        (lambda s: 3.0, x0, r"has returned 3.0. Make a number .* with tensor.constant"),
        (lambda s: None, x0, "has returned None"),
        (lambda s: ({}, s), x0, "outputs first, then the updates"),
        (lambda s: s, dict(taps=[-1]), "needs an 'initial' value"),
        (lambda s: s, dict(initial=x0, tap=[-1]), r"outputs_info\[0\] has the key 'tap'"),
        (lambda s, t: s, dict(initial=x, taps=[-1, 0]), "earlier steps, which are negative"),
        (lambda s: s, dict(initial=pt.zeros(1), taps=[-2]), "needs a first axis with 2"),
        (lambda s, t: s, dict(initial=x0, taps=[-1, -2]), r"is Scalar.* needs a first axis with 2"),
    ):
        with pytest.raises(ValueError, match=message):
            scan(fn, outputs_info=info, n_steps=3)
    message = r"called with 2 arguments.*: x\[t\], x0\[t-1\]. Its parameters are \(a\)"
    with pytest.raises(TypeError, match=message):
        scan(lambda a: a, x, x0)
    with pytest.raises(TypeError, match="needs a function"):
        scan(x, sequences=x)


def test_errors_of_lengths_of_states():
    with pytest.raises(ShapeError, match=r"differ along axis 0 \(2, not 4\)"):
        scan(lambda s: pt.concatenate([s, s]), outputs_info=pt.zeros(2), n_steps=3)
    short = scan(lambda s, t: s + t, outputs_info=dict(initial=x, taps=[-2, -1]), n_steps=3)
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        with pytest.raises(ShapeError):
            phintys.function([x], short, mode=mode)([1.0])
    grows = scan(lambda s: pt.zeros(s.shape[0] + 1), outputs_info=x, n_steps=3)
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        with pytest.raises(ShapeError):
            phintys.function([x], grows, mode=mode)([1.0])


# ------------------------------------------------------------------------------ captured variables


def test_what_does_not_depend_on_the_step_is_computed_before_the_loop():
    outside = pt.exp(x).sum()
    found = scan(lambda s: s * outside + pt.tanh(k) + pt.zeros(3), outputs_info=m0, n_steps=2)
    op = scan_op(found)
    assert not {"Exp", "Sum{axes=None}", "Tanh"} & {*op_names(op)} and "Alloc" in op_names(op)
    value, total = np.ones(3), np.exp(XS).sum()
    for _ in range(2):
        value = value * total + np.tanh(0.5)
    f = phintys.function([x, m0, k], found[-1])
    np.testing.assert_allclose(f(XS, np.ones(3), 0.5), value)
    constant = scan(lambda a: [k, pt.constant(2.0), a], sequences=x)
    result = phintys.function([x, k], constant)([1.0, 2.0], 5.0)
    np.testing.assert_array_equal(result, [[5, 5], [2, 2], [1, 2]])


def test_given_variables_and_shared_ones():
    w = phintys.shared(3.0, "w")
    info = scan_op(scan(lambda a, b, c: a * b * w + c, x, None, [k, k * 2], strict=False)).info
    assert info.n_non_seqs == 3
    with pytest.raises(MissingInputError, match="shared variable w"):
        scan(lambda a: a * w, sequences=x, strict=True)
    given = scan(lambda a, w: a * w + k, sequences=x, non_sequences=w, strict=True)
    np.testing.assert_array_equal(given.eval({x: XS, k: 1.0}), 3 * XS + 1)


def test_nested_loops():
    def row_sums(row, total):
        inner = scan(lambda a, s: s + a * total, sequences=row, outputs_info=pt.zeros_like(total))
        return inner[-1] + total

    matrix = pt.dmatrix("matrix")
    outer = scan(row_sums, sequences=matrix, outputs_info=x0)
    value, expected, total = np.arange(6.0).reshape(3, 2), [], 2.0
    for row in value:
        total = (row * total).sum() + total
        expected.append(total)
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        f = phintys.function([matrix, x0], outer, mode=mode)
        np.testing.assert_array_equal(f(value, 2.0), expected)
        assert f(value[:0], 2.0).shape == (0,)


# ------------------------------------------------------------------------------ states without rows


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_random_generators_as_states(mode):
    rng = random_generator_type("rng")

    def step(s, generator):
        following, value = generator.normal(s, 1.0)
        return value, following

    values, last = scan(step, outputs_info=[x0, rng], n_steps=n)
    f = phintys.function([x0, rng, n], [values, last], mode=mode)
    for steps in (3, 0):
        given, expected = np.random.default_rng(5), []
        reference, s = np.random.default_rng(5), 0.5
        for _ in range(steps):
            s = reference.normal(s, 1.0)
            expected.append(s)
        found, generator = f(0.5, given, steps)
        np.testing.assert_array_equal(found, expected)
        assert generator is not given and generator.normal() == reference.normal()
        assert given.normal() == np.random.default_rng(5).normal()
    first, _ = scan(step, outputs_info=[x0, np.random.default_rng(5)], n_steps=1)
    assert first.eval({x0: 0.5}) == np.random.default_rng(5).normal(0.5, 1.0)
    with pytest.raises(ValueError, match="a step reads only its last value"):
        scan(step, outputs_info=[x0, dict(initial=rng, taps=[-2])], n_steps=3)
    with pytest.raises(ValueError, match="A state keeps its type"):
        scan(lambda s, g: (s, s), outputs_info=[x0, rng], n_steps=3)


def test_updates_of_shared_variables():
    w, rng = phintys.shared(1.0, "w"), phintys.shared(np.random.default_rng(2), "rng")
    m = phintys.shared(2, "m")

    def step(s):
        following, value = rng.normal(0.0, 1.0)
        return s + w * value, {w: w + 1, rng: following}

    with pytest.warns(DeprecationWarning):
        found, updates = phintys.scan(step, outputs_info=x0, n_steps=n)
    f = phintys.function([x0, n], found, updates=updates)
    reference, s, expected = np.random.default_rng(2), 0.0, []
    for k_ in range(1, 4):
        s += k_ * reference.normal()
        expected.append(s)
    np.testing.assert_allclose(f(0.0, 3), expected)
    assert w.get_value() == 4 and f(0.0, 0).shape == (0,) and w.get_value() == 4
    assert rng.get_value().normal() == reference.normal()
    with pytest.raises(ValueError, match="updates w, m, which return_updates=False would lose"):
        scan(lambda s: (s, {w: w + 1, m: m * 2}), outputs_info=x0, n_steps=n)
    with pytest.raises(ValueError, match=r"The update of w .* has rank 1"):
        scan(lambda s: (s, {w: x}), outputs_info=x0, n_steps=3)
    with pytest.warns(DeprecationWarning):
        nothing, updates = phintys.scan(lambda: {w: w * 2}, n_steps=3)
    assert nothing is None and phintys.function([], updates[w])() == 32


def test_default_updates_of_shared_variables_that_the_step_makes():
    def step(s):
        rng = phintys.shared(np.random.default_rng(4))
        rng.default_update, value = rng.normal(0.0, 1.0)
        return s + value

    with pytest.warns(DeprecationWarning):
        found, updates = phintys.scan(step, outputs_info=x0, n_steps=4)
    assert len(updates) == 1
    f = phintys.function([x0], found, updates=updates)
    draws = np.random.default_rng(4)
    np.testing.assert_allclose(f(0.0), np.cumsum(draws.normal(size=4)))
    np.testing.assert_allclose(f(0.0), np.cumsum(draws.normal(size=4)))
    w = phintys.shared(1.0)
    w.default_update = w + 1  # was made before: the loop does not update it
    with pytest.warns(DeprecationWarning):
        assert phintys.scan(lambda s: s + w, outputs_info=x0, n_steps=4)[1] == {}


# ------------------------------------------------------------------------------ common forms


def test_map_and_folds():
    def difference(a, total):
        return a - total

    kwargs = {"return_updates": False}
    outputs = [
        phintys.map(lambda a, gain: a * gain, x, k, **kwargs),
        phintys.map(lambda a: a, x, go_backwards=True, **kwargs),
        phintys.reduce(difference, x, x0, **kwargs),
        phintys.reduce(difference, x, x0, go_backwards=True, **kwargs),
        phintys.foldl(difference, x, x0, **kwargs),
        phintys.foldr(difference, x, x0, **kwargs),
        *phintys.foldl(lambda a, p, q, b: (p + a, q * b), x, [x0, k], k, **kwargs),
        *scan_filter(lambda a, b: a * b > 0, [x, y]),
        scan_filter(lambda a, b: [a > 0, b > 1], [x, y], go_backwards=True)[0],
        scan_filter(lambda a, limit: a > limit, x, k),
    ]
    f = phintys.function([x, y, x0, k], outputs)
    for xs in (XS, XS[:0]):
        forward = backward = 4.0
        for a in xs:
            forward = a - forward
        for a in xs[::-1]:
            backward = a - backward
        both = xs[:4] * YS[: len(xs)] > 0
        found = f(xs, YS, 4.0, 0.5)
        expected = [
            *(xs * 0.5, xs[::-1], forward, backward, forward, backward),
            *(4 + xs.sum(), 0.5 ** (1 + len(xs)), xs[:4][both], YS[: len(xs)][both]),
            *(xs[1:][::-1][xs[1:][::-1] > 0], xs[xs > 0.5]),
        ]
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b)
    with pytest.raises(ValueError, match="1 sequences, and fn returns 2 masks"):
        scan_filter(lambda a: [a > 0, a > 1], x)


@pytest.mark.parametrize("every", [1, 2, 3, 5, 9])
def test_checkpoints(every):
    """The values after every few steps, and after the last one."""

    def step(a, b, s, gain):
        return [s * gain + a * b, a]

    sequences = dict(input=x, taps=[-1, 0])
    outputs = scan_checkpoints(
        step, sequences, [x0, None], k, save_every_N=every, return_updates=False
    )
    plain = scan(step, sequences, [x0, None], k)
    f = phintys.function([x, x0, k], [*outputs, *plain])
    for size in (5, 2, 1):
        found = f(XS[:size], 2.0, 0.5)
        steps = size - 1
        kept = [min(t + every, steps) - 1 for t in range(0, steps, every)]
        for a, b in zip(found[:2], found[2:]):
            np.testing.assert_array_equal(a, b[kept])


def test_gradients_of_checkpoints():
    """The steps that are computed again have the derivatives of those that were not stored."""

    def step(a, s, gain):
        return pt.tanh(s * gain + a)

    kept = scan_checkpoints(step, x, x0, k, save_every_N=2, return_updates=False)
    plain = scan(step, x, x0, k)
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        gradients = [phintys.grad(v[-1], [x, x0, k]) for v in (kept, plain)]
        f = phintys.function([x, x0, k], [*gradients[0], *gradients[1]], mode=mode)
        found = f(XS, 0.5, 0.7)
        for a, b in zip(found[:3], found[3:]):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_checkpoints_without_padding_and_errors():
    def kept(n_steps, **options):
        return scan_checkpoints(
            lambda a, s: s + a, x, x0, n_steps=n_steps, return_updates=False, **options
        )

    even = kept(n, save_every_N=2, padding=False)
    np.testing.assert_array_equal(even.eval({x: XS, x0: 0.0, n: 4}), [-1.0, 2.5])
    with pytest.raises(ValueError):
        even.eval({x: XS, x0: 0.0, n: 3})
    with pytest.raises(ValueError):
        kept(3, save_every_N=2, padding=False).eval({x: XS, x0: 0.0})
    np.testing.assert_array_equal(kept(4, save_every_N=2).eval({x: XS, x0: 0.0}), [-1.0, 2.5])
    powers = scan_checkpoints(
        lambda s: 2 * s, None, x0, n_steps=n, save_every_N=2, padding=False, return_updates=False
    )
    np.testing.assert_array_equal(powers.eval({x0: 1.0, n: 5}), [4, 16, 32])
    draws = scan_checkpoints(
        lambda g: g.normal(0.0, 1.0)[::-1],
        outputs_info=[None, np.random.default_rng(3)],
        n_steps=5,
        save_every_N=2,
        return_updates=False,
    )[0]
    expected = np.random.default_rng(3).normal(size=5)[[1, 3, 4]]
    np.testing.assert_array_equal(draws.eval(), expected)
    with pytest.raises(ValueError, match="positive integer, not 0"):
        kept(4, save_every_N=0)
    for fn, info in (
        (lambda a, s: (s, until(s > 0)), x0),
        (lambda a, s: s, dict(initial=x, taps=[-2])),
    ):
        with pytest.raises(ValueError, match="scan_checkpoints"):
            scan_checkpoints(fn, x, info, return_updates=False)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "C"])
def test_errors_name_constant_sequences_and_states_by_their_role(mode):
    m, v = pt.dmatrix("m"), pt.dvector("v")
    zero = pt.constant(np.zeros(4))
    sums = phintys.scan(lambda a, s: s + pt.dot(a, s), m, zero, return_updates=False)
    f = phintys.function([m], sums, mode=mode)
    with pytest.raises(ValueError, match=r"m\[t\] has shape \(3,\), initial\[t-1\] has shape \(4,"):
        f(np.ones((2, 3)))
    rows = pt.constant(np.ones((5, 4)))
    sums = phintys.scan(lambda a, s: s + pt.dot(a, s), rows, v, return_updates=False)
    f = phintys.function([v], sums, mode=mode)
    with pytest.raises(
        ValueError, match=r"sequence\[t\] has shape \(4,\), v\[t-1\] has shape \(3,"
    ):
        f(np.ones(3))
