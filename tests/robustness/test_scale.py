"""Deep graphs, and memory that does not grow."""

from __future__ import annotations

import sys

import deep
import memory
import pytest


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_a_deep_chain_passes_every_stage(mode):
    assert sys.getrecursionlimit() <= 1000
    stages = deep.run(5000 if mode == "FAST_RUN" else 10_000, mode)
    assert list(stages.seconds)[-1] == "free"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_dropped_functions_leave_little_behind(mode):
    assert memory.growth_by_functions(150, mode) < 150 * 0.02 + 1  # 20 MB for 1,000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_calls_leave_nothing_behind(mode):
    assert memory.growth_by_calls(10_000, mode) < 1.0
