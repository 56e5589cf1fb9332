"""What tests of several folders need."""

from __future__ import annotations

import os
import sys

import pytest

from phintys.config import config
from phintys.graph.collection import collection_paused


@pytest.fixture(params=["auto", "llvm"], scope="module")
def each_loader(request):
    """For whole modules: tests run with each way of putting code into memory.

    Processes that they start do too.
    """
    flags = f"{os.environ.get('PHINTYS_FLAGS', '')},loader={request.param}"
    with pytest.MonkeyPatch.context() as patch, config.change_flags(loader=request.param):
        patch.setenv("PHINTYS_FLAGS", flags)
        yield request.param


@pytest.fixture
def lines_run():
    """How many lines of Python a task runs: work, measured the same on every machine."""

    def count(task, *args, **kwargs):
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            lines += 1
            return trace

        before = sys.gettrace()
        with collection_paused():  # finalizers of earlier tests are no work of this task
            sys.settrace(trace)
            try:
                task(*args, **kwargs)
            finally:
                sys.settrace(before)
        return lines

    return count
