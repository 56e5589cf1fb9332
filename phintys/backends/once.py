"""What is made once in a process and kept: libraries whose addresses are handed out.

`functools.cache` runs the function twice when two threads miss at once, and keeps one of the two
results.  Where the result owns memory that machine code refers to, the other one must not go.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# One lock for all functions, so that those that call each other cannot wait for each other.
_lock = threading.RLock()


def once(make: Callable[P, R]) -> Callable[P, R]:
    """A function that calls ``make`` once for the same arguments and keeps what it returns.

    Threads that miss at the same time wait for the first of them.  If ``make`` raises, nothing is
    kept, and the next call tries again.

    >>> @once
    ... def answer(x):
    ...     print("made")
    ...     return [x]
    >>> answer(1) is answer(1)
    made
    True
    """
    made: dict[object, R] = {}

    @functools.wraps(make)
    def get(*args: P.args, **kwargs: P.kwargs) -> R:
        key = (args, *sorted(kwargs.items())) if kwargs else args
        if key not in made:
            with _lock:
                if key not in made:
                    made[key] = make(*args, **kwargs)
        return made[key]

    return get


def _after_fork() -> None:
    """A new lock in a child process: the thread that held the old one is not there."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
