"""Products of vectors, matrices and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.type import DisconnectedType
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, DTypeLike, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.complex_products import lower_complex_product
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import (
    cast,
    conjugate,
    dimshuffle,
    functions,
    match_dtype,
)
from phintys.tensor.reshape import flatten, reshape
from phintys.tensor.shape import length, product, specify_shape
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = [
    "batched_dot",
    "dense_dot",
    "dot",
    "matmul",
    "matvec",
    "outer",
    "vecdot",
    "vecmat",
]


class Dot(Op):
    """The product of two matrices, a matrix and a vector, or two vectors.

    Ranks are (2, 2), (2, 1), (1, 2) and (1, 1); the inner lengths must agree.
    """

    # ----- class and static shape
    __props__ = ()

    def make_node(self, x: TensorLike, y: TensorLike) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        if x.type.ndim not in (1, 2) or y.type.ndim not in (1, 2):
            raise TypeError(
                f"Dot takes vectors and matrices; {x} has {x.type.ndim} dimensions, {y} has "
                f"{y.type.ndim}. Use dot, matmul or tensordot for other ranks."
            )
        return typed_node(self, [x, y], dtypes.upcast(x.type.dtype, y.type.dtype))

    def shape_rule(self, s: ShapeContext, x: Shape, y: Shape) -> list[Shape]:
        s.equal(x[-1], y[0], "Inner lengths do not agree")
        return [(*x[:-1], *y[1:])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        x, y = inputs
        with np.errstate(all="ignore"):
            out = np.dot(x, y)
        output_storage[0][0] = np.asarray(out, dtype=node.outputs[0].type.dtype)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x, y), (g,) = inputs, cotangents
        vectors = x.type.ndim == y.type.ndim == 1
        cx, cy = conjugate(x), conjugate(y)
        gx = g * cy if vectors else self._left(x, cy, g)
        gy = g * cx if vectors else self._right(cx, y, g)
        return [match_dtype(gx, x), match_dtype(gy, y)]

    def _left(self, x: TensorVariable, y: TensorVariable, g: TensorVariable) -> TensorVariable:
        if y.type.ndim == 1:
            return dimshuffle(g, 0, "x") * dimshuffle(y, "x", 0)
        return self(g, dimshuffle(y, 1, 0))

    def _right(self, x: TensorVariable, y: TensorVariable, g: TensorVariable) -> TensorVariable:
        if x.type.ndim == 1:
            return dimshuffle(x, 0, "x") * dimshuffle(g, "x", 0)
        return self(dimshuffle(x, 1, 0), g)

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x, y), (tx, ty) = inputs, tangents
        terms = []
        if not isinstance(tx.type, DisconnectedType):
            terms.append(self(tx, y))
        if not isinstance(ty.type, DisconnectedType):
            terms.append(self(x, ty))
        return [terms[0] + terms[1] if len(terms) == 2 else terms[0] if terms else tx]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x, y), (x0, y0) = batched_inputs, node.inputs
        # a batch of vectors is a matrix, so that its products with one operand are one product
        if y is y0 and x0.type.ndim == 1 and x.type.ndim == 2:
            return self.make_node(x, y)
        if x is x0 and y0.type.ndim == 1 and y.type.ndim == 2:
            return self.make_node(y, dimshuffle(x, list(range(x.type.ndim))[::-1]))
        return PRODUCTS[x0.type.ndim, y0.type.ndim].make_node(x, y)

    def perform_batched(self, node: Apply, inputs: Arrays) -> list[np.ndarray]:
        """The products of batches of vectors and matrices, for `Blockwise`."""
        x, y = inputs
        x0, y0 = node.inputs
        x = x[..., None, :] if x0.type.ndim == 1 else x
        y = y[..., None] if y0.type.ndim == 1 else y
        with np.errstate(all="ignore"):
            out = np.matmul(x, y)
        out = out[..., 0, :] if x0.type.ndim == 1 else out
        return [out[..., 0] if y0.type.ndim == 1 else out]

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        x, y = (b.cast(v, node.outputs[0].type.dtype) for v in inputs)
        if x.ndim == y.ndim == 1 or dtypes.is_complex(str(x.dtype)):
            return self.lower_batched(node, b, x, y)
        return b.matmul(x, y)

    def lower_batched(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        """The products of batches of vectors and matrices, for `Blockwise`."""
        x, y = (b.cast(v, node.outputs[0].type.dtype) for v in inputs)
        x0, y0 = node.inputs
        if dtypes.is_complex(str(x.dtype)):
            return lower_complex_product(b, x, y, (x0.type.ndim == 1, y0.type.ndim == 1))
        if x0.type.ndim == y0.type.ndim == 2:
            return b.gemm(x, y)
        # one loop over all matrices: a BLAS call for each would cost more than it saves
        if x0.type.ndim == 2:
            y = b.expand(y, -2)
        elif y0.type.ndim == 2:
            x, y = b.expand(x, -2), b.permute(y, [*range(y.ndim - 2), y.ndim - 1, y.ndim - 2])
        # a length of 1 does not broadcast here
        b.unify(b.length(x, -1), b.length(y, -1), "inner product: the lengths differ")
        return b.dot(x, y)


_dot = Dot()

#: Ops for products of batches, by the ranks of one item.
PRODUCTS = {
    (2, 2): Blockwise(_dot, "(m,n),(n,p)->(m,p)", name="Matmul"),
    (2, 1): Blockwise(_dot, "(m,n),(n)->(m)", name="Matvec"),
    (1, 2): Blockwise(_dot, "(n),(n,p)->(p)", name="Vecmat"),
    (1, 1): Blockwise(_dot, "(n),(n)->()", name="Vecdot"),
}

#: The op of `matmul`, `matvec`, `vecmat` and `vecdot`; also PyTensor's name, which programs import.
_matmul = PRODUCTS[2, 2]


# ------------------------------------------------------------------------------- one node


def matrix_product(x: TensorLike, y: TensorLike) -> TensorVariable:
    """``x @ y`` as one node, in the normal form of compiled graphs.

    It is `Dot` without batch axes, and an op of `PRODUCTS` with them.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    return product_of_ranks(x, y, (min(x.type.ndim, 2), min(y.type.ndim, 2)))


def product_of_ranks(x: Variable, y: Variable, ranks: tuple[int, int]) -> TensorVariable:
    """Products of vectors (rank 1) and matrices (2) as one node; leading axes are batches."""
    op = _dot if (x.type.ndim, y.type.ndim) == ranks else PRODUCTS[ranks]
    return op(x, y)


# ----------------------------------------------------------------------- layout of PyTensor


def _row(x: TensorVariable) -> TensorVariable:
    """Vectors as matrices of one row."""
    n = x.type.ndim
    return dimshuffle(x, [*range(n - 1), "x", n - 1])


def _column(x: TensorVariable) -> TensorVariable:
    """Vectors as matrices of one column."""
    return dimshuffle(x, [*range(x.type.ndim), "x"])


def _transposed(x: TensorVariable) -> TensorVariable:
    n = x.type.ndim
    return dimshuffle(x, [*range(n - 2), n - 1, n - 2])


def _without_last(x: TensorVariable, count: int = 1) -> TensorVariable:
    """``x`` without its last axes, of length 1."""
    return dimshuffle(x, list(range(x.type.ndim - count)))


def _operand(x: TensorLike, rank: int, name: str, error: type[Exception]) -> TensorVariable:
    """``x`` as a variable; an error if it has fewer than ``rank`` dimensions."""
    x = as_tensor_variable(x)
    if x.type.ndim < rank:
        plural = "" if rank == 1 else "s"
        raise error(f"{name} needs at least {rank} dimension{plural}; {x} has {x.type.ndim}.")
    return x


def _with_dtype(x: TensorVariable, dtype: DTypeLike | None) -> TensorVariable:
    return x if dtype is None else cast(x, dtype)


def dot(l: TensorLike, r: TensorLike) -> TensorVariable:  # noqa: E741
    """The product of two tensors, as ``numpy.dot``.

    Ranks up to 2: the vector and matrix products.  With a 0-d operand: multiplication.  Higher
    ranks: the sum over the last axis of ``l`` and the second last of ``r``.

    Mixed dtypes are upcast.  ShapeError if the inner lengths are known to differ.

    The graph has `Dot` of two matrices; a vector is a row on the left and a column on the right,
    and that axis of the product is dropped.

    >>> import phintys.tensor as pt
    >>> pt.dot([[1, 2], [3, 4]], [1, 1]).eval()
    array([3, 7])
    """
    l, r = as_tensor_variable(l), as_tensor_variable(r)  # noqa: E741
    if l.type.ndim == 0 or r.type.ndim == 0:
        return functions.mul(l, r)
    if l.type.ndim > 2 or r.type.ndim > 2:
        summed = Pairs((l.type.ndim - 1,), (max(r.type.ndim - 2, 0),))
        return contracted(l, r, Pairs((), ()), summed)
    out = _dot(_row(l) if l.type.ndim == 1 else l, _column(r) if r.type.ndim == 1 else r)
    if l.type.ndim == 1:
        out = dimshuffle(out, 1)
    return _without_last(out) if r.type.ndim == 1 else out


def dense_dot(a: TensorLike, b: TensorLike) -> TensorVariable:
    """The product of two dense tensors; see `dot`."""
    return dot(a, b)


def matmul(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """Matrix products over the last two axes, as ``x1 @ x2``; leading axes are batches.

    A vector is a row on the left and a column on the right, without that axis in the result.
    ``dtype``: of the result.  ValueError for 0-d operands.

    The graph has products of matrices: an axis of length 1 is added to a vector, and dropped from
    the product.

    >>> import phintys.tensor as pt
    >>> pt.matmul(pt.ones((5, 2, 3)), pt.ones((3, 4))).type.shape
    (5, 2, 4)
    """
    x1, x2 = as_tensor_variable(x1), as_tensor_variable(x2)
    if x1.type.ndim == 0 or x2.type.ndim == 0:
        raise ValueError(f"matmul does not take 0-d operands ({x1}, {x2}): use * to scale.")
    if x1.type.ndim == 1:
        return vecdot(x1, x2, dtype) if x2.type.ndim == 1 else vecmat(x1, x2, dtype)
    if x2.type.ndim == 1:
        return matvec(x1, x2, dtype)
    return _with_dtype(_matmul(x1, x2), dtype)


def vecdot(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """Inner products over the last axis; leading axes are batches.  Nothing is conjugated.

    IndexError for 0-d operands.

    >>> import phintys.tensor as pt
    >>> pt.vecdot([[1, 2], [3, 4]], [1, 1]).eval()
    array([3, 7])
    """
    x1, x2 = (_operand(x, 1, "vecdot", IndexError) for x in (x1, x2))
    return _with_dtype(_without_last(_matmul(_row(x1), _column(x2)), 2), dtype)


def matvec(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """Products of matrices (last two axes) and vectors (last axis); leading axes are batches.

    ValueError if an operand has too few dimensions.

    >>> import phintys.tensor as pt
    >>> pt.matvec(pt.ones((5, 2, 3)), pt.ones((5, 3))).type.shape
    (5, 2)
    """
    x1 = _operand(x1, 2, "matvec", ValueError)
    x2 = _operand(x2, 1, "matvec", ValueError)
    return _with_dtype(_without_last(_matmul(x1, _column(x2))), dtype)


def vecmat(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """Products of vectors (last axis) and matrices (last two axes); leading axes are batches.

    ValueError if an operand has too few dimensions.

    >>> import phintys.tensor as pt
    >>> pt.vecmat(pt.ones((5, 2)), pt.ones((2, 3))).type.shape
    (5, 3)
    """
    x1 = _operand(x1, 1, "vecmat", ValueError)
    x2 = _operand(x2, 2, "vecmat", ValueError)
    return _with_dtype(_without_last(_matmul(_transposed(x2), _column(x1))), dtype)


def outer(x: TensorLike, y: TensorLike) -> TensorVariable:
    """The product of every element of ``x`` with every element of ``y``, a matrix.

    >>> import phintys.tensor as pt
    >>> pt.outer([1, 2], [3, 4]).eval()
    array([[3, 4],
           [6, 8]])
    """
    rows, columns = (flatten(as_tensor_variable(v)) for v in (x, y))
    return functions.mul(dimshuffle(rows, 0, "x"), dimshuffle(columns, "x", 0))


def batched_dot(a: TensorLike, b: TensorLike) -> TensorVariable:
    """Products of the items of two batches along their first axes, which have equal length.

    Items are vectors, matrices or (for multiplication) numbers.

    >>> import phintys.tensor as pt
    >>> pt.batched_dot([[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0], [2.0, 0.0]]).eval()
    array([3., 6.])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    ranks = a.type.ndim - 1, b.type.ndim - 1
    if min(ranks) < 0:
        raise TypeError(f"batched_dot takes batches; {a} and {b} need a first axis.")
    if 0 in ranks:
        wide = max(ranks)
        a, b = (
            dimshuffle(x, [*range(x.type.ndim), *["x"] * (wide + 1 - x.type.ndim)]) for x in (a, b)
        )
        return functions.mul(a, b)
    if max(ranks) > 2:
        raise TypeError(f"The items of batched_dot are vectors and matrices; got {a} and {b}.")
    return PRODUCTS[ranks](a, b)


# ------------------------------------------------------------------- sums over pairs of axes


class Pairs(NamedTuple):
    """Axes of two tensors in pairs: those of the first and those of the second."""

    left: Sequence[int]
    right: Sequence[int]


def contracted(a: TensorVariable, b: TensorVariable, batch: Pairs, summed: Pairs) -> TensorVariable:
    """The products over the pairs of axes ``batch``, summed over the pairs ``summed``.

    The axes of the result are those of ``batch``, the others of ``a``, the others of ``b``.
    """
    free_a = [k for k in range(a.type.ndim) if k not in {*batch.left, *summed.left}]
    free_b = [k for k in range(b.type.ndim) if k not in {*batch.right, *summed.right}]
    if not summed.left:
        x = dimshuffle(a, [*batch.left, *free_a, *["x"] * len(free_b)])
        return functions.mul(x, dimshuffle(b, [*batch.right, *["x"] * len(free_a), *free_b]))
    b = _of_equal_lengths(a, b, summed)
    x = _grouped(a, batch.left, free_a, summed.left)
    y = _grouped(b, batch.right, summed.right, free_b)
    ranks = 1 + bool(free_a), 1 + bool(free_b)
    out = product_of_ranks(x, y, ranks) if batch.left else dot(x, y)
    if len(free_a) < 2 and len(free_b) < 2:
        return out
    lengths = [length(out, k) for k in range(len(batch.left))]
    lengths += [length(v, k) for v, free in ((a, free_a), (b, free_b)) for k in free]
    return reshape(out, lengths, ndim=len(lengths))


def _of_equal_lengths(a: TensorVariable, b: TensorVariable, pairs: Pairs) -> TensorVariable:
    """``b``; where several axes become one, with a check that the lengths of each pair are equal.

    The product compares one pair by itself, and of several only the products of their lengths.
    """
    if len(pairs.left) < 2:
        return b
    asserted: list[TensorVariable | int | None] = [None] * b.type.ndim
    for i, j in zip(pairs.left, pairs.right):
        if a.type.shape[i] is None or b.type.shape[j] is None:
            known = a.type.shape[i]
            asserted[j] = length(a, i) if known is None else known
    return b if asserted.count(None) == len(asserted) else specify_shape(b, asserted)


def _grouped(x: TensorVariable, batch: Sequence[int], *groups: Sequence[int]) -> TensorVariable:
    """``x`` with the axes ``batch`` first, then each group as one axis; none if it is empty.

    The groups are made in their order in ``x``, and exchanged afterwards: moving an axis of a
    matrix is free in a product, moving one of a tensor before a reshape is a copy.
    """
    groups = tuple(tuple(group) for group in groups if group)
    made = sorted(groups) if any(len(group) > 1 for group in groups) else groups
    out = dimshuffle(x, [*batch, *(k for group in made for k in group)])
    if any(len(group) > 1 for group in groups):
        lengths = [length(x, k) for k in batch]
        lengths += [product([length(x, k) for k in group]) for group in made]
        out = reshape(out, lengths, ndim=len(lengths))
    order = [len(batch) + made.index(group) for group in groups]
    return dimshuffle(out, [*range(len(batch)), *order])
