"""Ops that make generators: `default_rng` from a seed, `spawn` from another generator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op, Storage
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.random.op import RNGConsumerOp
from phintys.tensor.random.type import GeneratorLike, RandomType, as_rng, random_generator_type
from phintys.tensor.random.variable import RandomGeneratorVariable, warn_reuse
from phintys.tensor.type_other import NoneConst

__all__ = ["AbstractRNGConstructor", "DefaultGeneratorMakerOp", "SpawnOp", "default_rng", "spawn"]


class _NoDerivative(Op):
    """Base class of ops on generators and seeds, which have no elements to differentiate by."""

    not_differentiable = "generators have no derivatives"

    def do_constant_folding(self, fgraph: FunctionGraph, node: Apply) -> bool:
        return False

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * len(node.outputs) for _ in node.inputs]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [disconnected_type() for _ in inputs]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [disconnected_type() for _ in outputs]


class AbstractRNGConstructor(_NoDerivative):
    """Base class of ops that make a generator from a seed.

    Subclasses set ``random_type``, the type of the result, and ``random_constructor``, the name of
    the function of `numpy.random` that makes it.
    """

    __props__ = ()
    random_type: RandomType
    random_constructor: str

    def make_node(self, seed: Any = None) -> Apply:
        """The node for a seed: an integer, a vector of integers, a variable of these, or None.

        TypeError for anything else.
        """
        seed = NoneConst if seed is None or seed is NoneConst else as_tensor_variable(seed)
        given: Any = seed.type
        if seed is not NoneConst and (given.ndim > 1 or given.dtype not in dtypes.INTEGER):
            raise TypeError(f"A seed is an integer or a vector of integers, not {given}.")
        return Apply(self, [seed], [self.random_type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        seed = None if inputs[0] is None else inputs[0].tolist()
        output_storage[0][0] = getattr(np.random, self.random_constructor)(seed)


class DefaultGeneratorMakerOp(AbstractRNGConstructor):
    """The generator that `numpy.random.default_rng` makes from a seed."""

    in_python = "NumPy makes the generator"

    random_type = random_generator_type
    random_constructor = "default_rng"

    def __call__(self, seed: Any = None, **kwargs: Any) -> Any:
        """A variable of the generator that `numpy.random.default_rng` makes from a seed.

        ``seed`` is an integer, a vector of integers, or a variable of these; the call of a compiled
        function raises ValueError if it is negative.  Without a seed, each call of a compiled
        function makes another generator.  TypeError for other seeds.

        >>> import numpy as np, phintys, phintys.tensor as pt
        >>> seed = pt.lscalar("seed")
        >>> f = phintys.function([seed], pt.random.normal(rng=pt.random.default_rng(seed)))
        >>> bool(f(3) == np.random.default_rng(3).normal())
        True
        """
        return super().__call__(seed, **kwargs)


default_rng = DefaultGeneratorMakerOp()


class SpawnOp(_NoDerivative, RNGConsumerOp):
    """Independent generators from one, as `numpy.random.Generator.spawn` makes them.

    The input of its nodes is the generator; the outputs are that generator, which remembers how
    many it has spawned, and ``n`` new ones.
    """

    __props__ = ("n",)
    in_python = "NumPy makes the generators"

    def __init__(self, n: int) -> None:
        if n < 0:
            raise ValueError(f"The number of generators must not be negative: {n}.")
        self.n = n

    def make_node(self, rng: GeneratorLike) -> Apply:
        rng = as_rng(rng)
        return Apply(self, [rng], [rng.type.make_variable() for _ in range(self.n + 1)])

    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        for cell, rng in zip(output_storage, _spawned(inputs[0], self.n), strict=True):
            cell[0] = rng


def _spawned(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """The generator after spawning, and ``n`` generators with seeds that are spawned from its own.

    The input, its `numpy.random.SeedSequence` included, is not changed.
    """
    bits: Any = rng.bit_generator
    kind, generator = type(bits), type(rng)
    with bits.lock:
        seeds, state = copy.deepcopy(bits.seed_seq), bits.state
    if not isinstance(seeds, ISpawnableSeedSequence):
        raise TypeError("The underlying SeedSequence does not implement spawning.")
    children = [generator(kind(seed=s)) for s in seeds.spawn(n)]
    after = kind(seed=seeds)
    after.state = state
    return [generator(after), *children]


def spawn(
    rng: GeneratorLike, n: int
) -> tuple[RandomGeneratorVariable, list[RandomGeneratorVariable]]:
    """The generator after spawning, and a list of ``n`` new generators.

    They are those of `numpy.random.Generator.spawn`: their streams are independent of each other
    and of that of ``rng``, and depend on the seed of ``rng`` alone, not on what has been drawn from
    it.  The generator after spawning has the same stream, and spawns others.

    ValueError if ``n`` is negative.  The call of a compiled function raises TypeError if the
    generator has no `numpy.random.SeedSequence`.

    >>> import numpy as np, phintys, phintys.tensor as pt
    >>> rng = pt.random.shared_rng(seed=3)
    >>> after, (left, right) = rng.spawn(2)
    >>> f = phintys.function([], [left.normal()[1], right.normal()[1]], updates={rng: after})
    >>> expected = np.random.default_rng(3)
    >>> [bool(x == child.normal()) for x, child in zip(f(), expected.spawn(2))]
    [True, True]
    >>> [bool(x == child.normal()) for x, child in zip(f(), expected.spawn(2))]
    [True, True]
    """
    after, *children = SpawnOp(n)(rng, return_list=True)
    return after, children


_method: Callable[..., Any] = warn_reuse(spawn)
RandomGeneratorVariable.spawn = _method  # pyright: ignore[reportAttributeAccessIssue]
