"""Reductions: sums, products, extremes, any and all, over any axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.graph.op import Op
from phintys.graph.type import DisconnectedType
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.scalar.op import TABLE, ScalarOp
from phintys.tensor import elemwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, dimshuffle, functions, zeros_of
from phintys.tensor.type import TensorType

Axes = "int | Sequence[int] | None"


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a sorted tuple of non-negative ints; None means all.  ValueError if out of range or repeated."""
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    out = sorted(elemwise._axis(a, ndim) for a in axes)
    if len(set(out)) != len(out):
        raise ValueError(f"An axis is listed twice in {axis}.")
    return tuple(out)


class CAReduce(Op):
    """Reduce over axes with a commutative, associative scalar op; no order is promised.

    Parameters
    ----------
    scalar_op
        add, mul, maximum, minimum, and_, or_ or xor
    axis
        axes to reduce over; None means all
    dtype
        of the result; None: that of the input, small integers becoming 64-bit where
        ``upcast_discrete_output`` is set
    acc_dtype
        in which to accumulate; None: 64-bit for floats and integers
    """

    # ----- class and static shape
    __props__ = ("scalar_op", "axis", "dtype", "acc_dtype", "upcast_discrete_output")

    def __init__(
        self,
        scalar_op: ScalarOp,
        axis: Any = None,
        dtype: Any = None,
        acc_dtype: Any = None,
        upcast_discrete_output: bool = False,
    ) -> None:
        self.scalar_op = scalar_op
        self.axis = None if axis is None else tuple([axis] if isinstance(axis, int) else axis)
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self.acc_dtype = None if acc_dtype is None else dtypes.as_dtype(acc_dtype)
        self.upcast_discrete_output = upcast_discrete_output

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        axes = normalize_axes(self.axis, x.ndim)
        out, acc = self._dtypes(x.type.dtype)
        op = self
        if (
            (self.axis is not None and axes != self.axis)
            or self.dtype != out
            or self.acc_dtype != acc
        ):
            op = self.clone(axis=None if self.axis is None else axes, dtype=out, acc_dtype=acc)
        shape = tuple(n for i, n in enumerate(x.type.shape) if i not in axes)
        return Apply(op, [x], [TensorType(out, shape)()])

    def clone(self, **changes: Any) -> CAReduce:
        """The op with some parameters changed."""
        return type(self)(**(self._arguments() | changes))

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in CAReduce.__props__}

    def _dtypes(self, given: str) -> tuple[str, str]:
        """dtypes of the result and of the accumulator."""
        out = self.dtype or (_widest(given) if self.upcast_discrete_output else given)
        acc = self.acc_dtype or self._default_accumulator(given, out)
        if self.acc_dtype and dtypes.upcast(given, acc) != acc and not dtypes.is_discrete(given):
            raise TypeError(
                f"{self}: an accumulator of dtype {acc} is too narrow for input of dtype {given}."
            )
        return out, acc

    def _default_accumulator(self, given: str, out: str) -> str:
        if not self.upcast_discrete_output:
            return out
        common = dtypes.upcast(given, out)
        if common == "complex64":
            return "complex128"
        return "float64" if dtypes.is_float(common) else common

    def axes(self, node: Apply) -> tuple[int, ...]:
        """The axes that a node reduces over."""
        return normalize_axes(self.axis, node.inputs[0].type.ndim)

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        (x,) = inputs
        axes = self.axes(node)
        self.check_not_empty(x, axes)
        acc = self.acc_dtype or node.outputs[0].type.dtype
        with np.errstate(all="ignore"):
            out = self.reduce(x.astype(acc, copy=False), axes)
        out = np.asarray(out).astype(node.outputs[0].type.dtype, copy=False)
        output_storage[0][0] = out.copy() if np.may_share_memory(out, x) else out

    def reduce(self, x: Any, axes: tuple[int, ...]) -> Any:
        return self.scalar_op.nfunc.reduce(x, axis=axes, dtype=x.dtype)

    def check_not_empty(self, x: Any, axes: tuple[int, ...]) -> None:
        if self.scalar_op.identity is None and any(x.shape[a] == 0 for a in axes):
            raise ValueError(
                f"{self} over an empty axis is not defined (shape {x.shape}, axes {axes})."
            )

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        axes = self.axes(node)
        return [tuple(n for i, n in enumerate(shapes[0]) if i not in axes)]

    # ----- derivative
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (x,), (g,) = inputs, cotangents
        if isinstance(g.type, DisconnectedType):
            return [g]
        if dtypes.is_discrete(x.type.dtype) or dtypes.is_discrete(outputs[0].type.dtype):
            return [zeros_of(x)]
        axes = normalize_axes(self.axis, x.ndim)
        return [self.cotangent(x, keep_dims(outputs[0], axes), keep_dims(g, axes), axes)]

    def cotangent(self, x: Any, out: Any, g: Any, axes: tuple[int, ...]) -> Any:
        raise TypeError(f"{self} has no derivative.")

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        (x,), (t,) = inputs, tangents
        if isinstance(t.type, DisconnectedType):
            return [t]
        axes = normalize_axes(self.axis, x.ndim)
        weights = self.cotangent(
            x, keep_dims(outputs[0], axes), functions.second(keep_dims(outputs[0], axes), 1.0), axes
        )
        return [cast(sum(weights * t, axis=axes), outputs[0].type.dtype)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        (x,) = batched_inputs
        batch = x.ndim - node.inputs[0].type.ndim
        return self.clone(axis=tuple(a + batch for a in self.axes(node))).make_node(x)

    # ----- lowering
    kinds = {  # noqa: RUF012
        "add": "add", "mul": "mul", "maximum": "max", "minimum": "min",
        "and_": "and", "or_": "or", "xor": "xor",
    }  # fmt: skip

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        (x,) = inputs
        axes = self.axes(node)
        out = node.outputs[0].type.dtype
        kind = self.kinds.get(self.scalar_op.name)
        if kind is None:
            return NotImplemented
        if self.scalar_op.identity is None:
            for a in axes:
                b.check(b.length(x, a), ">", 0, f"{self} over an empty axis is not defined.")
        return b.cast(b.reduce(kind, b.cast(x, self.acc_dtype or out), axes), out)

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self._arguments())

    def __str__(self) -> str:
        axes = "" if self.axis is None else f"{{axes={list(self.axis)}}}"
        return f"{self.label()}{axes}"

    def label(self) -> str:
        return f"CAReduce{{{self.scalar_op}}}"


def _rebuild(cls: Any, arguments: dict[str, Any]) -> CAReduce:
    return cls(**arguments)


def _widest(dtype: str) -> str:
    if dtype in dtypes.BOOL + dtypes.SIGNED:
        return "int64"
    return "uint64" if dtype in dtypes.UNSIGNED else dtype


def keep_dims(x: Any, axes: tuple[int, ...]) -> Any:
    """A reduced tensor with the axes that were reduced over put back, of length 1."""
    order: list[Any] = []
    for i in range(x.ndim + len(axes)):
        order.append("x" if i in axes else i - len([a for a in axes if a < i]))
    return dimshuffle(x, order)


class FixedOpCAReduce(CAReduce):
    """A reduction whose scalar op is given by its class."""

    def label(self) -> str:
        return type(self).__name__

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__props__}


class Sum(FixedOpCAReduce):
    """The sum over axes.  Small integers sum to 64 bit, float32 accumulates in float64."""

    __props__ = ("axis", "dtype", "acc_dtype")

    def __init__(self, axis: Any = None, dtype: Any = None, acc_dtype: Any = None) -> None:
        super().__init__(TABLE["add"], axis, dtype, acc_dtype, upcast_discrete_output=True)

    def cotangent(self, x: Any, out: Any, g: Any, axes: tuple[int, ...]) -> Any:
        return cast(functions.second(x, g), x.type.dtype)


elemwise.sums.append(lambda x, axes: Sum(axis=axes, dtype=x.type.dtype)(x))


def sum(  # noqa: A001
    input: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None
) -> Any:
    """The sum of elements over axes.

    Parameters
    ----------
    input : tensor
    axis : axes to sum over; None means all
    dtype : of the result; None: that of the input, 64 bit for integers and bool
    keepdims : keep the axes with length 1
    acc_dtype : in which to accumulate; None: float64 for floats

    >>> import phintys.tensor as pt
    >>> pt.sum([[1.0, 2.0], [3.0, 4.0]], axis=0).eval()
    array([4., 6.])
    """
    x = as_tensor_variable(input)
    out = Sum(axis=axis, dtype=dtype, acc_dtype=acc_dtype)(x)
    return keep_dims(out, normalize_axes(axis, x.ndim)) if keepdims else out
