"""Modules that are imported when they are first read as attributes of their package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def submodule(package: str, name: str) -> ModuleType:
    """The module ``name`` of a package, for the ``__getattr__`` of the package.

    Programs write ``phintys.link.vm.VMLinker`` without an import of ``phintys.link.vm``, since
    PyTensor imports all of its modules at once.  Raises AttributeError if there is none.
    """
    path = f"{package}.{name}"
    if name.startswith("_") or not name.isidentifier() or find_spec(path) is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return import_module(path)
