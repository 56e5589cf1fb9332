"""Distributions of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.scalar.native import Native
from phintys.tensor.aliases import TensorLike
from phintys.tensor.random.distribution import Distribution, Draws, ScipyDistribution
from phintys.tensor.random.domains import (
    ABOVE_0,
    ABOVE_1,
    COUNT,
    INTEGER,
    POISSON_LAM_MAX,
    POPULATION,
    RATE,
    REAL,
    UNIT,
    UNIT_ABOVE_0,
    Condition,
)
from phintys.tensor.random.utils import Size

__all__ = [
    "BernoulliRV", "BetaBinomialRV", "BinomialRV", "CategoricalRV", "GeometricRV",
    "HyperGeometricRV", "IntegersRV", "NegBinomialRV", "PoissonRV", "ZipfRV", "bernoulli",
    "betabinom", "binomial", "categorical", "geometric", "hypergeometric", "integers", "nbinom",
    "negative_binomial", "poisson", "randint", "zipf",
]  # fmt: skip

Array = np.ndarray[Any, Any]


class BinomialRV(Distribution):
    """The number of successes in ``n`` trials, each of probability ``p``."""

    name = "binomial"
    dtype = "int64"
    parameters = {"n": (COUNT,), "p": (UNIT,)}
    routines = ("random_binomial",)
    _print_name = ("Binomial", "\\operatorname{Binomial}")

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        n, p = params
        return draw("random_binomial", p, n)


class PoissonRV(Distribution):
    """The number of events in a time in which ``lam`` are expected."""

    name = "poisson"
    dtype = "int64"
    parameters = {"lam": (RATE, 1.0)}
    routines = ("random_poisson",)
    _print_name = ("Poisson", "\\operatorname{Poisson}")


class GeometricRV(Distribution):
    """The number of trials of probability ``p`` up to the first success: 1, 2, ..."""

    name = "geometric"
    dtype = "int64"
    parameters = {"p": (UNIT_ABOVE_0,)}
    routines = ("random_geometric",)
    _print_name = ("Geometric", "\\operatorname{Geometric}")


class HyperGeometricRV(Distribution):
    """The number of good ones among ``nsample`` of ``ngood`` and ``nbad``, without replacement."""

    name = "hypergeometric"
    dtype = "int64"
    parameters = {"ngood": (POPULATION,), "nbad": (POPULATION,), "nsample": (COUNT,)}
    relations = (
        Condition((0, 1, 2), "ngood + nbad < nsample", lambda n, x, y, k: n.ge(n.add(x, y), k)),
    )
    routines = ("random_hypergeometric",)
    _print_name = ("HyperGeometric", "\\operatorname{HyperGeometric}")


class ZipfRV(Distribution):
    """Integers from 1 on with probabilities proportional to ``x**-a``."""

    name = "zipf"
    dtype = "int64"
    parameters = {"a": (ABOVE_1,)}
    routines = ("random_zipf",)
    _print_name = ("Zipf", "\\operatorname{Zipf}")


def _span(n: Native, low: Any, high: Any) -> Any:
    return n.sub(n.sub(high, n.const(1, high)), low)


class IntegersRV(Distribution):
    """Integers from ``low`` (included) to ``high`` (excluded), all equally likely.

    With one bound, that is ``high``, and ``low`` is 0.
    """

    name = "integers"
    dtype = "int64"
    parameters = {"low": (INTEGER,), "high": (INTEGER,)}
    relations = (Condition((0, 1), "low >= high", lambda n, low, high: n.lt(low, high)),)
    checks_nothing_drawn = False
    routines = ("random_bounded_uint64",)
    _print_name = ("integers", "\\operatorname{integers}")

    def __call__(
        self, low: TensorLike, high: TensorLike | None = None, size: Size = None, **kwargs: Any
    ) -> Any:
        """Numbers drawn from integers; see `RandomVariable.__call__`."""
        low, high = (0, low) if high is None else (low, high)
        return super().__call__(low, high, size=size, **kwargs)

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        low, high = params
        none = b.const(0, "int64")
        span = b.cast(b.map(_span, low, high), "uint64")
        return draw("random_bounded_uint64", low, span, none, none)


# ------------------------------------------------------------------ distributions of SciPy
def _has_a_rate(n: Native, k: Any, p: Any) -> Any:
    """Whether the Poisson distribution that NumPy draws from has a rate that is not too large."""
    most = n.mul(n.div(n.sub(n.const(1.0, p), p), p), n.add(k, n.mul(n.const(10.0, k), n.sqrt(k))))
    return n.not_(n.gt(most, n.const(POISSON_LAM_MAX, most)))


class NegBinomialRV(ScipyDistribution):
    """The number of failures before success ``n``, with trials of probability ``p``."""

    name = "negative_binomial"
    dtype = "int64"
    parameters = {"n": (ABOVE_0,), "p": (UNIT_ABOVE_0,)}
    relations = (Condition((0, 1), "n too large or p too small", _has_a_rate),)
    routines = ("random_negative_binomial",)
    _print_name = ("NegativeBinomial", "\\operatorname{NegativeBinomial}")

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, n: Array, p: Array, size: Any) -> Any:
        return rng.negative_binomial(n, p, size)


class BernoulliRV(ScipyDistribution):
    """1 with probability ``p``, else 0."""

    name = "bernoulli"
    dtype = "int64"
    parameters = {"p": (UNIT,)}
    routines = ("random_binomial",)
    _print_name = ("Bernoulli", "\\operatorname{Bernoulli}")

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, p: Array, size: Any) -> Any:
        return rng.binomial(1, p, size)

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        return draw("random_binomial", *params, b.const(1, "int64"))


class BetaBinomialRV(ScipyDistribution):
    """Binomial numbers of ``n`` trials whose probabilities have the beta distribution."""

    name = "beta_binomial"
    dtype = "int64"
    parameters = {"n": (COUNT,), "a": (ABOVE_0,), "b": (ABOVE_0,)}
    relations = (  # the probability would be NaN
        Condition((1,), "a is infinite", lambda n, a: n.lt(a, n.const(float("inf"), a))),
    )
    routines = ("random_beta", "random_binomial")
    _print_name = ("BetaBinomial", "\\operatorname{BetaBinomial}")

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, n: Array, a: Array, b: Array, size: Any) -> Any:
        return rng.binomial(n, rng.beta(a, b, size), size)

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        n, *others = params
        return draw("random_binomial", draw("random_beta", *others), n)


#: how much the sum of probabilities may differ from 1
TOLERANCE = 1e-5


class CategoricalRV(Distribution):
    """The positions 0, 1, ... with the probabilities in the last axis of ``p``.

    ValueError if their sum differs from 1 by more than 1e-5.  What is missing counts for the last.
    Single ones may be out of range or NaN, as in PyTensor: the result is the number of running sums
    below a uniform draw.
    """

    name = "categorical"
    dtype = "int64"
    signature = "(p)->()"
    parameters = {"p": (REAL,)}
    routines = ("random_standard_uniform",)
    _print_name = ("Categorical", "\\operatorname{Categorical}")

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, p: Array, size: Any) -> Any:
        """The numbers of ``searchsorted(p.cumsum(), rng.uniform())``."""
        ends = p.cumsum(axis=-1, dtype="float64")
        if np.any(np.abs(p.sum(axis=-1, dtype="float64") - 1) > TOLERANCE):
            raise ValueError("the sum of p is not 1")
        shape = p.shape[:-1] if size is None else size
        u = rng.uniform(size=shape)
        return np.minimum((ends < u[..., None]).sum(axis=-1), p.shape[-1] - 1)

    def flags(self, b: Builder[V], params: Sequence[V]) -> list[V]:
        (p,) = params
        total = b.reduce("add", p, (p.ndim - 1,))
        return [b.map(_is_about_1, total)]

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        (p,) = params
        ends = b.scan("add", p, p.ndim - 1)
        u = draw("random_standard_uniform")
        below = b.map(lambda n, end, u: n.cast(n.lt(end, u), "int64"), ends, b.expand(u, u.ndim))
        count = b.reduce("add", below, (below.ndim - 1,))
        last = b.scalar(b.length(p, -1) - 1)
        return b.map(lambda n, x, last: n.min(x, last), count, last)


def _is_about_1(n: Native, x: Any) -> Any:
    """Whether a sum is about 1, or NaN."""
    difference = n.abs(n.sub(x, n.const(1.0, x)))
    return n.not_(n.lt(n.const(TOLERANCE, x), difference))


bernoulli = BernoulliRV()
betabinom = BetaBinomialRV()
binomial = BinomialRV()
categorical = CategoricalRV()
geometric = GeometricRV()
hypergeometric = HyperGeometricRV()
integers = IntegersRV()
nbinom = NegBinomialRV()
negative_binomial = nbinom
poisson = PoissonRV()
randint = integers
zipf = ZipfRV()
