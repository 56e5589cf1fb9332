"""Compiling and linking IR, the cache on disk, and the release of code."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

import pytest

from phintys.backends.llvm.machine import jit
from phintys.backends.llvm.machine.target import current
from phintys.backends.llvm.runtime import symbols
from phintys.backends.llvm.vecmath import BOUNDED, CALLED
from phintys.scalar.native import LIBM_CALLS, SCIPY_CALLS

pytestmark = pytest.mark.usefixtures("each_loader")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PHINTYS_CACHE_DIR", str(tmp_path))
    return tmp_path


def source(constant: int) -> str:
    return f"define i64 @f(i64 %x) {{\n  %y = add i64 %x, {constant}\n  ret i64 %y\n}}\n"


def call(library: jit.Library, x: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address("f"))(x)


def files(directory) -> list:
    return [p for p in directory.rglob("*") if p.is_file() and p.suffix != ".id"]


def test_second_compilation_comes_from_the_cache(cache):
    first = jit.compile_ir(source(1))
    second = jit.compile_ir(source(1))
    other = jit.compile_ir(source(2))
    assert (first.cached, second.cached, other.cached) == (False, True, False)
    assert [call(lib, 10) for lib in (first, second, other)] == [11, 11, 12]
    assert len(files(cache)) == 2


@pytest.mark.parametrize("damage", ["empty", "half", "foreign", "flipped", "swapped"])
def test_damaged_files_are_rebuilt(cache, damage):
    jit.compile_ir(source(3))
    (path,) = files(cache)
    whole = path.read_bytes()
    broken = {
        "empty": b"",
        "half": whole[: len(whole) // 2],
        "foreign": b"\x7fELF" + whole,
        "flipped": whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
        "swapped": whole[-20:] + whole[:-20],
    }[damage]
    path.write_bytes(broken)
    library = jit.compile_ir(source(3))
    assert not library.cached and call(library, 1) == 4
    assert path.read_bytes() == whole


def test_a_file_in_place_of_the_directory_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PHINTYS_CACHE_DIR", str(tmp_path / "file"))
    assert call(jit.compile_ir(source(4)), 1) == 5


def test_another_process_compiles_nothing(cache):
    program = (
        "from phintys.backends.llvm.machine.jit import compile_ir\n"
        f"print(compile_ir({source(5)!r}).cached)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [r.stdout.split() for r in runs] == [["False"], ["True"]]


def test_symbols_are_found(cache):
    text = """
declare double @given(double)
declare double @phintys.libm.cbrt(double)
declare double @phintys.exp2.f64.v1(double)
define double @f(double %x) {
  %a = call double @given(double %x)
  %b = call double @phintys.libm.cbrt(double %a)
  %c = call double @phintys.exp2.f64.v1(double %b)
  ret double %c
}
"""
    signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    given = signature(lambda x: x + 20.0)
    address = ctypes.cast(given, ctypes.c_void_p).value
    ours = symbols.resolver(current())

    def resolve(name: str) -> int | None:
        return address if name == "given" else ours(name)

    for cached in (False, True):
        library = jit.compile_ir(text, resolve)
        assert library.cached is cached
        assert signature(library.address("f"))(7.0) == pytest.approx(8.0)


def test_what_is_wrong_is_said(cache):
    with pytest.raises(LookupError, match="nothing_like_it"):
        jit.compile_ir(
            "declare void @nothing_like_it()\n"
            "define void @f() {\n  call void @nothing_like_it()\n  ret void\n}",
        )
    with pytest.raises(RuntimeError, match="expected"):
        jit.compile_ir("define void @f( {")
    with pytest.raises(LookupError, match="no_such"):
        symbols.resolve("phintys.libm.no_such", current())


@pytest.mark.parametrize("name", sorted({*LIBM_CALLS, *SCIPY_CALLS} - (CALLED - {*BOUNDED})))
def test_every_named_function_exists(name):
    library = "special" if name in SCIPY_CALLS else "libm"
    assert symbols.resolve(f"phintys.{library}.{name}", current())


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_dropped_libraries_free_their_memory(cache):
    def resident() -> float:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def cycles(start: int, count: int) -> None:
        for number in range(start, start + count):
            assert call(jit.compile_ir(source(number)), 1) == number + 1
        gc.collect()

    cycles(1000, 100)
    before = resident()
    cycles(2000, 300)
    assert resident() - before < 6  # 20 MB for 1000
