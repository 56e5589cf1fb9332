"""The uses of a variable in a `FunctionGraph`, and an ordered set for it.

The containers keep the order of insertion, and insert and remove in constant time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Sequence
from typing import Any, TypeVar, overload

from phintys.graph.op import Op
from phintys.graph.variable import Apply, Variable

T = TypeVar("T")
Client = tuple[Apply, int]


class OrderedSet(MutableSet[T]):
    """A set that is iterated in order of insertion, so that results are deterministic.

    >>> s = OrderedSet("banana")
    >>> s.add("c")
    >>> list(s), "n" in s, s == {"a", "b", "c", "n"}
    (['b', 'a', 'n', 'c'], True, True)
    """

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: dict[T, None] = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, value: T) -> None:
        self._items[value] = None

    def discard(self, value: T) -> None:
        self._items.pop(value, None)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)})"


class Clients(dict[Client, None]):
    """The uses of a variable: pairs (node, position of the input), in order of insertion.

    It has the interface of a sequence.  It is implemented as a dict, so that insertion, removal,
    `len` and membership take constant time; indexing takes linear time.
    """

    __slots__ = ()

    def append(self, client: Client) -> None:
        """Add a use."""
        self[client] = None

    def remove(self, client: Client) -> None:
        """Remove a use; nothing happens if it is not there."""
        self.pop(client, None)

    def first(self) -> Client:
        """The first use; StopIteration if there is none."""
        return next(iter(self))

    def count(self, client: Client) -> int:
        """1 if the use is present, else 0."""
        return int(client in self)

    def index(self, client: Client) -> int:
        """The position of a use; ValueError if it is not there."""
        return list(self).index(client)

    @overload
    def __getitem__(self, index: int) -> Client: ...
    @overload
    def __getitem__(self, index: slice) -> list[Client]: ...
    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class Output(Op):
    """The pseudo-op of the node that represents output ``idx`` of a graph in ``clients``."""

    __props__ = ("idx",)

    def __init__(self, idx: int) -> None:
        self.idx = idx

    def make_node(self, *inputs: Variable) -> Apply:
        return Apply(self, inputs, [])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        raise RuntimeError("An Output marks a result of a FunctionGraph; it is never executed.")

    def __str__(self) -> str:
        return f"output[{self.idx}]"


Sequence.register(Clients)  # pyright: ignore[reportAttributeAccessIssue]
