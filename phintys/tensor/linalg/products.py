"""Products of matrices: Kronecker products, chains, powers."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import alloc
from phintys.tensor.dot import dot, matmul
from phintys.tensor.elemwise import conjugate, dimshuffle, functions, match_dtype
from phintys.tensor.linalg.inverse import inv
from phintys.tensor.linalg.matrix_op import MatrixOp
from phintys.tensor.ranges import eye
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.reshape import reshape
from phintys.tensor.shape import shape_tuple, specify_shape
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["kron", "matrix_dot", "matrix_power", "multi_dot"]


class KroneckerProduct(MatrixOp):
    """The products of every element of a matrix with every element of another one.

    Element ``[i * p + k, j * q + l]`` is ``a[i, j] * b[k, l]``, where ``b`` is p by q.
    """

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,n),(p,q)->(r,s)"

    def make_node(self, a: TensorLike, b: TensorLike) -> Apply:
        a, b = self.matrix(a), self.matrix(b)
        return typed_node(self, [a, b], dtypes.upcast(a.type.dtype, b.type.dtype))

    def shape_rule(self, s: ShapeContext, a: Shape, b: Shape) -> list[Shape]:
        return [(a[0] * b[0], a[1] * b[1])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        a, b = (x.astype(node.outputs[0].type.dtype, copy=False) for x in inputs)
        with np.errstate(all="ignore"):
            product = a[:, None, :, None] * b[None, :, None, :]
        output_storage[0][0] = product.reshape(a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (a, b), (g,) = inputs, cotangents
        (m, n), (p, q) = shape_tuple(a), shape_tuple(b)
        parts = dimshuffle(reshape(g, (m, p, n, q)), 0, 2, 1, 3)
        ga = sum_over(parts * conjugate(b), axis=(2, 3))
        gb = sum_over(parts * dimshuffle(conjugate(a), 0, 1, "x", "x"), axis=(0, 1))
        return [match_dtype(ga, a), match_dtype(gb, b)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (a, b), (ta, tb) = inputs, tangents
        return [match_dtype(self(ta, b) + self(a, tb), outputs[0])]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, builder: Builder[V], a: V, b: V) -> V:
        dtype = node.outputs[0].type.dtype
        a, b = builder.cast(a, dtype), builder.cast(b, dtype)
        batch = builder.broadcast_shape([builder.shape(a)[:-2], builder.shape(b)[:-2]])
        (m, n), (p, q) = builder.shape(a)[-2:], builder.shape(b)[-2:]
        k = a.ndim - 2
        wide = [
            builder.broadcast_to(builder.expand(builder.expand(x, first), second), shape)
            for x, first, second, shape in (
                (a, k + 1, k + 3, (*batch, m, p, n, q)),
                (b, k, k + 2, (*batch, m, p, n, q)),
            )
        ]
        product = builder.map(TABLE["mul"].native, *wide)
        return builder.reshape(product, (*batch, m * p, n * q))


# ----- user functions
def kron(a: TensorLike, b: TensorLike) -> TensorVariable:
    """The Kronecker product, as ``numpy.kron``.

    Parameters
    ----------
    a, b : tensors of any rank; the one of lower rank gets leading axes of length 1

    Each length of the result is the product of those of ``a`` and ``b``.  If only one has more than
    two axes, the others are those of a batch of matrices.

    >>> import phintys.tensor as pt
    >>> pt.linalg.kron([[1, 2]], [[1, 1], [0, 1]]).eval()
    array([[1, 1, 2, 2],
           [0, 1, 0, 2]])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    ndim = max(a.type.ndim, b.type.ndim)
    if ndim < 2:
        return reshape(functions.mul(dimshuffle(a, *range(a.type.ndim), "x"), b), (-1,) * ndim)
    a, b = _with_rank(a, max(a.type.ndim, 2)), _with_rank(b, max(b.type.ndim, 2))
    if 2 in (a.type.ndim, b.type.ndim):
        return Blockwise(KroneckerProduct())(a, b)
    a, b = _with_rank(a, ndim), _with_rank(b, ndim)
    lengths = [m * n for m, n in zip(shape_tuple(a), shape_tuple(b))]
    places = range(ndim)
    left = dimshuffle(a, *[p for k in places for p in (k, "x")])
    right = dimshuffle(b, *[p for k in places for p in ("x", k)])
    return reshape(left * right, lengths)


def _with_rank(x: TensorVariable, ndim: int) -> TensorVariable:
    """The tensor with leading axes of length 1."""
    return dimshuffle(x, *["x"] * (ndim - x.type.ndim), *range(x.type.ndim))


def matrix_dot(*args: TensorLike) -> TensorVariable:
    """The product of matrices, ``dot(dot(a, b), c)``; the first and the last may be vectors.

    ValueError without arguments.

    >>> import phintys.tensor as pt
    >>> pt.linalg.matrix_dot([[1, 2], [0, 1]], [[1, 0], [1, 1]], [1, 1]).eval()
    array([5, 2])
    """
    if not args:
        raise ValueError("matrix_dot needs at least one matrix.")
    found = as_tensor_variable(args[0])
    for x in args[1:]:
        found = dot(found, x)
    return found


def multi_dot(arrays: Sequence[TensorLike]) -> TensorVariable:
    """The product of a list of matrices, as ``numpy.linalg.multi_dot``; see `matrix_dot`.

    >>> import phintys.tensor as pt
    >>> pt.linalg.multi_dot([[[1, 2]], [[3], [4]], [[5]]]).eval()
    array([[55]])
    """
    return matrix_dot(*arrays)


def matrix_power(M: TensorLike, n: int) -> TensorVariable:
    """The power ``n`` of square matrices, the last two axes of ``M``.

    Parameters
    ----------
    M : tensor with at least two axes
    n : an integer; 0 gives identities, a negative one powers of the inverses

    TypeError if ``n`` is no integer, ShapeError if the matrices are not square,
    LinAlgError at run time if ``n`` is negative and a matrix is singular.

    >>> import phintys.tensor as pt
    >>> pt.linalg.matrix_power([[1, 1], [0, 1]], 5).eval()
    array([[1, 5],
           [0, 1]])
    """
    x, n = as_tensor_variable(M), operator.index(n)
    if x.type.ndim < 2:
        raise ValueError(f"A matrix has two axes; {x} has {x.type.ndim}.")
    x = specify_shape(x, [*[None] * (x.type.ndim - 1), x.shape[-2]])
    if n == 0:
        return alloc(eye(x.shape[-1], dtype=x.type.dtype), *shape_tuple(x))
    x, n = inv(x) if n < 0 else x, abs(n)
    found: TensorVariable | None = None
    while n:
        if n % 2:
            found = x if found is None else matmul(found, x)
        n //= 2
        x = matmul(x, x) if n else x
    assert found is not None
    return found
