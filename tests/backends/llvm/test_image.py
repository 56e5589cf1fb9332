"""Images of machine code: linking and loading without LLVM, compared with LLVM's own linker."""

from __future__ import annotations

import ctypes
import struct

import pytest

from phintys.backends.llvm import image, jit, stored
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
    library = jit.load(code, externals)
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
        library = jit.load(code, outside)
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
