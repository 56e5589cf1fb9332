"""Loops and branches in C."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
