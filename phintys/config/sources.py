"""Where the initial values of settings come from: files and the environment."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Given(NamedTuple):
    """A value that the user has given for a setting, and where."""

    value: str
    source: str

    @property
    def prefix(self) -> str:
        """The source, for the start of a message."""
        return f"{self.source}: " if self.source else ""


def given_values(environment: Mapping[str, str], *systems: str) -> dict[str, Given]:
    """The values by name that ``PHINTYS_FLAGS`` and files give, and the same of older systems.

    ``systems`` are names such as ``"pytensor"``, for ``PYTENSOR_FLAGS`` and ``~/.pytensorrc``.  The
    environment comes before files; of each, what is given for this package comes first.
    """
    weakest_first = [*reversed(systems), "phintys"]
    found: dict[str, Given] = {}
    for system in weakest_first:
        found |= values_of_files(rc_files(environment, system))
    for system in weakest_first:
        variable = f"{system.upper()}_FLAGS"
        flags = parse_flags(environment.get(variable, ""), variable)
        found |= {name: Given(value, variable) for name, value in flags}
    return found


def parse_flags(flags: str, source: str = "flags") -> Iterator[tuple[str, str]]:
    """(name, value) pairs of ``"name=value,name=value"``; a dot in a name stands for ``__``.

    A name without a value is left out, with a warning that says in which ``source`` it stands.

    >>> list(parse_flags("floatX=float32, gcc.cxxflags=-O1"))
    [('floatX', 'float32'), ('gcc__cxxflags', '-O1')]
    """
    for part in flags.split(","):
        name, equals, value = part.strip().partition("=")
        if equals:
            yield name.strip().replace(".", "__"), value.strip()
        elif name:
            warnings.warn(f"{source}: {name!r} has no value; write NAME=VALUE.", stacklevel=3)


def rc_files(environment: Mapping[str, str], system: str = "phintys") -> list[Path]:
    """The files with settings: those in ``PHINTYSRC``, or ``~/.phintysrc``; later ones win.

    ``PHINTYSRC`` separates several by ``os.pathsep``.  Of an older ``system`` they are named after
    it: ``PYTENSORRC``, ``~/.pytensorrc``.
    """
    listed = environment.get(f"{system.upper()}RC")
    if listed is not None:
        return [Path(p).expanduser() for p in listed.split(os.pathsep) if p]
    try:
        return [Path.home() / f".{system}rc"]
    except RuntimeError:  # a user without a home directory
        return []


def values_of_files(files: Sequence[Path]) -> dict[str, Given]:
    """The settings in files; those that cannot be read are passed over.

    A file has lines ``name = value``.  Below a heading ``[section]`` the names are those of the
    section: ``cxxflags`` below ``[gcc]`` is ``gcc__cxxflags``; ``[global]`` is the whole.

    Raises ValueError, with the file and the line, if a file is not of this form.
    """
    found: dict[str, Given] = {}
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError:
            continue
        except UnicodeDecodeError as exc:
            raise ValueError(f"{path} is not a text file in UTF-8: {exc}.") from None
        found.update((name, Given(v, str(path))) for name, v in _parsed(text, path))
    return found


def _parsed(text: str, path: Path) -> Iterator[tuple[str, str]]:
    section = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and line[-1] == "]":
            section = line[1:-1].strip()
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"{path}, line {number}: write name = value, not {line!r}.")
        name = name.strip().replace(".", "__")
        whole = section in ("", "global")
        yield (name if whole else f"{section}__{name}"), value.strip()
