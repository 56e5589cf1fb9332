"""What is checked of the results of ``perform``."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.errors import ShapeError
from phintys.graph.op import Op
from phintys.graph.results import is_masked
from phintys.graph.variable import Apply


class Wrong(Op):
    """Declares lengths ``declared``, and returns an array of the lengths ``returned``."""

    __props__ = ("declared", "returned")

    def __init__(self, declared, returned):
        self.declared, self.returned = declared, returned

    def make_node(self, x):
        return Apply(self, [x], [pt.tensor(dtype="float64", shape=self.declared)])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.ones(self.returned)


#: expressions of a result that read its elements
USES = {
    "the result": lambda v: v,
    "elementwise": lambda v: pt.exp(v) + 1,
    "broadcast": lambda v: v + pt.ones((4, *[1] * v.ndim)),
    "sum": lambda v: v.sum(),
    "last element": lambda v: v[-1],
    "join": lambda v: pt.concatenate([v, v]),
    "reshape": lambda v: v.reshape((-1,)),
}


LENGTHS = [((3,), (5,)), ((3,), (2,)), ((3,), (0,)), ((1,), (4,)), ((None, 3), (2, 4))]


@pytest.mark.parametrize("use", USES)
def test_a_result_of_another_length_is_an_error(use):
    """Code for other lengths would read memory that is not there, or numbers of other elements."""
    for declared, returned in LENGTHS:
        check_refused(None, use, declared, returned)


def test_it_is_an_error_on_every_backend(mode):
    check_refused(mode, "last element", (3,), (2,))
    check_refused(mode, "broadcast", (1,), (4,))


def check_refused(mode, use, declared, returned):
    x = pt.dvector("x")
    f = phintys.function([x], USES[use](Wrong(declared, returned)(x)), mode=mode)
    with pytest.raises(ShapeError, match=r"perform returned an array .* must be None") as caught:
        f([1.0])
    assert str(returned) in str(caught.value)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_a_length_that_is_not_declared_may_be_any(mode):
    x = pt.dvector("x")
    v = Wrong((None,), (5,))(x)
    f = phintys.function([x], [v, v.sum(), v[-1]], mode=mode)
    found = f([1.0])
    assert found[0].shape == (5,) and found[1] == 5 and found[2] == 1


def test_masked_arrays_are_found():
    assert is_masked(np.ma.array([1.0]))
    assert not is_masked(np.ones(1))


def test_no_array_is_masked_while_the_module_is_imported(monkeypatch):
    """By another thread: the module has no class yet."""
    monkeypatch.setitem(sys.modules, "numpy.ma", ModuleType("numpy.ma"))
    assert not is_masked(np.ones(1))
