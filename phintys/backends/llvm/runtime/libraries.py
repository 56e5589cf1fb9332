"""Libraries of routines that every function may call, written in IR.

``runtime.ll`` makes and checks Python objects; ``blas.ll`` calls the BLAS functions that SciPy
exports.  Each is compiled at its first use and kept in the cache on disk under its own name.  They
are not optimised: that takes longer than the rest of compiling a small function, and makes no call
measurably faster.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from phintys.backends.llvm import costs
from phintys.backends.llvm.machine.jit import Library, compile_ir
from phintys.backends.llvm.machine.target import PLAIN, Target
from phintys.backends.llvm.runtime import cells, cpython, interrupts
from phintys.backends.once import once
from phintys.routines.addresses import address

#: dtype -> its type in IR, the prefix of its BLAS functions
BLAS_TYPES = {"float32": ("float", "s"), "float64": ("double", "d")}
_BLAS = ("gemm", "gemv", "ger", "dot")


def library(name: str, target: Target) -> Library:
    """The library with a routine: ``phintys_sgemm``, ``phintys_copy``."""
    function = name.removeprefix("phintys_")
    for dtype, (_, prefix) in BLAS_TYPES.items():
        if function[:1] == prefix and function[1:] in (*_BLAS, "gemms"):
            return blas(dtype, target)
    return runtime(target)


@once
def runtime(target: Target) -> Library:
    """The library made of ``runtime.ll``."""
    cpython.offsets()  # code from the cache relies on them too
    _keep_freed_memory()
    outside = cpython.symbols() | cells.strided(target).symbols("strided")
    outside["blas_threads"] = ctypes.addressof(_blas_threads())
    outside |= interrupts.words()
    return compile_ir(_runtime_text, outside.get, name="runtime", level=PLAIN, target=target)


def _runtime_text() -> str:
    layout = cpython.layout()
    return interrupts.clock() + _filled("runtime.ll", period=costs.POLL_MILLISECONDS, **layout)


@once
def _blas_threads() -> ctypes.c_int64:
    """An estimate of the number of threads that BLAS uses for a large product."""
    names = [f"{name}_NUM_THREADS" for name in ("OPENBLAS", "MKL", "BLIS", "OMP")]
    given = (os.environ[name] for name in names if os.environ.get(name, "").isdigit())
    return ctypes.c_int64(int(next(given, os.cpu_count() or 1)))


def _keep_freed_memory() -> None:
    """Make the C library keep some tens of megabytes of freed memory for the next call.

    glibc returns memory to the system when twice the size of the largest block that was ever
    freed is free, and the next call takes a page fault for every page again: with two arrays of
    8 MB, ten times the computing time.  So one large block is freed once; its pages are never
    touched, so it costs nothing.
    """
    api = ctypes.pythonapi
    allocate, free = api.PyMem_RawMalloc, api.PyMem_RawFree
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    free(allocate(costs.FREED_BYTES))


@once
def blas(dtype: str, target: Target) -> Library:
    """The library made of ``blas.ll`` for a dtype; imports SciPy's BLAS."""
    kind, prefix = BLAS_TYPES[dtype]

    def text() -> str:
        numbers = {"largest": costs.PRODUCT_COLUMNS, "long": costs.POLL_PRODUCT}
        numbers |= {"turn": costs.BATCH_TURN, "lanes": target.lanes(np.dtype(dtype).itemsize)}
        numbers["lanes2"] = 2 * numbers["lanes"]
        numbers |= {"gemm": costs.LONG_GEMM, "gemv": costs.LONG_GEMV, "block": costs.GEMM_BLOCK}
        return _filled("blas.ll", T=kind, p=prefix, **numbers)

    functions = {f"blas_{prefix}{name}": address("blas", prefix + name) for name in _BLAS}
    for name in ("product", "short", "narrow", "dots"):
        functions |= cells.product(name, dtype, target).symbols(prefix + name)
    for name in ("phintys_made", "phintys_poll"):
        functions[name] = runtime(target).address(name)
    return compile_ir(text, functions.get, name=f"blas.{dtype}", level=PLAIN, target=target)


def _filled(file: str, **values: Any) -> str:
    return Template((Path(__file__).parent / file).read_text()).substitute(values)
