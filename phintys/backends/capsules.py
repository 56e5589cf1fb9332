"""Addresses of the C functions that SciPy exports: BLAS and special functions for doubles."""

from __future__ import annotations

import ctypes
from functools import cache


def capsule_pointer(capsule: object) -> int:
    """The address in a capsule made by Cython."""
    name = capsule_name(capsule)
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return get(capsule, name) or 0


def capsule_name(capsule: object) -> bytes:
    """The name of a capsule; Cython stores the C signature there."""
    get = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    return get(capsule)


@cache
def blas(name: str) -> int:
    """The address of a BLAS function such as ``dgemm``."""
    from scipy.linalg import cython_blas

    return capsule_pointer(cython_blas.__pyx_capi__[name])


@cache
def special(name: str) -> int:
    """The address of a function of ``scipy.special.cython_special`` for doubles.

    The function takes one more argument, an int, which must be 0.

    Raises LookupError if there is no such function.
    """
    from scipy.special import cython_special

    exported = cython_special.__pyx_capi__
    for candidate in (name, *(f"__pyx_fuse_{k}{name}" for k in range(4))):
        if candidate in exported:
            text = capsule_name(exported[candidate]).decode()
            result, _, arguments = text.partition(" (")
            types = {a.split()[0] for a in arguments.rstrip(")").split(", ")}
            if result == "double" and types <= {"double", "int"}:
                return capsule_pointer(exported[candidate])
    raise LookupError(f"scipy.special.cython_special has no {name!r} for doubles.")
