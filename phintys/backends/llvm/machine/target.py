"""The target machine: widths of vectors, registers, and LLVM's code generator.

`current` returns the `Target` of the settings ``config.cpu`` and ``config.vector_bits``.  It is
read when a function is compiled; caches in memory use the target as key, and keys of code on disk
contain it (see `surroundings`).
"""

from __future__ import annotations

import re
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from phintys.backends.identity import llvm_version, own_version, processor, python
from phintys.backends.llvm import costs
from phintys.backends.llvm.machine import image
from phintys.config import config

#: Optimisation levels of LLVM's code generator.  `PLAIN` takes a quarter of the time; on vectors of
#: 512 bits it can abort the process, so it is only for code without vectors.  `TRANSFORMED` is
#: for scalar code: LLVM's passes inline, simplify and vectorise it first.  `PROMOTED` is for
#: routines with loops: functions are inlined where they ask for it, and memory on the stack becomes
#: registers.
PLAIN, OPTIMISED, TRANSFORMED, PROMOTED = 0, 1, 2, 3

#: Bytes of a vector inside which shuffles are fast.
SHUFFLED = 16

_NATIVE = "native"

#: Names of x86 processors that LLVM supports, so that they need no check.
_LEVELS = frozenset(["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "generic"])


@dataclass(frozen=True)
class Target:
    """A target machine, described by the settings.

    ``cpu`` is one of LLVM's names of processors, or ``native``; ``bits`` is the width of vectors, 0
    for that of the processor.  The other attributes are computed lazily: they need LLVM, which code
    from the cache does not.
    """

    cpu: str
    bits: int

    @cached_property
    def triple(self) -> str:
        """The target triple: architecture and operating system."""
        import llvmlite.binding as llvm

        return llvm.get_process_triple()

    @cached_property
    def name(self) -> str:
        """LLVM's name of the processor."""
        import llvmlite.binding as llvm

        return llvm.get_host_cpu_name() if self.cpu == _NATIVE else self.cpu

    @cached_property
    def features(self) -> str:
        """LLVM's feature string for the processor.

        For ``native`` it lists all features of this processor, because in virtual machines its name
        can be wrong.  ``prefer-256-bit``, which some names imply, is disabled: LLVM would split
        vectors of 512 bits.
        """
        import llvmlite.binding as llvm

        host = self.cpu == _NATIVE
        parts = [llvm.get_host_cpu_features().flatten()] if host else []
        if self.is_x86:
            parts += ["-prefer-256-bit"] if host else ["+64bit", "-prefer-256-bit"]
        return ",".join(filter(None, parts))

    @cached_property
    def is_x86(self) -> bool:
        return self.triple.startswith("x86_64")

    @cached_property
    def register_bits(self) -> int:
        """The width of the processor's vector registers."""
        if self.cpu != _NATIVE:
            return self._probed[0]
        has = self.features.split(",")
        if {"+avx512f", "+avx512dq", "+avx512bw"} <= set(has):
            return 512
        return 256 if "+avx2" in has else 128

    @cached_property
    def vector_bits(self) -> int:
        """The width of vectors in the IR; LLVM splits those wider than the processor's."""
        return self.bits or self.register_bits

    @property
    def vector_bytes(self) -> int:
        return self.vector_bits // 8

    @cached_property
    def registers(self) -> int:
        """The number of vectors that the processor's registers hold at the same time."""
        wide = not self.is_x86 or self.register_bits == 512
        return (32 if wide else 16) // max(1, self.vector_bits // self.register_bits)

    @cached_property
    def has_fma(self) -> bool:
        """Whether the processor has a fused multiply-add.

        All but old x86 processors have it, also where LLVM cannot detect the processor's features.
        """
        if self.cpu != _NATIVE:
            return self._probed[1]
        return not self.is_x86 or "+fma" in self.features.split(",")

    def lanes(self, size: int, vectors: int = 1, most: int = costs.MOST_LANES) -> int:
        """The number of elements of ``size`` bytes in that many vectors; at most ``most``."""
        return min(vectors * self.vector_bytes // size, most)

    @cached_property
    def has_half(self) -> bool:
        """Whether the processor converts float16: all but old x86 processors do."""
        if not self.is_x86:
            return True
        return self._probed[2] if self.cpu != _NATIVE else "+f16c" in self.features.split(",")

    @cached_property
    def _probed(self) -> tuple[int, bool, bool]:
        """Register width, and whether it multiplies and adds, and converts float16, at once.

        Found in generated code.
        """
        import llvmlite.binding as llvm

        module = llvm.parse_assembly(_PROBE, context=llvm.create_context())
        text = _machine(self, OPTIMISED).emit_assembly(module)
        used = re.findall(r"paddb\b.*%([xyz])mm", text)
        bits = {"z": 512, "y": 256}.get(used[0] if used else "", 128)
        return bits, "fmadd" in text, "vcvtph2ps" in text

    def machine(self, level: int = OPTIMISED) -> Any:
        """LLVM's code generator.

        Raises
        ------
        ValueError
            If LLVM does not know ``cpu``, or the processor here cannot run code for it.
        """
        if self.cpu != _NATIVE:
            _check_runs_here(self)
        return _machine(self, level)


_PROBE = """
declare double @llvm.fmuladd.f64(double, double, double)
define void @probe(ptr %p, double %x) {
  %a = load <64 x i8>, ptr %p
  %b = add <64 x i8> %a, %a
  store <64 x i8> %b, ptr %p
  %y = call double @llvm.fmuladd.f64(double %x, double %x, double %x)
  store double %y, ptr %p
  %h = load half, ptr %p
  %s = fpext half %h to float
  store float %s, ptr %p
  ret void
}
"""


def current() -> Target:
    """The target that the settings describe."""
    return _target(config.cpu, config.vector_bits)


@cache
def _target(cpu: str, bits: int) -> Target:
    return Target(cpu, bits)


@cache
def _machine(target: Target, level: int) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if target.cpu != _NATIVE:
        _check_is_known(target)
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.name,
        features=target.features,
        opt=min(level, TRANSFORMED),
        reloc="pic",
        codemodel="small",
    )


@cache
def _check_runs_here(target: Target) -> None:
    """Raise ValueError if this processor lacks features that code for the target uses."""
    host = _target(_NATIVE, 0)
    wider = target.register_bits > host.register_bits
    if wider or target.has_fma > host.has_fma or target.has_half > host.has_half:
        raise ValueError(
            f"config.cpu = {target.cpu!r}: the processor here, {host.name}, has not all of the "
            f"instructions of that one."
        )


_ASK = """
import sys, llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2], features=sys.argv[3])
"""


def _check_is_known(target: Target) -> None:
    """Raise ValueError for a name of a processor that LLVM does not know.

    LLVM then falls back to another processor and warns on standard error, so a child process tests
    the name.
    """
    if target.cpu in _LEVELS or not sys.executable:
        return
    import subprocess

    command = [sys.executable, "-c", _ASK, target.triple, target.cpu, target.features]
    answer = subprocess.run(command, capture_output=True, text=True)
    if not target.cpu or "not a recognized processor" in answer.stderr:
        raise ValueError(f"config.cpu: LLVM knows no processor named {target.cpu!r} here.")


# ------------------------------------------------------------------------------------- keys


def surroundings(target: Target) -> str:
    """A key of everything that machine code for a target depends on, except the Program.

    It is computed without LLVM, which takes long to import (see `identity`).
    """
    form = "image" if image.in_use() else "object file"
    return f"{_here()} {form} {target.cpu} {target.bits}"


@cache
def _here() -> str:
    platform = sysconfig.get_platform()
    built = (own_version(), platform, python(), np.__version__, llvm_version())
    return repr((*built, *processor()))
