"""`tensor_checks.check` and `check_all` find what is wrong, and say in which case."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_checks import check, check_all

from phintys.graph.op import Op
from phintys.graph.variable import Apply


class Doubled(Op):
    """``2 * x``; ``infer_shape`` says of the result what ``lengths`` makes of the input's shape."""

    __props__ = ("lengths",)

    def __init__(self, lengths):
        self.lengths = lengths

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, storage):
        storage[0][0] = 2 * inputs[0]

    def infer_shape(self, node, shapes):
        return [self.lengths(shapes[0])]


@pytest.mark.parametrize("lengths", [lambda s: s, lambda s: None], ids=["found", "not found"])
def test_right_lengths_are_accepted(lengths):
    for shape in ((), (2,), (2, 3)):
        check(Doubled(lengths), lambda x: 2 * x, [np.ones(shape)])


WRONG = {
    "none": lambda s: (),
    "too few": lambda s: s[1:],
    "too many": lambda s: (*s, *s),
    "in another order": lambda s: s[::-1],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_lengths_are_found(name):
    with pytest.raises(AssertionError, match="infer_shape says"):
        check(Doubled(WRONG[name]), lambda x: 2 * x, [np.ones((2, 3))])


def test_the_case_that_fails_is_named():
    ones = [np.ones(2)]

    def refused(x):
        raise TypeError("not of this type")

    right = "right", lambda x: x + x, lambda x: 2 * x, ones
    for wrong, error, place in (
        (lambda x: x, AssertionError, "lengths unknown, FAST_COMPILE"),
        (Doubled(lambda s: ()), AssertionError, "lengths known, FAST_COMPILE"),
        (refused, TypeError, "lengths unknown"),
    ):
        with pytest.raises(error) as info:
            check_all([right, ("axis 3", wrong, lambda x: 2 * x, ones), right])
        assert info.value.__notes__ == [f"axis 3, {place}"]
