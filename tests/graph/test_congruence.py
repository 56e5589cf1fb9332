"""Values that are computed alike form classes, also where the computations are circular."""

from __future__ import annotations

import random

import pytest

from phintys.graph.congruence import alike


def refined(labels, operands):
    """The classes by rounds: those of the last round, and of the operands, until nothing splits."""
    found, count = list(labels), 0
    while len(set(found)) > count:
        count = len(set(found))
        keys = [(c, *(found[o] for o in used)) for c, used in zip(found, operands)]
        numbers = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        found = [numbers[key] for key in keys]
    return found


def together(classes):
    return {frozenset(k for k, c in enumerate(classes) if c == which) for which in classes}


@pytest.mark.parametrize("seed", range(40))
def test_classes_are_those_of_refinement_by_rounds(seed):
    rng = random.Random(seed)
    n, kinds = rng.randint(0, 40), rng.randint(1, 4)
    labels = [(label := rng.randrange(kinds), label % 3) for _ in range(n)]
    operands = [[rng.randrange(n) for _ in range(arity)] for _, arity in labels]
    assert together(alike(labels, operands)) == together(refined(labels, operands))


def test_a_class_that_is_split_by_two_positions_of_the_same_operands():
    """Values 1 and 2 differ in their second operand, after the first has split their class."""
    labels = ["x", "f", "f", "f", "f", "x", "x", "f", "f"]
    operands = [[], [3, 3], [3, 2], [7, 0], [3, 3], [], [], [4, 3], [0, 4]]
    assert together(alike(labels, operands)) == together(refined(labels, operands))


def test_work_is_nearly_linear(lines_run):
    def chain(n):  # a difference at one end, which is seen at the other in the last round
        return ["x", *["f"] * n], [[], *[[k] for k in range(n)]]

    assert lines_run(alike, *chain(1_600)) < 10 * lines_run(alike, *chain(200))
