"""Measures one model of PyMC in this process and prints JSON: what ``pymc_models.py`` asks for."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
#: of NUTS, after as many steps that tune it
DRAWS = 300
SEED = 1


def main(name: str) -> None:
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    found["import numpy"] = seconds(lambda: __import__("numpy"))
    found["import pytensor"] = seconds(lambda: __import__("pytensor"))
    found["import pymc"] = seconds(lambda: __import__("pymc"))
    from tests.pymc.records import MODELS

    found["engine"] = engine()
    model = MODELS[name]()
    density = None

    def compile_and_call() -> None:
        nonlocal density
        density = first_call(model)

    found["compile"] = seconds(compile_and_call)
    found["call"] = seconds_of_a_call(density)
    found["draws"] = DRAWS / seconds(lambda: sample(model))
    print(json.dumps(found))


def engine() -> str:
    """What ``import pytensor`` found."""
    from importlib.metadata import version

    import pytensor

    return f"{pytensor.__name__} {version(pytensor.__name__)}"


def first_call(model: Any) -> Callable[[], Any]:
    """The log-density and its gradient at the initial point, compiled and called once."""
    from pymc.blocking import DictToArrayBijection

    density = model.logp_dlogp_function(ravel_inputs=True)
    density.set_extra_values({})
    compiled = density._pytensor_function  # without what PyMC does around a call
    point = DictToArrayBijection.map(model.initial_point(random_seed=SEED)).data
    compiled(point)
    return lambda: compiled(point)


def sample(model: Any) -> None:
    """NUTS of PyMC, without a picture of its progress."""
    import pymc as pm

    with model:
        pm.sample(
            DRAWS, tune=DRAWS, chains=1, cores=1, random_seed=SEED, nuts_sampler="pymc",
            progressbar=False, compute_convergence_checks=False,
        )  # fmt: skip


def seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def seconds_of_a_call(call: Callable[[], object]) -> float:
    """The best of seven series of 20 ms or more."""
    count = max(1, int(0.02 / max(seconds(call), 1e-7)))

    def series() -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count

    return min(series() for _ in range(7))


if __name__ == "__main__":
    main(sys.argv[1])
