"""Serialization of machine code and functions, for the cache on disk.

The format, all integers little-endian and without padding::

    text        u32 n, n bytes of UTF-8
    bytes       u64 n, n bytes
    places      u32 n, n times: text name, u64 offset           a name comes once
    names       u32 n, n times: text

    code        u8 1  image:  bytes data, places exports, places imports,
                      u32 n, n times: u64 offset, u64 target    what `image.Image` says
                u8 2  object file:  bytes data, names exports, names imports

    function    code
                u32 n, n times a value:
                    u8 0  None
                    u8 1  bool: u8 0 or 1
                    u8 2  int: i64
                    u8 3  str: text
                    u8 4  dtype: text, the letter of one of NumPy's own, else its `numpy.dtype.str`
                    u8 5  array: u8 flags (1: in Fortran's order, 2: read only), dtype as above,
                          u8 rank, rank times: u64 length, bytes elements in the order of memory
                u32 n, n times a word of the block (see `entry.EntryCode`):
                    u8 kind: 0 slow, 1 failed, 2 names, 3 null, 8 opened
                    u8 4 integer: i64;  5 cell: i64
                    u8 6 object: u32 number of a value;  7 array: u32 number of an array

    payload     code, or function; nothing follows

`read_code` and `read_function` check all of this, and that every place and word lies in the image;
they return None if a check fails.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from phintys.backends.llvm.machine.image import Code, Image, ObjectFile, is_sound

#: Kinds of words of functions' blocks, in the order of their numbers in the format.
_KINDS = ("slow", "failed", "names", "null", "integer", "cell", "object", "array", "opened")
_PLAIN = ("slow", "failed", "names", "null", "opened")
_WORD = 8

_IMAGE, _OBJECT_FILE = 1, 2
_NONE, _BOOL, _INT, _STR, _DTYPE, _ARRAY = range(6)
_FORTRAN, _READ_ONLY = 1, 2

_DTYPES = re.compile("[<>|]?[biufc][0-9]{1,2}|[?bhilqBHILQefdgFDG]")

_I64, _U64, _U32 = struct.Struct("<q"), struct.Struct("<Q"), struct.Struct("<I")

Words = Sequence[tuple[str, Any]]


class _Bad(Exception):
    """Bytes that do not follow the format."""


# ------------------------------------------------------------------------------------ write


def code_bytes(code: Code) -> bytes:
    """The serialized code."""
    return b"".join(_code(code))


def function_bytes(code: Code, words: Words) -> bytes:
    """The serialized function; `can_be_kept` must be true of ``words``."""
    values: dict[int, tuple[int, Any]] = {}
    table = []
    for kind, value in words:
        table.append(bytes([_KINDS.index(kind)]))
        if kind in ("object", "array"):
            number, _ = values.setdefault(id(value), (len(values), value))
            table.append(_U32.pack(number))
        elif kind not in _PLAIN:
            table.append(_I64.pack(value))
    written = [part for _, value in values.values() for part in _value(value)]
    counts = _U32.pack(len(values)), _U32.pack(len(words))
    return b"".join([*_code(code), counts[0], *written, counts[1], *table])


def can_be_kept(words: Words) -> bool:
    """Whether words refer to no object that exists only in this process."""
    return all(kind not in ("object", "array") or _is_known(value) for kind, value in words)


def _is_known(value: Any) -> bool:
    if isinstance(value, np.dtype):
        return value.kind in "biufc"
    if type(value) is np.ndarray:
        return value.dtype.kind in "biufc" and value.flags.forc
    if type(value) is int:
        return -(2**63) <= value < 2**63
    return value is None or type(value) in (bool, str)


def _code(code: Code) -> Iterable[bytes]:
    if isinstance(code, ObjectFile):
        names = _names(code.exports), _names(code.imports)
        return [bytes([_OBJECT_FILE]), *_bytes(code.data), *names]
    pairs = [n for pair in code.internal.items() for n in pair]
    return [
        bytes([_IMAGE]),
        *_bytes(code.data),
        _places(code.exports),
        _places(code.imports),
        struct.pack(f"<I{len(pairs)}Q", len(code.internal), *pairs),
    ]


def _bytes(data: bytes) -> tuple[bytes, bytes]:
    return _U64.pack(len(data)), data


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return _U32.pack(len(data)) + data


def _names(names: Sequence[str]) -> bytes:
    return _U32.pack(len(names)) + b"".join(map(_text, names))


def _places(places: dict[str, int]) -> bytes:
    parts = (_text(name) + _U64.pack(at) for name, at in places.items())
    return _U32.pack(len(places)) + b"".join(parts)


def _value(value: Any) -> Iterable[bytes]:
    if value is None:
        return [bytes([_NONE])]
    if isinstance(value, bool):
        return [bytes([_BOOL, value])]
    if isinstance(value, int):
        return [bytes([_INT]), _I64.pack(value)]
    if isinstance(value, str):
        return [bytes([_STR]), _text(value)]
    if isinstance(value, np.dtype):
        return [bytes([_DTYPE]), _dtype(value)]
    fortran = value.flags.f_contiguous and not value.flags.c_contiguous
    flags = _FORTRAN * fortran + _READ_ONLY * (not value.flags.writeable)
    shape = struct.pack(f"<B{value.ndim}Q", value.ndim, *value.shape)
    elements = value.tobytes("F" if fortran else "C")
    return [bytes([_ARRAY, flags]), _dtype(value.dtype), shape, *_bytes(elements)]


def _dtype(dtype: np.dtype[Any]) -> bytes:
    return _text(dtype.char if np.dtype(dtype.char) == dtype else dtype.str)


# ------------------------------------------------------------------------------------- read


def read_code(payload: bytes) -> Code | None:
    """The code that `code_bytes` wrote; None if these bytes do not follow the format."""
    return _read(payload, _read_code)


def read_function(payload: bytes, cells: int) -> tuple[Code, Words] | None:
    """Code and words that `function_bytes` wrote; None if these bytes do not follow the format.

    ``cells`` is the number of shared variables that the function has.
    """
    return _read(payload, lambda data: _read_function(data, cells))


def _read(payload: bytes, read: Callable[[_Input], Any]) -> Any:
    data = _Input(payload)
    try:
        found = read(data)
    except (_Bad, struct.error, ValueError, OverflowError, MemoryError):
        return None
    return found if data.at == len(payload) else None


class _Input:
    """A reader of bytes from the front; raises `_Bad` or `struct.error` beyond their end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return value

    def byte(self, limit: int) -> int:
        """Read a byte, which must be less than ``limit``."""
        value = self.take(1)[0]
        _require(value < limit)
        return value

    def numbers(self, count: int) -> tuple[int, ...]:
        """Read ``count`` integers of 64 bits."""
        return struct.unpack(f"<{count}Q", self.take(8 * count))

    def count(self, least: int) -> int:
        """Read the number of items that follow, each of at least ``least`` bytes."""
        value = self.number(_U32)
        _require(value * least <= len(self.data) - self.at)
        return value

    def take(self, size: int) -> bytes:
        """Read ``size`` bytes."""
        start, self.at = self.at, self.at + size
        _require(self.at <= len(self.data))
        return self.data[start : self.at]

    def bytes(self) -> bytes:
        return self.take(self.number(_U64))

    def text(self) -> str:
        return self.take(self.number(_U32)).decode("utf-8", "surrogatepass")


def _require(condition: bool) -> None:
    if not condition:
        raise _Bad


def _read_code(data: _Input) -> Code:
    kind = data.byte(3)
    if kind == _OBJECT_FILE:
        return ObjectFile(data.bytes(), _read_names(data), _read_names(data))
    _require(kind == _IMAGE)
    code = data.bytes()
    exports, imports = _read_places(data), _read_places(data)
    count = data.count(2 * _WORD)
    numbers = data.numbers(2 * count)
    internal = dict(zip(numbers[::2], numbers[1::2]))
    read = Image(code, exports, imports, internal)
    _require(len(internal) == count and is_sound(read))
    return read


def _read_names(data: _Input) -> list[str]:
    return [data.text() for _ in range(data.count(_U32.size))]


def _read_places(data: _Input) -> dict[str, int]:
    count = data.count(_U32.size + _U64.size)
    places = {data.text(): data.number(_U64) for _ in range(count)}
    _require(len(places) == count)
    return places


def _read_function(data: _Input, cells: int) -> tuple[Code, Words]:
    code = _read_code(data)
    values = [_read_value(data) for _ in range(data.count(1))]
    words = [_read_word(data, values, cells) for _ in range(data.count(1))]
    return code, words


def _read_word(data: _Input, values: list[Any], cells: int) -> tuple[str, Any]:
    kind = _KINDS[data.byte(len(_KINDS))]
    if kind in _PLAIN:
        return kind, None
    if kind in ("integer", "cell"):
        number = data.number(_I64)
        _require(kind == "integer" or 0 <= number < cells)
        return kind, number
    number = data.number(_U32)
    _require(number < len(values))
    value = values[number]
    _require(kind == "object" or isinstance(value, np.ndarray))
    return kind, value


def _read_value(data: _Input) -> Any:
    kind = data.byte(6)
    if kind == _NONE:
        return None
    if kind == _BOOL:
        return bool(data.byte(2))
    if kind == _INT:
        return data.number(_I64)
    if kind == _STR:
        return data.text()
    return _read_dtype(data) if kind == _DTYPE else _read_array(data)


def _read_dtype(data: _Input) -> np.dtype[Any]:
    """Read a dtype: NumPy's singleton where there is one, since the routine compares addresses."""
    text = data.text()
    _require(_DTYPES.fullmatch(text) is not None)
    try:
        return np.dtype(text)
    except TypeError as error:  # no such size
        raise _Bad from error


def _read_array(data: _Input) -> np.ndarray[Any, Any]:
    flags, dtype = data.byte(4), _read_dtype(data)
    shape = data.numbers(data.byte(65))
    elements = data.bytes()
    size = dtype.itemsize
    for length in shape:
        size *= length
    _require(size == len(elements))
    array = np.empty(shape, dtype, "F" if flags & _FORTRAN else "C")
    if elements:
        array.reshape(-1, order="A").view(np.uint8)[...] = np.frombuffer(elements, np.uint8)
    array.flags.writeable = not flags & _READ_ONLY
    return array
