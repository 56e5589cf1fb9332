"""Kernels in several threads (``config.threads``).

There is no thread pool: a kernel with enough work starts threads of the operating system, which end
with it, so a fork or exit needs no handling.  The routine fills a row of words for each part, and
``threads.ll`` runs the parts; a part whose thread cannot be started runs in the calling thread.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from pathlib import Path

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.writer import Lengths
from phintys.backends.llvm.kernel.kernels import KernelCode, emit_kernel
from phintys.backends.llvm.machine import process
from phintys.backends.llvm.routine.body import Body
from phintys.backends.llvm.routine.parts import COUNT, LENGTH, NUMBER, START, Parts, picoseconds
from phintys.config import config
from phintys.lowering.memory import byte_size
from phintys.lowering.program import Kernel, Slot

_RUN = "phintys.parallel"


def thread_count() -> int:
    """The number of threads that a kernel may use."""
    return config.threads if config.threads > 1 and _has_threads() else 1


@cache
def _has_threads() -> bool:
    if sys.platform != "win32" and process.address_of("pthread_create"):
        return True
    text = "config.threads: there are no POSIX threads here, kernels run in the calling thread"
    warnings.warn(text, RuntimeWarning, stacklevel=2)
    return False


def emit(body: Body, step: Kernel, parts: Parts, threads: int) -> str:
    """Emit the calls of a kernel's parts; the status, as of a kernel."""
    call = _Parallel(body, parts, threads)
    work = body.lengths(step.points * picoseconds(step))
    return call.write(work)


class _Parallel:
    """One kernel in parts: the start of the threads, and their arguments."""

    def __init__(self, body: Body, parts: Parts, threads: int) -> None:
        self.body, self.out, self.parts, self.threads = body, body.out, parts, threads
        self.code = emit_kernel(parts.kernel)
        self.kernels = body.frame.kernels
        self.kernels[self.code.symbol] = self.code
        self.words = [a for a in self.code.arguments if a.kind != "const"]
        for slot in parts.partial:
            body.addresses[slot.number] = self.out.stack(f"[{threads} x i64]")

    def write(self, work: str) -> str:
        out, body = self.out, self.body
        limit = out.value(f"sdiv i64 {work}, {costs.THREAD_PICOSECONDS}")
        limit = out.value(f"call i64 @llvm.smin.i64(i64 {limit}, i64 {self.threads})")
        total = body.lengths(self.parts.length)
        several, one, join = (out.name(n) for n in ("several", "one", "join"))
        out.branch(out.value(f"icmp sgt i64 {limit}, 1"), several, one)
        out.label(several)
        status = self.start_parts(limit, total, one)
        ends = [(status, limit, out.block)]
        out.line(f"br label %{join}")
        out.label(one)
        status = self.call(self.within("0", total, "0"))
        ends.append((status, "1", out.block))
        out.line(f"br label %{join}")
        out.label(join)
        both = ", ".join(f"[{status}, %{block}]" for status, _, block in ends)
        status = out.value(f"phi i64 {both}")
        count = out.value("phi i64 " + ", ".join(f"[{count}, %{b}]" for _, count, b in ends))
        if self.parts.final is not None:
            lengths = body.lengths.within({COUNT: count})
            final = body.call_kernel(self.parts.final, lengths)
            status = out.value(f"or i64 {status}, {final}")
        return status

    def within(self, start: str, length: str, number: str) -> Lengths:
        """The lengths with the symbols of one part defined."""
        return self.body.lengths.within({START: start, LENGTH: length, NUMBER: number})

    def call(self, lengths: Lengths) -> str:
        return self.body.call_kernel(self.parts.kernel, lengths)

    def start_parts(self, count: str, total: str, otherwise: str) -> str:
        """Emit the rows of all parts and the call that runs them; the status."""
        out, size = self.out, 8 * (len(self.words) + 1)
        scratch = [self.scratch(slot) for slot in self.parts.private]
        if scratch:
            self.require(scratch, otherwise)
        rows = out.stack(f"[{self.threads * size} x i8]")
        handles = out.stack(f"[{2 * self.threads} x i64]")
        unit = self.parts.unit
        whole = out.value(f"add i64 {total}, {count}")
        chunk = out.value(f"sdiv i64 {whole}, {count}")
        if unit > 1:
            chunk = out.value(f"and i64 {out.value(f'add i64 {chunk}, {unit - 1}')}, {-unit}")
        for k in range(self.threads):
            self.fill(out.at(rows, k * size), k, chunk, total, scratch)
        task = self.task()
        status = out.value(
            f"call i64 @{_RUN}(ptr @{task}, ptr {rows}, i64 {size}, i64 {count}, ptr {handles})"
        )
        self.free(scratch)
        return status

    def require(self, scratch: list[tuple[str, str]], otherwise: str) -> None:
        """Emit a branch to ``otherwise`` if an allocation failed, after freeing the others."""
        out, missing = self.out, "false"
        enough, without = out.name("enough"), out.name("without")
        for memory, _ in scratch:
            missing = out.value(f"or i1 {missing}, {out.value(f'icmp eq ptr {memory}, null')}")
        out.branch(missing, without, enough)
        out.label(without)
        self.free(scratch)
        out.line(f"br label %{otherwise}")
        out.label(enough)

    def free(self, scratch: list[tuple[str, str]]) -> None:
        for memory, _ in scratch:
            self.out.line(f"call void @PyMem_RawFree(ptr {memory})")

    def scratch(self, slot: Slot) -> tuple[str, str]:
        """Emit the allocation of a slot for all parts, null if it fails, and the size of one."""
        out = self.out
        size = self.body.lengths.within({})(byte_size(slot))
        memory = out.value(f"mul i64 {size}, {self.threads}")
        memory = out.value(f"call ptr @PyMem_RawMalloc(i64 {memory})")
        return memory, size

    def fill(
        self, row: str, k: int, chunk: str, total: str, scratch: list[tuple[str, str]]
    ) -> None:
        """Emit the row of part ``k``: its status, then the arguments of the kernel."""
        out = self.out
        start = out.value(f"mul i64 {chunk}, {k}")
        start = out.value(f"call i64 @llvm.smin.i64(i64 {start}, i64 {total})")
        left = out.value(f"sub i64 {total}, {start}")
        length = out.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 {chunk})")
        lengths = self.within(start, length, str(k))
        own = dict(zip((s.number for s in self.parts.private), scratch))
        for number, argument in enumerate(self.words, 1):
            if argument.kind == "dim":
                out.store("i64", lengths(argument.value), row, 8 * number)
                continue
            address = self.body.addresses[argument.value.number]
            if argument.value.number in own:
                memory, size = own[argument.value.number]
                address = out.at(memory, out.value(f"mul i64 {size}, {k}"))
            out.store("ptr", address, row, 8 * number)

    def task(self) -> str:
        """The name of the function that runs the kernel on a row."""
        name = f"phintys.task.{len(self.kernels)}"
        lines, args = [f"define internal ptr @{name}(ptr %row) nounwind {{"], []
        words = iter(range(1, len(self.words) + 1))
        for a in self.code.arguments:
            if a.kind == "const":
                args.append(f"{a.type} {a.value}")
                continue
            k = next(words)
            lines.append(f"  %at{k} = getelementptr i8, ptr %row, i64 {8 * k}")
            lines.append(f"  %x{k} = load {a.type}, ptr %at{k}")
            args.append(f"{a.type} %x{k}")
        lines.append(f'  %status = call i64 @"{self.code.symbol}"({", ".join(args)})')
        lines += ["  store i64 %status, ptr %row", "  ret ptr null", "}", ""]
        self.kernels[name] = KernelCode(name, "\n".join(lines), (), frozenset())
        self.kernels[_RUN] = KernelCode(_RUN, _runner(), (), frozenset(_DECLARES))
        return name


_DECLARES = (
    "declare i32 @pthread_create(ptr, ptr, ptr, ptr)",
    "declare i32 @pthread_join(i64, ptr)",
    "declare ptr @PyThread_allocate_lock()",
    "declare i32 @PyThread_acquire_lock_timed(ptr, i64, i32)",
    "declare void @PyThread_release_lock(ptr)",
    "declare void @PyThread_free_lock(ptr)",
    "declare void @phintys_stoppable(ptr)",
    "declare void @PyMem_RawFree(ptr)",
)


@cache
def _runner() -> str:
    return (Path(__file__).parent / "threads.ll").read_text()
