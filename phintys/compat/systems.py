"""The older systems whose names this package can have."""

from __future__ import annotations

from pathlib import Path

from phintys.errors import did_you_mean

#: name of the package -> the version of it whose names and behaviour this package has
VERSIONS = {"pytensor": "3.3.8", "aesara": "2.9.4", "theano": "1.0.5"}


def checked(name: str) -> str:
    """``name``; ValueError if it is not that of an older system, TypeError if it is no text."""
    known = ", ".join(VERSIONS)
    if not isinstance(name, str):
        raise TypeError(f"The name of a system is a text, one of {known}, not {name!r}.")
    if name not in VERSIONS:
        raise ValueError(f"{name!r} is none of {known}.{did_you_mean(name, VERSIONS)}")
    return name


def folder(name: str) -> Path:
    """A folder with a package ``name`` that hands over to this one: an entry for ``sys.path``."""
    return Path(__file__).parent / "names" / checked(name)
