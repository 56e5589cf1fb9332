"""Program -> LLVM IR of a bare routine: one that needs no Python object and no GIL.

Its arguments are addresses: of the block of pointers, of words that describe the values, and of
words for the results.  A value takes one word for its address, and one for each length.  All inputs
of the Program are arguments, shared variables too, and all outputs are results, the new values of
shared variables too.  The caller guarantees dtypes, ranks, C-contiguous and aligned memory; lengths
are checked.

A result takes one word more, before its address: the memory to free (``PyMem_RawFree``).

The routine returns a status: `DONE`, `FAILED` after the ``failed`` callback has been called, which
is the only call into Python, `MEMORY`, `LARGE`, or `RAISED` if a Python exception is set.
"""

from __future__ import annotations

from phintys.backends.llvm.routine.body import Body, Place
from phintys.backends.llvm.routine.entry import EntryCode, Routine
from phintys.backends.llvm.runtime.callable import DONE, LARGE, MEMORY
from phintys.lowering.memory import byte_size
from phintys.lowering.program import Program, Slot


def emit_bare(program: Program) -> EntryCode:
    """The bare routine of a Program for which `python_step` finds nothing."""
    return BareRoutine(program).emit(single=False)


class BareBody(Body):
    """The steps of a Program whose outputs are memory, not arrays."""

    def make_output(self, slot: Slot) -> None:
        """Emit the allocation of an output: memory of its own."""
        self.places[slot.number] = self.frame.works
        (self.addresses[slot.number],) = self.workspace([byte_size(slot)])


class BareRoutine(Routine):
    """The text of a bare routine."""

    signature = "i64 @phintys.entry(ptr %block, ptr %args, ptr %results) nounwind"
    body_class = BareBody

    def find_block(self) -> list[str]:
        return []

    def suspend(self, work: str) -> None:
        """Do nothing: the caller decides about the GIL."""

    def resume(self) -> None:
        """Do nothing: see `suspend`."""

    def arguments(self) -> None:
        out, word = self.out, 0
        for slot in self.program.inputs:
            address = out.load("ptr", "%args", 8 * word)
            lengths = [out.load("i64", "%args", 8 * (word + 1 + k)) for k in range(slot.ndim)]
            self.body.bind(slot, Place(address, tuple(lengths)))
            for length, dim in zip(lengths, slot.shape, strict=True):
                if dim.value is not None:
                    self.body.fail_unless(out.value(f"icmp eq i64 {length}, {dim.value}"), -1)
            word += 1 + slot.ndim

    def shared(self) -> None:
        """Do nothing: the values of shared variables are arguments."""

    def results(self, single: bool) -> None:
        out, word = self.out, 0
        for slot in self.program.outputs:
            place = 8 * self.body.places[slot.number]
            out.store("ptr", out.load("ptr", "%works", place), "%results", 8 * word)
            out.store("ptr", "null", "%works", place)
            out.store("ptr", self.body.addresses[slot.number], "%results", 8 * (word + 1))
            for axis, dim in enumerate(slot.shape):
                out.store("i64", self.body.lengths(dim), "%results", 8 * (word + 2 + axis))
            word += 2 + slot.ndim
        self.clean()
        out.line(f"ret i64 {DONE}")

    def failures(self) -> None:
        out = self.out
        out.label("fail")
        step = out.load("i64", self.step)
        self.clean()
        status = out.value(f"call i64 @phintys_noted(ptr %block, ptr %args, i64 {step})")
        out.line(f"ret i64 {status}")
        for label, status in (("large", LARGE), ("memory", MEMORY)):
            out.label(label)
            self.clean()
            out.line(f"ret i64 {status}")
