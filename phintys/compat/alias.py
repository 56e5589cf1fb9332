"""Modules of this package under the names of an older system: the same objects.

>>> from phintys.compat.alias import own_name
>>> own_name("pytensor.tensor.linalg", "pytensor")
'phintys.tensor.linalg'
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType

import phintys
from phintys.compat.switches import apply_switches, defaults
from phintys.compat.systems import checked
from phintys.compat.tables import extend, extend_loaded
from phintys.config import config
from phintys.config.sources import given_values
from phintys.paths import extensions

#: Held while modules of this package are imported for their older names, and by `install`.
#: Otherwise two threads that import a package and a module in it, which import each other, would
#: each wait for the other's, and Python would raise ``_DeadlockError``.
_lock = threading.RLock()
#: For how many seconds a thread waits for the lock, at most: one that holds it may import a module
#: of another package, whose import in the waiting thread has led here.  Then both imports go on.
PATIENCE = 20.0


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # a thread that held the lock does not exist in the child
    os.register_at_fork(after_in_child=_new_lock)


@contextmanager
def _turn() -> Generator[None]:
    """A context in which no other thread imports modules for their older names.

    RuntimeWarning if `PATIENCE` has not been enough.
    """
    lock = _lock  # a fork in this context makes another one
    held = lock.acquire(timeout=PATIENCE)
    if not held:
        warnings.warn(
            f"An import of a module of phintys under an older name has waited {PATIENCE:g} seconds "
            "for one in another thread, and goes on without it. If a program hangs or fails after "
            "this, import the module before the threads start.",
            RuntimeWarning,
            stacklevel=2,
        )
    try:
        yield
    finally:
        if held:
            lock.release()


def own_name(path: str, system: str) -> str:
    """The name of the module here that an older system has at ``path``."""
    return "phintys" + path.removeprefix(system)


class _Finder(MetaPathFinder, Loader):
    """Finds the modules of this package under the name of an older system.

    It is asked before Python's own finders, which would find the files of a package under its other
    name, and run them again.
    """

    def __init__(self, system: str) -> None:
        self.system = system

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.system and not fullname.startswith(f"{self.system}."):
            return None
        # without a lock: Python holds its global import lock, which imports in other threads need
        found = find_spec(own_name(fullname, self.system))
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, self, origin=found.origin, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of this package, whose own spec is kept for `exec_module`.

        Python sets the attribute ``__spec__`` of what this method returns, and no other attribute
        that the module has.
        """
        with _turn():
            module = import_module(own_name(spec.name, self.system))
        extend(self.system, module)
        spec.loader_state = _own_spec(module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = _own_spec(module)
        with _turn():
            self.share_loaded()

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of a module, for ``python -m``; ImportError if it has no file."""
        own = own_name(fullname, self.system)
        found = find_spec(own)
        if found is None or not isinstance(found.loader, InspectLoader):
            raise ImportError(f"{fullname} has no file that could be run.", name=fullname)
        return found.loader.get_code(own)

    def share_loaded(self) -> None:
        """Enter all modules of this package that are loaded in ``sys.modules``.

        Python sets a module that it loads as an attribute of its package, also where the package
        has a function of that name, as ``tensor.sort``.  Such a module is always loaded with its
        package, so it is found in ``sys.modules``, and not loaded, when it is imported.
        """
        for name in list(sys.modules):
            older = self.system + name.removeprefix("phintys")
            if name.startswith("phintys.") and older not in sys.modules:
                sys.modules.setdefault(older, import_module(name))


def _own_spec(module: ModuleType) -> ModuleSpec | None:
    """The spec that a module of this package was made with."""
    spec = module.__spec__
    if spec is None or not isinstance(spec.loader, _Finder):
        return spec
    return spec.loader_state


def _refuse_foreign(system: str) -> None:
    """ImportError if a module of a package of that name, which is not this one, is imported."""
    for name in sorted(name for name in list(sys.modules) if name.partition(".")[0] == system):
        module = sys.modules.get(name)
        if module is sys.modules.get(own_name(name, system)):
            continue
        where = getattr(module, "__file__", None) or "an unknown place"
        raise ImportError(
            f"{system} is already imported, from {where}. Call phintys.compat.install({system!r}) "
            f"before the first import of {system}, or start the program by "
            f"`python -m phintys.compat run --as {system} PROGRAM`.",
            name=system,
        )


def install(system: str) -> None:
    """Let ``import pytensor`` mean this package, in this process.

    ``import pytensor.X.Y`` gives the same module object as ``import phintys.X.Y``.  The settings in
    ``PYTENSOR_FLAGS`` and ``~/.pytensorrc`` are read, see `given_values`; a name among them that no
    setting has gives a warning.  What must differ under an older name is set, see
    `phintys.compat.switches`.  A second call does nothing.

    Parameters
    ----------
    system : ``"pytensor"``, ``"aesara"`` or ``"theano"``

    ValueError for other names, and for a setting with an illegal value; TypeError for what is no
    text; ImportError if another package of that name is imported already.

    >>> import phintys.compat
    >>> phintys.compat.install("pytensor")  # doctest: +SKIP
    >>> import pytensor.tensor as pt  # doctest: +SKIP
    """
    checked(system)
    with _lock:
        if any(isinstance(f, _Finder) and f.system == system for f in sys.meta_path):
            return
        _refuse_foreign(system)
        own = given_values(os.environ)
        given = given_values(os.environ, system)
        config.use({name: value for name, value in given.items() if own.get(name) != value})
        config.use(defaults({**own, **given}))
        config.warn_unused_flags()
        apply_switches()
        finder = _Finder(system)
        # before any module has the name: its parts must not be found as files of this package
        sys.meta_path.insert(0, finder)
        sys.modules[system] = phintys
        finder.share_loaded()
        extend_loaded(system)
        extensions.append(partial(extend, system))


def hand_over(path: str) -> None:
    """Let the module at ``path`` of an older system be the one here: what `names` calls."""
    install(path.partition(".")[0])
    import_module(path)
