"""Loops and branches: inner graphs as Programs within a Program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phintys.tensor as pt
from phintys.graph.builder import Window
from phintys.graph.fgraph import FunctionGraph
from phintys.lowering.assemble import assemble
from phintys.lowering.builder import NotNative
from phintys.lowering.from_graph import GraphLowering
from phintys.lowering.interpret import StepFailure, interpret
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import Branch, Copy, Loop, Program
from phintys.lowering.spec import IllegalProgram, verify
from phintys.lowering.text import parse_program, render_program

RNG = np.random.default_rng(5)


def compiled(b: Any, *outputs: Any) -> Program:
    program = verify(plan_memory(verify(assemble(b, outputs))))
    text = render_program(program)
    assert render_program(verify(parse_program(text))) == text
    return program


def recurrence() -> tuple[Program, Any]:
    """s = tanh(w @ s + x[t]); the last s, all s, the sums of each, and their number."""
    b = GraphLowering().builder
    s, x, w = pt.dvector("s"), pt.dvector("x"), pt.dmatrix("w")
    new = pt.tanh(pt.dot(w, s) + x)
    state, steps = b.input("float64", (None,)), b.input("float64", (None, None))
    weights = b.input("float64", (None, None))
    row = b.reshape(b.slice(steps, 0, 0, 1, 1), (-1,))
    body = b.inner(FunctionGraph([s, x, w], [new, new.sum()]), [state, row, weights])
    n = b.length(steps, 0)
    all_ = Window(b.empty("float64", (n, b.length(state, 0))), (), ((0, 0),))
    sums = Window(b.empty("float64", (n,)), (), ((0, 1),))
    found = b.loop(n, body, [state], [Window(steps, (0,)), all_, sums], [weights])
    return compiled(b, *found.states, *found.windows[1:], found.count), b


def test_loop_keeps_state_and_stacks_outputs() -> None:
    program, _ = recurrence()
    assert sum(isinstance(s, Loop) for s in program.steps) == 1
    s, x, w = RNG.normal(size=3), RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3))
    rows = []
    state = s
    for row in x:
        state = np.tanh(w @ state + row)
        rows.append(state)
    last, all_, sums, count = interpret(program, s, x, w)
    np.testing.assert_allclose(last, rows[-1])
    np.testing.assert_allclose(all_, rows)
    np.testing.assert_allclose(sums, np.sum(rows, axis=1))
    assert count == 5


def test_loop_of_no_turns() -> None:
    program, _ = recurrence()
    s, w = RNG.normal(size=3), RNG.normal(size=(3, 3))
    last, all_, sums, count = interpret(program, s, np.zeros((0, 3)), w)
    np.testing.assert_array_equal(last, s)
    assert (all_.shape, sums.shape, count) == ((0, 3), (0,), 0)


def test_lengths_of_states_are_checked() -> None:
    program, _ = recurrence()
    with pytest.raises(StepFailure):
        interpret(program, np.zeros(3), np.zeros((2, 4)), np.zeros((3, 3)))


def test_sequences_may_be_reversed_and_shifted() -> None:
    b = GraphLowering().builder
    s, x, y = pt.dscalar("s"), pt.dscalar("x"), pt.dscalar("y")
    xs = b.input("float64", (None,))
    n = b.length(xs, 0) - 1
    start = b.const(0.0)
    body = b.inner(FunctionGraph([s, x, y], [s * 2 + x - y]), [start] * 3)
    windows = [Window(b.slice(xs, 0, n, -1, n), (0,)), Window(b.slice(xs, 0, 0, 1, n), (0,))]
    windows.append(Window(b.empty("float64", (n,)), (), ((0, 0),)))
    found = b.loop(n, body, [start], windows)
    value = RNG.normal(size=6)
    expected, rows = 0.0, []
    for k in range(5):
        expected = expected * 2 + value[5 - k] - value[k]
        rows.append(expected)
    last, all_ = interpret(compiled(b, found.states[0], found.windows[2]), value)
    np.testing.assert_allclose(last, expected)
    np.testing.assert_allclose(all_, rows)


def buffer(rows: int, reads: tuple[int, ...], writes: tuple[int, ...], turns: int) -> Program:
    """Each output k + 1 is twice the sum of the rows read, plus k; and the number of turns."""
    b = GraphLowering().builder
    value, given = b.input("float64", (None,)), [pt.dscalar() for _ in reads]
    total = sum(given[1:], given[0])
    fgraph = FunctionGraph(given, [total * 2 + k for k in range(1, len(writes) + 1)])
    body = b.inner(fgraph, [b.take(value, 0, 0)] * len(reads))
    pairs = tuple((offset, k) for k, offset in enumerate(writes))
    start = b.slice(b.map(lambda n, x: n.add(x, x), value), 0, 0, 1, rows)
    found = b.loop(turns, body, windows=[Window(start, reads, pairs)])
    return compiled(b, found.windows[0], found.count)


@pytest.mark.parametrize(
    "rows, reads, writes",
    [
        (4, (0, 1), (2,)),
        (2, (0, 1), (2,)),
        (1, (0,), (1,)),
        (7, (0, 1), (1, 2)),
        (3, (1,), (0,)),
        (8, (0, 4), (0, 4)),
    ],
)
def test_windows_are_rings(rows: int, reads: tuple[int, ...], writes: tuple[int, ...]) -> None:
    value = RNG.normal(size=rows)
    expected = 2 * value
    for t in range(5):
        total = sum(expected[(t + o) % rows] for o in reads)
        for k, offset in enumerate(writes, 1):
            expected[(t + offset) % rows] = total * 2 + k
    program = buffer(rows, reads, writes, 5)
    assert not any(isinstance(s, Copy) for s in program.steps)
    found, count = interpret(program, value)
    np.testing.assert_allclose(found, expected)
    assert count == 5


def test_a_window_with_too_few_rows_fails() -> None:
    b = GraphLowering().builder
    x, y = pt.dscalar("x"), pt.dscalar("y")
    xs = b.input("float64", (None,))
    body = b.inner(FunctionGraph([x, y], [x + y]), [b.take(xs, 0, 0)] * 2)
    found = b.loop(3, body, windows=[Window(xs, (0, 1), ((2, 0),))])
    program = compiled(b, found.windows[0])
    np.testing.assert_array_equal(interpret(program, np.ones(2))[0], [5, 3])
    with pytest.raises(StepFailure, match="too few rows"):
        interpret(program, np.ones(1))


def test_loop_ends_early() -> None:
    b = GraphLowering().builder
    s = pt.dscalar("s")
    start = b.input("float64")
    body = b.inner(FunctionGraph([s], [s * 2, s > 10]), [start])
    found = b.loop(100, body, [start], until=1)
    last, count, rest = interpret(
        compiled(b, found.states[0], found.count, b.iota(b.item(found.count))), 1.0
    )
    assert (last, count, len(rest)) == (32, 5, 5)


@pytest.mark.parametrize("which", [True, False])
def test_branch_runs_one_program(which: bool) -> None:
    b = GraphLowering().builder
    x = pt.dvector("x")
    value, condition = b.input("float64", (None,)), b.input("bool")
    then = b.inner(FunctionGraph([x], [pt.exp(x), x.sum()]), [value])
    orelse = b.inner(FunctionGraph([x], [x * 2, x.max()]), [value])
    program = compiled(b, *b.branch(condition, then, orelse, [value]))
    assert sum(isinstance(s, Branch) for s in program.steps) == 1
    a = RNG.normal(size=3)
    one, two = interpret(program, a, which)
    np.testing.assert_allclose(one, np.exp(a) if which else a * 2)
    np.testing.assert_allclose(two, a.sum() if which else a.max())


def test_lengths_that_differ_between_branches() -> None:
    """They are known when the branch has run; other ranks are refused."""
    b = GraphLowering().builder
    x = pt.dvector("x")
    value, condition = b.input("float64", (None,)), b.input("bool")
    then = b.inner(FunctionGraph([x], [x]), [value])
    orelse = b.inner(FunctionGraph([x], [pt.zeros(x.shape[0] + 1)]), [value])
    (found,) = b.branch(condition, then, orelse, [value])
    program = compiled(b, found, b.map(lambda n, x: n.exp(x), found))
    for which, expected in [(True, np.array([1.0, 2.0])), (False, np.zeros(3))]:
        one, two = interpret(program, np.array([1.0, 2.0]), which)
        np.testing.assert_array_equal(one, expected)
        np.testing.assert_allclose(two, np.exp(expected))
    orelse = b.inner(FunctionGraph([x], [x.sum()]), [value])
    with pytest.raises(NotNative):
        b.branch(condition, then, orelse, [value])


def test_lengths_known_only_inside_are_refused() -> None:
    b = GraphLowering().builder
    n = pt.lscalar("n")
    with pytest.raises(NotNative):
        b.inner(FunctionGraph([n], [pt.zeros(n)]), [b.input("int64")])


def test_inner_signatures_are_verified() -> None:
    program, _ = recurrence()
    (loop,) = (s for s in program.steps if isinstance(s, Loop))
    loop.constants = ()
    with pytest.raises(IllegalProgram, match="inner inputs"):
        verify(program)
