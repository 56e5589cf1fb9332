"""Checks for the tests of packages that define ops and rewrites.

- `check_op`: values on every backend, static types, shapes, both derivatives, batches.
- `assert_equal_computations`, `RewriteTester`, `OptimizationTestMixin`: graphs after rewriting.
- `OpContractTestMixin`, `InferShapeTester`: the older, class-based forms.
- `verify_grad`: a gradient against finite differences.

>>> import numpy as np, phintys.tensor as pt
>>> from phintys.testing import check_op
>>> check_op(pt.logaddexp, [np.array([0.5, -1.0]), np.array(2.0)], expected=np.logaddexp)
"""

from __future__ import annotations

from phintys.gradient.verify import verify_grad
from phintys.testing.graphs import (
    OptimizationTestMixin,
    RewriteTester,
    assert_equal_computations,
)
from phintys.testing.ops import InferShapeTester, OpContractTestMixin, check_op

__all__ = [
    "InferShapeTester",
    "OpContractTestMixin",
    "OptimizationTestMixin",
    "RewriteTester",
    "assert_equal_computations",
    "check_op",
    "verify_grad",
]
