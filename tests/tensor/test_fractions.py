"""Sums in which terms cancel before they are computed: of fractions, and of products of powers."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.graph.variable import Variable
from phintys.tensor.fractions import without_cancellation
from phintys.tensor.laurent import Algebra, TooLong, written

x, y, z, s = pt.dscalars("x", "y", "z", "s")
TOTAL = pt.add(x, y)
GIVEN = {x: 1e9, y: 1e-7, z: 0.25, s: -1.5}

#: sums of terms, and the same without cancellation
SUMS = {
    "1 - x / (x + y)": ([1.0, -x / pt.add(x, y)], y / (x + y)),
    "x - x**2 / (x + y)": ([x, -pt.sqr(x) / pt.add(x, y)], x * y / (x + y)),
    "y / x - (y + z) / (x + z)": (
        [y / x, -pt.add(y, z) / pt.add(x, z)],
        z * (y - x) / (x * (x + z)),
    ),
    "two denominators": (
        [1.0, pt.mul(-2.0, x) / TOTAL, pt.sqr(x) / pt.sqr(TOTAL)],
        (y / (x + y)) ** 2,
    ),
    "sign(s) / abs(s)": (
        [-pt.sign(s) / pt.abs(s), pt.add(1.0, x) / pt.mul(pt.add(1.0, x, y), s)],
        -y / (s * (1 + x + y)),
    ),
    "factors": ([pt.add(x, y) * z, -pt.add(x, 1.0) * z], (y - 1) * z),
}


def computed(v: Variable) -> float:
    inputs = list(GIVEN)
    f = phintys.function(inputs, v, mode="FAST_COMPILE", on_unused_input="ignore")
    return float(f(*GIVEN.values()))


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_fractions(name: str) -> None:
    terms, expected = SUMS[name]
    found = without_cancellation([pt.as_tensor_variable(t) for t in terms])
    assert found is not None
    np.testing.assert_allclose(computed(found), computed(expected), rtol=1e-14)


@pytest.mark.parametrize(
    "terms",
    [
        [x, y / pt.add(x, z)],
        [1 / x, -1 / y],
        # the difference x - y may be much smaller than its terms, which do not come apart
        [z / pt.add(x, -y), pt.mul(z, s)],
        [pt.add(1.0, -pt.sqr(z)) * x, -s / pt.add(1.0, -pt.sqr(z)), y],
    ],
    ids=str,
)
def test_sums_that_stay(terms: list[pt.TensorVariable]) -> None:
    assert without_cancellation(terms) is None


def test_compiled_sums() -> None:
    """The variance of a filtered state, and its derivative."""
    p, r = pt.dvectors("p", "r")
    left = p - p**2 / (p + r)
    f = phintys.function([p, r], [left, phintys.grad(left.sum(), p)])
    found = f([1e9, 1.0, 1e-30], [1e-9, 1.0, 1e30])
    np.testing.assert_allclose(found, [[1e-9, 0.5, 1e-30], [1e-36, 0.25, 1]], rtol=1e-13)


def test_products_of_powers() -> None:
    """A square root is taken of the factors, and sums that are equal are one factor."""
    algebra = Algebra()
    square = algebra.product(algebra.of(pt.sqr(s) - pt.sqr(z * s)))
    assert square is not None
    root = algebra.root(square)
    assert root is not None
    expected = np.abs(GIVEN[s]) * np.sqrt(1 - GIVEN[z] ** 2)
    np.testing.assert_allclose(computed(written([root])), expected, rtol=1e-15)
    assert algebra.times([root], [root]) == [square]
    (quotient,) = algebra.over([square], root)
    assert quotient == root
    assert algebra.product(algebra.of(x - x)) is None
    assert algebra.root(algebra.of(-pt.sqr(s))[0]) is None


def test_exponentials_of_small_numbers() -> None:
    algebra = Algebra()
    terms = algebra.of(x - x * pt.exp(y) ** 2)
    np.testing.assert_allclose(computed(written(terms)), -1e9 * np.expm1(2e-7), rtol=1e-14)


def test_long_sums() -> None:
    algebra = Algebra()
    terms = algebra.of(pt.add(*pt.dscalars("abcdef")))
    with pytest.raises(TooLong):
        algebra.times(terms, algebra.of(pt.add(*pt.dscalars("ghijkl"))))


def test_differences_from_one() -> None:
    """Of exponentials, powers and `sigmoid` that are next to 1, or to 1/2."""
    u, a, c = pt.dvectors("u", "a", "c")
    small, large = np.array([1e-20, -1e-9, 3.0]), np.array([1e9, 1e-9, 0.5])
    outputs = [
        c - c * pt.exp(u),
        c - c * a**u,
        2 * c * pt.sigmoid(u) - c,
        pt.sigmoid(-u) - pt.sigmoid(u),
        phintys.grad((u * pt.log(a) - a**u).sum(), a),
    ]
    found = phintys.function([u, a, c], outputs)(small, large, large)
    logarithm = np.expm1(small * np.log(large))
    halves = np.tanh(small / 2)
    expected = [
        -large * np.expm1(small),
        -large * logarithm,
        large * halves,
        -halves,
        -small / large * logarithm,
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_powers_next_to_one_at_zero() -> None:
    """Where the base is not positive a power is computed as it is written."""
    u, a = pt.dvectors("u", "a")
    f = phintys.function([u, a], [1 - a**u, 3 * u - 3 * u * a**u])
    np.testing.assert_array_equal(f([2, 0, 3], [0, 0, -2]), [[1, 0, 9], [6, 0, 81]])


def test_cancelling_exponentials() -> None:
    """Whatever else a quotient is used for."""
    u, h = pt.dvectors("u", "h")
    z = u / pt.exp(h)
    f = phintys.function([u, h], [z, z * pt.exp(h), z**2 * pt.exp(2 * h) / pt.exp(2 * h)])
    found = f([3.0, 2.0], [800.0, 700.0])
    np.testing.assert_allclose(found[1], [3, 2], rtol=1e-15)
