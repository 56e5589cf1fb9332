"""Addresses of the C functions that SciPy exports: BLAS and special functions for doubles."""

from __future__ import annotations

import ctypes
from functools import cache


def capsule_pointer(capsule: object) -> int:
    """The address in a capsule of Cython's."""
    name = capsule_name(capsule)
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return get(capsule, name) or 0


def capsule_name(capsule: object) -> bytes:
    """The C signature that Cython writes into a capsule's name."""
    get = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    return get(capsule)


@cache
def blas(name: str) -> int:
    """The address of a BLAS function, ``dgemm`` say."""
    from scipy.linalg import cython_blas

    return capsule_pointer(cython_blas.__pyx_capi__[name])


@cache
def special(name: str) -> int:
    """The address of a function of ``scipy.special.cython_special`` for doubles.

    LookupError if there is none.  Cython's functions take a further int, which is 0.
    """
    from scipy.special import cython_special

    exported = cython_special.__pyx_capi__
    for candidate in (name, *(f"__pyx_fuse_{k}{name}" for k in range(4))):
        if candidate in exported:
            text = capsule_name(exported[candidate]).decode()
            result, _, arguments = text.partition(" (")
            kinds = {a.split()[0] for a in arguments.rstrip(")").split(", ")}
            if result == "double" and kinds <= {"double", "int"}:
                return capsule_pointer(exported[candidate])
    raise LookupError(f"scipy.special.cython_special has no {name!r} for doubles.")
