"""Products of views whose few rows and columns are known: strides that BLAS takes are found."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import phintys
import phintys.tensor as pt

#: a view, and the shape of the array that it is taken of
VIEWS = {
    "rows": (lambda x: x, lambda m, n: (m, n)),
    "columns": (lambda x: x.T, lambda m, n: (n, m)),
    "every second column": (lambda x: x[:, ::2], lambda m, n: (m, 2 * n)),
    "every second row": (lambda x: x[::2], lambda m, n: (2 * m, n)),
    "every second of both": (lambda x: x[::2, ::2], lambda m, n: (2 * m, 2 * n)),
    "every second of both, transposed": (lambda x: x[::2, ::2].T, lambda m, n: (2 * n, 2 * m)),
    "backwards": (lambda x: x[::-1, ::-1], lambda m, n: (m, n)),
}
SIZES = [*product((1, 2, 3), repeat=3)]


@pytest.mark.parametrize("left", VIEWS)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_values(left, known):
    rng = np.random.default_rng(0)
    inputs, outputs, values, expected = [], [], [], []
    for (m, k, n), right in product(SIZES if known else SIZES[-1:], VIEWS):
        factors = []
        for name, *shape in ((left, m, k), (right, k, n)):
            view, base = VIEWS[name]
            values.append(rng.normal(size=base(*shape)))
            static = values[-1].shape if known else (None, None)
            inputs.append(pt.tensor(dtype="float64", shape=static))
            factors.append((view(inputs[-1]), view(values[-1])))
        (a, x), (b, y) = factors
        outputs.append(pt.dot(a, b))
        expected.append(x @ y)
    for found, wanted in zip(phintys.function(inputs, outputs)(*values), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
