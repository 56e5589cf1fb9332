"""The lists of what is known to be wrong.

A line of ``known.txt`` has the dtype, the form, quantities, the numbers of points and the reason::

    float64 normal/hand value,d/dx 0-3,7 | the quotient underflows

A line of ``differing.txt`` has a form and the parts whose results depend on what else is compiled::

    normal/hand gradient,hessian | the quotient has other uses
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from density_judge import Judged

FOLDER = Path(__file__).parent
KNOWN, DIFFERING = "known.txt", "differing.txt"
HEADERS = {
    KNOWN: """\
# Places that are wrong: dtype, form, quantities, numbers of points | reason.
# python -m tests.densities --known [NAME ...] writes the places; the reasons stay.
""",
    DIFFERING: """\
# Parts of forms whose results depend on what else is compiled | reason.
# python -m tests.densities --subsets --known [NAME ...] writes the parts; the reasons stay.
""",
}
#: dtype, form, quantity
Key = tuple[str, str, str]
#: form -> the parts that differ, and why
Differing = dict[str, tuple[frozenset[str], str]]


@dataclass(frozen=True)
class Places:
    """Points at which a quantity of a form is wrong, and why."""

    points: frozenset[int] = frozenset()
    reason: str = ""


def read_known() -> dict[Key, Places]:
    found = {}
    for (dtype, form, quantities, points), reason in read_lines(KNOWN):
        for quantity in quantities.split(","):
            found[dtype, form, quantity] = Places(read_points(points), reason)
    return found


def write_known(known: dict[Key, Places]) -> None:
    """Write the list; quantities of a form with the same points and reason share a line."""
    groups: dict[tuple[str, str, Places], list[str]] = defaultdict(list)
    for (dtype, form, quantity), places in sorted(known.items()):
        if places.points:
            groups[dtype, form, places].append(quantity)
    write_lines(
        KNOWN,
        (
            (f"{dtype} {form} {','.join(quantities)} {written(places.points)}", places.reason)
            for (dtype, form, places), quantities in groups.items()
        ),
    )


def read_differing() -> Differing:
    return {
        form: (frozenset(parts.split(",")), reason)
        for (form, parts), reason in read_lines(DIFFERING)
    }


def write_differing(differing: Differing) -> None:
    write_lines(
        DIFFERING,
        (
            (f"{form} {','.join(sorted(parts))}", reason)
            for form, (parts, reason) in sorted(differing.items())
            if parts
        ),
    )


def read_lines(name: str) -> Iterator[tuple[list[str], str]]:
    """The words and the reason of each line."""
    for line in (FOLDER / name).read_text().splitlines():
        if not line.startswith("#"):
            words, _, reason = line.partition("|")
            yield words.split(), reason.strip()


def write_lines(name: str, lines: Iterable[tuple[str, str]]) -> None:
    text = "".join(f"{words} | {reason}".strip() + "\n" for words, reason in lines)
    (FOLDER / name).write_text(HEADERS[name] + text)


def updated(known: dict[Key, Places], found: Iterable[Judged], dtype: str) -> dict[Key, Places]:
    """The list with what is wrong now in these forms; the reasons stay."""
    result = dict(known)
    for j in found:
        for quantity, wrong in zip(j.density.quantities, j.wrong.T, strict=True):
            key = dtype, j.name, quantity
            reason = known.get(key, Places()).reason
            result[key] = Places(frozenset(np.flatnonzero(wrong).tolist()), reason)
    return result


def written(points: Iterable[int]) -> str:
    """Numbers as ranges, such as ``0-3,7``."""
    runs = groupby(enumerate(sorted(points)), lambda pair: pair[1] - pair[0])
    ends = [[number for _, number in run] for _, run in runs]
    return ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in ends)


def read_points(text: str) -> frozenset[int]:
    """The numbers of ranges."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)
