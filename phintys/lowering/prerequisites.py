"""Dependences of values besides their arguments: on computed lengths and positions, on checks.

A length or position may be an integer that the Program itself computes (``x[argmax(y):]``): a
symbol whose *definer* is another value.  Everything that mentions the symbol runs after its
definer.

Equal lengths are merged (`Equalities`), so a loop over ``k`` elements may run over ``len(y)``
elements instead, because that is known earlier.  The loop must still run after the check that both
are equal; otherwise it could access memory out of bounds before the check fails.

A check that one length is not smaller than another merges nothing: only users of the symbols that
the Program computes must run after it, such as a read at a position, not all loops over ``len(y)``.

Lengths of inputs and integers in inputs are known from the start, and checks of them run first.
Most Programs have no other symbols, and skip all of this.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from phintys.dims import Dim
from phintys.lowering.builder import Builder
from phintys.lowering.values import Value


class Guard(NamedTuple):
    """A check of lengths that are not known from the start.

    ``number`` is its position in `Builder.checks`, ``mentions`` the symbols and constants whose
    users must run after it.  ``since`` is the largest id of its ``definers``; values with smaller
    ids cannot depend on the check.
    """

    number: int
    mentions: frozenset[Dim]
    definers: frozenset[Value]
    since: int


class Needs(NamedTuple):
    """The definers and the numbers of the checks that must run before a value is computed."""

    definers: frozenset[Value] = frozenset()
    checks: frozenset[int] = frozenset()


class Prerequisites:
    """The dependences of a builder's values; made after all values and checks have been built."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self.definer: dict[Dim, Value] = {}  # of each symbol that is not known from the start
        for symbol, number in builder.equalities.defined.items():
            value = builder.values[number]
            slot = value.own_slot()
            if slot is None or slot.kind not in ("input", "constant"):
                self.definer[symbol] = value
        self.guards = list(self._guards()) if self.definer else []
        self._guards_of: dict[Dim, list[Guard]] = {}
        for guard in self.guards:
            for d in guard.mentions:
                self._guards_of.setdefault(d, []).append(guard)
        self._known: dict[int, Needs] = {}

    def of(self, value: Value) -> Needs:
        """The dependences of a value besides its arguments."""
        if not self.definer:
            return _NOTHING
        found = self._known.get(value.id)
        if found is None:
            found = self._known[value.id] = self._find(value)
        return found

    def set_as_of(self, value: Value, older: Value) -> None:
        """Give a value, made after all others, the dependences of an older one.

        It replaces a value older than checks that its own id, the largest, would make it wait for.
        """
        if self.definer:
            self._known[value.id] = self.of(older)

    def are_none(self, value: Value) -> bool:
        """Whether a value depends only on its arguments."""
        needs = self.of(value)
        return not needs.definers and not needs.checks

    def _find(self, value: Value) -> Needs:
        mentioned = self._mentioned(_dims_used(value))
        definers = self._definers(mentioned)
        checks: set[int] = set()
        for guard in chain.from_iterable(self._guards_of.get(d, ()) for d in mentioned):
            if guard.since < value.id and guard.number not in checks:
                checks.add(guard.number)
                definers |= guard.definers
        return Needs(definers - {value}, frozenset(checks))

    def _guards(self) -> Iterable[Guard]:
        for number, (check, _) in enumerate(self.builder.checks):
            mentions = self._mentioned((check.left, check.right))
            definers = self._definers(mentions)
            if check.relation != "==":
                mentions = mentions & self.definer.keys()
            if definers:
                yield Guard(number, mentions, definers, max(v.id for v in definers))

    def _mentioned(self, dims: Iterable[Dim]) -> frozenset[Dim]:
        """The symbols and constants in some lengths, before and after merging equal lengths.

        0 and 1 are left out: a loop of such a length cannot leave the bounds of an array.
        """
        found: set[Dim] = set()
        for written in set(dims):
            for d in (written, self.builder.canonical(written)):
                if d.value is None:
                    found |= d.symbols()
                elif d.value not in (0, 1):
                    found.add(d)
        return frozenset(found)

    def _definers(self, mentioned: Iterable[Dim]) -> frozenset[Value]:
        return frozenset(self.definer[d] for d in mentioned if d in self.definer)


_NOTHING = Needs()


def _dims_used(value: Value) -> Iterable[Dim]:
    """The lengths and positions that the code of a value uses."""
    yield from value.dims()
    for arg in value.args:
        yield from arg.dims_of_read()
