"""Ragged loops in machine code: vectors, threads, polls and errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_built import by_target
from hand_built import check as check_program
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys
from phintys import config
from phintys.backends.llvm import costs
from phintys.backends.llvm.routine import parts
from phintys.lowering.program import Kernel
from phintys.lowering.text import parse_program

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
import segment_ops as ops

pytestmark = pytest.mark.widths

INDICES = ["int64", "int32", "uint8", "int16", "uint64"]


def compile_(inputs: list[Any], output: Any) -> Any:
    f = phintys.function(inputs, output)
    assert any(isinstance(s, Kernel) and s.ragged for s in f.program.steps)
    return f


def performed(op: Any, *arrays: Any) -> Any:
    storage: list[list[Any]] = [[None]]
    op.perform(op.make_node(*ops.variables(arrays)), list(arrays), storage)
    return storage[0][0]


# ------------------------------------------------------------------------- reductions


@by_target
def all_reductions(dtype: str, index: str = "int64", threads: int = 1) -> Any:
    inputs = ops.variables([ops.numbers(dtype, 1), *ops.bounds("rows", index)])
    outputs = [ops.SegmentReduce(kind)(*inputs) for kind in ops.REDUCTIONS[dtype]]
    with config.change_flags(threads=threads):
        return phintys.function(inputs, outputs)


@pytest.mark.parametrize("dtype", ops.REDUCTIONS)
def test_reductions(dtype: str) -> None:
    f = all_reductions(dtype)
    for name, (_, _, length) in ops.SEGMENTS.items():
        args = ops.numbers(dtype, length), *ops.bounds(name)
        with np.errstate(over="ignore"):
            for kind, found in zip(ops.REDUCTIONS[dtype], f(*args), strict=True):
                ops.same(found, performed(ops.SegmentReduce(kind), *args))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
@given(lengths=st.lists(st.integers(0, 70), max_size=12), start=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_lengths_around_that_of_a_vector(dtype: str, lengths: list[int], start: int) -> None:
    ends = start + np.cumsum([0, *lengths])
    args = ops.numbers(dtype, ends[-1] + 3), ends[:-1], ends[1:]
    for kind, found in zip(ops.REDUCTIONS[dtype], all_reductions(dtype)(*args), strict=True):
        ops.same(found, performed(ops.SegmentReduce(kind), *args))


@pytest.mark.parametrize("index", INDICES)
def test_bounds_of_any_dtype(index: str) -> None:
    f = all_reductions("float64", index)
    args = ops.numbers("float64", 150), *ops.bounds("rows", index)
    for kind, found in zip(ops.KINDS, f(*args), strict=True):
        ops.same(found, performed(ops.SegmentReduce(kind), *args))
    if index == "uint64":
        with pytest.raises(IndexError):
            f(args[0], args[1], args[2] + np.uint64(2**63))


def test_nan_and_infinities() -> None:
    x = np.array([1, np.nan, 2, np.inf, -np.inf, -np.inf, np.nan, np.nan, 3.0] * 20)
    starts = np.arange(0, 170, 3)
    args = x, starts, starts + np.arange(len(starts)) % 11
    with np.errstate(invalid="ignore", over="ignore"):
        for kind, found in zip(ops.KINDS, all_reductions("float64")(*args), strict=True):
            ops.same(found, performed(ops.SegmentReduce(kind), *args))


@pytest.mark.parametrize("name", ops.WRONG)
def test_wrong_bounds(name: str) -> None:
    x = np.ones(ops.WRONG[name][2])
    with pytest.raises(IndexError, match="segment"):
        all_reductions("float64")(x, *ops.bounds(name, wrong=True))


# --------------------------------------------------------------------------- matrices


@by_target
def products(dtype: str, index: str) -> Any:
    data, *indices = ops.matrix(1, 1, 1, dtype, index)
    inputs = ops.variables([data, *indices, data, data, data])
    a, (v, w, columns) = inputs[:3], inputs[3:]
    forwards, backwards = ops.CsrProduct()(*a, v, columns), ops.CsrProduct(True)(*a, w, columns)
    return phintys.function(inputs, [forwards, backwards])


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
def test_products(dtype: str, index: str) -> None:
    for rows, columns, each in ((0, 4, 3), (5, 0, 3), (1, 1, 90), (9, 20, 5), (7, 99, 30)):
        a = ops.matrix(rows, columns, each, dtype, index)
        if len(a.data) > 255 and index == "uint8":
            continue
        v, w = ops.numbers(dtype, columns), ops.numbers(dtype, rows)
        columns_ = np.zeros(columns, dtype)
        found = products(dtype, index)(*a, v, w, columns_)
        ops.same(found[0], performed(ops.CsrProduct(), *a, v, columns_))
        ops.same(found[1], performed(ops.CsrProduct(True), *a, w, columns_))


@pytest.mark.parametrize("index", ["int64", "int32"])
@pytest.mark.parametrize("bad", [20, -21, 2**31 - 1, -(2**31)])
def test_an_index_out_of_range_is_noticed_anywhere(bad: int, index: str) -> None:
    a = ops.matrix(9, 20, 12, "float64", index)
    args = np.ones(20), np.ones(9), np.ones(20)
    products("float64", index)(*a, *args)
    for place in range(len(a.indices)):
        wrong = a.indices.copy()
        wrong[place] = bad
        with pytest.raises(IndexError):
            products("float64", index)(a.data, wrong, a.indptr, *args)


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_maps(dtype: str, mode: str) -> None:
    for name in ("rows", "overlapping", "no segments", "no elements", "backwards", "one long"):
        x = ops.numbers(dtype, ops.SEGMENTS[name][2])
        starts, stops = ops.bounds(name)
        factors = ops.numbers(dtype, len(starts))
        ops.check(compile_, ops.SegmentScale(mode), x, starts, stops, factors)
        at = np.random.default_rng(1).permutation(len(x)).astype("int32")
        ops.check(compile_, ops.SegmentScale(mode), x, starts, stops, factors, at)


SOFTMAX = """
inputs %0 %1 of 2
outputs %2 %3
%0 = input float64 [len(0, 0)]
%1 = input int64 [len(1, 0)]
%2 = output float64 [len(0, 0)]
%3 = output int64 [-1 + len(1, 0)]
kernel [len(0, 0)] split 1
  $0 = %2 {1; 0; }
  0: const float64 () 7.0
  1: store float64 (0) 0
kernel [-1 + len(1, 0), len(0, 0)] split 1 ragged 0 1
  $0 = %1 {1, 0; 0; }
  $1 = %1 {1, 0; 1; }
  $2 = %0 {0, 1; 0; }
  $3 = %2 {0, 1; 0; }
  $4 = %3 {1, 0; 0; }
  0: load int64 () 0
  1: load int64 () 1
  2: load float64 () 2
  3: reduce float64 (2) max
  4: sub float64 (2, 3)
  5: exp float64 (4)
  6: reduce float64 (5) add
  7: div float64 (5, 6)
  8: store float64 (7) 3
  9: index int64 () 1
  10: reduce int64 (9) max
  11: store int64 (10) 4
"""


@pytest.mark.parametrize("lengths", [[3, 0, 17, 1], [0], [], [600, 5]])
def test_several_passes_over_each_segment(lengths: list[int]) -> None:
    ends = np.cumsum([2, *lengths])
    x = np.random.default_rng(3).normal(size=ends[-1] + 4)
    check_program(parse_program(SOFTMAX), x, ends)


# ------------------------------------------------------------------- threads and polls


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little there is to do, it is done in several threads."""
    monkeypatch.setattr(costs, "THREAD_PICOSECONDS", 1)
    monkeypatch.setattr(parts, "_is_stream", lambda inst: False)


def in_threads(kind: str, count: int) -> Any:
    inputs = ops.variables([ops.numbers("float64", 1), *ops.bounds("rows")])
    with config.change_flags(threads=count):
        return phintys.function(inputs, ops.SegmentReduce(kind)(*inputs))


@pytest.mark.parametrize("kind", ["add", "argmax"])
def test_segments_in_threads_are_the_same_to_the_bit(forced: None, kind: str) -> None:
    one, several = in_threads(kind, 1), in_threads(kind, 3)
    for name, (_, _, length) in ops.SEGMENTS.items():
        args = ops.numbers("float64", length), *ops.bounds(name)
        for _ in range(5):
            assert one(*args).tobytes() == several(*args).tobytes()
    for place in (0, 3, 7):
        starts, stops = ops.bounds("rows")
        stops[place] = 151
        with pytest.raises(IndexError):
            several(ops.numbers("float64", 150), starts, stops)


def test_maps_and_single_segments_in_threads(forced: None) -> None:
    """Segments may overlap, so their order matters; one segment is not divided."""
    with config.change_flags(threads=3):
        for mode in ("set", "add"):
            x, (starts, stops) = ops.numbers("float64", 150), ops.bounds("overlapping")
            ops.check(compile_, ops.SegmentScale(mode), x, starts, stops, np.arange(6.0))
    a = ops.matrix(9, 20, 12, "float64", "int64")
    with config.change_flags(threads=3):
        ops.check(compile_, ops.CsrProduct(), *a, np.arange(20.0), np.zeros(20))
        ops.check(compile_, ops.CsrProduct(True), *a, np.arange(9.0), np.zeros(20))


def test_segments_are_divided_and_their_elements_counted() -> None:
    inputs = ops.variables([ops.numbers("float64", 1), *ops.bounds("rows")])
    f = phintys.function(inputs, ops.SegmentReduce("add")(*inputs))
    (kernel,) = (s for s in f.program.steps if isinstance(s, Kernel))
    outer, length = kernel.dims
    assert kernel.points is outer + length
    divided = parts.cut(kernel)
    assert divided is not None and divided.length is outer
