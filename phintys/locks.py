"""The lock of what threads share while graphs are rewritten and functions are made.

Rewriters, settings of garbage collection, code in memory: one thread at a time makes a function.
Calling functions needs no lock.  (What is remembered by value has one of its own, see `memo`.)

Modules are imported while a function is made.  So importing a module of this package must not take
`making`: a thread that imports would wait for one that waits for the import.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Held by the thread that makes something.  A thread may take it again.
making = threading.RLock()


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which only one thread at a time is in: it holds `making` meanwhile."""

    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with making:
            return function(*args, **kwargs)

    return locked


if hasattr(os, "register_at_fork"):
    # a child process is made while nothing is half done, ours or LLVM's, and has the lock to itself
    os.register_at_fork(
        before=making.acquire, after_in_parent=making.release, after_in_child=making.release
    )
