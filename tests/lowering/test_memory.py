"""Storage: reuse, work in place, copies that are needed and copies that are not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from test_fusion import compiled, exp, kinds, matrix, mul, tanh, vector

from phintys.lowering.builder import Builder
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Call, Copy, Program


def copies(program: Program) -> int:
    return sum(isinstance(s, Copy) for s in program.steps)


def test_a_chain_of_steps_needs_few_storages() -> None:
    b = Builder()
    x, y = matrix(b), vector(b)
    for _ in range(50):
        y = tanh(b, b.gemv(x, y))
    program = compiled(b, y)
    assert sum(isinstance(s, Call) for s in program.steps) == 50
    assert len(program.storages) <= 3


def test_elementwise_kernel_writes_over_its_dead_operand() -> None:
    b = Builder()
    x = matrix(b)
    y = b.matmul(exp(b, b.matmul(x, x)), x)
    program = compiled(b, y)
    temps = [s for s in program.slots if s.kind == "temp"]
    assert len(temps) == 2
    assert len(program.storages) == 1


def test_update_of_an_input_copies_once() -> None:
    b = Builder()
    y = vector(b)
    for i in range(5):
        y = b.update(y, [(i, 1, 1)], b.const(float(i)), "set")
    program = compiled(b, y)
    assert copies(program) == 1
    assert not program.storages
    array = np.arange(6) + 10.0
    (result,) = interpret(program, array)
    assert result.tolist() == [0, 1, 2, 3, 4, 15]
    assert array[0] == 10


def test_update_of_a_dead_value_copies_nothing() -> None:
    b = Builder()
    y = exp(b, vector(b))
    y = b.update(y, [(0, 1, 2)], b.const(7.0), "add")
    program = compiled(b, y)
    assert kinds(program) == {"Kernel": 2}
    assert not program.storages


def test_update_of_a_value_that_is_still_wanted_copies() -> None:
    b = Builder()
    y = exp(b, vector(b))
    changed = b.update(y, [(0, 1, 1)], b.const(7.0), "set")
    program = compiled(b, changed, y)
    assert copies(program) == 1
    one, two = interpret(program, np.zeros(3))
    assert one.tolist() == [7, 1, 1]
    assert two.tolist() == [1, 1, 1]


def test_update_that_reads_its_base_elsewhere() -> None:
    """Shifting: the value is read from the base while the result is written."""
    b = Builder()
    x = exp(b, vector(b))
    n = b.length(x, 0)
    shifted = b.update(x, [(1, 1, n - 1)], b.slice(x, 0, 0, 1, n - 1), "set")
    program = compiled(b, shifted)
    (result,) = interpret(program, np.log(np.array([1.0, 2.0, 3.0, 4.0])))
    np.testing.assert_allclose(result, [1, 1, 2, 3])


def test_join_writes_each_part_in_its_place() -> None:
    b = Builder()
    x, y = vector(b), vector(b)
    program = compiled(b, b.join([exp(b, x), tanh(b, y), x], 0))
    assert kinds(program) == {"Kernel": 3}
    assert not program.storages


@pytest.mark.parametrize("count", [3, 60])
def test_elements_are_written_in_one_kernel(count: int) -> None:
    b = Builder()
    inputs = [b.input("float64") for _ in range(count)]
    program = compiled(b, b.join([b.expand(exp(b, x), 0) for x in inputs], 0))
    assert kinds(program)["Kernel"] <= 1 + count // 5
    values = np.arange(float(count))
    np.testing.assert_allclose(interpret(program, *values)[0], np.exp(values))


def test_the_last_of_two_writes_to_an_element_stays() -> None:
    b = Builder()
    y = exp(b, vector(b))
    for i in (0, 1, 0):
        y = b.update(y, [i], b.scalar(i + b.length(y, 0)), "set")
        y = b.update(y, [1], b.const(9.0), "add" if i else "set")
    (result,) = interpret(compiled(b, y), np.zeros(3))
    assert result.tolist() == [3, 9, 1]


def test_outputs_own_their_memory() -> None:
    b = Builder()
    x = vector(b)
    constant = b.const(np.array([1.0, 2.0]))
    y = exp(b, x)
    n = b.length(x, 0)
    outputs = [x, x, constant, y, y, b.reshape(y, (n, 1)), b.slice(y, 0, 0, 1, n)]
    program = compiled(b, *outputs)
    numbers = [s.number for s in program.outputs]
    assert len(set(numbers)) == len(numbers)
    assert {s.kind for s in program.outputs} == {"output"}
    results = interpret(program, np.zeros(2))
    assert [r.shape for r in results] == [(2,), (2,), (2,), (2,), (2,), (2, 1), (2,)]


def test_python_results_are_handed_over_once() -> None:
    b = Builder()
    (y,) = b.python(lambda x: (x + 1,), [vector(b)], [("float64", (None,))])
    program = compiled(b, y, y)
    assert Counter(s.kind for s in program.outputs) == {"python": 1, "output": 1}


@pytest.mark.parametrize("known", [None, 100])
def test_storage_is_shared_by_equal_sizes(known: int | None) -> None:
    b = Builder()
    x = b.input("float64", (known, known))
    y = x
    for _ in range(10):
        y = b.matmul(y, x)
    assert len(compiled(b, y).storages) <= 2


def test_a_length_in_memory_is_not_overwritten() -> None:
    b = Builder()
    x, n = vector(b), b.input("int64")
    twice = mul(b, b.cast(n, "int64"), b.const(np.int64(2)))
    length = b.item(twice)
    part = b.slice(x, 0, 0, 1, length)
    program = compiled(b, exp(b, part), b.reduce("add", tanh(b, part), (0,)))
    one, two = interpret(program, np.arange(5.0), 2)
    np.testing.assert_allclose(one, np.exp(np.arange(4.0)))
    np.testing.assert_allclose(two, np.tanh(np.arange(4.0)).sum())
