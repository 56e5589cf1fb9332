"""Reductions over axes: sum, prod, max, min, argmax, argmin, all, any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.dims import product
from phintys.gradient.barriers import grad_undefined
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes, static_shapes
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.memo import Memo
from phintys.scalar import dtypes
from phintys.scalar.conversion import converted
from phintys.scalar.native import NATIVE_DTYPES
from phintys.scalar.op import TABLE, ScalarOp
from phintys.tensor import convert, elemwise
from phintys.tensor.aliases import Arrays, Axis, DTypeLike, Place, TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast, conjugate, dimshuffle, functions, match_dtype
from phintys.tensor.others import ProdOthers
from phintys.tensor.static import MAX_NODES, Entry, ValueOrigin, constant_origin
from phintys.tensor.type import TensorType, typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["all", "any", "argmax", "argmin", "max", "max_and_argmax", "min", "prod", "sum"]


def axis_tuple(axis: Axis) -> tuple[int, ...] | None:
    """An axis argument as a tuple, None kept; TypeError if it is not an int or ints."""
    if axis is None:
        return None
    if isinstance(axis, (int, np.integer)):
        return (int(axis),)
    if not isinstance(axis, (tuple, Sequence, np.ndarray)) or isinstance(axis, str):
        raise TypeError(f"An axis is an int, a sequence of ints or None, not {axis!r}.")
    return tuple(map(int, axis))


def normalize_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Axes as sorted non-negative ints, None meaning all; ValueError if invalid or repeated.

    0-d tensors have no axes; 0 and -1 are accepted, as in NumPy.
    """
    if axis is None:
        return tuple(range(ndim))
    accepted = (0, -1) if ndim == 0 else ()
    given = axis_tuple(axis) or ()
    out = sorted([0 if a in accepted else elemwise.axis_of(a, ndim) for a in given])
    if len(set(out)) != len(out):
        raise ValueError(f"An axis is listed twice in {axis}.")
    return tuple(out) if ndim > 0 else ()


class CAReduce(Op):
    """Reduce over axes with a commutative, associative scalar op, in unspecified order.

    Parameters
    ----------
    scalar_op
        add, mul, maximum, minimum, and_, or_ or xor
    axis
        axes to reduce over; None means all
    dtype
        of the result; None: that of the input, with small integers upcast to 64 bits if
        ``upcast_discrete_output`` is set
    acc_dtype
        of the accumulator; None: 64-bit for floats and integers
    """

    # ----- class and static shape
    __props__ = ("scalar_op", "axis", "dtype", "acc_dtype", "upcast_discrete_output")
    handles_missing = False

    def __init__(
        self,
        scalar_op: ScalarOp,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        acc_dtype: DTypeLike | None = None,
        upcast_discrete_output: bool = False,
    ) -> None:
        self.scalar_op = scalar_op
        self.axis = axis_tuple(axis)
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self.acc_dtype = None if acc_dtype is None else dtypes.as_dtype(acc_dtype)
        self.upcast_discrete_output = upcast_discrete_output
        self._memo: Memo[TensorType, tuple[CAReduce, TensorType]] = Memo(32, "types of results")

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        found = self._memo[x.type]
        if found is None:
            found = self._memo.keep(x.type, self._infer(x))
        op, out_type = found
        return Apply(op, [x], [out_type.make_variable()])

    def _infer(self, x: TensorVariable) -> tuple[CAReduce, TensorType]:
        """The op with axes and dtypes resolved for an input, and the type of its result."""
        given = x.type
        axes = normalize_axes(self.axis, given.ndim)
        out, acc = self._dtypes(given.dtype)
        op = self._resolved(None if self.axis is None else axes, out, acc)
        return op, TensorType(out, static_shapes(op, [x])[0])

    def _resolved(self, axis: tuple[int, ...] | None, out: str, acc: str) -> CAReduce:
        """This op with sorted axes and explicit dtypes."""
        if (axis, out, acc) == (self.axis, self.dtype, self.acc_dtype):
            return self
        return self.clone(axis=axis, dtype=out, acc_dtype=acc)

    def clone(self, **changes: Any) -> CAReduce:
        """The op with some parameters changed."""
        return _decided(type(self), **(self._arguments() | changes))

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in CAReduce.__props__}

    def _dtypes(self, given: str) -> tuple[str, str]:
        """The dtypes of the result and of the accumulator."""
        out = self.dtype or (dtypes.total_of(given) if self.upcast_discrete_output else given)
        acc = self.acc_dtype or self._default_accumulator(given, out)
        if self.acc_dtype and dtypes.upcast(given, acc) != acc:
            raise TypeError(
                f"{self}: an accumulator of dtype {acc} is too narrow for input of dtype {given}."
            )
        if dtypes.is_complex(given) and self.dtype and not dtypes.is_complex(out):
            raise TypeError(
                f"{self}: a result of dtype {out} would lose the imaginary parts of the input of "
                f"dtype {given}: take its real, imag or abs first."
            )
        return out, acc

    def _default_accumulator(self, given: str, out: str) -> str:
        if not self.upcast_discrete_output:
            return out
        if dtypes.is_discrete(given):
            return dtypes.total_of(given)
        common = dtypes.upcast(given, out)
        if dtypes.is_complex(common):
            return "complex128"
        return "float32" if common == "float16" else "float64"

    @property
    def needs_elements(self) -> bool:
        """Whether an empty axis is an error."""
        return self.scalar_op.identity is None

    def axes(self, node: Apply) -> tuple[int, ...]:
        """The axes that a node reduces over."""
        return normalize_axes(self.axis, node.inputs[0].type.ndim)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        axes = normalize_axes(self.axis, len(x))
        if self.needs_elements:
            for a in axes:
                s.check(x[a], ">", 0, f"No result for the empty axis {a}", ValueError)
        return [tuple([n for i, n in enumerate(x) if i not in axes])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        (x,) = inputs
        axes = self.axes(node)
        check_shapes(node, inputs)
        acc = self.acc_dtype or node.outputs[0].type.dtype
        with np.errstate(all="ignore"):
            out = np.asarray(self.reduce(converted(x, acc), axes))
        out = converted(out, node.outputs[0].type.dtype)
        output_storage[0][0] = out.copy() if np.may_share_memory(out, x) else out

    @property
    def ufunc(self) -> np.ufunc:
        """The NumPy function that the scalar op applies."""
        found: Any = self.scalar_op.nfunc
        return found

    def reduce(self, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return self.ufunc.reduce(x, axis=axes, dtype=x.dtype)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (g,) = inputs, cotangents
        if not self.is_differentiable:
            return [self._undefined(x)]
        axes = normalize_axes(self.axis, x.ndim)
        found = self.cotangent(x, keep_dims(outputs[0], axes), keep_dims(conjugate(g), axes), axes)
        return [conjugate(found)]

    @property
    def is_differentiable(self) -> bool:
        """Whether `cotangent` is known: the scalar op is one of `COTANGENTS`."""
        return self.scalar_op.name in COTANGENTS

    def _undefined(self, x: TensorVariable) -> Variable:
        return grad_undefined(self, 0, x, f"There is no rule for {self.scalar_op}.")

    def cotangent(
        self, x: TensorVariable, out: TensorVariable, g: TensorVariable, axes: tuple[int, ...]
    ) -> TensorVariable:
        """The cotangent of the input; the reduced axes of ``out`` and ``g`` have length 1."""
        return COTANGENTS[self.scalar_op.name](x, out, g, axes)

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x,), (t,) = inputs, tangents
        if not self.is_differentiable:
            return [self._undefined(x)]
        axes = normalize_axes(self.axis, x.ndim)
        weights = self.cotangent(
            x, keep_dims(outputs[0], axes), functions.second(keep_dims(outputs[0], axes), 1.0), axes
        )
        return [cast(sum(weights * t, axis=axes), outputs[0].type.dtype)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        batch = x.ndim - node.inputs[0].type.ndim
        return self.clone(axis=tuple(a + batch for a in self.axes(node))).make_node(x)

    # ----- lowering
    kinds = {
        "add": "add", "mul": "mul", "maximum": "max", "minimum": "min",
        "and_": "and", "or_": "or", "xor": "xor",
    }  # fmt: skip

    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (x,) = inputs
        axes = self.axes(node)
        out = node.outputs[0].type.dtype
        kind = self.kinds.get(self.scalar_op.name)
        if kind is None or not self.is_native(node):
            return NotImplemented
        b.result_shapes(node, x)
        return b.cast(b.reduce(kind, b.cast(x, self.acc_dtype or out), axes), out)

    def is_native(self, node: Apply) -> bool:
        """Whether compiled code supports the dtypes of input, accumulator and result."""
        given, out = node.inputs[0].type.dtype, node.outputs[0].type.dtype
        return {given, self.acc_dtype or out, out} <= NATIVE_DTYPES

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arguments())

    def __str__(self) -> str:
        return f"CAReduce{{{self.scalar_op}, {self.axes_text()}}}"

    def axes_text(self) -> str:
        """``axis=0``, or ``axes=`` and a list; None: all axes."""
        match self.axis:
            case None:
                return "axes=None"
            case (axis,):
                return f"axis={axis}"
            case axes:
                return f"axes={list(axes)}"


def _rebuild(cls: type[CAReduce], arguments: dict[str, Any]) -> CAReduce:
    return cls(**arguments)


_reductions: Memo[Any, CAReduce] = Memo(128, "reductions", weak=True)


def _decided(cls: type[CAReduce], *arguments: Any, **named: Any) -> CAReduce:
    """The memoized reduction with these parameters; the object caches inferred types."""
    key = (cls, arguments, *named.items())
    found = _reductions[key]
    return _reductions.keep(key, cls(*arguments, **named)) if found is None else found


def _op(
    cls: type[CAReduce],
    axis: Axis,
    dtype: DTypeLike | None,
    acc_dtype: DTypeLike | None,
    *others: bool,
) -> CAReduce:
    """The reduction with these parameters, from `_decided`; ``floatX`` is resolved now."""
    dtype, acc_dtype = (None if d is None else dtypes.as_dtype(d) for d in (dtype, acc_dtype))
    return _decided(cls, axis_tuple(axis), dtype, acc_dtype, *others)


@constant_origin.register
def _total_of_entries(op: CAReduce, out: Variable) -> ValueOrigin:
    """`constant_origin` of the total of a few integers, such as the product of a shape."""
    _, x = out.owner_op_and_inputs
    n = x.type.shape[0] if x.type.ndim == 1 and dtypes.is_discrete(x.type.dtype) else None
    if not n or n > MAX_NODES:
        return None

    def total(*values: np.ndarray) -> np.ndarray:
        return op.reduce(converted(np.stack(values), op.acc_dtype or out.type.dtype), (0,))

    return total, [Entry(x, i) for i in range(n)]


def keep_dims(x: Variable, axes: tuple[int, ...]) -> TensorVariable:
    """A reduced tensor with the reduced axes inserted again, with length 1."""
    order: list[Place] = []
    for i in range(x.type.ndim + len(axes)):
        order.append("x" if i in axes else i - len([a for a in axes if a < i]))
    return dimshuffle(x, order)


class FixedOpCAReduce(CAReduce):
    """A reduction whose scalar op is given by its class."""

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.axes_text()}}}"

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__props__}


# ------------------------------------------------------------------------ derivatives


def _of_sum(
    x: TensorVariable, out: TensorVariable, g: TensorVariable, axes: tuple[int, ...]
) -> TensorVariable:
    return match_dtype(functions.second(x, g), x)


def _of_product(
    x: TensorVariable, out: TensorVariable, g: TensorVariable, axes: tuple[int, ...]
) -> TensorVariable:
    """``g`` times the product of the other elements."""
    return match_dtype(g * ProdOthers(axes)(cast(x, out.type.dtype)), x)


def _of_product_without_zeros(
    x: TensorVariable, out: TensorVariable, g: TensorVariable, axes: tuple[int, ...]
) -> TensorVariable:
    """``g`` times the product of the other elements that are not 0; 0 for those that are."""
    zero = functions.eq(x, 0)
    nonzero = functions.switch(zero, functions.second(x, _number(1, x)), x)
    return match_dtype(functions.switch(zero, _number(0, out), g * out / nonzero), x)


def _of_extreme(
    x: TensorVariable, out: TensorVariable, g: TensorVariable, axes: tuple[int, ...]
) -> TensorVariable:
    """``g`` at all elements equal to the result, 0 elsewhere."""
    return functions.switch(functions.eq(x, out), g, _number(0, g))


#: scalar op -> the cotangent of the input of a reduction by it: see `CAReduce.cotangent`
COTANGENTS: dict[str, Callable[..., TensorVariable]] = {
    "add": _of_sum,
    "mul": _of_product,
    "mul_without_zeros": _of_product_without_zeros,
    "maximum": _of_extreme,
    "minimum": _of_extreme,
}

# ================================================================================= Sum


class Sum(FixedOpCAReduce):
    """The sum over axes.  Small integers are upcast to 64 bits; float32 accumulates in float64."""

    __props__ = ("axis", "dtype", "acc_dtype")
    __str__ = FixedOpCAReduce.__str__

    def __init__(
        self, axis: Axis = None, dtype: DTypeLike | None = None, acc_dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(TABLE["add"], axis, dtype, acc_dtype, upcast_discrete_output=True)


elemwise.sums.append(lambda x, axes: sum(x, axes, x.type.dtype))


def sum(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
) -> TensorVariable:
    """The sum of elements over axes.

    Parameters
    ----------
    input : tensor
    axis : axes to sum over; None means all
    dtype : of the result; None: that of the input, 64 bit for integers and bool
    keepdims : keep the axes with length 1
    acc_dtype : of the accumulator; None: float64 for floats

    >>> import phintys.tensor as pt
    >>> pt.sum([[1.0, 2.0], [3.0, 4.0]], axis=0).eval()
    array([4., 6.])
    """
    x = as_tensor_variable(input)
    return _finish(_op(Sum, axis, dtype, acc_dtype)(x), x, axis, keepdims)


def _finish(out: TensorVariable, x: TensorVariable, axis: Axis, keepdims: bool) -> TensorVariable:
    return keep_dims(out, normalize_axes(axis, x.type.ndim)) if keepdims else out


# ================================================================================ Prod


mul_without_zeros = TABLE["mul_without_zeros"]


class Prod(FixedOpCAReduce):
    """The product over axes.

    Parameters
    ----------
    no_zeros_in_input
        no element is 0 (not checked), which makes the derivative cheaper
    """

    __props__ = ("axis", "dtype", "acc_dtype", "no_zeros_in_input")
    in_python = "complex numbers: NumPy computes the products"
    __str__ = FixedOpCAReduce.__str__

    def __init__(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        acc_dtype: DTypeLike | None = None,
        no_zeros_in_input: bool = False,
    ) -> None:
        super().__init__(TABLE["mul"], axis, dtype, acc_dtype, upcast_discrete_output=True)
        self.no_zeros_in_input = no_zeros_in_input

    def cotangent(
        self, x: TensorVariable, out: TensorVariable, g: TensorVariable, axes: tuple[int, ...]
    ) -> TensorVariable:
        """The cotangent of the input: ``g`` times the product of the other elements."""
        if self.no_zeros_in_input:
            return match_dtype(g * out / x, x)
        return super().cotangent(x, out, g, axes)


class ProdWithoutZeros(FixedOpCAReduce):
    """The product over axes of the nonzero elements; 1 if there are none."""

    __props__ = ("axis", "dtype", "acc_dtype")
    in_python = "complex numbers: NumPy computes the products"
    __str__ = FixedOpCAReduce.__str__

    def __init__(
        self, axis: Axis = None, dtype: DTypeLike | None = None, acc_dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(mul_without_zeros, axis, dtype, acc_dtype, upcast_discrete_output=True)

    def reduce(self, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return np.multiply.reduce(np.where(x == 0, x.dtype.type(1), x), axis=axes, dtype=x.dtype)

    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        if not self.is_native(node):
            return NotImplemented
        out = node.outputs[0].type.dtype
        x = b.cast(inputs[0], self.acc_dtype or out)
        ones = b.map(lambda n, x: n.select(n.eq(x, n.const(0, x)), n.const(1, x), x), x)
        return b.cast(b.reduce("mul", ones, self.axes(node)), out)


def _number(value: int, like: TensorVariable) -> TensorVariable:
    return convert.constant(value, dtype=like.type.dtype)


def prod(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
    no_zeros_in_input: bool = False,
) -> TensorVariable:
    """The product of elements over axes; parameters as of `sum`.

    ``no_zeros_in_input``: no element is 0 (not checked), which makes the derivative cheaper.

    >>> import phintys.tensor as pt
    >>> pt.prod([2.0, 3.0]).eval()
    array(6.)
    """
    x = as_tensor_variable(input)
    op = _op(Prod, axis, dtype, acc_dtype, bool(no_zeros_in_input))
    return _finish(op(x), x, axis, keepdims)


# ========================================================================= Max and Min


class _SameDtype(FixedOpCAReduce):
    """A reduction whose result has the dtype of its input."""

    def _resolved(self, axis: tuple[int, ...] | None, out: str, acc: str) -> CAReduce:
        return self if axis == self.axis else self.clone(axis=axis)


class _Extreme(_SameDtype):
    __props__ = ("axis", "initial")
    __str__ = FixedOpCAReduce.__str__

    def __init__(self, op: ScalarOp, axis: Axis, initial: bool) -> None:
        super().__init__(op, axis)
        self.initial = bool(initial)

    def _dtypes(self, given: str) -> tuple[str, str]:
        if self.initial and dtypes.is_complex(given):
            raise TypeError(f"{self}: no complex number is the result for an empty axis.")
        return super()._dtypes(given)

    @property
    def needs_elements(self) -> bool:
        return not self.initial

    def initial_value(self, dtype: str) -> np.generic:
        """The result of an empty axis: the least (`Max`) or greatest value of the dtype."""
        sign = -1 if self.scalar_op.name == "maximum" else 1
        if dtypes.is_float(dtype):
            return np.dtype(dtype).type(sign * np.inf)
        if dtype == "bool":
            return np.bool_(sign > 0)
        limits = np.iinfo(dtype)
        return np.dtype(dtype).type(limits.min if sign < 0 else limits.max)

    def reduce(self, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        kwargs: dict[str, Any] = (
            {"initial": self.initial_value(dtypes.canonical(x.dtype))} if self.initial else {}
        )
        return self.ufunc.reduce(x, axis=axes, **kwargs)


class Max(_Extreme):
    """The greatest element over axes; NaN if any element is NaN.

    Parameters
    ----------
    axis
        axes to reduce over; None means all
    initial
        whether an empty axis gives -inf (the smallest integer) instead of an error
    """

    def __init__(self, axis: Axis = None, initial: bool = False) -> None:
        super().__init__(TABLE["maximum"], axis, initial)


class Min(_Extreme):
    """The smallest element over axes; NaN if any element is NaN.  Parameters as of `Max`."""

    def __init__(self, axis: Axis = None, initial: bool = False) -> None:
        super().__init__(TABLE["minimum"], axis, initial)


def max(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, initial: float | None = None
) -> TensorVariable:
    """The greatest element over axes; NaN if any element is NaN.

    Parameters
    ----------
    x : real tensor
    axis : axes to reduce over; None means all
    keepdims : keep the axes with length 1
    initial : a number that counts as one more element (cast to the dtype of ``x``); without it, an
        empty axis raises ValueError at run time

    >>> import phintys.tensor as pt
    >>> pt.max([[1, 5], [7, 2]], axis=0).eval()
    array([7, 5])
    >>> pt.max(pt.zeros((0, 2)), axis=0, initial=-1).eval()
    array([-1., -1.])
    """
    x = _ordered(x, "max")
    found = _finish(_decided(Max, axis_tuple(axis), initial is not None)(x), x, axis, keepdims)
    return found if initial in (None, -np.inf) else functions.maximum(found, _element(initial, x))


def min(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, initial: float | None = None
) -> TensorVariable:
    """The smallest element over axes; see `max`.

    It is ``-max(-x)``, as in PyTensor, unless ``x`` is unsigned or bool, or ``initial`` is given.
    Compiled functions of this graph compute a `Min`.  Without rewrites, and if ``-x`` has been
    simplified before, the minimum of signed integers wraps around at the smallest one of the dtype,
    as in PyTensor; `minimum_node` does not.

    >>> import phintys.tensor as pt
    >>> pt.min([[1, 5], [7, 2]], axis=0, initial=3).eval()
    array([1, 2])
    """
    x = _ordered(x, "min")
    if initial is None and not _is_unsigned(x):
        return functions.neg(max(functions.neg(x), axis, keepdims))
    found = minimum_node(x, axis, keepdims, initial is not None)
    return found if initial in (None, np.inf) else functions.minimum(found, _element(initial, x))


def minimum_node(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, initial: bool = False
) -> TensorVariable:
    """The smallest element over axes, computed by `Min`; see `min`.

    ``initial``: whether axes may be empty.
    """
    x = _ordered(x, "min")
    return _finish(_decided(Min, axis_tuple(axis), initial)(x), x, axis, keepdims)


def _ordered(x: TensorLike, name: str) -> TensorVariable:
    x = as_tensor_variable(x)
    if dtypes.is_complex(x.type.dtype):
        raise TypeError(f"{name} is not defined for complex numbers: {x} has type {x.type}.")
    return x


def _is_unsigned(x: TensorVariable) -> bool:
    return dtypes.is_discrete(x.type.dtype) and x.type.dtype not in dtypes.SIGNED


def _element(initial: float | None, x: TensorVariable) -> TensorVariable:
    """A number in the dtype of ``x``; OverflowError if it does not fit."""
    dtype = x.type.dtype
    number: Any = initial
    return convert.constant(np.array(int(number) if dtypes.is_discrete(dtype) else number, dtype))


# ========================================================================= All and Any


class _Logical(_SameDtype):
    __props__ = ("axis",)
    not_differentiable = "its result is a bool"
    __str__ = FixedOpCAReduce.__str__

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        return super().make_node(x if x.type.dtype == "bool" else functions.neq(x, 0))


class All(_Logical):
    """Whether all elements over axes are true (not zero)."""

    def __init__(self, axis: Axis = None) -> None:
        super().__init__(TABLE["and_"], axis)


class Any_(_Logical):
    """Whether any element over axes is true (not zero)."""

    def __init__(self, axis: Axis = None) -> None:
        super().__init__(TABLE["or_"], axis)

    def __str__(self) -> str:
        return f"Any{{{self.axes_text()}}}"


def all(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
    """Whether all elements over axes are true (not zero); true for none."""
    x = as_tensor_variable(x)
    return _finish(_decided(All, axis_tuple(axis))(x), x, axis, keepdims)


def any(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
    """Whether any element over axes is true (not zero); false for none."""
    x = as_tensor_variable(x)
    return _finish(_decided(Any_, axis_tuple(axis))(x), x, axis, keepdims)


# ============================================================================== Argmax


class Argmax(Op):
    """The position of the first greatest element over axes; NaN counts as the greatest.

    Parameters
    ----------
    axis
        axes to search, None for all; several axes are flattened in C order
    """

    # ----- class and static shape
    __props__ = ("axis",)
    not_differentiable = "its results are integers"
    handles_missing = False
    kind = "argmax"

    def __init__(self, axis: Axis = None) -> None:
        self.axis = axis_tuple(axis)

    def make_node(self, x: TensorLike) -> Apply:
        x = _ordered(x, self.kind)
        axes = normalize_axes(self.axis, x.type.ndim)
        op = self if self.axis in (None, axes) else type(self)(axes)
        return typed_node(op, [x], "int64")

    def axes(self, node: Apply) -> tuple[int, ...]:
        """The axes that a node searches."""
        return normalize_axes(self.axis, node.inputs[0].type.ndim)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        axes = normalize_axes(self.axis, len(x))
        size = product(x[a] for a in axes)
        s.check(size, ">", 0, f"No result for the empty axes {axes}", ValueError)
        return [tuple([n for i, n in enumerate(x) if i not in axes])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        (x,) = inputs
        axes = self.axes(node)
        check_shapes(node, inputs)
        kept = [i for i in range(x.ndim) if i not in axes]
        count = int(np.prod([x.shape[a] for a in axes], dtype=int))
        flat = x.transpose([*kept, *axes]).reshape([*(x.shape[i] for i in kept), count])
        output_storage[0][0] = np.asarray(getattr(np, self.kind)(flat, axis=-1), dtype="int64")

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        (x,) = batched_inputs
        batch = x.type.ndim - node.inputs[0].type.ndim
        return type(self)(tuple(a + batch for a in self.axes(node))).make_node(x)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        if node.inputs[0].type.dtype not in NATIVE_DTYPES:
            return NotImplemented
        b.result_shapes(node, *inputs)
        return b.reduce(self.kind, inputs[0], self.axes(node))


class Argmin(Argmax):
    """The position of the first smallest element over axes; NaN counts as the smallest."""

    not_differentiable = Argmax.not_differentiable
    kind = "argmin"


def argmax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
    """The position (int64) of the first greatest element over axes.

    Several axes are flattened in C order.  ValueError at run time for empty axes.

    >>> import phintys.tensor as pt
    >>> pt.argmax([[1, 5], [7, 2]], axis=1).eval()
    array([1, 0])
    """
    x = as_tensor_variable(x)
    return _finish(Argmax(axis)(x), x, axis, keepdims)


def argmin(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
    """The position (int64) of the first smallest element over axes; see `argmax`.

    Of floats it is ``argmax(-x)``, as in PyTensor.
    """
    x = as_tensor_variable(x)
    if dtypes.is_float(x.type.dtype):
        return argmax(functions.neg(x), axis, keepdims)
    return _finish(Argmin(axis)(x), x, axis, keepdims)


def max_and_argmax(
    a: TensorLike, axis: Axis = None, keepdims: bool = False
) -> list[TensorVariable]:
    """The results of `max` and `argmax`."""
    return [max(a, axis, keepdims), argmax(a, axis, keepdims)]


# ====================================================================== for op authors


def makeKeepDims(x: TensorLike, y: TensorVariable, axis: Axis) -> TensorVariable:
    """``y``, the reduction of ``x`` over ``axis``, with those axes inserted with length 1."""
    return keep_dims(y, normalize_axes(axis, as_tensor_variable(x).type.ndim))


def normalize_reduce_axis(axis: Axis, ndim: int) -> tuple[int, ...] | None:
    """An axis argument as sorted non-negative ints, None kept; ValueError if out of range."""
    return None if axis is None else normalize_axes(axis, ndim)


late_bound["any"] = any
