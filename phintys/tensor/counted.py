"""Positions that counts repeat, and those where masks are true, in machine code."""

from __future__ import annotations

from typing import Any

from phintys.dims import Dim, product
from phintys.graph.builder import Builder, V
from phintys.routines import Array, Longs, routine
from phintys.scalar.native import Native

#: more elements than memory holds
MOST = 2**62
NEGATIVE = "A number of repeats is negative."


@routine("int8", (ValueError, "The positions were not found."))
def true_positions(n: int, mask: Array, found: Longs) -> int:
    """Write the positions of the ones in mask[n]; the element behind them is undefined."""
    k = 0
    for i in range(n):
        found[k] = i
        k += int(mask[i])
    return 0


@routine("int64", (ValueError, NEGATIVE))
def repeated_positions(n: int, counts: Array, found: Longs) -> int:
    """Write each position as often as counts[n] says; return 1 if a count is negative."""
    k = 0
    for i in range(n):
        count = int(counts[i])
        if count < 0:
            return 1
        for _ in range(count):
            found[k] = i
            k += 1
    return 0


def lower_true_positions(b: Builder[V], mask: V) -> list[V]:
    """The positions of the true elements of a mask in C order: one int64 vector per axis."""
    shape = b.shape(mask)
    size = product(shape)
    flat = b.cast(b.reshape(mask, (size,)), "int8")
    count = b.item(b.reduce("add", b.cast(flat, "int64"), (0,)))
    (found,) = b.external(
        true_positions, "int8", (size,), [flat], writes=[("int64", (count + 1,))], work=size
    )
    return _unravelled(b, b.slice(found, 0, 0, 1, count), shape)


def lower_repeated_positions(b: Builder[V], counts: V) -> V:
    """Each position in a vector of integers as often as its element says, an int64 vector."""
    counts = b.cast(counts, "int64")
    n = b.length(counts, 0)
    bounded = b.map(_bounded, counts, b.scalar(n))
    total = b.item(b.reduce("add", bounded, (0,)))
    (found,) = b.external(
        repeated_positions, "int64", (n,), [counts], writes=[("int64", (total,))], work=n + total
    )
    return found


def _bounded(n: Native, count: Any, length: Any) -> Any:
    """A count that is not negative, and so small that the sum of all is no more than `MOST`."""
    most = n.idiv(n.const(MOST, count), n.max(length, n.const(1, count)))
    return n.min(n.max(count, n.const(0, count)), most)


def _unravelled(b: Builder[V], positions: V, shape: tuple[Dim, ...]) -> list[V]:
    """Positions in flattened arrays of a shape as positions along each axis."""
    found: list[V] = []
    for length in reversed(shape[1:]):
        before = b.map(lambda n, p, m: n.idiv(p, m), positions, b.scalar(length))
        found.append(
            b.map(lambda n, p, q, m: n.sub(p, n.mul(q, m)), positions, before, b.scalar(length))
        )
        positions = before
    return [positions, *found[::-1]]
