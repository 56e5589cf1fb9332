"""Time of compiled functions next to the same NumPy expression, in one run: ``make bench``.

A ratio says how many times as fast the compiled function is.  Each time is the least of many calls.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import phintys
import phintys.tensor as pt

SIZES = (100, 10_000, 1_000_000)


def softmax(m: Any, x: Any) -> Any:
    e = m.exp(x - m.max(x, axis=1, keepdims=True))
    return e / m.sum(e, axis=1, keepdims=True)


#: name -> (rank of x, expression in the functions of m, which NumPy and phintys.tensor share)
WORKLOADS: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "x + 1": (1, lambda m, x: x + 1.0),
    "chain of 6": (1, lambda m, x: m.tanh(m.exp(-x * x) * 2.0 + x) - 1.0),
    "sum of squares": (1, lambda m, x: m.sum(x * x)),
    "mean of log1p(exp)": (1, lambda m, x: m.mean(m.log1p(m.exp(x)))),
    "softmax of rows": (2, softmax),
}


def best(f: Callable[[], Any]) -> float:
    """The least time of a call, in seconds."""
    timer = timeit.Timer(f)
    number, _ = timer.autorange()
    number = max(1, number // 10)
    return min(timer.repeat(10, number)) / number


def main() -> None:
    rng = np.random.default_rng(0)
    print(
        f"{'workload':20s} " + " ".join(f"{n:>10,d}" for n in SIZES) + "   times as fast as NumPy"
    )
    for name, (rank, expression) in WORKLOADS.items():
        x = pt.TensorType("float64", (None,) * rank)("x")
        f = phintys.function([x], expression(pt, x))
        ratios = []
        for n in SIZES:
            value = rng.normal(size=n if rank == 1 else (n // 10, 10))
            np.testing.assert_allclose(f(value), expression(np, value), rtol=1e-10)
            ours, theirs = best(lambda: f(value)), best(lambda: expression(np, value))  # noqa: B023
            ratios.append(theirs / ours)
        print(f"{name:20s} " + " ".join(f"{r:10.1f}" for r in ratios))


if __name__ == "__main__":
    main()
