"""Copies of generators for compiled code: independent, and used again only if nobody has them."""

from __future__ import annotations

import random
import sys
import threading

import numpy as np
import pytest

import phintys
from phintys import bitgen
from phintys.tensor.random.type import random_generator_type


def generator(kind="PCG64"):
    """A generator in a state in which half a word is left."""
    rng = np.random.Generator(getattr(np.random, kind)(np.random.SeedSequence(5)))
    rng.integers(10)
    return rng


def opened(rng):
    """A copy, whose address is right, in the state of ``rng``."""
    copy, address = bitgen.opened(rng)
    assert address == bitgen.address(copy)
    assert random_generator_type.values_eq(copy, rng)
    assert copy.bit_generator.seed_seq is rng.bit_generator.seed_seq
    return copy


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_copies_that_are_held_are_independent(kind):
    rng = generator(kind)
    copies = [opened(rng) for _ in range(5)]
    assert len({id(c.bit_generator) for c in [rng, *copies]}) == 6
    numbers = [c.normal(size=3).tolist() for c in copies]
    assert numbers == [rng.normal(size=3).tolist()] * 5


def test_a_copy_that_nobody_has_is_used_again():
    rng = generator()
    first, other = opened(rng), opened(rng)
    place = id(first)
    first.normal(size=3)
    del first
    rng.integers(10, size=4)
    again = opened(rng)
    assert id(again) == place
    assert again is not other
    numbers = [g.integers(10**12, size=3).tolist() for g in (again, rng)]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("part", ["itself", "bit_generator"])
def test_a_copy_of_which_a_part_is_held_is_not_changed(part):
    rng = generator()
    expected = rng.bit_generator.state
    held = [getattr(copy, part, copy) for copy in (opened(rng), opened(rng))]
    rng.normal()
    for _ in range(3):
        opened(rng).normal()
    assert [getattr(h, "bit_generator", h).state for h in held] == [expected] * 2


def test_generators_of_one_seed_are_told_apart_by_their_states():
    seeds = np.random.SeedSequence(5)
    one, other = (np.random.Generator(np.random.PCG64(seeds)) for _ in range(2))
    other.normal(size=3)
    for rng in (one, other, one):
        opened(rng).normal()


def test_threads_never_get_the_same_copy():
    rng, wrong = generator(), []
    expected = generator().integers(10**12, size=2).tolist()

    def work(seed):
        choose, held = random.Random(seed), []
        for _ in range(400):
            held.append(bitgen.opened(rng)[0])
            if choose.random() < 0.7:
                copy = held.pop(0)
                if copy.integers(10**12, size=2).tolist() != expected:
                    wrong.append(seed)
                del copy

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_a_numpy_of_another_layout_is_asked_for_copies(monkeypatch):
    monkeypatch.setattr(bitgen, "_of_known_layout", frozenset)
    rng = generator()
    for _ in range(3):
        opened(rng).normal()


@pytest.mark.parametrize("mode", ["FAST_RUN", "C"])
def test_a_generator_that_a_user_has_seen_is_not_changed(mode):
    rng = phintys.shared(generator())
    after, x = rng.normal(size=2)
    f = phintys.function([], x, updates={rng: after}, mode=mode)
    seen = []
    for _ in range(5):
        f()
        value = rng.get_value(borrow=True)
        seen.append((value, value.bit_generator.state))
    assert all(value.bit_generator.state == state for value, state in seen)
    expected = generator()
    expected.normal(size=10)
    np.testing.assert_array_equal(f(), expected.normal(size=2))
    assert random_generator_type.values_eq(rng.get_value(), expected)
