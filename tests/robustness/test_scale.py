"""Deep graphs, and memory that does not grow."""

from __future__ import annotations

import sys

import deep
import memory
import pytest
from tiers import few, rest


@pytest.mark.parametrize(
    ("mode", "depth"),
    [
        ("FAST_RUN", 2000),
        pytest.param("FAST_RUN", 5000, marks=rest),
        pytest.param("FAST_COMPILE", 10_000, marks=rest),
    ],
)
def test_a_deep_chain_passes_every_stage(mode, depth):
    assert sys.getrecursionlimit() <= 1000
    stages = deep.run(depth, mode)
    assert list(stages.seconds)[-1] == "free"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("mode", few(["FAST_RUN", "FAST_COMPILE"], "FAST_COMPILE"))
def test_dropped_functions_leave_little_behind(mode):
    assert memory.growth_by_functions(150, mode) < 150 * 0.02 + 1  # 20 MB for 1,000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("mode", few(["FAST_RUN", "FAST_COMPILE"], "FAST_RUN"))
def test_calls_leave_nothing_behind(mode):
    assert memory.growth_by_calls(10_000, mode) < 1.0
