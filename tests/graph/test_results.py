"""What is checked of the results of ``perform``."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np

from phintys.graph.results import is_masked


def test_masked_arrays_are_found():
    assert is_masked(np.ma.array([1.0]))
    assert not is_masked(np.ones(1))


def test_no_array_is_masked_while_the_module_is_imported(monkeypatch):
    """By another thread: the module has no class yet."""
    monkeypatch.setitem(sys.modules, "numpy.ma", ModuleType("numpy.ma"))
    assert not is_masked(np.ones(1))
