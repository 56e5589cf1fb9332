"""Chains in which functions and operations that are moved through them take turns."""

from __future__ import annotations

import numpy as np
import pytest
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.compile.mode import get_mode

CHAINS = {
    "read": (pt.dvector, lambda x: pt.exp(x[1:])),
    "reversed": (pt.dvector, lambda x: pt.exp(x)[::-1]),
    "reshaped": (pt.dmatrix, lambda x: pt.exp(x.reshape((x.shape[1], x.shape[0])))),
    "transposed": (pt.dmatrix, lambda x: pt.exp(x.T)),
}


def chain(name, n):
    type_, step = CHAINS[name]
    x = y = type_("x")
    for _ in range(n):
        y = step(y)
    return phintys.FunctionGraph([x], [y])


@pytest.mark.parametrize("name", few(CHAINS, "read", "transposed"))
def test_the_time_of_rewriting_is_linear(name, lines_run):
    optimizer = get_mode("FAST_RUN").optimizer
    optimizer.rewrite(chain(name, 3))  # fills caches
    small = lines_run(optimizer.rewrite, chain(name, 64))
    large = lines_run(optimizer.rewrite, chain(name, 384))
    assert large < 10 * small


def test_values_of_a_chain_in_which_some_reads_are_not_moved():
    x = y = pt.dvector("x")
    for _ in range(80):
        y = pt.sin(y[1:])
    value = np.linspace(0.0, 1.0, 85)
    expected = value[80:]
    for _ in range(80):
        expected = np.sin(expected)
    np.testing.assert_allclose(phintys.function([x], y)(value), expected, rtol=1e-12)
