"""Ctrl-C, and other signals, while machine code runs.

Python records a signal and handles it when its main thread next runs Python code.  Long native
loops are split into blocks, and between blocks the code calls ``phintys_poll`` of ``runtime.ll``,
which lets Python handle pending signals.  If a handler raises, the loop ends, the kernel returns a
status that is not 0, and the routine exits as after any failed step: memory is freed, and no shared
variable has changed.

The size of a block depends only on lengths and on the code of the loop, and accumulators keep their
values from block to block, so results are bitwise equal with blocks of any size.

This module defines the data that ``phintys_poll`` reads; the call of it is in ``ir/poll.py``, the
size of blocks in ``kernel/polling.py``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

from phintys.backends.once import once


class _Watch(ctypes.Structure):
    """The data of ``phintys_poll``.

    ``main``: the thread that handles signals; ``asked``: the time of its last poll that took the
    GIL, in milliseconds; ``key``: the key of thread-local storage where each thread that a kernel
    starts has the address of the word that stops it.
    """

    _fields_ = [
        ("main", ctypes.c_uint64),
        ("asked", ctypes.c_int64),
        ("key", ctypes.c_uint64 * 4),
    ]


_current = _Watch()


@once
def words() -> dict[str, int]:
    """Symbol in ``runtime.ll`` -> address, of the data that ``phintys_poll`` reads."""
    _current.main = threading.main_thread().ident or 0
    start = ctypes.addressof(_current)
    key = start + _Watch.key.offset
    if ctypes.pythonapi.PyThread_tss_create(ctypes.c_void_p(key)):
        raise MemoryError("There is no place for what belongs to a thread.")
    return {"watch": start, "watch_key": key}


def _in_child() -> None:
    _current.main = threading.get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def clock() -> str:
    """The text of the function ``milliseconds``, which reads the system's clock."""
    if sys.platform == "win32":
        return _WINDOWS
    return _POSIX.replace("CLOCK", str(time.CLOCK_MONOTONIC))


_POSIX = """
declare i32 @clock_gettime(i32, ptr)
define internal i64 @milliseconds() {
  %spec = alloca [2 x i64]
  %error = call i32 @clock_gettime(i32 CLOCK, ptr %spec)
  %seconds = load i64, ptr %spec
  %rest.at = getelementptr i64, ptr %spec, i64 1
  %rest = load i64, ptr %rest.at
  %a = mul i64 %seconds, 1000
  %b = udiv i64 %rest, 1000000
  %now = add i64 %a, %b
  ret i64 %now
}
"""

_WINDOWS = """
declare i64 @GetTickCount64()
define internal i64 @milliseconds() {
  %now = call i64 @GetTickCount64()
  ret i64 %now
}
"""
