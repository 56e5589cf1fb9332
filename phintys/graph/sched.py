"""Orders of nodes by several comparators, of which the first ones matter most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import io_toposort, toposort
from phintys.graph.variable import Apply, Variable

T = TypeVar("T")
#: ``compare(a, b)`` is negative if a comes first, positive if b does, 0 if there is no preference
Comparator = Callable[[T, T], float]


def key_to_cmp(key: Callable[[T], Any]) -> Comparator[T]:
    """The comparator that puts smaller keys first."""

    def compare(a: T, b: T) -> int:
        left, right = key(a), key(b)
        return int(left > right) - int(left < right)

    return compare


def make_dependence_cmp() -> Comparator[Apply]:
    """The comparator that puts a node before those that depend on it."""
    found: dict[Apply, frozenset[Apply]] = {}

    def ancestors(node: Apply) -> frozenset[Apply]:
        if node not in found:
            found[node] = frozenset(toposort(node.inputs))
        return found[node]

    def compare(a: Apply, b: Apply) -> int:
        return int(b in ancestors(a)) - int(a in ancestors(b))

    return compare


def posort(nodes: Sequence[T], *cmps: Comparator[T]) -> list[T]:
    """Elements in an order that comparators prefer, those given first above the others.

    A preference that contradicts earlier ones, or what follows from them, is ignored.  Elements
    without a preference keep their order.

    >>> tens, evens_first = key_to_cmp(lambda n: n // 10), key_to_cmp(lambda n: n % 2)
    >>> posort([12, 3, 11, 2, 4], tens, evens_first)
    [2, 4, 3, 12, 11]
    """
    listed = list(nodes)
    count = len(listed)
    before = [1 << i for i in range(count)]  # bit j: element j comes before element i, or is i
    after = [1 << i for i in range(count)]
    for compare in cmps:
        for i in range(count):
            for j in range(count):
                if i == j or before[i] >> j & 1 or before[j] >> i & 1:
                    continue
                if compare(listed[i], listed[j]) < 0:
                    _put(i, j, before, after)
    order = sorted(range(count), key=lambda i: (before[i].bit_count(), i))
    return [listed[i] for i in order]


def _put(i: int, j: int, before: list[int], after: list[int]) -> None:
    """Put element i before element j, with what follows from it."""
    first, last = before[i], after[j]
    for k in range(len(before)):
        if last >> k & 1:
            before[k] |= first
        if first >> k & 1:
            after[k] |= last


def sort_apply_nodes(
    inputs: Sequence[Variable], outputs: Sequence[Variable], cmps: Sequence[Comparator[Apply]]
) -> list[Apply]:
    """The nodes between inputs and outputs, each after those it depends on, else by comparators."""
    return posort(list(io_toposort(inputs, outputs)), make_dependence_cmp(), *cmps)


def sort_schedule_fn(*cmps: Comparator[Apply]) -> Callable[[FunctionGraph], list[Apply]]:
    """A function that makes a list of the nodes of a `FunctionGraph`, as `sort_apply_nodes` does.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector()
    >>> by_name = sort_schedule_fn(key_to_cmp(str))
    >>> graph = FunctionGraph([x], [pt.sin(x) + pt.cos(x)], clone=False)
    >>> [str(node.op) for node in by_name(graph)]
    ['Cos', 'Sin', 'Add']
    """

    def schedule(fgraph: FunctionGraph) -> list[Apply]:
        return sort_apply_nodes(fgraph.inputs, fgraph.outputs, cmps)

    return schedule
