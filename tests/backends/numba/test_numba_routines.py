"""Every op whose Numba function is made of routines: its values are those of `perform`."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_nodes import alone, examples
from tiers import few

import phintys

pytest.importorskip("numba")
from phintys.backends.numba import checks, linalg
from phintys.backends.numba.dispatch import numba_funcify
from phintys.backends.numba.routines import by_routine

OPS = [cls for cls, function in numba_funcify.registry.items() if function is by_routine]


def test_all_are_here():
    assert {linalg.Eigvalsh, linalg.Lstsq, checks.FittingFilters, *CHEAP} <= set(OPS)


#: the others call the same functions of the library from longer routines, which compile for seconds
CHEAP = linalg.PivotToPermutations, linalg.SolveTriangular


@pytest.mark.parametrize("cls", few(OPS, *CHEAP), ids=lambda cls: cls.__name__)
def test_values(cls):
    node, values = examples("float64")[cls][0]
    inputs, new, places = alone(node)
    given = [values[k] for k in places]
    reference, f = (
        phintys.function(inputs, new.outputs, mode=mode) for mode in ("FAST_COMPILE", "NUMBA")
    )
    for found, expected in zip(f(*given), reference(*given), strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
