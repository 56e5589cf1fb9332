"""What is remembered from one call to the next, and for how long: the policy of the package.

Whatever grows with what users do is held by one of two classes:

`Memo`
    by value.  It keeps the entries that were asked for last, up to a limit; with ``weak`` it also
    finds every other value that is still alive, so equal keys give the same object.
`WeakMemo`
    about objects.  An entry goes when its key does.

What the program itself bounds (a table of functions, one library for each dtype) may be a plain
dict or `functools.cache`; ``tests/robustness/test_memo.py`` lists them, each with its reason.

A key says what the value depends on, all of it, by objects and numbers: never by the text of an
object, because two objects may have the same.  Numbers compare equal across types, and 0.0 equals
-0.0: where that matters, `exact` makes a key that tells them apart.

Several threads may use a memo.  What two of them make for one key at the same time is made twice,
and kept once: both get the object that was kept.
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
    """Values by key, as many as fit: ``memo[key]`` is the value, or None; `keep` adds one.

    Entries are in two generations.  When the younger one is full it becomes the older one, whose
    entries are dropped, except those that were asked for meanwhile.  So an entry is found at the
    price of a dict, and what is used often stays.

    Parameters
    ----------
    size
        what a generation holds: a number of entries, or of what ``weigh`` counts.  An entry that
        is larger than that is not kept.
    name
        what `sizes` counts the entries under
    weak
        also find values that are alive because something else refers to them
    weigh
        ``weigh(value)`` is the size of an entry; without it, each counts 1

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
        found = self._elsewhere(key)
        return found if found is None or not self.size else self.keep(key, found)

    def _elsewhere(self, key: K) -> V | None:
        """A value that is not in the younger generation."""
        found = self._older.get(key)
        if found is None and self._alive is not None:
            found = self._alive.get(key)
        return found

    def keep(self, key: K, value: V) -> V:
        """The value under ``key`` from now on: ``value``, unless there is one."""
        with _lock:
            found = self.get(key)
            if found is not None:
                return found
            found = self._elsewhere(key)
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
        """Forget everything; values that are alive are still found if the memo is ``weak``."""
        with _lock:
            self._older = {}
            dict.clear(self)
            self._load = 0.0

    @property
    def count(self) -> int:
        """The number of values that the memo keeps alive, or finds alive."""
        kept = {*self, *self._older, *(() if self._alive is None else self._alive.keys())}
        return len(kept)

    def __reduce__(self) -> Any:
        """Copies and pickles are empty."""
        return type(self), (self.size, self.name, self._alive is not None, self.weigh)


class WeakMemo(WeakKeyDictionary[K, V]):
    """What is known about objects: ``memo.get(object)`` is it, or None; `keep` adds to it.

    Equal objects share an entry, which goes when the one that it was made for does.  A value must
    not refer to its key: it would keep itself alive.
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
        """The value under ``key`` from now on: ``value``, unless there is one."""
        with _lock:
            return self.setdefault(key, value)

    @property
    def count(self) -> int:
        """The number of objects that something is known about."""
        return len(self)

    def __reduce__(self) -> Any:
        """Copies and pickles are empty."""
        return type(self), (self.name,)

    def __copy__(self) -> WeakMemo[K, V]:
        return WeakMemo(self.name)

    def __deepcopy__(self, memo: Any) -> WeakMemo[K, V]:
        return WeakMemo(self.name)


def sizes() -> dict[str, int]:
    """How many entries there are, by the name of the memo (those of one name together)."""
    found: dict[str, int] = {}
    with _lock:
        memos = list(_memos)
    for memo in memos:
        found[memo.name] = found.get(memo.name, 0) + memo.count
    return dict(sorted(found.items()))


def clear_all() -> None:
    """Forget everything that was remembered."""
    with _lock:
        memos = list(_memos)
    for memo in memos:
        memo.clear()


def exact(x: Any) -> Any:
    """A key for a value: equal keys mean interchangeable values.  TypeError if there is none.

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
