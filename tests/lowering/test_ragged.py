"""Ragged loops: what the builder makes of segments, the rules of the verifier, the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import segment_ops as ops

from phintys.graph.builder import At, Each, Row, Segments
from phintys.graph.fgraph import FunctionGraph
from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Builder, NotNative
from phintys.lowering.from_graph import lower_graph
from phintys.lowering.interpret import StepFailure, interpret
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import Kernel, Program, Python
from phintys.lowering.spec import IllegalProgram, verify
from phintys.lowering.text import parse_program, render_program
from phintys.lowering.values import Value


def through_text(program: Program) -> Program:
    text = render_program(program)
    assert render_program(verify(parse_program(text))) == text
    return parse_program(text)


def compiled(b: Builder, *outputs: Value) -> Program:
    return through_text(verify(plan_memory(verify(assemble(b, outputs)))))


def compile_(inputs: list[Any], output: Any) -> Any:
    program = through_text(lower_graph(FunctionGraph(inputs, [output], clone=False)))
    assert any(isinstance(s, Kernel) and s.ragged for s in program.steps)
    return lambda *args: interpret(program, *args)[0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint64", "bool"])
def test_reductions(dtype: str) -> None:
    for kind in ops.REDUCTIONS[dtype]:
        for name in ("rows", "overlapping", "no segments", "no elements", "backwards"):
            x = ops.numbers(dtype, ops.SEGMENTS[name][2])
            ops.check(compile_, ops.SegmentReduce(kind), x, *ops.bounds(name))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("index", ["int64", "uint8"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (7, 5)])
def test_products(shape: tuple[int, int], index: str, transposed: bool) -> None:
    a = ops.matrix(*shape, 4, "float64", index)
    v, columns = np.arange(1.0, shape[not transposed] + 1), np.zeros(shape[1])
    ops.check(compile_, ops.CsrProduct(transposed), *a, v, columns)


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize("name", ["rows", "overlapping", "no segments", "backwards"])
def test_maps(name: str, mode: str) -> None:
    x = ops.numbers("float64", ops.SEGMENTS[name][2])
    starts, stops = ops.bounds(name)
    factors = np.linspace(1, 2, len(starts))
    ops.check(compile_, ops.SegmentScale(mode), x, starts, stops, factors)
    at = np.random.default_rng(1).integers(-len(x), len(x), len(x))
    ops.check(compile_, ops.SegmentScale(mode), x, starts, stops, factors, at)


@pytest.mark.parametrize("name", ops.WRONG)
def test_wrong_bounds(name: str) -> None:
    x = np.ones(ops.WRONG[name][2])
    f = compile_(*_reduction("add", x))
    with pytest.raises(StepFailure, match="out of range"):
        f(x, *ops.bounds(name, wrong=True))


def _reduction(kind: str, x: np.ndarray) -> tuple[list[Any], Any]:
    inputs = ops.variables([x, *ops.bounds("rows")])
    return inputs, ops.SegmentReduce(kind)(*inputs)


# ------------------------------------------------------------------------- the builder


def flat(b: Builder) -> tuple[Value, Value, Segments]:
    """A vector, the ends of its segments, the segments between neighbours."""
    x, ends = b.input("float64", (None,)), b.input("int64", (None,))
    n = b.length(ends, 0) - 1
    return x, ends, b.segments(b.slice(ends, 0, 0, 1, n), b.slice(ends, 0, 1, 1, n), b.length(x, 0))


def multiplied(n: Any, x: Any, y: Any) -> Any:
    return n.mul(x, y)


X, ENDS = np.arange(10.0), np.array([1, 4, 4, 9])


def test_a_function_of_the_result_is_in_the_kernel() -> None:
    b = Builder()
    x, _, segments = flat(b)
    total = b.reduce_segments("add", segments, lambda n, x: x, Each(x))
    count = b.reduce_segments("add", segments, lambda n: n.const(1.0, "float64"))
    program = compiled(b, b.map(lambda n, t: n.sqrt(t), total))
    assert [type(s) for s in program.steps] == [Kernel]
    np.testing.assert_allclose(interpret(program, X, ENDS)[0], np.sqrt([6, 0, 30]))
    program = compiled(b, b.map(lambda n, t, c: n.div(t, c), total, count))
    np.testing.assert_allclose(interpret(program, X, ENDS)[0], [2, np.nan, 6])


def test_results_are_used_by_other_loops_over_as_many_points() -> None:
    """A matrix of the shape of the loop nest is not computed inside of it."""
    b = Builder()
    x, _, segments = flat(b)
    total = b.reduce_segments("add", segments, lambda n, x: x, Each(x))
    outer = b.map(multiplied, b.expand(total, 1), b.expand(x, 0))
    sums = b.reduce("add", b.map(multiplied, total, total), (0,))
    program = compiled(b, outer, total, sums, b.reduce("max", outer, (1,)))
    found = interpret(program, X, ENDS)
    np.testing.assert_allclose(found[0], np.outer([6, 0, 30], X))
    np.testing.assert_allclose(found[1], [6, 0, 30])
    np.testing.assert_allclose(found[2], 936)
    np.testing.assert_allclose(found[3], [54, 0, 270])


def test_cheap_arguments_are_computed_inside() -> None:
    b = Builder()
    x, ends, segments = flat(b)
    minus = b.map(lambda n, x: n.neg(x), x)
    rows = b.cast(b.slice(ends, 0, 0, 1, b.length(ends, 0) - 1), "float64")
    weights = b.cast(b.index(0, b.shape(x)), "float64")
    value = b.reduce_segments(
        "add",
        segments,
        lambda n, x, r, w: n.add(n.mul(x, r), w),
        Each(minus),
        Row(rows),
        Each(weights),
    )
    program = compiled(b, value)
    assert [type(s) for s in program.steps] == [Kernel]
    np.testing.assert_allclose(interpret(program, X, ENDS)[0], [-6 + 6, 0, -30 * 4 + 30])


def test_an_argument_that_an_update_writes_is_read_from_there() -> None:
    b = Builder()
    x, ends = b.input("float64", (None,)), b.input("int64", (None,))
    n = b.length(x, 0) - 2
    roots = b.map(lambda n, x: n.exp(x), b.slice(x, 0, 1, 1, n))
    longer = b.update(x, [(1, 1, n)], roots, "set")
    k = b.length(ends, 0) - 1
    segments = b.segments(b.slice(ends, 0, 0, 1, k), b.slice(ends, 0, 1, 1, k), n)
    total = b.reduce_segments("add", segments, lambda n, x: x, Each(roots))
    moved = b.update_segments(
        b.map(lambda n, x: n.neg(x), roots), "set", segments, lambda n, x: x, Each(roots)
    )
    program = compiled(b, longer, total, moved)
    assert render_program(program).count(": exp") == 1
    found = interpret(program, X, ENDS[:-1])
    np.testing.assert_allclose(found[0][1:-1], np.exp(X[1:-1]))
    np.testing.assert_allclose(found[1], [np.exp(X[2:5]).sum(), 0])
    wanted = np.where((X >= 2) & (X < 5), 1, -1) * np.exp(X)
    np.testing.assert_allclose(found[2], wanted[1:-1])


def test_an_argument_that_can_fail_is_computed_whole() -> None:
    """Its index is out of range where no segment is: that is an error all the same."""
    b = Builder()
    x, _, segments = flat(b)
    at = b.input("int64", (None,))
    taken = b.map(lambda n, x: n.neg(x), b.gather(x, [at], [0]))
    b.unify(b.length(at, 0), b.length(x, 0))
    program = compiled(b, b.reduce_segments("add", segments, lambda n, x: x, Each(taken)))
    indices = np.arange(10)[::-1].copy()
    np.testing.assert_allclose(interpret(program, X, ENDS, indices)[0], [-21, 0, -15])
    indices[0] = 10
    with pytest.raises(StepFailure):
        interpret(program, X, ENDS, indices)


@pytest.mark.parametrize("index", [3, 12])
def test_an_index_that_does_not_vary_fails_only_for_elements(index: int) -> None:
    b = Builder()
    x, _, segments = flat(b)
    at = b.broadcast_to(b.input("int64", ()), b.shape(x))
    program = compiled(b, b.reduce_segments("add", segments, lambda n, x: x, At(x, at)))
    nothing = np.array([0, 0, 0])
    np.testing.assert_array_equal(interpret(program, X, nothing, index)[0], [0, 0])
    if index < len(X):
        np.testing.assert_array_equal(interpret(program, X, ENDS, index)[0], [9, 0, 15])
    else:
        with pytest.raises(StepFailure):
            interpret(program, X, ENDS, index)


def test_segments_of_any_rank() -> None:
    b = Builder()
    x = b.input("float64", (None,))
    starts, stops = b.input("int64", (None, 1)), b.input("uint64", (None,))
    segments = b.segments(starts, stops, b.length(x, 0))
    single = b.segments(b.input("int8", ()), b.const(4), b.length(x, 0))
    outputs = [
        b.reduce_segments("max", segments, lambda n, x: x, Each(x)),
        b.reduce_segments("argmax", single, lambda n, x: x, Each(x)),
        b.update_segments(x, "set", single, lambda n, r: r, Row(b.const(7.0))),
    ]
    program = compiled(b, *outputs)
    matrix, position, changed = interpret(program, X, [[0], [5]], [3, 9], 1)
    np.testing.assert_array_equal(matrix, [[2, 8], [-np.inf, 8]])
    assert position == 2
    np.testing.assert_array_equal(changed, [0, 7, 7, 7, *X[4:]])
    with pytest.raises(StepFailure):
        interpret(program, X, [[0]], np.array([2**63 + 1], "uint64"), 1)


def test_what_the_builder_refuses() -> None:
    b = Builder()
    z, ends = b.input("complex128", (None,)), b.input("int64", (None,))
    segments = b.segments(ends, ends, b.length(z, 0))
    with pytest.raises(NotNative):
        b.reduce_segments("add", segments, lambda n, x: x, Each(z))


def test_complex_numbers_go_through_perform() -> None:
    x = np.arange(150) * 1j
    inputs = ops.variables([x, *ops.bounds("rows")])
    op = ops.SegmentReduce("add")
    program = lower_graph(FunctionGraph(inputs, [op(*inputs)], clone=False))
    assert any(isinstance(s, Python) for s in program.steps)
    starts, stops = ops.bounds("rows")
    wanted = [x[i:j].sum() for i, j in zip(starts, stops)]
    np.testing.assert_allclose(interpret(program, x, starts, stops)[0], wanted)


def test_lengths_that_differ_are_reported() -> None:
    b = Builder()
    x, _, segments = flat(b)
    other = b.input("float64", (None,))
    program = compiled(b, b.reduce_segments("add", segments, multiplied, Each(x), Each(other)))
    with pytest.raises(StepFailure, match="the lengths of the data differ"):
        interpret(program, X, ENDS, np.ones(11))


# ------------------------------------------------------------------------- the verifier

LEGAL = """
inputs %0 %1 of 2
outputs %2
%0 = input float64 [len(0, 0)]
%1 = input int64 [len(1, 0)]
%2 = output float64 [-1 + len(1, 0)]
kernel [-1 + len(1, 0), len(0, 0)] split 1 ragged 0 1
  $0 = %1 {1, 0; 0; }
  $1 = %1 {1, 0; 1; }
  $2 = %0 {0, 1; 0; }
  $3 = %2 {1, 0; 0; }
  0: load int64 () 0
  1: load int64 () 1
  2: load float64 () 2
  3: index int64 () 1
  4: reduce float64 (2) add
  5: reduce int64 (3) add
  6: store float64 (4) 3
"""

BROKEN = [
    ("ragged 0 1", "ragged 0 7", "no instruction"),
    ("ragged 0 1", "ragged 2 1", "the bound 2 is no int64 value"),
    ("ragged 0 1", "ragged 0 6", "the bound 6 is no int64 value"),
    ("ragged 0 1", "ragged 0 3", "depends on what the ragged loop does"),
    ("ragged 0 1", "ragged 5 1", "depends on what the ragged loop does"),
    ("$1 = %1 {1, 0; 1; }", "$1 = %1 {1, 1; 1; }", "depends on what the ragged loop does"),
    ("split 1", "split 0", "besides the ragged one"),
]


def test_the_pattern_is_legal() -> None:
    found = interpret(verify(parse_program(LEGAL)), X, ENDS)
    np.testing.assert_array_equal(found[0], [6, 0, 30])


@pytest.mark.parametrize(("old", "new", "rule"), BROKEN)
def test_broken_rules(old: str, new: str, rule: str) -> None:
    assert old in LEGAL
    with pytest.raises(IllegalProgram, match=rule):
        verify(parse_program(LEGAL.replace(old, new)))


def test_a_ragged_kernel_has_a_loop() -> None:
    text = LEGAL.replace("[-1 + len(1, 0), len(0, 0)] split 1", "[] split 0")
    for strides in ("1, 0", "0, 1"):
        text = text.replace(f"{{{strides};", "{;")
    text = text.replace("  3: index int64 () 1\n", "  3: const int64 () 1\n")
    with pytest.raises(IllegalProgram, match="has no loop"):
        verify(parse_program(text))
