"""The distributions: a class for each, and a method of variables of generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phintys.tensor.aliases import TensorLike
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.random.utils import Size
from phintys.tensor.random.variable import RandomGeneratorVariable, warn_reuse
from phintys.tensor.variable import TensorVariable


class NormalRV(RandomVariable):
    """The normal distribution with mean ``loc`` and standard deviation ``scale``."""

    name = "normal"
    signature = "(),()->()"
    dtype = "floatX"
    routine = "random_normal"
    non_negative = (1,)
    _print_name = ("Normal", "\\operatorname{Normal}")

    def __call__(
        self, loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: Size = None, **kwargs: Any
    ) -> Any:
        """Numbers from the normal distribution; see `RandomVariable.__call__`.

        They are those of `numpy.random.Generator.normal`, and the generator changes alike.  The
        call of a compiled function raises ValueError if ``scale`` is negative.

        >>> import numpy as np, phintys.tensor as pt
        >>> rng = np.random.default_rng(1)
        >>> pt.random.normal([0.0, 10.0], 1.0, rng=rng).eval()
        array([ 0.34558419, 10.82161814])
        """
        return super().__call__(loc, scale, size=size, **kwargs)


normal = NormalRV()

#: name of the method of variables of generators -> the op
DISTRIBUTIONS: dict[str, RandomVariable] = {"normal": normal}


def _method(
    distribution: RandomVariable,
) -> Callable[..., tuple[RandomGeneratorVariable, TensorVariable]]:
    """The method of variables of generators that draws from a distribution."""

    def draw(
        self: RandomGeneratorVariable, *args: TensorLike, **kwargs: Any
    ) -> tuple[RandomGeneratorVariable, TensorVariable]:
        return distribution(*args, rng=self, return_next_rng=True, **kwargs)

    draw.__name__ = str(distribution.name)
    draw.__doc__ = f"The generator after the draw, and the draw: `{type(distribution).__name__}`."
    return warn_reuse(draw)


for _name, _distribution in DISTRIBUTIONS.items():
    setattr(RandomGeneratorVariable, _name, _method(_distribution))
