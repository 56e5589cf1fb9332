"""Images of machine code: linking and loading without LLVM, compared with LLVM's own linker."""

from __future__ import annotations

import ctypes
import struct
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phintys.backends.llvm.machine import image, jit, stored
from phintys.config import config

pytestmark = pytest.mark.skipif(bool(image.refusal()), reason="images are for Linux on x86-64")

# calls, data of its own, an array of addresses, the address of something outside
PROGRAM = """
@table = private constant [3 x double] [double 1.0, double 10.0, double 100.0]
@functions = internal constant [2 x ptr] [ptr @plain, ptr @scaled]
@outside.data = external global i64
declare double @outside(double)
define internal double @plain(double %x) noinline {
  %y = call double @outside(double %x)
  ret double %y
}
define internal double @scaled(double %x) noinline {
  %i = load i64, ptr @outside.data
  %at = getelementptr double, ptr @table, i64 %i
  %factor = load double, ptr %at
  %y = fmul double %x, %factor
  ret double %y
}
define double @f(double %x, i64 %which) nounwind {
  %at = getelementptr ptr, ptr @functions, i64 %which
  %function = load ptr, ptr %at
  %y = call double %function(double %x)
  ret double %y
}
define double @g(double %x) nounwind {
  %a = call double @f(double %x, i64 0)
  %b = call double @f(double %x, i64 1)
  %c = fadd double %a, %b
  ret double %c
}
"""
UNARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
BINARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)


def checked(code: jit.Code) -> None:
    number = ctypes.c_int64(2)
    given = UNARY(lambda x: x + 0.5)
    externals = {
        "outside": ctypes.cast(given, ctypes.c_void_p).value,
        "outside.data": ctypes.addressof(number),
    }
    library = jit.load(code, externals.get)
    f, g = BINARY(library.address("f")), UNARY(library.address("g"))
    assert (f(3.0, 0), f(3.0, 1), g(3.0)) == (3.5, 300.0, 303.5)
    number.value = 1
    assert g(3.0) == 33.5
    with pytest.raises(KeyError):
        library.address("plain")


def test_an_image_computes_what_llvm_links():
    code = jit.generate(PROGRAM)
    assert isinstance(code, image.Image) and set(code.exports) == {"f", "g"}
    assert set(code.imports) == {"outside", "outside.data"} and code.internal
    checked(code)
    checked(stored.read_code(stored.code_bytes(code)))
    with config.change_flags(loader="llvm"):
        code = jit.generate(PROGRAM)
    assert isinstance(code, jit.ObjectFile)
    checked(code)
    checked(stored.read_code(stored.code_bytes(code)))


def test_two_copies_are_independent():
    code = jit.generate(PROGRAM)
    for offset in (1.0, 2.0):
        given = UNARY(lambda x, offset=offset: x + offset)
        zero = ctypes.c_int64(0)
        outside = {
            "outside": ctypes.cast(given, ctypes.c_void_p).value,
            "outside.data": ctypes.addressof(zero),
        }
        library = jit.load(code, outside.get)
        assert UNARY(library.address("g"))(1.0) == 2.0 + offset


def test_what_is_not_known_is_refused():
    with pytest.raises(image.UnknownObject, match="ELF"):
        image.link(b"MZ" + bytes(100))
    other = bytearray(b"\x7fELF\x02\x01" + bytes(100))
    struct.pack_into("<H", other, 18, 183)  # AArch64
    with pytest.raises(image.UnknownObject, match="x86-64"):
        image.link(bytes(other))
    code = jit.generate(
        "@counter = internal global i64 0\n"
        "define i64 @f() {\n  %x = load i64, ptr @counter\n  %y = add i64 %x, 1\n"
        "  store i64 %y, ptr @counter\n  ret i64 %y\n}"
    )
    assert isinstance(code, jit.ObjectFile), "memory that is written must not be in an image"
    library = jit.load(code)
    f = ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("f"))
    assert (f(), f()) == (1, 2)


# ----------------------------------------------------------------- object files that are damaged

HEADER, SYMBOL, RELOCATION = (struct.Struct(f) for f in ("<IIQQQQIIQQ", "<IBBHQQ", "<QQq"))
TYPE, FLAGS, OFFSET, SIZE, LINK, INFO, ALIGN = 1, 2, 4, 5, 6, 7, 8  # fields of a section's header


@cache
def object_file() -> bytes:
    with config.change_flags(loader="llvm"):
        code = jit.generate(PROGRAM)
    assert isinstance(code, jit.ObjectFile)
    return code.data


class ObjectFile:
    """The object file of `PROGRAM`, whose tables can be changed."""

    def __init__(self) -> None:
        self.data = bytearray(object_file())
        start, count = struct.unpack_from("<Q", self.data, 40)[0], self.data[60]
        self.headers = [start + HEADER.size * i for i in range(count)]

    def sections(self, kind: int) -> list[int]:
        """Where the headers of a type are."""
        return [at for at in self.headers if HEADER.unpack_from(self.data, at)[TYPE] == kind]

    def entries(self, kind: int, entry: struct.Struct) -> list[int]:
        """Where the entries of all tables of a type are."""
        tables = [HEADER.unpack_from(self.data, at) for at in self.sections(kind)]
        return [at for t in tables for at in range(t[OFFSET], t[OFFSET] + t[SIZE], entry.size)]

    def change(self, entry: struct.Struct, at: int, field: int, value: int) -> None:
        fields = list(entry.unpack_from(self.data, at))
        fields[field] = value
        entry.pack_into(self.data, at, *fields)

    def outcome(self) -> image.Image | None:
        """What is linked; None if it is refused."""
        try:
            return image.link(bytes(self.data))
        except image.UnknownObject:
            return None


def is_sound(code: image.Image) -> bool:
    """What `image.is_sound` says, byte by byte."""
    size = len(code.data)
    written = [at + k for at in [*code.imports.values(), *code.internal] for k in range(8)]
    return (
        len(set(written)) == len(written)
        and all(0 <= byte < size for byte in written)
        and all(0 <= at < size for at in code.exports.values())
        and all(0 <= target <= size for target in code.internal.values())
    )


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damaged_object_files_are_refused_or_linked_soundly(data):
    file = ObjectFile()
    interesting = st.sampled_from([0, 1, 2, 4, 8, 9, 0x7F, 0x80, 0xFF])
    tables = [*file.headers, *file.entries(2, SYMBOL), *file.entries(4, RELOCATION)]
    inside = st.sampled_from(tables).flatmap(lambda at: st.integers(at, at + 23))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.one_of(inside, st.integers(0, len(file.data) - 1)))
        file.data[at] = data.draw(st.one_of(interesting, st.integers(0, 255)))
    if data.draw(st.booleans()):
        del file.data[data.draw(st.integers(0, len(file.data))) :]
    found = file.outcome()
    assert found is None or is_sound(found)


def test_every_length_of_an_object_file():
    whole = ObjectFile()
    full = whole.outcome()
    assert full is not None
    for length in range(len(whole.data)):
        cut = ObjectFile.__new__(ObjectFile)
        cut.data = whole.data[:length]
        assert cut.outcome() is None, "section headers are last in what LLVM writes"


def relocations(field: int, value: int):
    def change(file: ObjectFile) -> None:
        for at in file.entries(4, RELOCATION):
            file.change(RELOCATION, at, field, value)

    return change


def symbols(field: int, value: int, only=lambda fields: True):
    def change(file: ObjectFile) -> None:
        for at in file.entries(2, SYMBOL):
            if only(SYMBOL.unpack_from(file.data, at)):
                file.change(SYMBOL, at, field, value)

    return change


def headers(kind: int, field: int, value: int):
    def change(file: ObjectFile) -> None:
        for at in file.sections(kind):
            file.change(HEADER, at, field, value)

    return change


def is_outside(fields) -> bool:
    return fields[0] and not fields[3]


def one_name(file: ObjectFile) -> None:
    """Symbols that differ in size alone."""
    symbols(0, 1, is_outside)(file)
    for size, at in enumerate(file.entries(2, SYMBOL)):
        file.change(SYMBOL, at, 5, size)


WRONG = {
    "relocations beyond their section": relocations(0, 2**20),
    "relocations far away": relocations(0, 2**64 - 4),
    "a type of relocations": relocations(1, 1 << 32 | 77),
    "relocations of a symbol that is not there": relocations(1, 10**6 << 32 | 2),
    "addends out of all": relocations(2, -(2**63)),
    "symbols beyond their section": symbols(4, 2**20, lambda f: f[3] and f[1] >> 4),
    "symbols of threads": symbols(1, 0x16, lambda f: f[3] and f[1] >> 4),
    "functions that are chosen at run time": symbols(1, 0x1A, lambda f: f[3] and f[1] >> 4),
    "imports without a name": symbols(0, 0, is_outside),
    "imports of one name": one_name,
    "names beyond the file": symbols(0, 2**31, is_outside),
    "sections beyond the file": headers(1, OFFSET, 2**62),
    "sections larger than the file": headers(1, SIZE, 2**62),
    "alignment of more than a page": headers(1, ALIGN, 2**40),
    "memory that is written": headers(1, FLAGS, 3),
    "memory of zeros": headers(1, TYPE, 8),
    "relocations without addends": headers(4, TYPE, 9),
    "no symbols": headers(2, TYPE, 0),
    "symbols cut off": headers(2, SIZE, 25),
    "no such names": headers(2, LINK, 200),
    "more sections than there are": lambda file: struct.pack_into("<H", file.data, 60, 60000),
    "no such names of sections": lambda file: struct.pack_into("<H", file.data, 62, 0xFFFF),
    "an executable": lambda file: struct.pack_into("<H", file.data, 16, 2),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_contradicts_itself_is_refused(wrong):
    file = ObjectFile()
    assert file.outcome() is not None
    WRONG[wrong](file)
    assert file.outcome() is None


def test_data_elsewhere_that_code_addresses_itself():
    """It may be too far away, and a jump in its place would be read as data."""
    code = jit.generate(
        "@number = external dso_local global i64\n"
        "define i64 @f() {\n  %x = load i64, ptr @number\n  ret i64 %x\n}"
    )
    assert isinstance(code, jit.ObjectFile)
