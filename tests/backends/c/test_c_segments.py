"""Ragged loops in C."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phintys
from phintys.backends.c import compiler as build_module
from phintys.lowering.program import Kernel

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
import segment_ops as ops

pytestmark = pytest.mark.skipif(
    not any(shutil.which(c) for c in build_module.COMPILERS), reason="there is no C compiler here"
)


def compile_(inputs: list[Any], output: Any) -> Any:
    f = phintys.function(inputs, output, mode="C")
    assert any(isinstance(s, Kernel) and s.ragged for s in f.program.steps)
    return f


@pytest.mark.parametrize("dtype", ops.REDUCTIONS)
def test_reductions(dtype: str) -> None:
    inputs = ops.variables([ops.numbers(dtype, 1), *ops.bounds("rows")])
    ops_ = [ops.SegmentReduce(kind) for kind in ops.REDUCTIONS[dtype]]
    f = phintys.function(inputs, [op(*inputs) for op in ops_], mode="C")
    for name, (_, _, length) in ops.SEGMENTS.items():
        args = ops.numbers(dtype, length), *ops.bounds(name)
        for op, found in zip(ops_, f(*args), strict=True):
            storage: list[list[Any]] = [[None]]
            with np.errstate(over="ignore"):
                op.perform(op.make_node(*inputs), list(args), storage)
            ops.same(found, storage[0][0])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("index", ["int64", "int32", "uint8"])
def test_products(index: str, transposed: bool) -> None:
    for rows, columns in ((0, 3), (4, 0), (9, 20)):
        a = ops.matrix(rows, columns, 5, "float32", index)
        v = ops.numbers("float32", rows if transposed else columns)
        ops.check(compile_, ops.CsrProduct(transposed), *a, v, np.zeros(columns, "float32"))


@pytest.mark.parametrize("mode", ["set", "add"])
def test_maps(mode: str) -> None:
    for name in ("rows", "overlapping", "no segments", "backwards"):
        x, (starts, stops) = ops.numbers("float64", ops.SEGMENTS[name][2]), ops.bounds(name)
        factors = np.linspace(1, 2, len(starts))
        ops.check(compile_, ops.SegmentScale(mode), x, starts, stops, factors)
        at = np.random.default_rng(1).permutation(len(x))
        ops.check(compile_, ops.SegmentScale(mode), x, starts, stops, factors, at)


def test_wrong_bounds() -> None:
    inputs = ops.variables([np.ones(1), *ops.bounds("rows")])
    f = compile_(inputs, ops.SegmentReduce("max")(*inputs))
    for name, (_, _, length) in ops.WRONG.items():
        with pytest.raises(IndexError, match="segment"):
            f(np.ones(length), *ops.bounds(name, wrong=True))
