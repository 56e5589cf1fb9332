"""The prior predictive of a hierarchical model: 20 random variables, 1,000 draws of each.

    python examples/prior_predictive.py [--draws 1000] [--package phintys]

Schools in districts: abilities, effects of teaching and of class sizes vary by district and school,
scores are normal, absences are counts, exams are passed or not.  The model is written once.  One
compiled function draws from it; NumPy by hand draws the same numbers, which is checked.  Then both
are timed.  ``--package pytensor`` runs the same program on PyTensor, if that is installed.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from typing import Any

import numpy as np

DISTRICTS, SCHOOLS, PUPILS = 6, 24, 10


def model(draw: Any, draws: int) -> dict[str, Any]:
    """The variables of the model, drawn by ``draw(distribution, *parameters, size)`` in order.

    The first axis is that of the draws.
    """
    one, district, school = (draws, 1), (draws, DISTRICTS), (draws, SCHOOLS)
    of_school = np.arange(SCHOOLS) % DISTRICTS
    v: dict[str, Any] = {}
    v["mean"] = draw("normal", 50.0, 10.0, size=one)
    v["sd_district"] = draw("exponential", 5.0, size=one)
    v["sd_school"] = draw("exponential", 3.0, size=one)
    v["district"] = draw("normal", v["mean"], v["sd_district"], size=district)
    v["school"] = draw("normal", v["district"][:, of_school], v["sd_school"], size=school)
    v["slope"] = draw("normal", 0.0, 1.0, size=one)
    v["sd_slope"] = draw("exponential", 0.5, size=one)
    v["slopes"] = draw("normal", v["slope"], v["sd_slope"], size=school)
    v["hours"] = draw("uniform", 10.0, 30.0, size=school)
    v["noise"] = draw("lognormal", 1.0, 0.3, size=one)
    level = (v["school"] + v["slopes"] * (v["hours"] - 20.0))[:, :, None]
    pupils = (draws, SCHOOLS, PUPILS)
    v["scores"] = draw("normal", level, v["noise"][:, :, None], size=pupils)
    v["log_rate"] = draw("normal", 1.0, 0.5, size=one)
    v["sd_rate"] = draw("exponential", 0.3, size=one)
    v["rates"] = draw("lognormal", v["log_rate"], v["sd_rate"], size=school)
    v["absences"] = draw("poisson", v["rates"][:, :, None], size=pupils)
    v["a"] = draw("uniform", 1.0, 5.0, size=one)
    v["b"] = draw("uniform", 1.0, 5.0, size=one)
    v["chance"] = draw("beta", v["a"], v["b"], size=school)
    v["passed"] = draw("binomial", PUPILS, v["chance"], size=school)
    v["wage"] = draw("lognormal", 0.01 * v["school"], 0.1, size=school)
    return v


def by_hand(rng: np.random.Generator, draws: int) -> list[Any]:
    """The variables by NumPy."""

    def draw(name: str, *params: Any, size: Any) -> Any:
        return getattr(rng, name)(*params, size)

    return list(model(draw, draws).values())


def compiled(package: Any, rng: Any, draws: int) -> Any:
    """A function that draws the variables, and updates the shared generator."""
    state = rng

    def draw(name: str, *params: Any, size: Any) -> Any:
        nonlocal state
        state, x = getattr(state, name)(*params, size=size)
        return x

    variables = list(model(draw, draws).values())
    return package.function([], variables, updates={rng: state})


def milliseconds(call: Any, seconds: float = 1.0) -> float:
    """The least time of a call, of those in some seconds."""
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--package", default="phintys")
    args = parser.parse_args()
    package, pt = import_module(args.package), import_module(f"{args.package}.tensor")
    rng = pt.random.shared_rng(np.random.default_rng(1))
    start = time.perf_counter()
    f = compiled(package, rng, args.draws)
    found = f()
    first = time.perf_counter() - start
    expected = by_hand(np.random.default_rng(1), args.draws)
    largest = max(float(np.max(np.abs(x - y))) for x, y in zip(found, expected, strict=True))
    print(f"{len(found)} variables, {sum(x.size for x in found)} numbers")
    print(f"largest difference from NumPy's numbers: {largest:.1e}")
    print(f"first result: {first:.2f} s")
    other = np.random.default_rng(1)
    print(f"{args.package}: {milliseconds(f):.2f} ms a call")
    print(f"NumPy by hand: {milliseconds(lambda: by_hand(other, args.draws)):.2f} ms a call")


if __name__ == "__main__":
    main()
