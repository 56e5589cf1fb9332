"""Which rewrites are tried at an op: an index by instance, class, rule key and `OpPattern`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from phintys.memo import Memo
from phintys.rewriting.numbering import number_of
from phintys.rewriting.unify import OpPattern, rule_key

T = TypeVar("T")

#: What a rewrite is tried at; None: every node.
Tracks = Sequence[Any] | None


class TrackIndex(Generic[T]):
    """Items with what they track; ``index[op]`` gives those to try at ``op``, in their given order.

    A tracked thing is an op, an op class, an `OpPattern`, or a key (or class of keys) that ops
    expose as ``rule_key``.
    """

    def __init__(self, items: Iterable[tuple[T, Tracks]]) -> None:
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
        """The items to try at an op, looked for anew."""
        key = rule_key(op)
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
    """Tracks with nested tuples flattened."""
    flat: list[Any] = []
    for tracked in tracks:
        flat.extend(tracked_ops(tracked) if isinstance(tracked, tuple | list) else [tracked])
    return flat
