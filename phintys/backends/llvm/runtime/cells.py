"""Functions that are compiled lazily, when a routine first needs them.

A routine reads the address of such a function from a word.  If the word is 0, the runtime calls the
`Cell`, which compiles the code (or loads it from the cache) and fills the word.  Results do not
depend on when that happens: all routines use the same code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from phintys.backends.llvm.machine.jit import Library, compile_ir
from phintys.backends.llvm.machine.target import Target
from phintys.backends.once import once


class Cell:
    """A word with the address of a function, 0 until a call of this object has compiled it.

    The owner of machine code that refers to the word or to this object must keep the object alive.
    """

    def __init__(self, make: Callable[[], int]) -> None:
        self._make, self._word = make, ctypes.c_void_p()

    def __call__(self) -> None:
        self._word.value = self._make()

    def symbols(self, name: str) -> dict[str, int]:
        """Symbols of the word and of this object in ``blas.ll`` and ``runtime.ll`` -> addresses."""
        return {f"{name}_cell": ctypes.addressof(self._word), f"{name}_make": id(self)}


@once
def strided(target: Target) -> Cell:
    """The cell of ``strided`` that the runtime for a target reads."""
    return Cell(lambda: strided_library(target).address("strided"))


@once
def strided_library(target: Target) -> Library:
    """The library of `strided.library_text`."""

    def text() -> str:
        from phintys.backends.llvm.runtime.strided import library_text  # cached code needs no text

        return library_text(target)

    return compile_ir(text, name="strided", target=target)


@once
def product(name: str, dtype: str, target: Target) -> Cell:
    """The cell of a function of `product_library`."""
    return Cell(lambda: product_library(name, dtype, target).address(name))


@once
def product_library(name: str, dtype: str, target: Target) -> Library:
    """The library of `products.library_text`."""

    def text() -> str:
        from phintys.backends.llvm.runtime.products import library_text  # as above

        return library_text(name, dtype, target)

    return compile_ir(text, name=f"{name}.{dtype}", target=target)
