"""Blocks of memory whose addresses are in a table.

A routine with thousands of blocks reads the address of a block from a table where it is used:
LLVM's time for values that live through the whole routine grows with the square of their number.
A kernel is called through a function that reads the addresses, given their positions in the table,
which are constants in memory: a call takes few instructions, however many blocks a kernel uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from phintys.backends.llvm.kernel.kernels import KernelCode

#: The constant that holds the positions that all calls of a routine pass.
_POSITIONS = "@phintys.positions"


class Distant(NamedTuple):
    """The address of a block: an element of a table in memory.

    ``table`` is where the address of the table is on the stack.
    """

    table: str
    position: int


def reader(code: KernelCode, are_distant: Sequence[bool]) -> KernelCode:
    """A function that calls a kernel with addresses from a table.

    Its arguments are the table, the positions in it, and those of the kernel that are not distant.
    """
    pattern = "".join("01"[distant] for distant in are_distant)
    name = f"{code.symbol}.{int(pattern, 2):x}"
    given, passed, lines = ["ptr %table", "ptr %positions"], list[str](), list[str]()
    for k, (argument, distant) in enumerate(zip(code.arguments, are_distant, strict=True)):
        passed.append(f"{argument.type} %x{k}")
        if distant:
            place = 4 * (len(passed) - len(given) + 1)
            lines += [
                f"  %at{k} = getelementptr i8, ptr %positions, i64 {place}",
                f"  %number{k} = load i32, ptr %at{k}",
                f"  %from{k} = getelementptr ptr, ptr %table, i32 %number{k}",
                f"  %x{k} = load ptr, ptr %from{k}",
            ]
        else:
            given.append(passed[-1])
    text = [
        f'define internal i64 @"{name}"({", ".join(given)}) noinline nounwind {{',
        *lines,
        f'  %status = tail call i64 @"{code.symbol}"({", ".join(passed)})',
        "  ret i64 %status",
        "}\n",
    ]
    return KernelCode(name, "\n".join(text), (), frozenset())


class Positions:
    """The positions that the calls of a routine pass."""

    def __init__(self) -> None:
        self._numbers: list[int] = []

    def add(self, numbers: Sequence[int]) -> str:
        """Add the positions that one call passes; returns their address."""
        start = 4 * len(self._numbers)
        self._numbers += numbers
        return f"getelementptr (i8, ptr {_POSITIONS}, i64 {start})"

    def text(self) -> str:
        """The definition of the constant; empty if there are none."""
        if not self._numbers:
            return ""
        values = ", ".join(map("i32 {}".format, self._numbers))
        kind = f"[{len(self._numbers)} x i32]"
        return f"{_POSITIONS} = private unnamed_addr constant {kind} [{values}]\n"
