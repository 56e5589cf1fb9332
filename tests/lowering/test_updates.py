"""Updates of regions: what is copied around them, who reads them, positions that are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fusion import compiled, exp, kernels, mul, sub, tanh, vector

from phintys.dims import Dim, slice_range
from phintys.lowering.builder import Builder
from phintys.lowering.interpret import StepFailure, interpret
from phintys.lowering.program import Copy
from phintys.lowering.values import Value

BOUNDS = st.one_of(st.none(), st.integers(-6, 6))
SLICES = st.builds(slice, BOUNDS, BOUNDS, st.sampled_from([None, 1, 2, -1]))


def region_of(b: Builder, y: Value, where: list[slice]) -> list[tuple[Dim, Dim, Dim]]:
    """A basic index as a region."""
    result = []
    for axis, s in enumerate(where):
        start, length = slice_range(s.start, s.stop, s.step or 1, b.length(y, axis))
        result.append((start, Dim.const(s.step or 1), length))
    return result


def part_of(b: Builder, y: Value, region: list[tuple[Dim, Dim, Dim]]) -> Value:
    for axis, (start, step, length) in enumerate(region):
        y = b.slice(y, axis, start, step, length)
    return y


def diffusion(b: Builder, y: Value, steps: int) -> Value:
    n = b.length(y, 0)
    inner = b.slice(y, 0, 1, 1, n - 2)
    for _ in range(steps):
        left, right = b.slice(y, 0, 0, 1, n - 2), b.slice(y, 0, 2, 1, n - 2)
        inner = tanh(b, mul(b, inner, mul(b, left, right)))
        y = b.update(y, [(1, 1, n - 2)], inner, "set")
    return y


def test_a_stencil_writes_each_step_once() -> None:
    b = Builder()
    program = compiled(b, diffusion(b, vector(b), 10))
    assert not any(isinstance(s, Copy) for s in program.steps)
    loops = [k for k in kernels(program) if any(i.op == "tanh" for i in k.body)]
    assert len(loops) == 10
    assert all(sum(i.op == "store" for i in k.body) == 1 for k in loops)
    assert len(program.storages) == 2
    x = np.linspace(-0.5, 0.5, 9)
    expected = x.copy()
    for _ in range(10):
        expected[1:-1] = np.tanh(expected[1:-1] * (expected[:-2] * expected[2:]))
    np.testing.assert_allclose(interpret(program, x)[0], expected)


def test_rows_written_one_by_one_stay_in_place() -> None:
    b = Builder()
    row = vector(b)
    n = b.length(row, 0)
    y = b.broadcast_to(b.const(0.0), (4, n))
    for i in range(4):
        row = exp(b, row)
        y = b.update(y, [i, (0, 1, n)], row, "set")
    program = compiled(b, y)
    assert not any(isinstance(s, Copy) for s in program.steps)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_chains_of_updates_compute_what_numpy_computes(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    shape = data.draw(st.tuples(*[st.integers(0, 5)] * rank))
    known = data.draw(st.tuples(*[st.booleans()] * rank))
    b = Builder()
    y = x = b.input("float64", [d if k else None for d, k in zip(shape, known)])
    array = np.random.default_rng(0).normal(size=shape)
    expected = array.copy()
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.lists(SLICES, min_size=rank, max_size=rank))
        mode, at = data.draw(st.sampled_from(["set", "add"])), tuple(where)
        region = region_of(b, y, where)
        value = mul(b, part_of(b, y, region), part_of(b, x, region))
        y = b.update(y, region, sub(b, value, b.const(0.5)), mode)
        new = expected[at] * array[at] - 0.5
        expected[at] = new if mode == "set" else expected[at] + new
    program = compiled(b, y, b.reduce("add", mul(b, y, x), tuple(range(rank))))
    result, total = interpret(program, array)
    np.testing.assert_allclose(result, expected)
    np.testing.assert_allclose(total, (expected * array).sum(), atol=1e-12)


@pytest.mark.parametrize("indices", [[0, 2, 1, 2], [0, 3], [2, 2]])
@pytest.mark.parametrize("length", [3, 4])
def test_known_positions_are_looked_at_before_the_loop(indices: list[int], length: int) -> None:
    b = Builder()
    y = b.scatter(vector(b), [b.const(indices, "int64")], [0], b.const(1.0), "add")
    program = compiled(b, y)
    (kernel,) = [k for k in kernels(program) if any(i.op == "accumulate" for i in k.body)]
    (wrap,) = [i for i in kernel.body if i.op == "wrap"]
    assert kernel.body[wrap.args[0]].op == "const"
    array = np.arange(length, dtype=float)
    if max(indices) >= length:
        with pytest.raises(StepFailure, match="out of range"):
            interpret(program, array)
    else:
        expected = array.copy()
        np.add.at(expected, indices, 1.0)
        assert interpret(program, array)[0].tolist() == expected.tolist()
