"""Routines that are generated when machine code first calls them.

Machine code takes the address from a cell.  At first that is a Python function, which makes the
routine, puts its address into the cell, and calls it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any


class Deferred:
    """A routine of a ctypes ``signature`` whose address ``make`` gives.

    ``instead``, if given, is asked first, with the arguments of each call; where its answer is not
    None, that is the routine's, which is then not made yet.
    """

    def __init__(
        self,
        signature: Any,
        make: Callable[[], int],
        instead: Callable[..., int | None] = lambda *_: None,
    ) -> None:
        self._signature, self._make, self._instead = signature, make, instead
        self._first = signature(self._call)
        self._cell = ctypes.cast(self._first, ctypes.c_void_p)

    @property
    def cell(self) -> int:
        """Where the address is."""
        return ctypes.addressof(self._cell)

    def make(self) -> int:
        """Make the routine now; its address."""
        address = self._make()
        self._cell.value = address
        return address

    def _call(self, *args: Any) -> Any:
        answer = self._instead(*args)
        return self._signature(self.make())(*args) if answer is None else answer
