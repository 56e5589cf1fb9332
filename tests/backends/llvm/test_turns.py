"""How many iterations of a loop run between two polls for signals."""

from __future__ import annotations

import re

import phintys
import phintys.tensor as pt
from phintys.backends.llvm import costs
from phintys.backends.llvm.routine.entry import emit_entry


def turns_between_polls(start: pt.TensorVariable) -> int:
    """The number for a loop that doubles a state."""
    count = pt.lscalar("count")
    states = phintys.scan(
        lambda x: x * 2.0, outputs_info=[start], n_steps=count, return_updates=False
    )
    f = phintys.function([start, count], states[-1])
    before, _, _ = emit_entry(f.program).ir.partition("@phintys_poll")
    return int(re.findall(r"and i64 %v\.\d+, (\d+)", before)[-1]) + 1


def test_cheap_iterations_of_known_lengths_are_counted_by_their_time() -> None:
    few = turns_between_polls(pt.dscalar("x"))
    many = turns_between_polls(pt.tensor("x", dtype="float64", shape=(1000,)))
    assert 2**12 < few < costs.POLL_NANOSECONDS
    assert costs.POLL_STEPS <= many < few / 100


def test_iterations_of_unknown_lengths_are_counted_by_their_steps() -> None:
    assert 1 <= turns_between_polls(pt.dvector("x")) <= costs.POLL_STEPS
