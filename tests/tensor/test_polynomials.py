"""Polynomials of expressions: expansion, arithmetic, products of linear forms."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.tensor.polynomials import (
    atoms_of,
    expansion,
    is_product,
    linear_factors,
    slope,
    square_of,
    total,
    written,
)

x, y, z = (pt.dscalar(name) for name in "xyz")


def text(p):
    return phintys.pp(written(p, "float64"))


def terms(e, kept=()):
    """Factors and powers by name."""
    found = expansion(e, kept).terms
    return sorted(
        (t.factor, sorted((phintys.pp(a.of), k) for a, k in t.powers.items())) for t in found
    )


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        (x + 2 * x - y, [(-1, [("y", 1)]), (3, [("x", 1)])]),
        ((x - y) ** 2 - x**2, [(-2, [("x", 1), ("y", 1)]), (1, [("y", 2)])]),
        ((x + y) / (2 * y), [(0.5, []), (0.5, [("x", 1), ("y", -1)])]),
        (x / (x + y), [(1, [("(x + y)", -1), ("x", 1)])]),
        (-(1 / x) * x**-2, [(-1, [("x", -3)])]),
        (pt.exp(x) * y - y * pt.exp(x), []),
        (pt.cos(x) * y, [(1, [("Cosm1(x)", 1), ("y", 1)]), (1, [("y", 1)])]),
        (3.0 + 0 * x, [(3, [])]),
    ],
)
def test_expansion(e, expected):
    assert terms(e) == expected


def test_expansion_stops():
    """At variables that are kept, and where there would be many terms."""
    u = x - y
    assert terms(u**2, {u}) == [(1, [("(x - y)", 2)])]
    assert expansion(u**2, {u}).through and u not in expansion(u**2, {u}).through
    long = sum(pt.dscalar(f"a{k}") for k in range(12))
    assert len(expansion(long).terms) == 12
    assert [t.powers for t in expansion(long * (x + y)).terms] != []
    assert len(expansion(long * (x + y)).terms) == 1


def test_moved_atoms():
    """Of vectors and scalars: an atom is a variable with its broadcasting."""
    v = pt.dvector("v")
    found = written(expansion((v - x) ** 2 - v**2).terms, "float64")
    f = phintys.function([v, x], found)
    np.testing.assert_allclose(f([1.0, 1e9], 2.0), [0, 4 - 4e9])


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        (x**2 - 2 * x * y + y**2, "Sqr((x - y))"),
        ((x - y) ** 2 / z**2 - y**2 / z**2, "(((x - (y * 2.0)) / z) * (x / z))"),
        (x**2 / z - y**2 / z, "((1.0 / z) * (x - y) * (x + y))"),
        (z * x**2 + z * y**2, "((Sqr(x) + Sqr(y)) * z)"),
        (x * y + x * z, "((y + z) * x)"),
        (9 * x**2 - 1, "(9.0 * (x - 0.3333333333333333) * (x + 0.3333333333333333))"),
    ],
)
def test_written(e, expected):
    assert text(expansion(e).terms) == expected


def test_squares_and_products():
    assert square_of(expansion(3 * (2 * x - y) ** 2).terms) == 12
    assert square_of(expansion(x**2 - y**2).terms) is None
    assert is_product(expansion(x**2 - y**2).terms) and not is_product(expansion(x**2 + y**2).terms)
    assert linear_factors(expansion(x**3 + y).terms) is None
    assert linear_factors(expansion(x**2 + x * y * z + y**2).terms) is None


def test_slopes():
    p = expansion((x - y) ** 2 / x).terms
    assert [phintys.pp(a.of) for a in atoms_of(p)] == ["x", "y"]
    by_x, by_y = (slope(p, a) for a in atoms_of(p))
    given = {x: 3.0, y: 5.0}
    assert written(by_x, "float64").eval(given) == pytest.approx(1 - 25 / 9)
    assert written(by_y, "float64").eval(given) == pytest.approx(-2 + 10 / 3)


def test_factors_that_cancel_up_to_rounding():
    third = expansion(x * (0.1 + 0.2)).terms, expansion(x * -0.3).terms
    assert total(third) == []
    assert total([expansion(x).terms, expansion(x * (1e-7 - 1)).terms]) != []
    assert total([expansion(x).terms, expansion(x * (1e-7 - 1)).terms], "float32") == []


def test_dtypes():
    """Integers are cast: their products would wrap."""
    i, w = pt.bscalar("i"), pt.fscalar("w")
    found = written(expansion(w * i * i).terms, "float32")
    assert found.type.dtype == "float32"
    assert found.eval({i: 100, w: 2.0}) == 20000
