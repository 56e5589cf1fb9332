"""What stands beside the routines while they run, the same for all Programs.

    callable.py    the function object that is the native callable
    cpython.py     where CPython and NumPy keep what native code reads
    interrupts.py  signals
    cells.py       functions whose code is made when it is first needed
    strided.py     strided.ll: arguments in another memory layout
    products.py    products with few columns
    libraries.py   runtime.ll and blas.ll: routines that every function may call
    symbols.py     addresses of all that code refers to; zeta.ll

It may import ``ir``, ``machine`` and ``vecmath``.
"""
