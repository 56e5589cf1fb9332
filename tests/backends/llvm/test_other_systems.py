"""Object files for systems that the tests do not run on: what they refer to, and how.

The code is generated for them here and looked at; nothing of it is run.
"""

from __future__ import annotations

import struct
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.backends.llvm.machine import jit
from phintys.backends.llvm.machine.target import Target
from phintys.backends.llvm.routine.entry import emit_entry
from phintys.backends.llvm.routine.module import module_text
from phintys.backends.llvm.runtime import callable as native_callable
from phintys.backends.llvm.runtime import libraries
from phintys.errors import UnsupportedError

SYSTEMS = {
    "x86_64-pc-windows-msvc": "x86-64-v3",
    "aarch64-pc-windows-msvc": "generic",
    "x86_64-apple-darwin": "x86-64-v3",
    "arm64-apple-darwin": "apple-m1",
    "aarch64-unknown-linux-gnu": "generic",
}
#: What an object file may refer to that its module does not declare: functions that LLVM makes of
#: its intrinsics, which every C library has, and what `jit` defines on Windows.
OWN = {"memcpy", "memset", "memmove"}
WINDOWS = {"__chkstk", "_fltused"}


@cache
def texts() -> dict[str, str]:
    """Modules with all that the entry routine, kernels and the runtime refer to."""
    x, y = pt.dmatrix("x"), pt.tensor("y", shape=(40, 40), dtype="float32")
    f = phintys.function(
        [x, y],
        [pt.tanh(x).sum(0), x @ x, pt.softmax(x, axis=1), pt.exp(y) @ y, pt.arcsin(y), y[::2] * 2],
    )
    return {
        "function": module_text(emit_entry(f.program)),
        "runtime": libraries._runtime_text(),
    }


@pytest.fixture(params=SYSTEMS)
def machine(request):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(request.param)
    except RuntimeError:
        pytest.skip(f"this LLVM generates no code for {request.param}")
    return target.create_target_machine(
        cpu=SYSTEMS[request.param], opt=1, reloc="pic", codemodel="small"
    )


def declared(module) -> set[str]:
    outside = [*module.functions, *module.global_variables]
    return {v.name for v in outside if v.is_declaration and not v.name.startswith("llvm.")}


@pytest.mark.parametrize("name", ["function", "runtime"])
def test_object_files_refer_to_what_is_provided(machine, name):
    module = jit.parse(texts()[name])
    file = machine.emit_object(module)
    known = declared(module) | OWN
    if "windows" in machine.triple:
        undefined, sections = coff(file)
        assert undefined <= known | WINDOWS
        assert not [s for s in sections if s.startswith((".pdata", ".xdata"))], "unwind tables"
    elif "apple" in machine.triple:
        assert file[:4] == b"\xcf\xfa\xed\xfe"  # 64-bit Mach-O
        prefixed = {s.removeprefix("_") for s in mach_o(file)}
        assert prefixed <= known and len(prefixed) > 5
    else:
        assert file[:4] == b"\x7fELF" and struct.unpack_from("<H", file, 18)[0] == 183


def coff(file: bytes) -> tuple[set[str], list[str]]:
    """Names of undefined symbols, and of sections that are not empty."""
    _, n_sections, _, table, count, optional, _ = struct.unpack_from("<HHIIIHH", file)
    strings = table + 18 * count

    def text(field: bytes) -> str:
        if field[:4] == bytes(4):
            start = strings + struct.unpack("<I", field[4:])[0]
            return file[start : file.index(b"\0", start)].decode()
        return field.rstrip(b"\0").decode()

    undefined, position = set(), 0
    while position < count:
        row = file[table + 18 * position : table + 18 * position + 18]
        _, section, _, storage, auxiliary = struct.unpack("<IhHBB", row[8:])
        if section == 0 and storage == 2:  # external
            undefined.add(text(row[:8]))
        position += 1 + auxiliary
    rows = [file[20 + optional + 40 * i :][:40] for i in range(n_sections)]
    sizes = [struct.unpack_from("<I", row, 16)[0] for row in rows]
    return undefined, [text(row[:8]) for row, size in zip(rows, sizes) if size]


def mach_o(file: bytes) -> set[str]:
    """Names of undefined symbols."""
    count, at = struct.unpack_from("<I", file, 16)[0], 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", file, at)
        if command == 2:  # the symbol table
            table, symbols, strings, _ = struct.unpack_from("<IIII", file, at + 8)
            rows = struct.iter_unpack("<IBBHQ", file[table : table + 16 * symbols])
            return {_string(file, strings + row[0]) for row in rows if row[1] & 0x0E == 0}
        at += size
    return set()


def _string(file: bytes, start: int) -> str:
    return file[start : file.index(b"\0", start)].decode()


@pytest.mark.parametrize("name", ["function", "runtime"])
def test_object_files_for_windows_can_be_linked(name):
    """By the linker that `jit` takes: relocations reach their targets, far away ones too."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "x86_64-pc-windows-msvc"
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this LLVM generates no code for {triple}")
    machine = target.create_target_machine(cpu=SYSTEMS[triple], opt=1, reloc="pic")
    module = jit.parse(texts()[name])
    builder = llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module))
    for number, symbol in enumerate(sorted(declared(module) | OWN | WINDOWS)):
        builder.import_symbol(symbol, 0x1000 + 16 * number)
    symbol = {"function": "phintys.entry", "runtime": "phintys_miss"}[name]
    builder.export_symbol(symbol)
    with llvm.create_lljit_compiler(machine, use_jit_link=True) as linker:
        assert builder.link(linker, "windows")[symbol]


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "arm64-apple-darwin23.0.0"])
def test_arm_has_fused_multiplication_without_being_asked(triple):
    """In an emulator or a container LLVM may find no features of the processor."""
    target = Target("native", 0)
    target.__dict__.update(triple=triple, features="-aes,-rand,-sha2,-sve")
    assert target.has_fma and target.vector_bits == 128 and target.registers == 32


@pytest.mark.parametrize(
    "place, name, value",
    [
        ("sys", "implementation", SimpleNamespace(name="pypy")),
        ("sys", "byteorder", "big"),
        ("ctypes", "sizeof", lambda kind: 4),
    ],
)
def test_other_interpreters_are_refused(monkeypatch, place, name, value):
    monkeypatch.setattr(getattr(native_callable, place), name, value)
    with pytest.raises(UnsupportedError, match=r"64-bit CPython.*FAST_COMPILE"):
        native_callable._check_layout()
    monkeypatch.undo()
    x = pt.dvector("x")
    assert phintys.function([x], x.sum())(np.ones(3)) == 3 and sys.maxsize > 2**32
