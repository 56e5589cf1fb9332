"""Functions compiled to machine code under some settings, for tests of dtypes."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from tiers import rest

import phintys
from phintys.backends.llvm.machine.target import current

#: mode and settings of each width of llvm
WIDTHS = [
    pytest.param(
        "FAST_RUN",
        {"vector_bits": n},
        id=f"{n} bits",
        marks=[] if n == current().register_bits else rest,
    )
    for n in (128, 256, 512)
]
#: those of mode C
C = pytest.param(
    "C", {}, id="C", marks=pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
)


def compiled(inputs: Any, outputs: Any, mode: str, settings: dict[str, Any]) -> Any:
    with phintys.config.change_flags(**settings):
        return phintys.function(inputs, outputs, mode=mode)


def native(inputs: Any, outputs: Any, mode: str, settings: dict[str, Any]) -> Any:
    """A function that runs nothing in Python."""
    f = compiled(inputs, outputs, mode, settings)
    assert {type(step).__name__ for step in f.program.steps}.isdisjoint({"Python"})
    return f
