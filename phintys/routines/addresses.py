"""Addresses of C functions outside this package, for native code.

`address` says where a function is found: ``address("lapack", "dpotrf")``.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import sys
from functools import cache
from importlib.machinery import ExtensionFileLoader, PathFinder
from pathlib import Path
from typing import Any

import numpy as np

#: the position of ``_PyDataType_GetArrFuncs`` in NumPy's table of C functions
_GET_FUNCTIONS = 365
#: NumPy's functions of a dtype -> their positions; there are 33 others before, in each version
_SORTS = {"quicksort": 33, "stable": 35, "argquicksort": 36, "argstable": 38}

#: library -> the extension module of SciPy that exports its functions in capsules
MODULES = {
    "blas": "scipy.linalg.cython_blas",
    "lapack": "scipy.linalg.cython_lapack",
    "special": "scipy.special.cython_special",
}


@cache
def address(library: str, function: str) -> int:
    """The address of a function of one of the `MODULES`, or of NumPy: ``quicksort_float64``.

    Functions of ``special`` take and return doubles, and take one more int, which must be 0.

    Raises LookupError if there is no such function.
    """
    if library == "numpy":
        return _sort(*function.split("_"))
    if library == "special":
        return special(function)[0]
    exported: dict[str, Any] = _module(MODULES[library]).__pyx_capi__
    if function not in exported:
        raise LookupError(f"{MODULES[library]} has no {function!r}; install a newer SciPy.")
    return capsule_pointer(exported[function])


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


def numpy_api(size: int = 200) -> ctypes.Array[ctypes.c_size_t]:
    """The first addresses in NumPy's table of C functions."""
    from numpy._core._multiarray_umath import _ARRAY_API

    return (ctypes.c_size_t * size).from_address(capsule_pointer(_ARRAY_API))


def _sort(function: str, dtype: str) -> int:
    """NumPy's function that sorts memory, or positions, of a numeric dtype.

    It uses no Python object, and needs no GIL.
    """
    if np.__version__.split(".")[0] != "2":
        raise LookupError(f"It is not known where NumPy {np.__version__} has its functions.")
    get = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.py_object)
    table = get(numpy_api(_GET_FUNCTIONS + 1)[_GET_FUNCTIONS])(np.dtype(dtype))
    found = ctypes.c_size_t.from_address(table + 8 * _SORTS[function]).value
    if not found:
        raise LookupError(f"NumPy has no function {function} for {dtype}.")
    return found


def special(function: str) -> tuple[int, list[str]]:
    """The address of a function of ``cython_special`` for doubles, and the types of its arguments.

    Arguments of type int come after those of type double, and must be 0.  LookupError if there is
    no such function.
    """
    exported: dict[str, Any] = _module(MODULES["special"]).__pyx_capi__
    for variant in (function, *(f"__pyx_fuse_{k}{function}" for k in range(4))):
        if variant in exported:
            text = capsule_name(exported[variant]).decode()
            result, _, arguments = text.partition(" (")
            types = [a.split()[0] for a in arguments.rstrip(")").split(", ")]
            if result == "double" and "double" in types and {*types} <= {"double", "int"}:
                return capsule_pointer(exported[variant]), types
    raise LookupError(f"scipy.special.cython_special has no {function!r} for doubles.")


def _module(name: str) -> Any:
    """An extension module of SciPy; of BLAS and LAPACK without the package ``scipy.linalg``.

    The rest of that package takes ten times as long to import.  A later import of the package finds
    the same module.
    """
    found = importlib.util.find_spec("scipy")
    alone = name.startswith("scipy.linalg.") and name not in sys.modules
    if alone and found is not None:
        places = [str(Path(p) / "linalg") for p in found.submodule_search_locations or ()]
        spec = PathFinder.find_spec(name, places)
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            with contextlib.suppress(ImportError):
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    return importlib.import_module(name)
