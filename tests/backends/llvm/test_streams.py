"""Draws without calls: the same numbers and states as by NumPy's functions."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import bitgen
from phintys.backends.llvm.ir.words import BASES, ZIGGURATS
from phintys.backends.llvm.runtime import streams
from phintys.compile import native
from phintys.tensor.random.basic import IntegersRV
from phintys.tensor.random.type import random_generator_type

#: rightmost abscissa of the ziggurats, and the densities
RIGHT = {
    "random_standard_normal": 3.6541528853610088,
    "random_standard_exponential": 7.697117470131487,
}
DENSITY = {
    "random_standard_normal": lambda x: np.exp(-0.5 * x * x),
    "random_standard_exponential": lambda x: np.exp(-x),
}


@pytest.mark.parametrize("base", ZIGGURATS)
def test_the_measured_tables_are_those_of_the_algorithm(base):
    rows, shape = streams._measured(base), ZIGGURATS[base]
    assert rows is not None
    assert streams.table(base) == rows.ctypes.data
    edges = rows["factor"] * 2.0**shape.bits
    right = RIGHT[base]
    assert edges[255] == pytest.approx(right, rel=1e-12)
    ratios = edges[2:255] / edges[3:]
    np.testing.assert_allclose(rows["below"][3:] / 2.0**shape.bits, ratios, rtol=1e-12)
    heights = np.diff(DENSITY[base](edges[2:]))  # rectangles of equal area
    np.testing.assert_allclose(-heights * edges[3:], edges[0] * DENSITY[base](right), rtol=1e-9)


def test_threads_share_a_table():
    """Code of each refers to the memory of the one that is kept."""
    name = "random_standard_exponential"
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: streams._measured(base=name), range(4)))  # not in the cache
    assert all(rows is found[0] for rows in found)


def test_only_pcg64_is_inlined():
    def next_of(kind):
        rng = np.random.Generator(kind(1))
        return bitgen.BitGen.from_address(bitgen.address(rng)).next_uint64

    for routine in BASES:
        assert streams.guard(routine) == next_of(np.random.PCG64)
    for kind in (np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64):
        assert streams.guard("random_uniform") != next_of(kind)


DRAWS = {
    "normal": (0.5, 2.0),
    "uniform": (-1.0, 3.0),
    "exponential": (0.7,),
    "halfnormal": (1.0, 2.0),
    "halfcauchy": (0.0, 1.0),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("size", [200_000, (3, 70_000), (100, 50, 40), ()])
def test_many_numbers(name, size):
    """So many that rows in the tail, which take several words, are among them."""
    rng = pt.random.rng()
    drawn = list(getattr(rng, name)(*DRAWS[name], size=size))
    given = np.random.default_rng(7)
    after, found = phintys.function([rng], drawn)(given)
    expected, wanted = phintys.function([rng], drawn, mode="FAST_COMPILE")(given)
    np.testing.assert_allclose(found, wanted, rtol=1e-11 if name == "halfcauchy" else 0)
    assert random_generator_type.values_eq(after, expected)


#: lengths of ranges: of halves of words, of whole words, those of which many words are rejected
LENGTHS = [
    1,
    2,
    10,
    2**31,
    3 * 10**9,
    2**32 - 1,
    2**32,
    2**32 + 1,
    10**12,
    2**62 + 2**61,
    2**63 - 1,
]


@pytest.mark.parametrize("length", [*LENGTHS, None])
def test_many_integers(length):
    """Of one range, and of a range for each column."""
    lengths = np.array(length or LENGTHS)
    low = -lengths // 2
    high, shape = low + lengths, lengths.shape
    a, b = (pt.tensor(name, dtype="int64", shape=shape) for name in "ab")
    rng, n = pt.random.rng(), pt.lscalar("n")
    after, x = rng.integers(a, b, size=(n, *shape))
    after, y = after.uniform(size=2)
    after, z = after.integers(0, 1000)
    f = phintys.function([rng, a, b, n], [after, x, y, z])
    given, expected = np.random.default_rng(7), np.random.default_rng(7)
    for count in (2001, 0, 1, 2):
        given, x, y, z = f(given, low, high, count)
        np.testing.assert_array_equal(x, expected.integers(low, high, (count, *shape)))
        np.testing.assert_array_equal(y, expected.uniform(size=2))
        assert z == expected.integers(0, 1000)
        assert random_generator_type.values_eq(given, expected)


def test_integers_by_masks_are_left_to_numpy():
    """A distribution of a user may ask for them."""

    class MaskedRV(IntegersRV):
        routines = ("random_bounded_uint64",)

        @classmethod
        def rng_fn(cls, rng, low, high, size):
            state = np.random.RandomState(rng.bit_generator)  # which draws by masks
            return state.randint(low, high, size)

        def native(self, b, draw, *params):
            low, high = params
            span = b.cast(
                b.map(lambda n, x, y: n.sub(n.sub(y, n.const(1, y)), x), low, high), "uint64"
            )
            return draw(
                "random_bounded_uint64", low, span, b.const(1023, "uint64"), b.const(1, "int64")
            )

    drawn = [MaskedRV()(0, 1000, size=500, rng=np.random.default_rng(3)) for _ in range(2)]
    found = phintys.function([], drawn[0])()
    np.testing.assert_array_equal(found, phintys.function([], drawn[1], mode="FAST_COMPILE")())


def test_a_range_of_all_words_is_left_to_numpy():
    """Its length has 65 bits; a distribution of a user may ask for it."""
    least, greatest = -(2**63), 2**63 - 1

    class WordsRV(IntegersRV):
        routines = ("random_bounded_uint64",)

        @classmethod
        def rng_fn(cls, rng, low, high, size):
            return rng.integers(least, greatest, size, endpoint=True)

        def native(self, b, draw, *params):
            span, zero = (b.const(x, "uint64") for x in (2**64 - 1, 0))
            return draw("random_bounded_uint64", params[0], span, zero, b.const(0, "int64"))

    found = WordsRV()(least, greatest, size=5, rng=np.random.default_rng(3))
    expected = np.random.default_rng(3).integers(least, greatest, 5, endpoint=True)
    np.testing.assert_array_equal(phintys.function([], found)(), expected)


@pytest.fixture
def _looked_up_again():
    """What is known of NumPy is forgotten, and the code in memory that has been linked with it."""
    for forget in (streams.guard.cache_clear, native._recent.clear):
        forget()
    yield
    for forget in (streams.guard.cache_clear, native._recent.clear):
        forget()


@pytest.mark.usefixtures("_looked_up_again")
@pytest.mark.parametrize("what", ["_next_of_pcg64", "_halves_words", "_multiplies"])
def test_a_numpy_that_draws_integers_in_another_way_is_called(what, monkeypatch):
    monkeypatch.setattr(streams, what, lambda: None)
    rng = pt.random.rng()
    f = phintys.function([rng], list(rng.integers(0, 10, size=13)))
    expected = np.random.default_rng(7)
    after, found = f(np.random.default_rng(7))
    np.testing.assert_array_equal(found, expected.integers(0, 10, 13))
    assert random_generator_type.values_eq(after, expected)
    nobody = streams.guard("random_bounded_uint64")
    assert nobody != bitgen.BitGen.from_address(bitgen.address(expected)).next_uint64


@pytest.mark.usefixtures("_looked_up_again")
@pytest.mark.parametrize("what", ["_next_of_pcg64", "_measured", "_scales"])
def test_a_numpy_that_draws_in_another_way_is_called(what, monkeypatch):
    monkeypatch.setattr(streams, what, lambda *args: None)
    for name, length in (("normal", 11), ("exponential", 12)):
        rng = pt.random.rng()
        f = phintys.function([rng], list(getattr(rng, name)(*DRAWS[name], size=length)))
        expected = np.random.default_rng(7)
        after, found = f(np.random.default_rng(7))
        np.testing.assert_array_equal(found, getattr(expected, name)(*DRAWS[name], length))
        assert random_generator_type.values_eq(after, expected)
        nobody = streams.guard(f"random_{name}")
        assert nobody != bitgen.BitGen.from_address(bitgen.address(expected)).next_uint64


@pytest.mark.parametrize("routine", ["random_uniform", "random_normal"])
def test_a_numpy_that_fuses_products_and_sums_is_called(routine, monkeypatch):
    """Some compilers make ``loc + scale * x`` one instruction, which rounds once."""

    def fused(state, loc, scale):
        exact = Fraction(loc) + Fraction(scale) * Fraction(plain(state))
        return float(exact)

    base, own = BASES[routine], bitgen.routine
    plain = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(own(base))
    scaled = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, *[ctypes.c_double] * 2)(fused)
    place = ctypes.cast(scaled, ctypes.c_void_p).value
    assert streams._scales(routine)
    monkeypatch.setattr(bitgen, "routine", lambda name: place if name == routine else own(name))
    assert not streams._scales(routine)
