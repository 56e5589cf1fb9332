"""Thresholds: the numbers by which the generator chooses between ways to write code."""

from __future__ import annotations

# ------------------------------------------------------------------------------- signals

#: About how many nanoseconds of work, rather too many than too few, a block is.  Loops with less
#: do not ask at all, so this times the number of a Program's steps is the longest wait.
BLOCK = 2**20

#: Kernels that go through memory have no blocks if a point takes less than so many nanoseconds.
DENSE = 32

#: Functions ask after products with at least so many multiply-adds.
LONG_PRODUCT = 2**22

#: Products of matrices, and of a matrix and a vector, with more multiply-adds go in blocks.
LONG_GEMM, LONG_GEMV = 2**34, 2**29

#: A `Loop` asks once in about so many steps of its body.
LOOP_STEPS = 64

#: A question takes the lock of the interpreter if the last one is so many milliseconds ago.
PERIOD = 200
