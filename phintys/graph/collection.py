"""Python's garbage collection, while graphs are made and changed."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident

#: The thread that has switched collection off, as long as it is.
_pausing: list[int] = []


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """No garbage collection meanwhile.

    Work on a graph makes many objects, nearly all of which stay; each collection would look through
    the whole graph once more.
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
    """Switch collection on in a child process if a thread of the parent paused it."""
    if _pausing and get_ident() not in _pausing:
        gc.enable()
        _pausing.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
