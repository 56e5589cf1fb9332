"""The locks of this package: `making` and `repeating`.

Graphs are rewritten and functions are made under `making`.  It protects the state that compilations
share: rewriters, the switch of the garbage collector, code in memory.  Caches have a lock of their
own, see `memo`.  Calling a function takes no lock, unless another call has replaced a value that it
updates: it is repeated in its `turn` of `repeating`.

Importing a module of this package must not acquire `making`: a thread that holds it may wait for
Python's import lock, which the importing thread holds, and both would wait for ever.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Held while a graph is rewritten or a function is made.  Reentrant.
making = threading.RLock()

#: Held by a call that is repeated; calls with updates do not start meanwhile.  Reentrant.
repeating = threading.RLock()

#: how many seconds a call waits for its `turn`, at most
PATIENCE = 1.0


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate ``function`` to hold `making` while it runs, so one thread at a time runs it."""

    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with making:
            return function(*args, **kwargs)

    return locked


@contextmanager
def turn(lock: threading.RLock) -> Generator[None]:
    """A context in which this thread holds ``lock``, unless others keep it for long.

    It gives calls their turns, and nothing depends on it: the call that holds the lock may wait for
    a call in another thread, which an op of it has started.

    >>> with turn(repeating):
    ...     pass
    """
    held = lock.acquire(timeout=PATIENCE)
    try:
        yield
    finally:
        if held:
            lock.release()


if hasattr(os, "register_at_fork"):
    # Holding the locks during fork keeps half-finished state, ours and LLVM's, out of the child.
    for lock in (making, repeating):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
