"""Squares of registers are transposed."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from phintys.backends.llvm.ir.transposed import copy_squares, side
from phintys.backends.llvm.ir.types import KernelWriter
from phintys.backends.llvm.machine.jit import compile_ir
from phintys.backends.llvm.machine.target import current

pytestmark = pytest.mark.widths


@pytest.mark.parametrize(
    "cell, size", [("i8", 1), ("i16", 2), ("float", 4), ("i32", 4), ("i64", 8)]
)
@pytest.mark.parametrize("squares", [0, 1, 3])
def test_squares(cell, size, squares):
    width = side(current(), size)
    w = KernelWriter()
    copy_squares(w, cell, size, ("%from", "%step"), ("%to", "%row"), "%n")
    w.line("ret void")
    arguments = "ptr %from, i64 %step, ptr %to, i64 %row, i64 %n"
    library = compile_ir(w.text(f"void @squares({arguments})"))
    source = np.random.default_rng(0).integers(0, 200, (width, 60)).astype(f"uint{8 * size}")
    target = np.zeros((60, width + 3), source.dtype)
    signature = ctypes.CFUNCTYPE(
        None,
        *(ctypes.c_void_p, ctypes.c_int64) * 2,
        ctypes.c_int64,
    )
    copy = signature(library.address("squares"))
    copy(source.ctypes.data, 60 * size, target.ctypes.data, (width + 3) * size, squares * width)
    expected = np.zeros_like(target)
    expected[: squares * width, :width] = source[:, : squares * width].T
    np.testing.assert_array_equal(target, expected)
