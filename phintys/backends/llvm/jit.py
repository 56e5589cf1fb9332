"""From IR text to machine code: parse, verify, generate, link; with a cache on disk.

`compile_ir` gives a `Library`; its code lives as long as the object.  The cache holds object
files, which contain no address: everything outside is a symbol, resolved when linked.

>>> text = '''
... define double @twice(double %x) {
...   %y = fadd double %x, %x
...   ret double %y
... }'''
>>> library = compile_ir(text, ["twice"])
>>> import ctypes
>>> ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("twice"))(21.0)
42.0
"""

from __future__ import annotations

import itertools
import json
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from phintys.backends import code_cache
from phintys.backends.llvm import symbols
from phintys.backends.llvm.target import cpu, target_machine

_numbers = itertools.count()


class Library:
    """Linked machine code.  Dropping it frees the code, so whoever runs the code keeps it.

    ``cached`` tells whether the object file came from the cache.
    """

    def __init__(self, tracker: Any, cached: bool) -> None:
        self._tracker = tracker
        self.cached = cached

    def address(self, symbol: str) -> int:
        """The address of an exported symbol; KeyError for others."""
        return int(self._tracker[symbol])


def compile_ir(
    text: str, exports: Iterable[str], externals: Mapping[str, int] | None = None
) -> Library:
    """Compile and link a module.

    ``exports`` are the symbols whose address is wanted.  Symbols that the module only declares are
    looked up in ``externals`` (name -> address), then among libm's and SciPy's functions (see
    `symbols`), then in the process.

    Raises
    ------
    RuntimeError
        If the text is not valid IR.
    LookupError
        If a symbol cannot be found.
    """
    key = _key(text)
    entry = _read(key)
    cached = entry is not None
    if entry is None:
        entry = _generate(text)
        _write(key, entry)
    return Library(_link(entry, exports, externals or {}), cached)


# -------------------------------------------------------------------------- code generation

#: what is kept of a module: names it only declares, object file
Entry = tuple[list[str], bytes]


def _generate(text: str) -> Entry:
    import llvmlite.binding as llvm

    machine = target_machine()
    # a private context: what the global one interns is never freed
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.verify()
    outside = [*module.functions, *module.global_variables]
    names = [v.name for v in outside if v.is_declaration and not v.name.startswith("llvm.")]
    return names, machine.emit_object(module)


@cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler(target_machine())


def _link(entry: Entry, exports: Iterable[str], externals: Mapping[str, int]) -> Any:
    import llvmlite.binding as llvm

    names, image = entry
    builder = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
    for name in names:
        address = externals.get(name) or symbols.resolve(name) or llvm.address_of_symbol(name)
        if not address:
            raise LookupError(f"the code refers to {name!r}, which is nowhere in this process")
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    return builder.link(_linker(), f"phintys.{next(_numbers)}")


# ------------------------------------------------------------------------------- the cache


@cache
def _surroundings() -> str:
    """Everything but the text that the machine code depends on.

    Our own version is not among it: whatever changes the code changes the text.
    """
    import llvmlite
    import llvmlite.binding as llvm
    import numpy

    abi = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    parts = [*cpu(), llvm.get_process_triple(), llvmlite.__version__, llvm.llvm_version_info]
    return repr([*parts, abi, numpy.__version__.split(".")[:2]])


def _key(text: str) -> str:
    return f"{code_cache.key_of(_surroundings(), text)}.o"


def _read(key: str) -> Entry | None:
    payload = code_cache.read(key)
    if payload is None:
        return None
    head, _, image = payload.partition(b"\n")
    return json.loads(head), image


def _write(key: str, entry: Entry) -> None:
    code_cache.write(key, json.dumps(entry[0]).encode() + b"\n" + entry[1])
