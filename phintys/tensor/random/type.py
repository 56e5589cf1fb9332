"""Types of random generators."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from phintys import bitgen
from phintys.graph.type import Type
from phintys.graph.variable import Variable

T = TypeVar("T", bound=np.random.Generator)
#: what is accepted as a generator
GeneratorLike = Variable | np.random.Generator


class RandomType(Type[T]):
    """Base class of the types of random generators, whose values are objects with a state."""

    has_state = True

    @classmethod
    def may_share_memory(cls, a: np.random.Generator, b: np.random.Generator) -> bool:
        return a.bit_generator is b.bit_generator


class AbstractRandomGeneratorType(RandomType[np.random.Generator]):
    """A type whose values are instances of `numpy.random.Generator`."""

    __props__ = ()

    def filter(
        self, data: object, strict: bool = False, allow_downcast: bool | None = None
    ) -> np.random.Generator:
        """``data``, which must be a `numpy.random.Generator`; else TypeError."""
        if isinstance(data, np.random.Generator):
            return data
        hint = ""
        if isinstance(data, np.random.RandomState):
            hint = " Instead of a RandomState, use np.random.default_rng(seed)."
        raise TypeError(f"{self} needs a numpy.random.Generator, got {type(data).__name__}.{hint}")

    @classmethod
    def values_eq(cls, a: np.random.Generator, b: np.random.Generator) -> bool:
        """Whether two generators are in the same state of the same kind of bit generator."""
        x, y = a.bit_generator, b.bit_generator
        return type(x) is type(y) and _equal(x.state, y.state)

    def copy_value(self, value: np.random.Generator) -> np.random.Generator:
        """A generator in the same state; see `phintys.bitgen.copied`."""
        return bitgen.copied(value)


class RandomGeneratorType(AbstractRandomGeneratorType):
    """The type of `numpy.random.Generator`; its instance is ``random_generator_type``.

    >>> import numpy as np
    >>> random_generator_type.is_valid_value(np.random.default_rng(1))
    True
    """

    def __str__(self) -> str:
        return "RandomGeneratorType"

    __repr__ = __str__


random_generator_type = RandomGeneratorType()


def _equal(a: Any, b: Any) -> bool:
    """Whether two states, dicts of dicts, arrays and numbers, are equal."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    return bool(np.array_equal(a, b))


def as_rng(x: object) -> Variable:
    """``x`` as a variable of a type of random generators; TypeError if it is nothing of the kind.

    A `numpy.random.Generator` becomes a constant: a copy of it.
    """
    if isinstance(x, Variable) and isinstance(x.type, RandomType):
        return x
    if isinstance(x, np.random.Generator):
        return random_generator_type.make_constant(bitgen.copied(x))
    raise TypeError(
        "A draw needs a random generator: a variable such as random.rng() or "
        f"random.shared_rng(seed), not {x!r}."
    )
