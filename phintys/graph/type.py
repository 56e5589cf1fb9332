"""`Type`: what values a variable may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from phintys.graph.meta import MetaObject
from phintys.graph.origin import user_origin
from phintys.graph.variable import Constant, Variable

D = TypeVar("D")

_NO_TANGENTS = (
    "{v} is of type {type}, whose variables have no {what}_like: its gradient cannot start or end "
    "here. Give known_grads, or ask for return_disconnected='none'."
)


class Type(MetaObject, ABC, Generic[D]):
    """A set of constraints on data; it makes the variables whose values satisfy them.

    Subclasses define at least `filter`.  Types are immutable and must be comparable: declare
    ``__props__`` (a tuple of attribute names), or define ``__eq__`` and ``__hash__`` together, or
    use a single instance.

    ``variable_type`` and ``constant_type`` are the classes of the variables and constants that the
    type makes.

    >>> class DoubleType(Type):
    ...     __props__ = ()
    ...
    ...     def filter(self, data, strict=False, allow_downcast=None):
    ...         if strict and type(data) is not float:
    ...             raise TypeError(f"Expected a float, not {data!r}.")
    ...         if not isinstance(data, float | int):
    ...             raise TypeError(f"Expected a number, not {data!r}.")
    ...         return float(data)
    ...
    ...     def values_eq_approx(self, a, b, tolerance=1e-4):
    ...         return abs(a - b) / (abs(a) + abs(b)) < tolerance
    >>> double = DoubleType()
    >>> double == DoubleType(), double("x"), double.make_constant(3)
    (True, x, Constant{3.0})
    >>> double.is_valid_value(3), double.is_valid_value(3, strict=False)
    (False, True)
    """

    variable_type: type[Variable] = Variable
    constant_type: type[Constant] = Constant
    __props__: tuple[str, ...]

    # ----- values
    @abstractmethod
    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> D:
        """Return ``data`` as a value of this type, or raise TypeError.

        strict
            hand back the very same object or raise.
        allow_downcast
            True: conversion may lose precision.  False: it may not.  None: it may not, with the one
            exception that a Python float is accepted for a floatX tensor.
        """

    def filter_inplace(
        self, value: Any, storage: Any, strict: bool = False, allow_downcast: bool | None = None
    ) -> D:
        """Like `filter`; may put the result into the memory of ``storage``, a value of this type.

        The default converts with `filter` and leaves ``storage`` alone.
        """
        return self.filter(value, strict=strict, allow_downcast=allow_downcast)

    def is_valid_value(self, data: Any, strict: bool = True) -> bool:
        """Whether `filter` accepts ``data``."""
        try:
            self.filter(data, strict=strict)
        except (TypeError, ValueError, OverflowError):
            return False
        return True

    @classmethod
    def values_eq(cls, a: Any, b: Any) -> bool:
        """Whether two values are equal."""
        return bool(a == b)

    @classmethod
    def values_eq_approx(cls, a: Any, b: Any) -> bool:
        """Whether two values are equal up to the rounding that the type tolerates."""
        return cls.values_eq(a, b)

    @classmethod
    def may_share_memory(cls, a: Any, b: Any) -> bool:
        """Whether two values can overlap in memory.  Types of mutable values override this."""
        return a is b

    def get_shape_info(self, obj: Any) -> Any:
        """What `get_size` needs to know of a value; cheap, because it runs during execution."""
        return obj

    def get_size(self, shape_info: Any) -> int:
        """Bytes of a value, from what `get_shape_info` returned."""
        import sys

        return sys.getsizeof(shape_info)

    # ----- derivatives.  Types of numbers override what follows.
    is_discrete: bool = False
    """Whether values are integers or bools; derivatives of them are zero, and floats."""

    is_complex: bool = False
    """Whether values are complex numbers."""

    @property
    def tangent_type(self) -> Type[Any]:
        """The type of derivatives with respect to variables of this type."""
        return self

    def tangent_zeros(self, v: Any) -> Any:
        """Zeros as a derivative of ``v``, a variable of this type.

        By default from the method ``zeros_like`` of the variable; TypeError if it has none.
        """
        return self._tangent(v, "zeros")

    def tangent_ones(self, v: Any) -> Any:
        """Ones as a derivative of ``v``, by default from ``ones_like``; TypeError without it."""
        return self._tangent(v, "ones")

    def _tangent(self, v: Any, what: str) -> Any:
        if not hasattr(v, f"{what}_like"):
            raise TypeError(_NO_TANGENTS.format(v=v, type=self, what=what))
        return getattr(v, f"{what}_like")()

    def tangent_basis(self, v: Any) -> Any:
        """All unit vectors of the derivatives of a vector ``v``, as rows of a matrix."""
        raise TypeError(_NO_TANGENTS.format(v=v, type=self, what="units"))

    def tangent_sum(self, terms: Sequence[Any]) -> Any:
        """The sum of two or more derivatives; one node if addition takes any number of terms."""
        total = terms[0] + terms[1]
        if len(terms) > 2 and total.owner.op.is_variadic:
            return total.owner.op(*terms)
        for term in terms[2:]:
            total = total + term
        return total

    def check_tangent(self, g: Any) -> None:
        """TypeError or ValueError, with the reason, if ``g`` is not a derivative for this type."""

    def cast_tangent(self, g: Any) -> Any:
        """``g``, which `check_tangent` accepts, in the dtype of `tangent_type`.

        TypeError if that loses an imaginary part.
        """
        return g

    # ----- relations between types
    def in_same_class(self, otype: Type[Any]) -> bool | None:
        """Whether variables of both types can be treated alike; equality, unless refined."""
        return True if self == otype else None

    def is_super(self, otype: Type[Any]) -> bool | None:
        """True if every value of ``otype`` is a value of this type; None if that is not known."""
        return True if self.in_same_class(otype) else None

    # ----- variables
    def filter_variable(self, other: Any, allow_convert: bool = True) -> Variable:
        """``other`` as a variable of this type (or a narrower one); a value becomes a constant.

        TypeError if its type cannot be converted.
        """
        if not isinstance(other, Variable):
            return self.make_constant(self.filter(other))
        if self.is_super(other.type):
            return other
        converted = self.convert_variable(other) if allow_convert else None
        if converted is None:
            raise TypeError(
                f"Cannot convert {other}, a variable of type {other.type}, to type {self}. "
                "Convert it explicitly, or replace it by a variable of that type."
            )
        return converted

    def convert_variable(self, var: Variable) -> Variable | None:
        """``var`` converted to this type, or None if there is no conversion."""
        return var if self.is_super(var.type) else None

    def make_variable(self, name: str | None = None) -> Variable:
        """A new variable without an owner."""
        return self.variable_type(self, None, None, name)

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        """A constant of this type; the value goes through `filter`."""
        return self.constant_type(self, self.filter(value), name=name)

    def __call__(self, name: str | None = None) -> Any:
        """A new variable that remembers the line that made it."""
        variable = self.make_variable(name)
        variable.origin = user_origin()
        return variable

    def clone(self, **kwargs: Any) -> Type[D]:
        """A copy with some properties changed; unset ones keep their values."""
        props = {name: getattr(self, name) for name in getattr(self, "__props__", ())}
        return type(self)(**(props | kwargs))


class HasDataType:
    """Mixin of types whose values have a ``dtype``."""

    dtype: str


class HasShape:
    """Mixin of types whose values have ``ndim`` and a (partially) static ``shape``."""

    ndim: int
    shape: tuple[int | None, ...]


class NullType(Type[Any]):
    """The type that no value has: a gradient that does not exist, with the reason."""

    __props__ = ("why_null",)

    def __init__(self, why_null: str = "(no explanation given)") -> None:
        self.why_null = why_null

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        raise TypeError(f"No value can have this type: {self.why_null}")

    def is_valid_value(self, data: Any, strict: bool = True) -> bool:
        return False

    def filter_variable(self, other: Any, allow_convert: bool = True) -> Variable:
        raise TypeError(f"No variable can be converted to NullType: {self.why_null}")

    def __str__(self) -> str:
        return "NullType"


class DisconnectedType(Type[Any]):
    """The type of a gradient that does not exist because nothing connects the two variables."""

    __props__ = ()

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        raise TypeError("DisconnectedType has no values: there is no connection to differentiate.")

    def is_valid_value(self, data: Any, strict: bool = True) -> bool:
        return False

    def __str__(self) -> str:
        return "DisconnectedType"


class Generic_(Type[Any]):
    """The type of any Python object."""

    __props__ = ()

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        return data

    def is_valid_value(self, data: Any, strict: bool = True) -> bool:
        return True

    def __str__(self) -> str:
        return "Generic"


#: The type of any Python object, and placeholders of differentiation.
generic = Generic_()
null_type = NullType()
disconnected_type = DisconnectedType()


# --------------------------------------------------------------------- transfers

Transfer = Callable[[Variable, str], "Variable | None"]
_transfers: list[Transfer] = []


def register_transfer(fn: Transfer) -> None:
    """Register ``fn(variable, target)``, which returns the variable on ``target`` or None.

    Callbacks are tried in the order of registration; the first that returns a variable wins.
    """
    if not callable(fn):
        raise TypeError(f"register_transfer needs a function (variable, target), not {fn!r}.")
    _transfers.append(fn)


def transfer(var: Variable, target: str) -> Variable:
    """``var`` as a value on ``target``.  ``"cpu"`` is built in; others are registered.

    ValueError if no transfer to the target is known.
    """
    if target == "cpu":
        return var
    for fn in _transfers:
        moved = fn(var, target)
        if moved is not None:
            return moved
    raise ValueError(f"No transfer to {target!r} is known; see register_transfer.")
