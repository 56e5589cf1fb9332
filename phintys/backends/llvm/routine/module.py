"""The text of a whole module: the routine of a Program and its kernels."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from phintys.backends.llvm.routine.entry import EntryCode


def module_text(code: EntryCode) -> str:
    """The IR of a routine and its kernels, with declarations of external symbols."""
    kernels = code.kernels.values()
    declares = set(_declarations())
    declares.update(code.declares, *(kernel.declares for kernel in kernels))
    return "\n".join([*sorted(declares), *(kernel.ir for kernel in kernels), code.ir])


@cache
def _declarations() -> list[str]:
    return (Path(__file__).parent / "entry.ll").read_text().splitlines()
