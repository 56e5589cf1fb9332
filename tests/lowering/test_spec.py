"""Illegal Programs are recognised: each rule is broken once."""

from __future__ import annotations

import re

import pytest

from phintys.lowering.spec import IllegalProgram, verify
from phintys.lowering.text import parse_program

LEGAL = """
inputs %0 %1 of 2
outputs %3
%0 = input float64 [len(0, 0), len(0, 1)]
%1 = input float64 [len(1, 0)]
%2 = temp float64 [len(0, 0)] in 0
%3 = output float64 [len(0, 0), len(0, 1)]
storage 0 = 8*len(0, 0)
check len(0, 1) == len(1, 0) 'lengths'
kernel [len(0, 0), len(0, 1)] split 1
  $0 = %0 {len(0, 1), 1; 0; }
  $1 = %2 {1, 0; 0; }
  0: load float64 () 0
  1: reduce float64 (0) add
  2: store float64 (1) 1
kernel [len(0, 0), len(0, 1)] split 2
  $0 = %0 {len(0, 1), 1; 0; }
  $1 = %2 {1, 0; 0; }
  $2 = %3 {len(0, 1), 1; 0; }
  0: load float64 () 0
  1: load float64 () 1
  2: lt bool (0, 1)
  3: select float64 (2, 0, 1)
  4: store float64 (3) 2
"""

#: the message -> what is replaced, and by what
BROKEN = {
    "slot 2: unknown kind 'tmp'": ("%2 = temp", "%2 = tmp"),
    "step 1 (Kernel), instruction 2 (store): slot has dtype complex64": (
        "%2 = temp float64",
        "%2 = temp complex64",
    ),
    "outputs: slot 0 has kind input": ("outputs %3", "outputs %0"),
    "step 2 (Kernel), instruction 1 (load): slot 2 is read before it is filled": (
        "  2: store float64 (1) 1\n",
        "",
    ),
    "step 0 (Check): Dim(('item', 2)) is used before it is defined": (
        "check len(0, 1)",
        "check item(2)",
    ),
    "step 0 (Check): unknown symbol Dim(('size', 2))": ("check len(0, 1)", "check size(2)"),
    "step 1 (Kernel): split out of range": ("split 1", "split 3"),
    "step 2 (Kernel): without a reduce the split is the number of dims": ("split 2", "split 1"),
    "step 2 (Kernel): operand strides and dims differ in number": (
        "$2 = %3 {len(0, 1), 1; 0; }",
        "$2 = %3 {1; 0; }",
    ),
    "step 2 (Kernel): no operand 7": (
        "0: load float64 () 0\n  1: load",
        "0: load float64 () 7\n  1: load",
    ),
    "step 2 (Kernel), instruction 2 (lt): argument 4 is not an earlier instruction": (
        "lt bool (0, 1)",
        "lt bool (0, 4)",
    ),
    "step 2 (Kernel), instruction 3 (add): argument dtypes ['bool', 'float64'] differ": (
        "select float64 (2, 0, 1)",
        "add float64 (2, 0)",
    ),
    "step 2 (Kernel), instruction 2 (lt): gives float64, not bool": (
        "lt bool (0, 1)",
        "lt float64 (0, 1)",
    ),
    "step 2 (Kernel), instruction 2 (lt): takes 2 arguments, got 1": (
        "lt bool (0, 1)",
        "lt bool (0)",
    ),
    "step 2 (Kernel), instruction 2 (frob): unknown instruction": (
        "lt bool (0, 1)",
        "frob float64 (0, 1)",
    ),
    "step 1 (Kernel), instruction 1 (reduce): unknown reduction 'median'": (
        "(0) add",
        "(0) median",
    ),
    "step 2 (Kernel), instruction 2 (shl): does not take float64": (
        "lt bool (0, 1)",
        "shl float64 (0, 1)",
    ),
    "step 2 (Kernel), instruction 0 (load): indices and extra strides differ in number": (
        "$0 = %0 {len(0, 1), 1; 0; }\n  $1 = %2 {1, 0; 0; }\n  $2",
        "$0 = %0 {len(0, 1), 1; 0; 1}\n  $1 = %2 {1, 0; 0; }\n  $2",
    ),
    "step 2 (Kernel): slot 1 of kind input is written": ("$2 = %3", "$2 = %1"),
    "slot 2: storage out of range": ("in 0", "in 1"),
}


def test_the_pattern_is_legal() -> None:
    program = parse_program(LEGAL)
    assert verify(program) is program


@pytest.mark.parametrize("message", sorted(BROKEN))
def test_broken_rule(message: str) -> None:
    old, new = BROKEN[message]
    assert old in LEGAL
    with pytest.raises(IllegalProgram, match=f"^{re.escape(message)}$"):
        verify(parse_program(LEGAL.replace(old, new, 1)))


def test_a_float16_is_only_moved() -> None:
    with pytest.raises(IllegalProgram, match="of float16"):
        verify(parse_program(LEGAL.replace("float64", "float16")))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_number_is_only_moved(dtype: str) -> None:
    with pytest.raises(IllegalProgram, match=f"of {dtype}"):
        verify(parse_program(LEGAL.replace("float64", dtype)))


def test_storage_of_live_slots_is_not_shared() -> None:
    text = """
    inputs %0 of 1
    outputs %3
    %0 = input float64 [4]
    %1 = temp float64 [4] in 0
    %2 = temp float64 [4] in 0
    %3 = output float64 [4]
    storage 0 = 32
    copy %0 -> %1
    copy %0 -> %2
    copy %1 -> %3
    copy %2 -> %3
    """
    with pytest.raises(IllegalProgram, match=r"^storage: .* live together"):
        verify(parse_program(text))
    verify(parse_program(text.replace("%2 = temp float64 [4] in 0", "%2 = temp float64 [4]")))


@pytest.mark.parametrize(
    "line", ["frobnicate %0", "kernel [1 split 0", "%0 = input float64 [a.b]", "check 1 < 2 'x'"]
)
def test_unreadable_lines_are_reported(line: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        parse_program(f"inputs of 0\noutputs\n{line}")
