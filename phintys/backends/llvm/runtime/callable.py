"""The function object that is the native callable.

`NativeBase` is a heap type created through the C API: its instances hold, right after the object
header,

    the vectorcall pointer    address of the machine code
    the data pointer          address of the block of pointers that the code reads
    the mode                  an integer that the code reads

so that for ``f(x)`` the interpreter calls the machine code directly.  Classes derived from it in
Python add attributes, weak references and garbage collection.

>>> Function = make_native_class()
>>> f = Function()
>>> f.native_mode
0
>>> f(1)
Traceback (most recent call last):
    ...
TypeError: 'Function' object does not support vectorcall
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from phintys.backends.interpreter import require_main_interpreter
from phintys.backends.once import once
from phintys.errors import UnsupportedError

#: Offsets of the fields of an instance.
VECTORCALL_OFFSET = object.__basicsize__
DATA_OFFSET = VECTORCALL_OFFSET + 8
MODE_OFFSET = VECTORCALL_OFFSET + 16

#: Modes.  `CHECKED`: an argument that fails the fast test, and every object argument, goes through
#: the ``slow`` callback.  `TRUSTED`: objects are used as they are.  `STRICT`: the same, and an
#: argument that fails the test is an error instead of a call of ``slow``.
CHECKED, TRUSTED, STRICT = 0, 1, 2

#: What a bare routine (``routine/bare.py``) returns.
DONE, FAILED, MEMORY, LARGE, RAISED = 0, 1, 2, 3, -1

_HAVE_VECTORCALL = 1 << 11
_DEFAULT_FLAGS = 1 << 18
_BASETYPE = 1 << 10
# offset of tp_flags in a type object: after a PyVarObject header and 18 words
_TYPE_FLAGS_OFFSET = object.__basicsize__ + 8 + 18 * 8


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("pfunc", ctypes.c_void_p)]


class _Member(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


_TP_CALL, _TP_DOC, _TP_MEMBERS = 50, 56, 72  # slot numbers of the stable ABI
_T_LONGLONG, _T_PYSSIZET, _READONLY = 17, 19, 1

_members = (_Member * 3)(
    (b"__vectorcalloffset__", _T_PYSSIZET, VECTORCALL_OFFSET, _READONLY, None),
    (b"native_mode", _T_LONGLONG, MODE_OFFSET, 0, b"0 checked, 1 trusted, 2 strict."),
    (None, 0, 0, 0, None),
)

_DOC = ctypes.create_string_buffer(b"A function in machine code.")


def _check_layout() -> None:
    """Raise UnsupportedError where the memory layout of objects is unknown."""
    name, bits = sys.implementation.name, 8 * ctypes.sizeof(ctypes.c_void_p)
    if name != "cpython" or bits != 64 or sys.byteorder != "little":
        raise UnsupportedError(
            f"Compiled functions need 64-bit CPython on a little-endian machine; this is {bits}-bit"
            f' {name}, {sys.byteorder}-endian. Mode "FAST_COMPILE" works everywhere.'
        )


@once
def native_base() -> type:
    """The base class of native callables, `NativeBase`.

    Raises UnsupportedError where machine code cannot read the interpreter's objects or run safely.
    """
    require_main_interpreter()
    _check_layout()
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    slots = (_Slot * 4)(
        (_TP_CALL, call),
        (_TP_DOC, ctypes.addressof(_DOC)),
        (_TP_MEMBERS, ctypes.addressof(_members)),
        (0, None),
    )
    flags = _DEFAULT_FLAGS | _BASETYPE | _HAVE_VECTORCALL
    name = b"phintys.backends.llvm.runtime.callable.NativeBase"
    spec = _Spec(name, MODE_OFFSET + 8, 0, flags, slots)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(
        ("PyType_FromSpec", ctypes.pythonapi)
    )
    return make(ctypes.addressof(spec))


def make_native_class(*bases: type, name: str | None = None, **namespace: Any) -> type:
    """A class of native callables that also derives from ``bases``.

    It has attributes, weak references and garbage collection; instances are called at full
    speed.  `NativeBase` comes first among its bases, so a ``__call__`` of ``bases`` is not used.

    >>> class Named:
    ...     def __init__(self, name):
    ...         self.name = name
    >>> make_native_class(Named)("f").name
    'f'
    """
    name = name or (bases[0].__name__ if bases else "Function")
    cls = type(name, (native_base(), *bases), namespace)
    _enable_vectorcall(cls)
    return cls


def _enable_vectorcall(cls: type) -> None:
    """Set the vectorcall flag, which classes made in Python do not inherit before Python 3.12.

    Without it calls still work, through ``tp_call`` and a tuple of arguments.
    """
    flags = ctypes.c_ulong.from_address(id(cls) + _TYPE_FLAGS_OFFSET)
    known = flags.value == cls.__flags__
    if known and not cls.__flags__ & _HAVE_VECTORCALL:
        flags.value |= _HAVE_VECTORCALL


class Block:
    """The pointers that machine code reads, with references to the objects they point to.

    Shared by every function object bound to it; read-only after construction.
    """

    __slots__ = ("_kept", "_words", "address")

    def __init__(self, words: list[int], kept: tuple[Any, ...]) -> None:
        self._words = (ctypes.c_size_t * max(1, len(words)))(*words)
        self._kept = kept
        self.address = ctypes.addressof(self._words)


def bind_code(instance: Any, address: int, block: Block, mode: int = CHECKED) -> None:
    """Bind ``instance``, of a native class, to the code at ``address`` with ``block``."""
    base = id(instance)
    instance._native_block = block
    ctypes.c_size_t.from_address(base + DATA_OFFSET).value = block.address
    ctypes.c_size_t.from_address(base + VECTORCALL_OFFSET).value = address
    instance.native_mode = mode
