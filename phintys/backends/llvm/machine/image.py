"""Machine code as an image: bytes to copy into memory, and the words in them to relocate.

LLVM writes object files.  `link` lays out the sections of one and applies its relocations once,
when the code is generated; only a table of addresses at the end of the image (like a GOT) depends
on the process, so loading an image (`load`) is a copy and a few stores, and needs neither LLVM nor
a linker.  This makes the first call of a function from the disk cache fast.

Formats: the ELF-64 specification and the System V ABI, AMD64 supplement (relocation types in
section 4.4).  Only the subset that LLVM writes for position-independent code without unwind tables
is supported; anything else raises `UnknownObject`, and the caller lets LLVM link.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sysconfig
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from phintys.config import config


class UnknownObject(Exception):
    """An object file with a feature that `link` does not support."""


class Image(NamedTuple):
    """Linked code.

    Attributes
    ----------
    data
        code, constants and the table of addresses
    exports
        symbol that the object file defines -> offset
    imports
        symbol -> offset of the word that must hold its address
    internal
        offset of a word -> offset that it must point to
    """

    data: bytes
    exports: dict[str, int]
    imports: dict[str, int]
    internal: dict[int, int]


class ObjectFile(NamedTuple):
    """An object file that LLVM links, the symbols it defines, and those it only declares."""

    data: bytes
    exports: list[str]
    imports: list[str]


#: Generated code of a module
Code = Image | ObjectFile


def in_use() -> bool:
    """Whether code is generated and cached as images (by ``config.loader`` and the machine)."""
    return config.loader == "auto" and not refusal()


@cache
def refusal() -> str:
    """The reason why images cannot be loaded in this process; empty if they can."""
    platform = sysconfig.get_platform()
    if platform != "linux-x86_64":
        return f"images are for linux-x86_64, this is {platform}"
    return refused_memory()


@cache
def refused_memory() -> str:
    """The reason why this process cannot execute memory that it has written; empty if it can.

    Tested by trying, because a hardened system may forbid it.  On Windows it is not tried.
    """
    if os.name != "posix":
        return ""
    try:
        Loaded(Image(b"\xc3", {}, {}, {}), lambda name: 0)
    except OSError as error:
        return str(error)
    return ""


# ------------------------------------------------------------------------------------ link

_RELOCATABLE_X86_64 = struct.pack("<HH", 1, 62)  # kind of file and machine
_HEADER, _SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
_WORD = 8
_WRITE, _ALLOC = 0x1, 0x2  # flags of sections
_PROGBITS, _SYMTAB, _RELA, _NOTE = 1, 2, 4, 7  # types of sections
_OTHER_RELOCATIONS = (9, 19, 0x40000014)  # without addends, and packed ones
_SPECIAL = (6, 10)  # types of symbols: thread-local (STT_TLS), resolved at run time (STT_GNU_IFUNC)
_PC32, _GOTPCREL, _PLT32, _ABS64 = 2, 9, 4, 1  # relocation types
_GOTPCRELX, _REX_GOTPCRELX = 41, 42
_JUMP = b"\xff\x25"  # jmp [rip + offset]


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


def link(file: bytes) -> Image:
    """The image of an object file (ELF, x86-64).

    Raises
    ------
    UnknownObject
        for other formats, machines and relocations, and for inconsistent files
    """
    if file[:6] != b"\x7fELF\x02\x01" or file[16:20] != _RELOCATABLE_X86_64:
        raise UnknownObject("not an ELF-64 object file for x86-64")
    try:
        image = _Linker(file).image()
    except (struct.error, IndexError, ValueError) as error:
        raise UnknownObject(f"a damaged object file: {error}") from error
    if not is_sound(image):
        raise UnknownObject("an address outside of what is in memory")
    return image


def is_sound(image: Image) -> bool:
    """Whether the relocated words are disjoint and inside the image, and all offsets inside it."""
    size = len(image.data)
    words = sorted([*image.imports.values(), *image.internal])
    ends = [*words[1:], size]
    return (
        size > 0
        and all(0 <= at <= end - _WORD for at, end in zip(words, ends))
        and all(0 <= at < size for at in image.exports.values())
        and all(0 <= target <= size for target in image.internal.values())
    )


class _Linker:
    def __init__(self, file: bytes) -> None:
        self.file = file
        start, count, names = (
            struct.unpack_from("<Q", file, 40)[0],
            *struct.unpack_from("<HH", file, 60),
        )
        headers = self.contents(start, _HEADER.size * count)
        self.sections = [_Section(*fields) for fields in _HEADER.iter_unpack(headers)]
        self.names = self.sections[names]
        self.data = bytearray()
        self.places: dict[int, int] = {}  # section -> offset in the image
        self.words: dict[_Symbol, int] = {}  # symbol -> its word in the table of addresses
        self.jumps: dict[_Symbol, int] = {}  # symbol -> a jump to it
        self.internal: dict[int, int] = {}

    def contents(self, offset: int, size: int) -> bytes:
        """A range of bytes of the file; UnknownObject beyond its end."""
        if offset + size > len(self.file):
            raise UnknownObject("an object file that is cut off")
        return self.file[offset : offset + size]

    def image(self) -> Image:
        self.lay_out()
        table = next((s for s in self.sections if s.type == _SYMTAB), None)
        if table is None:
            raise UnknownObject("an object file without symbols")
        entries = self.contents(table.offset, table.size)
        symbols = [_Symbol(*fields) for fields in _SYMBOL.iter_unpack(entries)]
        for section in self.sections:
            if section.info not in self.places:
                continue
            if section.type in _OTHER_RELOCATIONS:
                raise UnknownObject(f"relocations in a section of type {section.type}")
            if section.type == _RELA:
                self.relocate(section, symbols)
        strings = self.sections[table.link]
        exports = {
            self.text(strings, s.name): self.address(s)
            for s in symbols
            if s.name and s.section in self.places and s.info >> 4
        }
        outside = [s for s in self.words if not s.section]
        imports = {self.text(strings, s.name): self.words[s] for s in outside}
        if "" in imports or len(imports) != len(outside):
            raise UnknownObject("imports without names of their own")
        defined = {at: self.address(s) for s, at in self.words.items() if s.section}
        return Image(bytes(self.data), exports, imports, self.internal | defined)

    def lay_out(self) -> None:
        """Copy the allocated sections into the image, one after the other."""
        for i, section in enumerate(self.sections):
            name = self.text(self.names, section.name)
            if not section.flags & _ALLOC or not section.size or name.startswith(".eh_frame"):
                continue
            # images are read-only once the constants that hold addresses are relocated
            written = section.flags & _WRITE and not name.startswith(".data.rel.ro")
            if written or section.type not in (_PROGBITS, _NOTE):
                raise UnknownObject(f"memory that is written, {name}")
            if section.align > mmap.PAGESIZE:  # images start at a page
                raise UnknownObject(f"a section aligned to {section.align} bytes")
            self.align(section.align)
            self.places[i] = len(self.data)
            self.data += self.contents(section.offset, section.size)

    def relocate(self, section: _Section, symbols: list[_Symbol]) -> None:
        base, size = self.places[section.info], self.sections[section.info].size
        entries = self.contents(section.offset, section.size)
        for offset, info, addend in struct.iter_unpack("<QQq", entries):
            symbol, kind, at = symbols[info >> 32], info & 0xFFFFFFFF, base + offset
            if offset + (_WORD if kind == _ABS64 else 4) > size:
                raise UnknownObject("a relocation outside of its section")
            if kind == _ABS64:
                if not symbol.section:
                    raise UnknownObject("the address of an import among constants")
                self.internal[at] = self.address(symbol) + addend
            elif kind == _PC32 or (kind == _PLT32 and symbol.section):
                struct.pack_into("<i", self.data, at, self.address(symbol) + addend - at)
            elif kind == _PLT32:
                struct.pack_into("<i", self.data, at, self.jump(symbol) + addend - at)
            elif kind in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):
                struct.pack_into("<i", self.data, at, self.word(symbol) + addend - at)
            else:
                raise UnknownObject(f"a relocation of type {kind}")

    def address(self, symbol: _Symbol) -> int:
        """The offset in the image of a symbol that the file defines."""
        if symbol.section not in self.places or symbol.info & 15 in _SPECIAL:
            raise UnknownObject("a symbol that is not in memory, or has an address only later")
        if symbol.value > self.sections[symbol.section].size:
            raise UnknownObject("a symbol outside of its section")
        return self.places[symbol.section] + symbol.value

    def word(self, symbol: _Symbol) -> int:
        """The offset of the word in the table of addresses for a symbol."""
        at = self.words.get(symbol)
        if at is None:
            self.align(_WORD)
            at = self.words[symbol] = len(self.data)
            self.data += bytes(_WORD)
        return at

    def jump(self, symbol: _Symbol) -> int:
        """The offset of a jump to an imported function, like an entry of a PLT."""
        at = self.jumps.get(symbol)
        if at is None:
            word = self.word(symbol)
            at = self.jumps[symbol] = len(self.data)
            self.data += _JUMP + struct.pack("<i", word - at - 6)
        return at

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % max(1, size))

    def text(self, strings: _Section, at: int) -> str:
        start = strings.offset + at
        return self.file[start : self.file.index(b"\0", start)].decode()


# ------------------------------------------------------------------------------------ load


class Loaded:
    """An image in memory; it owns the memory, so it must outlive all calls of the code."""

    def __init__(self, image: Image, address_of: Callable[[str], int]) -> None:
        self.size = size = len(image.data)
        self._memory = mmap.mmap(-1, size)
        self._view = (ctypes.c_char * size).from_buffer(self._memory)
        self._base = ctypes.addressof(self._view)
        self._exports = image.exports
        ctypes.memmove(self._base, image.data, size)
        for name, at in image.imports.items():
            self._store(at, address_of(name))
        for at, target in image.internal.items():
            self._store(at, self._base + target)
        read_and_execute = mmap.PROT_READ | mmap.PROT_EXEC
        if _protect()(self._base, size, read_and_execute) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"memory cannot be made executable ({os.strerror(error)})")

    def _store(self, at: int, value: int) -> None:
        ctypes.c_size_t.from_address(self._base + at).value = value

    def __getitem__(self, symbol: str) -> int:
        """The address of an exported symbol; KeyError for others."""
        return self._base + self._exports[symbol]


@cache
def _protect() -> Any:
    return ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, use_errno=True
    )(("mprotect", ctypes.CDLL(None)))
