"""A call that fails: the error, and that no op of the user is run for it a second time."""

from __future__ import annotations

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys.backends.numpy.run import find_error, is_own
from phintys.errors import ShapeError
from phintys.graph.op import Op
from phintys.graph.variable import Apply
from phintys.scalar.op import ScalarOp
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.elemwise import Elemwise

THREE, FOUR = np.arange(3.0), np.arange(4.0)


class Spent(Exception):
    """What an op of a user raises."""


class Counted(Op):
    """Adds 1, counts its runs, and raises its ``error`` if it has one."""

    __props__ = ("number",)
    numbers = iter(range(10**9))

    def __init__(self):
        self.number = next(self.numbers)
        self.runs = 0
        self.error = None

    def make_node(self, x):
        x = pt.as_tensor(x)
        return Apply(self, [x], [x.type()])

    def infer_shape(self, node, shapes):
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        self.runs += 1
        if self.error is not None:
            raise self.error
        outputs[0][0] = inputs[0] + 1


@pytest.mark.parametrize("error", [Spent("no more"), IndexError("odd"), KeyError(3), MemoryError()])
def test_the_exception_of_an_op_reaches_the_caller(mode, error):
    x, y = pt.dvectors("x", "y")
    op = Counted()
    f = phintys.function([x, y], [op(x * 2) * 3, y + 1], mode=mode)
    f(THREE, FOUR)
    runs = op.runs
    op.error = error
    with pytest.raises(type(error)) as caught:
        f(THREE, FOUR)
    assert caught.value is error
    assert op.runs == runs + 1
    notes = "\n".join(error.__notes__)
    assert notes.count(f"while computing {op} of") == 1
    assert "float64 of shape (3,)" in notes
    assert "test_failed_calls.py" in notes
    del error.__notes__
    op.error = None
    np.testing.assert_array_equal(f(THREE, FOUR)[0], (2 * THREE + 1) * 3)
    assert op.runs == runs + 2


def before(op, x, y, i):
    """The check does not depend on the op."""
    return [op(x), x + y, y[i]]


def what_the_op_reads(op, x, y, i):
    return [op(x + y), y[i]]


def positions_that_the_op_reads(op, x, y, i):
    return [op(y[pt.stack([i, i])]), x + y]


def after(op, x, y, i):
    """The check is of what the op has computed."""
    return [op(x) + y, y[i]]


def position_in_a_result(op, x, y, i):
    return [op(y)[pt.stack([i, i])], x + y]


def position_that_the_op_computes(op, x, y, i):
    return [x + y, (x + y)[pt.cast(op(pt.cast(pt.stack([i]), "float64"))[0], "int64") - 1]]


FAILURES = [
    before,
    what_the_op_reads,
    positions_that_the_op_reads,
    after,
    position_in_a_result,
    position_that_the_op_computes,
]


@pytest.mark.parametrize("build", FAILURES)
@pytest.mark.parametrize("which", ["length", "position"])
def test_an_op_is_not_run_to_explain_a_check(mode, build, which):
    x, y, i = pt.dvector("x"), pt.dvector("y"), pt.lscalar("i")
    op = Counted()
    f = phintys.function([x, y, i], build(op, x, y, i), mode=mode)
    f(THREE, THREE, 1)
    assert op.runs == 1
    values, kind = (THREE, FOUR, 1), ShapeError
    if which == "position":
        values, kind = (THREE, THREE, 5), IndexError
    elif mode == "NUMBA" and build is after:
        kind = ValueError  # its base class: the reference, which knows more, is not asked
    op.runs = 0
    with pytest.raises(kind):
        f(*values)
    assert op.runs <= 1
    op.runs = 0
    f(THREE, THREE, 1)
    assert op.runs == 1


def test_updates_are_not_made_when_a_later_step_fails(mode):
    x, y = pt.dvectors("x", "y")
    op, s = Counted(), phintys.shared(np.zeros(3))
    f = phintys.function([x, y], op(x) + y, updates={s: op(x)}, mode=mode)
    with pytest.raises(ValueError):
        f(THREE, FOUR)
    assert op.runs <= 1
    np.testing.assert_array_equal(s.get_value(), np.zeros(3))
    f(THREE, THREE)
    np.testing.assert_array_equal(s.get_value(), THREE + 1)


class UsersScalar(ScalarOp):
    nin = 1

    def impl(self, x):
        raise Spent


def test_which_ops_are_run_again():
    x, m = pt.dvector("x"), pt.dmatrix("m")
    own = [pt.exp(x), x[1:], x.sum(), pt.softmax(m), pt.exp(pt.exp(x) + 1), m @ m]
    assert all(is_own(v.owner.op) for v in own)
    assert not is_own(Counted())
    assert not is_own(Blockwise(Counted(), signature="(n)->(n)"))
    assert not is_own(Elemwise(UsersScalar()))


def test_find_error():
    x, y = pt.dvectors("x", "y")
    op = Counted()
    fgraph = phintys.function([x, y], op(x) * (x + y), mode="FAST_COMPILE").maker.fgraph
    found = find_error(fgraph, [THREE, FOUR])
    assert isinstance(found, ShapeError)
    assert "while computing Add of" in "\n".join(found.__notes__)
    assert find_error(fgraph, [THREE, THREE]) is None
    assert op.runs == 0
