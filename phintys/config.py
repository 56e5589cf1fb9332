"""The settings: attributes of the object `config`.

Their initial values come from the environment variable ``PHINTYS_FLAGS``
(``PHINTYS_FLAGS=floatX=float32,mode=FAST_COMPILE``).  A setting is read when a graph is built or a
function is compiled; later changes do not affect a compiled function.

>>> from phintys.config import config
>>> with config.change_flags(floatX="float32"):
...     config.floatX
'float32'
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ContextDecorator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phintys.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: name, default value, description, legal values (None: any of its type).

    ``limits`` are the least and the greatest legal value of an integer setting.
    """

    name: str
    default: Any
    doc: str
    choices: tuple[Any, ...] | None = None
    limits: tuple[int, int] | None = None

    def parse(self, value: Any) -> Any:
        """``value`` as a value of the setting, parsed if it is a string; ValueError if illegal."""
        kind: Any = type(self.default)
        if isinstance(value, str) and kind is bool:
            value = _parse_bool(self.name, value)
        elif isinstance(value, str) and kind in (int, float):
            value = self._number(value)
        if self.limits is not None and not self._is_within(value):
            raise ValueError(
                f"{value!r} is not a legal value of config.{self.name}: give an integer from "
                f"{self.limits[0]} to {self.limits[1]}."
            )
        if self.choices is not None and value not in self.choices:
            raise ValueError(
                f"{value!r} is not a legal value of config.{self.name}: choose from {self.choices}."
            )
        return value

    def _number(self, text: str) -> Any:
        """``text`` as a number of the type of the default."""
        try:
            return type(self.default)(text)
        except ValueError:
            raise ValueError(
                f"{text!r} is not a legal value of config.{self.name}: give a number."
            ) from None

    def _is_within(self, value: Any) -> bool:
        assert self.limits is not None
        return isinstance(value, int) and self.limits[0] <= value <= self.limits[1]


def _parse_bool(name: str, value: str) -> bool:
    lowered = value.strip().lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(f"{value!r} is not a legal value of config.{name}: write True or False.")


_SETTINGS = [
    Setting(
        "floatX",
        "float64",
        "dtype of tensors whose dtype is not given",
        ("float16", "float32", "float64"),
    ),
    Setting(
        "cast_policy",
        "custom",
        "how Python numbers are typed: 'custom' gives the smallest dtype that holds the value, "
        "'numpy2' gives int64 and float64",
        ("custom", "numpy+floatX", "numpy2"),
    ),
    Setting("mode", "FAST_RUN", "mode of functions that are made without the argument mode"),
    Setting("linker", "auto", "linker of modes that are made without the argument linker"),
    Setting("optimizer_including", "", "tags of rewrites to add to every mode, separated by ':'"),
    Setting("optimizer_excluding", "", "tags of rewrites to leave out of every mode"),
    Setting(
        "on_unused_input",
        "raise",
        "what `function` does with an input that is not used",
        ("raise", "warn", "ignore"),
    ),
    Setting("cache_dir", "", "directory of compiled code; empty: the user's cache directory"),
    Setting("base_compiledir", "", "older name of cache_dir"),
    Setting(
        "cache_bytes",
        512 * 2**20,
        "greatest size of the cache of compiled code on disk, in bytes; the least recently used "
        "files are removed first. 0: nothing is written or read",
        limits=(0, 2**63 - 1),
    ),
    Setting("cxx", "", "C compiler of mode 'C'; empty: cc, gcc or clang, whichever is found"),
    Setting("gcc__cxxflags", "", "further arguments of the C compiler"),
    Setting(
        "loader",
        "auto",
        "loader of machine code: 'llvm' is LLVM's linker; 'auto' is the loader of this package "
        "where it can be used, else LLVM's linker",
        ("auto", "llvm"),
    ),
    Setting(
        "cpu",
        "native",
        "processor that code is generated for: 'native', or a name that LLVM knows, such as "
        "'x86-64-v3'",
    ),
    Setting(
        "vector_bits",
        0,
        "width of vector registers in bits that loops are vectorized for; 0: the processor's own",
        (0, 128, 256, 512),
    ),
    Setting("threads", 1, "threads a compiled kernel may use", limits=(1, 256)),
    Setting("exception_verbosity", "low", "how much an error prints", ("low", "medium", "high")),
    Setting("check_rewrites", False, "verify the graph after every rewrite (slow)"),
    Setting("optimizer_verbose", False, "print every rewrite that is applied"),
    Setting(
        "optdb__max_use_ratio",
        8.0,
        "applications of one rewriter, per node of the graph, after which it is stopped",
    ),
    Setting("profile", False, "time every step of compiled functions"),
    Setting("NanGuardMode__nan_is_error", True, "whether NanGuardMode looks for NaN"),
    Setting("NanGuardMode__inf_is_error", True, "whether NanGuardMode looks for infinities"),
    Setting("NanGuardMode__big_is_error", True, "whether NanGuardMode looks for numbers over 1e10"),
    Setting(
        "NanGuardMode__action", "raise", "what NanGuardMode does then", ("raise", "warn", "pdb")
    ),
    Setting(
        "DebugMode__patience",
        10,
        "how often DebugMode rewrites a graph, to see that the result is always the same",
        limits=(1, 10**6),
    ),
    Setting("DebugMode__check_c", True, "whether DebugMode checks compiled code"),
    Setting("DebugMode__check_py", True, "whether DebugMode checks `perform` of each node"),
    Setting("DebugMode__check_finite", True, "whether NaN and infinities are errors in DebugMode"),
    Setting(
        "DebugMode__check_strides",
        0,
        "what DebugMode does if strides of results differ between backends: 0 nothing, 1 warn, "
        "2 raise",
        (0, 1, 2),
    ),
    Setting(
        "DebugMode__warn_input_not_reused",
        True,
        "whether DebugMode warns of an op that declares to work in place, or to return a view, and "
        "does not",
    ),
    Setting(
        "DebugMode__check_preallocated_output",
        "",
        "outputs that DebugMode lets `perform` write to, separated by ':': initial, previous, "
        "c_contiguous, f_contiguous, strided, wrong_size, ALL",
    ),
    Setting(
        "DebugMode__check_preallocated_output_ndim",
        4,
        "the number of axes, from the last, whose strides `strided` varies",
        limits=(1, 64),
    ),
]


#: Settings of the cache, which do not change the code that is compiled.
ABOUT_CACHE = frozenset(["cache_dir", "base_compiledir", "cache_bytes"])


@dataclass(frozen=True, slots=True)
class _Overrides:
    """The settings that all open `Config.change_flags` of a context override.

    ``before`` are those in force before the innermost one was entered.
    """

    values: dict[str, Any]
    before: _Overrides | None = None


_NOTHING = _Overrides({})


class Config:
    """The settings as attributes.

    An assignment affects all threads; `change_flags` affects the thread and the asyncio task that
    enter it, and tasks started inside.  AttributeError for an unknown name, ValueError for an
    illegal value.

    >>> config = Config("floatX=float32")
    >>> config.floatX, config.mode
    ('float32', 'FAST_RUN')
    """

    # A setting that no `change_flags` overrides is an attribute of the instance, because that is
    # the fastest to read.  While a thread overrides it, the attribute is deleted, so that
    # `__getattr__` runs and returns the value of the current context.

    def __init__(self, flags: str = "") -> None:
        state = self.__dict__
        state["_settings"] = {}
        state["_common"] = {}  # values where no change_flags overrides them
        state["_overrides"] = ContextVar("overrides", default=_NOTHING)
        state["_overridden"] = Counter()  # name -> number of open change_flags in all threads
        state["_lock"] = threading.RLock()
        for setting in _SETTINGS:
            self._introduce(setting)
        for name, value in _parse_flags(flags):
            if name not in self._settings:
                hint = did_you_mean(name, self._settings)
                warnings.warn(f"PHINTYS_FLAGS: there is no setting {name!r}.{hint}", stacklevel=2)
                continue
            setattr(self, name, value)

    def _introduce(self, setting: Setting) -> None:
        self._settings[setting.name] = setting
        self._common[setting.name] = self.__dict__[setting.name] = setting.default

    def add(self, setting: Setting) -> None:
        """Add a setting; ValueError if there is one of that name."""
        if setting.name in self._settings:
            raise ValueError(f"config.{setting.name} exists already.")
        self._introduce(setting)

    def __setattr__(self, name: str, value: Any) -> None:
        value = self._setting(name).parse(value)
        with self._lock:
            own = self._overrides.get()
            if name in own.values:
                self._overrides.set(_Overrides({**own.values, name: value}, own.before))
                return
            self._common[name] = value
            if not self._overridden[name]:
                self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        """A setting that some thread overrides; AttributeError for an unknown name."""
        state = self.__dict__
        if "_overrides" in state and name in (own := state["_overrides"].get().values):
            return own[name]
        common = state.get("_common", {})
        if name not in common:
            raise AttributeError(f"There is no setting config.{name}.{did_you_mean(name, common)}")
        return common[name]

    def _setting(self, name: str) -> Setting:
        setting = self._settings.get(name)
        if setting is None:
            hint = did_you_mean(name, self._settings)
            raise AttributeError(f"There is no setting config.{name}.{hint}")
        return setting

    def values(self) -> dict[str, Any]:
        """Name and value of every setting."""
        return {name: getattr(self, name) for name in self._settings}

    def change_flags(self, **changes: Any) -> _ChangedFlags:
        """A context manager and decorator in which settings have other values.

        Other threads and asyncio tasks are not affected.
        """
        return _ChangedFlags(self, changes)

    def _override(self, changes: dict[str, Any]) -> None:
        """Enter a `change_flags`."""
        own = self._overrides.get()
        with self._lock:
            self._overrides.set(_Overrides({**own.values, **changes}, own))
            self._overridden.update(changes.keys())
            for name in changes:
                self.__dict__.pop(name, None)

    def _restore(self, names: Iterable[str]) -> None:
        """Leave the innermost `change_flags`, which overrides ``names``."""
        before = self._overrides.get().before
        with self._lock:
            if before is not None:  # None if it was entered in another context
                self._overrides.set(before)
            self._overridden.subtract(list(names))
            for name in names:
                if not self._overridden[name]:
                    self.__dict__[name] = self._common[name]

    def __str__(self) -> str:
        return "\n".join(
            f"{s.name} ({type(s.default).__name__}) = {getattr(self, s.name)!r}\n    {s.doc}"
            for s in self._settings.values()
        )

    _settings: dict[str, Setting]
    _common: dict[str, Any]
    _overrides: ContextVar[_Overrides]
    _overridden: Counter[str]
    _lock: Any


class _ChangedFlags(ContextDecorator):
    """The context manager that `Config.change_flags` returns."""

    def __init__(self, config: Config, changes: dict[str, Any]) -> None:
        self.config, self.changes = config, changes

    def __enter__(self) -> Config:
        config = self.config
        config._override({k: config._setting(k).parse(v) for k, v in self.changes.items()})
        return config

    def __exit__(self, *exc: object) -> None:
        self.config._restore(self.changes)


def _parse_flags(flags: str) -> Iterator[tuple[str, str]]:
    """(name, value) pairs of ``"name=value,name=value"``; a dot in a name stands for ``__``."""
    for part in flags.split(","):
        name, equals, value = part.strip().partition("=")
        if equals:
            yield name.strip().replace(".", "__"), value.strip()


def cache_directory() -> Path | None:
    """The directory of compiled code on disk.

    It is the environment variable ``PHINTYS_CACHE_DIR``, else ``config.cache_dir``, else a folder
    in the user's cache directory; None for a user without a home directory.
    """
    chosen = os.environ.get("PHINTYS_CACHE_DIR") or config.cache_dir or config.base_compiledir
    if chosen:
        return Path(chosen)
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "phintys"


#: The settings of this process.
config = Config(os.environ.get("PHINTYS_FLAGS", ""))
