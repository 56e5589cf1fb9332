"""How NumPy makes words of 64 random bits, and numbers of words, where native code does it too.

Sources: M. E. O'Neill, PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms
for Random Number Generation (2014); J. A. Doornik, An Improved Ziggurat Method to Generate Normal
Random Samples (2005).
"""

from __future__ import annotations

from typing import NamedTuple

#: the multiplier of PCG64, whose state is a number of 128 bits
MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


class Ziggurat(NamedTuple):
    """How a word is taken apart: a row, a sign, and an integer that the row's factor multiplies.

    Attributes
    ----------
    row
        the lowest bit of the 8 bits that number the row
    sign
        the bit that is set for negative numbers; None: there are none
    start, bits
        the integer: its lowest bit and its length
    """

    row: int
    sign: int | None
    start: int
    bits: int

    def word(self, row: int, integer: int) -> int:
        """The word of a row and an integer."""
        return row << self.row | integer << self.start


ZIGGURATS = {
    "random_standard_normal": Ziggurat(0, 8, 9, 52),
    "random_standard_exponential": Ziggurat(3, None, 11, 53),
}

#: the routine of bounded integers
INTEGERS = "random_bounded_uint64"

#: routine that native code has inlined -> the one without parameters; the result of that, times the
#: last parameter, is added to the first of two; integers have a routine of their own
BASES = {
    "random_standard_uniform": "random_standard_uniform",
    "random_uniform": "random_standard_uniform",
    "random_standard_normal": "random_standard_normal",
    "random_normal": "random_standard_normal",
    "random_standard_exponential": "random_standard_exponential",
    "random_exponential": "random_standard_exponential",
    INTEGERS: INTEGERS,
}
