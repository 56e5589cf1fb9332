"""Lengths and positions that a Program computes: what uses them waits for them, and for checks."""

from __future__ import annotations

import numpy as np
import pytest
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.lowering.from_graph import GraphLowering, lower_graph
from phintys.lowering.interpret import StepFailure, interpret
from phintys.lowering.prerequisites import Prerequisites
from phintys.lowering.program import Check

C = np.arange(1.0, 11)
A = np.arange(800.0).reshape(400, 2)


class Functions:
    """Functions of one graph as machine code, in C, and of the reference."""

    def __init__(self, inputs, outputs, rewritten=True):
        native = None if rewritten else phintys.Mode("llvm", None)
        self.native, self.c, self.reference = (
            phintys.function(inputs, outputs, mode=mode, on_unused_input="ignore")
            for mode in (native, "C", "FAST_COMPILE")
        )

    def interpreted(self, *values):
        return interpret(self.native.program, *(np.asarray(v) for v in values))

    def agree(self, *values):
        """Compare the interpreter, machine code and C with the reference."""
        want = self.reference(*values)
        for f in (self.native, self.c, self.interpreted):
            for g, w in zip(f(*values), want, strict=True):
                np.testing.assert_allclose(g, w, strict=True)

    def fail(self, error, *values):
        for f in (self.native, self.c, self.reference):
            with pytest.raises(error):
                f(*values)
        with pytest.raises(StepFailure):
            self.interpreted(*values)


def check(inputs, outputs, *values):
    Functions(inputs, outputs).agree(*values)


def fails(inputs, outputs, error, *values):
    Functions(inputs, outputs).fail(error, *values)


def positions(y):
    """Integers that a Program computes, each in another way; they are 3 for y = 0, 3, 6, ... ."""
    return {
        "argmax": pt.argmin(abs(y - 9.0)),
        "cast": pt.cast(y[1], "int64"),
        "int8": pt.cast(y[1], "int8"),
        "uint16 arithmetic": pt.cast(y[2], "uint16") // np.uint16(2),
        "sum": pt.cast((y[:3] > 1).sum() + 1, "int32"),
        "gather": pt.constant(np.array([9, 3, 5], "int16"))[pt.cast(y[1] - 2, "int64")],
        "python": pt.sort(pt.cast(y, "int64"))[1],
    }


Y = np.arange(0.0, 30, 3)


@pytest.mark.parametrize("name", positions(pt.dvector("y")))
def test_views_wait_for_their_starts_and_lengths(name):
    x, y = pt.dvectors("x", "y")
    k = positions(y)[name]
    outputs = [
        x[k] * 2,
        x[:k].sum(),
        x[k:] + 1,
        x[k:8][::-1],
        pt.exp(x[: k + 1]) * y[: k + 1],
        pt.arange(k) * 2,
        pt.alloc(x[0], k),
        pt.set_subtensor(x[k:], y[k:] + 1),
        pt.inc_subtensor(x[k], 5.0),
        (x * 2).reshape((k - 1, -1)),
        pt.set_subtensor(y[: x[:k].shape[0]], x[:k]),
    ]
    check([x, y], outputs, C, Y)


def test_a_chain_of_computed_positions():
    x, y = pt.dvectors("x", "y")
    i = pt.argmax(x)
    j = pt.argmin(x[:i] + y[:i])
    k = pt.argmax(y[j:i])
    z = pt.exp(x[k : i + 1])
    check([x, y], [z, z.sum() + x[j], x[k] - x[i], y[j] * x], C, Y)


@pytest.mark.parametrize("start", [0, 7, 9])
def test_lengths_that_must_be_equal_are_checked_before_they_are_relied_on(start):
    """x[:k] + y runs over the elements of y: x may have fewer."""
    x, y = pt.dvectors("x", "y")
    i = pt.lvector("i")
    k = i[i[i[0]]]  # known late
    first = x[:k] + y
    second = pt.set_subtensor(x[:k], y * 2) + x[:k].sum()
    indices = np.full(20, 10)
    indices[0], indices[start] = start, start
    indices[start] = 10
    short = np.arange(2.0)
    functions = Functions([x, y, i], [first, second])
    for _ in range(3):
        functions.fail((ValueError, AssertionError), short, C, indices)
    functions.agree(C, C, indices)


def test_what_relies_on_a_late_check_follows_it():
    x, y = pt.dvectors("x", "y")
    k = pt.cast(pt.sort(y)[0], "int64")
    z = x[:k] + y
    w = pt.exp(x[:k])  # made when both lengths count as one
    program = phintys.function([x, y], [z, w]).program
    checks = [n for n, step in enumerate(program.steps) if isinstance(step, Check)]
    kernels = [n for n, step in enumerate(program.steps) if "output" in _written_kinds(step)]
    assert checks and kernels and max(checks) < min(kernels)


def _written_kinds(step):
    return {slot.kind for slot in step.writes()} if hasattr(step, "writes") else set()


@pytest.mark.parametrize("rewritten", [True, False])
def test_parts_of_results_of_row_reductions(rewritten):
    a, k = pt.dmatrix("a"), pt.lscalar("k")
    s = pt.exp(a / 800).sum(1)
    outputs = [
        pt.argmax(a, axis=1)[:2],
        s[:2] * 2,
        s,
        s[:k] + 1,
        s[::2] - 1,
        pt.logsumexp(a, axis=1)[:k],
        (a / s[:, None])[:k],
        pt.softmax(a, axis=1)[:3] * 2,
        pt.second(pt.zeros((k,)), s[0]),
    ]
    Functions([a, k], outputs, rewritten).agree(A, 3)


@pytest.mark.parametrize("k", [0, 1, 3, 6])
def test_reshape_to_lengths_that_come_late(k):
    a, n = pt.dmatrix("a"), pt.lscalar("n")
    x = A[:6]
    if k:
        check([a, n], [(a * 2).reshape((n, -1)), (a + 1).reshape((-1, n))], x, k)
        late = pt.cast(pt.sort(pt.stack([n, n]))[0], "int64")
        check([a, n], [(a * 2).reshape((late, -1))], x, k)
    else:
        fails([a, n], [(a * 2).reshape((n, -1))], ValueError, x, k)
    fails([a, n], [(a * 2).reshape((n, 5))], ValueError, x, k)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_positions_out_of_range(dtype):
    x, i = pt.dvector("x"), pt.scalar("i", dtype=dtype)
    functions = Functions([x, i], [x[i] * 2])
    for value in (10, -11, np.iinfo(dtype).max, np.iinfo(dtype).min):
        if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max and not -10 <= value < 10:
            functions.fail(IndexError, C, np.asarray(value, dtype))
    outputs = [x[i] * 2, x[:i].sum()]
    if dtype != "uint64":  # modulo a length it is a float, as in NumPy
        outputs.append(pt.take(x, i + i, mode="wrap"))
    check([x, i], outputs, C, np.asarray(9, dtype))


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["int64", "int16"])
def test_no_positions(k, dtype):
    """Where there are no positions nothing is read, written or out of range."""
    x, n = pt.dvector("x"), pt.lscalar("n")
    zeros = pt.zeros((n,), dtype=dtype)
    outputs = [
        pt.set_subtensor(x[zeros], 5.0),
        pt.inc_subtensor(x[zeros], 5.0),
        x[zeros],
        x[zeros + zeros] * 2,
        pt.set_subtensor(x[zeros], x[zeros] + 1),
    ]
    functions = Functions([x, n], outputs)
    functions.agree(C, k)
    if not k:
        functions.agree(C[:0], k)
    else:
        fails([x, n], [x[zeros]], IndexError, C[:0], k)
        fails([x, n], [pt.set_subtensor(x[zeros], 5.0)], IndexError, C[:0], k)


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (2, 3), (0, 0)])
def test_positions_of_two_axes_of_which_one_may_be_empty(shape):
    a = pt.dmatrix("a")
    i, j = pt.lvectors("i", "j")
    m, n = shape
    indices = np.arange(m) + 1, np.arange(n)
    outputs = [a[i[:, None], j], pt.set_subtensor(a[i[:, None], j[None]], 1.0), a[i] * 2, a[:, j]]
    check([a, i, j], outputs, np.arange(12.0).reshape(4, 3), *indices)
    if n and m:
        fails(
            [a, i, j], [a[i[:, None], j]], IndexError, np.ones((2, 3)), indices[0] + 5, indices[1]
        )
        fails([a, i, j], [a[i[:, None], j]], IndexError, np.ones((9, 1)), *indices)


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (2, 3), (0, 0)])
def test_order_of_loops_where_one_of_two_axes_of_positions_may_be_empty(shape):
    """Other operands would have the loop over the first axis inside the one over the second."""
    a = pt.dmatrix("a")
    i, j = pt.lvectors("i", "j")
    b, c, d = pt.dmatrices("b", "c", "d")
    inputs, others = [a, i, j, b, c, d], [np.ones(shape[::-1])] * 3
    outputs = [a[i[:, None], j] * 2 + b.T + c.T + d.T]
    if all(shape):
        check(inputs, outputs, np.arange(12.0).reshape(4, 3), *map(np.arange, shape), *others)
    else:  # positions that are out of range, but none of them is used
        check(inputs, outputs, np.ones((0, 0)), *map(np.arange, shape), *others)
    zeros = pt.zeros((b.shape[1], b.shape[0]), dtype="int64")
    x = pt.dvector("x")
    values = np.ones(1 if all(shape) else 0)
    check([x, b, c, d], [x[zeros] * 2 + b.T + c.T + d.T], values, *others)


def test_integers_in_inputs_are_known_from_the_start():
    """Nothing is kept in memory to compute a position from an integer input."""
    x, k = pt.dvector("x"), pt.iscalar("k")
    f = phintys.function([x, k], x[pt.cast(k, "int64") + 1 :] * 2)
    assert not any(slot.kind == "temp" for slot in f.program.slots)
    np.testing.assert_array_equal(f(C, np.int32(3)), C[4:] * 2)


@pytest.mark.parametrize("steps", few([300, 3000], 300))
def test_long_computations_of_an_integer(steps):
    """An expression of lengths stays short, however long an integer is computed with."""
    x, k = pt.dvector("x"), pt.lscalar("k")
    i = k
    for step in range(steps):
        i = pt.maximum(i * 3, i + step) // 3 % 7
    f = phintys.function([x, k], x[i:])
    g = phintys.function([x, k], x[i:], mode="FAST_COMPILE")
    np.testing.assert_array_equal(f(C, 5), g(C, 5))


def test_every_program_is_verified(monkeypatch):
    from phintys.lowering import from_graph

    class Verified(Exception):
        pass

    def verify(program):
        raise Verified

    monkeypatch.setattr(from_graph, "verify", verify)
    x = pt.dvector("x")
    fgraph = phintys.graph.fgraph.FunctionGraph([x], [pt.exp(x)], clone=True)
    with pytest.raises(Verified):
        lower_graph(fgraph)


@pytest.mark.parametrize("mode", [None, "C"])
def test_outputs_of_dtypes_without_machine_code_are_copied(mode):
    z = pt.zvector("z")
    v = pt.arccos(z)
    first, second, same = phintys.function([z], [v, v, z], mode=mode)(np.ones(3) + 0j)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(same, np.ones(3) + 0j)


def _dependences(steps):
    """How many checks and definers the values of a chain of reads wait for."""
    x = z = pt.dvector("x")
    for _ in range(steps):
        z = z * z[pt.argmax(z)]
    lowering, fgraph = GraphLowering(), phintys.FunctionGraph([x], [z])
    lowering.input(fgraph.inputs[0])
    lowering.run(fgraph)
    found = Prerequisites(lowering.builder)
    needs = [found.of(value) for value in lowering.builder.values]
    return sum(len(n.checks) + len(n.definers) for n in needs)


def test_what_is_read_at_no_position_waits_for_no_check_of_positions():
    assert 0 < _dependences(40) < 2.5 * _dependences(20)


def test_reads_of_an_update_instead_of_what_it_writes_wait_for_no_later_check():
    """The position, and so the check of the lengths behind it, depends on these reads."""
    x = pt.dvector("x")
    written = pt.tanh(x[2:]) - x[:-2]
    y = pt.set_subtensor(x[1:-1], written)
    z = pt.set_subtensor(x[1:-1], written * 2 + y[2:])
    k = pt.cast(pt.sum(z > 0) % 3, "int64")
    out = pt.set_subtensor(y[k:], pt.cos(z)[: y[k:].shape[0]])
    functions = Functions([x], [out])
    for n in (2, 3, 9, 40):
        functions.agree(np.random.default_rng(n).normal(size=n))
