"""From a Kernel to one function as IR text.

    kernels.py      the function: its loop nest
    lanes.py        vectorized instructions and memory access
    vector_loop.py  the innermost loop
    neighbours.py   vectors that overlap are shuffled, not all loaded
    short_rows.py   vectors across short rows
    reductions.py   accumulators
    indexed.py      operands whose rows are selected by an index
    sharing.py      kernels that differ only in constants share code
    scans.py        Scan -> one function
    draws.py        Draw -> one function
    inlined.py      numbers drawn without calls
    polling.py      the number of points between two polls for signals
    rows.py tiles.py  Kernel -> Kernels with loops in another order

It may import ``ir``, ``machine`` and ``vecmath``, but not ``runtime``.
"""
