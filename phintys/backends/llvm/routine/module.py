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
    texts = [_inlined(k.ir) if k.symbol in code.inlined else k.ir for k in kernels]
    return "\n".join([*sorted(declares), *texts, code.ir])


def _inlined(text: str) -> str:
    """The text of a kernel that is inlined into its callers."""
    text = text.replace("define i64", "define internal i64", 1)
    return text.replace(" noinline nounwind", " alwaysinline nounwind", 1)


@cache
def _declarations() -> list[str]:
    return (Path(__file__).parent / "entry.ll").read_text().splitlines()
