"""Names of PyTensor's ``tensor.subtensor``: indexing."""

from __future__ import annotations

from phintys.tensor.index import (
    basic_shape,
    flip,
    inc_subtensor,
    indexed_result_shape,
    set_subtensor,
    slice_at_axis,
    take,
)
from phintys.tensor.index_list import (
    as_index_literal,
    flatten_index_variables,
    get_canonical_form_slice,
    get_idx_list,
    indices_from_subtensor,
    slice_len,
    slice_static_length,
    unflatten_index_variables,
)
from phintys.tensor.index_ops import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)

__all__ = [
    "AdvancedIncSubtensor",
    "AdvancedSubtensor",
    "IncSubtensor",
    "Subtensor",
    "as_index_literal",
    "basic_shape",
    "flatten_index_variables",
    "flip",
    "get_canonical_form_slice",
    "get_idx_list",
    "inc_subtensor",
    "indexed_result_shape",
    "indices_from_subtensor",
    "set_subtensor",
    "slice_at_axis",
    "slice_len",
    "slice_static_length",
    "take",
    "unflatten_index_variables",
]
