"""Functions that are compiled lazily, when a routine first needs them.

A routine reads the address of such a function from a word.  If the word is 0, the runtime calls the
`Cell`, which compiles the code (or loads it from the cache) and fills the word.  Results do not
depend on when that happens: all routines use the same code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable


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
