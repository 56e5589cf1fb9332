"""Modes: a mode selects the rewrites that are applied and the backend that runs the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from phintys.compile.linker import LINKERS, Linker, get_linker, register_linker
from phintys.config import config
from phintys.errors import did_you_mean
from phintys.graph.variable import late_bound
from phintys.rewriting.attach import (
    AddDestroyHandler,
    AddFeatureOptimizer,
    PrintCurrentFunctionGraph,
)
from phintys.rewriting.database import RewriteDatabaseQuery, optdb

#: name -> selection of rewrites
OPTIMIZERS: dict[str, RewriteDatabaseQuery] = {
    "None": RewriteDatabaseQuery(include=["minimum_compile"]),
    "minimum_compile": RewriteDatabaseQuery(include=["minimum_compile"]),
    "merge": RewriteDatabaseQuery(include=["merge"]),
    "o4": RewriteDatabaseQuery(include=["fast_run"]),
    "o3": RewriteDatabaseQuery(include=["fast_run"], exclude=["inplace"]),
    "o2": RewriteDatabaseQuery(include=["fast_compile", "fusion"], exclude=["inplace"]),
    "o1": RewriteDatabaseQuery(include=["fast_compile"], exclude=["inplace"]),
    "fast_run": RewriteDatabaseQuery(include=["fast_run"]),
    "fast_run_stable": RewriteDatabaseQuery(include=["fast_run", "stable"], exclude=["inplace"]),
    "fast_compile": RewriteDatabaseQuery(include=["fast_compile"]),
    "egglog": RewriteDatabaseQuery(include=["fast_run", "saturate"]),
    "stabilize": RewriteDatabaseQuery(include=["fast_run"], exclude=["inplace"]),
    "unsafe": RewriteDatabaseQuery(include=["unsafe"]),
}


OPT_NONE, OPT_MERGE = OPTIMIZERS["None"], OPTIMIZERS["merge"]
OPT_MINIMUM, OPT_UNSAFE = OPTIMIZERS["minimum_compile"], OPTIMIZERS["unsafe"]
OPT_FAST_RUN, OPT_FAST_RUN_STABLE = OPTIMIZERS["fast_run"], OPTIMIZERS["fast_run_stable"]
OPT_FAST_COMPILE, OPT_STABILIZE = OPTIMIZERS["fast_compile"], OPTIMIZERS["stabilize"]
OPT_O2, OPT_O3 = OPTIMIZERS["o2"], OPTIMIZERS["o3"]
#: the tables under their names in other systems
predefined_linkers, predefined_optimizers = LINKERS, OPTIMIZERS


def register_optimizer(name: str, query: RewriteDatabaseQuery) -> None:
    """Add a named selection of rewrites to `OPTIMIZERS`.

    Raises ValueError if the name is taken.
    """
    if name in OPTIMIZERS:
        raise ValueError(f"There is an optimizer called {name!r} already.")
    OPTIMIZERS[name] = query


def selection(optimizer: Any) -> Any:
    """The selection of rewrites that the argument ``optimizer`` of `Mode` stands for.

    ValueError if there is none of that name.
    """
    name = "None" if optimizer is None else optimizer
    if isinstance(name, str) and name == "default":
        name = config.optimizer
    if not isinstance(name, str):
        return optimizer
    if name not in OPTIMIZERS:
        hint = did_you_mean(name, OPTIMIZERS)
        raise ValueError(f"There is no optimizer {name!r}.{hint}")
    return OPTIMIZERS[name]


class Mode:
    """A linker and a selection of rewrites.

    Parameters
    ----------
    linker
        a name (``llvm``, ``py``, ``c``, ``numba``, ``jax``) or a `Linker`; None: ``config.linker``
    optimizer
        a name of `OPTIMIZERS`, a `RewriteDatabaseQuery`, a rewriter (an object with a method
        ``rewrite``), or None for the least that compilation needs; by default
        ``config.optimizer``
    db
        the database to query; None: `optdb`

    Raises
    ------
    ValueError
        if there is no linker or no optimizer of that name

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> mode = Mode("py", "fast_compile")
    >>> mode.linker.name
    'py'
    >>> phintys.function([x], x + 1, mode=mode.excluding("stabilize"))([1.0])
    array([2.])
    """

    def __init__(self, linker: Any = None, optimizer: Any = "default", db: Any = None) -> None:
        self.provided_linker = config.linker if linker is None else linker
        self.linker: Linker = get_linker(self.provided_linker)
        self.provided_optimizer: Any = selection(optimizer)
        self.optdb = optdb if db is None else db

    @property
    def key(self) -> Any:
        """Identifies the rewrites that are applied, as part of cache keys.

        None if some of them are not of this package: code made with those is not cached.
        """
        query = self.provided_optimizer
        own = self.optdb is optdb and optdb.is_own
        if not own or not isinstance(query, RewriteDatabaseQuery) or query.extra_rewrites:
            return None
        return self.linker.name, query.key

    @property
    def _optimizer(self) -> Any:
        """Other name of ``provided_optimizer``, the selection of rewrites."""
        return self.provided_optimizer

    @property
    def optimizer(self) -> Any:
        """The rewriter that the query selects, under the current settings."""
        query = self.provided_optimizer
        if not isinstance(query, RewriteDatabaseQuery):
            return query
        query = query.including(*self.linker.required_rewrites)
        query = query.excluding(*self.linker.incompatible_rewrites)
        if config.optimizer_including:
            query = query.including(*config.optimizer_including.split(":"))
        if config.optimizer_excluding:
            query = query.excluding(*config.optimizer_excluding.split(":"))
        if config.optimizer_requiring:
            query = query.requiring(*config.optimizer_requiring.split(":"))
        if config.optdb__position_cutoff < query.position_cutoff:
            query = query.replace(position_cutoff=config.optdb__position_cutoff)
        return self.optdb.query(query)

    @property
    def function_maker(self) -> Any:
        """The class whose instances make the functions of this mode.

        By default `FunctionMaker`; a subclass may return a subclass of it.
        """
        return late_bound["function_maker"]

    def get_linker_optimizer(self, linker: Any, optimizer: Any) -> tuple[Linker, Any]:
        """The linker and the selection of rewrites that two arguments of `Mode` stand for.

        The linker ``""`` and the optimizer ``"default"`` are those of this mode.
        """
        found = self.linker if linker == "" else get_linker(linker)
        own = isinstance(optimizer, str) and optimizer in ("", "default")
        return found, self.provided_optimizer if own else selection(optimizer)

    def _derive(self, query: Any) -> Self:
        new = object.__new__(type(self))
        vars(new).update(vars(self), provided_optimizer=query)
        return new

    def with_linker(self, linker: Linker) -> Self:
        """A mode with another linker and the same selection of rewrites."""
        new = self._derive(self.provided_optimizer)
        new.linker = new.provided_linker = linker
        return new

    def including(self, *tags: str) -> Self:
        """A mode that also applies the rewrites with one of the tags."""
        return self._derive(self.provided_optimizer.including(*tags))

    def excluding(self, *tags: str) -> Self:
        """A mode that leaves out the rewrites with one of the tags."""
        return self._derive(self.provided_optimizer.excluding(*tags))

    def requiring(self, *tags: str) -> Self:
        """A mode that applies only rewrites with all of the tags."""
        return self._derive(self.provided_optimizer.requiring(*tags))

    def register(self, *rewrites: Any) -> Self:
        """A mode that also applies rewriters, given as pairs (rewriter, position)."""
        return self._derive(self.provided_optimizer.register(*rewrites))

    def clone(self, link_kwargs: Any = None, optimizer: Any = "", **kwargs: Any) -> Self:
        """A copy; ``optimizer`` replaces the selection of rewrites."""
        return self._derive(self.provided_optimizer if optimizer == "" else selection(optimizer))

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "optdb"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, optdb=optdb)

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}(linker={self.linker.name}, optimizer={self.provided_optimizer})"
        )

    __repr__ = __str__


_named: dict[str, Mode] = {}
_DEFINITIONS = {
    "FAST_RUN": ("llvm", "fast_run"),
    "FAST_COMPILE": ("py", "fast_compile"),
    "LLVM": ("llvm", "fast_run"),
    "CVM": ("llvm", "fast_run"),
    "C": ("c", "fast_run"),
    "NUMBA": ("numba", "fast_run"),
    "JAX": ("jax", "fast_run"),
    "NUMPY": ("py", "fast_run"),
    "PY": ("py", "fast_run"),
    "VM": ("llvm", "fast_run"),
    "EGGLOG": ("llvm", "egglog"),
}
#: name -> function that makes the mode, for modes with a class of their own
_MAKERS: dict[str, Callable[[], Mode]] = {}


def register_mode(name: str, mode: Mode) -> None:
    """Add a named mode for `get_mode`.  Raises ValueError if the name is taken."""
    _check_free(name)
    _named[name.upper()] = mode


def register_mode_class(name: str, make: Callable[[], Mode]) -> None:
    """Add a named mode that ``make`` makes when it is asked for, with the settings at that time.

    Raises ValueError if the name is taken.
    """
    _check_free(name)
    _MAKERS[name.upper()] = make


def _check_free(name: str) -> None:
    if name.upper() in _known_names():
        raise ValueError(f"There is a mode called {name!r} already.")


def _known_names() -> set[str]:
    return {*_named, *_DEFINITIONS, *_MAKERS}


def get_mode(mode: Any = None) -> Mode:
    """The mode of a name; None is ``config.mode``.  Names are not case-sensitive.

    If that is FAST_RUN, ``config.linker`` and ``config.optimizer`` apply to it.  A `Mode` is
    returned as it is.  Raises ValueError if there is no mode of that name.

    >>> get_mode("fast_run").linker.name
    'llvm'
    """
    wanted = config.mode if mode is None else mode
    if isinstance(wanted, Mode):
        return wanted
    name = str(wanted)
    key = name.upper()
    if key == "MODE" or (mode is None and key == "FAST_RUN" and _is_other_mode_set()):
        return Mode()
    if key in _MAKERS:
        return _MAKERS[key]()
    found = _named.get(key)
    if found is None:
        if key not in _DEFINITIONS:
            hint = did_you_mean(key, sorted(_known_names()))
            raise ValueError(f"There is no mode {name!r}.{hint}")
        found = _named[key] = Mode(*_DEFINITIONS[key])
    return found


def _check_setting(value: Any) -> None:
    """ValueError if ``config.mode`` is given neither a `Mode` nor the name of one."""
    if isinstance(value, Mode):
        return
    names = sorted(_known_names() | {"MODE"})
    if not isinstance(value, str) or value.upper() not in names:
        hint = did_you_mean(str(value).upper(), names)
        raise ValueError(
            f"{value!r} is not a legal value of config.mode: choose from {names}.{hint}"
        )


def _is_other_mode_set() -> bool:
    """Whether the settings name another linker or selection of rewrites than the default ones."""
    return (config.linker, config.optimizer) != ("auto", "fast_run")


def __getattr__(name: str) -> Any:
    """The predefined modes are attributes of this module, and a dict of them."""
    if name == "predefined_modes":
        return {known: get_mode(known) for known in _DEFINITIONS}
    if name not in _DEFINITIONS and name not in _MAKERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return get_mode(name)


def get_default_mode() -> Mode:
    """The mode of functions that are made without ``mode=``: that of ``config.mode``.

    >>> get_default_mode() is get_mode("FAST_RUN")
    True
    """
    return get_mode(None)


def get_target_language(mode: Any = None) -> tuple[str, ...]:
    """The name of the backend of a mode, as a tuple."""
    return (get_mode(mode).linker.name,)


__all__ = [
    "LINKERS",
    "OPTIMIZERS",
    "OPT_FAST_COMPILE",
    "OPT_FAST_RUN",
    "OPT_FAST_RUN_STABLE",
    "OPT_MERGE",
    "OPT_MINIMUM",
    "OPT_NONE",
    "OPT_O2",
    "OPT_O3",
    "OPT_STABILIZE",
    "OPT_UNSAFE",
    "AddDestroyHandler",
    "AddFeatureOptimizer",
    "Mode",
    "PrintCurrentFunctionGraph",
    "get_default_mode",
    "get_mode",
    "get_target_language",
    "predefined_linkers",
    "predefined_optimizers",
    "register_linker",
    "register_mode",
    "register_mode_class",
    "register_optimizer",
    "unrewritten",
]


def unrewritten(linker: Linker, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """A function by a linker, without rewriting."""
    return late_bound["function"](
        list(inputs),
        list(outputs),
        mode=Mode(linker, RewriteDatabaseQuery(include=["minimum_compile"])),
        accept_inplace=True,
        on_unused_input="ignore",
    )


config.check_with("mode", _check_setting)
late_bound["get_mode"] = get_mode
late_bound["unrewritten"] = unrewritten
