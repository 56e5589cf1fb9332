"""Python's garbage collection, while graphs are made and changed."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """No garbage collection meanwhile.

    Work on a graph makes many objects, nearly all of which stay; each collection would look through
    the whole graph once more.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
