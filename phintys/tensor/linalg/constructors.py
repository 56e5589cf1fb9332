"""Matrices that are made of others."""

from __future__ import annotations

import numpy as np

from phintys.dims import ZERO
from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, conjugate, dimshuffle, functions
from phintys.tensor.index import take
from phintys.tensor.linalg.matrix_op import MatrixOp
from phintys.tensor.ranges import arange
from phintys.tensor.shape import length
from phintys.tensor.static import as_length
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["block_diag", "toeplitz"]


class BaseBlockDiagonal(MatrixOp):
    """Base class of ops that put matrices on a diagonal.

    Parameters
    ----------
    n_inputs
        the number of matrices, at least 1
    """

    # ----- class and static shape
    __props__ = ("n_inputs",)
    is_linear = True

    def __init__(self, n_inputs: int) -> None:
        if n_inputs < 1:
            raise ValueError(f"A block diagonal matrix has at least one block, not {n_inputs}.")
        self.n_inputs = int(n_inputs)
        blocks = ",".join(f"(m{k},n{k})" for k in range(n_inputs))
        self.gufunc_signature = f"{blocks}->(m,n)"

    def shape_rule(self, s: ShapeContext, *blocks: Shape) -> list[Shape]:
        rows = sum([x[0] for x in blocks], ZERO)
        return [(rows, sum([x[1] for x in blocks], ZERO))]

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (g,) = cotangents
        found: list[Variable] = []
        row = column = 0
        for x in inputs:
            below, right = row + length(x, 0), column + length(x, 1)
            found.append(g[row:below, column:right])
            row, column = below, right
        return found


class BlockDiagonal(BaseBlockDiagonal):
    """The matrix with some matrices on its diagonal, which need not be square, and 0 elsewhere."""

    # ----- class and static shape
    def make_node(self, *matrices: TensorLike) -> Apply:
        if len(matrices) != self.n_inputs:
            raise ValueError(f"{self} takes {self.n_inputs} matrices, not {len(matrices)}.")
        args = [self.matrix(x) for x in matrices]
        return typed_node(self, args, dtypes.upcast(*[x.type.dtype for x in args]))

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        ends = np.cumsum([(0, 0), *(x.shape for x in inputs)], axis=0)
        out = np.zeros(ends[-1], node.outputs[0].type.dtype)
        for x, (row, column) in zip(inputs, ends):
            out[row : row + x.shape[0], column : column + x.shape[1]] = x
        output_storage[0][0] = out

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], *blocks: V) -> V:
        dtype = node.outputs[0].type.dtype
        batch = b.broadcast_shape([b.shape(x)[:-2] for x in blocks])
        rows = sum([b.length(x, -2) for x in blocks], ZERO)
        columns = sum([b.length(x, -1) for x in blocks], ZERO)
        out = b.fill(b.const(0, dtype), (*batch, rows, columns))
        row = column = ZERO
        for x in blocks:
            m, n = b.length(x, -2), b.length(x, -1)
            region = [*((0, 1, length) for length in batch), (row, 1, m), (column, 1, n)]
            x = b.broadcast_to(b.cast(x, dtype), (*batch, m, n))
            out = b.update(out, region, x, "set")
            row, column = row + m, column + n
        return out


# ----- user functions
def block_diag(*matrices: TensorLike) -> TensorVariable:
    """The matrix with ``matrices`` on its diagonal, and 0 elsewhere.

    Parameters
    ----------
    matrices : tensors with at least two axes, one or more; leading axes are batches

    The dtype is that to which those of the matrices are upcast.  ValueError without matrices.

    >>> import phintys.tensor as pt
    >>> pt.linalg.block_diag([[1, 2]], [[3], [4]]).eval()
    array([[1, 2, 0],
           [0, 0, 3],
           [0, 0, 4]])
    """
    return Blockwise(BlockDiagonal(len(matrices)))(*matrices)


def toeplitz(c: TensorLike, r: TensorLike | None = None) -> TensorVariable:
    """The matrix whose diagonals are constant, from its first column and row.

    Parameters
    ----------
    c : the first column, a vector; leading axes are batches
    r : the first row, whose first element is ignored; None: the conjugate of ``c``.  Leading axes
        broadcast with those of ``c``

    The dtype is that to which both are upcast.  ValueError for a scalar.

    >>> import phintys.tensor as pt
    >>> pt.linalg.toeplitz([1, 2, 3], [0, 4]).eval()
    array([[1, 4],
           [2, 1],
           [3, 2]])
    """
    c = as_tensor_variable(c)
    r = conjugate(c) if r is None else as_tensor_variable(r)
    if min(c.type.ndim, r.type.ndim) < 1:
        raise ValueError("toeplitz takes vectors, not scalars.")
    rows, columns = (as_length(length(v, v.type.ndim - 1)) for v in (c, r))
    dtype = dtypes.upcast(c.type.dtype, r.type.dtype)
    places = dimshuffle(arange(rows), 0, "x") - arange(columns)
    left = take(cast(c, dtype), functions.maximum(places, 0), -1)
    right = take(cast(r, dtype), functions.maximum(-places, 0), -1)
    return functions.switch(functions.ge(places, 0), left, right)
