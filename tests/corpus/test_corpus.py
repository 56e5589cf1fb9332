"""Small programs agree with PyTensor, but for the differences that the documentation explains."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from corpus_run import all_differences, expected, outcomes_here, read_reference

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def ours():
    return outcomes_here()


def test_programs_agree_with_pytensor(ours):
    """Every difference is listed, and every listed one is still there."""
    found = all_differences(ours, read_reference())
    texts = {
        f"{name}{place}": text for name, places in found.items() for place, text in places.items()
    }
    listed = {place for place, _ in expected()}
    assert {place: texts[place] for place in texts.keys() - listed} == {}
    assert listed - texts.keys() == set()


def test_every_program_has_a_reference_and_runs_to_its_end(ours):
    reference = read_reference()
    assert ours.keys() == reference.keys()
    assert [n for n, found in reference.items() if "ended" in str(found[-1:])] == []


def test_the_documentation_explains_every_difference():
    pages = " ".join((DOCS / "differences.md").read_text().split())
    assert {phrase for _, phrase in expected() if phrase not in pages} == set()


def test_no_difference_is_listed_twice():
    assert [p for p, n in Counter(place for place, _ in expected()).items() if n > 1] == []


def test_there_are_programs_of_every_area(ours):
    areas = Counter(name.partition(".")[0] for name in ours)
    assert len(ours) >= 150
    assert min(areas.values()) >= 5
