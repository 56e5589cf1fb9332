"""Addresses of symbols in the process: in the C library and other shared libraries."""

from __future__ import annotations

import ctypes
import sys

from phintys.backends.once import once


def address_of(name: str) -> int:
    """The address of a symbol of the C library or of another library in the process; 0 if none."""
    if sys.platform == "win32":
        import llvmlite.binding as llvm

        return llvm.address_of_symbol(name) or 0
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(_process(), name))
    except ValueError:
        return 0


@once
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)
