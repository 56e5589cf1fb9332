"""Checks of the derivatives of one node against finite differences and against each other.

Derivatives are built as graphs, and computed node by node without rewriting.  Inner products are
real, ``Re(sum(conj(a) b))``: then one set of formulas holds for real numbers and for complex ones,
whose cotangents are ``d / d Re + i d / d Im``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matrix_nodes import computed

from phintys.gradient import pullback, pushforward
from phintys.gradient.forward import forward_sweep
from phintys.gradient.reverse import backpropagate
from phintys.gradient.rules import is_null, zeros_like
from phintys.graph.perform import run_node
from phintys.graph.variable import Apply, Constant
from phintys.scalar.type import ScalarType, scalar_type
from phintys.tensor.type import TensorType

STEP = 1e-5


def is_continuous(v: Any) -> bool:
    return isinstance(v.type, TensorType | ScalarType) and not v.type.is_discrete


@dataclass(frozen=True)
class Point:
    """A node and values of its inputs."""

    node: Apply
    values: list[Any]

    @property
    def inputs(self) -> list[Any]:
        """The variables in which there may be derivatives."""
        return [v for v in self.node.inputs if is_continuous(v)]

    @property
    def outputs(self) -> list[Any]:
        return [v for v in self.node.outputs if is_continuous(v)]

    def results(self) -> list[np.ndarray]:
        """The values of the continuous outputs."""
        with np.errstate(all="ignore"):
            found = run_node(self.node, self.values)
        return [r for r, v in zip(found, self.node.outputs) if is_continuous(v)]

    def moved(self, tangents: Sequence[np.ndarray], step: float) -> Point:
        """The point after a step in the direction of tangents of `inputs`."""
        values, left = list(self.values), iter(tangents)
        for k, v in enumerate(self.node.inputs):
            if is_continuous(v):
                values[k] = np.asarray(values[k] + step * next(left), v.type.dtype)
        return Point(self.node, values)

    def compute(self, graphs: Sequence[Any], *seeds: tuple[Sequence[Any], Sequence[Any]]) -> Any:
        """The values of variables, given those of further variables."""
        known = dict(zip(self.node.inputs, self.values))
        for variables, values in seeds:
            known.update(zip(variables, values))
        with np.errstate(all="ignore"):
            computed(graphs, known)
        return [known[g] for g in graphs]


def fresh(node: Apply, values: Sequence[Any], dtype: str, static: bool) -> Point:
    """The node with inputs of its own, continuous ones of a dtype; constant indices stay.

    TypeError if the op does not take the dtype.
    """
    rng = np.random.default_rng(7)
    inputs, given = list(node.inputs), list(values)
    for k, v in enumerate(node.inputs):
        if isinstance(v, Constant) and not is_continuous(v):
            continue
        if not isinstance(v.type, TensorType | ScalarType):
            inputs[k] = v.type()
            continue
        if is_continuous(v):
            given[k] = _ordinary(np.asarray(values[k]), dtype, rng)
        kept = dtype if is_continuous(v) else v.type.dtype
        if isinstance(v.type, ScalarType):
            inputs[k], given[k] = scalar_type(kept)(), given[k][()]
        else:
            inputs[k] = TensorType(kept, np.shape(given[k]) if static else v.type.shape)()
    return Point(node.op.make_node(*inputs), given)


def _ordinary(x: np.ndarray, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Finite values near those of ``x`` without ties, with an imaginary part where dtype has it."""
    noise = rng.normal(size=x.shape)
    found = np.where(np.isfinite(x), x, noise).astype(np.result_type(x.dtype, "float64"))
    found = found + 0.01 * noise
    if np.dtype(dtype).kind == "c" and found.dtype.kind != "c":
        found = found + 1j * rng.normal(size=x.shape)
    return np.asarray(found, dtype)


def like(values: Sequence[Any], variables: Sequence[Any], seed: int = 1) -> list[np.ndarray]:
    """Random arrays in the shapes of ``values`` and the dtypes of ``variables``."""
    rng = np.random.default_rng(seed)
    found = []
    for x, v in zip(values, variables, strict=True):
        r = rng.normal(size=np.shape(x))
        r = r + 1j * rng.normal(size=np.shape(x)) if v.type.is_complex else r
        found.append(np.asarray(r, v.type.dtype)[()] if isinstance(v.type, ScalarType) else np.asarray(r, v.type.dtype))
    return found


def dots(left: Sequence[Any], right: Sequence[Any]) -> float:
    return float(sum(np.vdot(a, b).real for a, b in zip(left, right, strict=True)))


def reverse(point: Point) -> tuple[list[Any], list[Any]]:
    """Seeds, and the cotangent of each input: a variable, or None if there is no influence."""
    seeds = [v.type() for v in point.outputs]
    found = backpropagate(dict(zip(point.outputs, seeds)), point.inputs)
    return seeds, [found[v] for v in point.inputs]


def forward(point: Point, by_op: bool = True) -> tuple[list[Any], list[Any]]:
    """Seeds, and the tangent of each output."""
    seeds = [v.type() for v in point.inputs]
    return seeds, forward_sweep(point.outputs, dict(zip(point.inputs, seeds)), by_op)


def _or_zeros(found: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
    return [zeros_like(v) if g is None else g for g, v in zip(found, variables, strict=True)]


def assert_near(found: Any, expected: Any, tolerance: float, what: str) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def check(point: Point) -> None:
    xs, outs = point.inputs, point.outputs
    weights, pulled = reverse(point)
    tangents, pushed = forward(point)
    _, twice = forward(point, by_op=False)
    assert all(g is None or not is_null(g) for g in [*pulled, *pushed])
    assert any(g is not None for g in pulled) and any(t is not None for t in pushed)
    pulled, pushed = _or_zeros(pulled, xs), _or_zeros(pushed, outs)
    w, t = like(point.results(), outs), like([x for x, v in zip(point.values, point.node.inputs) if is_continuous(v)], xs, 2)
    # first
    given = (weights, w), (tangents, t)
    n = len(xs)
    values = point.compute([*pulled, *pushed], *given)
    gs, ts = values[:n], values[n:]
    for g, x in zip(gs, t):
        assert np.shape(g) == np.shape(x) and g.dtype == x.dtype, (np.shape(g), np.shape(x), g.dtype)
    ahead, behind = (point.moved(t, h).results() for h in (STEP, -STEP))
    for found, a, b in zip(ts, ahead, behind, strict=True):
        assert np.shape(found) == np.shape(a) and found.dtype == a.dtype
        assert_near(found, (a - b) / (2 * STEP), 1e-6, "forward")
    np.testing.assert_allclose(dots(gs, t), dots(w, ts), rtol=1e-9, atol=1e-9)
    # two pullbacks
    second_seeds, twice = forward(point, by_op=False)
    for a, b in zip(point.compute(_or_zeros(twice, outs), (second_seeds, t)), ts):
        assert_near(a, b, 1e-9, "two pullbacks")
    # second order
    along = pullback(pulled, xs, tangents, disconnected_inputs="ignore")
    ahead, behind = (point.moved(t, h).compute(pulled, *given) for h in (STEP, -STEP))
    hv = point.compute(along, *given)
    for found, a, b in zip(hv, ahead, behind, strict=True):
        assert_near(found, (a - b) / (2 * STEP), 1e-6, "second")
    over = pushforward(pulled, xs, tangents, disconnected_outputs="ignore", use_op_pushforward=True)
    for a, b in zip(point.compute(over, *given), hv):
        assert_near(a, b, 1e-9, "second, forward over reverse")
