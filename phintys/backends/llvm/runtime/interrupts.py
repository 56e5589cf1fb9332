"""Ctrl-C, and other signals, while machine code runs.

Python notes a signal and handles it when its main thread next runs Python.  Long native loops go in
blocks, and between blocks the code calls ``phintys_poll`` of ``runtime.ll``, which lets Python
handle what it has noted.  If a handler raises, the loop ends, the kernel returns a status that is
not 0, and the routine leaves as after any failed step: memory is freed, nothing has changed.

What a block is depends on lengths and on the code of the loop alone, and sums go on from block to
block where they were, so that results have the same bits with blocks of any size.

Here is what ``phintys_poll`` reads; the call of it is in ``ir/poll.py``, the size of blocks in
``kernel/polling.py``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

from phintys.backends.once import once


class _Watch(ctypes.Structure):
    """``main``: the thread that handles signals; ``asked``: when it was last let, in milliseconds;
    ``key``: under which each thread that a kernel makes has the address of the word that stops it.
    """

    _fields_ = [
        ("main", ctypes.c_uint64),
        ("asked", ctypes.c_int64),
        ("key", ctypes.c_uint64 * 4),
    ]


_current = _Watch()


@once
def words() -> dict[str, int]:
    """Where ``phintys_poll`` finds what it must know, by the names of ``runtime.ll``."""
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
    """The text of ``milliseconds``, which reads the clock of the system."""
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
