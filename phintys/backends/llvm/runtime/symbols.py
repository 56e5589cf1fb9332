"""Symbol resolution for native code.

Symbols are resolved by name when code that refers to them is loaded: ``phintys.libm.asin``,
``phintys.special.gammaln``, ``phintys.lapack.dpotrf``, ``phintys.random.random_normal``, what
`streams` knows of NumPy, ``phintys.inlined.random_normal``, the vector functions of `vecmath`,
``phintys.exp.f64.v8``, routines, ``phintys.routine.cholesky.float64``, the functions of
`libraries`, ``phintys_copy``, and symbols that CPython and NumPy export.  Code of this package is
compiled once per process for all compiled functions, and never freed.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

from phintys import bitgen
from phintys.backends.llvm.machine import process
from phintys.backends.llvm.machine.jit import Library, Resolver, compile_ir
from phintys.backends.llvm.machine.target import TRANSFORMED, Target
from phintys.backends.llvm.runtime import cpython, libraries
from phintys.backends.once import once
from phintys.routines import ROUTINES
from phintys.routines.addresses import MODULES, address

_VECTOR = re.compile(r"phintys\.(\w+)\.(f32|f64)\.v(\d+)")


def resolver(target: Target) -> Resolver:
    """The resolver of symbols for code of a target, see `resolve`."""
    return lambda name: resolve(name, target)


def resolve(name: str, target: Target) -> int | None:
    """The address of a function of this package, CPython or NumPy; None for other names.

    Raises
    ------
    LookupError
        If the library has no such function.
    """
    vector = _VECTOR.fullmatch(name)
    if vector:
        function, kind, width = vector.groups()
        dtype = kind.replace("f", "float")
        return _vector(name, function, dtype, int(width), target).address(name)
    if name.startswith("phintys_"):
        return libraries.library(name, target).address(name)
    head, _, rest = name.partition(".")
    where, _, function = rest.partition(".")
    if head == "phintys" and where == "libm":
        return _libm(function)
    if head == "phintys" and (where in MODULES or where == "numpy"):
        return _outside(where, function, target)
    if head == "phintys" and where == "random":
        return bitgen.routine(function)
    if head == "phintys" and where in ("inlined", "ziggurat"):
        from phintys.backends.llvm.runtime import streams

        return streams.guard(function) if where == "inlined" else streams.table(function)
    if head == "phintys" and where == "routine":
        routine, dtype = function.split(".")
        return _routine(name, routine, dtype, target).address(name)
    return cpython.symbols().get(name)


@once
def _vector(name: str, function: str, dtype: str, width: int, target: Target) -> Library:
    def text() -> str:
        from phintys.backends.llvm import vecmath  # cached code does not need it

        body = vecmath.define(function, dtype, width).replace("define internal", "define", 1)
        return "\n".join([*sorted(vecmath.requirements(function, dtype, width)), body])

    return compile_ir(text, name=name, target=target)


def _libm(function: str) -> int:
    if sys.platform != "win32" and (address := process.address_of(function)):
        return address  # Python is linked with libm; finding the file would start a process
    try:
        return ctypes.cast(getattr(_libm_library(), function), ctypes.c_void_p).value or 0
    except AttributeError as error:
        raise LookupError(f"libm has no function {function!r}") from error


@once
def _libm_library() -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    from ctypes.util import find_library

    return ctypes.CDLL(find_library("m"))


def _outside(library: str, function: str, target: Target) -> int:
    """A function of SciPy; ``zeta``, which ``cython_special`` lacks, is compiled here."""
    if (library, function) == ("special", "zeta"):
        return _zeta(target).address("phintys.zeta")
    return address(library, function)


@once
def _routine(name: str, routine: str, dtype: str, target: Target) -> Library:
    def text() -> str:
        from phintys.backends.llvm.runtime.routines import routine_text  # as above

        return routine_text(found, dtype, target)

    found = ROUTINES[routine]
    known = f"routine.{routine}.{dtype}" if found.is_ours else None
    return compile_ir(
        text,
        resolver(target),
        name=known,
        level=TRANSFORMED,
        target=target,
    )


@once
def _zeta(target: Target) -> Library:
    return compile_ir((Path(__file__).parent / "zeta.ll").read_text, name="zeta", target=target)
