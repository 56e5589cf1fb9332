"""Two hierarchical models of PyMC: compiled, sampled, summarized, checked against their data.

``make pymc`` runs it where ``import pytensor`` finds Phintys; it runs unchanged on PyTensor.

Eight schools: effects of coaching on test scores, from D. B. Rubin, "Estimation in parallel
randomized experiments", Journal of Educational Statistics 6 (1981), 377-401.

Radon: levels in houses of 85 counties, with or without a basement, and a predictor of the county;
the model is that of A. Gelman and J. Hill, "Data Analysis Using Regression and
Multilevel/Hierarchical Models" (2006), chapter 12, on data drawn with a seed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pymc as pm

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = [f"school {name}" for name in "ABCDEFGH"]
COUNTIES, HOUSES = 85, 919
SEED = 1

#: seconds of each step
Times = dict[str, float]


def main() -> None:
    options = parsed()
    times: Times = {}
    with timed(times, "import pymc"):
        import pymc  # noqa: F401  (the models use it)
    for build in (eight_schools, radon):
        study(build, options, times)
    print("\n" + table({engine(): times, **read(options.beside)}))
    if options.times:
        options.times.write_text(json.dumps({engine(): times}))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--times", type=Path, help="a file for the seconds of each step")
    parser.add_argument("--beside", type=Path, help="such a file of another run, to be shown too")
    return parser.parse_args()


# ----- the models
def eight_schools() -> pm.Model:
    import pymc as pm

    with pm.Model(coords={"school": SCHOOLS}) as model:
        mu = pm.Normal("mu", 0.0, 10.0)
        tau = pm.HalfCauchy("tau", 5.0)
        z = pm.Normal("z", dims="school")
        effect = pm.Deterministic("effect", mu + tau * z, dims="school")
        pm.Normal("observed", effect, ERRORS, observed=EFFECTS, dims="school")
    return model


def radon() -> pm.Model:
    import pymc as pm

    county, floor, uranium, level = houses()
    with pm.Model(coords={"county": np.arange(COUNTIES)}) as model:
        intercept = pm.Normal("intercept", 0.0, 2.0)
        of_uranium = pm.Normal("of_uranium", 0.0, 1.0)
        of_floor = pm.Normal("of_floor", 0.0, 1.0)
        between = pm.HalfNormal("between", 1.0)
        within = pm.HalfNormal("within", 1.0)
        z = pm.Normal("z", dims="county")
        mean = pm.Deterministic(
            "mean", intercept + of_uranium * uranium + between * z, dims="county"
        )
        pm.Normal("observed", mean[county] + of_floor * floor, within, observed=level)
    return model


def houses() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """County, floor and log of radon of each house; log of uranium of each county."""
    rng = np.random.default_rng(SEED)
    weights = rng.dirichlet(np.full(COUNTIES, 0.8))
    others = rng.choice(COUNTIES, HOUSES - COUNTIES, p=weights)
    county = np.concatenate([np.arange(COUNTIES), others])  # each county has a house
    floor = rng.binomial(1, 0.17, HOUSES)
    uranium = rng.normal(0.0, 0.4, COUNTIES)
    mean = 1.5 + 0.7 * uranium + rng.normal(0.0, 0.16, COUNTIES)
    level = mean[county] - 0.67 * floor + rng.normal(0.0, 0.76, HOUSES)
    return county, floor, uranium, level


# ----- what is done with each
def study(build: Callable[[], pm.Model], options: argparse.Namespace, times: Times) -> None:
    import arviz as az
    import pymc as pm

    name = build.__name__
    print(f"\n{name}")
    model = build()
    with timed(times, f"{name}: compile density and gradient, first call"):
        density = model.logp_dlogp_function(ravel_inputs=True)
        density.set_extra_values({})
        point = pm.blocking.DictToArrayBijection.map(model.initial_point())
        density(point)
    times[f"{name}: one call"] = seconds_of_a_call(lambda: density(point))
    with model:
        with timed(times, f"{name}: sample"):
            trace = pm.sample(options.draws, cores=1, chains=2, random_seed=SEED)
        with timed(times, f"{name}: draw from the posterior predictive"):
            pm.sample_posterior_predictive(trace, extend_inferencedata=True, random_seed=SEED)
    shown = [v.name for v in model.free_RVs if v.ndim == 0]
    print(az.summary(trace, var_names=shown))
    options.folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "trace": az.plot_trace(trace, var_names=shown, backend="matplotlib"),
        "check": az.plot_ppc_dist(trace, backend="matplotlib"),
    }
    for kind, picture in pictures.items():
        path = options.folder / f"{name}_{kind}.png"
        picture.savefig(path)
        print(path)


def seconds_of_a_call(call: Callable[[], object]) -> float:
    """The best of five series."""

    def series(count: int = 1000) -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count

    return min(series() for _ in range(5))


# ----- times
@contextmanager
def timed(times: Times, step: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times[step] = time.perf_counter() - start


def engine() -> str:
    """What ``import pytensor`` found."""
    import pytensor

    package = pytensor.__name__
    return f"{package} {version(package)}"


def read(path: Path | None) -> dict[str, Times]:
    return json.loads(path.read_text()) if path else {}


def table(times: dict[str, Times]) -> str:
    """A line for each step, a column for each engine; seconds."""
    lines = [f"{'seconds':60}" + "".join(f"{name:>20}" for name in times)]
    for step in next(iter(times.values())):
        lines.append(f"{step:60}" + "".join(f"{own[step]:20.3g}" for own in times.values()))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
