"""How JAX draws from distributions: a function for each routine of NumPy, and for some ops.

A `Distribution` says in its method ``native`` what it computes from the draws of routines.  JAX
runs that method on its own arrays, so a distribution needs nothing here but its routines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.jax.dispatch import length, require
from phintys.backends.jax.native import JaxInstructions, astype
from phintys.tensor.random.basic import (
    CategoricalRV,
    ChoiceWithoutReplacement,
    DirichletRV,
    IntegersRV,
    MultinomialRV,
    MvNormalRV,
    PermutationRV,
)
from phintys.tensor.random.distribution import Distribution

#: ``sample(key, shape, dtype, *parameters)``
Sample = Callable[..., Any]

# ---------------------------------------------------------------------------- routines


def _gamma(key: Any, shape: Any, dtype: Any, a: Any, scale: Any = 1.0) -> Any:
    return scale * jnp.where(a > 0, jax.random.gamma(key, a, shape, dtype), a)


def _chisquare(key: Any, shape: Any, dtype: Any, df: Any) -> Any:
    return _gamma(key, shape, dtype, df / 2, 2.0)


def _f(key: Any, shape: Any, dtype: Any, dfnum: Any, dfden: Any) -> Any:
    first, second = jax.random.split(key)
    above = _chisquare(first, shape, dtype, dfnum) / dfnum
    return above / (_chisquare(second, shape, dtype, dfden) / dfden)


def _exponential(key: Any, shape: Any, dtype: Any, scale: Any = 1.0) -> Any:
    return scale * jax.random.exponential(key, shape, dtype)


def _triangular(key: Any, shape: Any, dtype: Any, left: Any, mode: Any, right: Any) -> Any:
    """The quantiles of uniform numbers."""
    u = jax.random.uniform(key, shape, dtype)
    width, rising = right - left, mode - left
    below = left + jnp.sqrt(u * width * rising)
    above = right - jnp.sqrt((1 - u) * width * (right - mode))
    return jnp.where(u * width <= rising, below, above)


def _binomial(key: Any, shape: Any, dtype: Any, p: Any, n: Any) -> Any:
    real = jnp.result_type(float)
    p, n = jnp.broadcast_arrays(jnp.asarray(p, real), jnp.asarray(n, real))
    drawn = jax.random.binomial(key, n, jnp.clip(p, 0, 1), shape, real)
    return jnp.where(p >= 1, n, jnp.where(p <= 0, 0, drawn)).astype(dtype)


def _poisson(key: Any, shape: Any, dtype: Any, lam: Any) -> Any:
    return jax.random.poisson(key, lam, shape, dtype)


def _negative_binomial(key: Any, shape: Any, dtype: Any, n: Any, p: Any) -> Any:
    first, second = jax.random.split(key)
    rate = _gamma(first, shape, jnp.result_type(float), n, (1 - p) / p)
    return _poisson(second, shape, dtype, rate)


def _geometric(key: Any, shape: Any, dtype: Any, p: Any) -> Any:
    """The number of trials, from the logarithm of a uniform number in (0, 1]."""
    u = 1 - jax.random.uniform(key, shape, jnp.result_type(float))
    trials = jnp.ceil(jnp.log(u) / jnp.log1p(-p))
    return jnp.where(p >= 1, 1, jnp.maximum(trials, 1)).astype(dtype)


def _vonmises(key: Any, shape: Any, dtype: Any, mu: Any, kappa: Any) -> Any:
    """Best and Fisher's rejection from a wrapped Cauchy distribution (Applied Statistics 28, 1979).

    All elements draw until each has been accepted once.
    """
    mu, kappa = jnp.broadcast_to(mu, shape), jnp.broadcast_to(kappa, shape)
    tau = 1 + jnp.sqrt(1 + 4 * kappa**2)
    rho = (tau - jnp.sqrt(2 * tau)) / jnp.maximum(2 * kappa, jnp.finfo(dtype).tiny)
    s = jnp.where(kappa < 1e-5, 1 / jnp.maximum(kappa, 1e-30), (1 + rho**2) / (2 * rho))

    def attempt(state: Any) -> Any:
        key, angle, done = state
        key, *keys = jax.random.split(key, 4)
        u, v, w = (jax.random.uniform(k, shape, dtype) for k in keys)
        z = jnp.cos(jnp.pi * u)
        cosine = (1 + s * z) / (s + z)
        y = kappa * (s - cosine)
        accepted = (y * (2 - y) - v >= 0) | (jnp.log(y / v) + 1 - y >= 0)
        found = jnp.sign(w - 0.5) * jnp.arccos(jnp.clip(cosine, -1, 1))
        return key, jnp.where(accepted & ~done, found, angle), done | accepted

    uniform = jnp.pi * (2 * jax.random.uniform(key, shape, dtype) - 1)
    done = ~(kappa > 1e-8)  # the distribution is uniform
    _, angle, _ = jax.lax.while_loop(
        lambda state: ~jnp.all(state[2]), attempt, (key, uniform, done)
    )
    return jnp.remainder(angle + mu + jnp.pi, 2 * jnp.pi) - jnp.pi


def _scaled(draw: Any) -> Sample:
    """A routine with a location and a scale, of the function that draws without them."""
    return lambda key, shape, dtype, loc, scale: loc + scale * draw(key, shape, dtype)


def _of_uniform(quantile: Callable[..., Any]) -> Sample:
    """A routine that computes ``quantile(u, *parameters)`` of uniform numbers in (0, 1]."""
    return lambda key, shape, dtype, *params: quantile(
        1 - jax.random.uniform(key, shape, dtype), *params
    )


#: by the name of a routine in `phintys.scalar.native.DISTRIBUTIONS`
ROUTINES: dict[str, Sample] = {
    "random_beta": lambda key, shape, dtype, a, b: jax.random.beta(key, a, b, shape, dtype),
    "random_binomial": _binomial,
    "random_exponential": _exponential,
    "random_f": _f,
    "random_gamma": _gamma,
    "random_geometric": _geometric,
    "random_laplace": _scaled(jax.random.laplace),
    "random_logistic": _scaled(jax.random.logistic),
    "random_lognormal": lambda *args: jnp.exp(ROUTINES["random_normal"](*args)),
    "random_negative_binomial": _negative_binomial,
    "random_normal": _scaled(jax.random.normal),
    "random_poisson": _poisson,
    "random_power": _of_uniform(lambda u, a: u ** (1 / a)),
    "random_standard_exponential": _exponential,
    "random_standard_gamma": _gamma,
    "random_standard_normal": jax.random.normal,
    "random_standard_t": lambda key, shape, dtype, df: jax.random.t(key, df, shape, dtype),
    "random_standard_uniform": jax.random.uniform,
    "random_triangular": _triangular,
    "random_uniform": _scaled(jax.random.uniform),
    "random_vonmises": _vonmises,
    "random_wald": lambda key, shape, dtype, mean, scale: (
        scale * jax.random.wald(key, mean / scale, shape, dtype)
    ),
    "random_weibull": _of_uniform(lambda u, a: (-jnp.log(u)) ** (1 / a)),
}


# ------------------------------------------------------------------- distributions of routines


class _Arrays:
    """The builder that ``native`` gets: its values are JAX arrays."""

    @staticmethod
    def map(function: Callable[..., Any], *values: Any) -> Any:
        return function(JaxInstructions, *jnp.broadcast_arrays(*values))

    @staticmethod
    def cast(x: Any, dtype: str) -> Any:
        return astype(x, dtype)

    @staticmethod
    def const(value: float, dtype: str) -> Any:
        return jnp.asarray(value, jnp.result_type(float if dtype[0] == "f" else int))


class _Draws:
    """Draws by routines, each with a key of its own; the second parameter of ``native``."""

    def __init__(self, key: Any, shape: tuple[int, ...], dtype: Any) -> None:
        self.key, self.shape, self.dtype = key, shape, dtype

    def __call__(self, routine: str, *params: Any) -> Any:
        self.key, own = jax.random.split(self.key)
        dtype = jnp.result_type(int) if routine in _OF_INTEGERS else self.dtype
        return ROUTINES[routine](own, self.shape, dtype, *params)


_OF_INTEGERS = (
    "random_binomial", "random_geometric", "random_negative_binomial", "random_poisson",
)  # fmt: skip


@singledispatch
def jax_sample_fn(op: Any, node: Any = None) -> Sample | None:
    """A function ``sample(key, shape, dtype, *parameters)`` of JAX that draws; None: there is none.

    ``shape`` is the batch shape, and the shape of a draw follows it.  Register functions for
    further distributions with ``@jax_sample_fn.register(MyRV)``.
    """
    return None


@jax_sample_fn.register(Distribution)
def _(op: Any, node: Any = None) -> Sample | None:
    if not op.draws_natively() or not all(r in ROUTINES for r in op.routines):
        return None

    def sample(key: Any, shape: Any, dtype: Any, *params: Any) -> Any:
        real = dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(float)
        return op.native(_Arrays, _Draws(key, shape, real), *params).astype(dtype)

    return sample


# ------------------------------------------------------------------------- single ops


@jax_sample_fn.register(IntegersRV)
def _(op: Any, node: Any = None) -> Sample:
    return lambda key, shape, dtype, low, high: jax.random.randint(key, shape, low, high, dtype)


@jax_sample_fn.register(CategoricalRV)
def _(op: Any, node: Any = None) -> Sample:
    def sample(key: Any, shape: Any, dtype: Any, p: Any) -> Any:
        total = jnp.sum(p, axis=-1)
        require(~(jnp.abs(total - 1) > 1e-5), "the sum of p is not 1", ValueError)
        logits = jnp.log(jnp.maximum(p, 0.0))
        return jax.random.categorical(key, logits, -1, shape).astype(dtype)

    return sample


@jax_sample_fn.register(MvNormalRV)
def _(op: Any, node: Any = None) -> Sample:
    def sample(key: Any, shape: Any, dtype: Any, mean: Any, cov: Any) -> Any:
        z = jax.random.normal(key, (*shape, mean.shape[-1]), dtype)
        return mean + (_factors(op.method, cov) @ z[..., None])[..., 0]

    return sample


def _factors(method: str, cov: Any) -> Any:
    """Matrices whose products with their transposes are ``cov``."""
    if method == "cholesky":
        found = jnp.linalg.cholesky(cov)
        passed = ~jnp.any(jnp.isnan(found)) | jnp.any(jnp.isnan(cov))
        require(passed, "Matrix is not positive definite", np.linalg.LinAlgError)
        return found
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
    else:
        s, u = jnp.linalg.eigh(cov)
    return u * jnp.sqrt(jnp.abs(s))[..., None, :]


@jax_sample_fn.register(DirichletRV)
def _(op: Any, node: Any = None) -> Sample:
    def sample(key: Any, shape: Any, dtype: Any, alphas: Any) -> Any:
        require(~jnp.any(alphas < 0), "alpha < 0", ValueError)
        return jax.random.dirichlet(key, alphas, shape, dtype)

    return sample


@jax_sample_fn.register(MultinomialRV)
def _(op: Any, node: Any = None) -> Sample:
    def sample(key: Any, shape: Any, dtype: Any, n: Any, p: Any) -> Any:
        """Binomial numbers, one outcome after the other; the last takes what is left."""
        require(~jnp.any(~((p >= 0) & (p <= 1))), "p < 0, p > 1 or p is NaN", ValueError)
        left = 1 - jnp.cumsum(p, axis=-1) + p
        ratios = jnp.moveaxis(jnp.where(left > 0, p / left, 1).at[..., -1].set(1), -1, 0)
        keys = jax.random.split(key, len(ratios))

        def outcome(trials: Any, given: Any) -> tuple[Any, Any]:
            found = _binomial(given[0], shape, dtype, jnp.clip(given[1], 0, 1), trials)
            return trials - found, found

        trials = jnp.broadcast_to(n, shape).astype(dtype)
        return jnp.moveaxis(jax.lax.scan(outcome, trials, (keys, ratios))[1], 0, -1)

    return sample


@jax_sample_fn.register(PermutationRV)
def _(op: Any, node: Any = None) -> Sample:
    (core,) = op.ndims_params

    def sample(key: Any, shape: Any, dtype: Any, x: Any) -> Any:
        def draw(key: Any, x: Any) -> Any:
            return jax.random.permutation(key, x).astype(dtype)

        if core == 0:
            x = jnp.arange(max(length(np.ravel(x)[0], node), 0), dtype=dtype)
            return _each(draw, key, shape, [x], [1])
        return _each(draw, key, shape, [x], [core])

    return sample


@jax_sample_fn.register(ChoiceWithoutReplacement)
def _(op: Any, node: Any = None) -> Sample:
    core = op.ndims_params[0]

    def sample(key: Any, shape: Any, dtype: Any, a: Any, *others: Any) -> Any:
        drawn = tuple([length(n, node) for n in np.ravel(others[-1])])
        if core == 0:
            a = jnp.arange(length(np.ravel(a)[0], node), dtype=dtype)
        p = [others[0]] if op.has_p_param else []

        def draw(key: Any, a: Any, *p: Any) -> Any:
            return jax.random.choice(key, a, drawn, False, *p)

        return _each(draw, key, shape, [a, *p], [max(core, 1), *([1] * len(p))])

    return sample


def _each(
    draw: Callable[..., Any], key: Any, shape: Any, params: Sequence[Any], cores: Sequence[int]
) -> Any:
    """``draw(key, *params)`` for each item of a batch, with keys of its own."""
    params = [
        jnp.broadcast_to(p, (*shape, *p.shape[p.ndim - core :])) for p, core in zip(params, cores)
    ]
    if not shape:
        return draw(key, *params)
    size = int(np.prod(shape))
    flat = [p.reshape(size, *p.shape[len(shape) :]) for p in params]
    found = jax.vmap(draw)(jax.random.split(key, size), *flat)
    return found.reshape(*shape, *found.shape[1:])
