"""The loop structure of kernels."""

from __future__ import annotations

from phintys.dims import ONE, ZERO, Dim
from phintys.lowering.program import Inst, Kernel, Operand, Slot
from phintys.lowering.schedule import instruction_depths, schedule

N, M = Dim.symbol("n"), Dim.symbol("m")
MATRIX = Slot(0, "input", "float64", (N, M))
COLUMN = Slot(1, "input", "float64", (N,))
RESULT = Slot(2, "output", "float64", (N, M))
ROW = Slot(3, "temp", "float64", (M,))
OPERANDS = (
    Operand(MATRIX, (M, ONE), ZERO),
    Operand(COLUMN, (ONE, ZERO), ZERO),
    Operand(RESULT, (M, ONE), ZERO),
    Operand(ROW, (ZERO, ONE), ZERO),
)


def inst(op: str, *args: int, param: object = None) -> Inst:
    return Inst(op, "float64", args, param)


def kernel(split: int, *body: Inst) -> Kernel:
    return Kernel((N, M), split, OPERANDS, body)


def test_without_reduce_instructions_sit_where_they_vary() -> None:
    k = kernel(
        2,
        inst("const", param=2.0),
        inst("load", param=1),
        inst("mul", 0, 1),
        inst("load", param=0),
        inst("add", 2, 3),
        inst("store", 4, param=2),
    )
    plan = schedule(k)
    assert plan.outer == [[0], [1, 2], [3, 4, 5]]
    assert plan.phases == []


def test_softmax_has_three_passes_and_recomputes_what_varies_inside() -> None:
    k = kernel(
        1,
        inst("load", param=0),
        inst("reduce", 0, param="max"),
        inst("sub", 0, 1),
        inst("exp", 2),
        inst("reduce", 3, param="add"),
        inst("div", 3, 4),
        inst("store", 5, param=2),
    )
    plan = schedule(k)
    assert [p.levels for p in plan.phases] == [
        [[], [0]],
        [[], [0, 2, 3]],
        [[], [0, 2, 3, 5, 6]],
    ]
    assert [p.reduces for p in plan.phases] == [[1], [4], []]
    assert all(p.has_loop for p in plan.phases)


def test_scratch_rows_are_read_in_a_later_pass() -> None:
    k = kernel(
        1,
        inst("load", param=0),
        inst("exp", 0),
        inst("store", 1, param=3),
        inst("reduce", 1, param="add"),
        inst("load", param=3),
        inst("div", 4, 3),
        inst("store", 5, param=2),
    )
    plan = schedule(k)
    assert [p.levels for p in plan.phases] == [[[], [0, 1, 2]], [[], [4, 5, 6]]]


def test_row_level_store_needs_no_loop() -> None:
    k = kernel(
        1,
        inst("load", param=0),
        inst("reduce", 0, param="add"),
        inst("neg", 1),
        inst("store", 2, param=1),
    )
    first, last = schedule(k).phases
    assert first.reduces == [1]
    assert last.levels == [[2, 3], []]
    assert not last.has_loop


def test_accumulate_runs_once_per_point() -> None:
    """A sum in memory is not hoisted out of loops that its value does not vary with."""
    k = kernel(2, inst("load", param=1), inst("accumulate", 0, param=(3, "add")))
    assert instruction_depths(k) == [1, 2]
    k = kernel(
        1,
        inst("load", param=0),
        inst("reduce", 0, param="add"),
        inst("accumulate", 1, param=(1, "add")),
    )
    assert instruction_depths(k)[-1] == 1


def test_instructions_without_effect_are_left_out() -> None:
    k = kernel(2, inst("load", param=0), inst("exp", 0), inst("store", 0, param=2))
    assert schedule(k).outer == [[], [], [0, 2]]
