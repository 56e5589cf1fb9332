"""Stubs (``.pyi``) that tell editors and type checkers what the names of an older package are.

Each has the names of a module of this package, and imports them from where they are defined, so the
types are the same.

>>> print(stub("typed_list.type"), end="")
from phintys.graph.type import Type as Type
from phintys.typed_list.type import TypedListType as TypedListType
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import phintys
from phintys.paths import MODULES, REWRITES
from phintys.planned import PATHS as PLANNED

_ROOT = Path(phintys.__file__).parent
#: Folders and modules that no older system has.
_OWN = frozenset(
    "array_api backends bitgen compat dims errors lazy locks lowering memo paths planned routines "
    "saturation testing".split()
)
#: The stub of a module that looks its names up.
_ANY = "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"


@cache
def _files() -> frozenset[str]:
    """The paths of the modules that have a file, without the first name; "" is the package."""
    found = {_path_of(file) for file in _ROOT.rglob("*.py")}
    return frozenset(
        path
        for path in found
        if path.partition(".")[0] not in _OWN and not path.rpartition(".")[2].startswith("_")
    )


def _path_of(file: Path) -> str:
    parts = file.relative_to(_ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _tree() -> dict[str, list[str]]:
    """The paths of all modules that have a stub, each with the names of the modules in it."""
    found: dict[str, list[str]] = {
        path: [] for path in sorted({*_files(), *MODULES, *PLANNED, *REWRITES})
    }
    for path in filter(None, found):
        package, _, name = path.rpartition(".")
        found[package].append(name)
    return found


def _module(path: str) -> ModuleType:
    return import_module(f"phintys.{path}".removesuffix("."))


@cache
def _is_looked_up(path: str) -> bool:
    """Whether a module finds its names when they are read, does not exist yet, or is in a package
    of a backend.

    The package of a backend needs another one that may not be installed, so it is not imported.
    """
    sources = [s for p in MODULES if f"{path}.".startswith(f"{p}.") for s in MODULES[p]]
    return path in (*REWRITES, *PLANNED) or any(
        source.startswith("backends.") for source in sources
    )


def _is_plain_module(value: object) -> bool:
    """Whether a value is a module, and not one that takes the place of a function."""
    return isinstance(value, ModuleType) and not callable(value)


def _names(path: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each public name of a module: the module is one that defines it."""
    module = _module(path)
    for name in sorted({*vars(module), *getattr(module, "__all__", ())}):
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""  # empty: a number, a table
        if name.startswith("_") or _is_plain_module(value) or _is_foreign(name, value, home):
            continue
        is_there = home in sys.modules and vars(sys.modules[home]).get(name) is value
        yield (home if is_there else _source(path, name)), name


def _is_foreign(name: str, value: object, home: str) -> bool:
    """Whether a value is one of another package, such as ``typing``."""
    if home.startswith("phintys"):
        return False
    package = sys.modules.get(home or "typing", typing)
    return vars(package).get(getattr(value, "__name__", name)) is value


def _source(path: str, name: str) -> str:
    """The module with a file from which the module at ``path`` has a name."""
    sources = [path] if path in _files() else MODULES[path]
    return next(m.__name__ for m in map(_module, sources) if hasattr(m, name))


def _is_attribute(package: str, name: str) -> bool:
    """Whether a package has a module as its attribute, which nothing of the same name hides."""
    path = f"{package}.{name}".removeprefix(".")
    if _is_looked_up(path):
        return True
    module = _module(path)
    return _is_plain_module(module) and getattr(_module(package), name) is module


def stub(path: str) -> str:
    """The text of the stub of the module at ``path``, such as ``"tensor.linalg"``.

    A package has its modules as attributes, except those that a function of the same name hides.
    """
    if _is_looked_up(path):
        return _ANY
    names = [f"from {home} import {name} as {name}\n" for home, name in sorted(_names(path))]
    modules = [name for name in _tree()[path] if _is_attribute(path, name)]
    return "".join([*names, *(f"from . import {name} as {name}\n" for name in modules)])


def stubs() -> dict[str, str]:
    """The stubs of all modules: their texts, by the path of the file in the package.

    >>> "tensor/linalg/__init__.pyi" in stubs(), "tensor/sort.pyi" in stubs()
    (True, True)
    """
    found: dict[str, str] = {}
    for path, children in _tree().items():
        end = "/__init__.pyi" if children else ".pyi"
        found[f"{path.replace('.', '/')}{end}".removeprefix("/")] = stub(path)
    return found
