"""Equality, hash and text of objects from the attributes that ``__props__`` lists."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

_Class = TypeVar("_Class")


class Abstract(ABCMeta):
    """The metaclass of classes with abstract methods.

    `isinstance` is that of ordinary classes until a virtual subclass is registered: that of ABCMeta
    takes ten times as long.
    """

    __instancecheck__ = type.__instancecheck__

    def register(cls, subclass: type[_Class]) -> type[_Class]:
        """Make ``subclass`` a virtual subclass of ``cls``; return it, as a decorator does.

        From then on `isinstance` with any class of this metaclass looks for virtual subclasses: one
        of ``cls`` is one of its base classes too.
        """
        Abstract.__instancecheck__ = ABCMeta.__instancecheck__
        return super().register(subclass)


class MetaType(Abstract):
    """A metaclass that derives ``__eq__``, ``__hash__`` and ``__str__`` from ``__props__``.

    ``__props__`` is a tuple of attribute names.  Two objects are equal if they have the same class
    and these attributes are equal.  Methods that the class defines itself are kept.
    """

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kw: Any
    ) -> Any:
        props = namespace.get("__props__")
        if props is not None:
            if not (isinstance(props, tuple) and all(isinstance(p, str) for p in props)):
                raise TypeError(
                    f"{name}.__props__ must be a tuple of attribute names, not {props!r}."
                )
            namespace.setdefault("_props", _props)
            namespace.setdefault("_props_dict", _props_dict)
            if "__eq__" not in namespace and "__hash__" not in namespace:
                namespace["__eq__"] = _equal
                namespace["__hash__"] = _hash
            namespace.setdefault("__str__", _text)
        cls: Any = super().__new__(mcls, name, bases, namespace, **kw)
        read = attrgetter("__class__", *(cls.equality_props or getattr(cls, "__props__", ())))
        derived = cls.__eq__ is _equal and cls.__hash__ is _hash
        cls._class_and_props = staticmethod(read)
        cls.equality_key = staticmethod(read if derived else _itself)
        return cls


def _itself(x: Any) -> Any:
    return x


def _props(self: Any) -> tuple[Any, ...]:
    try:
        return tuple([getattr(self, name) for name in self.__props__])
    except AttributeError as exc:
        raise TypeError(f"{type(self).__name__} lacks an attribute of __props__: {exc}") from exc


def _props_dict(self: Any) -> dict[str, Any]:
    return {name: getattr(self, name) for name in self.__props__}


def _equal(self: Any, other: object) -> bool:
    return self is other or (
        type(self) is type(other) and _class_and_props(self) == _class_and_props(other)
    )


def _hash(self: Any) -> int:
    return hash(_class_and_props(self))


def _class_and_props(x: Any) -> Any:
    try:
        return x._class_and_props(x)
    except AttributeError:
        _props(x)  # names the attribute
        raise


def _text(self: Any) -> str:
    """``Class{name=value, ...}``."""
    props = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__props__)
    return f"{type(self).__name__}{{{props}}}" if props else type(self).__name__


class MetaObject(metaclass=MetaType):
    """Base class of objects with ``__props__``; see `MetaType`.

    Attributes
    ----------
    equality_props
        names of hashable attributes that take the place of ``__props__`` in hash and equality
    equality_key
        ``equality_key(x)`` is the class of ``x`` and these attributes; ``x`` itself if the class
        defines its own equality.  As a key of a dict it is faster than ``x``: it is hashed in C.
    """

    equality_props: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:
        equality_key: ClassVar[Callable[[Any], Any]]


class Scratchpad:
    """A namespace of free attributes, ``x.tag.note = 1``.  No graph computes anything from them."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def clear(self) -> None:
        """Remove all attributes."""
        self.__dict__.clear()

    def __update__(self, other: Scratchpad) -> Scratchpad:
        """Copy all attributes of ``other`` into this one, and return it."""
        self.__dict__.update(other.__dict__)
        return self

    def __repr__(self) -> str:
        return "scratchpad" + repr(self.__dict__)
