"""The default backend: Program -> LLVM IR text -> machine code, through llvmlite.

One native routine is made of a whole Program (`generate`), and the function object that runs it
is made so that CPython calls the routine directly (`bind`; see ``callable.py`` and ``entry.py``).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from phintys.backends.llvm.callable import STRICT, Block, bind_code, make_native_class

if TYPE_CHECKING:
    from phintys.backends.llvm.jit import Code, Library
    from phintys.lowering.program import Program

__all__ = ["Native", "bind", "compile_program", "generate"]


class Native:
    """Machine code of a Program, not yet bound to shared variables.

    ``words`` says what its block of pointers holds (see `entry.EntryCode`).
    """

    def __init__(self, code: Code, words: Sequence[tuple[str, Any]]) -> None:
        self.code, self.words = code, words

    @cached_property
    def library(self) -> Library:
        """The code in memory."""
        from phintys.backends.llvm.jit import load

        return load(self.code)

    def dump(self) -> bytes | None:
        """Code and words as bytes; None if the code refers to objects of this process."""
        from phintys.backends.llvm.jit import encode

        if not all(_can_be_kept(value) for _, value in self.words):
            return None
        return pickle.dumps((encode(self.code), self.words))

    @staticmethod
    def load(data: bytes) -> Native:
        """What `dump` made bytes of."""
        from phintys.backends.llvm.jit import decode

        code, words = pickle.loads(data)
        return Native(decode(code), [(kind, _unique(value)) for kind, value in words])


def _unique(value: Any) -> Any:
    """NumPy's own object for a dtype: the routine compares addresses, and a pickle makes copies."""
    if not isinstance(value, np.dtype):
        return value
    own = np.dtype(value.char)
    return own if own == value else value


def _can_be_kept(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    return value is None or isinstance(value, int | str | np.dtype)


def generate(program: Program, single: bool = False, cached: bool = True) -> Native:
    """Machine code for a planned Program (its temps have storages).

    Parameters
    ----------
    single
        the routine returns the only result itself instead of a list
    cached
        look for the code in the cache on disk, and keep it there
    """
    from phintys.backends.llvm import jit
    from phintys.backends.llvm.entry import emit_entry
    from phintys.backends.llvm.module import module_text

    code = emit_entry(program, single)
    text = module_text(code)
    return Native(jit.compile_code(text)[0] if cached else jit.generate(text), code.words)


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
    address = library.address("phintys.entry")
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
