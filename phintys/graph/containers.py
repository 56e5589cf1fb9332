"""Small containers: dicts that do not change, and dicts whose keys need no hash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from phintys.graph.clients import OrderedSet

__all__ = ["AssocList", "OrderedSet", "frozendict"]

K = TypeVar("K")
V = TypeVar("V")


class frozendict(Mapping[K, V]):
    """A dict that does not change, and has a hash if its values have one.

    >>> d = frozendict(a=1)
    >>> d["a"], {d: 2}[frozendict({"a": 1})], d.copy(b=2)
    (1, 2, <frozendict {'a': 1, 'b': 2}>)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        items: dict[Any, Any] = dict(*args, **kwargs)
        self._dict: dict[K, V] = items
        self._hash: int | None = None

    def __getitem__(self, key: K) -> V:
        return self._dict[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __contains__(self, key: object) -> bool:
        return key in self._dict

    def copy(self, **add_or_replace: Any) -> frozendict[Any, Any]:
        """A frozendict with further items."""
        return type(self)({**self._dict, **add_or_replace})

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._dict.items()))
        return self._hash

    def __reduce__(self) -> Any:
        return type(self), (self._dict,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._dict!r}>"


class AssocList(MutableMapping[Any, Any]):
    """A dict of keys of any kind: those without a hash are found by comparing them in turn.

    >>> a = AssocList()
    >>> a["x"], a[[1]] = 1, 2
    >>> a[[1]], "x" in a, a.get("y", 3), len(a)
    (2, True, 3, 2)
    """

    def __init__(self) -> None:
        self._dict: dict[Any, Any] = {}
        self._list: list[tuple[Any, Any]] = []

    def __getitem__(self, key: Any) -> Any:
        if _has_hash(key):
            return self._dict[key]
        for k, value in self._list:
            if k == key:
                return value
        raise KeyError(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if _has_hash(key):
            self._dict[key] = value
            return
        self.discard(key)
        self._list.append((key, value))

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        self.discard(key)

    def discard(self, key: Any) -> None:
        """Remove a key, if it is there."""
        if _has_hash(key):
            self._dict.pop(key, None)
        else:
            self._list = [(k, value) for k, value in self._list if not k == key]  # noqa: SIM201

    def __contains__(self, key: object) -> bool:
        return key in self._dict if _has_hash(key) else any(k == key for k, _ in self._list)

    def __iter__(self) -> Iterator[Any]:
        yield from self._dict
        yield from (k for k, _ in self._list)

    def __len__(self) -> int:
        return len(self._dict) + len(self._list)

    def __repr__(self) -> str:
        return f"AssocList({[*self._dict.items(), *self._list]})"


def _has_hash(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
