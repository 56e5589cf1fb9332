"""What tests of several folders need."""

from __future__ import annotations

import sys

import pytest

from phintys.graph.collection import collection_paused


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
