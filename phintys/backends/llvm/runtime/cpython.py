"""Field offsets and symbols of CPython and NumPy that native code uses.

Machine code contains none of these addresses: functions and type objects are symbols that the
linker resolves in each process.  Field offsets are part of the code, so they are checked once, at
the first compilation, against objects whose contents are known.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np

from phintys.backends.llvm.runtime.callable import (
    DATA_OFFSET,
    FAILED,
    MODE_OFFSET,
    RAISED,
    STRICT,
    VECTORCALL_OFFSET,
)
from phintys.routines.addresses import numpy_api

# fmt: off
#: Functions and data of CPython that native code refers to by their C names.
PYTHON_SYMBOLS = (
    "PyDict_New", "PyDict_SetItem", "PyErr_CheckSignals", "PyErr_Format", "PyErr_NoMemory",
    "PyErr_Occurred", "PyErr_SetString", "PyEval_RestoreThread", "PyEval_SaveThread",
    "PyExc_OverflowError", "PyExc_RuntimeError", "PyExc_TypeError", "PyFloat_AsDouble",
    "PyFloat_Type", "PyGILState_Ensure", "PyGILState_Release", "PyList_GetItem", "PyList_New",
    "PyList_SetItem", "PyLong_AsLongLongAndOverflow", "PyLong_AsVoidPtr",
    "PyLong_FromLongLong", "PyLong_Type", "PyMem_RawFree", "PyMem_RawMalloc",
    "PyObject_CallFunctionObjArgs", "PyObject_Vectorcall",
    "PyThread_acquire_lock_timed", "PyThread_allocate_lock", "PyThread_free_lock",
    "PyThread_get_thread_ident", "PyThread_release_lock", "PyThread_tss_get", "PyThread_tss_set",
    "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyTuple_Size", "PyTuple_Type",
    "PyType_IsSubtype", "Py_DecRef", "Py_IncRef", "_Py_FalseStruct", "_Py_NoneStruct",
    "_Py_TrueStruct",
)
# fmt: on

#: Entries of NumPy's API table.
NUMPY_SYMBOLS = {
    "PyArray_Type": 2,
    "PyGenericArrType_Type": 10,
    "PyDoubleArrType_Type": 31,
    "PyArray_FromAny": 69,
    "PyArray_Empty": 184,
}

#: ``PyArray_FromAny`` requirements for a copy that a slot can hold: C-contiguous, aligned, native
#: byte order, an exact ndarray.
COPY = 0x0001 | 0x0100 | 0x0200 | 0x0040 | 0x0020

#: Flags that the memory of a slot must have: C-contiguous and aligned.
LAYOUT = 0x0001 | 0x0100

#: The flag of arrays whose elements are aligned for their type.
ALIGNED = 0x0100

_HEAD = object.__basicsize__


class Offsets(NamedTuple):
    """Byte offsets of the fields that native code reads."""

    type: int = _HEAD - ctypes.sizeof(ctypes.c_void_p)
    data: int = _HEAD
    nd: int = _HEAD + 8
    dims: int = _HEAD + 16
    strides: int = _HEAD + 24
    descr: int = _HEAD + 40
    flags: int = _HEAD + 48
    type_num: int = _HEAD + 12


@cache
def offsets() -> Offsets:
    """The field offsets, checked against known arrays.

    Raises
    ------
    RuntimeError
        If this build of CPython or NumPy lays objects out differently.
    """
    table = Offsets()
    for array in (np.arange(6.0).reshape(2, 3), np.zeros((4, 5, 6), "int16").T):
        wrong = _differences(table, array)
        if wrong:
            raise RuntimeError(
                f"the llvm backend does not know the memory layout of NumPy {np.__version__} on "
                f"this Python: ndarray field(s) {', '.join(wrong)} are not where expected"
            )
    return table


def _differences(table: Offsets, array: np.ndarray) -> list[str]:
    """The names of the fields whose contents differ from the attributes of ``array``."""
    base, descr = id(array), id(array.dtype)

    def word(at: int, kind: type = ctypes.c_void_p) -> int | None:
        return kind.from_address(at).value

    ints = ctypes.c_int64 * array.ndim
    facts = {
        "type": word(base + table.type) == id(type(array)),
        "data": word(base + table.data) == array.ctypes.data,
        "nd": word(base + table.nd, ctypes.c_int32) == array.ndim,
        "descr": word(base + table.descr) == descr,
        "flags": word(base + table.flags, ctypes.c_int32) == array.flags.num,
        "type_num": word(descr + table.type_num, ctypes.c_int32) == array.dtype.num,
    }
    wrong = [name for name, right in facts.items() if not right]
    if not wrong:  # only then is it safe to dereference these pointers
        for name, known in (("dims", array.shape), ("strides", array.strides)):
            found = word(base + getattr(table, name))
            if not found or tuple(ints.from_address(found)) != known:
                wrong.append(name)
    return wrong


@cache
def symbols() -> dict[str, int]:
    """name -> address of everything in `PYTHON_SYMBOLS` and `NUMPY_SYMBOLS`."""
    found = {name: _address_of(name) for name in PYTHON_SYMBOLS}
    table = numpy_api()
    for name, index in NUMPY_SYMBOLS.items():
        found[name] = table[index]
    return found


def layout() -> dict[str, int]:
    """The values of the placeholders ``$name`` in ``runtime.ll``."""
    return {
        **offsets()._asdict(),
        "layout": LAYOUT,
        "aligned": ALIGNED,
        "copy": COPY,
        "strict": STRICT,
        "vectorcall": VECTORCALL_OFFSET,
        "block": DATA_OFFSET,
        "mode": MODE_OFFSET,
        "failed_status": FAILED,
        "raised_status": RAISED,
    }


def _address_of(name: str) -> int:
    symbol = ctypes.c_char.in_dll(ctypes.pythonapi, name)
    return ctypes.addressof(symbol)
