"""Folders of tests are not found in the place of packages that are not installed."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec

import pytest
from plain_folders import BACKENDS, PlainFolder


@pytest.mark.parametrize("folder", ["jax", "numba", "llvm"])
def test_a_folder_is_no_package(folder, monkeypatch):
    monkeypatch.delitem(sys.modules, folder, raising=False)
    monkeypatch.setattr(sys, "path", [BACKENDS])
    assert isinstance(sys.path_importer_cache[BACKENDS], PlainFolder)
    assert find_spec(folder) is None
    assert folder not in sys.modules
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(folder)


def test_modules_of_the_folder_are_found(monkeypatch):
    monkeypatch.setattr(sys, "path", [BACKENDS])
    assert find_spec("test_failed_calls") is not None
