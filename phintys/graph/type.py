"""`Type`: the set of values that a variable may have."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar, cast

from phintys.graph.meta import MetaObject
from phintys.graph.origin import user_origin
from phintys.graph.variable import Constant, Variable

D = TypeVar("D")
V = TypeVar("V", bound=Variable)

_NO_TANGENTS = (
    "{v} is of type {type}, whose variables have no {what}_like: no gradient can start or "
    "end at it. Give known_grads, or use return_disconnected='none'."
)


class Part(NamedTuple):
    """One of the things that a value consists of: an array, or (``dtype`` None) a Python object.

    None in a shape is a length that the type does not fix.
    """

    dtype: str | None
    shape: tuple[int | None, ...] = ()


class Type(MetaObject, ABC, Generic[D]):
    """A set of values, such as float64 arrays of rank 2; calling it makes a variable of the type.

    Subclasses define at least `filter`.  Types are immutable and are compared: declare
    ``__props__`` (a tuple of attribute names), or define ``__eq__`` and ``__hash__``, or use a
    single instance.

    ``variable_type`` and ``constant_type`` are the classes of the variables and constants of the
    type.

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
    (True, x, Constant(..., data=3.0))
    >>> double.is_valid_value(3), double.is_valid_value(3, strict=False)
    (False, True)
    """

    variable_type: type[Variable] = Variable
    constant_type: type[Constant] = Constant
    __props__: tuple[str, ...]

    # ----- values
    @abstractmethod
    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> D:
        """``data`` converted to a value of this type; TypeError if that is not possible.

        strict
            True: ``data`` must be a value of this type; it is returned as it is
        allow_downcast
            True: the conversion may lose precision.  False: it may not.  None: it may not, except
            that a Python float is accepted where the type has dtype floatX
        """

    def filter_inplace(
        self, value: Any, storage: Any, strict: bool = False, allow_downcast: bool | None = None
    ) -> D:
        """Like `filter`, but may write the result to the memory of ``storage``.

        ``storage`` is a value of the type.  The default calls `filter` and ignores it.
        """
        return self.filter(value, strict=strict, allow_downcast=allow_downcast)

    def is_valid_value(self, data: Any, strict: bool = True) -> bool:
        """Whether `filter` accepts ``data``; by default, whether it is a value of the type."""
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
        """Whether two values are equal up to a tolerance for rounding."""
        return cls.values_eq(a, b)

    @classmethod
    def may_share_memory(cls, a: Any, b: Any) -> bool:
        """Whether two values can overlap in memory.  Types of mutable values override this."""
        return a is b

    # ----- what a value consists of, for code that computes with the parts
    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What a value consists of: several arrays, or one array, or one Python object.

        By default an array if the type has a dtype and a shape (`HasDataType` and `HasShape`), else
        an object.  A type of values that consist of several arrays overrides this, `split` and
        `join`.  ``lower`` of an op then gets, and returns, a `Composite` of the parts.
        """
        if isinstance(self, HasDataType) and isinstance(self, HasShape):
            return (Part(self.dtype, tuple(self.shape)),)
        return (Part(None),)

    def split(self, value: D) -> Sequence[Any]:
        """The parts of a value; arrays have the dtypes and ranks that `parts` says."""
        return (value,)

    def join(self, parts: Sequence[Any]) -> D:
        """The value of some parts, whose memory it may use; the inverse of `split`."""
        return parts[0]

    #: whether values are objects with a state: a result of a function is never an object that
    #: another result, an argument or a shared variable has, but a copy of it
    has_state: bool = False

    def copy_value(self, value: D) -> D:
        """A copy of a value.

        It is independent if the type `has_state`, and if values consist of several arrays.
        """
        if len(self.parts) > 1:
            return self.join([copy.copy(part) for part in self.split(value)])
        return copy.copy(value)

    def get_shape_info(self, obj: Any) -> Any:
        """The argument for `get_size`; must be cheap, as functions compute it when they run."""
        return obj

    def get_size(self, shape_info: Any) -> int:
        """The size of a value in bytes, from the result of `get_shape_info`."""
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
        """All unit vectors of the derivatives of a vector ``v``, as rows of a matrix.

        By default from the method ``_unit_vectors`` of ``v``; TypeError without it.
        """
        if not hasattr(v, "_unit_vectors"):
            raise TypeError(_NO_TANGENTS.format(v=v, type=self, what="units"))
        return v._unit_vectors()

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
        """True if variables of both types can be treated alike, by default if they are equal."""
        return True if self == otype else None

    def is_super(self, otype: Type[Any]) -> bool | None:
        """True if every value of ``otype`` is known to be a value of this type; else None."""
        return True if self.in_same_class(otype) else None

    # ----- variables
    def filter_variable(self, other: Any, allow_convert: bool = True) -> Variable:
        """``other`` as a variable of this type or a narrower one; a value becomes a constant.

        TypeError if ``other`` cannot be converted, or must not (``allow_convert=False``).
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
        """``var`` converted to this type or a narrower one; None if there is no conversion."""
        return var if self.is_super(var.type) else None

    def make_variable(self, name: str | None = None) -> Variable:
        """A new variable without an owner."""
        return self.variable_type(self, None, None, name)

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        """A constant of this type; TypeError if `filter` rejects the value."""
        return self.constant_type(self, self.filter(value), name=name)

    def __call__(self, name: str | None = None) -> Any:
        """A new variable without an owner, whose ``origin`` is the calling line.

        TypeError if the name is no string.
        """
        if name is not None and not isinstance(name, str):
            raise TypeError(f"The name of a variable is a string, not {name!r}.")
        variable = self.make_variable(name)
        variable.origin = user_origin()
        return variable

    def clone(self, **kwargs: Any) -> Type[D]:
        """A copy with some of the ``__props__`` changed."""
        props = {name: getattr(self, name) for name in getattr(self, "__props__", ())}
        return type(self)(**(props | kwargs))


class HasDataType:
    """Mixin of types whose values have a ``dtype``."""

    dtype: str


class HasShape:
    """Mixin of types with ``ndim`` and a static ``shape``, in which None is an unknown length."""

    ndim: int
    shape: tuple[int | None, ...]


class NullType(Type[Any]):
    """The type of a gradient that is not defined, with the reason.  It has no values.

    >>> g = NullType("The function has a jump.")()
    >>> g.type.why_null
    'The function has a jump.'
    """

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
    """The type of a gradient with respect to a variable without influence.  It has no values.

    >>> import phintys, phintys.tensor as pt
    >>> x, y = pt.dscalars("x", "y")
    >>> options = {"disconnected_inputs": "ignore", "return_disconnected": "disconnected"}
    >>> print(phintys.grad(x**2, y, **options).type)
    DisconnectedType
    """

    __props__ = ()

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        raise TypeError("DisconnectedType has no values: there is no connection to differentiate.")

    def is_valid_value(self, data: Any, strict: bool = True) -> bool:
        return False

    def __str__(self) -> str:
        return "DisconnectedType"


class Generic_(Type[Any]):
    """The type of any Python object; its instance is ``generic``.

    >>> import phintys
    >>> phintys.generic("settings").type == phintys.generic
    True
    """

    __props__ = ()

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        return data

    def is_valid_value(self, data: Any, strict: bool = True) -> bool:
        return True

    def __str__(self) -> str:
        return "Generic"


#: The instances of these types to use; `null_type` carries no reason.
generic = Generic_()
null_type = NullType()
disconnected_type = DisconnectedType()


def several(
    make: Callable[[str | None], V], names: Sequence[str | int | Sequence[str]]
) -> V | list[V]:
    """Variables, one for each name: what ``ints("x", "y")`` and ``dvectors("x", "y")`` return.

    A single argument is a sequence of names, such as a text of letters, or a number of variables
    without names.  A single name gives the variable alone.  TypeError if a name is no string.

    >>> several(generic, ["x", "y"]), several(generic, ["xyz"]), several(generic, ["x"])
    ([x, y], [x, y, z], x)
    >>> len(several(generic, [1]))
    1
    """
    first = names[0] if len(names) == 1 else names
    if isinstance(first, int):
        return [make(None) for _ in range(first)]
    if not isinstance(first, Iterable):
        raise TypeError(f"{first!r} is no name of a variable: names are strings.")
    made = [make(cast("str", name)) for name in first]
    return made[0] if len(made) == 1 else made


# --------------------------------------------------------------------- transfers

Transfer = Callable[[Variable, str], "Variable | None"]
_transfers: list[Transfer] = []


def register_transfer(fn: Transfer) -> None:
    """Register ``fn(variable, target)``, which returns the variable on the device ``target``.

    It returns None if it does not know the target.  Functions are tried in order of registration.
    TypeError if ``fn`` is not callable.
    """
    if not callable(fn):
        raise TypeError(f"register_transfer needs a function (variable, target), not {fn!r}.")
    _transfers.append(fn)


def transfer(var: Variable, target: str) -> Variable:
    """``var`` on the device ``target``: ``"cpu"``, or one that `register_transfer` made known.

    ValueError if the target is not known.
    """
    if target == "cpu":
        return var
    for fn in _transfers:
        moved = fn(var, target)
        if moved is not None:
            return moved
    raise ValueError(f"No transfer to {target!r} is known; see register_transfer.")
