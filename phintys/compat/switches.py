"""What differs in a process where this package has an older name, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from phintys.config.sources import Given
from phintys.tensor.variable import TensorVariable


class Switch(NamedTuple):
    """An attribute that a class does not have under an older name."""

    owner: type
    attribute: str
    reason: str


SWITCHES = [
    Switch(
        TensorVariable,
        "__array_function__",
        "np.atleast_1d(x), np.stack([x, y]) and np.broadcast_to(x, shape) are object arrays that "
        "contain the variables there, and programs take these apart; other libraries take an "
        "object with this method for an array",
    ),
    Switch(
        TensorVariable,
        "__array_namespace__",
        "libraries that work with any arrays, xarray among them, take an object with this method "
        "for an array, and put others into an object array",
    ),
]


class Default(NamedTuple):
    """A setting that has another default value under an older name."""

    setting: str
    value: str
    reason: str


DEFAULTS = [
    Default(
        "on_opt_error",
        "warn",
        "a rewriter of a program that raises is logged there, and the graph stays as it was",
    ),
]


def defaults(given: Mapping[str, Given]) -> dict[str, Given]:
    """The settings of `DEFAULTS`, apart from those that are ``given``."""
    source = "phintys.compat"
    return {d.setting: Given(d.value, source) for d in DEFAULTS if d.setting not in given}


def apply_switches() -> None:
    """Take away what `SWITCHES` lists, where it still is."""
    for switch in SWITCHES:
        if switch.attribute in vars(switch.owner):
            delattr(switch.owner, switch.attribute)
