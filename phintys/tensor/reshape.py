"""Reshaping of tensors: reshape, flatten."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from phintys.dims import as_dim, dim_max, dim_min
from phintys.dims import product as dim_product
from phintys.errors import ShapeError
from phintys.graph.op import Op
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import functions
from phintys.tensor.shape import (
    Shape_i,
    length,
    lengths_vector,
    product,
    shape_tuple,
    specify_shape,
)
from phintys.tensor.static import (
    as_length,
    entries,
    get_vector_length,
    known_length,
    shape_entries,
)

__all__ = ["flatten", "is_flat", "ravel", "reshape"]

# ============================================================================= Reshape


class Reshape(Op):
    """The elements in C order with another shape.  Inputs: the tensor and an integer vector.

    Parameters
    ----------
    ndim
        rank of the result; one entry of the shape may be -1, to be inferred from the others
    """

    # ----- class and static shape
    __props__ = ("ndim",)
    is_linear = True
    handles_missing = False
    view_map = {0: [0]}

    def __init__(self, ndim: int) -> None:
        if ndim < 0:
            raise ValueError(f"The rank of a reshaped tensor is not negative, got {ndim}.")
        self.ndim = int(ndim)

    def make_node(self, x: Any, shp: Any) -> Apply:
        x, shp = as_tensor_variable(x), as_tensor_variable(shp)
        if shp.type.ndim != 1 or shp.type.dtype not in dtypes.INTEGER:
            raise TypeError(f"The new shape is an integer vector; {shp} has type {shp.type}.")
        if shp.type.shape[0] is None:
            shp = specify_shape(shp, self.ndim)
        if get_vector_length(shp) != self.ndim:
            raise ValueError(f"{self} needs {self.ndim} lengths; {shp} has {shp.type.shape[0]}.")
        return Apply(self, [x, shp], [x.type.clone(shape=_reshaped_static(x, shp)).make_variable()])

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, shp = inputs
        shape = tuple(shp.tolist())
        message = f"Cannot reshape {node.inputs[0]} of shape {x.shape} to {shape}."
        if min(shape, default=0) < -1:  # NumPy may accept it as -1
            raise ShapeError(message)
        try:
            output_storage[0][0] = x.reshape(shape)
        except ValueError as exc:
            raise ShapeError(message) from exc

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        found = [as_length(n) for n in entries(node.inputs[1])]
        known = [known_length(n) for n in found]
        total = product(shapes[0])
        missing = _left(total, found)
        if None not in known:
            rest = prod(n for n in known if n is not None and n >= 0)
            return [tuple(total // max(rest, 1) if k == -1 else n for n, k in zip(found, known))]
        return [
            tuple(
                n if _is_length(n, k) else functions.switch(functions.lt(n, 0), missing, n)
                for n, k in zip(found, known)
            )
        ]

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (x, _), (g,) = inputs, cotangents
        return [_reshape_to(g, shape_tuple(x)), None]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        x, shp = batched_inputs
        if shp.type.ndim != 1:
            raise ValueError("The new shape of Reshape cannot differ within a batch.")
        core, old = entries(shp), node.inputs[0]
        if any(known_length(n) == -1 for n in core):
            core = _without_minus_one(core, shape_tuple(x)[x.type.ndim - old.type.ndim :])
        batch = [length(x, i) for i in range(x.type.ndim - old.type.ndim)]
        return Reshape(len(batch) + self.ndim).make_node(x, lengths_vector([*batch, *core]))

    # ----- lowering
    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        x, shp = inputs
        lengths = list(b.items(shp))
        unknown = [
            i for i, n in enumerate(entries(node.inputs[1])) if not _is_length(n, known_length(n))
        ]
        if unknown:
            lengths = _resolved(b, lengths, unknown, dim_product(b.shape(x)))
        return b.reshape(x, lengths)

    def __str__(self) -> str:
        return f"Reshape{{{self.ndim}}}"


def _reshaped_static(x: Any, shp: Any) -> tuple[int | None, ...]:
    """The static shape of a reshaped tensor; ShapeError if the sizes are known to differ."""
    wanted = [known_length(n) for n in entries(shp)]
    if any(n is not None and n < -1 for n in wanted) or wanted.count(-1) > 1:
        raise ShapeError(f"{wanted} is not a shape: one entry may be -1, the others are lengths.")
    size = None if None in x.type.shape else prod(x.type.shape)
    static: list[int | None] = [None if n == -1 else n for n in wanted]
    if size is None or None in wanted:
        return tuple(static)
    rest = prod(n for n in static if n is not None)
    if (size != rest) if -1 not in wanted else (rest == 0 or size % rest):
        raise ShapeError(f"Cannot reshape {x} of static shape {x.type.shape} to {tuple(wanted)}.")
    return tuple(size // rest if n is None else n for n in static)


def _resolved(b: Any, lengths: list[Any], unknown: list[int], size: Any) -> list[Any]:
    """Lengths as Dims with -1 replaced; ``unknown`` are the entries that may be -1."""
    negative = {i: dim_min(dim_max(-lengths[i], 0), 1) for i in unknown}  # 1 where it is -1
    others = -dim_product(lengths)
    count = sum(negative.values(), start=as_dim(0))
    # fails for two entries of -1, and for -1 with a length of 0: both are not determined
    b.check(others * count + 1 - count, ">", 0, "reshape: what -1 stands for is not determined")
    missing = size // dim_max(others, 1)
    return [n + negative[i] * (missing + 1) if i in negative else n for i, n in enumerate(lengths)]


def _is_length(n: Any, known: int | None) -> bool:
    """Whether an entry of a shape cannot be -1."""
    if known is not None:
        return known >= 0
    return n.owner is not None and isinstance(n.owner.op, Shape_i)


def _left(total: Any, requested: Sequence[Any]) -> Any:
    """The length to replace -1; the product of the others is the negated product of all."""
    return total // functions.maximum(-product(requested), 1)


def _without_minus_one(requested: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    """The requested lengths with -1 replaced by the inferred length."""
    others = [as_length(n) for n in requested if known_length(n) != -1]
    missing = product(old) // product(others)
    return [missing if known_length(n) == -1 else n for n in requested]


def reshape(x: Any, newshape: Any, *, ndim: int | None = None) -> Any:
    """The elements of ``x`` in C order with another shape.

    Parameters
    ----------
    x : tensor
    newshape : a sequence of lengths (numbers or variables), or an integer vector; one may be -1
    ndim : rank of the result, needed where ``newshape`` is a vector of unknown length

    Raises
    ------
    TypeError if ``newshape`` is not a vector, ValueError if its length is not known, ShapeError
    if the sizes are known to differ (otherwise at run time).

    >>> import phintys.tensor as pt
    >>> pt.reshape(pt.arange(6), (2, -1)).eval()
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    x = as_tensor_variable(x)
    if not isinstance(newshape, Variable):
        if not isinstance(newshape, Sequence | np.ndarray):
            raise TypeError(f"The new shape is a tuple or a vector of lengths, not {newshape!r}.")
        newshape = lengths_vector(shape_entries(newshape))
    if newshape.type.ndim != 1:
        raise TypeError(f"The new shape is a tuple or a vector of lengths, not {newshape}.")
    if ndim is None:
        if newshape.type.shape[0] is None:
            raise ValueError(
                f"The length of {newshape} is not known: the rank of the result must be given with "
                "ndim=."
            )
        ndim = get_vector_length(newshape)
    return Reshape(ndim)(x, newshape)


def _reshape_to(x: Any, lengths: Sequence[Any]) -> Any:
    return Reshape(len(lengths))(x, lengths_vector(lengths))


def flatten(x: Any, ndim: int = 1) -> Any:
    """``x`` with its first ``ndim - 1`` axes kept and the others flattened into one.

    ValueError if ``ndim`` is less than 1 or more than the rank of ``x``.

    >>> import phintys.tensor as pt
    >>> pt.flatten(pt.zeros((2, 3, 4)), 2).type.shape
    (2, 12)
    """
    x = as_tensor_variable(x)
    if not 1 <= ndim <= max(x.type.ndim, 1):
        raise ValueError(f"ndim must be between 1 and {max(x.type.ndim, 1)}, not {ndim}.")
    if x.type.ndim == ndim:
        return x
    if ndim == 1:
        return _reshape_to(x, [-1])
    lengths = shape_tuple(x)
    return _reshape_to(x, [*lengths[: ndim - 1], product(lengths[ndim - 1 :])])


def ravel(x: Any) -> Any:
    """``x`` flattened to a vector."""
    return flatten(x)


def is_flat(var: Any, ndim: int = 1) -> bool:
    """Whether ``var`` has rank ``ndim``."""
    return as_tensor_variable(var).type.ndim == ndim
