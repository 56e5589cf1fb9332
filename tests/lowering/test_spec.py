"""Illegal Programs are recognised: each rule is broken once."""

from __future__ import annotations

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

BROKEN = {
    "unknown kind": ("%2 = temp", "%2 = tmp"),
    "not native": ("%2 = temp float64", "%2 = temp complex64"),
    "outputs and inputs": ("outputs %3", "outputs %0"),
    "read before it is filled": ("  2: store float64 (1) 1\n", ""),
    "used before it is defined": ("check len(0, 1)", "check item(2)"),
    "unknown symbol": ("check len(0, 1)", "check size(2)"),
    "split out of range": ("split 1", "split 3"),
    "without a reduce": ("split 2", "split 1"),
    "strides and dims": ("$2 = %3 {len(0, 1), 1; 0; }", "$2 = %3 {1; 0; }"),
    "no operand": ("0: load float64 () 0\n  1: load", "0: load float64 () 7\n  1: load"),
    "not an earlier": ("lt bool (0, 1)", "lt bool (0, 4)"),
    "argument dtypes": ("select float64 (2, 0, 1)", "add float64 (2, 0)"),
    "gives float64": ("lt bool (0, 1)", "lt float64 (0, 1)"),
    "takes 2 arguments": ("lt bool (0, 1)", "lt bool (0)"),
    "unknown instruction": ("lt bool (0, 1)", "frob float64 (0, 1)"),
    "unknown reduction": ("(0) add", "(0) median"),
    "does not take": ("lt bool (0, 1)", "shl float64 (0, 1)"),
    "indices and extra": ("$0 = %0 {len(0, 1), 1; 0; }\n  $1 = %2 {1, 0; 0; }\n  $2",
                          "$0 = %0 {len(0, 1), 1; 0; 1}\n  $1 = %2 {1, 0; 0; }\n  $2"),
    "kind input is written": ("$2 = %3", "$2 = %1"),
    "storage out of range": ("in 0", "in 1"),
}  # fmt: skip


def test_the_pattern_is_legal() -> None:
    program = parse_program(LEGAL)
    assert verify(program) is program


@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_broken_rule(rule: str) -> None:
    old, new = BROKEN[rule]
    assert old in LEGAL
    with pytest.raises(IllegalProgram):
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
    with pytest.raises(IllegalProgram, match="live together"):
        verify(parse_program(text))
    verify(parse_program(text.replace("%2 = temp float64 [4] in 0", "%2 = temp float64 [4]")))


@pytest.mark.parametrize(
    "line", ["frobnicate %0", "kernel [1 split 0", "%0 = input float64 [a.b]", "check 1 < 2 'x'"]
)
def test_unreadable_lines_are_reported(line: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        parse_program(f"inputs of 0\noutputs\n{line}")
