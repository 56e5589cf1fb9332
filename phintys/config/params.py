"""A setting, and the kinds of values of settings.

>>> TypedParam(1.5).apply("2")
2.0
>>> EnumStr("low", ["medium", "high"]).apply("loud")
Traceback (most recent call last):
    ...
ValueError: 'loud' is not a legal value: choose from ('low', 'medium', 'high').
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


class ConfigAccessViolation(AttributeError):
    """A setting was assigned that can only be given when the program starts."""


class ConfigParam:
    """The kind of values of a setting.

    Parameters
    ----------
    default
        the default value, or a function without arguments that returns it
    apply
        converts what is assigned, e.g. the text in a file; ValueError or TypeError if it cannot
    validate
        whether a converted value is legal
    mutable
        False: the value can be given in files and in the environment only
    """

    def __init__(
        self,
        default: Any,
        *,
        apply: Callable[[Any], Any] | None = None,
        validate: Callable[[Any], bool] | None = None,
        mutable: bool = True,
    ) -> None:
        self._default, self._apply, self._validate = default, apply, validate
        self.mutable = mutable

    @property
    def default(self) -> Any:
        """The default value."""
        return self.apply(self._default() if callable(self._default) else self._default)

    def convert(self, value: Any) -> Any:
        """``value`` converted, before it is validated."""
        return value if self._apply is None else self._apply(value)

    def apply(self, value: Any) -> Any:
        """``value``, converted; ValueError if it is not legal."""
        converted = self.convert(value)
        if not self.validate(converted):
            raise ValueError(f"{value!r} is not a legal value{self.hint()}.")
        return converted

    def validate(self, value: Any) -> bool:
        """Whether a converted value is legal."""
        return self._validate is None or self._validate(value) is not False

    def hint(self) -> str:
        """What is legal, for messages."""
        return ""


class TypedParam(ConfigParam):
    """Values of the type of the default."""

    def convert(self, value: Any) -> Any:
        value = super().convert(value)
        default: Any = self._default() if callable(self._default) else self._default
        if isinstance(default, bool):
            return _bool(value)
        if default is None or isinstance(value, type(default)):
            return value
        return type(default)(value)


class StrParam(ConfigParam):
    """Texts."""

    def __init__(self, default: Any, validate: Any = None, mutable: bool = True) -> None:
        super().__init__(default, apply=str, validate=validate, mutable=mutable)


class IntParam(ConfigParam):
    """Integers."""

    def __init__(self, default: Any, validate: Any = None, mutable: bool = True) -> None:
        super().__init__(default, apply=int, validate=validate, mutable=mutable)

    def convert(self, value: Any) -> int:
        return _number(int, value)


class FloatParam(ConfigParam):
    """Floats."""

    def __init__(self, default: Any, validate: Any = None, mutable: bool = True) -> None:
        super().__init__(default, apply=float, validate=validate, mutable=mutable)

    def convert(self, value: Any) -> float:
        return _number(float, value)


class BoolParam(ConfigParam):
    """Bools; as text ``True``, ``1``, ``yes``, ``on``, or ``False``, ``0``, ``no``, ``off``."""

    def __init__(self, default: Any, validate: Any = None, mutable: bool = True) -> None:
        super().__init__(default, validate=validate, mutable=mutable)

    def convert(self, value: Any) -> bool:
        return _bool(value)


class EnumStr(ConfigParam):
    """One of several texts: the default, or one of ``options``."""

    def __init__(
        self, default: str, options: Sequence[str], validate: Any = None, mutable: bool = True
    ) -> None:
        super().__init__(default, validate=validate, mutable=mutable)
        self.all = (default, *(o for o in options if o != default))

    def validate(self, value: Any) -> bool:
        return value in self.all and super().validate(value)

    def hint(self) -> str:
        return f": choose from {self.all}"


def _bool(value: Any) -> bool:
    """A bool, 0 or 1, or a text that stands for a bool; ValueError for another value."""
    text = value.strip().lower() if isinstance(value, str) else value
    if text in (1, "1", "true", "t", "yes", "on"):
        return True
    if text in (0, "0", "false", "f", "no", "off", ""):
        return False
    raise ValueError(f"{value!r} is not a legal value: write True or False.")


def _number(kind: type, value: Any) -> Any:
    wanted = "an integer" if kind is int else "a number"
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or (isinstance(value, float) and kind is int and number != value):
        raise ValueError(f"{value!r} is not a legal value: give {wanted}.")
    return number


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: name, default value, description, legal values (None: any of its type).

    Attributes
    ----------
    limits
        the least and the greatest legal value of an integer setting
    in_key
        whether the code of a function depends on the setting, which is then part of its key in the
        cache
    kind
        how values are parsed; None: by the type of the default
    note
        of a setting of other systems that has no effect: what to do instead
    """

    name: str
    default: Any
    doc: str
    choices: tuple[Any, ...] | None = None
    limits: tuple[int, int] | None = None
    in_key: bool = True
    kind: ConfigParam | None = None
    note: str = ""

    def parse(self, value: Any) -> Any:
        """``value`` as a value of the setting, parsed if it is a string; ValueError if illegal."""
        try:
            value = self._converted(value)
        except ValueError as exc:
            text = str(exc).replace("a legal value", f"a legal value of config.{self.name}", 1)
            raise ValueError(text) from None
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

    def _converted(self, value: Any) -> Any:
        if self.kind is not None:
            return self.kind.apply(value)
        kind = _KINDS.get(type(self.default)) if isinstance(value, str) else None
        return value if kind is None else kind(self.default).convert(value)

    def _is_within(self, value: Any) -> bool:
        assert self.limits is not None
        return isinstance(value, int) and self.limits[0] <= value <= self.limits[1]

    @property
    def kind_name(self) -> str:
        """The type of values, for lists of settings."""
        return type(self.default).__name__


_KINDS: dict[type, Any] = {bool: BoolParam, int: IntParam, float: FloatParam}
