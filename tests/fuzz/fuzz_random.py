"""How the arguments of distributions are drawn: from the domains of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from fuzz_draw import Drawer
from fuzz_functions import Text, draws

from phintys.tensor.random.basic import DISTRIBUTIONS
from phintys.tensor.random.distribution import Distribution, ScipyDistribution
from phintys.tensor.random.domains import POSITIVE, Domain, first_violated

OTHERS = ("size", "rng", "dtype", "return_next_rng", "kwargs")


def domains(distribution: Callable[..., Any]) -> dict[str, Domain] | None:
    """The parameters of a distribution of numbers from numbers; None for other distributions.

    Those of functions, such as ``gamma``, are positive.
    """
    if isinstance(distribution, Distribution):
        own = {name: spec[0] for name, spec in distribution.parameters.items()}
        return own if not any(distribution.ndims_params) and not distribution.ndim_supp else None
    if distribution.__module__ not in ("phintys.tensor.random.continuous", "functools"):
        return None
    names = [p for p in signature(distribution).parameters if p not in OTHERS]
    return dict.fromkeys([n for n in names if n != "rate"], POSITIVE)


def literal(values: np.ndarray) -> str:
    """An array as text."""
    numbers = str(values.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array({numbers}, '{values.dtype}')"


def parameter(g: Drawer, domain: Domain, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of a domain; rarely one that is outside."""
    chosen = [g.choice(domain.inside) for _ in range(int(np.prod(shape)))]
    if chosen and domain.outside and g.chance(0.03):
        chosen[g.rng.randrange(len(chosen))] = g.choice(domain.outside)
    dtype = domain.dtype
    if dtype == "float64" and g.chance(0.2):
        dtype = "float32"
    return np.array(chosen, dtype).reshape(shape)


#: shapes of parameters that broadcast with each other
SHAPES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((), (), (3,), (2, 1), (2, 3)),
    ((), (), (3,), (0, 3)),
)


@draws(*(f"random.{name}" for name, d in DISTRIBUTIONS.items() if domains(d) is not None))
def _distribution(g: Drawer, name: str) -> Text:
    name = name.removeprefix("random.")
    distribution = DISTRIBUTIONS[name]
    own = domains(distribution) or {}
    fitting = g.choice(SHAPES)
    shapes = [g.choice(fitting) for _ in own]
    conditions = getattr(distribution, "conditions", ())
    for _ in range(50):
        params = [parameter(g, d, s) for d, s in zip(own.values(), shapes)]
        if g.chance(0.02) or first_violated(conditions, params) is None:
            break
    shape = np.broadcast_shapes(*shapes)
    size = g.choice((None, shape, (2, *shape), (5, *shape)))
    seed = g.rng.randrange(100)
    given = "".join(f"{key}={literal(p)}, " for key, p in zip(own, params))
    text = f"pt.random.{name}({given}size={size}, rng=np.random.default_rng({seed}))"
    known = isinstance(distribution, Distribution) and not isinstance(
        distribution, ScipyDistribution
    )
    if not known or not hasattr(np.random.Generator, str(distribution.name)):
        return text
    values = "".join(f"{literal(p)}, " for p in params)
    return text, f"np.random.default_rng({seed}).{distribution.name}({values}size={size})"


def _numbers(g: Drawer, shape: tuple[int, ...], least: float, most: float) -> np.ndarray:
    """Numbers between two others."""
    count = int(np.prod(shape))
    return np.array([g.rng.uniform(least, most) for _ in range(count)]).reshape(shape)


def _probabilities(g: Drawer, shape: tuple[int, ...]) -> np.ndarray:
    p = _numbers(g, shape, 0.0, 1.0)
    return p / p.sum(axis=-1, keepdims=True)


def _counts(g: Drawer, shape: tuple[int, ...], most: int) -> np.ndarray:
    return _numbers(g, shape, 0, most + 1).astype("int64")


def _covariance(g: Drawer, k: int) -> np.ndarray:
    a = _numbers(g, (k, k), -1.0, 1.0)
    return a @ a.T + np.eye(k)


#: name -> (drawer, batch shape, length of a vector) -> the parameters
VECTORS: dict[str, Callable[[Drawer, tuple[int, ...], int], list[np.ndarray]]] = {
    "categorical": lambda g, b, k: [_probabilities(g, (*b, k))],
    "choice": lambda g, b, k: [_numbers(g, (k, *b), -1, 1)],
    "dirichlet": lambda g, b, k: [_numbers(g, (*b, k), 0.0, g.choice((0.1, 3.0)))],
    "multinomial": lambda g, b, k: [_counts(g, b, 9), _probabilities(g, (*b, k))],
    "multivariate_hypergeometric": lambda g, b, k: [1 + _counts(g, (*b, k), 9), _counts(g, b, 1)],
    "multivariate_normal": lambda g, b, k: [_numbers(g, (*b, k), -1, 1), _covariance(g, k)],
    "permutation": lambda g, b, k: [_numbers(g, (*b, k), -1, 1)],
}


@draws(*(f"random.{name}" for name in VECTORS))
def _distribution_of_vectors(g: Drawer, name: str) -> Text:
    name = name.removeprefix("random.")
    batch, k = g.choice(((), (), (2,), (3, 2))), g.choice((1, 2, 4))
    params = VECTORS[name](g, batch, k)
    given = "".join(f"{literal(p)}, " for p in params)
    seed = g.rng.randrange(100)
    items = () if name in ("choice", "permutation") else batch
    size = g.choice((None, items, (2, *items)))
    further = ", replace=False, p=None" if name == "choice" and np.prod(size or ()) <= k else ""
    text = f"pt.random.{name}({given}size={size}{further}, rng=np.random.default_rng({seed}))"
    if batch or name in ("categorical", "permutation", "multivariate_normal"):
        return text
    return text, f"np.random.default_rng({seed}).{name}({given}size={size}{further})"
