"""The state of a routine that is being emitted: text, words, references, memory, and the GIL."""

from __future__ import annotations

from typing import Any

from phintys.backends.llvm import costs
from phintys.backends.llvm.ir.writer import Writer
from phintys.backends.llvm.kernel.kernels import KernelCode
from phintys.backends.llvm.routine.distant import Positions
from phintys.backends.llvm.runtime.callable import DATA_OFFSET
from phintys.lowering.program import Step

#: Blocks of memory start at multiples of this many bytes.
ALIGN = 64

#: The fixed words at the start of a block; the rows of the arguments follow.
HEADER = ("slow", "failed", "count", "names")


#: Bits of the number of arguments count how often the call has been repeated; the highest bit of it
#: is a flag of CPython.  A call with a step in Python gives up the GIL, so others may end first: of
#: 640 calls by 64 threads, two lost each of 64 attempts.  An op that itself replaces what its
#: function updates always loses, and runs as often: it cannot be told from other threads.
REPEATS_AT, MOST_REPEATS = 52, 1023


class Frame:
    """The text of a routine, the words of its block, and the resources that a call releases."""

    def __init__(self, n_arguments: int, threads: int) -> None:
        self.out = Writer()
        self.words: list[tuple[str, Any]] = [("slow", None), ("failed", None)]
        self.words += [("integer", n_arguments), ("names", None)]
        self.kernels: dict[str, KernelCode] = {}
        self.positions = Positions()
        self.declares: set[str] = set()
        #: (step, position in it) -> number of the first step of an inner Program
        self.starts: dict[tuple[Step, int], int] = {}
        self.loops = 0  # the number of loops around the step that is being emitted
        self.inlined: set[str] = set()  # symbols of the kernels that are inlined
        self.owned = 0  # references that the call owns: number of elements of the array %owned
        self.works = 0  # memory that the call has allocated: elements of the array %works
        self.stack_bytes = 0
        self.strip_words = 0  # numbers of a loop over strips: elements of the array %strips
        self.step = self.out.stack("i64")  # the number of the step, should it fail
        self.threads = threads
        self.has_loops = False
        self.suspended = False  # whether the GIL may have been released around a loop
        self.thread = ""  # stack memory of the thread state while the GIL is released

    def start(self) -> str:
        """The text of the prologue; made last, when the sizes of its arrays are known."""
        lines = [
            *self.find_block(),
            f"%owned = alloca [{self.owned + 1} x ptr], align 8",
            f"%works = alloca [{self.works + 1} x ptr], align 8",
        ]
        if self.strip_words:
            lines.append(f"%strips = alloca [{self.strip_words} x i64], align 8")
        if self.stack_bytes:
            lines.append(f"%stack = alloca [{self.stack_bytes} x i8], align {ALIGN}")
        for name, count in (("%owned", self.owned), ("%works", self.works)):
            if count:
                size = 8 * count
                lines.append(f"call void @llvm.memset.p0.i64(ptr {name}, i8 0, i64 {size}, i1 0)")
        return "".join(f"  {line}\n" for line in lines)

    def find_block(self) -> list[str]:
        """The text that defines ``%block``, the address of the block."""
        return [
            f"%block.at = getelementptr i8, ptr %self, i64 {DATA_OFFSET}",
            "%block = load ptr, ptr %block.at",
        ]

    def word(self, kind: str, value: Any) -> int:
        """Add a word to the block; its position."""
        self.words.append((kind, value))
        return len(self.words) - 1

    # ----- ownership
    def own(self, object_: str) -> int:
        """Emit the store of an owned reference, released when the call ends; its index."""
        place = self.reserve()
        self.out.store("ptr", object_, "%owned", 8 * place)
        return place

    def obtain(self, call: str) -> tuple[str, int]:
        """Emit a call that returns a new reference, or null with an exception set."""
        object_ = self.out.value(call)
        self.out.require(self.out.value(f"icmp ne ptr {object_}, null"), "raise")
        return object_, self.own(object_)

    def release(self, place: int) -> None:
        """Emit the early release of a reference."""
        at = self.out.at("%owned", 8 * place)
        self.out.line(f"call void @phintys_release(ptr {at}, i64 1)")

    def reserve(self) -> int:
        """The index in ``%owned`` for a reference that is stored later."""
        self.owned += 1
        return self.owned - 1

    def move(self, source: int, target: int) -> None:
        """Emit the move of a reference from one index to another."""
        self.out.store("ptr", self.out.load("ptr", "%owned", 8 * source), "%owned", 8 * target)
        self.out.store("ptr", "null", "%owned", 8 * source)

    # ----- the GIL
    def suspend(self, work: str) -> None:
        """Emit the release of the GIL if there is enough work, and the call is not repeated."""
        out, give, after = self.out, self.out.name("give"), self.out.name("go")
        if not self.thread:
            self.thread = out.stack("ptr")
            out.head.append(f"  store ptr null, ptr {self.thread}")
            out.head.append(f"  %repeated = and i64 %flagged, {MOST_REPEATS << REPEATS_AT}")
            out.head.append("  %first = icmp eq i64 %repeated, 0")
        much = out.value(f"icmp sgt i64 {work}, {costs.LONG_WORK}")
        out.branch(out.value(f"and i1 {much}, %first"), give, after)
        out.label(give)
        out.store("ptr", out.value("call ptr @PyEval_SaveThread()"), self.thread)
        out.line(f"br label %{after}")
        out.label(after)

    def resume(self) -> None:
        """Emit the reacquisition of the GIL if it has been released."""
        if not self.thread:
            return
        out, take, after = self.out, self.out.name("take"), self.out.name("go")
        state = out.load("ptr", self.thread)
        out.branch(out.value(f"icmp ne ptr {state}, null"), take, after)
        out.label(take)
        out.store("ptr", "null", self.thread)
        out.line(f"call void @PyEval_RestoreThread(ptr {state})")
        out.line(f"br label %{after}")
        out.label(after)

    def clean(self, owned: int = 0, works: int = 0) -> None:
        """Emit the release of memory and references, from these indices on."""
        ranges = (("free", "%works", works, self.works), ("release", "%owned", owned, self.owned))
        for routine, array, start, stop in ranges:
            if start < stop:
                at = self.out.at(array, 8 * start)
                self.out.line(f"call void @phintys_{routine}(ptr {at}, i64 {stop - start})")
