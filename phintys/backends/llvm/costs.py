"""Thresholds by which the code generator chooses between alternative forms of code.

Each comment gives the unit, the reason and, where there was one, the measurement by which the
number was set.  Results are correct with other values, but some of them change the order of sums
and so their rounding.  The costs of scalar instructions are in ``lowering/costs.py``, the
properties of the processor in ``machine/target.py``.

Users of a number write ``costs.NUMBER``, so that tests can change it here.
"""

from __future__ import annotations

# --------------------------------------------------------------------------------- lanes

#: Lanes of a vector, at most: bounds the size of the code on any machine.
MOST_LANES = 16

#: Lanes of a vector that is loaded or stored lane by lane, at most: each lane adds instructions.
MOST_SINGLE_LANES = 8

#: Registers per vector in a kernel with special functions.  Their code is bound by latency and by
#: loading constants.  Measured (``benchmarks/vecmath.py``): a quarter faster than with one
#: register; with four, registers spill.
SPECIAL_VECTORS = 2

#: Bytes of vectors, at least, of which neighbours are shuffled, not loaded (see `neighbours`): a
#: cache line.  Measured: kernels over float64, float32 and int32 take a sixth to a quarter less;
#: with vectors of 32 bytes, half of whose loads cross cache lines, they take as long as without.
NEIGHBOUR_BYTES = 64

# ----------------------------------------------------------------------- innermost loops

#: Unrolling factor of a cheap reduction: vectors per iteration, with an accumulator each, to hide
#: the latency of additions.
UNROLL = 4

#: Instructions in the body of such a reduction, at most: in longer bodies the latency of the
#: additions is hidden already.
UNROLLED_BODY = 8

#: Iterations of such a loop after which it starts with new accumulators: the rounding error of long
#: sums grows slowly, and the number of an iteration fits into any integer type.
SUM_TURNS = 128

#: Iterations, at least, for which argmax and argmin use several accumulators: to combine them takes
#: as long as some iterations.  Measured: argmax of 20 numbers takes half the time without them.
POSITIONAL_TURNS = 4

#: Lengths that are literals in the code of a kernel, not arguments: short ones, and the width of
#: wide tiles.
BAKED_LENGTHS = frozenset([*range(17), 64])

# --------------------------------------------------------------------- rows that are added up

#: Rows that a sum over rows adds in one iteration: it loads and stores its results that much less
#: often.
ROWS_TOGETHER = 4

#: Cost of an element, at most, in units of `phintys.lowering.costs.cost`: more work hides the time
#: of the loads and stores.
ROWS_COST = 8

#: Elements of a row, at least: the sums of shorter ones stay in the L1 cache.
ROWS_LENGTH = 1024

# ---------------------------------------------------------------------------- short rows

#: Elements of a row, at most, for vectors across rows (see `short_rows`).  Measured: rows of 16
#: elements and more, up to the limits, were up to three times as fast as without.
SHORT_ROW = 32

#: The same where there are reductions and no special functions.
SHORT_ROW_CHEAP = 24

#: The same where there are reductions and special functions, as a number of vectors.
SHORT_ROW_VECTORS = 3

#: The same, as a number of vectors, without reductions: shorter rows do not fill so many registers.
#: Lanes are stored one by one there, while vectors along the row are stored whole.
SHORT_MAP_VECTORS = 2

# --------------------------------------------------------------------------------- tiles

#: Rows and columns of a tile.  Wide tiles suit the prefetcher; narrow ones leave little of short
#: rows outside whole tiles.
TILE_HEIGHT = 16
TILE_WIDTHS = 64, 16

#: Points of a loop nest, at least: smaller ones are not tiled.
TILED_POINTS = 2**12

#: Cache lines of 64 bytes that stay until the next row needs them: half of the L1 cache.
TILE_LINES = 256

#: Bytes: lines at multiples of this stride map to 64 places in the L1 cache or fewer, so they
#: conflict.
CONFLICT_BYTES = 512

#: Copies of strided arguments: rows and columns of a tile, and the elements of the smallest array
#: that is copied by tiles.
COPY_HEIGHT, COPY_WIDTH = 16, 64
COPY_ELEMENTS = 2**12

# ------------------------------------------------------------------------------ products

#: Columns of a product that is computed without BLAS, at most.  Measured against BLAS, in batches:
#: 4 x 4 take half the time, 16 x 16 three quarters, 32 x 32 the same; a matrix times a vector half.
PRODUCT_COLUMNS = 32

#: Terms of the inner dimension that one pass adds: that part of the second factor fits the L1
#: cache.
PRODUCT_TERMS = 128

#: Rows of a block: so many independent sums of a vector or two hide the latency of an addition.
#: With 32 registers a block has 16 of them: twice the rows, or four vectors.
PRODUCT_ROWS = 4

#: Rows or columns of a block, at least, where a long product is split to poll for signals.
GEMM_BLOCK = 128

# ------------------------------------------------------------------------------- threads

#: Picoseconds of work per thread, at least.  Starting and joining one takes some 20 microseconds
#: where a core is idle, and several times as long where it must be woken; besides, the caches of
#: the second core are cold.  Measured: with less, medium kernels were slower.
THREAD_PICOSECONDS = 500_000_000

#: Points of an innermost loop: the part of each thread starts at a multiple of this.
PART_POINTS = 64

#: Picoseconds per point, lower estimates: of an operand that is accessed in the order of memory, of
#: a gather or scatter, and of an instruction per unit of its cost, expensive (exp, log and similar)
#: or not.
STREAM_PICOSECONDS, SCATTERED_PICOSECONDS = 50, 500
EXPENSIVE_PICOSECONDS, CHEAP_PICOSECONDS = 100, 20

#: A kernel has one thread if its computing time is less than so many times its memory time.
COMPUTE_PER_MEMORY = 2

# ------------------------------------------------------------------------ blocks of rows

#: Bytes of the rows of a block, in all matrices together: the L2 cache holds them.
ROW_BLOCK_BYTES = 192 << 10

#: Bytes of matrices, at most, that form a single block: the L1 and L2 caches hold most of them.
ROW_BLOCK_SMALL = 1 << 20

#: The number of rows of a block is a multiple of this, which suits BLAS; where that makes the block
#: too large, there is a single block.
ROW_BLOCK_MULTIPLE = 8

#: Columns of the results of products, at most.  BLAS packs the second factor again for each block,
#: and with more columns a product is bound less by reading its matrix.  Measured: a fifth less time
#: at 64 columns.
ROW_BLOCK_COLUMNS = 64

#: Steps that are analysed together, at most: bounds the time of the analysis.
ROW_BLOCK_STEPS = 32

#: Threads of BLAS, at most: a block is too small for BLAS to divide among threads.  So many cores
#: together read memory about as fast as one does; if BLAS has more, it gets the whole matrix.
ROW_BLOCK_THREADS = 4

# ------------------------------------------------------------------------------ routines

#: Scalar instructions, some 10 microseconds: the GIL is released around more work.
LONG_WORK = 20_000

#: Scalar instructions that take as long as drawing a random number.
DRAW_WORK = 16

#: Bytes of temps of constant size, at most, that a call keeps on the stack.
STACK_BYTES = 4096

#: Slots used in a basic block, and those that a step counts for at least: the time of LLVM's code
#: generation without optimisation grows with the square of the length of a block.  Measured:
#: routines of 330 and 660 kernels take 190 and 440 ms, 436 and 2080 in one block.
IR_BLOCK_SLOTS, IR_STEP_SLOTS = 64, 8

#: Blocks of memory whose addresses are values of the whole routine, at most; those of more are read
#: from a table where they are used.
NEAR_BLOCKS = 64

#: Steps of a routine that is optimised, at most, and only if it contains a loop: without one,
#: optimising takes half of the time of generating a small function and makes no call measurably
#: faster.
OPTIMISED_STEPS = 8

#: Bytes of a block that is freed once so that glibc raises its trim threshold: just below the
#: largest block (32 MB) that has this effect.  Measured: several large results cost four times
#: less.
FREED_BYTES = 2**25 - 2**16

# ------------------------------------------------------------------------------- signals

#: Nanoseconds of work between two polls, an upper estimate.  Loops with less do not poll at all, so
#: the longest delay of a signal is this times the number of steps of a Program.
POLL_NANOSECONDS = 2**20

#: Points between two polls, at least.
POLL_POINTS = 16

#: Segments of a ragged loop between two polls.  Segments of more than a block of points poll
#: themselves, so the delay is at most this many blocks.
POLL_ROWS = 2**6

#: Nanoseconds per point: kernels with an element in memory for each point that take less do not
#: poll.  Measured: code generation for small kernels took 10 to 18 % longer with polls.
DENSE_NANOSECONDS = 32

#: Random numbers between two polls: a power of two.
POLL_DRAWS = 2**14

#: Multiply-adds of products, at least, after which a function polls.
POLL_PRODUCT = 2**22

#: Multiply-adds of a matrix-matrix and a matrix-vector product, at most: larger ones are split.
LONG_GEMM, LONG_GEMV = 2**34, 2**29

#: Overhead of one product in a batch, in multiply-adds, when polls are counted.
BATCH_TURN = 64

#: Items of a batch that a grouped routine takes at most: a multiple of the lanes of all registers.
GROUP = 64

#: Lines of a kernel without loops, at most, that is inlined into a `Loop`.
INLINED_LINES = 200

#: Steps of the body of a `Loop` between two polls, where the time that a step takes is not known.
#: Cheap steps of known lengths are counted by their time.  Measured: a poll takes 25 ns, a fifth of
#: 64 steps of a few scalars.
POLL_STEPS = 64

#: Milliseconds between two polls that take the GIL.
POLL_MILLISECONDS = 200
