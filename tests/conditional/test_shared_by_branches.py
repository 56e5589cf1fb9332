"""What branches of several conditions share is computed only if one of them is taken."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import ifelse
from phintys.compile.mode import Mode

CONDITIONS, ROWS = 3, 4
MODES: list[Any] = ["FAST_RUN", "FAST_COMPILE", Mode("c", "fast_run")]


class Program:
    """A random program; numbers are read, added, and chosen.

    ``steps`` are ``("read", k)``, ``("add", i, j)`` and ``("if", k, i, j)`` with numbers of
    positions, of conditions and of earlier steps.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.steps: list[tuple[Any, ...]] = [("read", k) for k in range(3)]
        for n in range(3, 14):
            i, j = draw.randrange(n), draw.randrange(n)
            kind = draw.choice(["add", "if", "if"])
            condition = () if kind == "add" else (draw.randrange(CONDITIONS),)
            self.steps.append((kind, *condition, i, j))

    def expression(self, x: Any, positions: Any, conditions: Any) -> Any:
        found: list[Any] = []
        for kind, *given in self.steps:
            if kind == "read":
                found.append(pt.sqrt(x[positions[given[0]]]))
            elif kind == "add":
                found.append(found[given[0]] + 2 * found[given[1]])
            else:
                found.append(ifelse(conditions[given[0]], *(found[k] for k in given[1:])))
        return found[-1]

    def value(self, x: Any, positions: Any, conditions: Any) -> float:
        """The value, for which only what is needed is computed; IndexError."""
        known: dict[int, float] = {}
        stack = [len(self.steps) - 1]
        while stack:
            n = stack[-1]
            kind, *given = self.steps[n]
            needed = given[-2:] if kind != "read" else []
            if kind == "if":
                needed = [needed[not conditions[given[0]]]]
            missing = [k for k in needed if k not in known]
            stack.extend(missing)
            if not missing:
                stack.pop()
                values = [known[k] for k in needed]
                if kind == "read":
                    known[n] = float(np.sqrt(x[positions[given[0]]]))
                else:
                    known[n] = values[0] + 2 * values[1] if kind == "add" else values[0]
        return known[len(self.steps) - 1]


@pytest.mark.parametrize(
    ("seed", "mode"),
    [
        pytest.param(seed, mode, id=f"{seed}-{mode}")
        for mode in MODES
        for seed in range(0, 12, 6 if mode is MODES[-1] else 1)  # a C compiler takes a second
    ],
)
def test_what_is_not_needed_is_not_computed(seed: int, mode: Any) -> None:
    program = Program(seed)
    x = pt.dvector("x")
    positions, conditions = pt.lscalars(*"ijk"), pt.lscalars(*"abc")
    expression = program.expression(x, positions, conditions)
    f = phintys.function(
        [x, *positions, *conditions], expression, mode=mode, on_unused_input="ignore"
    )
    draw = random.Random(seed)
    rows = np.arange(1.0, ROWS + 1)
    for case in range(2**CONDITIONS):
        sides = [case >> k & 1 for k in range(CONDITIONS)]
        given = [draw.choice([0, 3, 9, 9]) for _ in positions]
        try:
            expected = program.value(rows, given, sides)
        except IndexError:
            with pytest.raises(IndexError):
                f(rows, *given, *sides)
        else:
            assert np.isclose(f(rows, *given, *sides), expected)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_guard_before_another_one_with_as_many_cases(mode: str) -> None:
    x, i = pt.dvector("x"), pt.lscalar("i")
    a, b = pt.lscalars("a", "b")
    root = pt.sqrt(x[i])
    double = 2 * root  # is needed for a or b, as is the root
    first, second = ifelse(a, double, pt.zeros(())), ifelse(b, double, pt.zeros(()))
    third = ifelse(a, root * pt.exp(first), pt.zeros(()))
    f = phintys.function([x, i, a, b], [second, third], mode=mode)
    assert [float(v) for v in f(np.ones(2), 9, 0, 0)] == [0, 0]
    for sides in ((0, 1), (1, 0), (1, 1)):
        expected = [2.0 * sides[1], np.exp(2.0) * sides[0]]
        np.testing.assert_allclose(f(np.ones(2), 1, *sides), expected)
        with pytest.raises(IndexError):
            f(np.ones(2), 9, *sides)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_powers_of_integers_may_fail(mode: str) -> None:
    n, k, a, b = pt.lscalars("n", "k", "a", "b")
    power = n**k
    zero = pt.zeros((), dtype="int64")
    f = phintys.function(
        [n, k, a, b], ifelse(a, power, zero) + ifelse(b, power + 1, zero), mode=mode
    )
    assert f(2, 3, 1, 1) == 17
    assert f(2, -1, 0, 0) == 0
    with pytest.raises(ValueError, match="negative integer powers"):
        f(2, -1, 0, 1)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_a_condition_that_may_fail_is_known_where_another_branch_needs_it(mode: str) -> None:
    """The inner choice is in a branch of another one, but its condition is always computed."""
    x, i, k = pt.dvector("x"), pt.lscalar("i"), pt.lscalar("k")
    a = pt.gt(x[k], 0)
    b = pt.lscalar("b")
    root = pt.sqrt(x[i])
    zero = pt.zeros(())
    inner = ifelse(a, pt.exp(root), zero)
    outputs = [ifelse(a, root, zero), ifelse(b, inner, zero)]
    f = phintys.function([x, i, k, b], outputs, mode=mode)
    for b_ in (0, 1):
        assert [float(v) for v in f(-np.ones(2), 9, 0, b_)] == [0, 0]
        np.testing.assert_allclose(f(np.ones(2), 1, 0, b_), [1, np.e * b_])
        with pytest.raises(IndexError):
            f(np.ones(2), 9, 0, b_)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_a_condition_may_depend_on_a_choice_that_needs_the_same(mode: str) -> None:
    x, i, a = pt.dvector("x"), pt.lscalar("i"), pt.lscalar("a")
    root = pt.sqrt(x[i])
    one = pt.ones(())
    first = ifelse(a, root, one)
    second = ifelse(first > 1, one, ifelse(a, 3 * root, 5 * one))
    f = phintys.function([x, i, a], second, mode=mode)
    assert f(np.ones(2), 9, 0) == 5
    assert f(np.ones(2), 1, 1) == 3
    assert f(4 * np.ones(2), 1, 1) == 1


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "NUMPY"])
def test_a_condition_that_a_branch_computes_is_known_before(mode: str) -> None:
    x = pt.dvector("x")
    i, c, d = pt.lscalars("i", "c", "d")
    part = pt.sin(x[i]) + 1
    choices = [
        ifelse(c > 0, part, ifelse(d > 0, 2.0, part)),
        ifelse(c > 0, 2 * part, ifelse(d > 0, x.sum(), 3 * part)),
        ifelse(c > 0, part, ifelse(x.sum() > 0, 2.0, part)),
    ]
    for choice in choices:
        f = phintys.function([x, i, c, d], choice, mode=mode, on_unused_input="ignore")
        assert f([0.5, 1.5], 9, 0, 1) == 2
        with pytest.raises(IndexError):
            f([0.5, 1.5], 9, 1, 1)
        assert f([0.5, 1.5], 0, 1, 0) in (np.sin(0.5) + 1, 2 * (np.sin(0.5) + 1))
