"""Each output has the same value, whatever else is compiled with it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence

import numpy as np
from density_evaluate import GRADIENT, HESSIAN, VALUE, built, called, expressions
from density_judge import allowed_errors
from density_row import Density
from density_truth import truths

import phintys

#: the product of the Hessian with a vector; the derivative in a direction, forward
PRODUCT, FORWARD = "product", "forward"
ALL_PARTS = (VALUE, GRADIENT, HESSIAN, PRODUCT, FORWARD)
#: all but the whole and the empty one
SUBSETS = [
    subset for n in range(1, len(ALL_PARTS)) for subset in itertools.combinations(ALL_PARTS, n)
]
#: how many subsets are compiled in short tests and in long ones
FEW, MANY = 3, 8
#: what two results may differ by, as a part of what is allowed to be wrong
ROUNDING = {"float64": 1e-3, "float32": 0.1}


class Compiled:
    """The quantities of a form as expressions, of which subsets are compiled."""

    def __init__(self, density: Density, form: str, dtype: str) -> None:
        self.truths = truths(density, dtype)
        self.dtype = dtype
        with phintys.config.change_flags(floatX=dtype):
            self.variables, y = built(density, form, dtype, phintys)
            wrt = [self.variables[k] for k in density.differentiated]
            self.tangents = [x.type(f"t{k}") for k, x in enumerate(wrt)]
            self.outputs = {
                part: expressions(density, phintys, part, self.variables, y)
                for part in (VALUE, GRADIENT, HESSIAN)
            }
            self.outputs |= {PRODUCT: [], FORWARD: []}
            if wrt:
                products = phintys.hessian_vector_product(y.sum(), wrt, self.tangents)
                self.outputs[PRODUCT] = list(products)
                self.outputs[FORWARD] = [phintys.pushforward(y, wrt, self.tangents)]
        columns = density.columns(self.truths.points, dtype)
        moves = [columns[k] * dtype_of(dtype, 0.5**n) for n, k in enumerate(density.differentiated)]
        self.arguments = [*columns, *moves]

    def results(self, parts: Iterable[str]) -> dict[str, np.ndarray]:
        """What a function that returns these parts gives: columns by part."""
        parts = [part for part in parts if self.outputs[part]]
        outputs = [q for part in parts for q in self.outputs[part]]
        inputs = [*self.variables, *self.tangents]
        with phintys.config.change_flags(floatX=self.dtype):
            found = called(phintys, inputs, outputs, self.arguments, "FAST_RUN")
        ends = np.cumsum([len(self.outputs[part]) for part in parts])[:-1]
        return dict(zip(parts, np.split(found, ends, axis=1), strict=True))

    def allowed(self) -> dict[str, np.ndarray]:
        """By part, what results may differ by.

        The tangents are parts of the inputs, so the condition of a value bounds the terms of its
        derivative in their direction, and that of a gradient the terms of the product.
        """
        n = len(self.outputs[GRADIENT])
        allowed = ROUNDING[self.dtype] * allowed_errors(self.truths, self.dtype)
        value, gradient, hessian = np.split(allowed, [1, 1 + n], axis=1)
        return {
            VALUE: value,
            GRADIENT: gradient,
            HESSIAN: hessian,
            PRODUCT: gradient,
            FORWARD: value,
        }


def dtype_of(dtype: str, number: float) -> np.floating:
    return np.dtype(dtype).type(number)


def differing(density: Density, form: str, dtype: str, count: int) -> list[str]:
    """The parts whose results depend on what else is compiled, in some subsets that are drawn."""
    compiled = Compiled(density, form, dtype)
    subsets = drawn_subsets(f"{density.name}/{form}", count)
    return differences([compiled.results(subset) for subset in subsets], compiled.allowed())


def drawn_subsets(name: str, count: int) -> list[tuple[str, ...]]:
    """Different subsets; the first has all parts."""
    return [ALL_PARTS, *random.Random(name).sample(SUBSETS, count - 1)]


def differences(
    results: Sequence[dict[str, np.ndarray]], allowed: dict[str, np.ndarray]
) -> list[str]:
    """The parts that differ between results of two subsets."""
    return [
        part
        for part in ALL_PARTS
        if any(
            not same(a[part], b[part], allowed[part])
            for a, b in itertools.combinations(results, 2)
            if part in a and part in b
        )
    ]


def same(a: np.ndarray, b: np.ndarray, allowed: np.ndarray) -> bool:
    """Whether numbers differ by no more than ``allowed``; those that are NaN there may differ."""
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= allowed
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    return bool(np.all(close | equal | np.isnan(allowed)))
