"""What native code must know of NumPy to draw without calls: PCG64, and the tables of ziggurats.

Native code steps the state of a PCG64 itself, and returns most normal and exponential numbers as a
product with an entry of a table, as NumPy does; the others it leaves to NumPy's function.  The
tables are not exported, so they are measured: NumPy's function is called with a bit generator that
returns chosen words.  What is measured is also checked: where this NumPy draws in another way,
`guard` is an address that no bit generator has, and native code calls NumPy for each number.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from phintys import bitgen
from phintys.backends.llvm.ir.words import BASES, INTEGERS, MULTIPLIER, ZIGGURATS
from phintys.backends.once import once

WORD = 1 << 64


_HALVES = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_WORDS = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_DOUBLES = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


_NOWHERE = ctypes.c_char(0)


@cache
def guard(routine: str) -> int:
    """The function ``next_uint64`` of bit generators for which native code inlines a routine."""
    base = BASES[routine]
    if routine == INTEGERS:
        known = _halves_words() and _multiplies()
    else:
        known = (base not in ZIGGURATS or _measured(base) is not None) and _scales(routine)
    found = _next_of_pcg64() if known else None
    return found or ctypes.addressof(_NOWHERE)


def table(base: str) -> int:
    """The address of 256 rows: an integer below which the product is returned, and the factor.

    Any address, which is not read, if NumPy does not draw as a `Ziggurat`.
    """
    found = _measured(base)
    return ctypes.addressof(_NOWHERE) if found is None else int(found.ctypes.data)


# ------------------------------------------------------------------------------ PCG64
@cache
def _next_of_pcg64() -> int | None:
    """The address of PCG64's ``next_uint64`` if its state and steps are as expected."""
    if not bitgen.is_laid_out():
        return None
    rng = np.random.Generator(np.random.PCG64(20240607))
    held = bitgen.BitGen.from_address(bitgen.address(rng))
    state: Any = rng.bit_generator.state["state"]
    draw, real = _WORDS(held.next_uint64 or 0), _DOUBLES(held.next_double or 0)
    number = state["state"]
    for turn in range(64):
        number = (number * MULTIPLIER + state["inc"]) % WORD**2
        mixed, turned = number // WORD ^ number % WORD, number >> 122
        out = (mixed >> turned | mixed << (64 - turned)) % WORD
        if turn % 2 and real(held.state) != (out >> 11) * 2.0**-53:
            return None
        if not turn % 2 and draw(held.state) != out:
            return None
    return held.next_uint64


@cache
def _halves_words() -> bool:
    """Whether numbers of 32 bits are halves of words; the second is kept beside a flag."""
    rng = np.random.Generator(np.random.PCG64(20240607))
    held = bitgen.BitGen.from_address(bitgen.address(rng))
    draw, half = _HALVES(held.next_uint32 or 0), bitgen.PCG64.from_address(held.state or 0)
    copy = bitgen.copied(rng).bit_generator
    for turn in range(8):
        word = int(copy.random_raw()) if turn % 2 == 0 else half.kept << 32
        if draw(held.state) != (half.kept if turn % 2 else word % 2**32):
            return False
        if half.flag != (turn + 1) % 2 or half.kept != word >> 32:
            return False
    return True


# ------------------------------------------------------------------------------ integers
def _multiplies() -> bool:
    """Whether bounded integers are the upper halves of products of words, unless rejected."""
    words: list[int] = []
    kept = (_WORDS(lambda _: words.pop()), _HALVES(lambda _: words.pop()))
    places = [ctypes.cast(f, ctypes.c_void_p).value for f in kept]
    held = bitgen.BitGen(None, places[0], places[1], None, places[0])
    types = [ctypes.c_void_p, *[ctypes.c_uint64] * 3, ctypes.c_bool]
    draw = ctypes.CFUNCTYPE(ctypes.c_uint64, *types)(bitgen.routine(INTEGERS))
    for span, bits in ((1, 32), (999, 32), (2**32 - 1, 32), (2**32, 64), (10**17 + 1, 64)):
        for k in range(1, 9):
            word = k * 0x9E3779B97F4A7C15 % 2**bits
            product = word * (span + 1)
            if product % 2**bits <= span:
                continue  # NumPy's function is called
            words[:] = [word]
            expected = (7 + (product >> bits)) % WORD
            if draw(ctypes.addressof(held), 7, span, 0, False) != expected or words:
                return False
    return True


# ------------------------------------------------------------------------------ ziggurats
class _Probe:
    """NumPy's function on one chosen word, then on words that end a draw."""

    def __init__(self, routine: str, parameters: int = 0) -> None:
        self.words = 0
        self.first = 0
        self.kept = (_WORDS(self._word), _DOUBLES(self._double))
        places = [ctypes.cast(f, ctypes.c_void_p).value for f in self.kept]
        self.held = bitgen.BitGen(None, places[0], None, places[1], places[0])
        types = [ctypes.c_void_p, *[ctypes.c_double] * parameters]
        self.function = ctypes.CFUNCTYPE(ctypes.c_double, *types)(bitgen.routine(routine))

    def _begin(self, word: int) -> None:
        self.first, self.words = word, 0

    def _word(self, _: object) -> int:
        self.words += 1
        return self.first if self.words == 1 else 2

    def _double(self, _: object) -> float:
        """The first number has many bits, so that its products with others are rounded."""
        self.words += 1
        return (self.first >> 11) * 2.0**-53 if self.words == 1 else 0.5

    def __call__(self, word: int, *parameters: float) -> float | None:
        """The number, None if that needed more than one word."""
        self._begin(word)
        found = self.function(ctypes.addressof(self.held), *parameters)
        return found if self.words == 1 else None


@once
def _measured(base: str) -> np.ndarray[Any, Any] | None:
    """The table of a ziggurat."""
    shape, probe = ZIGGURATS[base], _Probe(base)
    rows = np.zeros(256, [("below", "u8"), ("factor", "f8")])
    for row in range(256):

        def returns(integer: int, row: int = row) -> bool:
            return probe(shape.word(row, integer)) is not None

        factor = probe(shape.word(row, 1))
        if factor is None:
            continue  # a row without numbers that are returned at once
        guess = int(rows["factor"][row - 1] / factor * 2**shape.bits) if row else 0
        below = _first_false(returns, guess, 2**shape.bits)
        rows[row] = below, factor
        for integer in (below - 1, below // 3):
            if probe(shape.word(row, integer)) != integer * factor:
                return None
            if shape.sign is not None:
                negative = probe(shape.word(row, integer) | 1 << shape.sign)
                if negative != -(integer * factor):
                    return None
    return rows


def _first_false(holds: Callable[[int], bool], guess: int, stop: int) -> int:
    """The first integer up to ``stop`` from which on a predicate is false, sought near a guess."""
    low, high = max(guess - 2, 0), min(guess + 2, stop)
    if low >= stop or not holds(low) or (high < stop and holds(high)):
        low, high = 0, stop
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high if holds(low) else low


def _scales(routine: str) -> bool:
    """Whether a routine multiplies and adds without fusing, as native code does."""
    base, parameters = BASES[routine], _PARAMETERS.get(routine, 0)
    if not parameters:
        return True
    plain, scaled = _Probe(base), _Probe(routine, parameters)
    for k in range(1, 65):
        word, given = k * 0x9E3779B97F4A7C15 % WORD, (1 / 3, k / 7)[-parameters:]
        number = plain(word)
        if number is not None:
            product = given[-1] * number
            if scaled(word, *given) != (given[0] + product if parameters == 2 else product):
                return False
    return True


_PARAMETERS = {"random_uniform": 2, "random_normal": 2, "random_exponential": 1}
