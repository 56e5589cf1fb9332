"""Routines that are made at their first call."""

from __future__ import annotations

import ctypes

from phintys.backends.llvm.deferred import Deferred
from phintys.backends.llvm.jit import compile_ir

SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
LIBRARY = compile_ir("define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}")


def call(deferred: Deferred, x: int) -> int:
    """What machine code does."""
    address = ctypes.c_void_p.from_address(deferred.cell).value
    return int(SIGNATURE(address)(x))


def test_made_once():
    made = []

    def make() -> int:
        made.append(1)
        return LIBRARY.address("twice")

    deferred = Deferred(SIGNATURE, make)
    assert not made
    assert [call(deferred, x) for x in (1, 2, -3)] == [2, 4, -6]
    assert len(made) == 1
    assert ctypes.c_void_p.from_address(deferred.cell).value == LIBRARY.address("twice")


def test_instead():
    deferred = Deferred(
        SIGNATURE, lambda: LIBRARY.address("twice"), lambda x: -1 if x < 10 else None
    )
    assert [call(deferred, x) for x in (1, 9, 10, 1)] == [-1, -1, 20, 2]
