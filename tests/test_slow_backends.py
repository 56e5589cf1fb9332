"""Which cases run on backends that compile slowly."""

from __future__ import annotations

import pytest
from slow_backends import backend_of, is_named, split


def cases(backend: str, count: int) -> dict[str, str]:
    return {f"test_x.py::test[{backend}-{k}]": backend for k in range(count)}


def test_cases_that_are_named_on_the_command_line():
    arguments = ["tests/a.py", "test_x.py::test[C-1]", "test_y.py::test"]
    named = ["test_x.py::test[C-1]", "test_y.py::test[JAX]", "test_y.py::test"]
    others = ["test_x.py::test[C-2]", "test_x.py::test", "test_y.py::test_more", "tests/a.py::test"]
    assert [case for case in (*named, *others) if is_named(case, arguments)] == named


def test_backend_of_a_case():
    assert backend_of({"mode": "C", "size": 3}) == "C"
    assert backend_of({"mode": "FAST_RUN", "order": "C"}) == ""
    assert backend_of({"order": "C", "mode": "NUMBA"}) == "NUMBA"
    assert backend_of({"trans": "C"}) == ""


def test_cases_are_chosen_by_their_names():
    left, rest = split(cases("JAX", 40), frozenset())
    assert 20 < len(left) < 40 and len(left | rest) == 39
    more_left, _ = split(cases("JAX", 60), frozenset())
    assert left - more_left == set()


@pytest.mark.parametrize("backend", ["C", "JAX"])
def test_make_test_runs_one_case(backend):
    given = cases(backend, 20)
    left, rest = split(given, frozenset())
    assert len(given.keys() - left - rest) == 1


def test_the_one_case_is_none_that_is_for_the_rest():
    given = cases("C", 5)
    first, *dear = sorted(given)
    left, rest = split(given, frozenset(), dear)
    assert given.keys() - left - rest == {first}


def test_cases_on_numba_are_named():
    first, *others = cases("NUMBA", 3)
    assert split(cases("NUMBA", 3), frozenset([first])) == ({*others}, {first})
    assert split(cases("NUMBA", 1), frozenset()) == (set(), {first})
    assert split(cases("NUMBA", 1), frozenset([f"not {first}"])) == ({first}, set())
    nothing = frozenset(["not test_x.py::test"])
    assert split(cases("NUMBA", 3), nothing) == ({first, *others}, set())
    assert len(split(cases("JAX", 3), nothing)[0]) < 3
    with pytest.raises(pytest.UsageError, match="numba_cases"):
        split(cases("NUMBA", 3), frozenset())
