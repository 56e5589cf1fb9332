"""Distributions of vectors, and draws from what a tensor holds: `choice`, `permutation`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np

from phintys.graph.variable import Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Length, TensorLike
from phintys.tensor.axes import moveaxis
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.index import take
from phintys.tensor.random.discrete import categorical, integers
from phintys.tensor.random.distribution import Distribution
from phintys.tensor.random.domains import COUNT, REAL
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.random.type import GeneratorLike
from phintys.tensor.random.utils import Size, normalize_size_param, rv_size_is_none
from phintys.tensor.scalar_functions import FUNCTIONS
from phintys.tensor.shape import length, shape_tuple, specify_shape
from phintys.tensor.static import entries
from phintys.tensor.variable import TensorVariable

__all__ = [
    "ChoiceWithoutReplacement", "DirichletRV", "MultinomialRV", "MultivariateHypergeometricRV",
    "MvNormalRV", "PermutationRV", "choice", "dirichlet", "multinomial",
    "multivariate_hypergeometric", "multivariate_normal", "permutation",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Factors = Literal["cholesky", "svd", "eigh"]


class _Items:
    """The items of a batch of parameters: ``shape`` is the batch shape, ``core_ndims`` the ranks.

    Iteration gives, for each item in order, the arrays that are its parameters.
    """

    def __init__(self, params: Sequence[Array], core_ndims: Sequence[int], size: Any) -> None:
        ranks = [p.ndim - core for p, core in zip(params, core_ndims, strict=True)]
        batches = [p.shape[:n] for p, n in zip(params, ranks)]
        self.shape: tuple[int, ...] = np.broadcast_shapes(*batches) if size is None else size
        self.params = [np.broadcast_to(p, self.shape + p.shape[n:]) for p, n in zip(params, ranks)]
        self.is_repeated = all(n == 1 for n in chain(*batches))

    def __iter__(self) -> Iterator[list[Array]]:
        return ([p[i] for p in self.params] for i in np.ndindex(self.shape))

    def drawn(self, draw: Callable[..., Any], core_shape: tuple[int, ...], dtype: Any) -> Array:
        """The results of ``draw(*parameters)``, of a shape and dtype, for the items in order."""
        found = np.empty(self.shape + core_shape, dtype)
        for i, params in zip(np.ndindex(self.shape), self):
            found[i] = draw(*params)
        return found


# ------------------------------------------------------------------ vectors
class MvNormalRV(Distribution):
    """The normal distribution of vectors with a mean and a covariance matrix.

    ``method`` says how the matrix is factored: ``"cholesky"`` is the fastest; with ``"svd"`` and
    ``"eigh"`` it may be singular.  As NumPy's with ``check_valid="ignore"``, bit for bit if there
    is one matrix, else up to rounding.  The call of a compiled function raises LinAlgError if the
    factors do not exist; ValueError for another method.

    >>> import numpy as np
    >>> cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    >>> multivariate_normal([0.0, 1.0], cov, rng=np.random.default_rng(1)).eval()
    array([0.48872985, 1.89073586])
    """

    name = "multivariate_normal"
    signature = "(n),(n,n)->(n)"
    parameters = {"mean": (REAL,), "cov": (REAL,)}
    __props__ = ("name", "signature", "dtype", "inplace", "method")
    in_python = "NumPy's method draws the numbers"
    _print_name = ("MultivariateNormal", "\\operatorname{MultivariateNormal}")

    def __init__(self, *args: Any, method: Factors = "cholesky", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if method not in ("cholesky", "svd", "eigh"):
            raise ValueError(f"The method is 'cholesky', 'svd' or 'eigh', not {method!r}.")
        self.method: Factors = method

    __str__ = RandomVariable.__str__

    def __call__(
        self,
        mean: TensorLike,
        cov: TensorLike,
        size: Size = None,
        method: Factors | None = None,
        **kwargs: Any,
    ) -> Any:
        """Draws; ``method`` in place of that of the op.  See `RandomVariable.__call__`."""
        op = self if method in (None, self.method) else self.with_props(method=method)
        return RandomVariable.__call__(op, mean, cov, size=size, **kwargs)

    def rng_fn(self, rng: np.random.Generator, mean: Array, cov: Array, size: Any) -> Array:
        batch = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if size is None else size
        z = rng.standard_normal((*batch, mean.shape[-1]))
        factors = self._factors(cov)
        with np.errstate(invalid="ignore"):  # OpenBLAS may set the flag for finite products
            if all(n == 1 for n in cov.shape[:-2]):
                factor = factors.reshape(cov.shape[-2:])
                return mean + (z.reshape(-1, mean.shape[-1]) @ factor.T).reshape(z.shape)
            return mean + (factors @ z[..., None])[..., 0]

    def _factors(self, cov: Array) -> Array:
        """Matrices whose products with their transposes are ``cov``."""
        cov = cov.astype(np.float64)
        if self.method == "cholesky":
            return np.linalg.cholesky(cov)
        if self.method == "svd":
            u, s, _ = np.linalg.svd(cov)
        else:
            s, u = np.linalg.eigh(cov)
        return u * np.sqrt(np.abs(s))[..., None, :]


class DirichletRV(Distribution):
    """The Dirichlet distribution: vectors of probabilities, with concentrations ``alphas``.

    The call of a compiled function raises ValueError if a concentration is negative.
    """

    in_python = "NumPy's method draws the numbers"

    name = "dirichlet"
    signature = "(a)->(a)"
    parameters = {"alphas": (REAL,)}
    _print_name = ("Dirichlet", "\\operatorname{Dirichlet}")

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, alphas: Array, size: Any) -> Array:
        items, k = _Items([alphas], [1], size), alphas.shape[-1]
        if items.is_repeated:
            return rng.dirichlet(alphas.reshape(k), items.shape)
        if np.any(alphas < 0):
            raise ValueError("alpha < 0")
        if k == 0 or np.any(alphas.max(axis=-1) < 0.1):  # NumPy has another algorithm for these
            return items.drawn(rng.dirichlet, (k,), "float64")
        numbers = rng.standard_gamma(items.params[0])
        total = np.cumsum(numbers, axis=-1)[..., -1:]  # the order of NumPy's sum
        with np.errstate(divide="ignore", invalid="ignore"):
            return numbers * (1.0 / total)


class MultinomialRV(Distribution):
    """How often each of several outcomes with probabilities ``p`` occurs in ``n`` trials.

    The last probability is taken to be what the others leave.  The call of a compiled function
    raises ValueError if ``n`` is negative, or the probabilities are none.
    """

    in_python = "NumPy's method draws the numbers"

    name = "multinomial"
    dtype = "int64"
    signature = "(),(p)->(p)"
    parameters = {"n": (COUNT,), "p": (REAL,)}
    _print_name = ("Multinomial", "\\operatorname{Multinomial}")


class MultivariateHypergeometricRV(Distribution):
    """How many of each colour are among ``nsample`` of ``colors``, drawn without replacement.

    ``method`` is ``"marginals"`` or ``"count"``: NumPy's algorithms, which give other numbers.  The
    call of a compiled function raises ValueError if a number is negative, or there are fewer than
    ``nsample``; ValueError for another method.

    >>> import numpy as np
    >>> multivariate_hypergeometric([3, 4, 5], 4, rng=np.random.default_rng(1)).eval()
    array([1, 2, 1])
    """

    name = "multivariate_hypergeometric"
    dtype = "int64"
    signature = "(k),()->(k)"
    parameters = {"colors": (COUNT,), "nsample": (COUNT,)}
    __props__ = ("name", "signature", "dtype", "inplace", "method")
    in_python = "NumPy's method draws the numbers"
    _print_name = (
        "MultivariateHypergeometric",
        "\\operatorname{MultivariateHypergeometric}",
    )

    def __init__(
        self, *args: Any, method: Literal["marginals", "count"] = "marginals", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        if method not in ("marginals", "count"):
            raise ValueError(f"The method is 'marginals' or 'count', not {method!r}.")
        self.method: Literal["marginals", "count"] = method

    __str__ = RandomVariable.__str__

    def rng_fn(self, rng: np.random.Generator, colors: Array, nsample: Array, size: Any) -> Array:
        items, k = _Items([colors, nsample], [1, 0], size), colors.shape[-1]

        def draw(colors: Array, nsample: Any) -> Array:
            return rng.multivariate_hypergeometric(colors, int(nsample), method=self.method)

        return items.drawn(draw, (k,), "int64")


# ------------------------------------------------------------------ draws from what a tensor holds
class PermutationRV(RandomVariable):
    """The items along the first axis of a parameter, or the integers below it, in any order."""

    in_python = "NumPy's method draws the numbers"

    name = "permutation"
    _print_name = ("Permutation", "\\operatorname{Permutation}")

    def _supp_shape_from_params(
        self,
        dist_params: Sequence[Variable],
        param_shapes: Sequence[Sequence[Variable]] | None = None,
    ) -> Sequence[Length]:
        return [FUNCTIONS["maximum"](dist_params[0], 0)]

    def rng_fn(self, rng: np.random.Generator, x: Array, size: Any) -> Array:
        (core,) = self._ranks()
        items = _Items([x], [core], size)
        shape = x.shape[x.ndim - core :] or (max(int(np.ravel(x)[0]), 0),)
        return items.drawn(lambda x: rng.permutation(x if core else int(x)), shape, x.dtype)


class ChoiceWithoutReplacement(RandomVariable):
    """Different items along the first axis of a parameter, or different integers below it.

    The parameters are ``a``, perhaps the probabilities ``p`` of the items, and the shape of what is
    drawn at once.
    """

    in_python = "NumPy's method draws the numbers"

    name = "choice_without_replacement"
    _print_name = (
        "ChoiceWithoutReplacement",
        "\\operatorname{ChoiceWithoutReplacement}",
    )

    @property
    def has_p_param(self) -> bool:
        """Whether the probabilities are a parameter."""
        return len(self._ranks()) == 3

    def _supp_shape_from_params(
        self,
        dist_params: Sequence[Variable],
        param_shapes: Sequence[Sequence[Variable]] | None = None,
    ) -> Sequence[Length]:
        core, size = self._ranks()[0], as_tensor_variable(dist_params[-1])
        drawn = entries(size.reshape([-1]) if size.type.ndim > 1 else size)
        lengths = list(shape_tuple(dist_params[0]) if param_shapes is None else param_shapes[0])
        return [*drawn, *lengths[len(lengths) - max(core - 1, 0) :]]

    def rng_fn(self, rng: np.random.Generator, *params: Any) -> Array:
        *given, size = params
        items = _Items(given, self._ranks(), size)
        core, drawn = self._ranks()[0], tuple(given[-1][(0,) * (given[-1].ndim - 1)])
        rest = given[0].shape[given[0].ndim - core + 1 :] if core else ()

        def draw(a: Array, *others: Array) -> Array:
            p = others[0] if self.has_p_param else None
            return rng.choice(a if core else int(a), drawn, replace=False, p=p)

        return items.drawn(draw, (*drawn, *rest), given[0].dtype)


# ------------------------------------------------------------------ the functions
multivariate_normal = MvNormalRV()
dirichlet = DirichletRV()
multinomial = MultinomialRV()
multivariate_hypergeometric = MultivariateHypergeometricRV()


def permutation(
    x: TensorLike,
    size: Size = None,
    rng: GeneratorLike | None = None,
    return_next_rng: bool = False,
) -> Any:
    """The items of ``x`` along its first axis in any order; of an integer, the integers below it.

    The other parameters are those of `RandomVariable.__call__`.  TypeError if ``x`` is a number
    that is not an integer.

    >>> import numpy as np
    >>> permutation(np.arange(4.0), rng=np.random.default_rng(3)).eval()
    array([3., 2., 1., 0.])
    """
    x = as_tensor_variable(x)
    signature = f"{_core('x', x.type.ndim)}->{_core('x', x.type.ndim) if x.type.ndim else '(x)'}"
    op = PermutationRV(signature=signature, dtype=_population(x).type.dtype)
    return op(x, size=size, rng=rng, return_next_rng=return_next_rng)


def choice(
    a: TensorLike,
    size: Size = None,
    replace: bool = True,
    p: TensorLike | None = None,
    rng: GeneratorLike | None = None,
    return_next_rng: bool = False,
    axis: int = 0,
) -> Any:
    """Items of ``a`` along an axis, or integers below the integer ``a``.

    The numbers are those of `numpy.random.Generator.choice`.

    Parameters
    ----------
    a
        a tensor or an integer
    size
        the shape of what is drawn, in the place of the axis; None: one item
    replace
        False: the items are different
    p
        the probabilities of the items; None: all are equal
    rng, return_next_rng
        as for `RandomVariable.__call__`
    axis
        of ``a``

    TypeError if ``a`` is a number that is not an integer.  The call of a compiled function raises
    ValueError if there are too few items, or ``p`` are no probabilities.

    >>> import numpy as np
    >>> choice([10, 20, 30], size=2, rng=np.random.default_rng(3)).eval()
    array([30, 10])
    """
    a = _population(as_tensor_variable(a))
    count = a if a.type.ndim == 0 else length(a, axis)
    if p is not None:
        p = specify_shape(as_tensor_variable(p), (count,))
    if replace or rv_size_is_none(normalize_size_param(size)):
        return _with_replacement(a, count, size, p, axis, rng, return_next_rng)
    size = normalize_size_param(size)
    drawn = size.type.shape[0]
    items = moveaxis(a, axis, 0) if a.type.ndim else a
    core = [f"a{k}" for k in range(a.type.ndim)]
    probable = [] if p is None else [p]
    inputs = [_core("a", a.type.ndim), *(["(a0)" if core else "(a)"] * len(probable)), f"({drawn})"]
    outputs = ",".join([*(f"s{k}" for k in range(drawn)), *core[1:]])
    op = ChoiceWithoutReplacement(signature=f"{','.join(inputs)}->({outputs})", dtype=a.type.dtype)
    next_rng, draw = op(items, *probable, size, rng=rng, return_next_rng=True)
    if a.type.ndim and axis % a.type.ndim:
        first = axis % a.type.ndim
        draw = moveaxis(draw, list(range(drawn)), list(range(first, first + drawn)))
    return (next_rng, draw) if return_next_rng else draw


def _with_replacement(
    a: TensorVariable,
    count: TensorVariable,
    size: Size,
    p: TensorVariable | None,
    axis: int,
    rng: GeneratorLike | None,
    return_next_rng: bool,
) -> Any:
    """`choice` where an item may be drawn several times."""
    if p is None:
        next_rng, draw = integers(0, count, size=size, rng=rng, return_next_rng=True)
    else:
        next_rng, draw = categorical(p, size=size, rng=rng, return_next_rng=True)
    if a.type.ndim:
        draw = take(a, draw, axis=axis)
    return (next_rng, draw) if return_next_rng else draw


def _population(x: TensorVariable) -> TensorVariable:
    """``x``; TypeError if it is a number that is not an integer."""
    if x.type.ndim == 0 and x.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"Draw from a tensor or from the integers below an integer, not from {x}.")
    return x


def _core(letter: str, ndim: int) -> str:
    """The core axes of a parameter in a signature.

    >>> _core("x", 2)
    '(x0,x1)'
    """
    return f"({','.join(f'{letter}{k}' for k in range(ndim))})"
