"""A chain of elementwise nodes, as deep as you say: ``python tests/robustness/deep.py 100000``.

It is built, differentiated, rewritten, compiled, run, pickled, copied, printed and freed.  Seconds
per stage are printed, and on Linux the most memory of the process during the stage.
"""

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

import phintys
import phintys.tensor as pt


class Stages:
    """Seconds by stage; ``show`` is told each as it ends."""

    def __init__(self, show: Callable[[str, float], None]) -> None:
        self.show = show
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def done(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self.last
        self.show(name, self.seconds[name])
        self.last = now


def chain(x, depth: int):
    """Nodes that no rewrite can remove: sin and cos in turn, each plus the vector itself."""
    y = x
    for k in range(depth // 2):
        y = (pt.sin(y) if k % 2 else pt.cos(y)) + x
    return y


def expected(value: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """The chain and the derivative of its sum."""
    y, slope = value, np.ones_like(value)
    for k in range(depth // 2):
        slope = (np.cos(y) if k % 2 else -np.sin(y)) * slope + 1
        y = (np.sin(y) if k % 2 else np.cos(y)) + value
    return y, slope


def run(depth: int, mode: str = "FAST_RUN", show: Any = lambda name, seconds: None) -> Stages:
    """Seconds per stage; AssertionError if a value is wrong."""
    stages = Stages(show)
    value = np.linspace(0.1, 0.9, 5)
    x = pt.dvector("x")
    y = chain(x, depth)
    stages.done("build")
    slope = phintys.grad(y.sum(), x)
    stages.done("differentiate")
    f = phintys.function([x], [y, slope], mode=mode)
    stages.done("rewrite and compile")
    found = f(value)
    for left, right in zip(found, expected(value, depth)):
        np.testing.assert_allclose(left, right, rtol=1e-9)
    stages.done("run")
    again = pickle.loads(pickle.dumps(y))
    assert again.owner.op == y.owner.op
    stages.done("pickle the graph")
    copied = copy.deepcopy(y)
    assert copied is not y
    stages.done("deepcopy the graph")
    text = io.StringIO()
    phintys.dprint(y, file=text)
    assert len(text.getvalue().splitlines()) >= depth
    stages.done("print")
    pickled = pickle.dumps(f)
    stages.done("pickle the function")
    second = pickle.loads(pickled)
    np.testing.assert_array_equal(second(value)[0], found[0])
    stages.done("load the function")
    watched = [weakref.ref(v) for v in (y, slope, again, copied, f, second)]
    del y, slope, again, copied, f, second
    gc.collect()
    assert not any(r() is not None for r in watched)
    stages.done("free")
    return stages


def peak() -> float:
    """The most memory of this process, in MB, since it was last asked; NaN if not on Linux."""
    if not sys.platform.startswith("linux"):
        return float("nan")
    with open("/proc/self/status") as status:
        lines = dict(line.split(":") for line in status if line.startswith("VmHWM"))
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return int(lines["VmHWM"].split()[0]) * 1024 / 1e6


def show(name: str, seconds: float) -> None:
    print(f"{name:22} {seconds:8.2f} s {peak():7.0f} MB", flush=True)


if __name__ == "__main__":
    depth = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    mode = sys.argv[2] if len(sys.argv) > 2 else "FAST_RUN"
    run(depth, mode, show)
