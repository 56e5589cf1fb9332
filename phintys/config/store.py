"""`Config`: the settings as attributes of an object."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ContextDecorator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from phintys.config.older import OLDER
from phintys.config.params import ConfigAccessViolation, ConfigParam, Setting
from phintys.config.settings import SETTINGS
from phintys.config.sources import Given, parse_flags
from phintys.errors import did_you_mean


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

    Parameters
    ----------
    flags
        initial values, in the form of ``PHINTYS_FLAGS``
    given
        initial values by name, with their sources

    Names that no setting has are kept for settings that are added later, see
    `warn_unused_flags`.  A setting of other systems that has no effect here can be read and
    assigned; a value other than its default gives a warning, once, that says what takes its place.

    >>> config = Config("floatX=float32")
    >>> config.floatX, config.mode
    ('float32', 'FAST_RUN')
    """

    # A setting that no `change_flags` overrides is an attribute of the instance, because that is
    # the fastest to read.  While a thread overrides it, the attribute is deleted, so that
    # `__getattr__` runs and returns the value of the current context.

    def __init__(self, flags: str = "", given: Mapping[str, Given] | None = None) -> None:
        state = self.__dict__
        state["_settings"] = {}
        state["_checks"] = {}  # see `check_with`
        state["_common"] = {}  # values where no change_flags overrides them
        state["_overrides"] = ContextVar("overrides", default=_NOTHING)
        state["_overridden"] = Counter()  # name -> number of open change_flags in all threads
        state["_lock"] = threading.RLock()
        state["_warned"] = set()  # names of settings without effect that were mentioned
        state["_unused"] = dict(given or {})  # values for which there is no setting yet
        self._unused.update((name, Given(v, "")) for name, v in parse_flags(flags))
        for setting in (*SETTINGS, *OLDER):
            self._introduce(setting)

    def _introduce(self, setting: Setting) -> None:
        self._settings[setting.name] = setting
        self._common[setting.name] = self.__dict__[setting.name] = setting.default
        if setting.name in self._unused:
            self._use(setting, self._unused.pop(setting.name))

    def _use(self, setting: Setting, given: Given) -> None:
        """Let a setting have a value that the user has given."""
        try:
            value = self._parsed(setting, given.value)
        except ValueError as exc:
            raise ValueError(f"{given.prefix}{exc}") from None
        self._note(setting, value)
        with self._lock:
            self._common[setting.name] = value
            if not self._overridden[setting.name]:
                self.__dict__[setting.name] = value

    def use(self, given: Mapping[str, Given]) -> None:
        """Let settings have values that files and the environment give, with their sources.

        Names that no setting has are kept, as those that the object is made with.  ValueError, with
        the source, if a value is not legal.

        >>> config = Config()
        >>> config.use({"floatX": Given("float32", "PYTENSOR_FLAGS")})
        >>> config.floatX
        'float32'
        """
        for name, value in given.items():
            if name in self._settings:
                self._use(self._settings[name], value)
            else:
                self._unused[name] = value

    def add(
        self,
        setting: Setting | str,
        doc: str = "",
        configparam: ConfigParam | None = None,
        in_c_key: bool = True,
    ) -> None:
        """Add a setting: a `Setting`, or a name, a description and a `ConfigParam`.

        ``in_c_key`` says whether the code of functions depends on it.  A value in the environment
        or a file is used.  ValueError if there is a setting of that name, or the value is illegal.

        >>> from phintys.config.params import IntParam
        >>> config = Config("my__depth=4")
        >>> config.add("my__depth", "how deep", IntParam(3, lambda n: n > 0), in_c_key=False)
        >>> config.my__depth
        4
        """
        if isinstance(setting, str):
            if configparam is None:
                raise TypeError(f"config.add({setting!r}, ...) needs a ConfigParam.")
            default = configparam.default
            setting = Setting(setting, default, doc, in_key=in_c_key, kind=configparam)
        if setting.name in self._settings:
            raise ValueError(f"config.{setting.name} exists already.")
        self._introduce(setting)

    def check_with(self, name: str, legal: Callable[[Any], Any]) -> None:
        """Let ``legal`` raise ValueError for values that a setting is given from now on.

        It is for settings whose legal values are registered while the program runs.
        """
        self._checks[name] = legal

    def _parsed(self, setting: Setting, value: Any) -> Any:
        """``value`` as a value of a setting; ValueError if it is not legal."""
        value = setting.parse(value)
        if setting.name in self._checks:
            self._checks[setting.name](value)
        return value

    def warn_unused_flags(self) -> None:
        """Warn of values in files and the environment that no setting has asked for."""
        for name, given in self._unused.items():
            hint = did_you_mean(name, self._settings)
            warnings.warn(f"{given.prefix}there is no setting {name!r}.{hint}", stacklevel=3)
        self._unused.clear()

    def __setattr__(self, name: str, value: Any) -> None:
        setting = self._setting(name)
        value = self._parsed(setting, value)
        if setting.kind is not None and not setting.kind.mutable:
            raise ConfigAccessViolation(
                f"config.{name} cannot be changed: set it in PHINTYS_FLAGS or in a file."
            )
        self._note(setting, value)
        with self._lock:
            own = self._overrides.get()
            if name in own.values:
                self._overrides.set(_Overrides({**own.values, name: value}, own.before))
                return
            self._common[name] = value
            if not self._overridden[name]:
                self.__dict__[name] = value

    def _note(self, setting: Setting, value: Any) -> None:
        """Warn, once, of a value for a setting that has no effect."""
        if setting.note and value != setting.default and setting.name not in self._warned:
            self._warned.add(setting.name)
            warnings.warn(f"config.{setting.name} has no effect: {setting.note}.", stacklevel=4)

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
        """Name and value of every setting that has an effect."""
        return {name: getattr(self, name) for name, s in self._settings.items() if not s.note}

    def of_code(self, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Those of ``values`` that the code of a function depends on, sorted by name."""
        return sorted((n, v) for n, v in values.items() if self._settings[n].in_key)

    def change_flags(self, **changes: Any) -> _ChangedFlags:
        """A context manager and decorator in which settings have other values.

        Other threads and asyncio tasks are not affected.
        """
        return _ChangedFlags(
            self, partial(self._override, changes), partial(self._restore, changes)
        )

    def _override(self, given: dict[str, Any]) -> None:
        """Enter a `change_flags`."""
        changes = {k: self._parsed(self._setting(k), v) for k, v in given.items()}
        for name, value in changes.items():
            self._note(self._setting(name), value)
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

    def config_print(self, buf: Any, print_doc: bool = True) -> None:
        """Write the settings that have an effect to a stream: names, types, values."""
        for s in self._settings.values():
            if not s.note:
                buf.write(f"{s.name} ({s.kind_name}) = {getattr(self, s.name)!r}\n")
                if print_doc:
                    buf.write(f"    {s.doc}\n")

    def __str__(self) -> str:
        from io import StringIO

        text = StringIO()
        self.config_print(text)
        return text.getvalue().rstrip("\n")

    _settings: dict[str, Setting]
    _checks: dict[str, Callable[[Any], Any]]
    _common: dict[str, Any]
    _overrides: ContextVar[_Overrides]
    _overridden: Counter[str]
    _lock: Any
    _warned: set[str]
    _unused: dict[str, Given]


class _ChangedFlags(ContextDecorator):
    """The context manager that `Config.change_flags` returns."""

    def __init__(
        self, config: Config, enter: Callable[[], None], leave: Callable[[], None]
    ) -> None:
        self.config, self.enter, self.leave = config, enter, leave

    def __enter__(self) -> Config:
        self.enter()
        return self.config

    def __exit__(self, *exc: object) -> None:
        self.leave()
