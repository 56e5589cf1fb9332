"""Where in the user's program a node was made.

What is recorded is a code object and an instruction offset: two references, no text.  File,
line and source text are looked up when a message is printed.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType
from typing import Any, NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_ours: dict[CodeType, bool] = {}

#: (code object, offset of the instruction); resolved by `locate`.
Origin = tuple[CodeType, int]


class Location(NamedTuple):
    """A line of a program."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The source text of the line, empty if it is not available."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        text = f"  {self.text}" if self.text else ""
        return f"{self.file}:{self.line} in {self.function}{text}"


def user_origin() -> Origin | Location | None:
    """The innermost frame that is not part of this package."""
    if _inherited is not None:
        return _inherited
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        code = frame.f_code
        ours = _is_ours.get(code)
        if ours is None:
            ours = _is_ours[code] = code.co_filename.startswith(_PACKAGE)
        if not ours:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


_inherited: Origin | Location | None = None


class inherit:
    """While active, nodes are recorded as made where ``origin`` says (used by rewriting and gradients)."""

    __slots__ = ("origin", "saved")

    def __init__(self, origin: Origin | Location | None) -> None:
        self.origin = origin

    def __enter__(self) -> None:
        global _inherited
        self.saved, _inherited = _inherited, self.origin

    def __exit__(self, *exc: object) -> None:
        global _inherited
        _inherited = self.saved


def locate(origin: Origin | Location | None) -> Location | None:
    """File, line and function of an origin."""
    if origin is None or isinstance(origin, Location):
        return origin
    code, offset = origin
    line: int | None = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
            break
    return Location(code.co_filename, line, code.co_qualname)


def describe(origin: Any, indent: str = "  ") -> str:
    """A sentence that says where something was made; empty if it is not known."""
    where = locate(origin)
    if where is None:
        return ""
    text = f"\n{indent}  {where.text}" if where.text else ""
    return f"{indent}made at {where.file}:{where.line}, in {where.function}{text}"
