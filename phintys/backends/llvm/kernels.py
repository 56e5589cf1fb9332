"""Kernel -> LLVM IR text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from phintys.lowering.program import Kernel


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel function.

    kind ``slot``: ``value`` is the Slot whose base address (element 0) is passed, type ``ptr``;
    kind ``dim``: ``value`` is the Dim to evaluate, type ``i64``;
    kind ``const``: ``value`` is the IR text of the literal, of type ``type``.
    """

    kind: str
    type: str
    value: Any


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The IR of one kernel and how to call it.

    ``symbol``
        name of the function, ``phintys.kernel.<hash of its text>``: equal bodies have equal
        symbols, so a module defines each symbol once.  Quote it: ``@"phintys.kernel.0f..."``.
    ``ir``
        text of ``define i64 @"symbol"(<arguments>)``; it returns 0, or 1 if an index was out of
        range.  Parameters are direct, in the order and with the types of ``arguments``.
    ``declares``
        texts of ``declare`` lines that the module needs (LLVM intrinsics and external symbols).
    ``functions``
        (name, dtype, width) of the ``vecmath`` functions that the module needs.
    """

    symbol: str
    ir: str
    arguments: tuple[Argument, ...]
    declares: frozenset[str]
    functions: frozenset[tuple[str, str, int]]


def emit_kernel(kernel: Kernel) -> KernelCode: ...
