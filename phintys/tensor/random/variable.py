"""Variables whose values are random generators: `rng` and `shared_rng`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from phintys import bitgen
from phintys.graph.shared import SharedVariable, shared_constructor
from phintys.graph.variable import Constant, Variable
from phintys.tensor.random.type import RandomGeneratorType, random_generator_type

_UNSET: Any = object()
#: arguments of `numpy.random.default_rng`
Seed = (
    int
    | Sequence[int]
    | np.random.SeedSequence
    | np.random.BitGenerator
    | np.random.Generator
    | None
)


class RandomGeneratorVariable(Variable):
    """A variable whose values are instances of `numpy.random.Generator`.

    It has a method for each distribution, which returns the variable of the generator after the
    draw, and that of the numbers.  Draws from one variable use the same state, so they give the
    same numbers: draw from the variable that the last draw returned.

    >>> import numpy as np, phintys
    >>> rng = phintys.shared(np.random.default_rng(3))
    >>> next_rng, x = rng.normal(0.0, 1.0, size=2)
    >>> f = phintys.function([], x, updates={rng: next_rng})
    >>> expected = np.random.default_rng(3)
    >>> bool(np.all(f() == expected.normal(size=2)) and np.all(f() == expected.normal(size=2)))
    True
    """

    __slots__ = ()


class RandomGeneratorConstant(Constant, RandomGeneratorVariable):
    """A constant random generator, which no draw changes."""

    __slots__ = ()


class RandomGeneratorSharedVariable(SharedVariable, RandomGeneratorVariable):
    """A shared variable whose value is a random generator."""

    __slots__ = ()

    def get_value(
        self, borrow: bool = False, return_internal_type: bool = False
    ) -> np.random.Generator:
        """The generator: an independent copy, unless ``borrow``."""
        value = self.container.value
        return value if borrow else bitgen.copied(value)

    def set_value(
        self,
        new_value: np.random.Generator | None = None,
        borrow: bool = False,
        *,
        seed: Seed = _UNSET,
    ) -> None:
        """Set the generator to a copy of ``new_value`` (itself if ``borrow``), or by a seed.

        ``seed`` is an argument of `numpy.random.default_rng`.  ValueError unless exactly one of the
        two is given, TypeError if the value is no `numpy.random.Generator`.
        """
        self.container.value = _generator(new_value, seed, borrow)


RandomGeneratorType.variable_type = RandomGeneratorVariable
RandomGeneratorType.constant_type = RandomGeneratorConstant


def _generator(value: object, seed: Seed, borrow: bool) -> np.random.Generator:
    """A generator from a value or a seed."""
    if (value is None) == (seed is _UNSET):
        raise ValueError("Give a generator or a seed, and not both.")
    if value is None:
        return np.random.default_rng(seed)
    value = random_generator_type.filter(value)
    return value if borrow else bitgen.copied(value)


def randomgen_constructor(
    value: np.random.Generator,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
) -> RandomGeneratorSharedVariable:
    """A shared generator with a copy of ``value``, or ``value`` itself if ``borrow``.

    TypeError for a `numpy.random.RandomState`.
    """
    value = _generator(value, _UNSET, borrow)
    return RandomGeneratorSharedVariable(
        random_generator_type, value, strict, allow_downcast, name=name
    )


for _class in (np.random.RandomState, np.random.Generator):
    shared_constructor.register(_class, randomgen_constructor)


def shared_rng(
    value: np.random.Generator | None = None,
    *,
    seed: Seed = _UNSET,
    name: str | None = None,
    borrow: bool = False,
) -> RandomGeneratorSharedVariable:
    """A shared variable of a random generator.

    Parameters
    ----------
    value
        its initial value, a `numpy.random.Generator`, which is copied unless ``borrow``
    seed
        instead of a value: an argument of `numpy.random.default_rng`; without either, the generator
        has a seed of its own
    name
        name of the variable

    ValueError if both are given, TypeError if the value is no generator.

    >>> shared_rng(seed=1, name="rng")
    rng
    """
    if value is None and seed is _UNSET:
        seed = None
    return randomgen_constructor(_generator(value, seed, borrow), name, borrow=True)


def rng(name: str | None = None) -> RandomGeneratorVariable:
    """A variable whose values are random generators.

    >>> rng("state")
    state
    """
    return random_generator_type(name)


def warn_reuse(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method that draws from a variable: it warns from its second use on."""

    @wraps(method)
    def drawing(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self.tag, "is_used", False):
            warnings.warn(
                f"{self} has been drawn from already, so this draw gives the same numbers. Draw "
                "from the generator that the last draw returned.",
                stacklevel=2,
            )
        found = method(self, *args, **kwargs)
        self.tag.is_used = True
        return found

    return drawing
