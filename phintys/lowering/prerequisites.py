"""What a value depends on besides its arguments: computed lengths and positions, and checks.

A length or position may be an integer that the Program itself computes (``x[argmax(y):]``): a
symbol whose *definer* is another value.  Whatever mentions the symbol runs after its definer.

Equal lengths count as one (`Facts`), so a loop over ``k`` elements may run over ``len(y)``
elements instead, which are known earlier.  It must still wait for the check that both are equal:
otherwise it reaches beyond an array before the check has failed.

Lengths of inputs and integers in inputs are known from the start, and checks of those run before
all else; most Programs have no other symbols, and nothing here costs them anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from phintys.dims import Dim
from phintys.lowering.builder import Builder
from phintys.lowering.values import Length, Source, Value, View


class Guard(NamedTuple):
    """A check whose lengths are not known from the start.

    ``number`` is its position among the checks of the builder, ``mentions`` the symbols and
    constants whose users have to wait, ``since`` the largest id of its ``definers``: older values
    cannot depend on it.
    """

    number: int
    mentions: frozenset[Dim]
    definers: frozenset[Value]
    since: int


class Needs(NamedTuple):
    """The definers that a value waits for, and the numbers of the checks."""

    definers: frozenset[Value] = frozenset()
    checks: frozenset[int] = frozenset()


class Prerequisites:
    """The prerequisites of the values of a builder; all facts are known by now."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self.definer: dict[Dim, Value] = {}  # of the symbols that are not known from the start
        for symbol, number in builder.facts.defined.items():
            value = builder.values[number]
            if not (isinstance(value, Source) and value.slot.kind in ("input", "constant")):
                self.definer[symbol] = value
        self.guards = list(self._guards()) if self.definer else []
        self._known: dict[int, Needs] = {}

    def of(self, value: Value) -> Needs:
        """The prerequisites of computing a value from its arguments."""
        if not self.definer:
            return _NOTHING
        found = self._known.get(value.id)
        if found is None:
            found = self._known[value.id] = self._find(value)
        return found

    def are_none(self, value: Value) -> bool:
        """Whether a value depends on its arguments alone."""
        needs = self.of(value)
        return not needs.definers and not needs.checks

    def _find(self, value: Value) -> Needs:
        mentioned = self._mentioned(_dims_used(value))
        definers = self._definers(mentioned)
        checks: set[int] = set()
        for guard in self.guards:
            if guard.since < value.id and not guard.mentions.isdisjoint(mentioned):
                checks.add(guard.number)
                definers |= guard.definers
        return Needs(definers - {value}, frozenset(checks))

    def _guards(self) -> Iterable[Guard]:
        for number, (check, _) in enumerate(self.builder.checks):
            mentions = self._mentioned((check.left, check.right))
            definers = self._definers(mentions)
            if definers:
                yield Guard(number, mentions, definers, max(v.id for v in definers))

    def _mentioned(self, dims: Iterable[Dim]) -> frozenset[Dim]:
        """The symbols in some lengths as they were written and as they are computed, and constants.

        0 and 1 do not count: they are no lengths that reach beyond an array.
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
    """The lengths and positions that computing a value takes."""
    yield from value.dims()
    for arg in value.args:
        yield from arg.shape
        if isinstance(arg, (View, Length)):
            yield from arg.dims()
        if isinstance(arg, View):
            yield from arg.args[0].dims()
