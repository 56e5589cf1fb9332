"""A pytest plugin: which cases of tests run on the backends that compile slowly.

A case is one whose parameter ``mode`` (or ``name``) is C, JAX or NUMBA.  All of them run with
``PHINTYS_TESTS=full``, and those that are named on the command line.  Otherwise tests that have
many run some: on C and JAX a share, chosen by the hash of the case's name, so that other cases may
come and go; on NUMBA those that ``numba_cases.txt`` names, and those that are the only ones of
their tests, except if it says ``not``; of a test that it says ``not`` of, none.  ``make test`` runs
one case of each test on C and on JAX, if not all are marked ``rest``, and leaves all others to
``make test-rest``.  Cases marked ``full`` do not run either.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from zlib import crc32

import pytest

#: the setting of which tests run
TESTS = os.environ.get("PHINTYS_TESTS", "")
#: backend -> one of how many cases of a test runs on it, and at least one
SHARES = {"C": 2, "JAX": 4}
BACKENDS = (*SHARES, "NUMBA")
#: parameters whose values are backends
NAMES = ("mode", "name")
NAMED = Path(__file__).parent / "numba_cases.txt"


def named_cases() -> frozenset[str]:
    lines = NAMED.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def backend_of(parameters: Mapping[str, object]) -> str:
    """The slow backend that a case runs on; empty for the others."""
    given = [parameters.get(name) for name in NAMES]
    return next((v for v in given if isinstance(v, str) and v in BACKENDS), "")


def number_of(case: str) -> int:
    """A number that depends on the name of a case alone."""
    return crc32(case.encode())


def chosen(cases: Iterable[str], backend: str, named: frozenset[str]) -> list[str]:
    """The cases of one test that run on a backend; the first of ``cases`` is one of C and JAX.

    Raises
    ------
    pytest.UsageError
        if there are several cases on NUMBA and none is named
    """
    found = list(cases)
    if backend == "NUMBA" and f"not {found[0].partition('[')[0]}" in named:
        return []
    if len(found) == 1:
        return [c for c in found if f"not {c}" not in named]
    if backend != "NUMBA":
        return [c for c in found if c == found[0] or number_of(c) % SHARES[backend] == 0]
    if not named.intersection(found):
        raise pytest.UsageError(f"name one of these in {NAMED.name}: {found}")
    return [c for c in found if c in named]


def split(
    backends: Mapping[str, str], named: frozenset[str], dear: Container[str] = ()
) -> tuple[set[str], set[str]]:
    """Of cases and their backends, those that do not run, and those that run in the rest only.

    Those in ``dear`` are in the rest anyway.
    """
    tests: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for case in sorted(backends, key=lambda case: (case in dear, number_of(case))):
        tests[case.partition("[")[0], backends[case]].append(case)
    left, rest = set[str](), set[str]()
    for (_, backend), cases in tests.items():
        run = chosen(cases, backend, named)
        left.update(cases)
        left.difference_update(run)
        rest.update(run[1:] if backend in SHARES else run)
    return left, rest


def parameters_of(item: pytest.Item) -> Mapping[str, object]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec else {}


def is_named(case: str, arguments: Iterable[str]) -> bool:
    """Whether a case, or its test, is named on the command line."""
    tests = [argument for argument in arguments if "::" in argument]
    return any(case == test or case.startswith((f"{test}[", f"{test}::")) for test in tests)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if TESTS not in ("", "full"):
        raise pytest.UsageError(f"PHINTYS_TESTS is {TESTS!r}: the only setting is full.")
    if TESTS == "full":
        return
    backends = {item.nodeid: backend_of(parameters_of(item)) for item in items}
    slow = {case: backend for case, backend in backends.items() if backend}
    full, dear = (
        {item.nodeid for item in items if item.get_closest_marker(name)}
        for name in ("full", "rest")
    )
    named = named_cases()
    if lost := sorted(full & named):
        raise pytest.UsageError(f"{NAMED.name} names cases that are full: {lost}")
    left, rest = split(slow, named, full | dear)
    left |= full
    left -= {case for case in left if is_named(case, config.args)}
    for item in items:
        if item.nodeid in rest:
            item.add_marker(pytest.mark.rest)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
    items[:] = [item for item in items if item.nodeid not in left]
