"""The default backend: Program -> LLVM IR text -> machine code, through llvmlite.

One native routine is made of a whole Program, and the function object that runs it is made so
that CPython calls the routine directly (see ``callable.py`` and ``entry.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from phintys.lowering.program import Program

if TYPE_CHECKING:
    from phintys.backends.llvm.entry import EntryCode

__all__ = ["compile_program"]

_KEPT: list[Any] = []  # libraries that every function uses


def compile_program(
    program: Program,
    cells: Sequence[list[Any]],
    slow: Callable[[tuple[Any, ...], dict[str, Any] | None], Any],
    failed: Callable[[tuple[Any, ...], int], Any],
    *,
    single: bool = False,
    into: Any = None,
) -> Any:
    """A native callable that runs ``program``.

    Parameters
    ----------
    program
        A planned Program (its temps have storages).
    cells
        For each shared input a list of length 1 with its current value.
    slow
        ``slow(args, kwargs)`` is called where an argument cannot be taken as it is; ``kwargs`` is
        None if there are none.  It usually converts and calls ``native.strict``.
    failed
        ``failed(args, step)`` is called when a step has failed; it raises the error.
    single
        Return the only result itself instead of a list.
    into
        An instance of a class of `make_native_class` that is to become the callable; by default
        a new plain one.

    Returns
    -------
    The callable ``native``.  ``native.native_mode = 1`` makes it trust its object arguments.
    ``native.strict`` is a second callable for the same code which raises RuntimeError where
    ``native`` would call ``slow``.
    """
    from phintys.backends.llvm.callable import STRICT, Block, bind
    from phintys.backends.llvm.entry import emit_entry
    from phintys.backends.llvm.jit import compile_ir

    code = emit_entry(program, single)
    library = compile_ir(_module(code), ["phintys.entry"], _symbols(code))
    block = Block(_words(code.words, cells, slow, failed), (slow, failed, cells, code, library))
    address = library.address("phintys.entry")
    plain = _plain_class()
    native = plain() if into is None else into
    native.strict = plain()
    bind(native, address, block)
    bind(native.strict, address, block, STRICT)
    return native


@cache
def _plain_class() -> type:
    from phintys.backends.llvm.callable import make_native_class

    return make_native_class(name="NativeFunction")


def _module(code: EntryCode) -> str:
    """The text of the whole module: the routine and its kernels."""
    from phintys.backends.llvm import blas

    kernels = code.kernels.values()
    declares = set(_text("entry.ll").splitlines())
    declares.update(*(kernel.declares for kernel in kernels), *map(blas.declarations, code.calls))
    return "\n".join([*sorted(declares), *(kernel.ir for kernel in kernels), code.ir])


@cache
def _text(file: str) -> str:
    return (Path(__file__).parent / file).read_text()


def _symbols(code: EntryCode) -> dict[str, int]:
    """name -> address of what the routine refers to, kernels excepted."""
    from phintys.backends.llvm import blas, cpython

    symbols = {**cpython.symbols(), **_runtime()}
    for dtype in code.calls:
        library = _blas(dtype)
        symbols.update((name, library.address(name)) for name in blas.routines(dtype))
    return symbols


@cache
def _runtime() -> dict[str, int]:
    """name -> address of the routines of ``runtime.ll``, compiled at the first use."""
    from phintys.backends.llvm import cpython
    from phintys.backends.llvm.jit import compile_ir

    text = Template(_text("runtime.ll")).substitute(cpython.layout())
    names = re.findall(r"^define \S+ @(\w+)", text, re.M)
    library = compile_ir(text, names, cpython.symbols())
    _KEPT.append(library)
    return {name: library.address(name) for name in names}


@cache
def _blas(dtype: str) -> Any:
    """The library made of ``blas.ll`` for a dtype."""
    from phintys.backends.llvm import blas
    from phintys.backends.llvm.jit import compile_ir

    return compile_ir(blas.source(dtype), blas.routines(dtype), blas.symbols())


def _words(
    layout: Sequence[tuple[str, Any]],
    cells: Sequence[list[Any]],
    slow: Callable[..., Any],
    failed: Callable[..., Any],
) -> list[int]:
    """The words of a function's block, as `EntryCode.words` describes them."""
    word: dict[str, Callable[[Any], int]] = {
        "slow": lambda _: id(slow),
        "failed": lambda _: id(failed),
        "integer": lambda value: value,
        "object": id,
        "array": lambda array: array.ctypes.data,
        "cell": lambda i: id(cells[i]),
        "null": lambda _: 0,
    }
    return [word[kind](value) for kind, value in layout]
