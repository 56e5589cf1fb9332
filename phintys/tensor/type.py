"""`TensorType`: arrays of a dtype and rank, with a partially known shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.config import config
from phintys.graph.op import Op
from phintys.graph.shapes import checked_answer, shape_text
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Variable
from phintys.memo import Memo
from phintys.scalar import dtypes
from phintys.scalar.arrays import as_array
from phintys.scalar.conversion import converted
from phintys.scalar.type import NumberType, ScalarType, scalar_type
from phintys.tensor.aliases import DTypeLike, ShapeOfType, StaticShape

MAX_NDIM = 64
_INTERNED: Memo[Any, TensorType] = Memo(0, "types", weak=True)
_ASKED_FOR: Memo[Any, TensorType] = Memo(512, "types by arguments")  # skips validation


class TensorType(NumberType):
    """NumPy arrays with a dtype and a partially known shape.

    Parameters
    ----------
    dtype
        bool, (u)int8 to 64, float16 to 64, complex64 or complex128; ``"floatX"`` is config.floatX
    shape
        one entry per axis: a length, or None if it is not known (True means 1, False None)

    Types are interned: equal types are the same object.

    >>> TensorType("float64", shape=(2, None))
    TensorType(float64, shape=(2, None))
    """

    __props__ = ("dtype", "shape")
    dtype: str
    shape: StaticShape
    ndim: int
    name: str | None

    def __new__(
        cls,
        dtype: DTypeLike | None = None,
        shape: ShapeOfType | None = None,
        name: str | None = None,
        broadcastable: Sequence[bool] | None = None,
        **kwargs: Any,
    ) -> TensorType:
        if shape is None and broadcastable is not None:
            shape = broadcastable
        if shape is None:
            raise TypeError("TensorType needs a shape, e.g. shape=(None, 3).")
        key = (cls, dtype, shape if type(shape) is tuple else None, name, config.floatX)
        if key[2] is not None:
            try:
                known = _ASKED_FOR[key]
            except TypeError:  # unhashable arguments
                known = None
            if known is not None:
                return known
        found = cls._make(dtypes.as_dtype(dtype), _static_shape(shape), name)
        # not for 0: it equals False, which means None
        if key[2] is not None and isinstance(dtype, str) and 0 not in key[2]:
            _ASKED_FOR.keep(key, found)
        return found

    @classmethod
    def _make(cls, dtype: str, shape: StaticShape, name: str | None) -> TensorType:
        key = (cls, dtype, shape, name)
        found = _INTERNED[key]
        if found is None:
            found = object.__new__(cls)
            found.set_dtype(dtype)
            found.shape, found.ndim, found.name = shape, len(shape), name
            found.numpy_dtype = np.dtype(dtype)
            found.broadcastable = tuple(s == 1 for s in shape)
            found._hash = hash((cls, dtype, shape))
            found = _INTERNED.keep(key, found)
        return found

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: ``__new__`` sets all fields when the type is interned."""

    numpy_dtype: np.dtype[Any]
    broadcastable: tuple[bool, ...]
    _hash: int

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, TensorType)
            and type(self) is type(other)
            and self.dtype == other.dtype
            and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.dtype, self.shape, self.name)

    def __deepcopy__(self, memo: Any) -> TensorType:
        return self

    def clone(
        self,
        dtype: DTypeLike | None = None,
        shape: ShapeOfType | None = None,
        broadcastable: Sequence[bool] | None = None,
        **kwargs: Any,
    ) -> TensorType:
        """The type with another dtype or shape, and the same name."""
        if shape is None:
            shape = self.shape if broadcastable is None else broadcastable
        return type(self)(dtype or self.dtype, shape, self.name)

    def to_scalar_type(self) -> ScalarType:
        """The type of scalars of this dtype."""
        return scalar_type(self.dtype)

    def dtype_specs(self) -> tuple[type, str, str]:
        """The Python class of numbers of the dtype, and the names of it in C and in NumPy's C
        interface."""
        python = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[self.numpy_dtype.kind]
        return python, f"npy_{self.dtype}", f"NPY_{self.dtype.upper()}"

    def __call__(self, name: str | None = None, shape: ShapeOfType | None = None) -> Any:
        """A new variable; ``shape`` gives lengths that are unknown in this type.

        ValueError if it contradicts lengths that are known.
        """
        if shape is None:
            return Type.__call__(self, name)
        narrow = self.clone(shape=shape)
        if not self.is_super(narrow):
            raise ValueError(f"The shape {shape} contradicts {self}.")
        return Type.__call__(narrow, name)

    # ----- derivatives
    def cast_tangent(self, g: Any) -> Any:
        """See `Type.cast_tangent`.

        Static lengths that contradict those of this type are an error of the call, as in PyTensor,
        which does not look at them: a user's op may declare lengths of another case.
        """
        pairs = zip(g.type.shape, self.shape)
        g = super().cast_tangent(g)
        if all(a == b for a, b in pairs if None not in (a, b)):
            return g
        return narrow_later[0](g, self.shape)

    # ----- values
    def filter(
        self, data: Any, strict: bool = False, allow_downcast: bool | None = None
    ) -> np.ndarray:
        """``data`` as an array of this type.

        TypeError if dtype, rank or a static length does not fit, OverflowError for Python numbers
        that are out of the range of integers.
        """
        if isinstance(data, Variable):
            raise TypeError(
                f"Expected an array, got the symbolic variable {data}. Values go into a compiled "
                "function; to substitute an expression use givens or clone_replace."
            )
        array = self._filter_strict(data) if strict else self._convert(data, allow_downcast)
        if array.ndim != self.ndim:
            raise TypeError(
                f"Wrong rank: expected {self.ndim} dimensions ({self}), got {_about(array)}."
            )
        for axis, (known, length) in enumerate(zip(self.shape, array.shape)):
            if known is not None and known != length:
                raise TypeError(
                    f"Wrong length: {self} has length {known} along axis {axis}, "
                    f"got {_about(array)}."
                )
        return array

    def _filter_strict(self, data: Any) -> np.ndarray:
        if type(data) is not np.ndarray and not isinstance(data, np.memmap):
            raise TypeError(f"{self} needs a NumPy array, got {type(data).__name__}.")
        if data.dtype != self.numpy_dtype:
            raise TypeError(f"{self} needs dtype {self.dtype}, got {_about(data)}.")
        return self._own_dtype(as_array(data))

    def _convert(self, data: Any, allow_downcast: bool | None) -> np.ndarray:
        try:
            array = as_array(data)
        except ValueError as exc:
            raise TypeError(f"{data!r} cannot be made an array of {self}: {exc}") from exc
        if array.dtype == self.numpy_dtype:
            return self._own_dtype(array if array.flags.aligned else array.copy())
        if _holds_large_integers(array, data):
            kind = OverflowError if self.numpy_dtype.kind in "iu" else TypeError
            raise kind(f"{data} needs more than 64 bits: write it as a float.")
        if array.dtype.kind not in "biufc":
            found = "None" if data is None else _about(array)
            raise TypeError(f"{self} needs numbers, got {found}.")
        if allow_downcast or np.can_cast(array.dtype, self.numpy_dtype):
            return converted(array, self.dtype)
        return self._convert_lossless(data, array, allow_downcast)

    def _own_dtype(self, array: np.ndarray) -> np.ndarray:
        """The array with the dtype object of this type, with which compiled code compares identity.

        Other dtype objects can be equal: long and long long, dtypes with metadata.
        """
        return array if array.dtype is self.numpy_dtype else array.view(self.numpy_dtype)

    def _convert_lossless(
        self, data: Any, array: np.ndarray, allow_downcast: bool | None
    ) -> np.ndarray:
        if isinstance(data, float) and allow_downcast is None and self.dtype == config.floatX:
            return converted(array, self.dtype)
        if not isinstance(data, np.ndarray):
            value = converted(array, self.dtype)
            if self.values_eq(converted(value, array.dtype.name), array) and _in_range(array, self):
                return value
        is_python = not isinstance(data, np.ndarray | np.generic)
        too_large = self.numpy_dtype.kind in "iu" and not _in_range(array, self)
        kind = OverflowError if is_python and too_large else TypeError
        raise kind(
            f"{self} cannot hold {_about(array)} without losing precision. Cast the value with "
            f"astype({self.dtype!r}), or pass allow_input_downcast=True to function."
        )

    @classmethod
    def values_eq(cls, a: Any, b: Any, force_same_dtype: bool = True) -> bool:
        """Whether two arrays have equal dtype, shape and elements; NaN equals NaN."""
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or (force_same_dtype and a.dtype != b.dtype):
            return False
        equal = a == b
        if a.dtype.kind in "fc" and b.dtype.kind in "fc":
            equal = equal | (np.isnan(a) & np.isnan(b))
        return bool(np.all(equal))

    @classmethod
    def values_eq_approx(
        cls,
        a: Any,
        b: Any,
        allow_remove_inf: bool = False,
        allow_remove_nan: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> bool:
        """Whether two arrays are equal up to rounding in their dtype; NaN equals NaN.

        ``config.tensor__cmp_sloppy`` raises the tolerances.
        """
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.kind not in "fc":
            return bool(np.array_equal(a, b))
        narrow = a.dtype in (np.float16, np.float32, np.complex64)
        rtol = (
            (1e-3 if a.dtype == np.float16 else 1e-4 if narrow else 1e-5) if rtol is None else rtol
        )
        atol = (
            (1e-3 if a.dtype == np.float16 else 1e-5 if narrow else 1e-8) if atol is None else atol
        )
        slack = 10**config.tensor__cmp_sloppy
        close = np.isclose(a, b, rtol=rtol * slack, atol=atol * slack, equal_nan=True)
        if allow_remove_inf:
            close |= np.isinf(a)
        if allow_remove_nan:
            close |= np.isnan(a)
        return bool(np.all(close))

    @classmethod
    def may_share_memory(cls, a: Any, b: Any) -> bool:
        both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        return both and bool(np.may_share_memory(a, b))

    def get_shape_info(self, obj: Any) -> Any:
        return obj.shape

    def get_size(self, shape_info: Any) -> int:
        """The size in bytes of an array of this dtype with the given shape."""
        return int(np.prod(shape_info, dtype=np.int64)) * self.numpy_dtype.itemsize

    # ----- relations
    def in_same_class(self, otype: Type[Any]) -> bool:
        """Whether ``otype`` has the same dtype and the same axes known to have length 1."""
        return (
            isinstance(otype, TensorType)
            and otype.dtype == self.dtype
            and otype.broadcastable == self.broadcastable
        )

    def is_super(self, otype: Type[Any]) -> bool:
        """Whether every array of ``otype`` is an array of this type."""
        return self is otype or (
            isinstance(otype, TensorType)
            and otype.dtype == self.dtype
            and otype.ndim == self.ndim
            and all(a is None or a == b for a, b in zip(self.shape, otype.shape))
        )

    def filter_variable(self, other: Any, allow_convert: bool = True) -> Variable:
        """``other`` as a variable of this type.

        A narrower variable is returned unchanged; one whose lengths are not known is wrapped in a
        `SpecifyShape` with the merged shape, checked at run time.  TypeError if dtype or rank
        differ.
        """
        if not isinstance(other, Variable):
            return self.make_constant(self.filter(other).copy())
        if self.is_super(other.type):
            return other
        converted = self.convert_variable(other) if allow_convert else None
        if converted is None:
            raise TypeError(
                f"Cannot convert {other}, a variable of type {other.type}, to type {self}. Dtype, "
                "rank and known lengths must agree; convert it explicitly."
            )
        return converted

    def convert_variable(self, var: Variable) -> Variable | None:
        """``var``, narrowed to this type's static shape if needed; None if that is impossible."""
        if self.is_super(var.type):
            return var
        other = var.type
        if (
            not isinstance(other, TensorType)
            or other.dtype != self.dtype
            or other.ndim != self.ndim
        ):
            return None
        if any(a is not None and b is not None and a != b for a, b in zip(self.shape, other.shape)):
            return None
        return narrow[0](var, self.shape)

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        names = {0: "Scalar", 1: "Vector", 2: "Matrix"}
        kind = names.get(self.ndim, f"Tensor{self.ndim}")
        return f"{kind}({self.dtype}, shape={shape_text(self.shape)})"

    def __repr__(self) -> str:
        return f"TensorType({self.dtype}, shape={self.shape})"


DenseTensorType = TensorType

#: ``narrow[0](variable, shape)`` asserts a static shape; set by `phintys.tensor.shape`.
narrow: list[Callable[[Variable, StaticShape], Variable]] = []
#: the same for a variable whose own type may contradict that shape: an error of the call
narrow_later: list[Callable[[Variable, StaticShape], Variable]] = []


def _static_shape(shape: ShapeOfType) -> StaticShape:
    if isinstance(shape, bool):
        raise TypeError(f"A static shape is a length or a sequence of lengths, not {shape!r}.")
    if isinstance(shape, int | np.integer):
        shape = (shape,)
    entries = tuple(_static_length(s) for s in shape)
    if len(entries) > MAX_NDIM:
        raise ValueError(f"Tensors have at most {MAX_NDIM} dimensions, not {len(entries)}.")
    return entries


def _static_length(s: object) -> int | None:
    if s is None or s is False or (isinstance(s, np.bool_) and not s):
        return None
    if s is True or isinstance(s, np.bool_):
        return 1
    if isinstance(s, int | np.integer) and s >= 0:
        return int(s)
    raise ValueError(f"An entry of a static shape is a length, None or a bool, not {s!r}.")


def _holds_large_integers(array: np.ndarray, data: Any) -> bool:
    """Whether an array contains Python integers because no dtype of NumPy is wide enough."""
    if array.dtype != object or array.size == 0 or isinstance(data, np.ndarray):
        return False
    return all(isinstance(x, int) for x in array.flat)


def _in_range(array: np.ndarray, target: TensorType) -> bool:
    if target.numpy_dtype.kind not in "biu" or array.dtype.kind not in "iuf":
        return True
    if target.dtype == "bool":
        return bool(np.all((array == 0) | (array == 1)))
    limits = np.iinfo(target.dtype)
    return bool(np.all((array >= limits.min) & (array <= limits.max)))


def _about(array: np.ndarray) -> str:
    return f"an array of dtype {array.dtype} and shape {array.shape}"


def typed_node(op: Op, inputs: Sequence[Variable], *like: str | TensorType) -> Apply:
    """The node that applies ``op``: its results have the shapes of its rule.

    ``like`` holds for each result its dtype, or a type that it shares all but the shape with.
    """
    found = checked_answer(op, inputs)
    key = (config.floatX, *like)
    types = found.types.get(key)
    if types is None or any([isinstance(t, TensorType) and t.name is not None for t in like]):
        types = tuple(map(_typed, like, found.static))
        if all([t.name is None for t in types]):  # equal types may have other names
            found.types[key] = types
    return Apply(op, inputs, [t.variable_type(t) for t in types])


def _typed(like: str | TensorType, shape: StaticShape) -> TensorType:
    return TensorType(like, shape) if isinstance(like, str) else like.clone(shape=shape)
