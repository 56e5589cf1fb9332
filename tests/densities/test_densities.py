"""Log-densities as people write them: values and derivatives are right up to the ends of the range.

What is wrong is listed in ``known.txt``, and no more than that may be wrong.
"""

from __future__ import annotations

from functools import cache

import density_series as mp
import mpmath
import numpy as np
import pytest
from density_evaluate import built
from density_judge import CLEARLY, Judged, excess, judge
from density_known import (
    Places,
    read_differing,
    read_known,
    read_points,
    updated,
    write_differing,
    write_known,
    written,
)
from density_row import LABELS, Density
from density_table import TABLE
from density_truth import DTYPES, compute, load, short, truths
from tiers import few_rows, rest

import phintys

#: the largest share of places that may be wrong, in percent; what is aimed at is 0.5 and 2
CEILINGS = {"float64": 1.35, "float32": 1.35}
FORMS = [(density.name, form) for density in TABLE.values() for form in density.forms]
#: the densities that run in all modes
IN_ALL_MODES = list(TABLE)[::10]


def form_of(number: int, density: Density) -> str:
    """The form that ``make test`` runs of the density of this number."""
    return list(density.forms)[number % len(density.forms)]


ONE_FORM = [(density.name, form_of(k, density)) for k, density in enumerate(TABLE.values())]
CASES = few_rows(
    [(*pair, dtype) for pair in FORMS for dtype in DTYPES],
    *((*pair, "float64") for pair in ONE_FORM),
    *((*pair, "float32") for pair in ONE_FORM[::4]),
)


@cache
def known() -> dict[tuple[str, str, str], Places]:
    return read_known()


def unexpected(j: Judged, dtype: str) -> list[str]:
    """Clearly wrong places that the list lacks, and quantities in the list that are right."""
    found = []
    for quantity, errors in zip(j.density.quantities, j.errors.T, strict=True):
        listed = known().get((dtype, j.name, quantity), Places()).points
        new = sorted(set(np.flatnonzero(errors > CLEARLY).tolist()) - listed)
        if new:
            found.append(f"wrong: {quantity} at points {written(new)}: {described(j, new[0])}")
        if listed and not (errors > 1).any():
            found.append(
                f"right now: {quantity}; python -m tests.densities --known {j.density.name}"
            )
    return found


def described(j: Judged, row: int) -> str:
    at = dict(zip(j.density.names, j.truths.points[row].tolist(), strict=True))
    return f"{at}: {j.results[row].tolist()}, truths {j.truths.numbers[row].tolist()}"


@pytest.mark.parametrize(("name", "form", "dtype"), CASES)
def test_no_other_place_is_wrong(name: str, form: str, dtype: str) -> None:
    assert not unexpected(judge(TABLE[name], form, dtype, "FAST_RUN"), dtype)


@rest
@pytest.mark.parametrize("name", IN_ALL_MODES)
@pytest.mark.parametrize("mode", ["C", "NUMBA", "JAX"])
def test_modes(name: str, mode: str) -> None:
    """What is right in FAST_RUN is right in the other modes that rewrite as much."""
    wrong = {}
    for form in TABLE[name].forms:
        first, other = (judge(TABLE[name], form, "float64", m) for m in ("FAST_RUN", mode))
        new = (other.errors > CLEARLY) & ~(first.errors > 1 / CLEARLY)
        if new.any():
            wrong[form] = described(other, int(np.argwhere(new)[0, 0]))
    assert not wrong


def test_the_list_is_short_enough() -> None:
    assert set(read_known()) <= {
        (dtype, f"{name}/{form}", quantity)
        for name, form in FORMS
        for dtype in DTYPES
        for quantity in TABLE[name].quantities
    }
    for dtype, ceiling in CEILINGS.items():
        places = sum(len(truths(TABLE[n], dtype).numbers.ravel()) for n, _ in FORMS)
        listed = sum(len(p.points) for key, p in known().items() if key[0] == dtype)
        assert 100 * listed / places <= ceiling, f"{listed} of {places} places in {dtype}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_stored_truths_are_those_of_the_table(dtype: str) -> None:
    """Points are those of the grid, and one of them, computed again, is what is stored."""
    for k, density in enumerate(TABLE.values()):
        stored = load(density, dtype)
        assert stored is not None, f"python -m tests.densities --truths {density.name}"
        assert np.array_equal(stored.points, density.points(dtype)), density.name
        if k % len(DTYPES) == DTYPES.index(dtype):
            row = 7 * k % len(stored.points)
            again = compute(density, stored.points[row : row + 1], dtype)
            np.testing.assert_allclose(again.numbers[0], stored.numbers[row], rtol=1e-7)
            np.testing.assert_allclose(again.conditions[0], stored.conditions[row], rtol=0.02)


def test_some_form_is_right_somewhere() -> None:
    """A truth that nobody writes down would be wrong at all points in all forms."""
    for density in TABLE.values():
        count = len(truths(density, "float64").points)
        for quantity in density.quantities:
            keys = [("float64", f"{density.name}/{form}", quantity) for form in density.forms]
            assert any(len(known().get(key, Places()).points) < count for key in keys), keys


@pytest.mark.parametrize(
    ("f", "points"),
    [
        (mp.exp, (-3, 0, 2)),
        (mp.log, (0.25, 7)),
        (mp.sqrt, (0.25, 7)),
        (mp.sin, (-1, 0, 2)),
        (mp.cos, (-1, 0, 2)),
        (mp.cosh, (-1, 0, 2)),
        (mp.asinh, (-3, 0, 2)),
        (mp.absolute, (-3, 2)),
        (mp.sigmoid, (-3, 0, 2)),
        (mp.softplus, (-3, 2)),
        (mp.log1mexp, (-3, -0.01)),
        (mp.lgamma, (0.25, 1, 30)),
        (mp.erfc, (-1, 0, 3)),
        (mp.log_ndtr, (-9, 0, 3)),
        (mp.ndtri, (0.125, 0.5, 0.75)),
        (mp.log_normal, (-1, 0, 3)),
        (mp.log_i0, (0.25, 3, 50)),
        (lambda x: x**3, (-2, 0, 3)),
        (lambda x: x**-2.5, (0.25, 3)),
        (lambda x: x**x, (0.25, 3)),
        (lambda x: 2**x / (1 + x * x), (-1, 0, 3)),
        (lambda x: mp.logsumexp(x, 2 * x, 0), (-1, 0, 3)),
    ],
)
def test_derivatives_of_series(f, points) -> None:
    """Those of mpmath, by differences."""
    for point in points:
        with mpmath.workdps(40):
            terms = f(mp.variable(0, point)).terms
            for order in range(4):
                slope = mpmath.diff(lambda x: f(mp.series(x)).constant, point, order)
                found = terms.get((0,) * order, 0) * mpmath.factorial(order)
                assert mpmath.almosteq(found, slope, 1e-10, 1e-10)


def test_mixed_derivatives_of_series() -> None:
    x, y, z = (mp.variable(k, value) for k, value in enumerate((2.0, 3.0, 5.0)))
    terms = (x**2 * y * z).terms
    assert terms[()] == 60 and terms[0,] == 60 and terms[0, 1] == 20 and terms[0, 0, 2] == 3
    assert (0, 1, 2) not in terms


def test_judgement() -> None:
    """Errors in units of the condition; infinities and zeros out of range; NaN is not judged."""
    numbers = np.array([[2.0, 1e300, np.inf, 1e-320, np.nan, -np.inf, 1.0]])
    conditions = np.array([[4.0, 1e300, np.inf, 1e-320, np.nan, np.inf, np.nan]])
    results = np.array([[2 + 8e-9, np.nan, np.inf, 0.0, 1.0, np.inf, 3.0]])
    errors = excess(results, numbers, conditions, "float64")[0]
    np.testing.assert_allclose(errors[:4], [2, np.inf, 0, 0], rtol=1e-6)
    assert np.isnan(errors[4]) and errors[5] == np.inf and np.isnan(errors[6])
    results = np.array([[2.0, np.inf, np.inf, 1e-40, 0, -np.inf, 0]])
    errors = excess(results, numbers, conditions, "float32")[0]
    np.testing.assert_array_equal(errors, [0, 0, 0, 0, np.nan, 0, np.nan])


def test_points() -> None:
    """They are in the support, no more than 200, and numbers of the dtype."""
    assert len(TABLE) >= 60
    for density in TABLE.values():
        assert 2 <= len(density.forms) <= 5, density.name
        for dtype in DTYPES:
            points = density.points(dtype)
            assert 0 < len(points) <= 200 and len(np.unique(points, axis=0)) == len(points)
            assert np.array_equal(points.astype(dtype), points)
            assert all(density.where(*p) for p in points)
    assert TABLE["bernoulli"].points("float64")[:, 1].max() == 1 - 1e-9
    bernoulli = TABLE["bernoulli"].points("float32")
    assert bernoulli[:, 1].max() == np.nextafter(np.float32(1), np.float32(0))
    assert set(bernoulli[:, 0]) == {0, 1} and "binary" in LABELS


def test_forms_keep_the_dtype() -> None:
    """In float32 no constant or count makes them float64."""
    with phintys.config.change_flags(floatX="float32"):
        for name, form in FORMS:
            assert built(TABLE[name], form, "float32", phintys)[1].dtype == "float32", (name, form)


def test_numbers_with_few_bits() -> None:
    numbers = np.array([0.0, -1 / 3, 1e308, np.inf, np.nan, 1.7976931348623157e308])
    np.testing.assert_allclose(short(numbers, 28), numbers, rtol=1e-8)
    assert short(np.array([1 / 3]), 8)[0] == 171 / 512


def test_the_list_is_read_as_it_is_written(tmp_path, monkeypatch) -> None:
    assert written({0, 1, 2, 7, 9, 10}) == "0-2,7,9-10"
    assert read_points("0-2,7,9-10") == {0, 1, 2, 7, 9, 10}
    monkeypatch.setattr("density_known.FOLDER", tmp_path)
    j = judge(TABLE["bernoulli"], "switch", "float64", "FAST_RUN")
    wrong = Judged(j.density, j.form, j.results, np.full_like(j.errors, 2.0), j.truths)
    before = {("float64", "bernoulli/switch", "value"): Places(frozenset({3}), "because")}
    after = updated(before, [wrong], "float64")
    write_known(after)
    assert read_known() == after
    assert after["float64", "bernoulli/switch", "value"] == Places(frozenset(range(8)), "because")
    write_known(updated(after, [j], "float64"))
    assert read_known() == {}
    differing = {"normal/hand": (frozenset({"value", "hessian"}), "because")}
    write_differing(differing)
    assert read_differing() == differing
