"""The arguments ``sequences`` and ``n_steps`` of `phintys.scan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Integral
from typing import Any

from phintys.graph.variable import Variable
from phintys.loop.checks import checked_count
from phintys.tensor.convert import as_argument, constant
from phintys.tensor.elemwise import cast
from phintys.tensor.math import minimum
from phintys.tensor.static import known_length
from phintys.tensor.variable import TensorVariable


@dataclass
class Rows:
    """The rows of a sequence at one tap: ``array[t]`` is what step ``t`` gets, as ``row``."""

    array: TensorVariable
    row: Variable


def rows_of(given: Any, go_backwards: bool = False) -> list[Rows]:
    """The rows that steps get of ``sequences``, one for each tap.

    A sequence is an array, or a dict with the keys ``input``, ``taps`` (0 if there are none) and
    ``go_backwards``.  With taps, the first step is the first one that has all rows.  ValueError or
    TypeError, with the position of the sequence, if one is of another kind.
    """
    found = []
    for k, entry in enumerate(as_list(given)):
        options = dict(entry) if isinstance(entry, dict) else {"input": entry}
        place = f"sequences[{k}]"
        unknown = sorted(map(str, options.keys() - {"input", "taps", "go_backwards"}))
        if unknown or options.get("input") is None:
            raise ValueError(
                f"{place} has the keys {list(options)}; it needs 'input', and may have 'taps' and "
                "'go_backwards'."
            )
        array = as_argument(options["input"], place)
        if array.type.ndim == 0:
            raise ValueError(
                f"{place}, {array}, is 0-d; a loop runs over the first axis. Pass a value that "
                "stays the same in non_sequences."
            )
        reverse = go_backwards or bool(options.get("go_backwards"))
        taps = taps_of(options.get("taps"), [0], place)
        found += [_at_tap(array, tap, taps, reverse) for tap in taps]
    return found


def as_list(given: Any) -> list[Any]:
    """A list of arguments; one that is not in a list is alone in it, None is none."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def taps_of(given: Any, default: list[int], place: str) -> list[int]:
    """Taps as a list of int; ValueError, naming ``place``, if they are none or no integers."""
    if given is None:
        return default
    taps = list(given) if hasattr(given, "__iter__") else [given]
    found = [int(t) for t in taps if isinstance(t, Integral)]
    if not found or found != taps:
        raise ValueError(f"The taps of {place} must be integers, not {given!r}.")
    return found


def _at_tap(x: TensorVariable, tap: int, taps: Sequence[int], reverse: bool) -> Rows:
    """The rows ``t + tap`` of a sequence, ``t`` counting from the first step."""
    first, last = min(0, *taps), max(0, *taps)
    rows = x[tap - first :] if tap == last else x[tap - first : tap - last]
    if reverse:
        rows = rows[::-1]
    name = x.name or "sequence"
    rows.name = f"{name}[{tap - first}:{tap - last or ''}]{'[::-1]' if reverse else ''}"
    at = f"t{tap:+d}" if tap else "t"
    return Rows(rows, x.type.clone(shape=x.type.shape[1:]).make_variable(f"{name}[{at}]"))


def steps_of(n_steps: Any, sequences: Sequence[Rows]) -> TensorVariable:
    """The number of steps as a 0-d int64 variable: ``n_steps``, or the least number of rows.

    ValueError if it is no integer, is known to be negative, or is not said.
    """
    if n_steps is None:
        if not sequences:
            raise ValueError(
                "scan needs to know the number of steps: pass n_steps, or a sequence to loop over."
            )
        return reduce(minimum, [rows.array.shape[0] for rows in sequences])
    steps = checked_count("scan", n_steps)
    known = known_length(steps)
    if known is not None and known < 0:
        raise ValueError(f"The number of steps of scan must not be negative: n_steps is {known}.")
    return cast(steps, "int64") if known is None else constant(known, dtype="int64")
