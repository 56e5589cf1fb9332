"""softmax, log_softmax, logsumexp, one_hot, and functions composed of special functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.config import config
from phintys.errors import MethodNotDefined
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, result_shapes
from phintys.graph.variable import Apply
from phintys.scalar import dtypes
from phintys.scalar.conversion import converted
from phintys.scalar.native import COMPUTED_IN
from phintys.tensor.aliases import Arrays, Axis, DTypeLike, Length, TensorLike
from phintys.tensor.axes import expand_dims
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.math import logaddexp as logaddexp
from phintys.tensor.ranges import arange
from phintys.tensor.reduce import axis_tuple, keep_dims, normalize_axes
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["log_softmax", "logsumexp", "one_hot", "softmax", "to_one_hot"]


class _Exponentials(Op):
    """Base class of softmax, log_softmax and logsumexp, which sum exponentials over axes.

    Parameters
    ----------
    axis
        the axes of the sum
    """

    # ----- class and static shape
    __props__ = ("axis",)
    handles_missing = False

    def __init__(self, *, axis: Axis) -> None:
        self.axis = axis_tuple(axis)

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        x = cast(x, dtypes.float_of(x.type.dtype))
        if dtypes.is_complex(x.type.dtype):
            raise TypeError(f"{type(self).__name__} is not defined for complex numbers: {x}.")
        axes = normalize_axes(self.axis, x.type.ndim)
        op = self if axes == self.axis else type(self)(axis=axes)
        return typed_node(op, [x], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        (x,) = inputs
        with np.errstate(all="ignore"):
            wide = converted(x, _computed_in(x.dtype.name))
            out = (
                self._compute(wide) if x.size else np.full(result_shapes(node, inputs)[0], -np.inf)
            )
        output_storage[0][0] = np.asarray(out, dtype=x.dtype)

    def _compute(self, x: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} does not say how it is computed.")

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        return [self._pull(*inputs, *outputs, *cotangents)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        return [self._push(*inputs, *outputs, *tangents)]

    def _pull(self, x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
        raise MethodNotDefined(f"{type(self).__name__} has no pullback.")

    def _push(self, x: TensorVariable, out: TensorVariable, t: TensorVariable, /) -> TensorVariable:
        raise MethodNotDefined(f"{type(self).__name__} has no pushforward.")

    def _sum(self, x: TensorVariable) -> TensorVariable:
        return sum_over(x, self.axis, keepdims=True)

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        batch = x.type.ndim - node.inputs[0].type.ndim
        return type(self)(axis=[a + batch for a in self.axis or ()]).make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        dtype = node.inputs[0].type.dtype
        return b.cast(self._lower(b, b.cast(inputs[0], _computed_in(dtype))), dtype)

    def _lower(self, b: Builder[V], x: V) -> V:
        raise MethodNotDefined(f"{type(self).__name__} does not say how it is lowered.")

    def _expanded(self, b: Builder[V], x: V) -> V:
        """A reduced value with its axes inserted again, with length 1."""
        for axis in self.axis or ():
            x = b.expand(x, axis)
        return x


def _computed_in(dtype: str) -> str:
    """The dtype in which the functions of a float dtype are computed."""
    return COMPUTED_IN.get(dtype, dtype)


def _finite_or_zero(n: Any, x: Any) -> Any:
    return n.select(n.isinf(x), n.const(0, x), x)


class Softmax(_Exponentials):
    """``exp(x) / sum(exp(x))`` over axes, without overflow."""

    def _compute(self, x: np.ndarray) -> np.ndarray:
        top = x.max(axis=self.axis, keepdims=True)
        shifted = np.exp(x - top)
        return shifted / shifted.sum(axis=self.axis, keepdims=True)

    def _pull(self, x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
        return out * (g - self._sum(g * out))

    _push = _pull

    def _lower(self, b: Builder[V], x: V) -> V:
        top = self._expanded(b, b.reduce("max", x, self.axis or ()))
        shifted = b.map(lambda n, x, m: n.exp(n.sub(x, m)), x, top)
        total = self._expanded(b, b.reduce("add", shifted, self.axis or ()))
        return b.map(lambda n, e, s: n.div(e, s), shifted, total)


class LogSoftmax(_Exponentials):
    """``x - log(sum(exp(x)))`` over axes, without overflow."""

    def _compute(self, x: np.ndarray) -> np.ndarray:
        top = x.max(axis=self.axis, keepdims=True)
        shifted = x - top
        return shifted - np.log(np.exp(shifted).sum(axis=self.axis, keepdims=True))

    def _pull(self, x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
        return g - functions.exp(out) * self._sum(g)

    def _push(self, x: TensorVariable, out: TensorVariable, t: TensorVariable) -> TensorVariable:
        return t - self._sum(functions.exp(out) * t)

    def _lower(self, b: Builder[V], x: V) -> V:
        top = self._expanded(b, b.reduce("max", x, self.axis or ()))
        shifted = b.map(lambda n, x, m: n.sub(x, m), x, top)
        total = b.reduce("add", b.map(lambda n, x: n.exp(x), shifted), self.axis or ())
        logarithm = self._expanded(b, b.map(lambda n, s: n.log(s), total))
        return b.map(lambda n, x, s: n.sub(x, s), shifted, logarithm)


class LogSumExp(_Exponentials):
    """``log(sum(exp(x)))`` over axes, without overflow; -inf if all elements are -inf."""

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        return [tuple([n for i, n in enumerate(x) if i not in (self.axis or ())])]

    def _compute(self, x: np.ndarray) -> np.ndarray:
        top = x.max(axis=self.axis, keepdims=True)
        top = np.where(np.isinf(top), x.dtype.type(0), top)
        total = np.exp(x - top).sum(axis=self.axis, keepdims=True)
        return (np.log(total) + top).squeeze(axis=self.axis)

    def _pull(self, x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
        return self._weights(x, out) * keep_dims(g, self.axis or ())

    def _push(self, x: TensorVariable, out: TensorVariable, t: TensorVariable) -> TensorVariable:
        return sum_over(self._weights(x, out) * t, self.axis)

    def _weights(self, x: TensorVariable, out: TensorVariable) -> TensorVariable:
        return functions.exp_diff(x, keep_dims(out, self.axis or ()))

    def _lower(self, b: Builder[V], x: V) -> V:
        top = b.map(_finite_or_zero, b.reduce("max", x, self.axis or ()))
        shifted = b.map(lambda n, x, m: n.exp(n.sub(x, m)), x, self._expanded(b, top))
        total = b.reduce("add", shifted, self.axis or ())
        return b.map(lambda n, s, m: n.add(n.log(s), m), total, top)


def _axes(x: TensorVariable, axis: Axis) -> tuple[int, ...]:
    return normalize_axes(axis, x.type.ndim)


def softmax(c: TensorLike, axis: Axis = None) -> TensorVariable:
    """``exp(c) / sum(exp(c))``, with the sum over ``axis``; None means all axes.

    Integers become floats.  A row that contains inf, or only -inf, is NaN.

    >>> import phintys.tensor as pt
    >>> pt.special.softmax([[0.0, 0.0], [1.0, 1.0]], axis=-1).eval()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    c = as_tensor_variable(c)
    return Softmax(axis=_axes(c, axis))(c)


def log_softmax(c: TensorLike, axis: Axis = None) -> TensorVariable:
    """The logarithm of `softmax`, accurate even where `softmax` underflows.

    >>> import phintys.tensor as pt
    >>> pt.special.log_softmax([0.0, 1000.0]).eval()
    array([-1000.,     0.])
    """
    c = as_tensor_variable(c)
    return LogSoftmax(axis=_axes(c, axis))(c)


def logsumexp(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
    """``log(sum(exp(x)))`` over axes, without overflow; -inf if all elements are -inf.

    >>> import phintys.tensor as pt
    >>> pt.logsumexp([1000.0, 1000.0]).eval()
    array(1000.69314718)
    """
    x = as_tensor_variable(x)
    axes = _axes(x, axis)
    out = LogSumExp(axis=axes)(x)
    return keep_dims(out, axes) if keepdims else out


def one_hot(y: TensorLike, num_classes: Length, dtype: DTypeLike | None = None) -> TensorVariable:
    """One-hot encoding of ``y``: along a new last axis, 1 at the position ``y`` and 0 elsewhere.

    Parameters
    ----------
    y : integer tensor
    num_classes : length of the rows; an integer outside ``0 <= y < num_classes`` gives zeros
    dtype : floatX unless given

    >>> import phintys.tensor as pt
    >>> pt.one_hot([0, 2], 3).eval()
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    y = as_tensor_variable(y)
    if not dtypes.is_discrete(y.type.dtype):
        raise TypeError(f"one_hot takes integers; {y} has type {y.type}.")
    hot = functions.eq(expand_dims(y, y.type.ndim), arange(num_classes))
    return cast(hot, config.floatX if dtype is None else dtype)


def to_one_hot(y: TensorLike, nb_class: Length, dtype: DTypeLike | None = None) -> TensorVariable:
    """`one_hot` of the flattened integers: a matrix.

    >>> to_one_hot([1, 0], 2).eval()
    array([[0., 1.],
           [1., 0.]])
    """
    return one_hot(as_tensor_variable(y).flatten(), nb_class, dtype)


# ------------------------------------------------------- compositions of other functions

beta = functions.beta
betaln = functions.betaln
logit = functions.logit
xlog1py = functions.xlog1py
xlogy = functions.xlogy


def poch(z: TensorLike, m: TensorLike) -> TensorVariable:
    """The rising factorial ``gamma(z + m) / gamma(z)``.

    >>> poch(2.0, [0.0, 3.0]).eval()
    array([ 1., 24.])
    """
    z = as_tensor_variable(z)
    return functions.gamma(z + m) / functions.gamma(z)


def factorial(n: TensorLike) -> TensorVariable:
    """``gamma(n + 1)``.

    >>> factorial([0.0, 4.0]).eval()
    array([ 1., 24.])
    """
    return functions.gamma(as_tensor_variable(n) + 1)
