"""The machine that code is generated for."""

from __future__ import annotations

from functools import cache
from typing import Any


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


@cache
def vector_bits() -> int:
    """The size of a vector register."""
    features = dict.fromkeys(cpu()[1].split(","))
    if "+avx512f" in features and "+avx512dq" in features and "+avx512bw" in features:
        return 512
    return 256 if "+avx2" in features else 128


@cache
def target_machine() -> Any:
    """LLVM's code generator for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = cpu()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=name, features=features, opt=_OPTIMIZE, reloc="pic", codemodel="small"
    )


#: Level of LLVM's code generator.  Level 0 can abort the process on vectors of 512 bits.
_OPTIMIZE = 1
