"""What the records of `reach_plugin` say: totals, and what one reaches that another does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from planted_text import functions_by_line, statements

Record = dict[str, Any]
#: a line or a branch that is the same in commits in which lines moved:
#: file, qualified name, text, and for a branch its number in the line and its side
Place = tuple[str, ...]


def reached_lines(record: Record) -> dict[str, set[int]]:
    """file -> lines that run in tests or at import"""
    found: dict[str, set[int]] = {}
    for files in (record["import"], *record["tests"].values()):
        for name, lines in files.items():
            found.setdefault(name, set()).update(lines)
    return found


def totals(record: Record) -> str:
    """A table: statements that run and all, and sides of branches, by folder of the package."""
    lines = reached_lines(record)
    rows: Counter[tuple[str, str]] = Counter()
    for name, source in record["sources"].items():
        every = statements(source)
        here = lines.get(name, set())
        run = sum(not here.isdisjoint(own) for own in every.values())
        for folder in ("all", folder_of(name)):
            rows[folder, "run"] += run
            rows[folder, "statements"] += len(every)
            rows[folder, "branches"] += len(record["branches"].get(name, ()))
    text = [f"{'':24}{'run':>9}{'of':>9}{'sides of branches':>20}"]
    for folder in sorted({folder for folder, _ in rows}):
        reached, known, sides = (rows[folder, k] for k in ("run", "statements", "branches"))
        text.append(f"{folder:24}{reached:9}{known:9}{sides:20}")
    return "\n".join([*text, f"{len(record['tests'])} test modules"])


def folder_of(module: str) -> str:
    """The folder right below the package; all modules that are in none count as one folder."""
    parts = module.split("/")
    return parts[1] if len(parts) > 2 else "modules"


def places(record: Record, kind: str) -> Counter[Place]:
    """How many lines or branches of a record have the same function and text."""
    return Counter(_lines(record) if kind == "lines" else _branches(record))


def _lines(record: Record) -> Iterator[Place]:
    for name, lines in reached_lines(record).items():
        source = record["sources"][name]
        texts, functions = source.split("\n"), functions_by_line(source)
        for first, own in statements(source).items():
            if not lines.isdisjoint(own):
                yield name, functions[first], texts[first - 1].strip()


def _branches(record: Record) -> Iterator[Place]:
    for name, branches in record["branches"].items():
        texts = record["sources"][name].split("\n")
        for line, function, number, jumps in branches:
            side = "jumps" if jumps else "goes on"
            yield name, function, texts[line - 1].strip(), f"{number} {side}"


def difference(before: Record, after: Record) -> str:
    """What the second record lost and gained, for each: file, function, text."""
    parts: list[str] = []
    for kind in ("lines", "branches"):
        old, new = places(before, kind), places(after, kind)
        parts += _listed(f"{kind} lost", old - new) + _listed(f"{kind} gained", new - old)
    return "\n".join(parts)


def _listed(title: str, found: Counter[Place]) -> list[str]:
    ordered = sorted(found.elements())
    return [f"{title}: {len(ordered)}", *("  " + "  |  ".join(place) for place in ordered)]
