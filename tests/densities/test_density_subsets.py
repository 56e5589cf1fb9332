"""Each output of a function has the same value, whatever other outputs are compiled with it.

What depends on others is listed in ``differing.txt``.
"""

from __future__ import annotations

import numpy as np
import pytest
from density_known import read_differing
from density_subsets import ALL_PARTS, FEW, MANY, by_part, differ, differing, drawn_subsets
from density_table import TABLE
from density_truth import compute
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
    """A place that is clearly right in one subset and clearly wrong in another is one."""
    right, wrong, nearly = (np.array([[x, np.nan]]) for x in (0.01, np.inf, 0.9))
    assert differ([right, wrong]) and differ([wrong, nearly, right])
    assert (
        not differ([right, nearly]) and not differ([wrong, nearly]) and not differ([wrong, wrong])
    )
    assert not differ([])


def test_directional_truths() -> None:
    """The bivariate numbers of a density whose Hessian is known: log(m) - m x."""
    density = TABLE["exponential"]
    row = np.array([[2.0, 5.0]])
    found = compute(density, row, "float64")
    numbers, conditions = by_part(found, 2)
    np.testing.assert_allclose(numbers["value"], [[np.log(5) - 10]])
    np.testing.assert_allclose(numbers["gradient"], [[-5, 1 / 5 - 2]])
    np.testing.assert_allclose(numbers["hessian"], [[0, -1 / 25]])
    np.testing.assert_allclose(numbers["product"], [[-2.5, -2 - 2.5 / 25]])
    np.testing.assert_allclose(numbers["forward"], [[-10 + 2.5 * (1 / 5 - 2)]])
    np.testing.assert_allclose(conditions["value"], [[10 - np.log(5) + 10 + 9]], rtol=0.01)
