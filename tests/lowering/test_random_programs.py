"""Random values against NumPy: after fusion, after the memory plan, through text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_values import RandomValues

from phintys.lowering.assemble import assemble
from phintys.lowering.interpret import interpret
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import Python
from phintys.lowering.spec import verify
from phintys.lowering.text import parse_program, render_program


def agree(results: list[Any], expected: list[Any]) -> None:
    for result, array in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-9, atol=1e-9)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 40))
def test_every_stage_computes_what_numpy_does(seed: int, size: int) -> None:
    values = RandomValues(seed)
    values.grow(size)
    outputs, expected = values.outputs(3)
    program = verify(assemble(values.b, outputs))
    agree(interpret(program, *values.args), expected)
    verify(plan_memory(program))
    agree(interpret(program, *values.args), expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_lengths_known_beforehand_change_nothing(seed: int) -> None:
    values = RandomValues(seed, unknown=False)
    values.grow(20)
    outputs, expected = values.outputs(2)
    program = verify(plan_memory(assemble(values.b, outputs)))
    agree(interpret(program, *values.args), expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_text_is_read_back(seed: int) -> None:
    values = RandomValues(seed)
    values.grow(20)
    outputs, expected = values.outputs(2)
    program = plan_memory(assemble(values.b, outputs))
    text = render_program(program)
    again = verify(parse_program(text))
    assert render_program(again) == text
    if not any(isinstance(step, Python) for step in program.steps):
        agree(interpret(again, *values.args), expected)


@pytest.mark.parametrize("seed", range(5))
def test_arguments_and_constants_are_not_written(seed: int) -> None:
    values = RandomValues(seed)
    values.grow(30)
    outputs, _ = values.outputs(4)
    program = plan_memory(assemble(values.b, outputs))
    before = [np.array(a) for a in values.args]
    interpret(program, *values.args)
    for a, b in zip(before, values.args):
        np.testing.assert_array_equal(a, b)
