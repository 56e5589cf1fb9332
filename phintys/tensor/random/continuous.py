"""Distributions of floats."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.variable import Variable
from phintys.scalar.native import Native
from phintys.tensor.aliases import DTypeLike, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.random.distribution import Distribution, Draws, ScipyDistribution
from phintys.tensor.random.domains import (
    ABOVE_0,
    AT_LEAST_0,
    NON_NEGATIVE,
    POSITIVE,
    REAL,
    Condition,
    has_no_sign,
)
from phintys.tensor.random.type import GeneratorLike
from phintys.tensor.random.utils import Size
from phintys.tensor.scalar_functions import FUNCTIONS

__all__ = [
    "FRV",
    "BetaRV",
    "CauchyRV",
    "ExponentialRV",
    "GammaRV",
    "GenGammaRV",
    "GumbelRV",
    "HalfCauchyRV",
    "HalfNormalRV",
    "InvGammaRV",
    "LaplaceRV",
    "LogNormalRV",
    "LogisticRV",
    "NormalRV",
    "ParetoRV",
    "PowerRV",
    "StudentTRV",
    "TriangularRV",
    "TruncExponentialRV",
    "UniformRV",
    "VonMisesRV",
    "WaldRV",
    "WeibullRV",
    "beta",
    "cauchy",
    "chisquare",
    "exponential",
    "f",
    "gamma",
    "gengamma",
    "gumbel",
    "halfcauchy",
    "halfnormal",
    "invgamma",
    "laplace",
    "logistic",
    "lognormal",
    "normal",
    "pareto",
    "power",
    "random",
    "rayleigh",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "t",
    "triangular",
    "truncexpon",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
]  # fmt: skip

Array = np.ndarray[Any, Any]


# ------------------------------------------------------------------ methods of NumPy
def _range(n: Native, low: Any, high: Any) -> Any:
    return n.sub(high, low)


def _is_finite(n: Native, low: Any, high: Any) -> Any:
    width = _range(n, low, high)
    return n.eq(n.sub(width, width), n.const(0.0, width))


class UniformRV(Distribution):
    """Numbers from ``low`` (included) to ``high`` (excluded), all equally likely."""

    name = "uniform"
    parameters = {"low": (REAL, 0.0), "high": (REAL, 1.0)}
    relations = (
        Condition((0, 1), "high - low is not finite", _is_finite),
        Condition((0, 1), "high - low < 0", lambda n, a, b: has_no_sign(n, _range(n, a, b))),
    )
    routines = ("random_uniform",)
    _print_name = ("Uniform", "\\operatorname{Uniform}")

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        return draw("random_uniform", params[0], b.map(_range, *params))


class TriangularRV(Distribution):
    """Numbers from ``left`` to ``right``, whose density rises linearly up to ``mode``."""

    name = "triangular"
    parameters = {"left": (REAL,), "mode": (REAL,), "right": (REAL,)}
    relations = (
        Condition((0, 1), "left > mode", lambda n, a, b: n.not_(n.gt(a, b))),
        Condition((1, 2), "mode > right", lambda n, a, b: n.not_(n.gt(a, b))),
        Condition((0, 2), "left == right", lambda n, a, b: n.ne(a, b)),
    )
    routines = ("random_triangular",)
    _print_name = ("Triangular", "\\operatorname{Triangular}")


class BetaRV(Distribution):
    """The beta distribution: density ``x**(alpha - 1) * (1 - x)**(beta - 1) / B(alpha, beta)``."""

    name = "beta"
    parameters = {"alpha": (POSITIVE,), "beta": (POSITIVE,)}
    routines = ("random_beta",)
    _print_name = ("Beta", "\\operatorname{Beta}")


class NormalRV(Distribution):
    """The normal distribution with mean ``loc`` and standard deviation ``scale``."""

    name = "normal"
    parameters = {"loc": (REAL, 0.0), "scale": (NON_NEGATIVE, 1.0)}
    routines = ("random_normal",)
    _print_name = ("Normal", "\\operatorname{Normal}")


class LogNormalRV(Distribution):
    """Numbers whose logarithms are normal, with mean ``mean`` and standard deviation ``sigma``."""

    name = "lognormal"
    parameters = {"mean": (REAL, 0.0), "sigma": (NON_NEGATIVE, 1.0)}
    routines = ("random_lognormal",)
    _print_name = ("LogNormal", "\\operatorname{LogNormal}")


class GammaRV(Distribution):
    """The gamma distribution: density proportional to ``x**(shape - 1) * exp(-x / scale)``."""

    name = "gamma"
    parameters = {"shape": (NON_NEGATIVE,), "scale": (NON_NEGATIVE,)}
    routines = ("random_gamma",)
    _print_name = ("Gamma", "\\operatorname{Gamma}")


class ExponentialRV(Distribution):
    """The exponential distribution with mean ``scale``."""

    name = "exponential"
    parameters = {"scale": (NON_NEGATIVE, 1.0)}
    routines = ("random_exponential",)
    _print_name = ("Exponential", "\\operatorname{Exponential}")


class WeibullRV(Distribution):
    """The Weibull distribution: density ``shape * x**(shape - 1) * exp(-x**shape)``."""

    name = "weibull"
    parameters = {"shape": (NON_NEGATIVE,)}
    routines = ("random_weibull",)
    _print_name = ("Weibull", "\\operatorname{Weibull}")


class LogisticRV(Distribution):
    """The logistic distribution with mean ``loc``: its distribution function is a sigmoid."""

    name = "logistic"
    parameters = {"loc": (REAL, 0), "scale": (NON_NEGATIVE, 1)}
    routines = ("random_logistic",)
    _print_name = ("Logistic", "\\operatorname{Logistic}")


class LaplaceRV(Distribution):
    """The Laplace distribution: density ``exp(-abs(x - loc) / scale) / (2 * scale)``."""

    name = "laplace"
    parameters = {"loc": (REAL, 0.0), "scale": (NON_NEGATIVE, 1.0)}
    routines = ("random_laplace",)
    _print_name = ("Laplace", "\\operatorname{Laplace}")


class VonMisesRV(Distribution):
    """Angles in [-pi, pi]: density proportional to ``exp(kappa * cos(x - mu))``."""

    name = "vonmises"
    parameters = {"mu": (REAL,), "kappa": (NON_NEGATIVE,)}
    routines = ("random_vonmises",)
    _print_name = ("VonMises", "\\operatorname{VonMises}")


class WaldRV(Distribution):
    """The inverse Gaussian distribution with mean ``mean`` and shape ``scale``."""

    name = "wald"
    parameters = {"mean": (POSITIVE, 1.0), "scale": (POSITIVE, 1.0)}
    routines = ("random_wald",)
    _print_name = ("Wald", "\\operatorname{Wald}")


class FRV(Distribution):
    """The F distribution: the ratio of two chi-square variables, each over its degrees."""

    name = "f"
    parameters = {"dfnum": (POSITIVE,), "dfden": (POSITIVE,)}
    routines = ("random_f",)
    _print_name = ("F", "\\operatorname{F}")


class PowerRV(Distribution):
    """Numbers in [0, 1] of density ``a * x**(a - 1)``."""

    name = "power"
    parameters = {"a": (POSITIVE,)}
    routines = ("random_power",)
    _print_name = ("Power", "\\operatorname{Power}")


class InvGammaRV(Distribution):
    """The inverse gamma distribution: ``scale`` over a gamma variable of that ``shape``."""

    name = "invgamma"
    parameters = {"shape": (NON_NEGATIVE,), "scale": (NON_NEGATIVE,)}
    routines = ("random_gamma",)
    _print_name = ("InverseGamma", "\\operatorname{InverseGamma}")

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, shape: Array, scale: Array, size: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.divide(1, rng.gamma(shape, np.divide(1, scale), size))

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        shape, scale = params
        return b.map(_inverse, draw("random_gamma", shape, b.map(_inverse, scale)))


def _inverse(n: Native, x: Any) -> Any:
    return n.div(n.const(1.0, x), x)


# ------------------------------------------------------------------ distributions of SciPy
def _located(n: Native, z: Any, loc: Any, scale: Any) -> Any:
    return n.add(n.mul(z, scale), loc)


class HalfNormalRV(ScipyDistribution):
    """The absolute values of normal variables with standard deviation ``scale``, plus ``loc``."""

    name = "halfnormal"
    parameters = {"loc": (REAL, 0.0), "scale": (AT_LEAST_0, 1.0)}
    routines = ("random_standard_normal",)
    _print_name = ("HalfNormal", "\\operatorname{HalfNormal}")

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, loc: Array, scale: Array, size: Any) -> Any:
        return np.abs(rng.standard_normal(size)) * scale + loc

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        z = draw("random_standard_normal")
        return b.map(lambda n, z, loc, scale: _located(n, n.abs(z), loc, scale), z, *params)


class CauchyRV(ScipyDistribution):
    """The Cauchy distribution with median ``loc``."""

    name = "cauchy"
    parameters = {"loc": (REAL, 0.0), "scale": (AT_LEAST_0, 1.0)}
    routines = ("random_standard_uniform",)
    _print_name = ("Cauchy", "\\operatorname{Cauchy}")

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, loc: Array, scale: Array, size: Any) -> Any:
        u = rng.uniform(size=size)
        return -1 / np.tan(np.pi * np.where(u > 0.5, u - 1, u)) * scale + loc

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        def quantile(n: Native, u: Any, loc: Any, scale: Any) -> Any:
            one = n.const(1.0, u)
            u = n.select(n.gt(u, n.const(0.5, u)), n.sub(u, one), u)
            return _located(n, n.div(n.neg(one), n.tan(n.mul(n.const(np.pi, u), u))), loc, scale)

        return b.map(quantile, draw("random_standard_uniform"), *params)


class HalfCauchyRV(ScipyDistribution):
    """The absolute values of Cauchy variables of median 0, plus ``loc``."""

    name = "halfcauchy"
    parameters = {"loc": (REAL, 0.0), "scale": (AT_LEAST_0, 1.0)}
    routines = ("random_standard_uniform",)
    _print_name = ("HalfCauchy", "\\operatorname{HalfCauchy}")

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, loc: Array, scale: Array, size: Any) -> Any:
        return np.tan(np.pi / 2 * rng.uniform(size=size)) * scale + loc

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        def quantile(n: Native, u: Any, loc: Any, scale: Any) -> Any:
            return _located(n, n.tan(n.mul(n.const(np.pi / 2, u), u)), loc, scale)

        return b.map(quantile, draw("random_standard_uniform"), *params)


class GumbelRV(ScipyDistribution):
    """The Gumbel distribution of maxima: ``P(x < a) = exp(-exp((loc - a) / scale))``."""

    name = "gumbel"
    parameters = {"loc": (REAL,), "scale": (AT_LEAST_0, 1.0)}
    routines = ("random_standard_uniform",)
    _print_name = ("Gumbel", "\\operatorname{Gumbel}")

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, loc: Array, scale: Array, size: Any) -> Any:
        return -np.log(-np.log(rng.uniform(size=size))) * scale + loc

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        def quantile(n: Native, u: Any, loc: Any, scale: Any) -> Any:
            return _located(n, n.neg(n.log(n.neg(n.log(u)))), loc, scale)

        return b.map(quantile, draw("random_standard_uniform"), *params)


class ParetoRV(ScipyDistribution):
    """The Pareto distribution: numbers above ``scale`` of density ``b * scale**b / x**(b + 1)``."""

    name = "pareto"
    parameters = {"b": (ABOVE_0,), "scale": (AT_LEAST_0, 1.0)}
    routines = ("random_standard_uniform",)
    _print_name = ("Pareto", "\\operatorname{Pareto}")

    @classmethod
    def rng_fn_scipy(cls, rng: np.random.Generator, b: Array, scale: Array, size: Any) -> Any:
        return np.power(1 - rng.uniform(size=size), -1 / b) * scale

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        def quantile(n: Native, u: Any, b: Any, scale: Any) -> Any:
            one = n.const(1.0, u)
            return n.mul(n.pow(n.sub(one, u), n.div(n.neg(one), b)), scale)

        return b.map(quantile, draw("random_standard_uniform"), *params)


class TruncExponentialRV(ScipyDistribution):
    """``loc`` plus exponential variables of mean ``scale`` that are less than ``b * scale``."""

    name = "truncexpon"
    parameters = {"b": (ABOVE_0,), "loc": (REAL, 0.0), "scale": (AT_LEAST_0, 1.0)}
    routines = ("random_standard_uniform",)
    _print_name = ("TruncatedExponential", "\\operatorname{TruncatedExponential}")

    @classmethod
    def rng_fn_scipy(
        cls, rng: np.random.Generator, b: Array, loc: Array, scale: Array, size: Any
    ) -> Any:
        from scipy import special  # pyright: ignore[reportMissingTypeStubs]

        u = rng.uniform(size=size)
        return -special.log1p(u * special.expm1(-b)) * scale + loc

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        def quantile(n: Native, u: Any, b: Any, loc: Any, scale: Any) -> Any:
            return _located(n, n.neg(n.log1p(n.mul(u, n.expm1(n.neg(b))))), loc, scale)

        return b.map(quantile, draw("random_standard_uniform"), *params)


class StudentTRV(ScipyDistribution):
    """Student's t distribution with ``df`` degrees of freedom, scaled and shifted."""

    name = "t"
    parameters = {"df": (ABOVE_0,), "loc": (REAL, 0.0), "scale": (AT_LEAST_0, 1.0)}
    routines = ("random_standard_t",)
    _print_name = ("StudentT", "\\operatorname{StudentT}")

    @classmethod
    def rng_fn_scipy(
        cls, rng: np.random.Generator, df: Array, loc: Array, scale: Array, size: Any
    ) -> Any:
        return rng.standard_t(df, size) * scale + loc

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        df, *others = params
        return b.map(_located, draw("random_standard_t", df), *others)


def _ratio(n: Native, x: Any, y: Any) -> Any:
    return n.div(x, y)


class GenGammaRV(ScipyDistribution):
    """``lambd`` times the ``1 / p``-th powers of gamma variables of shape ``alpha / p``."""

    name = "gengamma"
    parameters = {"alpha": (REAL, 1.0), "p": (REAL, 1.0), "lambd": (AT_LEAST_0, 1.0)}
    relations = (
        Condition(
            (0, 1),
            "alpha / p <= 0 or is NaN",
            lambda n, alpha, p: n.gt(n.div(alpha, p), n.const(0.0, p)),
        ),
        Condition((1,), "p == 0", lambda n, p: n.ne(p, n.const(0.0, p))),
    )
    routines = ("random_standard_gamma",)
    _print_name = ("GeneralizedGamma", "\\operatorname{GeneralizedGamma}")

    @classmethod
    def rng_fn_scipy(
        cls, rng: np.random.Generator, alpha: Array, p: Array, lambd: Array, size: Any
    ) -> Any:
        return rng.standard_gamma(alpha / p, size) ** (1.0 / p) * lambd

    def native(self, b: Builder[V], draw: Draws[V], *params: V) -> V:
        def power(n: Native, x: Any, p: Any, lambd: Any) -> Any:
            return n.mul(n.pow(x, n.div(n.const(1.0, p), p)), lambd)

        alpha, p, lambd = params
        return b.map(power, draw("random_standard_gamma", b.map(_ratio, alpha, p)), p, lambd)


# ------------------------------------------------------------------ the functions
uniform = UniformRV()
triangular = TriangularRV()
beta = BetaRV()
normal = NormalRV()
lognormal = LogNormalRV()
exponential = ExponentialRV()
weibull = WeibullRV()
logistic = LogisticRV()
laplace = LaplaceRV()
vonmises = VonMisesRV()
wald = WaldRV()
f = FRV()
power = PowerRV()
invgamma = InvGammaRV()
halfnormal = HalfNormalRV()
cauchy = CauchyRV()
halfcauchy = HalfCauchyRV()
gumbel = GumbelRV()
pareto = ParetoRV()
truncexpon = TruncExponentialRV()
t = StudentTRV()
gengamma = GenGammaRV()
gamma_by_scale = GammaRV()


def gamma(
    shape: TensorLike,
    rate: TensorLike | None = None,
    scale: TensorLike | None = None,
    **kwargs: Any,
) -> Any:
    """Numbers from the gamma distribution: `GammaRV`, by a rate or by a scale, which is 1 / rate.

    ``kwargs`` are arguments of `RandomVariable.__call__`.  ValueError unless one of the two is
    given.

    >>> import numpy as np
    >>> gamma(2.0, scale=3.0, size=2, rng=np.random.default_rng(1)).eval()
    array([6.46142243, 6.39207122])
    """
    if rate is not None and scale is None:
        given: Any = rate if isinstance(rate, Variable) else np.asarray(rate)
        scale = 1.0 / given
    elif scale is None or rate is not None:
        raise ValueError("gamma takes a rate or a scale, and not both.")
    return gamma_by_scale(shape, scale, **kwargs)


def chisquare(
    df: TensorLike,
    size: Size = None,
    rng: GeneratorLike | None = None,
    return_next_rng: bool = False,
) -> Any:
    """Numbers from the chi-square distribution with ``df`` degrees of freedom, by `GammaRV`.

    >>> import numpy as np
    >>> chisquare(3.0, rng=np.random.default_rng(1)).eval()
    array(3.16232991)
    """
    shape = as_tensor_variable(df) / 2.0
    return gamma_by_scale(shape, 2.0, size=size, rng=rng, return_next_rng=return_next_rng)


def rayleigh(
    scale: TensorLike = 1.0,
    *,
    size: Size = None,
    rng: GeneratorLike | None = None,
    return_next_rng: bool = False,
) -> Any:
    """Numbers from the Rayleigh distribution: ``scale`` times the length of two normal variables.

    >>> import numpy as np
    >>> rayleigh(2.0, rng=np.random.default_rng(1)).eval()
    array(2.92988604)
    """
    scale = as_tensor_variable(scale)
    size = scale.shape if size is None else size
    next_rng, square = gamma_by_scale(1.0, 2.0, size=size, rng=rng, return_next_rng=True)
    draw = FUNCTIONS["sqrt"](square) * scale
    return (next_rng, draw) if return_next_rng else draw


def standard_normal(
    *,
    size: Size = None,
    rng: GeneratorLike | None = None,
    dtype: DTypeLike | None = None,
    return_next_rng: bool = False,
) -> Any:
    """Numbers from the normal distribution with mean 0 and standard deviation 1.

    >>> import numpy as np
    >>> standard_normal(rng=np.random.default_rng(1)).eval()
    array(0.34558419)
    """
    return normal(0.0, 1.0, size=size, rng=rng, dtype=dtype, return_next_rng=return_next_rng)


standard_cauchy = partial(cauchy, loc=0.0, scale=1.0)
standard_exponential = partial(exponential, scale=1.0)
standard_gamma = partial(gamma, scale=1.0)
standard_t = partial(t, loc=0.0, scale=1.0)
random = uniform
