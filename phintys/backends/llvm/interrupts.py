"""Ctrl-C, and other signals, while machine code runs.

Python notes a signal and handles it when its main thread next runs Python.  Long native loops go in
blocks, and between blocks the code calls ``phintys_poll`` of ``runtime.ll``, which lets Python
handle what it has noted.  If a handler raises, the loop ends, the kernel returns a status that is
not 0, and the routine leaves as after any failed step: memory is freed, nothing has changed.

What a block is depends on lengths and on the code of the loop alone, and sums go on from block to
block where they were, so that results have the same bits with blocks of any size.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterable

from phintys.backends.once import once
from phintys.lowering.costs import EXPENSIVE, nanoseconds
from phintys.lowering.program import Branch, Inst, Kernel, Loop, Program, Step

#: About how many nanoseconds of work, rather too many than too few, a block is.  Loops with less
#: do not ask at all, so this times the number of a Program's steps is the longest wait.
BLOCK = 2**20

#: Kernels that go through memory have no blocks if a point takes less than so many nanoseconds.
DENSE = 32

#: Functions ask after products with at least so many multiply-adds.
LONG_PRODUCT = 2**22

#: Products of matrices, and of a matrix and a vector, with more multiply-adds go in blocks.
LONG_GEMM, LONG_GEMV = 2**34, 2**29

#: A `Loop` asks once in about so many steps of its body.
LOOP_STEPS = 64

#: A question takes the lock of the interpreter if the last one is so many milliseconds ago.
PERIOD = 200

#: The call that lets Python handle signals.  It gives an i64, not 0 if a handler raised.  It leaves
#: the registers of integers alone, so that loops keep them.
POLL = "call preserve_mostcc i64 @phintys_poll()"
DECLARE = "declare preserve_mostcc i64 @phintys_poll() cold"

#: How often a branch is taken: once in a million times.
RARE = "!0"
DEFINE_RARE = f'{RARE} = !{{!"branch_weights", i32 1, i32 1000000}}'


def points(body: Iterable[Inst]) -> int:
    """How many points of a kernel are a block: a power of two."""
    price = sum(map(nanoseconds, body))
    return 1 << max(4, (BLOCK // max(price, 1)).bit_length() - 1)


def is_cheap(body: Iterable[Inst], most: int = EXPENSIVE) -> bool:
    """Whether a point of a kernel takes less than ``most`` nanoseconds; if not given, than exp."""
    return sum(map(nanoseconds, body)) < most


def is_one_block(kernel: Kernel) -> bool:
    """Whether a kernel does without blocks, which its code is larger with.

    That is if what it does for a point is cheap, and some operand has an element for each point: so
    many points that it takes seconds are gigabytes.
    """
    operands = (o for o in kernel.operands if not o.extra)
    dense = any(all(stride.value != 0 for stride in o.strides) for o in operands)
    return dense and is_cheap(kernel.body, DENSE)


def turns(program: Program) -> int:
    """In how many turns of a loop over a Program to ask once: a power of two."""
    steps = sum(map(_steps, program.steps))
    return 1 << max(0, (LOOP_STEPS // max(1, steps)).bit_length() - 1)


def _steps(step: Step) -> int:
    """As how many steps a step counts; a Loop has so many turns that it does not ask itself."""
    if isinstance(step, Loop):
        return LOOP_STEPS
    if isinstance(step, Branch):  # bounded: as deep as Programs in each other
        return sum(map(_steps, (*step.then.steps, *step.orelse.steps)))
    return 1


# ---------------------------------------------------------------------- what the runtime reads


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
