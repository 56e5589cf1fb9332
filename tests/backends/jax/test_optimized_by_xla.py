"""Mode JAX with all optimizations of XLA, most of which `conftest` turns off for other tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from child_environment import plain_environment
from tiers import rest

TESTS = Path(__file__).parents[1]


@rest
@pytest.mark.needs("jax")
@pytest.mark.parametrize("module", ["test_transpilers.py", "test_transpiled_loops.py"])
def test_values(module: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-k",
            "JAX",
            str(TESTS / module),
        ],
        env={**plain_environment(), "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"},
        cwd=TESTS.parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
