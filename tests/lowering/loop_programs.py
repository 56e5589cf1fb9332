"""Programs with loops and branches, and arguments for them, to compare backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import phintys.tensor as pt
from phintys.graph.builder import Window
from phintys.graph.fgraph import FunctionGraph
from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Inner
from phintys.lowering.from_graph import GraphLowering
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import Program

#: a Program and lists of arguments
Case = tuple[Program, list[list[Any]]]
RNG = np.random.default_rng(17)


def _planned(b: Any, *outputs: Any) -> Program:
    return plan_memory(assemble(b, outputs))


def recurrence() -> Case:
    """A vector as state, rows of a reversed sequence, all states, sums of them, an early end."""
    b = GraphLowering().builder
    s, x, w = pt.dvector("s"), pt.dvector("x"), pt.dmatrix("w")
    new = pt.tanh(pt.dot(w, s) + x)
    state, steps = b.input("float64", (None,)), b.input("float64", (None, None))
    weights = b.input("float64", (None, None))
    n = b.length(steps, 0)
    windows = [
        Window(b.slice(steps, 0, n - 1, -1, n), (0,)),
        Window(b.fill(b.const(0.0), (n, b.length(state, 0))), (), ((0, 0),)),
        Window(b.fill(b.const(0.0), (n,)), (), ((0, 1),)),
    ]
    fgraph = FunctionGraph([s, x, w], [new, new.sum(), new[0] > 0.9])
    body = b.inner(fgraph, [state, *windows, weights])
    found = b.loop(n, body, [state], windows, [weights], until=2)
    program = _planned(b, *found.states, *found.windows[1:], found.count)
    cases = [
        [np.zeros(k), RNG.normal(size=(n, k)) + first, RNG.normal(size=(k, k)) / 2]
        for n, k, first in ((0, 3, 0), (5, 3, -2), (5, 40, 0), (1, 1, 0), (20, 3, 1))
    ]
    return program, cases


def taps(dtype: str) -> Case:
    """Numbers and rows: a ring as long as its taps, a longer one, one that is also read ahead."""
    b = GraphLowering().builder
    given, windows = [], []
    for ndim in (1, 2):
        for reads in ((0, 1), (0, 1), (1, 2), (0,)):
            given.append((b.input(dtype, (None,) * ndim), reads))
    scalars = [
        pt.tensor(dtype=dtype, shape=(None,) * (v.ndim - 1)) for v, reads in given for _ in reads
    ]
    outputs, at = [], 0
    for value, reads in given:
        here = scalars[at : at + len(reads)]
        at += len(reads)
        new = here[0] | here[-1] if dtype == "bool" else here[0] + here[-1]
        numbers = [len(outputs), len(outputs) + 1]
        outputs += [new, here[-1] & new if dtype == "bool" else new + new]
        writes = {(0, 1): ((2, numbers[0]),), (1, 2): ((1, numbers[0]), (2, numbers[1]))}
        windows.append(Window(value, reads, writes.get(reads, ())))
    body = b.inner(FunctionGraph(scalars, outputs), windows)
    n = b.input("int64")
    found = b.loop(b.item(n), body, windows=windows)
    program = _planned(b, *found.windows, found.count)

    def values(turns: int, extra: int) -> list[Any]:
        sizes = [2 + extra, 9, turns + 3, turns + 1]
        shapes = [*((k,) for k in sizes), *((k, 3) for k in sizes)]
        return [*((RNG.normal(size=s) * 3).astype(dtype) for s in shapes), np.array(turns)]

    return program, [values(turns, extra) for turns, extra in ((0, 0), (1, 0), (7, 0), (7, 1))]


def nested() -> Case:
    """A loop in a branch in a loop."""
    b = GraphLowering().builder
    state, count = b.input("float64", (None,)), b.input("int64")
    inner = GraphLowering().builder
    x, turns = inner.input("float64", (None,)), inner.input("int64")
    v = pt.dvector()
    halve = inner.inner(FunctionGraph([v], [v / 2 + 1]), [x])
    many = GraphLowering().builder
    y, k = many.input("float64", (None,)), many.input("int64")
    looped = many.loop(many.item(k), many.inner(FunctionGraph([v], [v * v - 1]), [y]), [y])
    long = Inner(_planned(many, looped.states[0]), ("float64",), halve.shapes, (True,))
    short_ = FunctionGraph([v, pt.lscalar()], [v + 3])
    short_ = inner.inner(short_, [x, turns])
    flag = inner.map(lambda n, x: n.gt(x, n.const(2, x)), turns)
    (chosen,) = inner.branch(flag, long, short_, [x, turns])
    body = Inner(_planned(inner, chosen), ("float64",), ((b.length(state, 0),),), (True,))
    found = b.loop(3, body, [state], [], [count])
    return _planned(b, *found.states), [[RNG.normal(size=4) / 2, np.array(k)] for k in (1, 5)]


def sums() -> Case:
    """States: a product is added, two are updated in their memory, one is read late."""
    b = GraphLowering().builder
    a, r, v, w, x = pt.dmatrix(), pt.dvector(), pt.dvector(), pt.dvector(), pt.dvector()
    states = [b.input("float64", (None,) * k) for k in (2, 1, 1, 1)]
    steps = b.input("float64", (None, None))
    outputs = [a + pt.outer(x, x), pt.tanh(r) + x, w, v + r]
    windows = [Window(steps, (0,)), Window(b.empty("float64", b.shape(steps)), (), ((0, 1),))]
    body = b.inner(FunctionGraph([a, r, v, w, x], outputs), [*states, *windows])
    found = b.loop(b.length(steps, 0), body, states, windows)
    program = _planned(b, *found.states, found.windows[1])
    cases = [
        [RNG.normal(size=(k, k)), *RNG.normal(size=(3, k)), RNG.normal(size=(n, k))]
        for n, k in ((0, 3), (1, 3), (5, 7), (3, 40))
    ]
    return program, cases


def draws() -> Case:
    """A random generator as state; its draws are stacked, and summed by Python."""
    b, inner = GraphLowering().builder, GraphLowering().builder
    source, rng = b.input(None, ()), inner.input(None, ())
    state, numbers = inner.draw("random_normal", rng, [inner.const(0.0), inner.const(1.0)], (3,))
    (total,) = inner.python(lambda x: (np.array(x.sum()),), [numbers], [("float64", ())])
    three = b.fill(b.const(0.0), (3,)).shape
    body = Inner(
        _planned(inner, state, numbers, total),
        (None, "float64", "float64"),
        ((), three, ()),
        (True,) * 3,
    )
    rows = b.empty("float64", (4, 3)), b.empty("float64", (4,))
    windows = [Window(v, (), ((0, number),)) for number, v in enumerate(rows, 1)]
    found = b.loop(4, body, [source], windows)
    return _planned(b, *found.windows, found.count), [[np.random.default_rng(3)]]


CASES: dict[str, Callable[[], Case]] = {
    "recurrence": recurrence,
    "nested": nested,
    "sums": sums,
    "draws": draws,
    **{d: lambda d=d: taps(d) for d in ("float64", "float16", "complex64", "bool", "int8")},
}
