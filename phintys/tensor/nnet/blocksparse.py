"""Products with chosen blocks of a matrix."""

from __future__ import annotations

from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.dot import matmul
from phintys.tensor.elemwise import dimshuffle
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.variable import TensorVariable

__all__ = ["sparse_block_dot"]


def sparse_block_dot(
    W: TensorLike, h: TensorLike, inputIdx: TensorLike, b: TensorLike, outputIdx: TensorLike
) -> TensorVariable:
    """Chosen blocks of the product of vectors and a matrix of blocks, with a bias.

    Block ``j`` of the result is ``b[outputIdx[j]] + sum_i h[i] @ W[inputIdx[i], outputIdx[j]]``.

    Parameters
    ----------
    W : blocks (input blocks, output blocks, rows, columns)
    h : the chosen blocks of the vectors (batch, chosen inputs, rows), or without a batch
    inputIdx : which blocks these are (batch, chosen inputs), or without a batch
    b : biases (output blocks, columns)
    outputIdx : which blocks to compute (batch, chosen outputs), or without a batch

    The result has the shape (batch, chosen outputs, columns), with the length 1 of a batch that is
    left out.
    """
    weights, h, b = (as_tensor_variable(v) for v in (W, h, b))
    inputs, outputs = as_tensor_variable(inputIdx), as_tensor_variable(outputIdx)
    h = dimshuffle(h, "x", 0, 1) if h.type.ndim == 2 else h
    inputs, outputs = (dimshuffle(v, "x", 0) if v.type.ndim == 1 else v for v in (inputs, outputs))
    blocks = weights[dimshuffle(inputs, 0, 1, "x"), dimshuffle(outputs, 0, "x", 1)]
    products = matmul(dimshuffle(h, 0, 1, "x", "x", 2), blocks)[:, :, :, 0]
    return b[outputs] + sum_over(products, 1)
