"""How much memory stays after functions were compiled and dropped.

    python tests/robustness/memory.py

Arguments: number of functions (1000), number of calls of one function (10000), mode (FAST_RUN).
"""

from __future__ import annotations

import gc
import sys

import numpy as np

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


if __name__ == "__main__":
    functions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    mode = sys.argv[3] if len(sys.argv) > 3 else "FAST_RUN"
    print(f"{calls} calls:     {growth_by_calls(calls, mode):6.1f} MB")
    print(f"{functions} functions:  {growth_by_functions(functions, mode):6.1f} MB")
