"""Addresses of the mathematical functions that native code calls.

Found by name, and only when code that needs them is linked: ``phintys.libm.asin``,
``phintys.scipy.gammaln``, and the vector functions of `vecmath`, ``phintys.exp.f64.v8``.  Each of
these is compiled once for all functions that users make, and stays.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import sys
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from phintys.backends.capsules import capsule_pointer

if TYPE_CHECKING:
    from phintys.backends.llvm.jit import Library


_VECTOR = re.compile(r"phintys\.(\w+)\.(f32|f64)\.v(\d+)")


def resolve(name: str) -> int | None:
    """The address of a function of ours by its symbol, None for other names.

    Raises
    ------
    LookupError
        If the library has no such function.
    """
    vector = _VECTOR.fullmatch(name)
    if vector:
        function, kind, width = vector.groups()
        return _vector(function, kind.replace("f", "float"), int(width)).address(name)
    head, _, rest = name.partition(".")
    library, _, function = rest.partition(".")
    find = _LIBRARIES.get(library)
    return find(function) if head == "phintys" and find else None


@cache
def _vector(function: str, dtype: str, width: int) -> Library:
    from phintys.backends.llvm import vecmath
    from phintys.backends.llvm.jit import compile_ir

    text = vecmath.define(function, dtype, width).replace("define internal", "define", 1)
    declares = sorted(vecmath.requirements(function, dtype, width))
    return compile_ir("\n".join([*declares, text]), [vecmath.symbol(function, dtype, width)])


def _libm(function: str) -> int:
    try:
        return ctypes.cast(getattr(_libm_library(), function), ctypes.c_void_p).value or 0
    except AttributeError as error:
        raise LookupError(f"libm has no function {function!r}") from error


@cache
def _libm_library() -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    return ctypes.CDLL(ctypes.util.find_library("m"))


def _scipy(function: str) -> int:
    """The version for doubles of a function of ``scipy.special.cython_special``."""
    if function == "zeta":
        return _zeta().address("phintys.zeta")
    from scipy.special import cython_special

    capsules = cython_special.__pyx_capi__
    for name in (function, *_fused(function)):
        if name in capsules and set(signature(capsules[name])) <= {"double", "int"}:
            return capsule_pointer(capsules[name])
    raise LookupError(f"scipy.special.cython_special has no {function!r} for doubles")


@cache
def _zeta() -> Library:
    from phintys.backends.llvm.jit import compile_ir

    text = resources.files("phintys.backends.llvm").joinpath("zeta.ll").read_text()
    return compile_ir(text, ["phintys.zeta"])


def _fused(function: str) -> list[str]:
    """Names of the variants that Cython makes of a function for several types."""
    return [f"__pyx_fuse_{number}{function}" for number in range(4)]


def signature(capsule: object) -> list[str]:
    """The C types in a capsule of Cython's: result, then arguments."""
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    result, _, arguments = get_name(capsule).decode().partition(" (")
    arguments = arguments.rstrip(")").replace("int __pyx_skip_dispatch", "int")
    return [result, *arguments.split(", ")]


_LIBRARIES = {"libm": _libm, "scipy": _scipy}
