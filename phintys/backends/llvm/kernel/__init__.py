"""From a Kernel to one function as IR text.

    kernels.py      the function: its loops, and in each what belongs there
    lanes.py        instructions and memory access for some lanes at once
    vector_loop.py  the innermost loop
    short_rows.py   vectors across short rows
    reductions.py   accumulators
    indexed.py      operands whose rows are given by an index
    sharing.py      kernels that differ in numbers alone share code
    scans.py        Scan -> one function
    polling.py      how many points are done between two polls for signals
    rows.py tiles.py  Kernel -> Kernels with loops in another order

It may import ``ir``, ``machine`` and ``vecmath``; ``runtime`` stands beside it.
"""
