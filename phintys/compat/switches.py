"""What differs in a process where this package has an older name, each with the reason."""

from __future__ import annotations

from typing import NamedTuple

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


def apply_switches() -> None:
    """Take away what `SWITCHES` lists, where it still is."""
    for switch in SWITCHES:
        if switch.attribute in vars(switch.owner):
            delattr(switch.owner, switch.attribute)
