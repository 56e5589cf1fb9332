"""Where in the user's program a node was made.

What is recorded is a code object and an instruction offset: two references, no text.  File,
line and source text are looked up when a message is printed.
"""

from __future__ import annotations

import linecache
import os
import threading
from collections.abc import Sequence
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import CodeType, FrameType
from typing import Any, NamedTuple

from phintys.memo import Memo

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_ours: Memo[str, bool] = Memo(1024, "files")  # a code object's own hash is slow

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


class _Inherited(threading.local):
    origin: Origin | Location | None = None


_inherited = _Inherited()


def user_origin() -> Origin | Location | None:
    """The innermost frame that is not part of this package."""
    origin = _inherited.origin
    if origin is not None:
        return origin
    frame: FrameType | None = _getframe(2)
    while frame is not None:
        code = frame.f_code
        ours = _is_ours[code.co_filename]
        if ours is None:
            ours = _is_of_package(code.co_filename)
        if not ours and not (code.co_name == "make_node" and _is_within_package(frame)):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def _is_of_package(file: str) -> bool:
    ours = _is_ours[file]
    return _is_ours.keep(file, file.startswith(_PACKAGE)) if ours is None else ours


def _is_within_package(make_node: FrameType) -> bool:
    """Whether it is called from here: the line that applies a user's op says more than its own."""
    caller = make_node.f_back
    return caller is not None and _is_of_package(caller.f_code.co_filename)


class inherit:
    """While active in this thread, nodes are recorded as made where ``origin`` says.

    Rewriting and differentiation use it: what they make comes from the user's line.
    """

    __slots__ = ("origin", "saved")

    def __init__(self, origin: Origin | Location | None) -> None:
        self.origin = origin

    def __enter__(self) -> None:
        self.saved, _inherited.origin = _inherited.origin, self.origin

    def move(self, origin: Origin | Location | None) -> None:
        """Go on with another origin."""
        _inherited.origin = origin

    def __exit__(self, *exc: object) -> None:
        _inherited.origin = self.saved


def locate(origin: Origin | Location | None) -> Location | None:
    """File, line and function of an origin."""
    if origin is None or isinstance(origin, Location):
        return origin
    key = _Identity(origin[0]), origin[1]
    return _locations[key] or _locations.keep(key, _resolve(*origin))


class _Identity:
    """A code object as a key: by identity, because its own hash is slow."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType) -> None:
        self.code = code

    def __hash__(self) -> int:
        return id(self.code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.code is other.code


_locations: Memo[tuple[_Identity, int], Location] = Memo(1024, "lines of programs")


def _resolve(code: CodeType, offset: int) -> Location:
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


def annotate(exc: BaseException, node: Any, values: Sequence[Any]) -> None:
    """Add to an exception which node raised it, on what, and where the user made it."""
    rows = [f"while computing {node.op} of"]
    rows += [f"  {v} = {_about(x)}" for v, x in zip(node.inputs, values)]
    made = describe(node.origin, indent="")
    exc.add_note("\n".join([*rows, made] if made else rows))
    vars(exc)["_raised_by_node"] = True


def raised_by_node(exc: BaseException) -> bool:
    """Whether an exception is what a node raised that Python ran; see `annotate`."""
    return "_raised_by_node" in vars(exc)


def _about(value: Any) -> str:
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return f"{value!r} ({type(value).__name__})"
    text = f"{value.dtype} of shape {value.shape}"
    if getattr(value, "ndim", 0) and not value.flags.c_contiguous:
        text += f", strides {value.strides}"
    return f"{text}, value {value}" if value.size <= 3 else text
