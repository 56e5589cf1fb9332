"""How much memory stays after functions were compiled and dropped.

    python tests/robustness/memory.py
    python tests/robustness/memory.py activities [NAME ...]

Arguments: number of functions (1000), number of calls of one function (10000), mode (FAST_RUN).
With ``activities``: what each of `activities.ACTIVITIES` leaves behind, in two rounds that are
`ROUNDS` times as long as in the tests.  What is bounded grows in the first round alone.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import numpy as np
from activities import ACTIVITIES

import phintys
import phintys.tensor as pt


def resident() -> float:
    """MB of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def compile_one(k: int, mode: str = "FAST_RUN") -> None:
    """Compile, call and drop a function that differs from those with other ``k``."""
    x, y = pt.dvectors("x", "y")
    s = phintys.shared(np.zeros(4), "s")
    z = pt.exp(x * (k + 2)) + pt.sqr(y + 1.5 * k)
    if k % 3 == 0:
        z = z[::2] - s[:2]
    cost = (z * z).sum()
    f = phintys.function([x, y], [cost, phintys.grad(cost, x)], updates={s: s + x}, mode=mode)
    f(np.ones(4), np.arange(4.0))


def growth_by_functions(count: int, mode: str = "FAST_RUN", warm: int = 30) -> float:
    """MB that ``count`` functions leave behind, after ``warm`` others."""
    for k in range(warm):
        compile_one(k, mode)
    gc.collect()
    before = resident()
    for k in range(warm, warm + count):
        compile_one(k, mode)
    gc.collect()
    return resident() - before


def growth_by_calls(count: int, mode: str = "FAST_RUN") -> float:
    """MB that ``count`` calls of one function leave behind, good and failed ones in turn."""
    x, y = pt.dvectors("x", "y")
    s = phintys.shared(np.zeros(1000), "s")
    f = phintys.function([x, y], [(x + y).sum(), x * s], updates={s: s + 1}, mode=mode)
    good, bad = np.ones(1000), np.ones(999)

    def call(n: int) -> None:
        for k in range(n):
            f(good, good)
            f(x=good.tolist() if k % 100 == 0 else good, y=good)
            if k % 50 == 0:
                try:
                    f(good, bad)
                except ValueError:
                    pass

    call(count // 10)
    gc.collect()
    before = resident()
    call(count)
    gc.collect()
    return resident() - before


ROUNDS = 10


def growth_by_activity(activity: Callable[[int], None], count: int) -> list[tuple[float, int]]:
    """MB, and objects known to the garbage collector, that two rounds leave behind."""
    for k in range(2, 8):
        activity(k)
    found, k = [], 8
    for _ in range(2):
        gc.collect()
        before, objects = resident(), len(gc.get_objects())
        for _ in range(count):
            activity(k)
            k += 1
        gc.collect()
        found.append((resident() - before, len(gc.get_objects()) - objects))
    return found


def report_activities(names: list[str]) -> None:
    """A line for each activity."""
    for activity, count in ACTIVITIES.items():
        if names and activity.__name__ not in names:
            continue
        rounds = growth_by_activity(activity, ROUNDS * count)
        cells = "   ".join(f"{mb:7.1f} MB {objects:8d} objects" for mb, objects in rounds)
        print(f"{activity.__name__:22s} {ROUNDS * count:5d}   {cells}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["activities"]:
        report_activities(sys.argv[2:])
        raise SystemExit
    functions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    mode = sys.argv[3] if len(sys.argv) > 3 else "FAST_RUN"
    print(f"{calls} calls:     {growth_by_calls(calls, mode):6.1f} MB")
    print(f"{functions} functions:  {growth_by_functions(functions, mode):6.1f} MB")
