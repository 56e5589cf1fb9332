"""`RandomStream`: draws from generators of its own, the interface of older programs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from phintys.tensor.random import basic
from phintys.tensor.random.variable import RandomGeneratorSharedVariable, randomgen_constructor

__all__ = ["RandomStream"]


class RandomStream:
    """Draws whose generators are shared variables with default updates.

    Each draw has a generator of its own, with a seed of its own, so a compiled function gives new
    numbers in each call without ``updates``.  Its methods are the distributions of ``namespace``.
    Deprecated (FutureWarning): draw from `phintys.tensor.random.shared_rng` instead.

    Parameters
    ----------
    seed
        an argument of `numpy.random.SeedSequence`, from which the seeds of the generators are
        spawned; None: another one in each process
    namespace
        a module: the names in its ``__all__`` are the methods; None: `phintys.tensor.random.basic`
    rng_ctor
        makes a generator from a `numpy.random.SeedSequence`

    Attributes
    ----------
    default_instance_seed
        the argument ``seed``
    gen_seedgen
        the SeedSequence from which the next seeds are spawned
    state_updates
        the pairs of each generator and the variable of its state after the draw

    >>> import phintys, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FutureWarning)
    ...     stream = RandomStream(seed=5)
    >>> f = phintys.function([], stream.normal(0.0, 1.0, size=2))
    >>> first, second = f(), f()
    >>> stream.seed(5)
    >>> bool((f() == first).all() and (f() == second).all())
    True
    """

    def __init__(
        self,
        seed: Any = None,
        namespace: ModuleType | None = None,
        rng_ctor: Callable[[np.random.SeedSequence], np.random.Generator] = np.random.default_rng,
    ) -> None:
        warnings.warn(
            "RandomStream is deprecated: draw from tensor.random.shared_rng() by its methods.",
            FutureWarning,
            stacklevel=2,
        )
        module: Any = basic if namespace is None else namespace
        names = basic.DISTRIBUTIONS if module is basic else module.__all__
        self.namespaces = [(module.__name__, frozenset(names))]
        self.default_instance_seed = seed
        self.state_updates: list[tuple[RandomGeneratorSharedVariable, Any]] = []
        self.gen_seedgen = np.random.SeedSequence(seed)
        self.rng_ctor = rng_ctor

    def __getattr__(self, name: str) -> Any:
        for module, names in self.__dict__.get("namespaces", ()):
            if name in names:
                return self._method(getattr(sys.modules[module], name))
        raise AttributeError(f"RandomStream has no distribution {name!r}.")

    def _method(self, op: Callable[..., Any]) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            return self.gen(op, *args, **kwargs)

        draw.__doc__ = op.__doc__
        return draw

    def gen(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A draw by ``op``, a `RandomVariable` or a function like them, from a new generator.

        ValueError if ``rng`` is given.
        """
        if "rng" in kwargs:
            raise ValueError("A RandomStream draws from generators of its own: leave out rng.")
        (seed,) = self.gen_seedgen.spawn(1)
        rng = randomgen_constructor(self.rng_ctor(seed), borrow=True)
        after, draw = op(*args, rng=rng, return_next_rng=True, **kwargs)
        rng.update_by_default(after)
        self.state_updates.append((rng, after))
        return draw

    def updates(self) -> list[tuple[RandomGeneratorSharedVariable, Any]]:
        """A new list of the pairs in ``state_updates``."""
        return list(self.state_updates)

    def seed(self, seed: Any = None) -> None:
        """Give all generators the states that they would have in a new stream with this seed.

        None: the seed that the stream was made with.
        """
        self.gen_seedgen = np.random.SeedSequence(
            self.default_instance_seed if seed is None else seed
        )
        for rng, _ in self.state_updates:
            (own,) = self.gen_seedgen.spawn(1)
            rng.set_value(self.rng_ctor(own), borrow=True)
