"""Random chains of expressions that read neighbours of what they write, for the tests of strips."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from programs import program_of

import phintys
import phintys.tensor as pt
from phintys.lowering.program import Program


def chain(seed: int, rank: int = 1, steps: int = 6) -> tuple[list[Any], list[Any]]:
    """The inputs and outputs of a graph; all inputs and intermediate values have one shape."""
    rng = random.Random(seed)
    dtypes = ["float64", "float64", rng.choice(["float32", "float64"])]
    inputs = [pt.tensor(f"x{k}", dtype=d, shape=(None,) * rank) for k, d in enumerate(dtypes)]
    values: list[Any] = list(inputs)
    for _ in range(steps):
        kind = rng.choice(_KINDS)
        # mostly the newest values, so that the chain is long
        a, b = (values[-min(len(values), 1 + int(rng.expovariate(1)))] for _ in range(2))
        values.append(kind(rng, a, b))
    return inputs, [values[-1], *rng.sample(values[len(inputs) :], 1)]


def program(seed: int, rank: int = 1, steps: int = 6) -> Program:
    """The Program of the `chain`, which may not use all inputs."""
    return program_of(*chain(seed, rank, steps), on_unused_input="ignore")


@cache
def with_reference(seed: int, rank: int) -> tuple[list[Any], Program, Any]:
    """The inputs of the `chain`, its Program, and its function in mode FAST_COMPILE."""
    inputs, outputs = chain(seed, rank)
    options: dict[str, Any] = {"on_unused_input": "ignore"}
    reference = phintys.function(inputs, outputs, mode="FAST_COMPILE", **options)
    return inputs, program_of(inputs, outputs, **options), reference


def _window(low: int, high: int, shift: int) -> slice:
    """The slice ``low:n - high``, shifted."""
    stop = shift - high
    return slice(low + shift, stop if stop < 0 else None)


def _stencil(rng: random.Random, a: Any, b: Any) -> Any:
    """A part of an array is computed of its neighbours, and of those in another one."""
    bounds = [(rng.randint(0, 3), rng.randint(0, 3)) for _ in range(a.ndim)]
    if a.ndim > 1 and rng.random() < 0.3:
        bounds[1] = (0, 0)

    def near(x: Any) -> Any:
        shifts = [rng.randint(-low, high) for low, high in bounds]
        return x[tuple(_window(*pair, d) for pair, d in zip(bounds, shifts))]

    inside = tuple(_window(*pair, 0) for pair in bounds)
    new = 0.3 * near(a) - 0.2 * near(b) + 0.4 * near(a)
    return pt.set_subtensor(a[inside], new.astype(a.dtype))


def _of_several(rng: random.Random, a: Any, b: Any) -> Any:
    """A part of an array is computed of several neighbours, near ones and distant ones."""
    margin = rng.choice([2, 5, 9])
    shifts = [rng.randint(-margin, margin) for _ in range(rng.randint(2, 5))]
    near = [a[..., _window(margin, margin, shift)] for shift in shifts]
    new = sum([part * (0.3 - 0.1 * k) for k, part in enumerate(near)])
    return pt.set_subtensor(b[..., margin:-margin], new.astype(b.dtype))


def _rolled(rng: random.Random, a: Any, b: Any) -> Any:
    k = rng.randint(1, 3)
    parts = (b[:k], a[:-k]) if rng.random() < 0.5 else (a[k:], b[:k])
    return pt.concatenate(parts)[: a.shape[0]]


def _neighbours(rng: random.Random, a: Any, b: Any) -> Any:
    """Both neighbours of a value that is expensive, so that it is stored."""
    x = pt.tanh(a) + b
    return pt.set_subtensor(x[1:-1], x[2:] - 0.5 * x[:-2])


def _reversed(rng: random.Random, a: Any, b: Any) -> Any:
    return pt.tanh(a[::-1]) - b


def _pointwise(rng: random.Random, a: Any, b: Any) -> Any:
    return pt.sin(a) * 0.5 + b


def _accumulated(rng: random.Random, a: Any, b: Any) -> Any:
    k = rng.randint(0, 2)
    return pt.inc_subtensor(a[k:], pt.cos(b)[: a.shape[0] - k].astype(a.dtype))


def _of_a_part(rng: random.Random, a: Any, b: Any) -> Any:
    """Everything depends on single elements, or on sums."""
    return a - 0.1 * (b[:1].sum() if rng.random() < 0.5 else pt.tanh(b).sum())


def _from_a_computed_place(rng: random.Random, a: Any, b: Any) -> Any:
    """The first place that is set is an integer of any dtype that a kernel computes, 0 to 2."""
    dtype = rng.choice(("int8", "int32", "int64", "uint16", "uint64"))
    k = pt.cast(pt.sum(b > 0) % 3, dtype)
    return pt.set_subtensor(a[k:], pt.cos(b)[: a[k:].shape[0]].astype(a.dtype))


_KINDS = [_stencil] * 5 + [_neighbours, _of_several] * 2
_KINDS += [_rolled, _reversed, _pointwise, _accumulated, _of_a_part, _from_a_computed_place]
