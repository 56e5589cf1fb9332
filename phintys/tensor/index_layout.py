"""The layout of the axes of advanced indexing, with and without leading batch axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from phintys.errors import RaggedError
from phintys.graph.variable import Variable
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import dimshuffle
from phintys.tensor.index_list import FULL, Entry, positions
from phintys.tensor.ranges import arange
from phintys.tensor.shape import length
from phintys.tensor.type import TensorType
from phintys.tensor.variable import Tensors, TensorVariable

T = TypeVar("T")


class Layout:
    """The layout of the result axes of an advanced index.

    Index tensors broadcast against each other; their axes take the place of the indexed ones if
    these are adjacent, and come first otherwise (NumPy's rule).

    positions, axes
        the index inputs that are tensors, and the (first) axis of ``x`` each indexes
    slices
        (slice, axis of ``x``) for every axis that is not indexed by a tensor
    index_ndim
        rank of the broadcast index tensors
    """

    def __init__(self, idx_list: Sequence[Entry], types: Sequence[TensorType], ndim: int) -> None:
        self.positions: list[int] = []
        self.axes: list[int] = []
        self.slices: list[tuple[slice, int]] = []
        places: list[int] = []
        ranks: list[int] = []
        axis = 0
        for place, e in enumerate(idx_list):
            if isinstance(e, slice):
                self.slices.append((e, axis))
                axis += 1
                continue
            is_mask = types[e].dtype == "bool"
            self.positions.append(e)
            self.axes.append(axis)
            places.append(place)
            ranks.append(1 if is_mask else types[e].ndim)
            axis += types[e].ndim if is_mask else 1
        if axis > ndim:
            raise IndexError(f"Too many indices: {axis} for {ndim} dimensions.")
        self.slices += [(FULL, a) for a in range(axis, ndim)]
        self.has_mask = any(types[p].dtype == "bool" for p in self.positions)
        self.index_ndim = max(ranks, default=0)
        self.ndim = self.index_ndim + len(self.slices)
        self.adjacent = bool(places) and places == list(range(places[0], places[0] + len(places)))
        first = self.axes[0] if self.axes else 0
        self.before = sum(1 for _, a in self.slices if a < first) if self.adjacent else 0

    def arrange(self, index: Iterable[T], rest: Iterable[T]) -> tuple[T, ...]:
        """Items for the index axes and for the other axes, in the order of the result."""
        index, rest = list(index), list(rest)
        return (*rest[: self.before], *index, *rest[self.before :])

    def order(self) -> tuple[int, ...]:
        """For each result axis, its position in the order that has the index axes first."""
        return self.arrange(range(self.index_ndim), range(self.index_ndim, self.ndim))


class BatchedIndex:
    """An index after leading batch axes are added to the indexed tensor or to index tensors.

    Parameters
    ----------
    idx_list, core_x, core_indices
        the index and the variables it is applied to
    x, indices
        the same with batch axes
    batch
        the number of batch axes of the result

    Attributes
    ----------
    idx_list, indices
        of the index with batch axes
    in_index
        whether its tensors have the batch axes
    order
        the axes of its result that are the batch axes and those of the core result, in order
    """

    def __init__(
        self,
        idx_list: Sequence[Entry],
        core_x: Variable,
        core_indices: Sequence[Variable],
        x: TensorVariable,
        indices: Tensors,
        batch: int,
    ) -> None:
        self.core = Layout(idx_list, [i.type for i in core_indices], core_x.type.ndim)
        batched = [k for k, i in enumerate(indices) if i.type.ndim > core_indices[k].type.ndim]
        _check_rectangular(idx_list, core_indices, batched)
        self.in_index = bool(batched)
        own = x.type.ndim - core_x.type.ndim
        ranges: list[TensorVariable] = []
        if batched:
            counts = [length(x, k) for k in range(own)]
            ranges = [
                dimshuffle(
                    arange(n), ["x"] * k + [0] + ["x"] * (own - k - 1 + self.core.index_ndim)
                )
                for k, n in enumerate(counts)
            ]
        aligned = [
            self._aligned(i, core_indices[k], batch) if k in batched else i
            for k, i in enumerate(indices)
        ]
        self.indices = [*aligned, *ranges]
        leading = [len(aligned) + k for k in range(len(ranges))] if batched else [FULL] * own
        self.idx_list = (*leading, *idx_list)
        types = [as_tensor_variable(i).type for i in self.indices]
        self.order = self._order(Layout(self.idx_list, types, x.type.ndim), batch)

    def _aligned(self, index: TensorVariable, core: Variable, batch: int) -> TensorVariable:
        """An index tensor with all batch axes, before all index axes."""
        own = index.type.ndim - core.type.ndim
        gap = ["x"] * (self.core.index_ndim - core.type.ndim)
        lead = ["x"] * (batch - own)
        return dimshuffle(index, [*lead, *range(own), *gap, *range(own, index.type.ndim)])

    def _order(self, layout: Layout, batch: int) -> list[int]:
        lead = [("batch", k) for k in range(batch)]
        index = [("index", k) for k in range(self.core.index_ndim)]
        rest = [("rest", k) for k in range(len(self.core.slices))]
        if self.in_index:
            found = layout.arrange(lead + index, rest)
        else:
            found = layout.arrange(index, lead + rest)
        wanted = lead + list(self.core.arrange(index, rest))
        return [found.index(label) for label in wanted]

    def spread(self, y: TensorVariable, core: Variable, batch: int) -> TensorVariable:
        """A value to write to the core region, reordered for the batched region."""
        own = y.type.ndim - core.type.ndim
        gap = ["x"] * (self.core.ndim - core.type.ndim)
        entries = ["x"] * (batch - own) + list(range(own)) + gap + list(range(own, y.type.ndim))
        return dimshuffle(y, [entries[self.order.index(k)] for k in range(len(entries))])


def _check_rectangular(
    idx_list: Sequence[Entry], core_indices: Sequence[Variable], batched: Sequence[int]
) -> None:
    """Raise RaggedError if items of a batch would have results of different shapes."""
    in_slices = {p for e in idx_list if isinstance(e, slice) for p in positions(e)}
    for k in batched:
        if k in in_slices or core_indices[k].type.dtype == "bool":
            what = "a boolean index" if k not in in_slices else "the bounds of a slice"
            raise RaggedError(
                f"{what} cannot differ from item to item of a batch: the results would differ in "
                f"shape ({core_indices[k]})."
            )
