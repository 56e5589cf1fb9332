"""The default backend: Program -> LLVM IR text -> machine code, through llvmlite.

One native routine is made of a whole Program (`generate`), and the function object that runs it
is made so that CPython calls the routine directly (`bind`; see ``runtime/callable.py`` and
``routine/entry.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from phintys.backends import code_cache
from phintys.backends.llvm.machine import jit, stored
from phintys.backends.llvm.machine.target import current
from phintys.backends.llvm.runtime import symbols
from phintys.backends.llvm.runtime.callable import STRICT, Block, bind_code, make_native_class

if TYPE_CHECKING:
    from phintys.lowering.program import Program

__all__ = ["Native", "bind", "compile_program", "generate", "kept"]


_ENTRY = "phintys.entry"


class Native(NamedTuple):
    """Machine code of a Program in memory, not yet bound to shared variables.

    ``words`` says what its block of pointers holds (see `entry.EntryCode`).
    """

    library: jit.Library
    words: Sequence[tuple[str, Any]]

    @property
    def size(self) -> int:
        """Bytes of the code and of its constants."""
        arrays = [value for _, value in self.words if isinstance(value, np.ndarray)]
        return self.library.size + sum([array.nbytes for array in arrays])


def generate(program: Program, single: bool = False, file: str | None = None) -> Native:
    """Machine code for a planned Program (its temps have storages).

    Parameters
    ----------
    single
        the routine returns the only result itself instead of a list
    file
        the file of the cache in which the function is stored, for `kept`.  Without one, or if the
        function refers to objects of this process, its code is looked for and stored by its text
    """
    # imported here: a process whose functions all come from the cache saves 27 of 130 ms
    from phintys.backends.llvm.routine.entry import emit_entry
    from phintys.backends.llvm.routine.module import module_text

    resolve = symbols.resolver(current())
    entry = emit_entry(program, single)
    text = module_text(entry)
    if file is None or not stored.can_be_kept(entry.words):
        return Native(jit.compile_ir(text, resolve), entry.words)
    code = jit.generate(text)
    code_cache.write(file, stored.function_bytes(code, entry.words))
    return Native(jit.load(code, resolve), entry.words)


def kept(file: str, cells: int) -> Native | None:
    """The function in a file of the cache; None if there is none, or none that can be used.

    ``cells`` is the number of its shared variables.
    """
    payload = code_cache.read(file)
    if payload is None:
        return None
    found = stored.read_function(payload, cells)
    if found is None or _ENTRY not in found[0].exports:
        return None
    library = jit.load_kept(found[0], symbols.resolver(current()))
    return None if library is None else Native(library, found[1])


def bind(
    native: Native,
    cells: Sequence[list[Any]],
    slow: Callable[[tuple[Any, ...], dict[str, Any] | None], Any],
    failed: Callable[[tuple[Any, ...], int], Any],
    into: Any,
    names: tuple[str | None, ...] = (),
) -> None:
    """Make ``into``, an instance of a native class, run the code.

    ``into.native_mode = 1`` makes it trust its object arguments.  ``into.strict`` becomes a second
    callable for the same code, which raises RuntimeError where ``into`` would call ``slow``.

    Parameters
    ----------
    cells
        for each shared input a list of length 1 with its current value
    slow
        ``slow(args, kwargs)`` is called where an argument cannot be taken as it is; ``kwargs`` is
        None if there are none.  It usually converts and calls ``into.strict``.
    failed
        ``failed(args, step)`` is called when a step has failed; it raises the error.
    names
        of the arguments, interned (`sys.intern`), for calls by name; where it is empty, calls by
        name go to ``slow``
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


def _addresses(
    layout: Sequence[tuple[str, Any]],
    cells: Sequence[list[Any]],
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    names: tuple[str | None, ...],
) -> list[int]:
    """The words of a function's block."""
    word: dict[str, Callable[[Any], int]] = {
        "slow": lambda _: id(slow),
        "failed": lambda _: id(failed),
        "names": lambda _: id(names) if names else 0,
        "integer": lambda value: value,
        "object": id,
        "array": lambda array: array.ctypes.data,
        "cell": lambda i: id(cells[i]),
        "null": lambda _: 0,
    }
    return [word[kind](value) for kind, value in layout]
