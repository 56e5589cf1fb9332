"""The default backend: Program -> LLVM IR text -> machine code, through llvmlite.

A whole Program becomes one native routine (`generate`).  CPython calls it directly through the
vectorcall pointer of a function object (`bind`; see ``runtime/callable.py`` and
``routine/entry.py``).  ``compile/`` uses the object `backend`.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from phintys import bitgen
from phintys.backends.llvm.machine import jit, stored
from phintys.backends.llvm.machine.image import Code
from phintys.backends.llvm.machine.target import OPTIMISED, PROMOTED, current, surroundings
from phintys.backends.llvm.runtime import cpython, symbols
from phintys.backends.llvm.runtime.callable import (
    CHECKED,
    STRICT,
    TRUSTED,
    Block,
    bind_code,
    make_native_class,
)
from phintys.backends.protocol import Bare, BareGenerator, FunctionObject

if TYPE_CHECKING:
    from phintys.backends.llvm.routine.entry import EntryCode
    from phintys.lowering.program import Program

__all__ = ["Native", "backend", "bind", "compile_program", "generate"]


_ENTRY = "phintys.entry"


class Native(NamedTuple):
    """Machine code of a Program in memory, not yet bound to shared variables.

    ``words`` describes its block of pointers (see `entry.EntryCode`).  ``code`` is the generated
    code, for the cache; None if the function is not to be stored or refers to objects of this
    process.
    """

    library: jit.Library
    words: Sequence[tuple[str, Any]]
    code: Code | None = None

    @property
    def size(self) -> int:
        """Bytes of the code in memory and of its constants."""
        arrays = [value for _, value in self.words if isinstance(value, np.ndarray)]
        return self.library.size + sum([array.nbytes for array in arrays])


def generate(program: Program, single: bool = False, to_store: bool = False) -> Native:
    """Machine code for a planned Program (its temps have storages).

    Parameters
    ----------
    single
        the routine returns the only result itself instead of a list
    to_store
        the caller will store the function.  If it does not, or if the function refers to objects
        of this process, the code is looked up in the cache, and stored, under a key from its IR
    """
    # imported here: a process whose functions all come from the cache saves 27 of 130 ms
    from phintys.backends.llvm.routine.entry import emit_entry

    return _machine_code(emit_entry(program, single), to_store)


def _machine_code(entry: EntryCode, to_store: bool) -> Native:
    from phintys.backends.llvm.routine.module import module_text

    resolve = symbols.resolver(current())
    text = module_text(entry)
    level = PROMOTED if entry.has_loops else OPTIMISED
    if not to_store or not stored.can_be_kept(entry.words):
        return Native(jit.compile_ir(text, resolve, level=level), entry.words)
    code = jit.generate(text, level)
    return Native(jit.load(code, resolve), entry.words, code)


class LLVM:
    """The implementation of the protocol `Generator`."""

    def surroundings(self) -> str:
        return surroundings(current())

    def compile(self, program: Program, single: bool = False, to_store: bool = False) -> Native:
        return generate(program, single, to_store)

    def compile_bare(self, program: Program, to_store: bool = False) -> Native:
        from phintys.backends.llvm.routine.bare import emit_bare

        return _machine_code(emit_bare(program), to_store)

    def dump(self, artifact: Native) -> bytes | None:
        code = artifact.code
        return None if code is None else stored.function_bytes(code, artifact.words)

    def load(self, payload: bytes, cells: int) -> Native | None:
        found = stored.read_function(payload, cells)
        if found is None or _ENTRY not in found[0].exports:
            return None
        code, words = found
        library = jit.load_kept(code, symbols.resolver(current()))
        return None if library is None else Native(library, words, code)

    def function_class(self, methods: type) -> type:
        return _native_class(methods)

    def bind(
        self,
        artifact: Native,
        into: FunctionObject,
        cells: Sequence[list[Any]],
        names: Sequence[str | None],
    ) -> None:
        # a call keeps the object alive
        this = cast("Callable[[], FunctionObject]", weakref.ref(into))
        bind(
            artifact,
            cells,
            lambda args, kwargs: this().call_converted(args, kwargs),
            lambda args, step: this().raise_failure(args, step),
            into,
            tuple([name and sys.intern(str(name)) for name in names]),
        )
        into.loader = artifact.library.loader

    def bind_bare(self, artifact: Native, failed: Callable[[int, int], None]) -> Bare:
        library = artifact.library
        words = _addresses(artifact.words, (), failed, failed, ())
        block = Block(words, (failed, artifact.words, library))
        free = cpython.symbols()["PyMem_RawFree"]
        return Bare(library.address(_ENTRY), block.address, free, block)


backend: BareGenerator[Native] = LLVM()


def bind(
    native: Native,
    cells: Sequence[list[Any]],
    slow: Callable[[tuple[Any, ...], dict[str, Any] | None], Any],
    failed: Callable[[tuple[Any, ...], int], Any],
    into: Any,
    names: tuple[str | None, ...] = (),
) -> None:
    """Bind the code to ``into``, an instance of a native class.

    ``into.native_mode = 1`` makes it trust its object arguments.  ``into.strict`` becomes a second
    callable for the same code, which raises RuntimeError where ``into`` would call ``slow``.

    Parameters
    ----------
    cells
        for each shared input a list of length 1 with its current value
    slow
        ``slow(args, kwargs)`` is called where an argument must be converted; ``kwargs`` is
        None if there are none.  It usually converts and calls ``into.strict``.
    failed
        ``failed(args, step)`` is called when a step has failed; it raises the error.
    names
        of the arguments, interned (`sys.intern`), for keyword arguments; if empty, calls with
        keyword arguments go to ``slow``
    """
    library = native.library
    words = _addresses(native.words, cells, slow, failed, names)
    block = Block(words, (slow, failed, cells, names, native.words, library))
    into.strict = _plain_class()()
    address = library.address(_ENTRY)
    bind_code(into, address, block)
    bind_code(into.strict, address, block, STRICT)


def compile_program(
    program: Program,
    cells: Sequence[list[Any]],
    slow: Callable[[tuple[Any, ...], dict[str, Any] | None], Any],
    failed: Callable[[tuple[Any, ...], int], Any],
    *,
    single: bool = False,
) -> Any:
    """A plain native callable that runs ``program``; see `generate` and `bind`."""
    native = _plain_class()()
    bind(generate(program, single), cells, slow, failed, native)
    return native


@cache
def _plain_class() -> type:
    return make_native_class(name="NativeFunction")


@cache
def _native_class(methods: type) -> type:
    """The class of native callables with these methods; ``trust_input`` sets ``native_mode``."""
    trust_input = property(
        lambda f: f.native_mode == TRUSTED,
        lambda f, value: setattr(f, "native_mode", TRUSTED if value else CHECKED),
        doc="Whether arguments are used without checks.",
    )
    return make_native_class(methods, name="NativeFunction", trust_input=trust_input)


def _addresses(
    layout: Sequence[tuple[str, Any]],
    cells: Sequence[list[Any]],
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    names: tuple[str | None, ...],
) -> list[int]:
    """The values of the words of a function's block, as integers."""
    word: dict[str, Callable[[Any], int]] = {
        "slow": lambda _: id(slow),
        "failed": lambda _: id(failed),
        "names": lambda _: id(names) if names else 0,
        "integer": lambda value: value,
        "object": id,
        "array": lambda array: array.ctypes.data,
        "cell": lambda i: id(cells[i]),
        "null": lambda _: 0,
        "opened": lambda _: id(bitgen.opened),
    }
    return [word[kind](value) for kind, value in layout]
