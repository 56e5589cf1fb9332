"""Gradients of programs against finite differences of the reference.

The results of a program, in float64, are summed with random weights, and the derivative of that in
a random direction is compared with differences that have converged: where those of smaller and
smaller steps do not approach each other from both sides, as at a kink, nothing is said.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from fuzz_program import Built, all_finite, perform_missing

import phintys
import phintys.tensor as pt
from phintys.errors import NullTypeGradError
from phintys.gradient.barriers import ViewOp
from phintys.graph.traversal import apply_ancestors
from phintys.inner import InnerGraphOp
from phintys.loop.op import Scan
from phintys.scalar.dtypes import kind
from phintys.tensor.random.op import RandomVariable
from phintys.tensor.reduce import Max, Min

#: steps, relative to the size of the arguments
STEPS = (2.0**-9, 2.0**-10, 2.0**-11)
#: how far an accepted slope may be from the derivative
RTOL = 1e-4


def wrong_slope(built: Built) -> str:
    """What is wrong with the gradient of a program with respect to its arguments, or nothing."""
    places = [k for k, a in enumerate(built.arguments) if a.dtype == "float64" and a.size]
    results = [v for v in built.outputs if getattr(v.type, "dtype", "") == "float64"]
    if not places or not results or not built.finite or _is_other_by_design(built):
        return ""
    rng = np.random.default_rng(len(built.arguments) + len(results))
    inputs = [built.inputs[k] for k in places]
    direction = [_direction(built.arguments[k], rng) for k in places]
    cost = _weighted(results, rng)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gradients = phintys.grad(
                cost, inputs, disconnected_inputs="ignore", null_gradients="raise"
            )
    except (NullTypeGradError, NotImplementedError):
        return ""
    slope = sum(pt.sum(g * d) for g, d in zip(gradients, direction, strict=True))
    shift = _Shift(built, cost, dict(zip(places, direction, strict=True)))
    with np.errstate(all="ignore"):
        try:
            expected = shift.slope()
            found = 0.0 if expected is None else float(shift.values(0.0, [slope])[0])
        except (ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError):
            return ""  # lengths depend on the arguments, or a branch that is not taken fails
    if expected is None or not abs(found - expected[0]) > expected[1]:
        return ""
    return f"slope: {found!r} instead of {expected[0]!r}"


def _is_other_by_design(built: Built) -> bool:
    """Whether a derivative is deliberately not that of the values, or values are drawn.

    That of a maximum goes to each of several elements that are equal, also if they always are.
    """
    nodes = list(apply_ancestors(built.outputs))
    for node in nodes:
        op: Any = node.op
        if isinstance(op, InnerGraphOp):
            nodes += op.fgraph.apply_nodes  # ops within have pullbacks of their own
        special = (ViewOp, RandomVariable, Max, Min)
        if isinstance(op, special) or any(map(_is_complex, node.outputs)):
            return True
        if isinstance(op, Scan) and op.truncate_gradient != -1:
            return True
        if getattr(op, "pullback_overrides", None) is not None:
            return True
    return False


def _is_complex(v: Any) -> bool:
    return kind(getattr(v.type, "dtype", "int64")) == "c"


def _direction(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random direction, as large as the argument."""
    size = np.maximum(np.abs(np.asarray(a)), 1e-3)
    return np.asarray(rng.uniform(0.5, 1, a.shape) * rng.choice((-1, 1), a.shape) * size)


def _weighted(results: list[Any], rng: np.random.Generator) -> Any:
    """A sum of all elements with random weights."""
    return sum(pt.sum(v * float(rng.uniform(0.5, 1))) for v in results)


class _Shift:
    """Values of a cost along a line through the arguments."""

    def __init__(self, built: Built, cost: Any, direction: dict[int, np.ndarray]) -> None:
        self.built, self.cost, self.direction = built, cost, direction

    def values(self, t: float, outputs: list[Any]) -> list[np.ndarray]:
        moved = [
            a if k not in self.direction else np.asarray(a + t * self.direction[k])
            for k, a in enumerate(self.built.arguments)
        ]
        known = self.built._given(moved)
        perform_missing(outputs, known)
        if not all_finite(known[v] for v in outputs):
            raise ArithmeticError
        return [known[v] for v in outputs]

    def slope(self) -> tuple[float, float] | None:
        """The slope at the arguments, and its error; None if differences do not converge."""
        here = float(self.values(0.0, [self.cost])[0])
        rows = []
        for h in STEPS:
            after, before = (float(self.values(t, [self.cost])[0]) for t in (h, -h))
            noise = 1e-13 * max(abs(here), abs(after), abs(before)) / h
            rows.append(((after - here) / h, (here - before) / h, noise))
        forward, backward, noise = map(np.array, zip(*rows, strict=True))
        gaps, central = np.abs(forward - backward), (forward + backward) / 2
        size = np.abs(central[-1]) + noise[-1]
        converges = np.all(gaps[1:] <= 0.6 * gaps[:-1] + noise[1:])
        changes = np.abs(np.diff(central))
        steady = changes[0] <= 1e-3 * size and changes[1] <= 0.4 * changes[0] + noise[-1]
        if not converges or not steady or noise[-1] > 1e-6 * size:
            return None
        error = RTOL * size + 4 * changes[1] + 10 * noise[-1] + 1e-12
        return float(central[-1]), float(error)
