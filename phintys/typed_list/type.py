"""`TypedListType`: lists whose elements are values of one type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phintys.graph.type import Type


class TypedListType(Type[list[Any]]):
    """The lists of values of a type.

    Parameters
    ----------
    ttype
        the type of the elements
    depth
        how many further lists are around them

    TypeError if ``ttype`` is no type, ValueError if ``depth`` is negative.

    >>> import phintys.tensor as pt
    >>> TypedListType(pt.dvector), TypedListType(pt.dvector, depth=1).get_depth()
    (TypedList <Vector(float64, shape=(?,))>, 1)
    """

    __props__ = ("ttype",)
    has_state = True  # a list may change: no two results are one list

    def __init__(self, ttype: Type[Any], depth: int = 0) -> None:
        if not isinstance(ttype, Type):
            raise TypeError(f"The elements of a list need a type, not {ttype!r}.")
        if depth < 0:
            raise ValueError(f"The depth of a list must not be negative: {depth}.")
        for _ in range(depth):
            ttype = TypedListType(ttype)
        self.ttype = ttype

    def get_depth(self) -> int:
        """How many lists are around the elements, less one."""
        found, inner = 0, self.ttype
        while isinstance(inner, TypedListType):
            found, inner = found + 1, inner.ttype
        return found

    # ----- values
    def filter(
        self, data: Any, strict: bool = False, allow_downcast: bool | None = None
    ) -> list[Any]:
        if not isinstance(data, list) if strict else not isinstance(data, Iterable):
            raise TypeError(f"Expected a list, not {data!r}.")
        found = [self.ttype.filter(x, strict, allow_downcast) for x in data]
        if isinstance(data, list) and all(new is old for new, old in zip(found, data)):
            return data
        return found

    def copy_value(self, value: list[Any]) -> list[Any]:
        return [self.ttype.copy_value(x) for x in value]

    def may_share_memory(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        """Whether two lists, or elements of them, can overlap in memory."""
        return a is b or any(self.ttype.may_share_memory(x, y) for x in a for y in b)

    def values_eq(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        """Whether the elements are equal."""
        return len(a) == len(b) and all(map(self.ttype.values_eq, a, b))

    def values_eq_approx(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        """Whether the elements are equal up to a tolerance for rounding."""
        return len(a) == len(b) and all(map(self.ttype.values_eq_approx, a, b))

    def __str__(self) -> str:
        return f"TypedList <{self.ttype}>"

    __repr__ = __str__
