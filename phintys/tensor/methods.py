"""Operators and methods of tensor variables; importing this attaches them to `TensorVariable`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from phintys.graph.type import transfer
from phintys.graph.variable import Variable
from phintys.scalar.dtypes import is_complex
from phintys.scalar.type import ScalarType
from phintys.tensor import axes, creation, cumulative, index, math, reduce, statistics
from phintys.tensor.aliases import (
    Axis,
    DTypeLike,
    Index,
    Kind,
    Length,
    ShapeLike,
    Side,
    TensorLike,
)
from phintys.tensor.convert import tensor_variable_of
from phintys.tensor.diagonal import diagonal, trace
from phintys.tensor.dot import dot, matmul
from phintys.tensor.elemwise import cast, dimshuffle, elementwise
from phintys.tensor.grids import choose
from phintys.tensor.nonzero import nonzero
from phintys.tensor.ranges import eye
from phintys.tensor.repeat import repeat
from phintys.tensor.reshape import flatten, reshape
from phintys.tensor.search import searchsorted
from phintys.tensor.shape import shape
from phintys.tensor.sort import argsort, sort
from phintys.tensor.static import get_underlying_scalar_constant_value
from phintys.tensor.variable import TensorVariable

# ------------------------------------------------------------------------- operators

#: Operators and their rows of the scalar table.
BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "true_div", "floordiv": "int_div",
    "mod": "mod", "pow": "pow", "and": "and_", "or": "or_", "xor": "xor",
}  # fmt: skip
COMPARISONS = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
UNARY = {
    "neg": "neg", "abs": "abs", "invert": "invert",
    "ceil": "ceil", "floor": "floor", "trunc": "trunc",
}  # fmt: skip


#: A tuple, because a union type would be built in each isinstance call.
_OPERANDS = (TensorVariable, bool, int, float, complex, np.ndarray, np.generic, list, tuple)


def is_operand(other: object) -> bool:
    """Whether an operator accepts ``other``; if not, Python tries the operator of ``other``."""
    if isinstance(other, _OPERANDS):
        return True
    if isinstance(other, Variable):
        return isinstance(other.type, ScalarType)
    return tensor_variable_of.dispatch(type(other)) is not tensor_variable_of.dispatch(object)


Binary = Callable[[TensorVariable, Any], TensorVariable]
Unary = Callable[[TensorVariable], TensorVariable]


def _binary(row: str) -> tuple[Binary, Binary]:
    op = elementwise(row)

    def forward(self: TensorVariable, other: Any) -> TensorVariable:
        return op(self, other) if is_operand(other) else NotImplemented

    def reflected(self: TensorVariable, other: Any) -> TensorVariable:
        return op(other, self) if is_operand(other) else NotImplemented

    return forward, reflected


def _unary(row: str) -> Unary:
    op = elementwise(row)

    def method(self: TensorVariable) -> TensorVariable:
        return op(self)

    method.__doc__ = op.scalar_op.doc
    return method


def _attach(name: str, function: Any) -> None:
    if callable(function):
        function.__name__ = name
        function.__qualname__ = f"TensorVariable.{name}"
    setattr(TensorVariable, name, function)


def _attach_operators() -> None:
    for name, row in BINARY.items():
        forward, reflected = _binary(row)
        _attach(f"__{name}__", forward)
        _attach(f"__r{name}__", reflected)
    for name, row in COMPARISONS.items():
        _attach(f"__{name}__", _binary(row)[0])
    for name, row in UNARY.items():
        _attach(f"__{name}__", _unary(row))


_attach_operators()

#: what the checker takes the methods below for, so that it compares them with the declared ones
_Base = TensorVariable if TYPE_CHECKING else object


class _Operators(_Base):
    """Operators that are not in the tables above; copied to `TensorVariable` below."""

    def __divmod__(self, other: TensorLike) -> tuple[TensorVariable, TensorVariable]:
        return self // other, self % other

    def __rdivmod__(self, other: TensorLike) -> tuple[TensorVariable, TensorVariable]:
        return self.__rfloordiv__(other), self.__rmod__(other)

    def __matmul__(self, other: TensorLike) -> TensorVariable:
        return matmul(self, other) if is_operand(other) else NotImplemented

    def __rmatmul__(self, other: TensorLike) -> TensorVariable:
        return matmul(other, self) if is_operand(other) else NotImplemented

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"The truth value of {self} is not known before the function runs. Use switch or "
            "ifelse to choose, & and | for 'and' and 'or', eq for elementwise equality."
        )

    def __index__(self) -> NoReturn:
        raise TypeError(_no_number(self, "integer"))

    def __int__(self) -> NoReturn:
        raise TypeError(_no_number(self, "integer"))

    def __float__(self) -> NoReturn:
        raise TypeError(_no_number(self, "float"))

    def __complex__(self) -> NoReturn:
        raise TypeError(_no_number(self, "complex number"))

    def __len__(self) -> NoReturn:
        raise TypeError(f"{self} has no len(): write x.shape[0] for its symbolic length.")

    def __getitem__(self, key: Index) -> TensorVariable:
        return index.getitem(self, key)

    def __setitem__(self, key: Index, value: TensorLike) -> NoReturn:
        raise TypeError(
            f"{self} cannot be assigned to: variables are immutable. Write y = x[key].set(value), "
            "or x[key].inc(value), for a tensor with other elements."
        )

    def __iter__(self) -> Iterator[TensorVariable]:
        if self.type.ndim == 0:
            raise TypeError(f"{self} is 0-d: it cannot be iterated over.")
        n = self.type.shape[0]
        if n is None:
            raise TypeError(
                f"{self} cannot be iterated over: its length is not known when the graph is built."
            )
        return (self[i] for i in range(n))


def _no_number(x: TensorVariable, kind: str) -> str:
    return (
        f"{x} is symbolic: it has no value yet and cannot become a Python {kind}. Use astype to "
        "convert it in the graph, or eval to compute it."
    )


# --------------------------------------------------------------------------- methods

#: Methods that are rows of the scalar table.
FUNCTIONS = (
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "cos", "cosh", "deg2rad",
    "exp", "exp2", "expm1", "floor", "log", "log10", "log1p", "log2", "rad2deg", "sin", "sinh",
    "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip

for _name in FUNCTIONS:
    _attach(_name, _unary(_name))


class _Methods(_Base):
    """Methods that call a function of the same name with the variable as first argument."""

    # ----- shape and type
    @property
    def shape(self) -> TensorVariable:
        """The shape, a symbolic int64 vector."""
        return shape(self)

    @property
    def size(self) -> TensorVariable:
        """The number of elements, a symbolic int64."""
        return reduce.prod(shape(self))

    def astype(self, dtype: DTypeLike) -> TensorVariable:
        """This tensor cast to another dtype; see `cast`."""
        return cast(self, dtype)

    def transfer(self, target: str) -> Variable:
        """This tensor on another device; see `phintys.graph.type.transfer`."""
        return transfer(self, target)

    def get_underlying_scalar_constant(self) -> np.ndarray | TensorVariable:
        """The value that all elements have; NotScalarConstantError if it is not known."""
        return get_underlying_scalar_constant_value(self)

    # ----- axes
    @property
    def T(self) -> TensorVariable:
        """This tensor with its axes in reverse order."""
        return axes.transpose(self)

    @property
    def mT(self) -> TensorVariable:
        """This tensor with its last two axes exchanged."""
        return axes.matrix_transpose(self)

    def transpose(self, *order: int | Sequence[int] | None) -> TensorVariable:
        """Axes permuted: ``x.transpose()``, ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
        alone = len(order) == 1 and (order[0] is None or isinstance(order[0], list | tuple))
        given: Any = order[0] if alone else order
        return axes.transpose(self, given or None)

    def dimshuffle(self, *pattern: int | str | Sequence[int | str]) -> TensorVariable:
        """Axes permuted, dropped and added; see `phintys.tensor.elemwise.dimshuffle`."""
        return dimshuffle(self, *pattern)

    def swapaxes(self, axis1: int, axis2: int) -> TensorVariable:
        """This tensor with two axes exchanged."""
        return axes.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Axis = None) -> TensorVariable:
        """This tensor without axes of length 1; see `squeeze`."""
        return axes.squeeze(self, axis)

    def reshape(self, newshape: ShapeLike, *, ndim: int | None = None) -> TensorVariable:
        """This tensor with another shape, given as one tuple or vector; see `reshape`."""
        return reshape(self, newshape, ndim=ndim)

    def flatten(self, ndim: int = 1) -> TensorVariable:
        """This tensor with ``ndim`` dimensions, the first ``ndim - 1`` unchanged."""
        return flatten(self, ndim)

    def ravel(self) -> TensorVariable:
        """This tensor flattened to a vector."""
        return flatten(self)

    # ----- values
    @property
    def real(self) -> TensorVariable:
        """The real part."""
        return elementwise("real")(self)

    @property
    def imag(self) -> TensorVariable:
        """The imaginary part."""
        return elementwise("imag")(self)

    def conj(self) -> TensorVariable:
        """The complex conjugate; real tensors are returned unchanged."""
        return elementwise("conj")(self) if is_complex(self.type.dtype) else self

    conjugate = conj

    def clip(self, a_min: TensorLike, a_max: TensorLike) -> TensorVariable:
        """Elements limited to the range from ``a_min`` to ``a_max``."""
        return elementwise("clip")(self, a_min, a_max)

    def copy(self, name: str | None = None) -> TensorVariable:
        """A copy of this tensor."""
        return elementwise("identity")(self, name=name)

    def fill(self, value: TensorLike) -> TensorVariable:
        """``value`` broadcast to the shape of this tensor."""
        return creation.fill(self, value)

    def zeros_like(self, dtype: DTypeLike | None = None) -> TensorVariable:
        """Zeros in the shape of this tensor."""
        return creation.zeros_like(self, dtype)

    def ones_like(self, dtype: DTypeLike | None = None) -> TensorVariable:
        """Ones in the shape of this tensor."""
        return creation.ones_like(self, dtype)

    def round(self, mode: str | None = None) -> TensorVariable:
        """Elements rounded half to even, or by ``mode="half_away_from_zero"``."""
        return math.round(self, mode)

    # ----- for Jacobians
    def _unit_vectors(self) -> TensorVariable:
        """The unit vectors in the tangent space of this vector, as rows of a matrix."""
        tangents: Any = self.type.tangent_type
        return eye(self.shape[0], dtype=tangents.dtype)

    def _repeated(self, n: Length) -> TensorVariable:
        """This tensor repeated ``n`` times along a new first axis."""
        return creation.alloc(self, n, *(self.shape[i] for i in range(self.type.ndim)))

    # ----- parts
    def set(self, y: TensorLike, **kwargs: bool) -> TensorVariable:
        """``x`` with the part replaced, in ``x[key].set(y)``; see `set_subtensor`."""
        return index.set_subtensor(self, y, **kwargs)

    def inc(self, y: TensorLike, **kwargs: bool) -> TensorVariable:
        """``x`` with ``y`` added to the part, in ``x[key].inc(y)``; see `inc_subtensor`."""
        return index.inc_subtensor(self, y, **kwargs)

    def take(
        self, indices: TensorLike, axis: int | None = None, mode: str = "raise"
    ) -> TensorVariable:
        """Elements at integer positions along an axis; see `take`."""
        return index.take(self, indices, axis, mode)

    def compress(self, a: TensorLike, axis: int | None = None) -> TensorVariable:
        """The slices along an axis at which ``a`` is not zero; see `compress`."""
        return index.compress(a, self, axis)

    def choose(self, choices: Any, mode: str = "raise") -> TensorVariable:
        """Elements of the tensors that this tensor of numbers selects; see `choose`."""
        return choose(self, choices, mode)

    def nonzero(self, return_matrix: bool = False) -> Any:
        """Positions of the elements that are not zero; see `nonzero`."""
        return nonzero(self, return_matrix)

    def nonzero_values(self) -> TensorVariable:
        """The elements that are not zero, as a vector."""
        return index.nonzero_values(self)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
        """The diagonal of two axes; see `diagonal`."""
        return diagonal(self, offset, axis1, axis2)

    def trace(self) -> TensorVariable:
        """The sum of the main diagonal."""
        return trace(self)

    def repeat(self, repeats: TensorLike, axis: int | None = None) -> TensorVariable:
        """Each element repeated; see `repeat`."""
        return repeat(self, repeats, axis)

    # ----- products and reductions
    def dot(self, right: TensorLike) -> TensorVariable:
        """The product with another tensor; see `dot`."""
        return dot(self, right)

    __dot__ = dot

    def __rdot__(self, left: TensorLike) -> TensorVariable:
        return dot(left, self)

    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        acc_dtype: DTypeLike | None = None,
    ) -> TensorVariable:
        """The sum of elements; see `sum`."""
        return reduce.sum(self, axis, dtype, keepdims, acc_dtype)

    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        acc_dtype: DTypeLike | None = None,
    ) -> TensorVariable:
        """The product of elements; see `prod`."""
        return reduce.prod(self, axis, dtype, keepdims, acc_dtype)

    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        acc_dtype: DTypeLike | None = None,
    ) -> TensorVariable:
        """The mean; see `mean`."""
        return statistics.mean(self, axis, dtype, keepdims, acc_dtype)

    def var(
        self, axis: Axis = None, ddof: Length = 0, keepdims: bool = False, corrected: bool = False
    ) -> TensorVariable:
        """The variance; see `var`."""
        return statistics.var(self, axis, ddof, keepdims, corrected)

    def std(
        self, axis: Axis = None, ddof: Length = 0, keepdims: bool = False, corrected: bool = False
    ) -> TensorVariable:
        """The standard deviation; see `var`."""
        return statistics.std(self, axis, ddof, keepdims, corrected)

    def max(
        self, axis: Axis = None, keepdims: bool = False, initial: float | None = None
    ) -> TensorVariable:
        """The greatest element; see `max`."""
        return reduce.max(self, axis, keepdims, initial)

    def min(
        self, axis: Axis = None, keepdims: bool = False, initial: float | None = None
    ) -> TensorVariable:
        """The smallest element; see `max`."""
        return reduce.min(self, axis, keepdims, initial)

    def all(self, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
        """Whether all elements are true."""
        return reduce.all(self, axis, keepdims)

    def any(self, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
        """Whether any element is true."""
        return reduce.any(self, axis, keepdims)

    def argmax(self, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
        """The position of the greatest element; see `argmax`."""
        return reduce.argmax(self, axis, keepdims)

    def argmin(self, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
        """The position of the smallest element; see `argmax`."""
        return reduce.argmin(self, axis, keepdims)

    def ptp(self, axis: Axis = None) -> TensorVariable:
        """The greatest element minus the smallest."""
        return statistics.ptp(self, axis)

    def sort(self, axis: int | None = -1, kind: Kind | None = None) -> TensorVariable:
        """The elements in ascending order; see `sort`."""
        return sort(self, axis, kind)

    def argsort(self, axis: int | None = -1, kind: Kind | None = None) -> TensorVariable:
        """The positions that sort the elements; see `argsort`."""
        return argsort(self, axis, kind)

    def searchsorted(
        self, v: TensorLike, side: Side = "left", sorter: TensorLike | None = None
    ) -> TensorVariable:
        """The positions at which ``v`` is inserted into this sorted vector; see `searchsorted`."""
        return searchsorted(self, v, side, sorter)

    def norm(
        self, L: float | TensorVariable, axis: Axis = None, keepdims: bool = False
    ) -> TensorVariable:
        """``(sum |x|^L)^(1/L)``; see `norm`."""
        return statistics.norm(self, L, axis, keepdims)

    def cumsum(self, axis: int | None = None) -> TensorVariable:
        """Cumulative sums; see `cumsum`."""
        return cumulative.cumsum(self, axis)

    def cumprod(self, axis: int | None = None) -> TensorVariable:
        """Cumulative products; see `cumprod`."""
        return cumulative.cumprod(self, axis)


for _class in (_Operators, _Methods):
    for _name, _function in vars(_class).items():
        if _name not in ("__module__", "__dict__", "__weakref__", "__doc__"):
            _attach(_name, _function)
