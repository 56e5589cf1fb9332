"""Numbers of ops, as keys of caches: unlike the op itself, a number does not keep it alive."""

from __future__ import annotations

import itertools
from typing import Any
from weakref import ref

from phintys.memo import WeakMemo

_count = itertools.count(1)  # a number is never used again
#: op -> its number, and a reference to the first of the equal ops, the key of the entry
_numbers: WeakMemo[Any, tuple[int, ref[Any]]] = WeakMemo("numbers of ops")
#: id of a living op -> its number: saves the comparison with equal ops
_by_id: dict[int, int] = {}
#: id of a living op -> a weak reference whose callback removes the entries of the op, and the first
#: of the equal ops, which must live as long as the op for their common number to stay the same
_held: dict[int, Any] = {}


def number_of(op: Any) -> int:
    """The number of an op; equal ops share it while one of them lives, and no other op has it."""
    return _by_id.get(id(op)) or _numbered(op)


def _numbered(op: Any) -> int:
    """The number of an op that is not in `_by_id`, which is added to it."""
    number, first = _numbers.keep(op, (next(_count), ref(op)))
    equal, key = first(), id(op)

    def forget(_: Any) -> None:
        _by_id.pop(key, None)
        _held.pop(key, None)

    _held[key] = ref(op, forget), None if equal is op else equal
    _by_id[key] = number
    return number
