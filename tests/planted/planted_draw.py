"""Which faults are planted: drawn with a fixed seed, over all folders and kinds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planted_faults import Fault, Gone, dedented, sources_of
from planted_mutations import KINDS, Mutation, changes, mutations
from planted_reach import folder_of, reached_lines
from planted_text import spans

#: (folder, kind) -> the changes to draw from, each with its module
Candidates = dict[tuple[str, str], list[tuple[str, Mutation]]]


@dataclass
class Drawer:
    """Draws faults from the lines that a record has."""

    root: Path
    record: dict[str, Any]
    seed: int

    def __post_init__(self) -> None:
        self.sources = sources_of(self.root)
        self.candidates: Candidates = {}
        self.stale: list[str] = []
        reached = reached_lines(self.record)
        for module, lines in sorted(reached.items()):
            self._add(module, lines)
        self.folders = sorted({folder for folder, _ in self.candidates})

    def _add(self, module: str, lines: set[int]) -> None:
        source = self.record["sources"][module]
        if self.sources.get(module) != source:
            self.stale.append(module)
            return
        for m in mutations(source):
            if m.line in lines:
                self.candidates.setdefault((folder_of(module), m.kind), []).append((module, m))

    # ----- how many of each
    def plan(self, count: int) -> list[tuple[str, str]]:
        """(folder, kind) of each fault: each folder once, then by size; kinds in turn."""
        sizes = {f: sum(len(self.candidates.get((f, k), ())) for k in KINDS) for f in self.folders}
        rng = random.Random(self.seed)
        more = rng.choices(self.folders, [sizes[f] for f in self.folders], k=count)
        each = rng.sample(self.folders, len(self.folders))
        folders = sorted([*each, *more][:count])
        kinds = rng.sample(KINDS, len(KINDS))
        return [(folder, self._kind(folder, kinds, n)) for n, folder in enumerate(folders)]

    def _kind(self, folder: str, kinds: list[str], number: int) -> str:
        """The kind whose turn it is, or the next one that the folder has."""
        turns = [kinds[(number + k) % len(kinds)] for k in range(len(kinds))]
        return next(k for k in turns if (folder, k) in self.candidates)

    # ----- drawing
    def draw(self, count: int) -> list[Fault]:
        rng, found = random.Random(self.seed + 1), []
        for number, (folder, kind) in enumerate(self.plan(count), 1):
            found.append(self.one(rng, folder, kind, f"{number:02} {folder}", found))
        return found

    def one(
        self, rng: random.Random, folder: str, kind: str, name: str, others: list[Fault]
    ) -> Fault:
        """A fault in a function that the others are not in: of this kind, if there is one."""
        taken = {(f.module, f.function) for f in others}
        for one_kind in (kind, *(k for k in KINDS if k != kind)):
            pairs = self.candidates.get((folder, one_kind), [])
            for module, mutation in rng.sample(pairs, len(pairs)):
                if (module, mutation.function) in taken:
                    continue
                fault = self._fault(module, mutation, name)
                if fault is not None:
                    return fault
        raise ValueError(f"{folder} has no fault in a function of which none is drawn")

    def _fault(self, module: str, mutation: Mutation, name: str) -> Fault | None:
        """With as many lines around as make its text unique in the function; None if it is none."""
        source = self.record["sources"][module]
        if not changes(source, mutation):
            return None
        lines = source.split("\n")
        where, text = mutation.texts(lines)
        limits = next(s for s in spans(source, mutation.function) if where.start in s)
        for first, last in _wider(where, limits):
            old = lines[first - 1 : last]
            new = [*lines[first - 1 : where.start - 1], text, *lines[where.stop - 1 : last]]
            texts = dedented(old), dedented("\n".join(new).split("\n"))
            fault = Fault(name, mutation.kind, module, mutation.function, *texts)
            try:
                fault.lines_in(source)
            except Gone:
                continue
            return fault
        return None

    def redrawn(self, faults: list[Fault]) -> Iterator[tuple[Fault, str]]:
        """Each fault, or another one where its text is gone, and why."""
        reasons = {f.name: self._reason(f) for f in faults}
        kept = [f for f in faults if not reasons[f.name]]
        for fault in faults:
            if reasons[fault.name]:
                rng = random.Random(f"{self.seed} {fault.key}")
                fault = self.one(rng, folder_of(fault.module), fault.kind, fault.name, kept)
                kept.append(fault)
            yield fault, reasons[fault.name]

    def _reason(self, fault: Fault) -> str:
        try:
            fault.module_in(self.sources)
        except Gone as gone:
            return str(gone)
        return ""


def _wider(where: range, limits: range) -> Iterator[tuple[int, int]]:
    """First and last line, more and more of them."""
    first, last = where.start, where.stop - 1
    yield first, last
    for _ in range(6):
        first, last = max(first - 1, limits.start), min(last + 1, limits.stop - 1)
        yield first, where.stop - 1
        yield first, last
