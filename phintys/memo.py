"""Bounded caches.  Every cache whose size depends on what users do is one of two classes:

`Memo`
    is keyed by value.  It keeps the most recently used entries, up to a limit.  With ``weak`` it
    also finds every value that is still alive elsewhere, so it can intern: equal keys give the
    same object.
`WeakMemo`
    is keyed by object.  An entry is removed when its key is garbage-collected.

A cache whose size the source code bounds (a table of functions, one library per dtype) may be a
plain dict or `functools.cache`; ``tests/robustness/test_memo.py`` lists these with their reasons.

A key must hold everything that the value depends on, as objects and numbers.  It must not hold
``str(object)``: two different objects may have the same text.  Numbers of different types compare
equal, and so do 0.0 and -0.0; where that matters, `exact` makes a key that distinguishes them.

Several threads may use a memo.  If two of them compute a value for one key at the same time, one
of the two values is kept, and both threads get that one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy as np

K = TypeVar("K")
V = TypeVar("V")

_lock = threading.RLock()  # held while entries change, never while values are made
_memos: WeakSet[Any] = WeakSet()


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # a thread that held the lock does not exist in the child
    os.register_at_fork(after_in_child=_new_lock)


class Memo(dict[K, V]):
    """A cache of bounded size: ``memo[key]`` is the value or None, `keep` inserts one.

    It approximates a least-recently-used cache by two generations.  Entries are inserted into the
    younger one, and a lookup that finds an entry in the older one moves it there.  When the younger
    generation is full it replaces the older one, whose remaining entries are dropped.  A lookup in
    the younger generation costs no more than a lookup in a dict.

    Parameters
    ----------
    size
        capacity of a generation, as a number of entries or in the unit of ``weigh``.  An entry
        larger than that is not kept.
    name
        the key under which `sizes` reports the number of entries
    weak
        also find values that are alive because something else refers to them
    weigh
        ``weigh(value)`` is the size of an entry; without it, each entry has size 1

    >>> squares = Memo(100, "squares")
    >>> squares[3] is None, squares.keep(3, 9), squares[3]
    (True, 9, 9)
    """

    __slots__ = ("__weakref__", "_alive", "_load", "_older", "name", "size", "weigh")

    if TYPE_CHECKING:

        def __getitem__(self, key: K, /) -> V | None: ...  # type: ignore[override]

    def __init__(
        self,
        size: float,
        name: str,
        weak: bool = False,
        weigh: Callable[[V], float] | None = None,
    ) -> None:
        self.size, self.name, self.weigh = size, name, weigh
        self._load = 0.0
        self._older: dict[K, V] = {}
        self._alive: WeakValueDictionary[K, Any] | None = WeakValueDictionary() if weak else None
        with _lock:
            _memos.add(self)

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __missing__(self, key: K) -> V | None:
        found = self._older_or_alive(key)
        return found if found is None or not self.size else self.keep(key, found)

    def _older_or_alive(self, key: K) -> V | None:
        """The value in the older generation, or one that is alive elsewhere; None without one."""
        found = self._older.get(key)
        if found is None and self._alive is not None:
            found = self._alive.get(key)
        return found

    def keep(self, key: K, value: V) -> V:
        """Insert ``value`` unless ``key`` has a value already; return the one that is kept."""
        with _lock:
            found = self.get(key)
            if found is not None:
                return found
            found = self._older_or_alive(key)
            if found is None:
                found = value
                if self._alive is not None:
                    self._alive[key] = value
            self._store(key, found)
            return found

    def _store(self, key: K, value: V) -> None:
        weight = 1 if self.weigh is None else self.weigh(value)
        if weight > self.size:
            return
        if self._load + weight > self.size:
            self._older = dict(self)
            dict.clear(self)
            self._load = 0.0
        self[key] = value
        self._load += weight

    def clear(self) -> None:
        """Drop all entries; a ``weak`` memo still finds values that are alive elsewhere."""
        with _lock:
            self._older = {}
            dict.clear(self)
            self._load = 0.0

    @property
    def count(self) -> int:
        """The number of keys with a value, in either generation or alive elsewhere."""
        kept = {*self, *self._older, *(() if self._alive is None else self._alive.keys())}
        return len(kept)

    def __reduce__(self) -> Any:
        """A copy or pickle is an empty memo with the same settings."""
        return type(self), (self.size, self.name, self._alive is not None, self.weigh)


class WeakMemo(WeakKeyDictionary[K, V]):
    """A cache with weakly referenced keys: ``memo.get(key)`` is the value or None, `keep` inserts.

    Equal keys share an entry, which is removed when the key it was inserted with is collected.  A
    value must not refer to its key, or the entry would never be removed.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        with _lock:
            _memos.add(self)

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other

    def keep(self, key: K, value: V) -> V:
        """Insert ``value`` unless ``key`` has a value already; return the one that is kept."""
        with _lock:
            return self.setdefault(key, value)

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self)

    def __reduce__(self) -> Any:
        """A copy or pickle is an empty memo of the same name."""
        return type(self), (self.name,)

    def __copy__(self) -> WeakMemo[K, V]:
        return WeakMemo(self.name)

    def __deepcopy__(self, memo: Any) -> WeakMemo[K, V]:
        return WeakMemo(self.name)


def sizes() -> dict[str, int]:
    """The number of entries by name of the memo, summed over memos of equal name."""
    found: dict[str, int] = {}
    with _lock:
        memos = list(_memos)
    for memo in memos:
        found[memo.name] = found.get(memo.name, 0) + memo.count
    return dict(sorted(found.items()))


def clear_all() -> None:
    """Drop the entries of all memos."""
    with _lock:
        memos = list(_memos)
    for memo in memos:
        memo.clear()


def exact(x: Any) -> Any:
    """A hashable key for a value: equal keys mean interchangeable values.

    Unlike ``==`` it distinguishes numbers of different types, and 0.0 from -0.0.  TypeError if the
    value, or a part of it, is not hashable.

    >>> exact(1) == exact(True), exact(0.0) == exact(-0.0), exact([1, 2]) == exact([1, 2])
    (False, False, True)
    """
    if isinstance(x, np.generic):
        return type(x), x.tobytes()
    if isinstance(x, float):
        return type(x), x.hex()
    if isinstance(x, complex):
        return type(x), x.real.hex(), x.imag.hex()
    if isinstance(x, tuple | list):
        return (type(x), *map(exact, x))
    if isinstance(x, Mapping):
        return (type(x), *((exact(k), exact(v)) for k, v in x.items()))
    hash(x)
    return type(x), x
