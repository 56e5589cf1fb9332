"""The classes of PyTensor's C interface, as far as they mean something without C code.

Nothing calls the methods ``c_*``: an op is computed by its ``perform`` (or ``impl``), or by what
its ``lower`` method says, and a class that has C code alone cannot be computed.  Enumerations and
types of parameters are those of the ``params`` that ``perform`` gets.

>>> import phintys, phintys.tensor as pt
>>> from phintys.tensor import TensorType
>>> class Scaled(COp):
...     __props__ = ("factor",)
...     params_type = ParamsType(factor=TensorType("float64", ()))
...     itypes, otypes = [pt.dvector], [pt.dvector]
...
...     def __init__(self, factor):
...         self.factor = factor
...
...     def perform(self, node, inputs, output_storage, params):
...         output_storage[0][0] = params.factor * inputs[0]
...
...     def c_code(self, node, name, inputs, outputs, sub):
...         return "..."
>>> x = pt.dvector("x")
>>> Scaled(2.0)(x).eval({x: [1.0, 3.0]})
array([2., 6.])
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from phintys.graph.op import Op
from phintys.graph.type import Generic_, Type, generic

__all__ = [
    "CDataType",
    "CEnumType",
    "CLinkerObject",
    "CLinkerOp",
    "CLinkerType",
    "COp",
    "CType",
    "EnumList",
    "EnumType",
    "ExternalCOp",
    "Generic",
    "HideC",
    "OpenMPOp",
    "Params",
    "ParamsType",
    "generic",
]

Generic = Generic_


class CLinkerObject:
    """What a class says about its C code; nothing asks for it."""

    def c_headers(self, **kwargs: Any) -> list[str]:
        """The headers that C code includes."""
        return []

    def c_header_dirs(self, **kwargs: Any) -> list[str]:
        """The folders of these headers."""
        return []

    def c_libraries(self, **kwargs: Any) -> list[str]:
        """The libraries that C code needs."""
        return []

    def c_lib_dirs(self, **kwargs: Any) -> list[str]:
        """The folders of these libraries."""
        return []

    def c_compile_args(self, **kwargs: Any) -> list[str]:
        """Arguments of the compiler."""
        return []

    def c_no_compile_args(self, **kwargs: Any) -> list[str]:
        """Arguments that the compiler must not get."""
        return []

    def c_support_code(self, **kwargs: Any) -> str:
        """Code in front of the functions."""
        return ""

    def c_code_cache_version(self) -> tuple[Any, ...]:
        """The version of the code; empty: it is not kept."""
        return ()


class CLinkerType(CLinkerObject):
    """A type that C code handles, in PyTensor."""


class CLinkerOp(CLinkerObject):
    """An op with C code, in PyTensor.

    ``params_type`` is the type of the ``params`` that ``perform`` gets.
    """

    params_type: ClassVar[Any] = None

    def get_params(self, node: Any) -> Any:
        """The parameters of a node: by default the attributes of the op that the type names."""
        return self if self.params_type is None else self.params_type.get_params(self)


class HideC(CLinkerOp):
    """A mixin of ops whose base classes have C code."""


class COp(Op, CLinkerOp):
    """Base class of ops with C code; those here are computed by ``perform``."""


class OpenMPOp(COp):
    """Base class of ops whose C code has an option ``openmp``, which has no effect."""

    __props__ = ("openmp",)

    def __init__(self, openmp: bool | None = None) -> None:
        self.openmp = bool(openmp)


class ExternalCOp(COp):
    """Base class of ops whose C code is in files, which are not read."""

    def __init__(self, func_files: str | Sequence[str], func_name: str | None = None) -> None:
        self.func_files = [func_files] if isinstance(func_files, str) else list(func_files)
        self.func_name = func_name


class CType(Type[Any], CLinkerType):
    """Base class of users' types with C code; the types of this package are none."""


def register_view_op_c_code(type_: Any, code: str, version: Any = ()) -> None:
    """Nothing: views of values of a type have no C code here."""


def register_deep_copy_op_c_code(type_: Any, code: str, version: Any = ()) -> None:
    """Nothing: copies of values of a type have no C code here."""


class CDataType(CType):
    """The type of pointers to C data, which are capsules in Python."""

    __props__ = ("ctype",)

    def __init__(self, ctype: str, **kwargs: Any) -> None:
        self.ctype = ctype

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        if data is not None and type(data).__name__ != "PyCapsule":
            raise TypeError(f"{self} takes capsules, not {data!r}.")
        return data


class EnumType(CType, dict[str, Any]):
    """The type of named numbers, ``EnumType(ONE=1, HALF=0.5)``; names are attributes and keys.

    A pair ``(name, alias)`` in place of a name gives it a second one.
    """

    _default_ctype: ClassVar[str] = "double"

    def __init__(self, **kwargs: Any) -> None:
        self.ctype: str = kwargs.pop("ctype", self._default_ctype)
        self.cname: str = kwargs.pop("cname", self.ctype)
        self.aliases: dict[str, str] = {}
        for name, value in kwargs.items():
            self._check(name)
            if not isinstance(value, int | float):
                raise TypeError(f"{name} of an enumeration is a number, not {value!r}.")
        dict.__init__(self, kwargs)

    def _check(self, name: str) -> None:
        if not re.fullmatch("[A-Z][A-Z0-9_]*", name):
            raise AttributeError(
                f"{name!r} is no name of an enumeration: these have capital letters, digits and "
                "underscores."
            )

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"{type(self).__name__} has no constant {name!r}.")

    def fromalias(self, alias: str, default: Any = None) -> Any:
        """The number with a name or alias, else ``default``."""
        return self.get(self.__dict__.get("aliases", {}).get(alias, alias), default)

    def has_alias(self, alias: str) -> bool:
        """Whether a constant has this alias."""
        return alias in self.aliases

    def get_aliases(self) -> tuple[str, ...]:
        """The aliases."""
        return tuple(self.aliases)

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """A number of the type; that of a name or alias, unless ``strict``."""
        if not strict and isinstance(data, str):
            data = self.fromalias(data)
        if not isinstance(data, int | float | np.number) or data not in self.values():
            raise TypeError(f"{self} takes its numbers and their names, not {data!r}.")
        return data

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((type(self), self.ctype, tuple(self.items()), tuple(self.aliases.items())))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, EnumType)
            and type(self) is type(other)
            and (self.ctype, [*self.items()], self.aliases)
            == (other.ctype, [*other.items()], other.aliases)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self) -> Any:
        return _restored, (type(self), dict(self), vars(self))

    def __repr__(self) -> str:
        names = {name: alias for alias, name in self.aliases.items()}
        text = [f"{k}({names[k]}):{v}" if k in names else f"{k}:{v}" for k, v in self.items()]
        return f"{type(self).__name__}<{self.ctype}>({', '.join(text)})"

    __str__ = __repr__


def _restored(cls: type[EnumType], items: dict[str, Any], state: dict[str, Any]) -> EnumType:
    new = cls.__new__(cls)
    dict.update(new, items)
    vars(new).update(state)
    return new


class EnumList(EnumType):
    """The type of the numbers 0, 1, ...: ``EnumList("ADD", ("SUB", "minus"))``."""

    _default_ctype = "int"

    def __init__(self, *names: str | tuple[str, str], **kwargs: Any) -> None:
        pairs = [(name, "") if isinstance(name, str) else name for name in names]
        if len({name for name, _ in pairs}) < len(pairs):
            raise TypeError(f"A name of an enumeration is given twice: {[n for n, _ in pairs]}.")
        super().__init__(**{name: k for k, (name, _) in enumerate(pairs)}, **kwargs)
        self.aliases = {alias: name for name, alias in pairs if alias}


class CEnumType(EnumList):
    """An `EnumList` whose numbers are those of C constants in PyTensor."""


class Params(dict[str, Any]):
    """The parameters of an op: attributes and keys."""

    def __init__(self, params_type: ParamsType, **kwargs: Any) -> None:
        missing = [name for name in params_type.fields if name not in kwargs]
        if missing:
            raise TypeError(f"The parameter {missing[0]!r} of {params_type} is missing.")
        super().__init__(kwargs)
        self.__dict__["params_type"] = params_type

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"There is no parameter {name!r}.")

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((type(self), self.params_type, tuple([str(value) for value in self.values()])))

    def __repr__(self) -> str:
        text = [f"{name}:{type(value).__name__}:{value}" for name, value in self.items()]
        return f"Params({', '.join(text)})"


class ParamsType(CType):
    """The type of parameters, each with a name and a type: ``ParamsType(axis=lscalar)``.

    Constants of its enumerations are its attributes.
    """

    __props__ = ("fields", "types")

    def __init__(self, **kwargs: Any) -> None:
        if not kwargs:
            raise ValueError("ParamsType takes the types of parameters by their names.")
        for name, type_ in kwargs.items():
            if not isinstance(type_, Type):
                raise TypeError(f"The type of the parameter {name!r} is no Type: {type_!r}.")
        self.fields = tuple(sorted(kwargs))
        self.types = tuple([kwargs[name] for name in self.fields])

    @property
    def length(self) -> int:
        """The number of parameters."""
        return len(self.fields)

    def __getattr__(self, name: str) -> Any:
        enumerations = [t for t in self.__dict__.get("types", ()) if isinstance(t, EnumType)]
        for found in enumerations:
            if name in found:
                return found[name]
        raise AttributeError(f"ParamsType has no constant {name!r}.")

    def get_enum(self, key: str) -> Any:
        """The number with a name in an enumeration."""
        return getattr(self, key)

    def enum_from_alias(self, alias: str) -> Any:
        """The number with an alias in an enumeration, or with a name."""
        for found in self.types:
            if isinstance(found, EnumType) and found.has_alias(alias):
                return found.fromalias(alias)
        return getattr(self, alias)

    def get_type(self, field: str) -> Any:
        """The type of a parameter."""
        return self.types[self.fields.index(field)]

    def has_type(self, type_: Any) -> bool:
        """Whether a parameter has this type."""
        return type_ in self.types

    def get_field(self, type_: Any) -> str:
        """The first parameter with a type."""
        return self.fields[self.types.index(type_)]

    def get_params(self, *objects: Any, **kwargs: Any) -> Params:
        """Parameters: attributes of ``objects``, and those given by name, as values of the types.

        KeyError if one is missing.
        """
        values: dict[str, Any] = {}
        for name, type_ in zip(self.fields, self.types):
            given = next((getattr(x, name) for x in objects if hasattr(x, name)), None)
            value = kwargs[name] if name in kwargs or given is None else given
            values[name] = type_.filter(value, strict=False, allow_downcast=True)
        return Params(self, **values)

    def extended(self, **kwargs: Any) -> ParamsType:
        """The type with further parameters."""
        return ParamsType(**dict(zip(self.fields, self.types)), **kwargs)

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Params:
        if not isinstance(data, Mapping) or (strict and not isinstance(data, Params)):
            raise TypeError(f"{self} takes Params, not {data!r}.")
        found = {
            name: type_.filter(data[name], strict, allow_downcast)
            for name, type_ in zip(self.fields, self.types)
        }
        return Params(self, **found)

    @classmethod
    def values_eq(cls, a: Any, b: Any) -> bool:
        """Whether all parameters are equal."""
        pairs = zip(a.params_type.fields, a.params_type.types)
        return bool(a.params_type == b.params_type) and all(
            type_.values_eq(a[name], b[name]) for name, type_ in pairs
        )

    values_eq_approx = values_eq

    def __repr__(self) -> str:
        return f"ParamsType<{', '.join(f'{n}:{t}' for n, t in zip(self.fields, self.types))}>"

    __str__ = __repr__
