"""Each output of a function has the same value, whatever other outputs are compiled with it.

What depends on others is listed in ``differing.txt``.
"""

from __future__ import annotations

import numpy as np
import pytest
from density_known import read_differing
from density_subsets import ALL_PARTS, FEW, MANY, differences, differing, drawn_subsets, same
from density_table import TABLE
from test_densities import FORMS, ONE_FORM
from tiers import few_rows, full


@pytest.mark.parametrize(("name", "form"), few_rows(FORMS, *ONE_FORM[::3]))
def test_results_do_not_depend_on_other_outputs(name: str, form: str) -> None:
    listed, _ = read_differing().get(f"{name}/{form}", (frozenset(), ""))
    assert set(differing(TABLE[name], form, "float64", FEW)) <= listed


@full
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_more_subsets(name: str, form: str) -> None:
    """What is listed differs in some of them."""
    listed, _ = read_differing().get(f"{name}/{form}", (frozenset(), ""))
    found = set(differing(TABLE[name], form, "float64", MANY))
    assert found <= listed, found
    assert found or not listed, f"python -m tests.densities --subsets --known {name}"


@full
@pytest.mark.parametrize(("name", "form"), ONE_FORM)
def test_subsets_in_float32(name: str, form: str) -> None:
    listed, _ = read_differing().get(f"{name}/{form}", (frozenset(), ""))
    assert set(differing(TABLE[name], form, "float32", FEW)) <= listed


def test_subsets_are_drawn() -> None:
    """The same in each run, and the first has all parts."""
    subsets = drawn_subsets("normal/hand", MANY)
    assert subsets == drawn_subsets("normal/hand", MANY) and len(set(subsets)) == MANY
    assert subsets[0] == ALL_PARTS


def test_differences() -> None:
    """NaN where a number was is one; NaN in both, and rounding, are none."""
    a, b = np.array([[1.0, np.nan]]), np.array([[1.0 + 1e-12, np.nan]])
    allowed = np.full((1, 2), 1e-11)
    assert same(a, b, allowed) and not same(a, b, allowed * 1e-2)
    assert not same(a, np.array([[1.0, 2.0]]), allowed)
    assert same(a, np.array([[1.0, 2.0]]), np.array([[1e-11, np.nan]]))
    results = [{"value": a, "gradient": a}, {"gradient": b + 1}, {"value": b}]
    assert differences(results, {"value": allowed, "gradient": allowed}) == ["gradient"]
