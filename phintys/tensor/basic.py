"""Names of PyTensor's ``tensor.basic``: creation, casts, joins, triangles, permutations."""

from __future__ import annotations

from phintys.graph.type import transfer
from phintys.tensor.axes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    atleast_Nd,
    expand_dims,
    matrix_transpose,
    moveaxis,
    swapaxes,
    transpose,
)
from phintys.tensor.convert import as_tensor, as_tensor_variable, constant, tensor_variable_of
from phintys.tensor.creation import (
    Alloc,
    AllocEmpty,
    alloc,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from phintys.tensor.diagonal import ExtractDiag, alloc_diag, diag, diagonal, extract_diag, trace
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.grids import (
    choose,
    ix_,
    mgrid,
    ogrid,
    tril_indices,
    tril_indices_from,
    triu_indices,
    triu_indices_from,
)
from phintys.tensor.index import nonzero_values, take_along_axis
from phintys.tensor.join import (
    Join,
    Split,
    concatenate,
    horizontal_stack,
    join,
    split,
    stack,
    stacklists,
    vertical_stack,
)
from phintys.tensor.math import where
from phintys.tensor.nonzero import Nonzero, flatnonzero, nonzero
from phintys.tensor.permute import PermuteRowElements, inverse_permutation, permute_row_elements
from phintys.tensor.ranges import ARange, Eye, arange, eye, identity_like, tri, tril, triu
from phintys.tensor.repeat import roll, tile
from phintys.tensor.reshape import flatten, is_flat
from phintys.tensor.shape import (
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
    make_vector,
    scalar_from_tensor,
    tensor_from_scalar,
)
from phintys.tensor.static import (
    extract_constant,
    get_scalar_constant_value,
    get_underlying_scalar_constant_value,
    infer_static_shape,
)

__all__ = [
    "ARange",
    "Alloc",
    "AllocEmpty",
    "ExtractDiag",
    "Eye",
    "Join",
    "MakeVector",
    "Nonzero",
    "PermuteRowElements",
    "ScalarFromTensor",
    "Split",
    "TensorFromScalar",
    "alloc",
    "alloc_diag",
    "arange",
    "as_tensor",
    "as_tensor_variable",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "atleast_Nd",
    "cast",
    "choose",
    "concatenate",
    "constant",
    "diag",
    "diagonal",
    "empty",
    "empty_like",
    "expand_dims",
    "extract_constant",
    "extract_diag",
    "eye",
    "fill",
    "flatnonzero",
    "flatten",
    "full",
    "full_like",
    "get_scalar_constant_value",
    "get_underlying_scalar_constant_value",
    "horizontal_stack",
    "identity",
    "identity_like",
    "infer_static_shape",
    "inverse_permutation",
    "is_flat",
    "ix_",
    "join",
    "make_vector",
    "matrix_transpose",
    "mgrid",
    "moveaxis",
    "nonzero",
    "nonzero_values",
    "ogrid",
    "ones",
    "ones_like",
    "permute_row_elements",
    "roll",
    "scalar_from_tensor",
    "second",
    "split",
    "stack",
    "stacklists",
    "swapaxes",
    "switch",
    "take_along_axis",
    "tensor_copy",
    "tensor_from_scalar",
    "tile",
    "trace",
    "transfer",
    "transpose",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "vertical_stack",
    "where",
    "zeros",
    "zeros_like",
]

#: PyTensor's name, by which programs register conversions of further classes
_as_tensor_variable = tensor_variable_of
fill = functions.second
identity = functions.identity
second = functions.second
switch = functions.switch
tensor_copy = functions.identity
