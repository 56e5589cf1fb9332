"""The distributions under PyTensor's names: classes, functions, and methods of generators."""
# ruff: noqa: F403

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

from phintys.tensor.aliases import TensorLike
from phintys.tensor.random import continuous, discrete, multivariate
from phintys.tensor.random.continuous import *
from phintys.tensor.random.discrete import *
from phintys.tensor.random.distribution import ScipyRandomVariable as ScipyRandomVariable
from phintys.tensor.random.multivariate import *
from phintys.tensor.random.variable import RandomGeneratorVariable, warn_reuse
from phintys.tensor.variable import TensorVariable

_gamma = continuous.gamma_by_scale  # PyMC imports it by this name
_MODULES = (continuous, discrete, multivariate)

#: name of a function that draws, and of the method of variables of generators -> the function
DISTRIBUTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(module, name)
    for module in _MODULES
    for name in module.__all__
    if not isinstance(getattr(module, name), type)
}


def _method(
    name: str, distribution: Callable[..., Any]
) -> Callable[..., tuple[RandomGeneratorVariable, TensorVariable]]:
    """The method of variables of generators that draws from a distribution."""

    def draw(
        self: RandomGeneratorVariable, *args: TensorLike, **kwargs: Any
    ) -> tuple[RandomGeneratorVariable, TensorVariable]:
        return distribution(*args, rng=self, return_next_rng=True, **kwargs)

    draw.__name__ = name
    draw.__doc__ = f"The generator after the draw, and the draw: `pt.random.{name}`."
    own = [p for p in signature(distribution).parameters.values() if p.name not in _GIVEN]
    own_self = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    draw.__dict__["__signature__"] = Signature([own_self, *own])
    return warn_reuse(draw)


#: parameters of the functions that the methods give
_GIVEN = ("rng", "return_next_rng")

for _name, _distribution in DISTRIBUTIONS.items():
    setattr(RandomGeneratorVariable, _name, _method(_name, _distribution))
