"""Discrete Fourier transforms: ``fft``, ``ifft``, ``rfft`` and ``irfft`` along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from phintys.errors import RaggedError
from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import zeros
from phintys.tensor.elemwise import cast, functions, match_dtype
from phintys.tensor.index import slice_at_axis
from phintys.tensor.join import join
from phintys.tensor.ranges import arange
from phintys.tensor.shape import length, normalize_axis_tuple, shape_tuple
from phintys.tensor.static import as_length
from phintys.tensor.type import typed_node

__all__ = ["fft", "ifft", "irfft", "rfft"]

Kind = Literal["fft", "ifft", "rfft", "irfft"]
Norm = Literal["backward", "ortho", "forward"]
#: The norm of the adjoint transform: that which scales the forward one scales its adjoint.
SWAPPED: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


class Fourier(Op):
    """A transform along an axis.  Inputs: the tensor, and the length ``n`` of the transform.

    The input is cropped or padded with zeros to the length ``n`` (``n // 2 + 1`` for ``irfft``).

    Parameters
    ----------
    kind
        a function of ``numpy.fft``: ``"fft"``, ``"ifft"``, ``"rfft"`` or ``"irfft"``
    axis
        along which to transform, not negative
    norm
        which of the directions is divided by ``n``: ``"backward"``, ``"forward"``, or
        ``"ortho"``: both, by the square root
    """

    # ----- class and static shape
    __props__ = ("kind", "axis", "norm")
    in_python = "NumPy's pocketfft computes the transform"
    is_linear = True
    handles_missing = False

    def __init__(self, kind: Kind, axis: int, norm: Norm = "backward") -> None:
        if kind not in get_args(Kind):
            raise ValueError(f"The kind is one of {', '.join(get_args(Kind))}; not {kind!r}.")
        if axis < 0:
            raise ValueError(f"The axis of Fourier is not negative, got {axis}.")
        if norm not in SWAPPED:
            raise ValueError(f"The norm is one of {', '.join(SWAPPED)}; not {norm!r}.")
        self.kind: Kind = kind
        self.norm: Norm = norm
        self.axis = int(axis)

    def make_node(self, x: Any, n: Any) -> Apply:
        x = as_tensor_variable(x)
        if self.kind == "rfft" and dtypes.is_complex(x.type.dtype):
            raise TypeError(f"rfft transforms real numbers; {x} has type {x.type}.")
        normalize_axis_tuple(self.axis, x.type.ndim)
        single = x.type.dtype in ("float16", "float32", "complex64")
        dtype = ("complex64", "float32") if single else ("complex128", "float64")
        return typed_node(self, [x, as_length(n)], dtype[self.kind == "irfft"])

    def shape_rule(self, s: ShapeContext, x: Shape, n: Shape) -> list[Shape]:
        (wanted,) = s.lengths((1,))
        s.check(wanted, ">", 0, "The length of a Fourier transform is not positive", ValueError)
        found = wanted // 2 + 1 if self.kind == "rfft" else wanted
        return [(*x[: self.axis], found, *x[self.axis + 1 :])]

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        x, n = inputs
        check_shapes(node, inputs)
        if x.dtype == np.float16:
            x = x.astype(np.float32)
        if not x.shape[self.axis]:  # NumPy's irfft of no numbers reads memory without values
            x = np.zeros((*x.shape[: self.axis], 1, *x.shape[self.axis + 1 :]), x.dtype)
        found = getattr(np.fft, self.kind)(x, int(n), self.axis, self.norm)
        output_storage[0][0] = found.astype(node.outputs[0].type.dtype, copy=False)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable | None]:
        """The adjoint: the transform in the other direction, cropped or padded as the input was.

        ``irfft`` uses each number twice, but for the first, and the last if ``n`` is even.
        """
        (x, n), (g,) = inputs, cotangents
        norm = SWAPPED[self.norm]
        if self.kind == "irfft":
            back = Fourier("rfft", self.axis, norm)(g, n)
            i = arange(n // 2 + 1)
            once = functions.or_(functions.eq(i, 0), functions.eq(2 * i, n))
            weights = cast(functions.switch(once, 1, 2), g.type.dtype)
            order = ["x"] * self.axis + [0] + ["x"] * (x.type.ndim - self.axis - 1)
            back = back * weights.dimshuffle(order)
        else:
            back = Fourier("fft" if self.kind == "ifft" else "ifft", self.axis, norm)(g, n)
        return [match_dtype(_fitted(back, self.axis, length(x, self.axis)), x), None]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        x, n = batched_inputs
        if n.type.ndim:
            raise RaggedError("The length of a Fourier transform cannot differ within a batch.")
        batch = x.type.ndim - node.inputs[0].type.ndim
        return Fourier(self.kind, self.axis + batch, self.norm).make_node(x, n)

    def __str__(self) -> str:
        return f"Fourier{{{self.kind}, axis={self.axis}, norm={self.norm}}}"


def _fitted(x: Any, axis: int, n: Any) -> Any:
    """``x`` cropped or padded with zeros to the length ``n`` along an axis."""
    cropped = x[slice_at_axis(slice(None, n), axis)]
    lengths = list(shape_tuple(x))
    lengths[axis] = functions.maximum(n - lengths[axis], as_length(0))
    return join(axis, cropped, zeros(lengths, x.type.dtype))


# ----- user functions


def _transform(kind: Kind, x: Any, n: Any, axis: int, norm: Norm) -> Any:
    x = as_tensor_variable(x)
    (axis,) = normalize_axis_tuple(axis, x.type.ndim)
    if n is None:
        n = length(x, axis)
        n = 2 * (n - 1) if kind == "irfft" else n
    return Fourier(kind, axis, norm)(x, n)


def fft(x: Any, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The discrete Fourier transform ``sum_j x[j] exp(-2 pi i j k / n)`` along an axis.

    Parameters
    ----------
    x : tensor
    n : its length, to which ``x`` is cropped or padded with zeros; None: the length of ``x``
    axis : along which to transform
    norm : ``"backward"``: no factor; ``"forward"``: ``1 / n``; ``"ortho"``: ``1 / sqrt(n)``

    The result is complex.  ValueError if the axis is out of range, the norm unknown or ``n`` not
    positive; TypeError if ``n`` is no integer.

    >>> import phintys.tensor as pt
    >>> from phintys.tensor.fourier import fft
    >>> fft(pt.as_tensor([1.0, 2.0])).eval()
    array([ 3.+0.j, -1.+0.j])
    """
    return _transform("fft", x, n, axis, norm)


def ifft(x: Any, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The inverse of `fft`: ``1 / n sum_k x[k] exp(2 pi i j k / n)``; parameters as there.

    ``norm``: ``"backward"``: the factor ``1 / n``; ``"forward"``: none; ``"ortho"``:
    ``1 / sqrt(n)``.

    >>> abs(ifft([4.0, 0.0, 0.0, 0.0])).eval()
    array([1., 1., 1., 1.])
    """
    return _transform("ifft", x, n, axis, norm)


def rfft(x: Any, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The first ``n // 2 + 1`` numbers of the `fft` of real numbers, which determine the others.

    >>> rfft([1.0, 1.0, 1.0]).eval().round(12) + 0.0
    array([3.+0.j, 0.+0.j])
    """
    return _transform("rfft", x, n, axis, norm)


def irfft(x: Any, n: Any = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The inverse of `rfft`: ``n`` real numbers; ``n`` None: ``2 (m - 1)`` for ``m`` of ``x``.

    >>> irfft([4.0, 0.0, 0.0]).eval()
    array([1., 1., 1., 1.])
    """
    return _transform("irfft", x, n, axis, norm)
