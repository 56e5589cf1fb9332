"""From IR text to machine code: parse, verify, generate, link; with a cache on disk.

`compile_ir` gives a `Library`; its code lives as long as the object.  What is generated, and kept
in the cache, contains no address: everything outside is a symbol, resolved when it is loaded.  It
is an `image.Image` where those are known, else an object file, which LLVM links.

The addresses of symbols come from a `Resolver` that the caller gives; what it does not know is
looked up in the process.

>>> text = '''
... define double @twice(double %x) {
...   %y = fadd double %x, %x
...   ret double %y
... }'''
>>> library = compile_ir(text)
>>> import ctypes
>>> ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("twice"))(21.0)
42.0
"""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from phintys.backends import code_cache
from phintys.backends.llvm.machine import image, process
from phintys.backends.llvm.machine.image import Code, Image, ObjectFile
from phintys.backends.llvm.machine.stored import code_bytes, read_code
from phintys.backends.llvm.machine.target import OPTIMISED, Target, current, surroundings
from phintys.backends.once import once

#: Gives the address of a symbol; None (or 0) for a name that it does not know.
Resolver = Callable[[str], int | None]


def _knows_nothing(name: str) -> None:
    """The resolver of code that refers to the process alone."""


class Library:
    """Linked machine code.  Dropping it frees the code, so whoever runs the code keeps it.

    While the interpreter ends nothing is freed: a daemon thread may still run the code.

    ``cached`` tells whether the object file came from the cache.
    """

    def __init__(self, tracker: Any, cached: bool) -> None:
        self._tracker = tracker
        self.cached = cached

    @property
    def loader(self) -> str:
        """What put the code into memory: ``image`` or ``llvm``."""
        return "image" if isinstance(self._tracker, image.Loaded) else "llvm"

    @property
    def size(self) -> int:
        """Bytes of the code; 0 if LLVM keeps them to itself."""
        return self._tracker.size if isinstance(self._tracker, image.Loaded) else 0

    def address(self, symbol: str) -> int:
        """The address of an exported symbol; KeyError for others."""
        return int(self._tracker[symbol])

    # what it needs is bound here: at the end modules may be gone already
    def __del__(
        self,
        ending: Callable[[], bool] = sys.is_finalizing,
        keep: Any = ctypes.pythonapi.Py_IncRef,
        reference: Any = ctypes.py_object,
    ) -> None:
        if ending():
            keep(reference(self._tracker))


def compile_ir(
    text: str | Callable[[], str],
    resolve: Resolver = _knows_nothing,
    name: str | None = None,
    level: int = OPTIMISED,
    target: Target | None = None,
) -> Library:
    """Compile and link a module.

    Parameters
    ----------
    text
        the module, or a function that makes it, called if it is not in the cache
    resolve
        gives addresses of symbols that the module only declares; others are looked up in the
        process
    name
        of a module that this package always makes in the same way: the cache is asked for it
        by name and without its text
    level
        how much to optimise, see `target`
    target
        the machine that code is made for; if not given, that of the settings

    Raises
    ------
    RuntimeError
        If the text is not valid IR.
    LookupError
        If a symbol cannot be found.
    """
    target = target or current()
    if name is None and not isinstance(text, str):
        text = text()
    key = ("text", text) if isinstance(text, str) else ("name", name or "")
    file = code_cache.name_of("o", surroundings(target), str(level), *key)
    payload = code_cache.read(file)
    code = None if payload is None else read_code(payload)
    library = None if code is None else load_kept(code, resolve)
    if library is not None:
        return library
    code = generate(text if isinstance(text, str) else text(), level, target)
    code_cache.write(file, code_bytes(code))
    return load(code, resolve)


# -------------------------------------------------------------------------- code generation


def generate(text: str, level: int = OPTIMISED, target: Target | None = None) -> Code:
    """Parse, verify and generate; RuntimeError if the text is not valid IR."""
    machine = (target or current()).machine(level)
    module = parse(text)
    file = machine.emit_object(module)
    if image.in_use():
        with contextlib.suppress(image.UnknownObject):
            return image.link(file)
    outside = [*module.functions, *module.global_variables]
    declared = [v.name for v in outside if v.is_declaration and not v.name.startswith("llvm.")]
    defined = [f.name for f in module.functions if not f.is_declaration]
    exports = [name for name in defined if module.get_function(name).linkage.name == "external"]
    return ObjectFile(file, exports, declared)


def parse(text: str) -> Any:
    """LLVM's module; RuntimeError if the text is not valid IR.

    No function of ours lets an exception through.  Where that is not said LLVM writes unwind
    tables, which on Windows refer to code by 32-bit offsets that the linker cannot promise.
    """
    import llvmlite.binding as llvm

    # a private context: what the global one interns is never freed
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.verify()
    for function in module.functions:
        if not function.is_declaration:
            function.add_function_attribute("nounwind")
    return module


def load(code: Code, resolve: Resolver = _knows_nothing, cached: bool = False) -> Library:
    """Put generated code into memory; see `compile_ir`."""

    def address_of(name: str) -> int:
        address = resolve(name) or process.address_of(name)
        if not address:
            raise LookupError(f"the code refers to {name!r}, which is nowhere in this process")
        return address

    if isinstance(code, Image):
        return Library(image.Loaded(code, address_of), cached)
    return Library(_link(code, address_of), cached)


def load_kept(code: Code, resolve: Resolver = _knows_nothing) -> Library | None:
    """Put code from the cache into memory; None if it refers to what is not in this process."""
    with contextlib.suppress(LookupError, RuntimeError):
        return load(code, resolve, True)
    return None


def _link(code: ObjectFile, address_of: Callable[[str], int]) -> Any:
    """LLVM's handle of the linked code, which lives as long.

    Each library has a linker of its own: what a linker knows of a library is freed with the linker,
    not with the library.  JITLink puts all sections of a library side by side; the older linker
    spreads them, which on AArch64 ends the process where they are too far apart for a relocation.
    """
    import llvmlite.binding as llvm

    if image.refused_memory() and not _llvm_can_load():
        raise RuntimeError(
            "Compiled functions cannot be loaded: this system does not let a process execute memory"
            f" that it has written ({image.refused_memory()}). Allow it (SELinux: execmem, systemd:"
            ' MemoryDenyWriteExecute=no), or use mode "FAST_COMPILE", which needs no machine code.'
        )
    llvm.initialize_native_target()  # nothing may have been generated in this process
    builder = llvm.JITLibraryBuilder().add_object_img(code.data).add_current_process()
    if sys.platform == "win32":  # what LLVM's generator refers to there by itself
        builder.import_symbol("__chkstk", address_of("__chkstk"))  # grows the stack page by page
        builder.import_symbol("_fltused", id(None))  # a mark; nobody reads its address
    for name in code.imports:
        builder.import_symbol(name, address_of(name))
    for name in code.exports:
        builder.export_symbol(name)
    with llvm.create_lljit_compiler(use_jit_link=True) as linker:
        return builder.link(linker, "phintys")


_TRIAL = """
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
text = "define i64 @f() {\\n ret i64 0\\n}"
builder = llvm.JITLibraryBuilder().add_ir(text).export_symbol("f")
builder.link(llvm.create_lljit_compiler(use_jit_link=True), "trial")
"""


@once
def _llvm_can_load() -> bool:
    """Whether LLVM gets executable memory.

    It ends a process in which it does not, so another one tries.
    """
    return subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True).returncode == 0
