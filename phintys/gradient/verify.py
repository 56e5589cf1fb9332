"""Checks of gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.errors import GradientError
from phintys.gradient.reverse import grad
from phintys.graph.ignored import ignores
from phintys.graph.variable import late_bound

#: Step of central differences, and absolute and relative tolerance of gradients, by dtype.
STEPS = {"float64": 1e-6, "float32": 2e-3, "float16": 5e-2}
TOLERANCES = {"float64": 1e-4, "float32": 1e-2, "float16": 1e-1}


class numeric_grad:
    """The gradient of ``f`` by central differences, in the attribute ``gf``.

    Parameters
    ----------
    f
        function of arrays that returns a number
    pt
        the point: a list of float arrays, or a single one
    eps
        the step; default: `STEPS` of the dtype of each array
    out_type
        dtype of the values of ``f``, if it has less precision than that of the arrays

    ``gf`` is a list of arrays with shapes and dtypes of ``pt``, or a single one.  TypeError if a
    dtype is not float.

    >>> numeric_grad(lambda x: (x**2).sum(), [np.array([1.0, 2.0])]).gf[0].round(6)
    array([2., 4.])
    """

    def __init__(
        self, f: Callable[..., Any], pt: Any, eps: float | None = None, out_type: Any = None
    ) -> None:
        single = not isinstance(pt, list | tuple)
        points = [np.array(p) for p in ([pt] if single else pt)]
        self.gf: Any = [
            _differences(f, points, p, eps or STEPS[narrowest([p.dtype, out_type])]) for p in points
        ]
        if single:
            (self.gf,) = self.gf

    @staticmethod
    def abs_rel_err(a: Any, b: Any) -> tuple[Any, Any]:
        """``|a - b|``, and that divided by ``|a| + |b|``, elementwise; 0 where both are equal."""
        a, b = np.asarray(a), np.asarray(b)
        with np.errstate(invalid="ignore"):
            absolute = np.where(a == b, 0.0, np.abs(a - b))
            relative = absolute / np.maximum(np.abs(a) + np.abs(b), 1e-8)
        return absolute, relative

    def abs_rel_errors(self, g_pt: Any) -> list[tuple[Any, Any]]:
        """`abs_rel_err` of ``g_pt`` against ``gf``, for each array; ValueError if shapes differ."""
        given = g_pt if isinstance(g_pt, list | tuple) else [g_pt]
        own = self.gf if isinstance(self.gf, list) else [self.gf]
        if len(given) != len(own):
            raise ValueError(f"{len(given)} gradients were given for {len(own)} arguments.")
        for i, (a, b) in enumerate(zip(given, own)):
            if np.shape(a) != b.shape:
                raise ValueError(
                    f"The gradient of argument {i} has shape {np.shape(a)}, the argument {b.shape}."
                )
        return [self.abs_rel_err(a, b) for a, b in zip(given, own)]

    def max_err(self, g_pt: Any, abs_tol: float, rel_tol: float) -> tuple[int, int, float, float]:
        """The element with the largest error: (argument, flat index, absolute, relative error).

        The error of an element is the smaller of its absolute and relative error, each divided by
        its tolerance; that of NaN is infinite.
        """
        worst, found = -1.0, (0, 0, 0.0, 0.0)
        for i, (absolute, relative) in enumerate(self.abs_rel_errors(g_pt)):
            if not absolute.size:
                continue
            score = np.minimum(absolute / abs_tol, relative / rel_tol)
            score = np.where(np.isnan(score), np.inf, score).ravel()
            at = int(np.argmax(score))
            if score[at] > worst:
                worst = float(score[at])
                found = i, at, float(absolute.ravel()[at]), float(relative.ravel()[at])
        return found


def narrowest(dtypes: Sequence[Any]) -> str:
    """The dtype of least precision, None entries skipped; TypeError if one is not float."""
    names = [np.dtype(d).name for d in dtypes if d is not None]
    for name in names:
        if name not in STEPS:
            raise TypeError(f"Finite differences need floats, not {name}.")
    return min(names, key=lambda name: np.dtype(name).itemsize)


def _differences(
    f: Callable[..., Any], points: Sequence[np.ndarray], p: np.ndarray, step: float
) -> np.ndarray:
    """Central differences of ``f(*points)`` with respect to the elements of ``p``, one of them.

    ``p`` is modified while ``f`` is called, and restored.
    """
    g = np.empty(p.shape, p.dtype)
    for i in np.ndindex(p.shape):
        saved = p[i]
        p[i] = saved + step
        above, x1 = np.asarray(f(*points), np.float64), np.float64(p[i])
        p[i] = saved - step
        below, x0 = np.asarray(f(*points), np.float64), np.float64(p[i])
        p[i] = saved
        g[i] = (above - below) / (x1 - x0)
    return g


@ignores("no_debug_ref")
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
    """Compare the gradient of random projections of ``fun`` with finite differences.

    Parameters
    ----------
    fun
        takes as many symbolic tensors as ``pt`` has arrays, and returns one
    pt
        float arrays at which to check; the function must be differentiable near them
    n_tests
        number of random projections, sums of the output with random weights
    rng
        the NumPy generator of the weights (``Generator`` or ``RandomState``)
    eps, abs_tol, rel_tol
        step and tolerances; default: `STEPS` and `TOLERANCES` of the least precise dtype.  An
        element is wrong if its error exceeds both tolerances; the relative error is that of
        `numeric_grad.abs_rel_err`.
    out_type
        dtype whose precision the output has, if that is less than the precision of its own dtype
    mode
        the mode in which functions are compiled
    cast_to_output_type
        whether to cast the output to ``out_type`` first
    no_debug_ref
        ignored

    Raises
    ------
    GradientError
        if a gradient is wrong; names the argument, the position and both values
    TypeError
        if an array is not float, or ``fun`` does not return a variable

    >>> import phintys.tensor as pt
    >>> verify_grad(lambda x: pt.exp(x).sum(axis=0), [np.array([[0.1, 0.2]])])
    """
    points = [np.array(p) for p in pt]
    for i, p in enumerate(points):
        if p.dtype.name not in STEPS:
            raise TypeError(f"verify_grad needs float arrays; argument {i} is {p.dtype}.")
    rng = np.random.default_rng(0) if rng is None else rng
    inputs = [late_bound["as_tensor_variable"](p).type(f"input {i}") for i, p in enumerate(points)]
    out: Any = fun(*inputs)
    if not hasattr(out, "type"):
        raise TypeError(f"verify_grad needs a function with one output, not {out!r}.")
    if cast_to_output_type and out_type is not None:
        out = out.astype(out_type)
    precision = narrowest([*(p.dtype for p in points), out.type.dtype, out_type])
    tolerances = (
        TOLERANCES[precision] if abs_tol is None else abs_tol,
        TOLERANCES[precision] if rel_tol is None else rel_tol,
    )
    weights = out.type("weights")
    cost = (out * weights).sum()
    found = grad(cost, inputs, disconnected_inputs="ignore")
    values, projected, gradients = (
        late_bound["function"]([*inputs, *extra], outputs, mode=mode, on_unused_input="ignore")
        for extra, outputs in (([], out), ([weights], cost), ([weights], found))
    )
    shape = np.shape(values(*points))
    for _ in range(n_tests):
        w = np.asarray(rng.uniform(0.5, 1.5, shape), out.type.dtype)
        numeric = numeric_grad(lambda *x, w=w: projected(*x, w), points, eps or STEPS[precision])
        _assert_close(numeric, gradients(*points, w), *tolerances)


def _assert_close(numeric: numeric_grad, found: Any, abs_tol: float, rel_tol: float) -> None:
    """`GradientError` if the gradients ``found`` differ from the numeric ones."""
    arg, at, abs_err, rel_err = numeric.max_err(found, abs_tol, rel_tol)
    if abs_err <= abs_tol or rel_err <= rel_tol:
        return
    a, b = found[arg], numeric.gf[arg]
    position = tuple(map(int, np.unravel_index(at, b.shape)))
    raise GradientError(
        f"The gradient in argument {arg} (shape {b.shape}) is wrong at {position}: {a[position]} "
        f"against {b[position]} by finite differences: absolute error {abs_err:.3g} (tolerance "
        f"{abs_tol:.3g}), relative error {rel_err:.3g} (tolerance {rel_tol:.3g})."
    )
