"""Thresholds: the numbers by which the generator chooses between ways to write code.

Each has its unit, its reason and, where it is known, what was measured when it was set; where
nothing is said of a measurement none is known.  Results stay right with other numbers, but sums are
rounded in another way with some.  What scalar instructions cost is in ``lowering/costs.py``; what
the processor has, in ``machine/target.py``.

Users of a number write ``costs.NUMBER``, so that tests can change it here.
"""

from __future__ import annotations

# --------------------------------------------------------------------------------- lanes

#: Lanes of a vector, at most: bounds the size of code, whatever the machine.
MOST_LANES = 16

#: Lanes of a vector whose lanes go to memory one by one, at most: each is code there.
MOST_SINGLE_LANES = 8

#: Registers that one vector of a kernel with special functions fills.  Their code is bound by
#: latency and by loading constants.  Measured (``benchmarks/vecmath.py``): a quarter faster than
#: with one register, and four spill.
SPECIAL_VECTORS = 2

# ----------------------------------------------------------------------- innermost loops

#: Vectors that a cheap reduction takes in one turn, with an accumulator each: this hides the
#: latency of additions.
UNROLL = 4

#: Instructions in the body of such a reduction, at most: the additions of longer ones do not wait
#: for each other.
UNROLLED_BODY = 8

#: Turns of such a loop after which its sums start afresh: the error of long sums grows slowly, and
#: the number of a turn fits into any integer.
SUM_TURNS = 128

#: Turns, at least, for which several accumulators of positions are worth it: to combine them takes
#: as long as some turns.  Measured: the position of the best of 20 numbers is found in half the
#: time without them.
POSITIONAL_TURNS = 4

#: Lengths that are literals in the code of a kernel: short ones, and the width of wide tiles.
BAKED_LENGTHS = frozenset([*range(17), 64])

# --------------------------------------------------------------------- rows that are added up

#: Rows that a sum of rows takes in one turn: it reads and writes its results that much less often.
ROWS_TOGETHER = 4

#: What a row may cost, as `phintys.lowering.costs.cost` counts: other work hides the traffic.
ROWS_COST = 8

#: Elements of a row, at least: the sums of shorter ones stay in the nearest cache.
ROWS_LENGTH = 1024

# ---------------------------------------------------------------------------- short rows

#: Elements of a row that is taken together with others, at most.  Measured: rows of 16 elements
#: and more, up to the limits, were up to three times as fast with them as without.
SHORT_ROW = 32

#: The same where there are reductions and no special functions.
SHORT_ROW_CHEAP = 24

#: The same where there are reductions and special functions, in vectors.
SHORT_ROW_VECTORS = 3

#: The same where nothing is added up: so many registers are not filled by a row.  Lanes are written
#: one by one there, which full vectors are not.
SHORT_MAP_VECTORS = 2

# --------------------------------------------------------------------------------- tiles

#: Points of a tile down and across.  Long rows suit the prefetcher, narrow tiles waste little of
#: short ones.
TILE_HEIGHT = 16
TILE_WIDTHS = 64, 16

#: Points of a loop, at least: smaller ones are left as they are.
TILED_POINTS = 2**12

#: Cache lines of 64 bytes that stay until the next row needs them: half of the nearest cache.
TILE_LINES = 256

#: Bytes: lines at multiples of this distance have 64 places in the nearest cache or fewer.
CONFLICT_BYTES = 512

#: Copies of strided arguments: elements of a tile down and across, and of what is worth tiles.
COPY_HEIGHT, COPY_WIDTH = 16, 64
COPY_ELEMENTS = 2**12

# ------------------------------------------------------------------------------ products

#: Columns of a product that is computed without BLAS, at most.  Measured against BLAS: 4 x 4 take
#: two thirds of the time, 16 x 16 half, a matrix times a vector half.
PRODUCT_COLUMNS = 32

#: Terms that are added up in one turn: that part of the second factor fits the nearest cache.
PRODUCT_TERMS = 128

#: Rows of a block, at most: so many sums hide the latency of an addition.
PRODUCT_ROWS = 4

#: Rows or columns of a block of a product that is cut for signals, at least.
GEMM_BLOCK = 128

# ------------------------------------------------------------------------------- threads

#: Picoseconds of work that a thread must have.  Making one and waiting for it takes some 20
#: microseconds where a core is idle, and several times as long where it must be woken; the second
#: core's caches are cold besides.  Measured: with less, medium kernels were slower.
THREAD_PICOSECONDS = 500_000_000

#: Points of an innermost loop: parts of it start at multiples of this.
PART_POINTS = 64

#: Picoseconds for a point, rather too few than too many: of an operand that goes through memory in
#: order, of one at computed positions, and of an instruction for each unit of its cost, expensive
#: (exp, log and their kind) or not.
STREAM_PICOSECONDS, SCATTERED_PICOSECONDS = 50, 500
EXPENSIVE_PICOSECONDS, CHEAP_PICOSECONDS = 100, 20

#: A kernel that computes less than so many times what it waits for memory has one thread.
COMPUTE_PER_MEMORY = 2

# ------------------------------------------------------------------------ blocks of rows

#: Bytes of the rows of a block, those of all matrices together: the second-level cache holds them.
ROW_BLOCK_BYTES = 192 << 10

#: Bytes of matrices that are a single block, at most: the nearer caches hold most of them.
ROW_BLOCK_SMALL = 1 << 20

#: Rows: blocks have a multiple of this, which suits BLAS; where they would be larger then, there is
#: only one.
ROW_BLOCK_MULTIPLE = 8

#: Columns of the results of products, at most.  For each block BLAS copies the second factor anew,
#: and the more columns, the less a product waits for its matrix.  Measured: a fifth less time at 64
#: columns.
ROW_BLOCK_COLUMNS = 64

#: Steps that are looked at together, which bounds the time it takes.
ROW_BLOCK_STEPS = 32

#: Threads of BLAS, at most: a block is too little for BLAS to share out.  So many cores read memory
#: about as fast together as one does; if BLAS has more, it takes the whole matrix.
ROW_BLOCK_THREADS = 4

# ------------------------------------------------------------------------------ routines

#: Scalar instructions, some 10 microseconds: around more work the lock of the interpreter is given
#: up.
LONG_WORK = 20_000

#: Bytes of temps of known size that are on the stack of a call, at most.
STACK_BYTES = 4096

#: Steps in a block of IR: the time of LLVM's quick code generation grows with the square of it.
#: Measured: routines of 330 and 660 kernels take 190 and 440 ms, 436 and 2080 in one block.
IR_BLOCK_STEPS = 8

#: Steps of a routine that is optimised, at most, and only if it repeats something: it would take
#: half of the time of generating a small function, and gains nothing that a call shows.
OPTIMISED_STEPS = 8

#: Bytes of the block that is freed once, so that glibc keeps freed memory: just below the largest
#: (32 MB) that it learns from.  Measured: several large results cost four times less.
FREED_BYTES = 2**25 - 2**16

# ------------------------------------------------------------------------------- signals

#: Nanoseconds of work, rather too many than too few, between two polls.  Loops with less do not
#: poll at all, so this times the number of a Program's steps is the longest wait.
POLL_NANOSECONDS = 2**20

#: Points between two polls, at least.
POLL_POINTS = 16

#: Nanoseconds for a point: kernels that go through memory and take less do not poll.  Measured: to
#: poll made the code of small kernels 10 to 18 % slower to generate.
DENSE_NANOSECONDS = 32

#: Multiply-adds of a product after which a function polls, at least.
POLL_PRODUCT = 2**22

#: Multiply-adds of a product of matrices, and of a matrix and a vector, at most: larger ones go in
#: pieces.
LONG_GEMM, LONG_GEMV = 2**34, 2**29

#: Multiply-adds that a turn of a batch of products counts besides its own.
BATCH_TURN = 64

#: Steps of the body of a `Loop` between two polls.
POLL_STEPS = 64

#: Milliseconds since the last poll that took the lock of the interpreter, until the next one does.
POLL_MILLISECONDS = 200
