"""A pytest plugin: a test draws the same numbers whatever ran before it.

Random generators that modules of the tests hold are set back before each test to what they were
when all modules were imported.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

HERE = str(Path(__file__).parent)
#: each generator's bit generator and its state
STATES: list[tuple[np.random.BitGenerator, Mapping[str, object]]] = []


def pytest_collection_finish() -> None:
    modules = [
        m for m in sys.modules.values() if (getattr(m, "__file__", "") or "").startswith(HERE)
    ]
    held = [value for module in modules for value in vars(module).values()]
    generators = {v.bit_generator for v in held if isinstance(v, np.random.Generator)}
    STATES[:] = [(generator, generator.state) for generator in generators]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    for generator, state in STATES:
        generator.state = state
