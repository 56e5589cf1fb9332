"""Loops and branches in C."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import scan
from phintys.backends.c import compile_program
from phintys.backends.c import compiler as build_module
from phintys.lowering.interpret import interpret

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from loop_programs import CASES

pytestmark = pytest.mark.skipif(
    not any(shutil.which(c) for c in build_module.COMPILERS), reason="there is no C compiler here"
)


def unexpected(values: Any, step: int) -> None:
    raise AssertionError(f"step {step} failed")


@pytest.mark.parametrize("name", CASES)
def test_loops_in_c(name):
    program, cases = CASES[name]()
    run = compile_program(program, unexpected)
    for args in cases:
        for found, expected in zip(run(args), interpret(program, *args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def long_row(row, y):
    """A row whose length is so long an expression that the step computes it first."""
    for _ in range(3):
        row = pt.concatenate([row[:3], pt.exp(row[3:]), y[::3], row[::2]])
    return row


def test_rows_and_states_of_lengths_that_a_step_computes():
    """Their memory is made in each iteration: lengths are not known before."""
    x, y, m = pt.dvector("x"), pt.dvector("y"), pt.dmatrix("m")
    rows = scan(lambda a, y, m: long_row(m[0] * a, y), [x], [None], [y, m], return_updates=False)
    states = scan(
        lambda a, s, y, m: pt.tanh(long_row(m[0] * a, y) + s),
        [x],
        [long_row(m[0], y)],
        [y, m],
        return_updates=False,
    )
    for out in (rows, states):
        f, g = (phintys.function([x, y, m], out, mode=mode) for mode in ("C", "NUMPY"))
        for k in [30] * 20 + [3, 300, 50]:  # the heap is checked now and then
            args = [np.ones(3), np.ones(2), np.ones((2, k))]
            np.testing.assert_allclose(f(*args), g(*args), rtol=1e-12)
