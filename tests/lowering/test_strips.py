"""Kernels that run strip by strip: the order of their accesses, results, and the verifier."""

from __future__ import annotations

import shutil
from itertools import product
from typing import Any

import numpy as np
import pytest
import shifted_chains
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt
from phintys.dims import Dim
from phintys.lowering import strips
from phintys.lowering.in_place import runs_in_place
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Kernel, Program
from phintys.lowering.spec import IllegalProgram, verify
from phintys.lowering.strips import Strips, pace, strips_of
from phintys.lowering.text import parse_program, render_program

no_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def groups(program: Program) -> list[Strips]:
    found = [strips_of(program.steps[a:b]) for a, b in program.strips]  # type: ignore[arg-type]
    assert None not in found
    return found  # type: ignore[return-value]


def iterations(kernel: Kernel, start: int, value: Any) -> list[tuple[int, dict[Any, bool]]]:
    """The time of each iteration of the outermost loop, and what it accesses: whether it writes."""
    step, result = max(1, value(pace(kernel))), []
    for i in range(value(kernel.dims[0])):
        touched: dict[Any, bool] = {}
        for inst in kernel.body:
            if inst.operand < 0:
                continue
            operand = kernel.operands[inst.operand]
            strides = [value(s) for s in operand.strides]
            loops = [range(value(d)) if s else [0] for d, s in zip(kernel.dims[1:], strides[1:])]
            for point in product([i], *loops):
                place = value(operand.offset) + sum(p * s for p, s in zip(point, strides))
                slot = operand.slot
                key = (slot if slot.storage is None else slot.storage, place)
                touched[key] = touched.get(key, False) or inst.op != "load"
        result.append((start + i * step, touched))
    return result


def check_order(found: Strips, value: Any) -> None:
    """No iteration accesses an element before an earlier kernel is done with it, in time."""
    last: dict[Any, tuple[int, int]] = {}  # element -> the latest time of a write, of an access
    for kernel, start in zip(found.kernels, found.starts):
        runs = iterations(kernel, value(start), value)
        for time, touched in runs:
            for key, writes in touched.items():
                written, accessed = last.get(key, (-(10**9), -(10**9)))
                assert time >= (accessed if writes else written)
        for time, touched in runs:
            for key, writes in touched.items():
                written, accessed = last.get(key, (-(10**9), -(10**9)))
                last[key] = (max(written, time) if writes else written, max(accessed, time))
                behind, ahead = found.spans.get(key[0], (None, None))
                if behind is not None and ahead is not None:
                    assert time - value(behind) <= key[1] <= time + value(ahead)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**20), rank=st.integers(1, 2), data=st.data())
def test_no_iteration_comes_too_early(seed, rank, data):
    program = shifted_chains.program(seed, rank)
    shape = [data.draw(st.integers(0, 9)) for _ in range(rank)]
    symbols = {
        Dim.symbol(("len", slot.number, axis)): length
        for slot in program.inputs
        for axis, length in enumerate(shape)
    }
    computed = (Dim.symbol(("item", slot.number)) for slot in program.slots if slot.ndim == 0)
    symbols |= {symbol: data.draw(st.integers(0, 2)) for symbol in computed}
    for found in groups(program):
        check_order(found, lambda dim: dim.evaluate(symbols))


def test_chains_have_strips():
    """Else the tests of random chains would test nothing."""
    for rank in (1, 2):
        assert sum(bool(shifted_chains.program(seed, rank).strips) for seed in range(20)) > 15


@pytest.mark.parametrize("rank", [1, 2])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**20), bytes_=st.integers(1, 1000), data=st.data())
def test_strips_change_no_result(rank, seed, bytes_, data):
    program = shifted_chains.program(seed, rank, 5)
    shape = [data.draw(st.integers(0, 12 if rank == 1 else 7)) for _ in range(rank)]
    rng = np.random.default_rng(seed)
    args = [rng.normal(size=shape).astype(x.dtype) for x in program.inputs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strips, "STRIP_BYTES", bytes_)
        patch.setattr(strips, "CACHED_BYTES", 0)
        results = interpret(program, *args)
    program.strips = []
    for result, expected in zip(results, interpret(program, *args), strict=True):
        np.testing.assert_array_equal(result, expected)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**20))
def test_text_is_read_back(seed):
    text = render_program(shifted_chains.program(seed))
    assert render_program(verify(parse_program(text))) == text


# ------------------------------------------------------------------------- which kernels


def heat(x, steps=4):
    for _ in range(steps):
        x = pt.set_subtensor(x[1:-1], x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]))
    return x


def test_a_kernel_stays_behind_by_what_it_reads_ahead():
    x = pt.dvector("x")
    program = phintys.function([x], heat(x)).program
    assert program.strips == [(0, len(program.steps))]
    starts = [start.value for start in groups(program)[0].starts]
    assert starts[2::3] == [16, 32, 48, 64]  # the inner elements: at least one, in whole vectors


def test_strips_are_long_where_they_overlap_by_rows():
    x, y = pt.dvector("x"), pt.dmatrix("y")
    (near,) = groups(phintys.function([x], heat(x)).program)
    (rows,) = groups(phintys.function([y], heat(y)).program)
    assert near.step * near.widest == strips.KERNEL_BYTES
    assert rows.step * rows.width == strips.STRIP_BYTES


def test_rows_stay_behind_by_rows():
    x = pt.dmatrix("x")
    program = phintys.function([x], heat(x)).program
    width = Dim.symbol(("len", 0, 1))
    starts = groups(program)[0].starts[2::3]
    assert starts == tuple(width * k for k in (1, 2, 3, 4))


def test_neighbours_in_both_directions():
    x = pt.dmatrix("x")
    y = x
    for _ in range(4):
        inner = y[1:-1, 1:-1] + y[2:, 1:-1] + y[:-2, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:]
        y = pt.set_subtensor(y[1:-1, 1:-1], 0.2 * inner)
    program = phintys.function([x], y).program
    assert program.strips == [(0, len(program.steps))]


@pytest.mark.parametrize("n", [100, 1_000_000])
def test_short_arrays_have_no_strips(n):
    x = pt.tensor("x", dtype="float64", shape=(n,))
    assert bool(phintys.function([x], heat(x)).program.strips) == (n > 1000)


@pytest.mark.parametrize("mode", ["FAST_RUN", pytest.param("C", marks=no_compiler)])
def test_lengths_are_known_before_the_first_strip(mode):
    """The first kernel computes the lengths of the others."""
    x, k = pt.matrix("x"), pt.scalar("k", dtype="int16")
    f = phintys.function([x, k], pt.roll(x, shift=k // 2, axis=0), mode=mode)
    value = np.arange(25.0).reshape(5, 5)
    expected = np.roll(value, 2, 0)
    np.testing.assert_array_equal(f(value, 4), expected)
    found = interpret(f.program, value, np.array(4, "int16"))[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("step", [3, 2**31, 2**62 + 1, 2**63 - 1])
@pytest.mark.parametrize("known", [True, False])
def test_a_step_of_any_size_is_written(step, known):
    x, k = pt.vector("x"), pt.scalar("k", dtype="int64")
    y = pt.set_subtensor(x[1:], x[:-1] * 2)
    out = pt.set_subtensor(y[:: step if known else k], -1.0)
    f = phintys.function([x, k], out, on_unused_input="ignore")
    value = np.arange(7.0)
    expected = np.concatenate([value[:1], value[:-1] * 2])
    expected[::step] = -1
    np.testing.assert_array_equal(f(value, step), expected)


def test_kernels_that_share_nothing_have_no_strips():
    x, y = pt.dvectors("x", "y")
    assert not phintys.function([x, y], [pt.exp(x), pt.exp(y)]).program.strips


def test_sums_end_strips():
    x = pt.dvector("x")
    y = heat(x, 1)
    assert not any(a == 0 and b > 4 for a, b in phintys.function([x], y / y.sum()).program.strips)


# ------------------------------------------------------------------------------ verifier

PROGRAM = """
inputs %0 of 1
outputs %2
%0 = input float64 [len(0, 0)] 'x'
%1 = temp float64 [len(0, 0)] in 0
%2 = output float64 [len(0, 0)]
storage 0 = 8*len(0, 0)
strips 0:2
kernel [len(0, 0)] split 1
  $0 = %0 {1; 0; }
  $1 = %1 {1; 0; }
  0: load float64 () 0
  1: exp float64 (0)
  2: store float64 (1) 1
kernel [len(0, 0)] split 1
  $0 = %1 {READ; }
  $1 = %2 {1; 0; }
  0: load float64 () 0
  1: neg float64 (0)
  2: store float64 (1) 1
"""


def test_a_program_with_strips_is_legal():
    program = parse_program(PROGRAM.replace("READ", "1; 0"))
    verify(program)
    assert [*program.strips] == [(0, 2)]


@pytest.mark.parametrize("read", ["-1; -1 + len(0, 0)", "0; 0", "2; 0", "item(0); 0"])
def test_what_is_written_must_be_read_in_step(read):
    text = PROGRAM.replace("READ", read)
    with pytest.raises(IllegalProgram):
        verify(parse_program(text))
    if "item" not in read:
        verify(parse_program(text.replace("strips 0:2\n", "")))


@pytest.mark.parametrize("ranges", ["0:3", "1:1", "1:2 0:1", "0:2 1:2"])
def test_ranges_are_in_order(ranges):
    text = PROGRAM.replace("READ", "1; 0").replace("0:2", ranges)
    with pytest.raises(IllegalProgram, match="range"):
        verify(parse_program(text))


def test_memory_that_is_shared_counts():
    """The second kernel overwrites, reversed, what the first one reads."""
    text = """
    inputs %0 of 1
    outputs %3
    %0 = input float64 [len(0, 0)] 'x'
    %1 = temp float64 [len(0, 0)] in 0
    %2 = temp DTYPE [len(0, 0)] in 0
    %3 = output float64 [len(0, 0)]
    storage 0 = 8*len(0, 0)
    strips 1:3
    kernel [len(0, 0)] split 1
      $0 = %0 {1; 0; }
      $1 = %1 {1; 0; }
      0: load float64 () 0
      1: store float64 (0) 1
    kernel [len(0, 0)] split 1
      $0 = %1 {STRIDE; OFFSET; }
      $1 = %3 {1; 0; }
      0: load float64 () 0
      1: store float64 (0) 1
    kernel [len(0, 0)] split 1
      $0 = %2 {1; 0; }
      0: const DTYPE () 1
      1: store DTYPE (0) 0
    """

    def program(dtype, stride, offset):
        parts = (("DTYPE", dtype), ("STRIDE", stride), ("OFFSET", offset))
        new = text
        for old, value in parts:
            new = new.replace(old, value)
        return parse_program(new)

    verify(program("float64", "1", "0"))
    with pytest.raises(IllegalProgram, match="depend"):
        verify(program("float64", "-1", "-1 + len(0, 0)"))
    with pytest.raises(IllegalProgram, match="depend"):  # other places of elements
        verify(program("float32", "1", "0"))


def test_only_kernels_have_strips():
    text = PROGRAM.replace("READ", "1; 0").replace("strips 0:2", "strips 0:3")
    text = text.replace("kernel", "check len(0, 0) >= 0 'long enough'\nkernel", 1)
    with pytest.raises(IllegalProgram, match="no Kernel"):
        verify(parse_program(text))


def no_loops(*slots: Any) -> bool:
    raise AssertionError("the program has no loops")


def test_strips_do_not_update_in_place():
    """The first kernel reads elements of the input after the second one has replaced them."""
    x = pt.dvector("x")
    a = pt.tanh(x[::-1])
    inner = pt.set_subtensor(a[1:-1], a[2:] - a[:-2])
    program = phintys.function([x], 0.5 * x + inner).program
    assert program.strips
    assert not runs_in_place(program, program.inputs[0], program.outputs[0], no_loops)
    program.strips = []
    assert runs_in_place(program, program.inputs[0], program.outputs[0], no_loops)


def test_kernels_with_many_arrays_have_no_strips():
    """A strip of all of them would be short."""
    xs = [pt.dvector(f"x{k}") for k in range(40)]
    outputs = [heat(x, 1) for x in xs]
    program = phintys.function(xs, outputs).program
    assert all(strips_of(program.steps[a:b]).width <= 128 for a, b in program.strips)
