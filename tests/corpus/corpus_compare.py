"""Where the outcomes of a program in two libraries differ."""

from __future__ import annotations

import math
from collections.abc import Iterator

from corpus_describe import Json

#: relative and absolute differences of numbers that count as none
RELATIVE, ABSOLUTE = 1e-5, 1e-8


def differences(ours: Json, theirs: Json, at: str = "") -> Iterator[str]:
    """One line for each place at which a description of ours differs from PyTensor's.

    An exception agrees if an ``except`` clause for PyTensor's class catches it.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        (kind,) = ours
        if kind != "raises":
            yield from differences(ours[kind], theirs[kind], f"{at}.{kind}")
        elif not caught(ours[kind], theirs[kind]):
            yield f"{at}: {shown(ours)}, not {shown(theirs)}"
    elif isinstance(ours, list) and isinstance(theirs, list):
        for k, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{at}[{k}]")
        if len(ours) != len(theirs):
            yield f"{at}: {len(ours)} results, not {len(theirs)}"
    elif not same_value(ours, theirs):
        yield f"{at}: {shown(ours)}, not {shown(theirs)}"


def caught(ours: Json, theirs: Json) -> bool:
    """Whether the classes of an exception of ours contain the one that PyTensor raises."""
    assert isinstance(ours, list) and isinstance(theirs, list)
    return theirs[0] in ours


def same_value(ours: Json, theirs: Json) -> bool:
    """Equal, or numbers that differ by rounding."""
    numbers = (isinstance(v, int | float) and not isinstance(v, bool) for v in (ours, theirs))
    if all(numbers):
        return math.isclose(ours, theirs, rel_tol=RELATIVE, abs_tol=ABSOLUTE)  # type: ignore[arg-type]
    return ours == theirs and type(ours) is type(theirs)


def shown(description: Json) -> str:
    """A description in few characters."""
    if isinstance(description, dict) and "raises" in description:
        raised = description["raises"]
        assert isinstance(raised, list)
        return str(raised[0])
    text = str(description)
    return text if len(text) < 80 else text[:80] + "..."
