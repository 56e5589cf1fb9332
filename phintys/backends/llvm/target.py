"""The machine that code is generated for."""

from __future__ import annotations

import sysconfig
from functools import cache
from typing import Any

import numpy as np

from phintys.backends.identity import llvm_version, own_version, processor, python
from phintys.backends.llvm import image


@cache
def cpu() -> tuple[str, str]:
    """Name and feature string of this machine's processor.

    Both are given to LLVM and are part of cache keys: in virtual machines the name alone can be
    wrong.  Vectors of 512 bits are used wherever the processor has them.
    """
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    text = features.flatten()
    if features.get("avx512f"):
        text += ",-prefer-256-bit"
    return llvm.get_host_cpu_name(), text


def surroundings() -> str:
    """Everything that machine code depends on, but the program it is made from.

    It is found without LLVM, which takes long to import (see `identity`).
    """
    return f"{_here()} {'image' if image.in_use() else 'object file'}"


@cache
def _here() -> str:
    platform = sysconfig.get_platform()
    built = (own_version(), platform, python(), np.__version__, llvm_version())
    return repr((*built, *processor()))


@cache
def vector_bits() -> int:
    """The size of a vector register."""
    features = dict.fromkeys(cpu()[1].split(","))
    if "+avx512f" in features and "+avx512dq" in features and "+avx512bw" in features:
        return 512
    return 256 if "+avx2" in features else 128


#: Levels of LLVM's code generator.  `PLAIN` takes a quarter of the time; on vectors of 512 bits it
#: can abort the process, so it is for code without vectors.
PLAIN, OPTIMISED = 0, 1


@cache
def has_fma() -> bool:
    """Whether the processor multiplies and adds in one instruction."""
    return not {"+fma", "+neon"}.isdisjoint(cpu()[1].split(","))


@cache
def target_machine(level: int = OPTIMISED) -> Any:
    """LLVM's code generator for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = cpu()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=name, features=features, opt=level, reloc="pic", codemodel="small"
    )
