"""The algebraic facts of the rows, checked on numbers: rewrites rely on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rows import CASTS, ROWS, accepts, arity, domains, edges, grid

from phintys.scalar.op import TABLE

KNOWN = {
    "domain", "range", "inverse", "odd", "even", "increasing", "decreasing", "zero_at_zero",
    "idempotent", "commutative", "associative", "identity", "absorbing", "mirror",
    "unsigned_literals",
}  # fmt: skip
#: g(f(x)) == x only there
INVERSE_ON = {
    "sqrt": (0.0, 20.0),
    "sinh": (-5.0, 5.0),
    "tanh": (-3.0, 3.0),
    "erf": (-2.0, 2.0),
    "erfc": (-2.0, 4.0),
    "ndtr": (-5.0, 2.0),
    "log_ndtr": (-20.0, 2.0),
    "sigmoid": (-20.0, 4.0),
    "exp": (-20.0, 20.0),
}


def having(fact: str) -> list[str]:
    return [n for n in (*ROWS, *CASTS[:1]) if TABLE[n].facts.get(fact) not in (None, False)]


def line(name: str, count: int = 101) -> np.ndarray:
    """Points of the domain of a function of one number, in order; integers where it needs them."""
    op = TABLE[name]
    ((lo, hi),) = domains(op)
    if not accepts(op, "float64"):
        return np.arange(-50, 50)
    return np.linspace(lo, hi, count)


def sample(name: str) -> np.ndarray:
    return np.array([0.7, -1.3, 2.0, 0.0, 5.5]) if accepts(TABLE[name], "float64", "float64") else (
        np.array([3, -4, 0, 17, 1])
    )  # fmt: skip


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ROWS)
def test_facts_are_known_ones(name: str) -> None:
    assert set(TABLE[name].facts) <= KNOWN


@pytest.mark.parametrize("name", having("inverse"))
def test_inverse(name: str) -> None:
    """``f(inverse(y)) == y`` for y in the range of f, whose inverse may be one of several."""
    op, other = TABLE[name], TABLE[TABLE[name].facts["inverse"]]
    x = line(name)
    if name in INVERSE_ON:
        x = np.linspace(*INVERSE_ON[name], 101)
    close(other.compute(op.compute(x)), x, 1e-9)


@pytest.mark.parametrize("name", having("odd"))
def test_odd(name: str) -> None:
    x = line(name)
    close(TABLE[name].compute(-x), -TABLE[name].compute(x))


@pytest.mark.parametrize("name", having("even"))
def test_even(name: str) -> None:
    x = line(name)
    close(TABLE[name].compute(-x), TABLE[name].compute(x))


@pytest.mark.parametrize("name", having("increasing"))
def test_increasing(name: str) -> None:
    assert (np.diff(TABLE[name].compute(line(name))) >= 0).all()


@pytest.mark.parametrize("name", having("decreasing"))
def test_decreasing(name: str) -> None:
    x = line(name)
    # reciprocal decreases on either side of 0
    assert (np.diff(TABLE[name].compute(x)) <= 0).all()


@pytest.mark.parametrize("name", having("zero_at_zero"))
def test_zero_at_zero(name: str) -> None:
    assert TABLE[name].compute(np.zeros(1)) == 0


@pytest.mark.parametrize("name", having("range"))
def test_range(name: str) -> None:
    op = TABLE[name]
    lo, hi = op.facts["range"]
    values = grid(*(np.linspace(a, b, 9) for a, b in domains(op)))
    found = op.compute(*values)
    assert (found >= lo).all()
    assert (found <= hi).all()


@pytest.mark.parametrize("name", having("idempotent"))
def test_idempotent(name: str) -> None:
    """``f(f(x)) == f(x)``, for two arguments ``f(x, x) == x``."""
    op = TABLE[name]
    if op.nin == 1:
        once = op.compute(line(name))
        np.testing.assert_array_equal(op.compute(once), once)
    else:
        x = sample(name)
        np.testing.assert_array_equal(op.compute(x, x), x)


@pytest.mark.parametrize("name", having("commutative"))
def test_commutative(name: str) -> None:
    x, y = grid(sample(name), sample(name))
    op = TABLE[name]
    np.testing.assert_array_equal(op.compute(x, y), op.compute(y, x))


@pytest.mark.parametrize("name", having("associative"))
def test_associative(name: str) -> None:
    op = TABLE[name]
    x, y, z = grid(*[sample(name)] * 3)
    close(op.compute(op.compute(x, y), z), op.compute(x, op.compute(y, z)))


@pytest.mark.parametrize("name", having("identity"))
def test_identity(name: str) -> None:
    op = TABLE[name]
    for dtype in ("bool", "int8", "float64"):
        if accepts(op, dtype, dtype):
            x = np.array([1, 3], dtype) if "domain" in op.facts else edges(dtype)
            neutral = np.full(x.shape, op.identity).astype(dtype)
            np.testing.assert_array_equal(op.compute(x, neutral), x)


@pytest.mark.parametrize("name", having("absorbing"))
def test_absorbing(name: str) -> None:
    op = TABLE[name]
    x = sample(name)
    absorbing = np.full_like(x, op.facts["absorbing"])
    np.testing.assert_array_equal(op.compute(x, absorbing), absorbing)


@pytest.mark.parametrize("name", having("mirror"))
def test_mirror(name: str) -> None:
    x, y = grid(edges("float64"), edges("float64"))
    mirrored = TABLE[TABLE[name].facts["mirror"]]
    np.testing.assert_array_equal(TABLE[name].compute(x, y), mirrored.compute(y, x))


@pytest.mark.parametrize("name", [n for n in ROWS if TABLE[n].nin != 1])
def test_facts_about_one_argument_are_given_to_functions_of_one(name: str) -> None:
    for fact in ("odd", "even", "inverse", "increasing", "decreasing", "zero_at_zero"):
        assert fact not in TABLE[name].facts
    assert arity(TABLE[name]) > 1
