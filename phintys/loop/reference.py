"""What a loop computes: a Python loop over its inner graph, the reference for every backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from phintys.errors import ShapeError
from phintys.loop.arguments import Group, groups
from phintys.loop.collected import different_rows
from phintys.loop.info import ScanInfo

Step = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass
class Buffer:
    """An array of rows that steps read and write.

    Step ``t`` reads the rows ``t + offset`` for each offset in ``reads``, and writes those for each
    offset in ``writes``, modulo the number of rows.  ``first`` is the number of rows that are there
    before step 0.
    """

    name: Callable[[], str]
    array: np.ndarray | None
    length: int
    first: int = 0
    reads: Sequence[int] = ()
    writes: Sequence[int] = ()
    whole: bool = False  # whether the result has all rows, in their places

    def read(self, t: int) -> list[np.ndarray]:
        """What step ``t`` gets; copies, since it may overwrite the rows."""
        if self.array is None:
            return []
        return [self.array[(t + k) % self.length, ...].copy() for k in self.reads]

    def write(self, t: int, rows: Sequence[np.ndarray]) -> None:
        """Store what step ``t`` has computed."""
        if self.array is None:
            self.array = np.empty((self.length, *rows[0].shape), rows[0].dtype)
        for k, row in zip(self.writes, rows):
            if row.shape != self.array.shape[1:]:
                before = self.array.shape[1:]
                raise ShapeError(different_rows(self.name(), t, row.shape, before))
            self.array[(t + k) % self.length] = row

    def result(self, executed: int) -> np.ndarray | None:
        """The rows after the last step, the newest one last; None if there are none yet."""
        written = self.first + executed
        if self.array is None or self.whole or written == self.length:
            return self.array
        if written < self.length:
            return self.array[:written]
        return np.roll(self.array, -(written % self.length), axis=0)


def run_loop(
    info: ScanInfo,
    step: Step,
    inputs: Sequence[Any],
    empty: Callable[[int], np.ndarray],
    name: Callable[[Group], str],
) -> list[Any]:
    """The results of a loop.

    ``step`` maps the inner inputs to the inner outputs; ``empty(k)`` is result ``k`` if no step is
    executed, an array without rows; ``name`` says what messages call a result.
    """
    members = groups(info)
    sequences = [inputs[g.outer_input] for g in members if g.kind == "seq"]
    buffers = _buffers(info, members, inputs, name)
    states = [inputs[g.outer_input] for g in members if g.kind == "untraced_sit_sot"]
    constants = [inputs[g.outer_input] for g in members if g.kind == "non_seq"]
    executed = 0
    for t in range(int(inputs[0])):
        given = [x[t, ...] for x in sequences]
        given += [row for b in buffers for row in b.read(t)]
        found = iter(step([*given, *states, *constants]))
        new = [[next(found) for _ in b.writes] for b in buffers]
        states = [next(found) for _ in states]
        for b, rows in zip(buffers, new):
            b.write(t, rows)
        executed = t + 1
        if info.as_while and next(found):
            break
    results = [b.result(executed) for b in buffers]
    return [*(empty(k) if x is None else x for k, x in enumerate(results)), *states]


def _buffers(
    info: ScanInfo, members: Sequence[Group], inputs: Sequence[Any], name: Callable[[Group], str]
) -> list[Buffer]:
    """The buffers, in the order of the results."""
    found = []
    taps = iter([*info.mit_sot_in_slices, *info.sit_sot_in_slices])
    both = iter(zip(info.normalized_mit_mot_in_slices, info.normalized_mit_mot_out_slices))
    for g in members:
        value = inputs[g.outer_input]
        if g.kind == "mit_mot":
            reads, writes = next(both)
            found.append(
                Buffer(partial(name, g), value.copy(), len(value), 0, reads, writes, whole=True)
            )
        elif g.kind in ("mit_sot", "sit_sot"):
            own = next(taps)
            first = -min(own)
            reads = [first + t for t in own]
            found.append(Buffer(partial(name, g), value.copy(), len(value), first, reads, [first]))
        elif g.kind == "nit_sot":
            found.append(Buffer(partial(name, g), None, int(value), writes=[0]))
    return found
