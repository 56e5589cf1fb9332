"""NumPy's random generators: independent copies, and the C functions that draw from them.

NumPy exports the functions of its distributions, such as ``random_normal``, from the library of
``numpy.random.Generator``, for use by compiled code ("Extending numpy.random" in NumPy's manual).
They take a pointer to a ``bitgen_t``, the C interface of a bit generator, so any bit generator
serves, also one of a user.  A function that calls them in the order in which `Generator` does gives
the same bits, and leaves the bit generator in the same state.
"""

from __future__ import annotations

import copy
import ctypes
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import Generator

#: bit generators whose state is what the attribute ``state`` says
_OWN = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def copied(rng: Generator) -> Generator:
    """A generator in the same state, whose draws do not affect the state of ``rng``.

    From NumPy 2 on the two have one `numpy.random.SeedSequence`, so streams spawned from either are
    different.  A bit generator of a class that is not NumPy's is copied by `copy.deepcopy`.  The
    copy of an instance of a subclass of `numpy.random.Generator` is a plain Generator.

    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> copied(rng).random() == rng.random()
    True
    """
    bits, (generator, own) = rng.bit_generator, _classes()
    with bits.lock:
        if type(rng) is not generator or type(bits) not in own:
            return copy.deepcopy(rng)
        new = _new(type(bits))
        new.__setstate__(bits.__reduce__()[2])  # as pickling does
    return generator(new)


@cache
def _classes() -> tuple[type[Generator], frozenset[type]]:
    """NumPy's class of generators, and those of its bit generators."""
    from numpy import random

    return random.Generator, frozenset(getattr(random, name) for name in _OWN)


def _new(kind: Any) -> Any:
    """A bit generator of one of NumPy's classes, in any state."""
    try:
        return kind(_any_seed())
    except RuntimeError as error:  # what Python raises if it cannot allocate a lock
        raise MemoryError(*error.args) from error


@cache
def _any_seed() -> Any:
    """A seed for a bit generator whose state is set next; NumPy's own seeds take long to make."""
    import numpy as np
    from numpy.random.bit_generator import ISeedSequence

    zeros = cache(np.zeros)  # NumPy only reads them

    class Zeros(ISeedSequence):
        def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
            return zeros(n_words, dtype)

    return Zeros()


def opened(rng: Generator) -> tuple[Generator, int]:
    """A copy of a generator, and the address of the ``bitgen_t`` of the copy."""
    new = copied(rng)
    return new, address(new)


def address(rng: Generator) -> int:
    """The address of the ``bitgen_t`` of a generator."""
    function, name = _pointer()
    # converted here, since a MemoryError within the call would become an ArgumentError
    found: int = function(ctypes.py_object.from_param(rng.bit_generator.capsule), name)
    return found


@cache
def _pointer() -> tuple[Any, Any]:
    """The function that gives the address in a capsule, and the name of the capsule."""
    function = ctypes.pythonapi["PyCapsule_GetPointer"]
    function.restype = ctypes.c_void_p
    return function, ctypes.c_char_p.from_param(b"BitGenerator")


def routine(name: str) -> int:
    """The address of a C function of NumPy's distributions.

    Raises LookupError if this build of NumPy does not export it.

    >>> routine("random_normal") > 0
    True
    """
    try:
        function = getattr(_library(), name)
    except AttributeError as error:
        raise LookupError(f"This build of NumPy does not export {name!r}.") from error
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def has_routine(name: str) -> bool:
    """Whether this build of NumPy exports a C function."""
    return hasattr(_library(), name)


@cache
def _library() -> ctypes.CDLL:
    library = import_module("numpy.random._generator").__file__
    return ctypes.CDLL(library)
