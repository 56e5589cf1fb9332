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

# ------------------------------------------------------------------------------ routines

#: The lock of the interpreter is given up around work of more than this many scalar instructions,
#: which is some 10 microseconds.
LONG_WORK = 20_000

#: Temps of known size are kept on the stack up to this many bytes a call.
STACK_BYTES = 4096

#: So many steps make a block of IR: the time of LLVM's quick code generation grows with the square
#: of it.
BLOCK_STEPS = 8

#: Routines that repeat nothing, or have more steps, are not optimised: it would take half of the
#: time of generating a small function, and gains nothing that a call shows.
OPTIMISED_STEPS = 8

# ------------------------------------------------------------------------ blocks of rows

#: The rows of a block, those of all matrices together, have about so many bytes: the second-level
#: cache holds them.
BLOCK_BYTES = 192 << 10

#: Matrices up to this size are a single block: the nearer caches hold most of them.
SMALL_BYTES = 1 << 20

#: Blocks have a multiple of so many rows, which suits BLAS; where they would be larger then, there
#: is only one.
WHOLE = 8

#: The results of products may have so many columns.  For each block BLAS copies the second factor
#: anew, and the more columns, the less a product waits for its matrix.
COLUMNS = 64

#: So many steps are looked at together, which bounds the time it takes.
WINDOW = 32

#: A block is too little for BLAS to share out.  So many cores read memory about as fast together
#: as one does; if BLAS has more, it takes the whole matrix.
THREADS = 4
