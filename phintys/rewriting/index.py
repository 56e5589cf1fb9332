"""An index of the rewrites to try at an op, by op instance, class, rule key and `OpPattern`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Literal, TypeVar

from phintys.graph.op import Op
from phintys.memo import Memo
from phintys.rewriting.numbering import number_of
from phintys.rewriting.unify import OpPattern, rule_key

T = TypeVar("T")

#: The ops (instances, classes, patterns) at which a rewrite is tried; None: at every node.
Tracks = Sequence[Any] | None


class TrackIndex(Generic[T]):
    """A map from ops to the items that track them: ``index[op]``, in the order they were given.

    ``items`` are pairs (item, tracks).  Tracks are op classes, `OpPattern`s, and ops or keys that
    ops expose as ``rule_key``.  ``by`` says what they are compared with: ``"key"``: the key of an
    op, as rules do, and no track fits an op without a key; ``"op"``: the op itself; ``"both"``:
    any of them, for walkers, which try rules and other rewriters.
    """

    def __init__(
        self, items: Iterable[tuple[T, Tracks]], by: Literal["op", "key", "both"] = "both"
    ) -> None:
        self.by = by
        self.items: list[T] = []
        self._everywhere: list[int] = []
        self._by_key: dict[Any, list[int]] = {}
        self._by_pattern: dict[type, list[tuple[OpPattern, int]]] = {}
        self._known: Memo[int, tuple[T, ...]] = Memo(128, "rewrites by op")
        for item, tracks in items:
            self._add(item, tracks)

    def _add(self, item: T, tracks: Tracks) -> None:
        position = len(self.items)
        self.items.append(item)
        if tracks is None:
            self._everywhere.append(position)
            return
        for tracked in tracks:
            if isinstance(tracked, OpPattern):
                group = self._by_pattern.setdefault(tracked.op_class, [])
                group.append((tracked, position))
            else:
                self._by_key.setdefault(tracked, []).append(position)

    def __getitem__(self, op: Any) -> tuple[T, ...]:
        number = number_of(op)
        found = self._known[number]
        return self._known.keep(number, self.find(op)) if found is None else found

    def find(self, op: Any) -> tuple[T, ...]:
        """The items that track an op, without the cache of ``index[op]``."""
        if self.by == "key" and isinstance(op, Op) and op.rule_key is None:
            return tuple(self.items[p] for p in self._everywhere)
        key = op if self.by == "op" else rule_key(op)
        classes: list[Any] = list(type(op).__mro__)
        if key is not op:
            classes.extend(type(key).__mro__)
        positions = set(self._everywhere)
        for k in (op, key, *classes):
            positions.update(self._by_key.get(k, ()))
            for pattern, position in self._by_pattern.get(k, ()) if isinstance(k, type) else ():
                if pattern.match_op(op) or (key is not op and pattern.match_op(key)):
                    positions.add(position)
        return tuple(self.items[p] for p in sorted(positions))

    def __bool__(self) -> bool:
        return bool(self.items)


def tracked_ops(tracks: Iterable[Any]) -> list[Any]:
    """Tracks as a flat list: nested tuples and lists are flattened."""
    flat: list[Any] = []
    for tracked in tracks:
        flat.extend(tracked_ops(tracked) if isinstance(tracked, tuple | list) else [tracked])
    return flat
