"""`ScalarLoop` against loops in Python, for numbers and for tensors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import phintys
import phintys.scalar as ps
import phintys.tensor as pt
from phintys.errors import NullTypeGradError
from phintys.scalar.loop import Grad2F1Loop, ScalarLoop
from phintys.tensor.elemwise import Elemwise

x, y, c, n = ps.float64("x"), ps.int64("y"), ps.float64("c"), ps.int64("n")
PLAIN = ScalarLoop(init=[x, y], update=[x * c + y, y + 1], constant=[c])
WHILE = ScalarLoop(init=[x, y], update=[x * c + y, y + 1], constant=[c], until=ps.gt(x * c, 50))
MODES = ["FAST_COMPILE", "FAST_RUN", "C", "NUMBA", "JAX"]


def run(is_while: bool, steps: int, x: float, y: int, c: float) -> tuple[float, int, bool]:
    done = True
    for _ in range(steps):
        done = is_while and x * c > 50
        x, y = x * c + y, y + 1
        if done:
            break
    return x, y, done


STEPS = np.array([[0], [1], [3], [9], [-2]])
STATES, COUNTS, FACTORS = np.array([0.5, 3.0, 40.0, np.inf]), np.array([0, 7, -3, 1]), 1.5


@pytest.mark.parametrize("op", [PLAIN, WHILE], ids=["for", "while"])
def test_numbers(op: ScalarLoop) -> None:
    for steps in STEPS.ravel():
        for state, count in zip(STATES, COUNTS):
            expected = run(op.is_while, steps, state, count, FACTORS)[: op.nout]
            assert op.impl(steps, state, count, FACTORS) == list(expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", [PLAIN, WHILE], ids=["for", "while"])
def test_every_element_has_its_loop(op: ScalarLoop, mode: str) -> None:
    inputs = [pt.matrix(shape=(None, 1), dtype="int64"), pt.dvector(), pt.lvector(), pt.dscalar()]
    row = pt.expand_dims(inputs[1], 0)
    outputs: Any = Elemwise(op)(inputs[0], row, *inputs[2:])
    f = phintys.function(inputs, outputs, mode=mode)
    found = f(STEPS, STATES, COUNTS, FACTORS)
    for i, steps in enumerate(STEPS.ravel()):
        for j, (state, count) in enumerate(zip(STATES, COUNTS)):
            expected = run(op.is_while, steps, state, count, FACTORS)[: op.nout]
            assert [value[i, j] for value in found] == list(expected)
    assert [v.shape for v in f(STEPS[:0], STATES, COUNTS, FACTORS)] == [(0, 4)] * op.nout


def test_types_are_checked() -> None:
    assert [v.type.dtype for v in WHILE.make_node(n, x, y, c).outputs] == [
        "float64", "int64", "bool",
    ]  # fmt: skip
    assert WHILE.make_node(ps.int8(), ps.float32(), ps.int8(), ps.int64()).nout == 3
    for steps, state in ((x, x), (n, ps.complex128())):
        with pytest.raises(TypeError, match="ScalarLoop"):
            PLAIN(steps, state, y, c)
    with pytest.raises(ValueError, match="as many updates"):
        ScalarLoop(init=[x, y], update=[x])
    with pytest.raises(TypeError, match="its update"):
        ScalarLoop(init=[y], update=[y * c], constant=[c])
    with pytest.raises(TypeError, match="not bool"):
        ScalarLoop(init=[x], update=[x + 1], until=x)


def test_loops_are_equal_if_their_graphs_are() -> None:
    a, b = ps.float64("a"), ps.float64("b")
    same = ScalarLoop(init=[a, y], update=[a * b + y, y + 1], constant=[b])
    assert same == PLAIN != WHILE and hash(same) == hash(PLAIN)
    assert pickle.loads(pickle.dumps(WHILE)) == WHILE == WHILE.clone()


def test_there_is_no_derivative() -> None:
    v = pt.dvector("v")
    out, _ = Elemwise(PLAIN)(3, v, 1, 2.0)  # type: ignore[misc]
    with pytest.raises(NullTypeGradError, match="loop"):
        phintys.grad(out.sum(), v)
    with pytest.raises(TypeError, match="loop"):
        phintys.pushforward(out, v, v)


def test_loops_over_arrays_are_native() -> None:
    """One number of steps, one for each element, and one for each row; a condition ends some."""
    a, b, i = ps.float64("a"), ps.float64("b"), ps.int64("i")
    x, n, m = pt.dvector("x"), pt.lscalar("n"), pt.lmatrix("m")
    ops = [
        ScalarLoop(init=[a], constant=[b], update=[a * b + 1]),
        ScalarLoop(init=[a], constant=[b], update=[a * b + 1], until=ps.gt(a, 100)),
        ScalarLoop(init=[a, i], constant=[b], update=[a * b + i, i + 1]),
    ]
    outputs = [
        v
        for op in ops
        for steps in (n, m, m.sum(axis=1, keepdims=True))
        for v in Elemwise(op)(steps, x, *([n] if op.nin == 4 else []), x / 2, return_list=True)
    ]
    f = phintys.function([n, m, x], outputs)
    expected = phintys.function([n, m, x], outputs, mode="FAST_COMPILE")
    assert not phintys.explain(f).python_ops
    for count in (-2, 0, 1, 7):
        for values in (np.array([0.5, 3.0, 30.0, np.nan]), np.zeros(0)):
            steps = np.arange(2 * len(values)).reshape(2, -1) - 1
            for found, want in zip(f(count, steps, values), expected(count, steps, values)):
                np.testing.assert_array_equal(found, want)
                assert found.dtype == want.dtype


def test_a_class_of_loops_that_programs_register_functions_for(mode):
    """It computes as its base class, on each backend."""
    loop = Grad2F1Loop(init=[x, y], update=[x * c + y, y + 1], constant=[c], until=ps.gt(x * c, 50))
    assert loop != WHILE and ps.Grad2F1Loop is Grad2F1Loop and isinstance(loop, ScalarLoop)
    v = pt.dvector("v")
    f = phintys.function([v], Elemwise(loop)(5, v, 1, 2.0, return_list=True), mode=mode)
    expected = Elemwise(WHILE)(5, v, 1, 2.0, return_list=True)
    for found, want in zip(f([0.5, 30.0]), expected, strict=True):
        np.testing.assert_array_equal(found, want.eval({v: [0.5, 30.0]}))
