# pyright: basic
"""Dims: slices of a length that is known or not."""

from __future__ import annotations

import itertools
from operator import add, floordiv, mod, mul, sub

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt
from phintys.dims import ZERO, Dim, dim_max, dim_min, slice_range, total
from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Builder
from phintys.lowering.interpret import interpret
from phintys.lowering.long_lengths import LONGEST
from phintys.lowering.memory import plan_memory
from phintys.lowering.spec import verify

bounds = st.none() | st.integers(-12, 12)
steps = st.integers(-4, 4).filter(bool)
lengths = st.integers(0, 9)


def _check(first: Dim, count: Dim, values: dict[Dim, int], expected: range) -> None:
    assert count.evaluate(values) == len(expected)
    if expected:
        assert first.evaluate(values) == expected[0]


@given(bounds, bounds, steps, lengths)
def test_slice_of_a_symbolic_length(start, stop, step, n):
    symbol = Dim.symbol(("len", 0, 0))
    expected = range(n)[start:stop:step]
    for length in (symbol, n):
        first, count = slice_range(start, stop, step, length)
        _check(first, count, {symbol: n}, expected)


@given(st.integers(-12, 12), st.integers(-12, 12), steps, lengths, st.sampled_from(range(8)))
def test_slice_with_symbolic_parts(start, stop, step, n, symbolic):
    names = [Dim.symbol(("item", k)) for k in range(3)]
    values = dict(zip(names, (start, stop, step)))
    a, b, c = [d if symbolic >> k & 1 else values[d] for k, d in enumerate(names)]
    first, count = slice_range(a, b, c, n, forward=step > 0)
    _check(first, count, values, range(n)[start:stop:step])


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
def test_windows_of_equal_length_have_one_normal_form(skip, before, after):
    """``x[a : n-b]`` where a + b is the same: finite differences of any order."""
    n = Dim.symbol(("len", 0, 0))
    total = before + after

    def length(start, behind):
        return slice_range(start, -behind if behind else None, 1, n)[1]

    assert length(before, after) is length(total, 0) is length(0, total)
    assert slice_range(skip, skip + total, 1, 30)[1].value == total


def test_slices_of_nonnegative_parts_stay_simple():
    n, i = Dim.symbol(("len", 0, 0)), Dim.symbol(("len", 1, 0))
    assert slice_range(None, None, -1, n)[1] is n
    assert slice_range(i, None, 1, n)[1].symbols() == {n, i}
    assert slice_range(None, i, 1, n)[1].render(lambda key: f"n{key[1]}") == "min(n0, n1)"
    assert slice_range(-2, None, 1, n)[1] is slice_range(None, 2, 1, n)[1]


def test_the_sum_of_many_lengths():
    symbols = [Dim.symbol(("len", k, 0)) for k in range(50)]
    assert total(symbols) is sum(symbols[1:], symbols[0])
    assert total([symbols[0], 2, symbols[0]]) is 2 * symbols[0] + 2
    assert total([]) == 0


@given(st.lists(st.tuples(bounds, bounds, steps), max_size=5), st.integers(0, 30))
def test_slices_of_slices(slices, n):
    symbol = length = Dim.symbol(("len", 0, 0))
    expected = range(n)
    for start, stop, step in slices:
        length = slice_range(start, stop, step, length)[1]
        expected = expected[start:stop:step]
    assert length.evaluate({symbol: n}) == len(expected)


def test_slices_of_slices_stay_short():
    n = Dim.symbol(("len", 0, 0))
    for start, stop, step in ((1, None, 1), (None, -2, 1), (2, -1, 1), (None, None, 2)):
        length = n
        for _ in range(20):
            length = slice_range(start, stop, step, length)[1]
        assert length.size <= 4, length


def _cut_and_joined(steps):
    """The length of x after ``steps`` times ``x = concatenate([x[:20], x[20:]])``, and before."""
    n = length = Dim.symbol(("len", 0, 0))
    for _ in range(steps):
        parts = [slice_range(None, 20, 1, length)[1], slice_range(20, None, 1, length)[1]]
        length = total(parts)
    return length, n


def test_shared_parts_are_visited_once(lines_run):
    def work(steps):
        length, n = _cut_and_joined(steps)
        m = Dim.symbol(("len", 1, 0))
        assert length.symbols() == {n}
        assert length.evaluate({n: 33}) == 33
        assert length.substitute({n: m}).substitute({m: n}) is length
        assert sum(1 for _ in length.parts()) < 6 * steps

    work(3)  # fills caches
    assert lines_run(work, 200) < 16 * lines_run(work, 25)


def test_long_lengths_get_symbols():
    b = Builder()
    length = b.length(b.input("float64", (None,)), 0)
    for _ in range(30):
        longer = dim_min(length, 20) + dim_max(length - 19, 1)
        length = b.length(b.empty("float64", [longer]), 0)
        assert length.size <= LONGEST
    assert b.long_lengths.spelled_out(length).symbols() == {Dim.symbol(("len", 0, 0))}
    program = verify(plan_memory(assemble(b, [b.map(lambda n, x: n.add(x, x), b.scalar(length))])))
    assert interpret(program, np.zeros(7))[0] == 2 * (7 + 30)


@given(st.integers(-(2**62), 2**62), st.integers(1, 2**31), st.integers(1, 2**31), lengths)
def test_quotients_of_quotients_have_no_constants_beyond_64_bits(shift, k, divisor, n):
    symbol = Dim.symbol(("len", 0, 0))
    found = (symbol // k + shift) // divisor
    assert found.evaluate({symbol: n}) == (n // k + shift) // divisor
    assert all(abs(d.value) < 2**63 for d in found.parts() if d.value is not None)


integers = st.integers(-(2**63), 2**63 - 1)


@given(st.data(), st.sampled_from([2**40, 2**62]), integers)
def test_ranges_hold_what_64_bits_compute(data, most, integer):
    """With products of lengths of at most 2**40 nothing is called exact that overflows."""
    n, i = Dim.symbol(("len", 0, 0)), Dim.symbol(("item", 1))
    values = {n: data.draw(st.integers(0, most)), i: integer}
    parts = [n, i, Dim.const(data.draw(st.integers(-5, 2**62))), dim_min(n, 3), dim_min(n, 4)]
    parts.append(dim_min(dim_max(i, 0), n))
    for _ in range(5):
        a, b = data.draw(st.sampled_from(parts)), data.draw(st.sampled_from(parts))
        combine = data.draw(st.sampled_from([add, sub, mul, floordiv, mod, dim_max, dim_min]))
        is_product = combine is mul and a.value is None and b.value is None
        sizes = a.weight < 2**63 and b.weight < 2**63 and a.evaluate(values) * b.evaluate(values)
        if not is_product or abs(sizes) <= most:
            parts.append(combine(a, b))
    found = [machine_value(part, values) for part in parts]
    exact = all(v == p.evaluate(values) for v, p in zip(found, parts) if p.is_exact)
    assert exact or most > 2**40
    assume(exact)
    assert all(p.low <= v <= p.high for v, p in zip(found, parts))


@given(st.integers(-4, 4), st.integers(0, 4))
def test_quotients_by_what_may_be_zero(integer, length):
    i, n = Dim.symbol(("item", 0)), Dim.symbol(("len", 0, 0))
    values = {i: integer, n: length}
    for a, b in itertools.product([i, n, n * 3, n * i, dim_max(n, 1) * n, ZERO], repeat=2):
        divisor = b.evaluate(values)
        assert (a // b).evaluate(values) == (a.evaluate(values) // divisor if divisor else 0)
    assert dim_max(n, 1) * n // dim_max(n, 1) is n


@pytest.mark.parametrize("mode", ["FAST_RUN", "C", "FAST_COMPILE"])
def test_products_that_are_no_sizes_of_arrays(mode):
    """They may be more than lengths are; what is made of them is clipped to the array."""
    i, j = pt.lscalars("i", "j")
    w = pt.tensor("w", dtype="float64", shape=(2048,))
    x, y = pt.bvectors("x", "y")
    large = (i % 2**35) * (j % 2**35)
    rows = x.shape[0] * y.shape[0] // 2**30
    results = [w[: large // 2**30], w[2047 - rows :], pt.set_subtensor(w[:rows], 7.0)]
    results += [w[: i // i], w[: x.shape[0] // x.shape[0]], pt.arange(large // 2**40 + 1)[:3]]
    f = phintys.function([i, j, x, y, w], results, mode=mode)
    ones, whole = np.broadcast_to(np.int8(1), 2**21), np.arange(2048.0)
    for k in (2**21, 5, 0):
        rows, one = k * k // 2**30, min(k, 1)
        expected = [whole[:rows], whole[2047 - rows :], np.where(whole < rows, 7, whole)]
        expected += [whole[:one], whole[:one], np.arange(k * k // 2**40 + 1)[:3]]
        for found, wanted in zip(f(k, k, ones[:k], ones[:k], whole), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("mode", ["FAST_RUN", "C", "FAST_COMPILE"])
def test_products_of_lengths_that_wrap_around(mode):
    """Those of several arrays do; positions made of them are clipped to the array."""
    vectors, matrices, w = pt.bvectors("x", "y", "z"), pt.bmatrices("a", "b"), pt.dvector("w")
    bounds = [pt.prod([v.shape[0] for v in vectors]), matrices[0].shape[0] * matrices[1].shape[0]]
    results = [r for s in bounds for r in (w[s : s + 3], pt.set_subtensor(w[s : s + 3], 7), w[:s])]
    f = phintys.function([*vectors, *matrices, w], results, mode=mode)
    long, whole = np.zeros(2_200_000, "int8"), np.arange(8.0)
    empty = np.empty((2**32 + 1, 0), "int8"), np.empty((3 * 2**30, 0), "int8")
    expected = []
    for product in (len(long) ** 3, len(empty[0]) * len(empty[1])):
        s = wrapped(product)
        written = whole.copy()
        written[s : s + 3] = 7
        expected += [whole[s : s + 3], written, whole[:s]]
    for found, wanted in zip(f(long, long, long, *empty, whole), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_products_of_clipped_lengths_are_clipped():
    """Not at the larger of the two bounds: a slice of the product would be left out."""
    x, y = pt.dvectors("x", "y")
    products = (x[:4][:, None] * y[:3]).ravel()
    f = phintys.function([x, y], [products[:5], products[-9:], products[3:12]])
    given = np.arange(1.0, 7), np.arange(2.0, 6)
    whole = np.outer(given[0][:4], given[1][:3]).ravel()
    for found, expected in zip(f(*given), (whole[:5], whole[-9:], whole[3:12]), strict=True):
        np.testing.assert_array_equal(found, expected)


def machine_value(dim, symbols):
    """The value of an expression, each part of which wraps around."""
    known = {}
    for part in dim.parts():
        if part.op in ("const", "symbol"):
            known[part] = wrapped(part.value if part.op == "const" else symbols[part])
        else:
            args = [Dim.const(known[a]) for a in part.args]
            known[part] = wrapped(Dim(part.op, tuple(args)).evaluate({}))
    return known[dim]


def wrapped(value):
    return (value + 2**63) % 2**64 - 2**63
