"""Ranges and triangular matrices: arange, linspace, eye, tri, tril, triu."""

from __future__ import annotations

from math import ceil
from typing import Any, Literal, overload

import numpy as np

from phintys.config import config
from phintys.dims import Dim, dim_max
from phintys.errors import RaggedError, ShapeError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import LARGEST, Shape, ShapeContext
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor import convert
from phintys.tensor.aliases import Arrays, DTypeLike, Length, TensorLike
from phintys.tensor.axes import expand_dims, moveaxis
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import spread
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.lengths import checked_lengths
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.shape import Shape_i, length
from phintys.tensor.static import as_length, known_length, shape_entries
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = [
    "arange",
    "eye",
    "geomspace",
    "identity_like",
    "linspace",
    "logspace",
    "tri",
    "tril",
    "triu",
]

# ============================================================================== ARange


class ARange(Op):
    """``start, start + step, ...`` up to but not including ``stop``.

    Parameters
    ----------
    dtype
        of the result
    """

    # ----- class and static shape
    __props__ = ("dtype",)
    in_python = "a step that is no constant, and bounds of floats: the length is computed by Python"
    handles_missing = False

    def __init__(self, dtype: str) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def make_node(self, start: TensorLike, stop: TensorLike, step: TensorLike) -> Apply:
        args = [as_tensor_variable(x) for x in (start, stop, step)]
        for x in args:
            if x.type.ndim != 0:
                raise TypeError(f"arange takes 0-d arguments; {x} has type {x.type}.")
            if dtypes.is_complex(x.type.dtype):
                raise TypeError(f"arange takes real arguments; {x} has type {x.type}.")
        return typed_node(self, args, self.dtype)

    def shape_rule(self, s: ShapeContext, *args: Shape) -> list[Shape]:
        values = [s.literal(i) for i in range(3)]
        if None not in values:
            return [(Dim.const(count_of(*values)),)]
        return [(s.unknown(_count_of_arrays, lambda *_: _symbolic_count(*s.inputs)),)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        start, stop, step = (x.item() for x in inputs)
        count = count_of(start, stop, step)
        if not all(isinstance(v, int) for v in (start, stop, step)):
            output_storage[0][0] = np.arange(start, stop, step, dtype=self.dtype)
            return
        # np.arange computes the length in floats, which is wrong for large numbers
        found = np.arange(count, dtype="uint64") * np.uint64(step % 2**64)
        found += np.uint64(start % 2**64)
        output_storage[0][0] = found.view("int64").astype(self.dtype)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [True]]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        (g,) = cotangents
        steps = arange(length(outputs[0], 0), dtype=self.dtype)
        return [sum_over(g), None, sum_over(g * steps)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        start, _, step = tangents
        return [start + step * arange(length(outputs[0], 0), dtype=self.dtype)]

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        step = known_length(node.inputs[2]) if _is_integral(node.inputs[2]) else None
        if not step or not all(_is_integral(x) for x in node.inputs):
            return NotImplemented
        start, stop = b.item(inputs[0]), b.item(inputs[1])
        count = _count_of_dims(b, start, stop, step)
        found = b.map(
            lambda n, i, first: n.add(first, n.mul(i, n.const(step, i))),
            b.iota(count),
            b.scalar(start),
        )
        return b.cast(found, self.dtype)

    def __str__(self) -> str:
        return f"ARange{{dtype={self.dtype!r}}}"


def _is_integral(x: Variable) -> bool:
    return dtypes.is_discrete(x.type.dtype)


class ARangeLength(Op):
    """The number of elements of an integer `arange`."""

    # ----- class and static shape
    __props__ = ()
    not_differentiable = "its result is an integer"
    in_python = "a step that is no constant"

    def make_node(self, start: Variable, stop: Variable, step: Variable) -> Apply:
        return typed_node(self, [start, stop, step], "int64")

    def shape_rule(self, s: ShapeContext, *args: Shape) -> list[Shape]:
        return [()]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        output_storage[0][0] = np.array(_count_of_arrays(*inputs), dtype="int64")

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False], [False]]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        if any(x.type.ndim for x in batched_inputs):
            raise RaggedError("The bounds of arange cannot differ within a batch.")
        return self.make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        step = known_length(node.inputs[2])
        if not step:
            return NotImplemented
        return b.scalar(_count_of_dims(b, b.item(inputs[0]), b.item(inputs[1]), step))


_arange_length = ARangeLength()


def count_of(start: float, stop: float, step: float) -> int:
    """The number of elements of `arange`.

    ValueError for a step of 0, ShapeError for more elements than an array can have.
    """
    if step == 0:
        raise ValueError("The step of arange is 0.")
    if all(isinstance(v, int) for v in (start, stop, step)):
        count = max(0, -int((start - stop) // step))
    else:
        count = max(0, ceil((stop - start) / step))
    if count > LARGEST:
        raise ShapeError(f"arange({start}, {stop}, {step}) has too many elements: {count}.")
    return count


def _count_of_arrays(start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> int:
    return count_of(start.item(), stop.item(), step.item())


def _symbolic_count(start: Variable, stop: Variable, step: Variable) -> TensorVariable:
    """The number of elements of `arange`, a 0-d int64 variable."""
    if not all(map(_is_integral, (start, stop, step))):
        start, stop, step = (cast(x, "float64") for x in (start, stop, step))
        count = cast(functions.ceil((stop - start) / step), "int64")
        return functions.maximum(count, as_length(0))
    if known_length(start) == 0 and known_length(step) == 1:
        return functions.maximum(as_length(stop), as_length(0))
    return _arange_length(start, stop, step)


def _count_of_dims(b: Builder[Any], start: Dim, stop: Dim, step: int) -> Dim:
    """`count_of` for Dims; it emits a check that the number fits in 64 bits."""
    low, high, step = (start, stop, step) if step > 0 else (stop, start, -step)
    if low.is_nonnegative and high.is_nonnegative:
        return (dim_max(high - low, 0) + (step - 1)) // step
    high = dim_max(high, low)
    if step == 1 or low.is_nonnegative:
        count = (high - low + (step - 1)) // step
    else:  # stop - start may overflow where the count does not
        count = high // step - low // step + (high % step - low % step + (step - 1)) // step
    b.check(count, ">=", 0, "arange: too many elements")
    return count


def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike = 1,
    dtype: DTypeLike | None = None,
) -> TensorVariable:
    """``start, start + step, ...`` up to but not including ``stop``.

    With one argument it is the stop, and the start is 0.

    Parameters
    ----------
    start, stop, step : numbers or 0-d tensors
    dtype : of the result; None: int64 for integers, otherwise the common dtype of the arguments
        (``arange(3.)`` is float32, like the number 3.0)

    >>> import phintys.tensor as pt
    >>> pt.arange(3).eval()
    array([0, 1, 2])
    """
    first, last = (0, start) if stop is None else (start, stop)
    args = [as_tensor_variable(x) for x in (first, last, step)]
    if dtype is None:
        discrete = all(_is_integral(x) for x in args)
        dtype = "int64" if discrete else dtypes.upcast(*(x.type.dtype for x in args))
    return ARange(dtypes.as_dtype(dtype))(*args)


# ====================================================================== Eye and triangles


class Eye(Op):
    """A matrix with ones on a diagonal.  Inputs: numbers of rows and columns, and the offset.

    Parameters
    ----------
    dtype
        of the result; None: floatX
    """

    # ----- class and static shape
    __props__ = ("dtype",)
    _output_type_depends_on_input_value = True
    not_differentiable = "its inputs are integers"

    def __init__(self, dtype: DTypeLike | None = None) -> None:
        self.dtype = config.floatX if dtype is None else dtypes.as_dtype(dtype)

    def make_node(self, n: Length, m: Length, k: Length) -> Apply:
        args = shape_entries([n, m, k], "matrix size or offset")
        return typed_node(self, args, self.dtype)

    def shape_rule(self, s: ShapeContext, n: Shape, m: Shape, k: Shape) -> list[Shape]:
        return [s.lengths((0, 1))]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        n, m, k = (int(x) for x in inputs)
        output_storage[0][0] = np.eye(n, m, k, dtype=self.dtype)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False], [False]]

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        (shape,) = b.result_shapes(node, *inputs)
        rows, columns, offset = b.index(0, shape), b.index(1, shape), b.cast(inputs[2], "int64")
        found = b.map(lambda n, i, j, k: n.eq(n.sub(j, i), k), rows, columns, offset)
        return b.cast(found, self.dtype)

    def __str__(self) -> str:
        return f"Eye{{dtype={self.dtype!r}}}"


def eye(
    n: Length, m: Length | None = None, k: Length = 0, dtype: DTypeLike | None = None
) -> TensorVariable:
    """A matrix with ones on the diagonal with offset ``k``.

    Parameters
    ----------
    n, m : numbers of rows and columns (default: ``m = n``)
    k : 0 for the main diagonal, positive above it
    dtype : floatX unless given

    >>> import phintys.tensor as pt
    >>> pt.eye(2, 3, k=1).eval()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    return Eye(dtype)(n, n if m is None else m, k)


def identity_like(x: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """`eye` in the shape (and dtype, unless given) of the matrix ``x``."""
    x = as_tensor_variable(x)
    if x.type.ndim != 2:
        raise TypeError(f"identity_like needs a matrix; {x} has {x.type.ndim} dimensions.")
    return eye(length(x, 0), length(x, 1), dtype=dtype or x.type.dtype)


def _offsets(n: TensorLike, m: TensorLike) -> TensorVariable:
    """For each element of an n by m matrix the offset of its diagonal: column minus row."""
    rows, columns = (arange(as_length(size)) for size in (n, m))
    return expand_dims(columns, 0) - expand_dims(rows, 1)


def tri(
    N: Length, M: Length | None = None, k: TensorLike = 0, dtype: DTypeLike | None = None
) -> TensorVariable:
    """A matrix of ones on and below the diagonal with offset ``k``; dtype floatX unless given."""
    n, m = shape_entries([N, N if M is None else M], "matrix size")
    return cast(functions.ge(k, _offsets(n, m)), config.floatX if dtype is None else dtype)


def tril(m: TensorLike, k: TensorLike = 0) -> TensorVariable:
    """``m`` with zeros above the diagonal with offset ``k`` of the last two axes.

    A vector is taken for a matrix whose rows are all equal to it.

    >>> import phintys.tensor as pt
    >>> pt.tril(pt.ones((2, 2))).eval()
    array([[1., 0.],
           [1., 1.]])
    """
    return _triangle(m, k, True)


def triu(m: TensorLike, k: TensorLike = 0) -> TensorVariable:
    """``m`` with zeros below the diagonal with offset ``k`` of the last two axes; see `tril`."""
    return _triangle(m, k, False)


def _triangle(m: TensorLike, k: TensorLike, lower: bool) -> TensorVariable:
    m = as_tensor_variable(m)
    if m.type.ndim == 0:
        raise TypeError(f"A triangle needs at least one dimension; {m} is 0-d.")
    columns = length(m, m.type.ndim - 1)
    rows = Shape_i(0)(m) if m.type.ndim == 1 else length(m, m.type.ndim - 2)
    compare = functions.ge if lower else functions.le
    kept = compare(k, _offsets(rows, columns))
    return functions.switch(kept, m, convert.constant(0, dtype=m.type.dtype))


# ============================================================================= linspace


@overload
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int | Variable = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> TensorVariable: ...
@overload
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int | Variable = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any: ...
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int | Variable = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> TensorVariable | tuple[TensorVariable, TensorVariable]:
    """``num`` evenly spaced values from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop : tensors, broadcast against each other
    num : the number of values, along a new axis at position ``axis``
    endpoint : whether ``stop`` is the last value
    retstep : return the distance between values as well
    dtype : at least floatX, unless given

    >>> import phintys.tensor as pt
    >>> pt.linspace(0, 1, 5).eval()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    start, stop = (as_tensor_variable(x) for x in (start, stop))
    computed = dtypes.upcast(start.type.dtype, stop.type.dtype, config.floatX)
    start, stop = spread([cast(start, computed), cast(stop, computed)])
    (count,) = checked_lengths([num])
    gaps = cast(functions.maximum(count - 1, as_length(1)) if endpoint else count, computed)
    step = (stop - start) / gaps
    known = known_length(count)
    index = arange(count if known is None else known).dimshuffle(0, *["x"] * start.type.ndim)
    values = cast(index, computed) * expand_dims(step, 0) + expand_dims(start, 0)
    values = _ending_at(stop, values, index, count) if endpoint else values
    values = cast(moveaxis(values, 0, axis), computed if dtype is None else dtype)
    return (values, step) if retstep else values


def _ending_at(
    stop: TensorVariable, values: TensorVariable, index: TensorVariable, count: TensorVariable
) -> TensorVariable:
    """Values along the first axis, the last of several ones replaced."""
    last = functions.and_(functions.eq(index, count - 1), functions.gt(index, as_length(0)))
    return functions.switch(last, expand_dims(stop, 0), values)


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int | Variable = 50,
    base: TensorLike = 10.0,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> TensorVariable:
    """``base`` to the power of `linspace` values."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    values = functions.pow(as_tensor_variable(base), exponents)
    return values if dtype is None else cast(values, dtype)


def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: int | Variable = 50,
    base: TensorLike = 10.0,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> TensorVariable:
    """``num`` values from ``start`` to ``stop``, of equal sign, with a constant ratio.

    The first value is exactly ``start``, and the last one, if ``endpoint``, exactly ``stop``.

    >>> import phintys.tensor as pt
    >>> pt.geomspace(1, 100, 3).eval()
    array([  1.,  10., 100.])
    """
    scale = functions.log(cast(as_tensor_variable(base), config.floatX))
    start, stop, _ = spread([as_tensor_variable(v) for v in (start, stop, scale)])
    sign = functions.sign(start)
    first, last = (
        functions.log(cast(x * sign, dtypes.upcast(x.type.dtype, config.floatX))) / scale
        for x in (start, stop)
    )
    values = logspace(first, last, num, base, endpoint) * expand_dims(sign, 0)
    count = as_length(length(values, 0))
    index = arange(count).dimshuffle(0, *["x"] * start.type.ndim)
    computed = values.type.dtype
    values = functions.switch(functions.eq(index, 0), expand_dims(cast(start, computed), 0), values)
    values = _ending_at(cast(stop, computed), values, index, count) if endpoint else values
    return cast(moveaxis(values, 0, axis), computed if dtype is None else dtype)
