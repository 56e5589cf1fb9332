"""The machine that code is generated for."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

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

    It is found without LLVM, which takes long to import: the processor is told by what NumPy and
    the system know of it, llvmlite by its files.
    """
    return f"{_here()} {'image' if image.in_use() else 'object file'}"


@cache
def _here() -> str:
    spec = find_spec("llvmlite")
    files = [Path(spec.origin)] if spec and spec.origin else []
    llvm = [(file.as_posix(), file.stat().st_mtime_ns) for file in files]
    python = (sys.implementation.cache_tag, sys.version_info[:3], getattr(sys, "abiflags", ""))
    return repr([sysconfig.get_platform(), python, np.__version__, llvm, *_processor()])


def _processor() -> list[str]:
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features
    except ImportError:  # NumPy 1
        from numpy.core._multiarray_umath import __cpu_features__ as features
    known = [name for name, present in features.items() if present]
    try:
        with open("/proc/cpuinfo") as file:
            block = file.read(16384).split("\n\n")[0]
    except OSError:
        import platform

        return [*known, platform.processor()]
    constant = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")
    return [*known, *(line for line in block.splitlines() if line.startswith(constant))]


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
