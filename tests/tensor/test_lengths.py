"""Lengths made by the program: negative ones, and shapes of too many elements."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phintys
import phintys.tensor as pt

n, m = pt.lscalars("n", "m")
vector = pt.dvector("vector")

MODES = {
    "reference": phintys.Mode("py", None),
    "llvm": phintys.Mode("llvm", None),
    "FAST_COMPILE": "FAST_COMPILE",
    "FAST_RUN": "FAST_RUN",
    "C": "C",
}

#: what has a shape of two lengths, of which nothing is stored once it is compiled
TWO = {
    "alloc": lambda: pt.alloc(1.5, n, m).sum(),
    "zeros": lambda: pt.zeros((n, m)).sum(),
    "integers": lambda: pt.alloc(np.int64(3), n, m).sum(),
    "product": lambda: pt.ones((n, m)).prod(),
    "maximum": lambda: pt.full((n, m), 3.0).max(),
    "mean": lambda: pt.ones((n, m)).mean(),
    "elementwise": lambda: pt.exp(pt.alloc(1.5, n, m)).sum(),
    "broadcast": lambda: pt.broadcast_to(1.5, (n, m)).sum(),
    "rows": lambda: pt.alloc(1.5, n, m).sum(axis=0).sum(),
    "fill": lambda: pt.second(pt.zeros((n, m)), 2.0).sum(),
    "size": lambda: pt.ones((n, m)).size,
    "shape": lambda: pt.empty((n, m)).shape[0],
    "element": lambda: pt.alloc(1.5, n, m)[0, 0],
    "gradient": lambda: phintys.grad(pt.alloc(vector[0], n, m).sum(), vector)[0],
    "eye": lambda: pt.eye(n, m).sum(),
}


@pytest.fixture(params=MODES)
def mode(request):
    if request.param == "C" and not shutil.which("cc"):
        pytest.skip("no C compiler")
    return MODES[request.param]


@pytest.mark.parametrize("name", TWO)
def test_shapes_that_no_array_has_are_refused(name, mode):
    f = phintys.function([n, m, vector], TWO[name](), mode=mode, on_unused_input="ignore")
    for shape in ((-1, 5), (5, -1), (-2, -3), (2**40, 2**40), (2**62, 4), (2**32, 2**32)):
        if name == "eye" and min(shape) > 0:
            continue  # its elements differ: it is made
        with pytest.raises((ValueError, MemoryError)):
            f(*shape, np.ones(3))
    f(2, 3, np.ones(3))


@pytest.mark.parametrize(
    ("make", "lengths"),
    [
        (lambda: pt.tile(vector, (n,)).sum(), [-1, 2**62]),
        (lambda: pt.repeat(vector, n).sum(), [-1, 2**62]),
        (lambda: pt.repeat(vector, n), [-1, 2**62]),
        (lambda: pt.concatenate([pt.zeros((n,)), pt.zeros((n,))]).sum(), [-1, 2**62]),
        (lambda: pt.linspace(0.0, 1.0, n).sum(), [-1]),
        (lambda: vector.reshape((n, -1)), [-2, 2**62, 0]),
    ],
)
def test_lengths_that_cannot_be_are_refused(make, lengths, mode):
    f = phintys.function([n, vector], make(), mode=mode, on_unused_input="ignore")
    for length in lengths:
        with pytest.raises((ValueError, MemoryError)):
            f(length, np.ones(6))
    f(3, np.ones(6))


def test_the_error_tells_the_lengths(mode):
    f = phintys.function([n, m], pt.zeros((n, m)).size, mode=mode)
    with pytest.raises(ValueError, match="negative"):
        f(-1, 5)


def test_no_check_is_left_where_lengths_are_those_of_an_array():
    from phintys.lowering.program import Check

    x = pt.dmatrix("x")
    f = phintys.function([x], pt.alloc(1.5, x.shape[1], 1, x.shape[0]).sum())
    assert not any(isinstance(s, Check) for s in f.program.steps)
    assert f(np.ones((2, 3))) == 9


@pytest.mark.parametrize(
    "fill",
    [
        lambda a, b: pt.alloc(1.5, a, b),
        lambda a, b: pt.second(pt.alloc(1.5, a, b), 1.0),
        lambda a, b: pt.alloc(1.5, 2**10, a, b),
    ],
)
def test_lengths_of_two_arrays_may_be_too_large_together(fill, mode):
    x, y = pt.matrices("x", "y", dtype="int8")
    filled = fill(x.shape[1], y.shape[1])
    f = phintys.function([x, y], filled.sum(), mode=mode)
    far = np.zeros((0, 2**40), "int8")
    with pytest.raises((ValueError, MemoryError)):
        f(far, far)
    assert f(far, np.zeros((2, 0), "int8")) == 0


BOUNDS = [
    (2**62, -(2**62)),
    (-(2**62), 2**62),
    (2**63 - 1, -(2**63)),
    (-(2**63), 2**63 - 1),
    (2**63 - 5, 2**63 - 1),
    (-(2**63), -(2**63) + 5),
    (2**63 - 1, 2**63 - 1),
    (5, -1),
    (-3, 4),
]


@pytest.mark.parametrize("step", [1, -1, 3, -3, 2**61, -(2**61), 2**62])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_ranges_with_extreme_bounds(step, bounds, mode):
    """Python's `range` is the truth, where an array of that length may be made at all."""
    r = pt.arange(n, m, step)
    f = phintys.function([n, m], r, mode=mode)
    g = phintys.function([n, m], [r.shape[0], r.sum()], mode=mode)
    wanted = range(*bounds, step)
    if (bounds[1] - bounds[0]) // step < 100:
        expected = list(wanted)
        assert f(*bounds).tolist() == expected
        count, total = g(*bounds)
        assert count == len(expected)
        assert int(total) == (sum(expected) + 2**63) % 2**64 - 2**63
    else:
        with pytest.raises((ValueError, MemoryError)):
            f(*bounds)


def test_a_length_that_is_no_integer_is_refused():
    x = pt.dvector("x")
    for build in (lambda n: pt.pad(x, n), pt.tri, pt.tril_indices, lambda n: pt.cov(x, ddof=n)):
        with pytest.raises(TypeError, match=r"is (an|a 0-d) integer"):
            build(1.5)


HUGE = st.sampled_from([2**20, 2**31, 2**50, 2**60, 2**61, 2**62, 2**63 - 1])
NUMBERS = st.one_of(st.integers(-9, 9), HUGE, HUGE.map(lambda k: -k))
FUNCTIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // pt.maximum(abs(b), 1),
    "quotient": lambda a, b: a // 3,
    "mod": lambda a, b: a % pt.maximum(abs(b), 1),
    "minimum": pt.minimum,
    "maximum": pt.maximum,
}
PARTS = {
    "start": lambda x, k: x[k:],
    "stop": lambda x, k: x[:k],
    "step": lambda x, k: x[:: pt.switch(pt.eq(k, 0), 1, k)],
    "back": lambda x, k: x[k::-1],
    "part of a part": lambda x, k: x[k:][1:],
    "set": lambda x, k: x[k:].set(9.0),
    "position": lambda x, k: x[k % pt.maximum(x.shape[0], 1)],
    "positive": lambda x, k: x[pt.maximum(k, 0) :],
}


@st.composite
def integers_made_of_lengths(draw):
    """An integer that is computed from the lengths of two vectors and from constants."""
    pool = [vector.shape[0], other.shape[0], *[pt.constant(draw(NUMBERS)) for _ in range(2)]]
    for _ in range(draw(st.integers(1, 4))):
        function = FUNCTIONS[draw(st.sampled_from(sorted(FUNCTIONS)))]
        pool.append(function(pool[-1], draw(st.sampled_from(pool))))
        pool.append(pool[-1] * draw(NUMBERS))
    return pt.cast(pool[-1], "int64")


other = pt.dvector("other")


@given(k=integers_made_of_lengths(), name=st.sampled_from(sorted(PARTS)))
@settings(max_examples=100, deadline=None)
def test_lengths_times_huge_constants_wrap_as_in_the_reference(k, name):
    """Or compiled code says that they overflow."""
    out = PARTS[name](vector, k)
    functions = [
        phintys.function([vector, other], out, mode=MODES[mode], on_unused_input="ignore")
        for mode in ("reference", "llvm", "FAST_RUN")
    ]
    for count in (0, 1, 3, 4, 8):
        given = np.arange(float(count)), np.ones(3)
        wanted, *found = [_value(f, given) for f in functions]
        for value in found:
            assert value in (wanted, ValueError), (count, wanted)


def _value(f, given):
    """The result of a call as a list, or the class of its error."""
    try:
        return f(*given).tolist()
    except (ValueError, IndexError) as exc:
        return IndexError if isinstance(exc, IndexError) else ValueError
