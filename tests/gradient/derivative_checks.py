"""Checks of derivatives at a point: against finite differences, and against each other.

Derivatives are built as graphs, and computed node by node without rewriting.  Inner products are
real, ``Re(sum(conj(a) b))``: then one set of formulas holds for real numbers and for complex ones,
whose cotangents are ``d / d Re + i d / d Im``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matrix_nodes import computed

import phintys.tensor as pt
from phintys.errors import NullTypeGradError
from phintys.gradient import pullback, pushforward
from phintys.gradient.forward import forward_sweep
from phintys.gradient.reverse import backpropagate
from phintys.gradient.rules import is_null, zeros_like
from phintys.graph.variable import Apply, Constant
from phintys.scalar.type import ScalarType, scalar_type
from phintys.tensor.type import TensorType

#: step of differences in float64, and the accepted error relative to the largest element
STEP, TOLERANCE = 1e-5, 1e-6


#: ops with vectors of arbitrary phases -> functions of their results that do not depend on these
WITHOUT_PHASES: dict[str, Callable[..., list[Any]]] = {
    "SVD": lambda u, s, vt: [s, _weighted(u[:, : s.shape[0]]) @ vt[: s.shape[0]]],
    "Eigh": lambda w, v: [w, _weighted(v) @ pt.conj(v.T)],
    "Eig": lambda w, v: [w, _weighted(v) @ pt.conj(v.T)],
}


def _weighted(vectors: Any) -> Any:
    """Columns, each with a factor of its own."""
    return vectors * pt.arange(1, vectors.shape[1] + 1, dtype="float32")


def is_continuous(v: Any) -> bool:
    return isinstance(v.type, TensorType | ScalarType) and not v.type.is_discrete


@dataclass(frozen=True)
class Point:
    """Expressions, their inputs, and values of the inputs."""

    inputs: list[Any]
    outputs: list[Any]
    values: list[Any]

    def results(self) -> list[np.ndarray]:
        return self.compute(self.outputs)

    def compute(self, graphs: Sequence[Any], *given: tuple[Sequence[Any], Sequence[Any]]) -> Any:
        """The values of variables; ``given`` are further variables with their values."""
        known = dict(zip(self.inputs, self.values, strict=True))
        for variables, values in given:
            known.update(zip(variables, values, strict=True))
        with np.errstate(all="ignore"):
            computed(graphs, known)
        return [known[g] for g in graphs]

    def moved(self, wrt: Sequence[Any], tangents: Sequence[np.ndarray], step: float) -> Point:
        """The point after a step in the direction of tangents."""
        moves = dict(zip(wrt, tangents, strict=True))
        values = [
            np.asarray(x + step * moves[v], v.type.dtype)[()] if v in moves else x
            for v, x in zip(self.inputs, self.values, strict=True)
        ]
        return Point(self.inputs, self.outputs, [*map(np.asarray, values)])


def point_of(build: Callable[..., Any], values: Sequence[Any], static: bool = False) -> Point:
    """The point of an expression; arrays are its inputs."""
    values = [np.asarray(x) for x in values]
    inputs = [TensorType(x.dtype.name, x.shape if static else (None,) * x.ndim)() for x in values]
    out = build(*inputs)
    return Point(inputs, list(out) if isinstance(out, list | tuple) else [out], values)


def point_of_node(node: Apply, values: Sequence[Any], dtype: str, static: bool) -> Point:
    """The op of a node, applied to inputs of its own, continuous ones of a dtype.

    Lengths are known if ``static``, otherwise as the node knows them.  Constant indices stay.  The
    values of continuous inputs become finite, and have no ties.  TypeError if the op does not take
    the dtype.
    """
    rng = np.random.default_rng(7)
    inputs, kept = list(node.inputs), []
    for k, (v, x) in enumerate(zip(node.inputs, values, strict=True)):
        if isinstance(v, Constant) and not is_continuous(v):
            continue
        if is_continuous(v):
            x = ordinary(x, dtype, rng)
        if isinstance(v.type, ScalarType):
            inputs[k] = scalar_type(x.dtype.name)()
        elif isinstance(v.type, TensorType):
            inputs[k] = TensorType(x.dtype.name, np.shape(x) if static else v.type.shape)()
        else:
            inputs[k] = v.type()
        kept.append((inputs[k], x))
    outputs = node.op.make_node(*inputs).outputs
    if type(node.op).__name__ in WITHOUT_PHASES and len(outputs) > 1:
        outputs = WITHOUT_PHASES[type(node.op).__name__](*outputs)
    outputs = [v for v in outputs if is_continuous(v)]
    return Point([v for v, _ in kept], outputs, [x for _, x in kept])


def ordinary(x: Any, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Finite values near those of ``x``, without ties; with imaginary parts if the dtype has."""
    noise = rng.normal(size=np.shape(x))
    found = np.where(np.isfinite(x), x, noise) + 0.01 * noise
    if np.dtype(dtype).kind == "c" and found.dtype.kind != "c":
        found = found + 0.1j * rng.normal(size=np.shape(x))  # small: matrices stay definite
    return np.asarray(found if np.dtype(dtype).kind == "c" else found.real, dtype)


def directions(values: Sequence[Any], seed: int) -> list[np.ndarray]:
    """Random arrays in the shapes and dtypes of others."""
    rng = np.random.default_rng(seed)
    found = []
    for x in map(np.asarray, values):
        re, im = rng.normal(size=(2, *x.shape))
        found.append(np.asarray(re + 1j * im if x.dtype.kind == "c" else re, x.dtype))
    return found


def inner(left: Sequence[Any], right: Sequence[Any]) -> float:
    return float(sum(np.vdot(a, b).real for a, b in zip(left, right, strict=True)))


@dataclass(frozen=True)
class Derivatives:
    """Both derivatives of a point in some of its inputs, as graphs.

    ``pulled`` are cotangents of ``wrt`` from those of the outputs, ``weights``; ``pushed`` are
    tangents of the outputs from those of ``wrt``, ``tangents``.  None: there is no influence.
    """

    wrt: list[Any]
    weights: list[Any]
    pulled: list[Any]
    tangents: list[Any]
    pushed: list[Any]


def derivatives(point: Point, wrt: Sequence[Any] | None = None, by_op: bool = True) -> Derivatives:
    """The derivatives in ``wrt``; None: in all continuous inputs."""
    wrt = [v for v in point.inputs if is_continuous(v)] if wrt is None else list(wrt)
    weights, tangents = [v.type() for v in point.outputs], [v.type() for v in wrt]
    pulled = backpropagate(dict(zip(point.outputs, weights)), wrt)
    pushed = forward_sweep(point.outputs, dict(zip(wrt, tangents)), by_op)
    return Derivatives(wrt, weights, [pulled[v] for v in wrt], tangents, pushed)


def check(point: Point, differences: bool = True) -> list[str]:
    """Check first and second derivatives; return the reasons why some are not defined.

    Without ``differences``, only that there are derivatives in both directions, and their types:
    barriers change them on purpose.
    """
    d = derivatives(point)
    null = [g is not None and is_null(g) for g in d.pulled]
    reasons = [g.type.why_null for g, lacks in zip(d.pulled, null) if lacks]
    for v in (v for v, lacks in zip(d.wrt, null) if lacks):
        pushed = derivatives(point, [v]).pushed
        assert all(t is None or is_null(t) for t in pushed), f"{v} has a tangent, but no cotangent"
    if any(null):
        d = derivatives(point, [v for v, lacks in zip(d.wrt, null) if not lacks])
    if not d.wrt:
        return reasons
    assert any(g is not None for g in d.pulled), "no derivative in reverse mode"
    assert any(t is not None for t in d.pushed), "no derivative in forward mode"
    gradient, w, t = check_first(point, d, differences)
    if differences:
        reasons += check_second(point, d.wrt, gradient, (d.weights, w), dict(zip(d.wrt, t)))
    return reasons


def check_first(point: Point, d: Derivatives, differences: bool) -> Any:
    """Check first derivatives; return the cotangents as a graph, and the directions.

    Tangents against differences, cotangents against tangents, and the tangents of the ops against
    those by two pullbacks.
    """
    pulled = [zeros_like(v) if g is None else g for g, v in zip(d.pulled, d.wrt)]
    twice = derivatives(point, d.wrt, by_op=False)
    results, at = point.results(), point.compute(d.wrt)
    w, t = directions(results, 1), directions(at, 2)
    given = [(d.weights, w), (d.tangents, t), (twice.tangents, t)]
    pushed, again = (
        [zeros_like(v) if g is None else g for g, v in zip(found, point.outputs)]
        for found in (d.pushed, twice.pushed)
    )
    gs, ts, ts_again = (point.compute(graphs, *given) for graphs in (pulled, pushed, again))
    for found, like in zip([*gs, *ts], [*at, *results], strict=True):
        assert (np.shape(found), found.dtype) == (np.shape(like), like.dtype)
    if not differences:
        return pulled, w, t
    ahead, behind = (point.moved(d.wrt, t, h).results() for h in (STEP, -STEP))
    for found, a, b in zip(ts, ahead, behind, strict=True):
        finite = np.isfinite(a)  # a maximum of nothing is its initial value
        difference = np.subtract(a, b, where=finite, out=np.zeros_like(a)) / (2 * STEP)
        assert_near(found, difference, "tangents against differences")
    assert_near(inner(gs, t), inner(w, ts), "cotangents against tangents", 1e-9)
    for a, b in zip(ts_again, ts, strict=True):
        assert_near(a, b, "tangents by two pullbacks", 1e-9)
    return pulled, w, t


def check_second(
    point: Point, wrt: Sequence[Any], gradient: Sequence[Any], weights: Any, moves: dict[Any, Any]
) -> list[str]:
    """Check the derivative of ``<gradient, t>``, in two ways, against differences of the gradient.

    If it is not defined in all of ``wrt`` together, it is checked in each of them; the reasons are
    returned.
    """
    t = [moves[v] for v in wrt]
    along = [v.type() for v in wrt]
    of = [g for v, g in zip(moves, gradient) if v in wrt]
    try:
        reverse = pullback(of, wrt, along, disconnected_inputs="ignore")
        forward = pushforward(
            of, wrt, along, disconnected_outputs="ignore", use_op_pushforward=True
        )
    except NullTypeGradError as exc:
        if len(wrt) == 1:
            return [str(exc)]
        return [r for v in wrt for r in check_second(point, [v], gradient, weights, moves)]
    given = weights, (along, t)
    ahead, behind = (point.moved(wrt, t, h).compute(of, *given) for h in (STEP, -STEP))
    found, again = (point.compute(graphs, *given) for graphs in (reverse, forward))
    for h, a, b in zip(found, ahead, behind, strict=True):
        assert_near(h, (a - b) / (2 * STEP), "second derivatives against differences")
    for a, b in zip(again, found, strict=True):
        assert_near(a, b, "second derivatives, forward over reverse", 1e-9)
    return []


def assert_near(found: Any, expected: Any, what: str, tolerance: float = TOLERANCE) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale, err_msg=what)


def check_narrow(wide: Point, narrow: Point) -> None:
    """Derivatives in float32 agree with those in float64 at the same values."""
    wide = Point(wide.inputs, wide.outputs, [_widened(x) for x in narrow.values])
    found, seeds = [], None
    for point in (narrow, wide):
        d = derivatives(point)
        if seeds is None:
            seeds = directions(narrow.results(), 1), directions(narrow.compute(d.wrt), 2)
        defined = [g for g in [*d.pulled, *d.pushed] if g is not None and not is_null(g)]
        w, t = seeds if point is narrow else [[*map(_widened, x)] for x in seeds]
        found.append(point.compute(defined, (d.weights, w), (d.tangents, t)))
    for a, b in zip(*found, strict=True):
        assert_near(a, b, "float32 against float64", 1e-3)


def _widened(x: Any) -> np.ndarray:
    return np.asarray(x, "float64") if np.asarray(x).dtype == np.float32 else x
