"""Modules that are imported when they are first read as attributes of their package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _SciPy(ModuleType):
    """A module of SciPy, which is imported when an attribute is read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def lazy_scipy_module(submodule: str) -> Any:
    """A module of SciPy, which is imported when one of its attributes is read first.

    >>> special = lazy_scipy_module("special")
    >>> float(special.expit(0.0))
    0.5
    """
    return _SciPy(f"scipy.{submodule}")


def submodule(package: str, name: str) -> ModuleType:
    """The module ``name`` of a package, for the ``__getattr__`` of the package.

    Programs write ``phintys.link.vm.VMLinker`` without an import of ``phintys.link.vm``, since
    PyTensor imports all of its modules at once.  Raises AttributeError if there is none.
    """
    path = f"{package}.{name}"
    if name.startswith("_") or not name.isidentifier() or find_spec(path) is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return import_module(path)


def hand_on(module: ModuleType, *sources: ModuleType) -> None:
    """Set the public names of ``sources``, which import ``module``, in ``module``.

    The older systems have them there.
    """
    for source in sources:
        for name in source.__all__:
            setattr(module, name, getattr(source, name))
