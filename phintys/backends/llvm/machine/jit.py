"""From IR text to machine code: parse, verify, generate, link; with a cache on disk.

`compile_ir` returns a `Library`; its code lives as long as the object.  Generated and cached code
contains no absolute addresses: external references are symbols, resolved when the code is loaded.
It is an `image.Image` where these are supported, else an object file, which LLVM links.

The addresses of symbols come from a `Resolver` that the caller passes; unknown symbols are looked
up in the process.

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
import sys
from collections.abc import Callable
from typing import Any

from phintys.backends import code_cache
from phintys.backends.llvm.machine import image, process
from phintys.backends.llvm.machine.image import Code, Image, ObjectFile
from phintys.backends.llvm.machine.stored import code_bytes, read_code
from phintys.backends.llvm.machine.target import (
    OPTIMISED,
    PROMOTED,
    TRANSFORMED,
    Target,
    current,
    surroundings,
)
from phintys.backends.once import once

#: Returns the address of a symbol; None (or 0) for an unknown name.
Resolver = Callable[[str], int | None]


def _knows_nothing(name: str) -> None:
    """The resolver that knows no symbol; all are looked up in the process."""


class Library:
    """Linked machine code; it owns the memory, so it must outlive all calls of the code.

    During interpreter shutdown nothing is freed: a daemon thread may still run the code.

    ``cached`` tells whether the object file came from the cache.
    """

    def __init__(self, tracker: Any, cached: bool) -> None:
        self._tracker = tracker
        self.cached = cached

    @property
    def loader(self) -> str:
        """The loader of the code: ``image`` or ``llvm``."""
        return "image" if isinstance(self._tracker, image.Loaded) else "llvm"

    @property
    def size(self) -> int:
        """The size of the code in bytes; 0 if LLVM loaded it and does not report it."""
        return self._tracker.size if isinstance(self._tracker, image.Loaded) else 0

    def address(self, symbol: str) -> int:
        """The address of an exported symbol; KeyError for others."""
        return int(self._tracker[symbol])

    # globals are bound as defaults: at shutdown modules may have been cleared
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
        returns addresses of symbols that the module only declares; others are looked up in the
        process
    name
        of a module whose text depends only on this package and the target: the cache is searched
        by name, without generating the text
    level
        the optimisation level, see `target`
    target
        the target machine; by default, that of the settings

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


def _transform(module: Any, machine: Any) -> None:
    """Run LLVM's passes, but for the vectorisation of loops: those of routines are short."""
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.loop_unrolling = False
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _promote(module: Any, machine: Any) -> None:
    """Inline functions that ask for it, and move memory on the stack to registers.

    Functions that are not to be inlined are left as they are: LLVM would simplify nothing there.
    """
    import llvmlite.binding as llvm

    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    inliner = llvm.create_new_module_pass_manager()
    inliner.add_always_inliner_pass()
    inliner.run(module, builder)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration and b"noinline" not in b" ".join(function.attributes):
            passes.run(function, builder)


def generate(text: str, level: int = OPTIMISED, target: Target | None = None) -> Code:
    """Machine code of a module; RuntimeError if the text is not valid IR."""
    machine = (target or current()).machine(level)
    module = parse(text)
    if level == TRANSFORMED:
        _transform(module, machine)
    elif level == PROMOTED:
        _promote(module, machine)
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
    """The parsed and verified module; RuntimeError if the text is not valid IR.

    All functions get ``nounwind``: none lets an exception through.  Without it LLVM writes unwind
    tables, which on Windows refer to code by 32-bit offsets that the linker cannot guarantee.
    """
    import llvmlite.binding as llvm

    # a private context: types and constants of the global one are never freed
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.verify()
    for function in module.functions:
        if not function.is_declaration:
            function.add_function_attribute("nounwind")
    return module


def load(code: Code, resolve: Resolver = _knows_nothing, cached: bool = False) -> Library:
    """Load generated code into memory; see `compile_ir`."""

    def address_of(name: str) -> int:
        address = resolve(name) or process.address_of(name)
        if not address:
            raise LookupError(f"the code refers to {name!r}, which is nowhere in this process")
        return address

    if isinstance(code, Image):
        return Library(image.Loaded(code, address_of), cached)
    return Library(_link(code, address_of), cached)


def load_kept(code: Code, resolve: Resolver = _knows_nothing) -> Library | None:
    """Load code from the cache into memory; None if a symbol cannot be resolved."""
    with contextlib.suppress(LookupError, RuntimeError):
        return load(code, resolve, True)
    return None


def _link(code: ObjectFile, address_of: Callable[[str], int]) -> Any:
    """LLVM's handle of the linked code, which owns it.

    Each library has its own linker: a linker's records of a library are freed with the linker, not
    with the library.  JITLink places all sections of a library next to each other; the older linker
    (RuntimeDyld) spreads them, which on AArch64 aborts the process if a relocation is out of range.
    """
    import llvmlite.binding as llvm

    if image.refused_memory() and not _llvm_can_load():
        raise RuntimeError(
            "Compiled functions cannot be loaded: this system does not let a process execute memory"
            f" that it has written ({image.refused_memory()}). Allow it (SELinux: execmem, systemd:"
            ' MemoryDenyWriteExecute=no), or use mode "FAST_COMPILE", which needs no machine code.'
        )
    llvm.initialize_native_target()  # may not have been done: code can come from the cache
    builder = llvm.JITLibraryBuilder().add_object_img(code.data).add_current_process()
    if sys.platform == "win32":  # symbols that LLVM's code generator adds there
        builder.import_symbol("__chkstk", address_of("__chkstk"))  # grows the stack page by page
        builder.import_symbol("_fltused", id(None))  # a marker; its address is never read
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
    """Whether LLVM can allocate executable memory.

    LLVM aborts the process if it cannot, so this is tested in a child process.
    """
    import subprocess

    return subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True).returncode == 0
