"""Numbers of ops: what is known about an op is remembered by its number, so the op can go."""

from __future__ import annotations

import itertools
from typing import Any
from weakref import ref

from phintys.memo import WeakMemo

_count = itertools.count(1)  # no number is used twice, whatever is forgotten
_numbers: WeakMemo[Any, tuple[int, ref[Any]]] = WeakMemo("numbers of ops")  # and the first such op
_by_id: dict[int, int] = {}  # of ops that are alive
_held: dict[int, Any] = {}  # what ends these entries, and the first of the ops that are equal


def number_of(op: Any) -> int:
    """A number that equal ops share as long as one of them is alive; no other op ever has it."""
    return _by_id.get(id(op)) or _numbered(op)


def _numbered(op: Any) -> int:
    number, first = _numbers.keep(op, (next(_count), ref(op)))
    equal, key = first(), id(op)

    def forget(_: Any) -> None:
        _by_id.pop(key, None)
        _held.pop(key, None)

    _held[key] = ref(op, forget), None if equal is op else equal
    _by_id[key] = number
    return number
