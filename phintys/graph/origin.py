"""The source location in the user's program at which a node was made, its *origin*.

To record it costs little: an origin is a code object and the offset of an instruction.  File, line
and source text are looked up when a message is printed.
"""

from __future__ import annotations

import linecache
import os
import threading
from abc import ABCMeta
from collections.abc import Sequence
from itertools import repeat
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import CodeType, FrameType
from typing import Any, NamedTuple

from phintys.config import config
from phintys.graph.labels import name_in_messages
from phintys.memo import Memo

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: By file name, whether a code object belongs to this package.  Code objects themselves would be
#: slow keys, because their hash is computed from their contents.
_is_ours: Memo[str, bool] = Memo(1024, "files")

#: (code object, offset of the instruction); resolved by `locate`.
Origin = tuple[CodeType, int]


#: By identity of the code, which the value keeps alive: nodes made by one line share its origin.
_origins: Memo[tuple[int, int], Origin] = Memo(1024, "origins")


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
    """The origin that `inherit` sets for the nodes of this thread; None outside of it."""

    origin: Origin | Location | None = None


_inherited = _Inherited()

#: the file of `ABCMeta`, which makes the classes that users define
_METACLASS = ABCMeta.__new__.__code__.co_filename


def user_origin() -> Origin | Location | None:
    """The origin of a new node: that set by `inherit`, else the innermost frame of user code."""
    origin = _inherited.origin
    if origin is not None:
        return origin
    frame: FrameType | None = _getframe(2)
    while frame is not None:
        code = frame.f_code
        ours = _is_ours[code.co_filename]
        if ours is None:
            ours = _is_of_package(code.co_filename)
        if not ours and not (code.co_name == "make_node" and _is_called_by_package(frame)):
            key = id(code), frame.f_lasti
            return _origins[key] or _origins.keep(key, (code, frame.f_lasti))
        frame = frame.f_back
    return None


def stacklevel() -> int:
    """The ``stacklevel`` of a warning of the caller, for the innermost line of user code."""
    level, frame = 1, _getframe(1)
    while frame.f_back is not None and (
        _is_of_package(frame.f_code.co_filename) or frame.f_code.co_filename == _METACLASS
    ):
        level, frame = level + 1, frame.f_back
    return level


def _is_of_package(file: str) -> bool:
    ours = _is_ours[file]
    return _is_ours.keep(file, file.startswith(_PACKAGE)) if ours is None else ours


def _is_called_by_package(frame: FrameType) -> bool:
    """Whether the caller of a frame is a function of this package.

    `Op.__call__` calls the ``make_node`` of a user's op.  The origin is then the line that applies
    the op, which says more than a line in ``make_node``.
    """
    caller = frame.f_back
    return caller is not None and _is_of_package(caller.f_code.co_filename)


class inherit:
    """A context manager in which nodes made by this thread get ``origin``, if it is not None.

    Rewriting and differentiation use it, so that a new node has the origin of the node it replaces
    or differentiates.
    """

    __slots__ = ("origin", "saved")

    def __init__(self, origin: Origin | Location | None) -> None:
        self.origin = origin

    def __enter__(self) -> None:
        self.saved, _inherited.origin = _inherited.origin, self.origin

    def move(self, origin: Origin | Location | None) -> None:
        """Change the origin inside the context."""
        _inherited.origin = origin

    def __exit__(self, *exc: object) -> None:
        _inherited.origin = self.saved


def locate(origin: Origin | Location | None) -> Location | None:
    """File, line and function of an origin; None for None."""
    if origin is None or isinstance(origin, Location):
        return origin
    key = _Identity(origin[0]), origin[1]
    return _locations[key] or _locations.keep(key, _resolve(*origin))


class _Identity:
    """A code object as a key by identity; its own hash is slow: it covers the contents."""

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


#: lines of a program: file, line, function, text
Trace = list[list[tuple[str, int, str, str]]]


def trace_of(origin: Origin | Location | None) -> Trace:
    """An origin in the form of PyTensor's ``tag.trace``; empty if it is not known.

    Empty with ``config.traceback__limit = 0``, too.
    """
    where = locate(origin) if config.traceback__limit else None
    return [] if where is None else [[(where.file, where.line, where.function, where.text)]]


def describe(origin: Any, indent: str = "  ") -> str:
    """Text that says where something was made, with the source line; empty if it is not known.

    Empty with ``config.traceback__limit = 0``, too.
    """
    where = locate(origin) if config.traceback__limit else None
    if where is None:
        return ""
    text = f"\n{indent}  {where.text}" if where.text else ""
    return f"{indent}made at {where.file}:{where.line}, in {where.function}{text}"


def annotate(
    exc: BaseException, node: Any, values: Sequence[Any], labels: Sequence[str | None] = ()
) -> None:
    """Add a note to an exception that ``perform`` raised: the node, its inputs, its origin.

    ``labels`` are what inputs are called, or None, instead of how they print.
    ``config.exception_verbosity`` says how much: ``medium`` adds types and strides, ``high`` adds
    values and the expression.
    """
    level = config.exception_verbosity
    lines = [f"while computing {node.op} of"]
    for v, x, label in zip(node.inputs, values, labels or repeat(None)):
        type_ = "" if level == "low" else f" (type {v.type})"
        lines.append(
            f"  {label or name_in_messages(v)}{type_} = {_summary(x, level, _is_defined(v))}"
        )
    if level == "high":
        lines.append(node.outputs[0].dprint(file="str").rstrip())
    made = describe(node.origin, indent="")
    exc.add_note("\n".join([*lines, made] if made else lines))
    vars(exc)["_raised_by_node"] = True


def raised_by_node(exc: BaseException) -> bool:
    """Whether `annotate` was called on an exception: a node's ``perform`` raised it."""
    return "_raised_by_node" in vars(exc)


def _is_defined(v: Any) -> bool:
    """Whether the elements of a value are not those of an array that is written later."""
    while v.owner is not None and v.owner.inputs:
        if v.owner.op.has_undefined_values:
            return False
        v = v.owner.inputs[0]
    return True


def _summary(value: Any, level: str = "low", is_defined: bool = True) -> str:
    """dtype, shape and strides of an array, and a short value; the repr of another object.

    Strides of contiguous arrays are left out at the lowest level, long values below the highest,
    values that are not defined always.
    """
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return f"{value!r} ({type(value).__name__})"
    text = f"{value.dtype} of shape {value.shape}"
    strides = getattr(value, "strides", None)
    if strides and (level != "low" or not value.flags.c_contiguous):
        text += f", strides {strides}"
    is_shown = is_defined and (value.size <= 3 or level == "high")
    return f"{text}, value {value}" if is_shown else text
