"""What forms give: value, gradient and Hessian's diagonal, of this package or of another system.

As a program (``python density_evaluate.py PYTENSOR DTYPE TO.npz FROM.npz NAME ...``) it writes the
results of all forms, in an interpreter that has the other system.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from density_row import Density

#: parts of what a function returns
VALUE, GRADIENT, HESSIAN = "value", "gradient", "hessian"
PARTS = (VALUE, GRADIENT, HESSIAN)


def evaluate(
    density: Density,
    form: str,
    points: np.ndarray,
    dtype: str,
    mode: str | None = None,
    system: str = "phintys",
) -> np.ndarray:
    """A row of the quantities for each point; all are outputs of one function."""
    module = importlib.import_module(system)
    with module.config.change_flags(floatX=dtype):
        variables, y = built(density, form, dtype, module)
        outputs = [q for part in PARTS for q in expressions(density, module, part, variables, y)]
        return called(module, variables, outputs, density.columns(points, dtype), mode)


def built(density: Density, form: str, dtype: str, module: ModuleType) -> tuple[list[Any], Any]:
    """Vectors for the inputs, and the form of them."""
    pt = importlib.import_module(f"{module.__name__}.tensor")
    variables = [
        pt.vector(name, dtype=density.dtype(k, dtype)) for k, name in enumerate(density.names)
    ]
    return variables, density.forms[form](pt, *variables)


def expressions(
    density: Density, module: ModuleType, part: str, variables: Sequence[Any], y: Any
) -> list[Any]:
    """The expressions of one part of the quantities."""
    if part == VALUE:
        return [y]
    wrt = [variables[k] for k in density.differentiated]
    slopes = [slope(module, y, x) for x in wrt]
    if part == GRADIENT:
        return slopes
    return [slope(module, g, x) for g, x in zip(slopes, wrt, strict=True)]


def slope(module: ModuleType, y: Any, x: Any) -> Any:
    """The derivative of each element of y in the same element of x."""
    return module.grad(y.sum(), x, disconnected_inputs="ignore")


def called(
    module: ModuleType,
    variables: Sequence[Any],
    outputs: Sequence[Any],
    arguments: Sequence[np.ndarray],
    mode: str | None,
) -> np.ndarray:
    """The outputs of a compiled function as columns."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        f = module.function(list(variables), list(outputs), mode=mode, on_unused_input="ignore")
        try:
            return columns(f(*arguments))
        except np.linalg.LinAlgError:
            return point_by_point(f, len(outputs), arguments)


def columns(results: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([np.asarray(r, "float64") for r in results], axis=1)


def point_by_point(
    f: Callable[..., list[np.ndarray]], count: int, arguments: Sequence[np.ndarray]
) -> np.ndarray:
    """Results of a function that fails at some points: NaN there."""
    rows = np.full((len(arguments[0]), count), np.nan)
    for k in range(len(rows)):
        with contextlib.suppress(np.linalg.LinAlgError):
            rows[k] = columns(f(*(a[k : k + 1] for a in arguments)))[0]
    return rows


def main(system: str, dtype: str, target: str, source: str, *names: str) -> None:
    from density_table import TABLE

    found = {}
    with np.load(source) as points:
        for name in names:
            for form in TABLE[name].forms:
                try:
                    found[f"{name}/{form}"] = evaluate(
                        TABLE[name], form, points[name], dtype, None, system
                    )
                except Exception as error:  # of a function that the other system lacks
                    print(f"{name}/{form}: {error!r}"[:300], file=sys.stderr)
    np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
