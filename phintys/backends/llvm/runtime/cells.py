"""Functions whose machine code is made when a routine first needs it.

A routine reads the address of such a function from a word.  Where the word is 0, the runtime calls
the `Cell`, which makes the code (or loads it from the cache) and fills the word.  Nothing else
depends on when that happens: it is the same code for everybody.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable


class Cell:
    """A word with the address of a function, 0 until a call of this object has made it.

    Whoever refers to the word or to this object in machine code keeps the object.
    """

    def __init__(self, make: Callable[[], int]) -> None:
        self._make, self._word = make, ctypes.c_void_p()

    def __call__(self) -> None:
        self._word.value = self._make()

    def symbols(self, name: str) -> dict[str, int]:
        """What ``blas.ll`` and ``runtime.ll`` call the word and this object -> their addresses."""
        return {f"{name}_cell": ctypes.addressof(self._word), f"{name}_make": id(self)}
