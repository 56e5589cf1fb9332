"""The lock of this package, `making`, and the turns of calls that are repeated.

Graphs are rewritten and functions are made under `making`.  It protects the state that compilations
share: rewriters, the switch of the garbage collector, code in memory.  Caches have a lock of their
own, see `memo`.  Calling a function takes no lock, unless another call has replaced a value that it
updates: it is repeated in its turn, see `Turns`.

Importing a module of this package must not acquire `making`: a thread that holds it may wait for
Python's import lock, which the importing thread holds, and both would wait for ever.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Generator, Set
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Held while a graph is rewritten or a function is made.  Reentrant.
making = threading.RLock()

#: how many seconds a call waits for another one, at most
PATIENCE = 1.0


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate ``function`` to hold `making` while it runs, so one thread at a time runs it."""

    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with making:
            return function(*args, **kwargs)

    return locked


class Turns:
    """Turns of calls that are repeated, because another call replaced a value that they update.

    Calls that update one of the same cells wait before they start, but at most `PATIENCE` seconds:
    the repeated call may itself wait for a call in another thread, which an op of it has started.

    >>> turns = Turns()
    >>> with turns.turn({1}):
    ...     turns.wait({2})
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the calls that are repeated: after a fork their threads do not exist."""
        self._lock = threading.RLock()
        self._cells: set[int] = set()

    def wait(self, cells: Set[int]) -> None:
        """Wait while a call that updates one of ``cells`` is repeated."""
        if self._cells and not self._cells.isdisjoint(cells):
            lock = self._lock
            if lock.acquire(timeout=PATIENCE):
                lock.release()

    @contextmanager
    def turn(self, cells: Set[int]) -> Generator[None]:
        """A context in which other calls that update one of ``cells`` wait."""
        lock = self._lock
        held = lock.acquire(timeout=PATIENCE)
        self._cells |= cells
        try:
            yield
        finally:
            self._cells -= cells
            if held:
                lock.release()


#: the turns of all functions
turns = Turns()


if hasattr(os, "register_at_fork"):
    # Holding the lock during fork keeps half-finished state, ours and LLVM's, out of the child.
    os.register_at_fork(
        before=making.acquire, after_in_parent=making.release, after_in_child=making.release
    )
    os.register_at_fork(after_in_child=turns.reset)
