"""What ops on matrices share: dtypes, square inputs, batches, triangles, adjoints."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np

from phintys.dims import Dim
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import conjugate, dimshuffle, functions
from phintys.tensor.ranges import eye, tril, triu
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorVariable

#: for how many columns at once LAPACK is given workspace
BLOCK = 64


class MatrixOp(Op):
    """Base class of ops whose inputs and outputs are single matrices and vectors.

    A subclass has a ``gufunc_signature``, by which `Blockwise` applies it to batches, and a
    ``lower_batched``, which calls LAPACK.
    """

    handles_missing = False

    # ----- class and static shape
    def matrix(self, x: TensorLike) -> TensorVariable:
        """An input as a matrix; TypeError if it is none."""
        x = as_tensor_variable(x)
        if x.type.ndim != 2:
            raise TypeError(f"{self} takes matrices; {x} has {x.type.ndim} dimensions.")
        return x

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        return Blockwise(self).make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        if self.lower_batched is None:
            return NotImplemented
        b.result_shapes(node, *inputs)
        return self.lower_batched(node, b, *inputs)

    def __str__(self) -> str:
        props = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__props__)
        return f"{type(self).__name__}{{{props}}}"


def square(s: ShapeContext, x: Shape) -> Dim:
    """The number of rows and columns of a matrix, which must be equal."""
    return s.equal(x[-2], x[-1], "The matrix is not square")


def inexact(*given: str) -> str:
    """The dtype in which LAPACK computes with arrays of some dtypes: at least float32."""
    return dtypes.upcast(dtypes.float_of(dtypes.upcast(*given)), "float32")


def adjoint(x: TensorVariable) -> TensorVariable:
    """The conjugate transpose of a matrix."""
    return conjugate(dimshuffle(x, 1, 0))


def nan_like(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array in the shape of another one, of NaN in all its parts."""
    found = np.empty(x.shape, x.dtype)
    found.view(x.real.dtype)[...] = np.nan
    return found


def is_tensor(v: Variable) -> TypeGuard[TensorVariable]:
    """Whether a derivative is there: neither missing nor undefined."""
    return isinstance(v.type, TensorType)


def columns_first(b: Builder[V], x: V) -> V:
    """Matrices, the last two axes, with these axes exchanged: as LAPACK stores them, and back."""
    n = len(b.shape(x))
    return b.permute(x, (*range(n - 2), n - 1, n - 2))


@contextmanager
def quiet() -> Generator[None]:
    """Numerical warnings of NumPy and SciPy are not shown."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def triangle(x: TensorVariable, lower: bool, offset: int = 0) -> TensorVariable:
    """The lower or upper triangle; ``offset`` 1 leaves out the diagonal."""
    return tril(x, -offset) if lower else triu(x, offset)


def diagonal_part(x: TensorVariable) -> TensorVariable:
    """A matrix with the real part of the diagonal, zero elsewhere."""
    real = functions.real(x) if dtypes.is_complex(x.type.dtype) else x
    return tril(triu(real))


def gaps(w: TensorVariable) -> TensorVariable:
    """The matrix ``1 / (w[j] - w[i])``, with zeros on its diagonal."""
    unit = eye(w.shape[0], dtype=w.type.dtype)
    return 1.0 / (dimshuffle(w, "x", 0) - dimshuffle(w, 0, "x") + unit) - unit


def halved(s: TensorVariable) -> TensorVariable:
    """The lower triangle, with half the diagonal."""
    return triangle(s, True, 1) + 0.5 * diagonal_part(s)
