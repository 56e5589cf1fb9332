"""Clusters of values, and the places of values in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from phintys.dims import Dim

Shape = tuple[Dim, ...]
#: for each axis of a value an axis of a space, or None
Axes = tuple[int | None, ...]
#: a `phintys.lowering.values.Value`, whose module imports this one
AnyValue = Any


@dataclass(eq=False, slots=True)
class Cluster:
    """Values to be computed in one loop nest over ``space``.

    ``inner`` is the number of inner dimensions, if results of reductions are used in the cluster.
    ``is_ragged``: the last dimension is a ragged loop, see `Kernel`.
    ``size`` and ``loads`` estimate the instructions and operands of the kernel; ``roots`` are the
    values that it stores.
    """

    number: int
    stage: int
    space: Shape
    inner: int | None = None
    is_ragged: bool = False
    size: int = 0
    loads: set[int] = field(default_factory=set)
    roots: list[AnyValue] = field(default_factory=list)


@dataclass(slots=True)
class Place:
    """Where a value is computed: element ``i[axes]`` at point ``i`` of its cluster's space.

    An axis of the value that is None in ``axes`` has length 1.  For a reduction, ``reduced`` holds
    the axes of the space that are reduced, and ``source`` are the ``axes`` of its argument.
    """

    cluster: Cluster
    axes: Axes
    reduced: frozenset[int] = frozenset()
    source: Axes = ()

    def is_full(self) -> bool:
        """Whether the value varies with all axes of the space (it is not at the outer level)."""
        return len(set(self.axes) - {None}) == len(self.cluster.space)

    def reduced_inside(self) -> int | None:
        """The number of reduced dimensions if they are exactly the inner ones of the cluster.

        None if they are not; the result of the reduction cannot be used in the cluster then.
        """
        count, rank = len(self.reduced), len(self.cluster.space)
        trailing = self.reduced == frozenset(range(rank - count, rank)) and count > 0
        return count if trailing and self.cluster.inner in (None, count) else None
