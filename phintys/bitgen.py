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
import sys
from collections import deque
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from phintys.memo import Memo

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
    """A copy of a generator, and the address of the ``bitgen_t`` of the copy.

    The copy may be one that has been returned before, if nothing refers to it any more: a function
    that updates a generator uses two in turn, a chain of draws by ``perform`` three.
    """
    bits = rng.bit_generator
    if type(bits) not in _of_known_layout() or type(rng) is not _classes()[0]:
        new = copied(rng)
        return new, address(new)
    key = id(bits.seed_seq)  # which the copies keep alive
    copies = _copies[key] or _copies.keep(key, deque(maxlen=_MOST_COPIES))
    source = target = new = None
    for _ in range(len(copies)):
        try:
            copy = copies.popleft()  # so that no other thread has it
        except IndexError:
            break
        if copy.generator is rng:
            source = copy.parts
        elif target is None and _references(copy) == _fewest_references():
            target, new = copy, copy.generator  # a reference more, before others can see it
        copies.append(copy)
    if target is None or new is None:
        new = copied(rng)
        target = _Copy(new, address(new), _parts(address(new)))
        copies.append(target)
    else:
        with bits.lock:
            _move(source or _parts(address(rng)), target.parts)
    return new, target.address


#: of one stream, that are kept: the value of a shared variable, and two for chains of draws
_MOST_COPIES = 3


class _Copy(NamedTuple):
    """A copy of a PCG64, the address of its ``bitgen_t``, and those of the parts of its state."""

    generator: Generator
    address: int
    parts: tuple[int, int]


_copies: Memo[int, deque[_Copy]] = Memo(64, "copies of generators")


def _references(copy: _Copy) -> tuple[int, int]:
    """How many references there are to a copy, and to its bit generator."""
    return sys.getrefcount(copy.generator), sys.getrefcount(copy.generator.bit_generator)


@cache
def _fewest_references() -> tuple[int, int]:
    """What `_references` counts if there are none elsewhere; none if that is not known."""
    from numpy import random

    counts = getattr(sys, "_is_gil_enabled", None)
    known = counts is None or counts()
    return _references(_Copy(random.default_rng(0), 0, (0, 0))) if known else (0, 0)


def _parts(place: int) -> tuple[int, int]:
    """The addresses of the half word, and of the words of the state of a PCG64."""
    held = BitGen.from_address(place).state or 0
    return held + PCG64.flag.offset, PCG64.from_address(held).words or 0


#: copies memory, and keeps the interpreter's lock: others would use the generator meanwhile
_memmove = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
    ctypes.cast(ctypes.memmove, ctypes.c_void_p).value or 0
)


def _move(source: tuple[int, int], target: tuple[int, int]) -> None:
    """Copy the state of a PCG64."""
    _memmove(target[0], source[0], 8)
    _memmove(target[1], source[1], 32)


class BitGen(ctypes.Structure):
    """NumPy's ``bitgen_t``."""

    _fields_ = [
        ("state", ctypes.c_void_p),
        ("next_uint64", ctypes.c_void_p),
        ("next_uint32", ctypes.c_void_p),
        ("next_double", ctypes.c_void_p),
        ("next_raw", ctypes.c_void_p),
    ]


class PCG64(ctypes.Structure):
    """What the ``state`` of a PCG64 addresses.

    ``words`` is the address of the state and the increment, of 128 bits each.  ``kept`` is the half
    of a word that is left, if ``flag`` is 1.
    """

    _fields_ = [("words", ctypes.c_void_p), ("flag", ctypes.c_int), ("kept", ctypes.c_uint32)]


@cache
def is_laid_out() -> bool:
    """Whether the state of this NumPy's PCG64 is a `PCG64`."""
    from numpy import random

    rng = random.Generator(random.PCG64(20240607))
    rng.integers(10)  # takes half a word
    found = PCG64.from_address(BitGen.from_address(address(rng)).state or 0)
    state: Any = rng.bit_generator.state
    if (found.flag, found.kept) != (1, state["uinteger"]) or not state["has_uint32"]:
        return False
    words = (ctypes.c_uint64 * 4).from_address(found.words or 0)
    numbers = [state["state"][name] for name in ("state", "inc")]
    return list(words) == [half for n in numbers for half in (n % 2**64, n // 2**64)]


@cache
def _of_known_layout() -> frozenset[type]:
    """The classes of bit generators whose copies are used again."""
    from numpy import random

    return frozenset([random.PCG64]) if is_laid_out() else frozenset()


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
