"""Reshaping of tensors: reshape, flatten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.dims import ZERO, dim_max, dim_min, is_nonnegative
from phintys.dims import product as dim_product
from phintys.errors import ShapeError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, Length, ShapeLike, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.shape import (
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
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

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

    def make_node(self, x: TensorLike, shp: ShapeLike) -> Apply:
        x, shp = as_tensor_variable(x), as_tensor_variable(shp)
        if shp.type.ndim != 1 or shp.type.dtype not in dtypes.INTEGER:
            raise TypeError(f"The new shape is an integer vector; {shp} has type {shp.type}.")
        if shp.type.shape[0] is None:
            shp = specify_shape(shp, self.ndim)
        if get_vector_length(shp) != self.ndim:
            raise ValueError(f"{self} needs {self.ndim} lengths; {shp} has {shp.type.shape[0]}.")
        return typed_node(self, [x, shp], x.type)

    def shape_rule(self, s: ShapeContext, x: Shape, shp: Shape) -> list[Shape]:
        wanted, size = s.values(1), dim_product(x)
        known = [n.value for n in wanted if n.value is not None]
        wrong = sum(n < -1 for n in known) + max(known.count(-1) - 1, 0)
        s.check(0, ">=", wrong, "Only one length may be -1 and none less", early=True)
        # 1 where a length is -1, else 0
        missing = {
            i: dim_min(dim_max(-n, 0), 1) for i, n in enumerate(wanted) if not is_nonnegative(n)
        }
        if missing:
            others, count = -dim_product(wanted), sum(missing.values(), start=ZERO)
            # fails for two lengths of -1, and for -1 with a length of 0: both are not determined
            message = "What -1 stands for is not determined"
            s.check(others * count + 1 - count, ">", 0, message, early=True)
            rest = size // dim_max(others, 1) + 1
            wanted = tuple([n + missing.get(i, ZERO) * rest for i, n in enumerate(wanted)])
        s.equal(size, dim_product(wanted), "The sizes of the old and the new shape differ")
        return [wanted]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x, shp = inputs
        shape = tuple(shp.tolist())
        if min(shape, default=0) < -1:  # NumPy may accept it as -1
            check_shapes(node, inputs)
        try:
            output_storage[0][0] = x.reshape(shape)
        except ValueError as exc:
            check_shapes(node, inputs)
            raise ShapeError(f"NumPy does not support the shape {shape}: {exc}") from exc

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[TensorVariable | None]:
        (x, _), (g,) = inputs, cotangents
        return [_reshape_to(g, shape_tuple(x)), None]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        x, shp = batched_inputs
        if shp.type.ndim != 1:
            raise ValueError("The new shape of Reshape cannot differ within a batch.")
        core, old = entries(shp), node.inputs[0]
        if any(known_length(n) == -1 for n in core):
            core = _without_minus_one(core, shape_tuple(x)[x.type.ndim - old.type.ndim :])
        batch = [length(x, i) for i in range(x.type.ndim - old.type.ndim)]
        return Reshape(len(batch) + self.ndim).make_node(x, lengths_vector([*batch, *core]))

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (shape,) = b.result_shapes(node, *inputs)
        return b.reshape(inputs[0], shape)

    def __str__(self) -> str:
        return f"Reshape{{{self.ndim}}}"


def _without_minus_one(requested: Tensors, old: Tensors) -> list[TensorVariable]:
    """The requested lengths with -1 replaced by the inferred length."""
    others = [as_length(n) for n in requested if known_length(n) != -1]
    missing = product(old) // product(others)
    return [missing if known_length(n) == -1 else n for n in requested]


def reshape(x: TensorLike, newshape: ShapeLike, *, ndim: int | None = None) -> TensorVariable:
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


def _reshape_to(x: TensorVariable, lengths: Sequence[Length]) -> TensorVariable:
    return Reshape(len(lengths))(x, lengths_vector(lengths))


def flatten(x: TensorLike, ndim: int = 1) -> TensorVariable:
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


def ravel(x: TensorLike) -> TensorVariable:
    """``x`` flattened to a vector."""
    return flatten(x)


def is_flat(var: TensorLike, ndim: int = 1) -> bool:
    """Whether ``var`` has rank ``ndim``."""
    return as_tensor_variable(var).type.ndim == ndim
