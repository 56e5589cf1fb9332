"""A pytest plugin: folders of ``tests/backends`` are no packages.

They have the names of frameworks.  Where one is not installed, its import would find the folder.
"""

from __future__ import annotations

import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

BACKENDS = str(Path(__file__).with_name("backends"))


class PlainFolder(FileFinder):
    """Finds the modules of a folder, but no packages without ``__init__``."""

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = super().find_spec(fullname, target)
        return None if spec is not None and spec.loader is None else spec


sys.path_importer_cache[BACKENDS] = PlainFolder(BACKENDS, (SourceFileLoader, SOURCE_SUFFIXES))
