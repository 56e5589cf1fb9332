"""Pausing Python's cyclic garbage collector while graphs are built and rewritten."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident

#: Fewer frozen objects are taken for the interpreter's: CPython 3.12 starts with 375 immortal
#: tuples among them, and `gc.freeze` adds more than 4,000 objects even if nothing is imported.
_IMMORTAL = 1000

#: The identifier of the thread that has disabled collection; empty if none has.
_pausing: list[int] = []


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """Disable garbage collection in a ``with`` block or a decorated function.

    Work on a graph allocates many objects, nearly all of which survive, and each collection would
    traverse the whole graph.  If modules have been imported in the block, the next collection does
    not traverse what they hold.
    """
    enabled, modules = gc.isenabled(), len(sys.modules)
    try:
        if enabled:
            _pausing.append(get_ident())
            gc.disable()
        yield
    finally:
        if enabled:
            if len(sys.modules) != modules:
                _age()
            gc.enable()
            _pausing.clear()


def collect_young() -> None:
    """Collect the objects made since `collection_paused`, which this thread is in, has begun.

    Nodes and their results refer to each other, so a graph that is dropped is not freed without it.
    """
    if _pausing and _pausing[0] == get_ident():
        gc.collect(0)


def _age() -> None:
    """Count all objects as old, so that only a collection of all objects traverses them.

    Objects that the user has frozen stay so; fewer than `_IMMORTAL` are thawed.
    """
    if hasattr(gc, "freeze") and gc.get_freeze_count() < _IMMORTAL:
        gc.freeze()
        gc.unfreeze()


def _resume_in_child() -> None:
    """Enable collection in a forked child if another thread of the parent had disabled it.

    That thread does not exist in the child, so it cannot do so itself.
    """
    if _pausing and get_ident() not in _pausing:
        gc.enable()
        _pausing.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
