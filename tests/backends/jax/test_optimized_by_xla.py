"""Mode JAX with all optimizations of XLA, most of which `conftest` turns off for other tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import rest

TESTS = Path(__file__).parents[1]


@rest
@pytest.mark.needs("jax")
@pytest.mark.parametrize("module", ["test_transpilers.py", "test_transpiled_loops.py"])
def test_values(module: str) -> None:
    own = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
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
        env={**own, "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"},
        cwd=TESTS.parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
