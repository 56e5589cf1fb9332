"""Names of PyTensor's ``tensor.extra_ops``: counting, searching, repeating, broadcasting."""

from __future__ import annotations

from phintys.tensor.axes import squeeze
from phintys.tensor.counting import Unique, bincount, unique
from phintys.tensor.creation import (
    broadcast_arrays,
    broadcast_shape,
    broadcast_shape_iter,
    broadcast_to,
)
from phintys.tensor.cumulative import CumOp, cumprod, cumsum, diff
from phintys.tensor.fill_diagonal import (
    FillDiagonal,
    FillDiagonalOffset,
    fill_diagonal,
    fill_diagonal_offset,
)
from phintys.tensor.index import compress
from phintys.tensor.join import concat_with_broadcast
from phintys.tensor.multi_index import (
    RavelMultiIndex,
    UnravelIndex,
    ravel_multi_index,
    unravel_index,
)
from phintys.tensor.quantiles import bartlett
from phintys.tensor.ranges import geomspace, linspace, logspace
from phintys.tensor.repeat import Repeat, repeat
from phintys.tensor.search import SearchsortedOp, searchsorted
from phintys.tensor.special import to_one_hot

__all__ = [
    "CumOp",
    "FillDiagonal",
    "FillDiagonalOffset",
    "RavelMultiIndex",
    "Repeat",
    "SearchsortedOp",
    "Unique",
    "UnravelIndex",
    "bartlett",
    "bincount",
    "broadcast_arrays",
    "broadcast_shape",
    "broadcast_shape_iter",
    "broadcast_to",
    "compress",
    "concat_with_broadcast",
    "cumprod",
    "cumsum",
    "diff",
    "fill_diagonal",
    "fill_diagonal_offset",
    "geomspace",
    "linspace",
    "logspace",
    "ravel_multi_index",
    "repeat",
    "searchsorted",
    "squeeze",
    "to_one_hot",
    "unique",
    "unravel_index",
]
