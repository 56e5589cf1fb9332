"""Run-time support that all routines share.

    callable.py    the function object that is the native callable
    cpython.py     field offsets and symbols of CPython and NumPy
    interrupts.py  signals
    cells.py       functions that are compiled when first needed
    strided.py     strided.ll: arguments in another memory layout
    products.py    products with few columns
    libraries.py   runtime.ll and blas.ll: routines that every function may call
    streams.py     what native code must know of NumPy to draw without calls
    symbols.py     symbol resolution; zeta.ll

It may import ``ir``, ``machine`` and ``vecmath``.
"""
