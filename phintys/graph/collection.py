"""Pausing Python's cyclic garbage collector while graphs are built and rewritten."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident

#: The identifier of the thread that has disabled collection; empty if none has.
_pausing: list[int] = []


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """Disable garbage collection in a ``with`` block or a decorated function.

    Work on a graph allocates many objects, nearly all of which survive, and each collection would
    traverse the whole graph.
    """
    enabled = gc.isenabled()
    try:
        if enabled:
            _pausing.append(get_ident())
            gc.disable()
        yield
    finally:
        if enabled:
            gc.enable()
            _pausing.clear()


def _resume_in_child() -> None:
    """Enable collection in a forked child if another thread of the parent had disabled it.

    That thread does not exist in the child, so it cannot do so itself.
    """
    if _pausing and get_ident() not in _pausing:
        gc.enable()
        _pausing.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
