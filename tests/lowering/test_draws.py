"""Random numbers: a step of its own, from any parameters, that leaves its generator as it was."""

from __future__ import annotations

import numpy as np
import pytest

from phintys.bitgen import address, copied
from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Builder
from phintys.lowering.interpret import StepFailure, interpret
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import Draw, Program
from phintys.lowering.spec import IllegalProgram, verify
from phintys.lowering.text import parse_program, render_program
from phintys.lowering.values import Value


def compiled(b: Builder, *outputs: Value) -> Program:
    program = verify(plan_memory(verify(assemble(b, outputs))))
    text = render_program(program)
    assert render_program(verify(parse_program(text))) == text
    return program


def draw(b: Builder, rng: Value, mean: Value, *shape: int) -> tuple[Value, Value]:
    return b.draw("random_normal", rng, [mean, b.const(2.0)], shape or b.shape(mean))


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 1)])
def test_numbers_and_state(shape: tuple[int, ...]) -> None:
    b = Builder()
    rng, mean = b.input(None), b.input("float64", (None,) * len(shape))
    program = compiled(b, *draw(b, rng, mean))
    given, expected = np.random.default_rng(1), np.random.default_rng(1)
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 1.0
    after, found = interpret(program, given, array)
    np.testing.assert_array_equal(found, expected.normal(array, 2.0))
    assert after.bit_generator.state == expected.bit_generator.state
    assert given.bit_generator.state == np.random.default_rng(1).bit_generator.state


def test_views_are_parameters() -> None:
    b = Builder()
    rng, x = b.input(None), b.input("float64", (None, None))
    turned = b.permute(b.slice(x, 1, 1, 1, b.length(x, 1) - 1), (1, 0))
    (_, found) = interpret(compiled(b, *draw(b, rng, turned)), np.random.default_rng(1), np.eye(4))
    expected = np.random.default_rng(1).normal(np.eye(4)[:, 1:].T, 2.0)
    np.testing.assert_array_equal(found, expected)


def steps(program: Program) -> list[Draw]:
    return [s for s in program.steps if isinstance(s, Draw)]


def test_a_chain_copies_its_generator_once() -> None:
    b = Builder()
    rng, mean = b.input(None), b.const(np.arange(3.0))
    first, x = draw(b, rng, mean)
    second, y = draw(b, first, mean)
    third, z = draw(b, second, mean)
    program = compiled(b, x, y, z, third)
    assert [s.source is s.result for s in steps(program)] == [False, True, True]
    given, expected = np.random.default_rng(1), np.random.default_rng(1)
    *found, after = interpret(program, given)
    for array in found:
        np.testing.assert_array_equal(array, expected.normal(np.arange(3.0), 2.0))
    assert after.bit_generator.state == expected.bit_generator.state


def test_a_generator_that_is_used_twice_is_copied_each_time() -> None:
    b = Builder()
    rng, mean = b.input(None), b.const(np.arange(3.0))
    first, x = draw(b, rng, mean)
    _, y = draw(b, first, mean)
    _, z = draw(b, first, mean)
    (seen,) = b.python(lambda g: (g.normal(size=2),), [first], [("float64", (2,))])
    program = compiled(b, x, y, z, seen)
    assert [s.source is s.result for s in steps(program)] == [False, False, False]
    a, c, d, e = interpret(program, np.random.default_rng(1))
    expected = np.random.default_rng(1)
    np.testing.assert_array_equal(a, expected.normal(np.arange(3.0), 2.0))
    np.testing.assert_array_equal(c, d)
    np.testing.assert_array_equal(e, copied(expected).normal(size=2))
    np.testing.assert_array_equal(c, expected.normal(np.arange(3.0), 2.0))


def test_flags_are_checked_before_the_draw() -> None:
    b = Builder()
    rng, scale = b.input(None), b.input("float64", (None,))
    flag = b.map(lambda n, x: n.not_(n.lt(x, n.const(0.0, x))), scale)
    _, x = b.draw("random_normal", rng, [b.const(0.0), scale], (3, *b.shape(scale)), [flag])
    program = compiled(b, x)
    kinds = [type(s).__name__ for s in program.steps]
    assert kinds.index("Check") < kinds.index("Draw")
    for bad in ([-1.0], [1.0, -2.0]):
        with pytest.raises(StepFailure, match="not valid"):
            interpret(program, np.random.default_rng(1), np.array(bad))
    assert interpret(program, np.random.default_rng(1), np.array([np.nan, 1.0]))[0].shape == (3, 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("draw random_normal", "draw random_numbers", "unknown distribution"),
        ("draw random_normal []", "draw random_normal [3]", "strides and dims differ"),
        ("%0 -> %2", "%0 -> %0", "changes a generator that no Draw has made"),
        ("%0 -> %2", "%0 -> %3", "is no object"),
        ("$1 = %1", "$1 = %3", "is read before it is filled"),
        ("%1 = input float64", "%1 = input float32", "operands of dtypes"),
    ],
)
def test_illegal_draws(old: str, new: str, message: str) -> None:
    b = Builder()
    rng, mean = b.input(None), b.input("float64", ())
    state, x = b.draw("random_normal", rng, [mean, mean], ())
    text = render_program(compiled(b, state, x))
    assert old in text
    with pytest.raises(IllegalProgram, match=message):
        verify(parse_program(text.replace(old, new)))


def test_the_address_is_that_of_the_state() -> None:
    rng = np.random.default_rng(1)
    assert address(rng) == rng.bit_generator.ctypes.bit_generator.value
