"""Checking gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.errors import GradientError
from phintys.gradient.reverse import grad
from phintys.graph.variable import late

#: step, absolute and relative tolerance of central differences, by dtype
STEPS = {"float64": 1e-6, "float32": 2e-3, "float16": 5e-2}
TOLERANCES = {"float64": 1e-4, "float32": 1e-2, "float16": 1e-1}


class numeric_grad:
    """The gradient of ``f`` (arrays -> number) by central differences; ``gf`` has one array per point.

    >>> numeric_grad(lambda x: (x**2).sum(), [np.array([1.0, 2.0])]).gf[0].round(6)
    array([2., 4.])
    """

    def __init__(
        self, f: Callable[..., Any], pt: Sequence[np.ndarray], eps: float | None = None
    ) -> None:
        points = [np.array(p) for p in pt]
        self.gf: list[np.ndarray] = []
        for p in points:
            step = eps or STEPS[p.dtype.name]
            g = np.empty(p.shape, p.dtype)
            for i in np.ndindex(p.shape):
                saved = p[i]
                p[i] = saved + step
                above, x1 = np.asarray(f(*points), np.float64), np.float64(p[i])
                p[i] = saved - step
                below, x0 = np.asarray(f(*points), np.float64), np.float64(p[i])
                p[i] = saved
                g[i] = (above - below) / (x1 - x0)
            self.gf.append(g)


def verify_grad(
    fun: Callable[..., Any],
    pt: Sequence[Any],
    n_tests: int = 2,
    rng: Any = None,
    eps: float | None = None,
    out_type: str | None = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    mode: Any = None,
    cast_to_output_type: bool = False,
    no_debug_ref: bool = True,
) -> None:
    """Compare the gradient of a random projection of ``fun`` with finite differences.

    Parameters
    ----------
    fun
        takes symbolic tensors and returns one
    pt
        float arrays at which to check; keep away from kinks
    n_tests, rng
        how many projections, and the generator that draws them
    eps, abs_tol, rel_tol
        step and tolerances; None: suited to the narrowest dtype
    out_type, cast_to_output_type
        dtype of the projection; cast the output to it
    mode
        in which to compile

    Raises
    ------
    GradientError
        naming the argument, the position, both values

    >>> import phintys.tensor as pt
    >>> verify_grad(lambda x: pt.exp(x).sum(axis=0), [np.array([[0.1, 0.2]])])
    """
    points = [np.array(p) for p in pt]
    for p in points:
        if p.dtype.name not in STEPS:
            raise TypeError(f"verify_grad needs float arrays, not {p.dtype}.")
    rng = np.random.default_rng(0) if rng is None else rng
    inputs = [late["as_tensor_variable"](p).type(f"input {i}") for i, p in enumerate(points)]
    out = fun(*inputs)
    if cast_to_output_type and out_type is not None:
        out = out.astype(out_type)
    narrowest = min(
        [p.dtype for p in points] + [np.dtype(out.type.dtype)], key=lambda d: d.itemsize
    )
    abs_tol = TOLERANCES[narrowest.name] if abs_tol is None else abs_tol
    rel_tol = TOLERANCES[narrowest.name] if rel_tol is None else rel_tol
    shape = np.shape(late["function"](inputs, out, mode=mode, on_unused_input="ignore")(*points))
    for _ in range(n_tests):
        weights = (rng.random(shape) + 0.5).astype(out_type or out.type.dtype)
        cost = (out * weights).sum()
        value = late["function"](inputs, cost, mode=mode, on_unused_input="ignore")
        gradients = grad(cost, inputs, disconnected_inputs="ignore")
        found = late["function"](inputs, gradients, mode=mode, on_unused_input="ignore")(*points)
        _compare(
            found, numeric_grad(value, points, eps or STEPS[narrowest.name]).gf, abs_tol, rel_tol
        )


def _compare(found: Any, expected: Any, abs_tol: float, rel_tol: float) -> None:
    for k, (a, b) in enumerate(zip(found, expected)):
        error = np.abs(a - b)
        bad = ~(error <= abs_tol + rel_tol * np.abs(b))
        if not bad.any():
            continue
        at = np.unravel_index(np.argmax(np.where(bad, error, -1)), a.shape)
        raise GradientError(
            f"The gradient in argument {k} is wrong at {tuple(map(int, at))}: {a[at]} against {b[at]} by "
            f"finite differences (tolerances {abs_tol} absolute, {rel_tol} relative)."
        )
