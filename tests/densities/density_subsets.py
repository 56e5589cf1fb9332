"""Each output has the same value, whatever else is compiled with it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
from density_evaluate import GRADIENT, PARTS, VALUE, built, called, expressions
from density_judge import CLEARLY, excess
from density_row import Density
from density_truth import Truths, truths

import phintys

#: the product of the Hessian with a vector; the derivative in a direction, forward
PRODUCT, FORWARD = "product", "forward"
ALL_PARTS = (*PARTS, PRODUCT, FORWARD)
#: all but the whole and the empty one
SUBSETS = [
    subset for n in range(1, len(ALL_PARTS)) for subset in itertools.combinations(ALL_PARTS, n)
]
#: how many subsets are compiled in short tests and in long ones
FEW, MANY = 3, 8


class Compiled:
    """The quantities of a form as expressions, of which subsets are compiled."""

    def __init__(self, density: Density, form: str, dtype: str) -> None:
        self.density, self.dtype = density, dtype
        with phintys.config.change_flags(floatX=dtype):
            self.variables, y = built(density, form, dtype, phintys)
            wrt = [self.variables[k] for k in density.differentiated]
            self.tangents = [x.type(f"t{k}") for k, x in enumerate(wrt)]
            self.outputs = {
                part: expressions(density, phintys, part, self.variables, y) for part in PARTS
            }
            self.outputs |= {PRODUCT: [], FORWARD: []}
            if wrt:
                products = phintys.hessian_vector_product(y.sum(), wrt, self.tangents)
                self.outputs[PRODUCT] = list(products)
                self.outputs[FORWARD] = [phintys.pushforward(y, wrt, self.tangents)]

    def errors(self, parts: Sequence[str]) -> dict[str, np.ndarray]:
        """The errors of a function that returns these parts, in units of what is allowed."""
        found = truths(self.density, self.dtype)
        columns = self.density.columns(found.points, self.dtype)
        parts = [part for part in parts if self.outputs[part]]
        results = self.results(parts, [*columns, *self.density.tangents(columns)])
        numbers, conditions = by_part(found, len(self.density.differentiated))
        return {
            part: excess(results[part], numbers[part], conditions[part], self.dtype)
            for part in parts
        }

    def results(self, parts: Sequence[str], arguments: list[np.ndarray]) -> dict[str, np.ndarray]:
        """What a function that returns these parts gives."""
        if not parts:
            return {}
        outputs = [q for part in parts for q in self.outputs[part]]
        inputs = [*self.variables, *self.tangents]
        with phintys.config.change_flags(floatX=self.dtype):
            found = called(phintys, inputs, outputs, arguments, "FAST_RUN")
        ends = np.cumsum([len(self.outputs[part]) for part in parts])[:-1]
        return dict(zip(parts, np.split(found, ends, axis=1), strict=True))


def by_part(found: Truths, n: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The numbers and the conditions of each part of a density with n differentiated inputs.

    The tangents are parts of the inputs, so the condition of a value bounds the terms of its
    derivative in their direction, and that of a gradient the terms of the product.
    """
    product, forward = np.split(found.directional, [n], axis=1)
    numbers = dict(zip(PARTS, np.split(found.numbers, [1, 1 + n], axis=1), strict=True))
    conditions = dict(zip(PARTS, np.split(found.conditions, [1, 1 + n], axis=1), strict=True))
    return (
        numbers | {PRODUCT: product, FORWARD: forward},
        conditions | {PRODUCT: conditions[GRADIENT], FORWARD: conditions[VALUE]},
    )


def differing(density: Density, form: str, dtype: str, count: int) -> list[str]:
    """The parts whose results depend on what else is compiled, in some subsets that are drawn."""
    compiled = Compiled(density, form, dtype)
    subsets = drawn_subsets(f"{density.name}/{form}", count)
    errors = [compiled.errors(subset) for subset in subsets]
    return [part for part in ALL_PARTS if differ([e[part] for e in errors if part in e])]


def differ(errors: list[np.ndarray]) -> bool:
    """Whether a place is clearly right in one subset and clearly wrong in another."""
    if not errors:
        return False
    return bool(np.any((np.min(errors, axis=0) < 1 / CLEARLY) & (np.max(errors, axis=0) > CLEARLY)))


def drawn_subsets(name: str, count: int) -> list[tuple[str, ...]]:
    """Different subsets; the first has all parts."""
    return [ALL_PARTS, *random.Random(name).sample(SUBSETS, count - 1)]
