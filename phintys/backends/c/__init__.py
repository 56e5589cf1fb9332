"""The C backend: a second generator over the Program, for readable code and other compilers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.backends import capsules
from phintys.backends.c.compiler import build
from phintys.backends.c.program import PYTHON, CFile
from phintys.backends.interpreter import require_main_interpreter
from phintys.lowering.program import Program, Slot

_ALLOCATE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))
_PYTHON = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))

#: what C code returns after a callback that has failed, and where it has no memory
_CALLBACK_FAILED, _OUT_OF_MEMORY = -1, -2

__all__ = ["compile_program"]


def compile_program(
    program: Program, failed: Callable[[Sequence[Any], int], Any]
) -> Callable[[Sequence[Any]], list[Any]]:
    """A callable from input values to output values.

    ``failed(values, step)`` raises the error of a failed step.  CompilerError without a compiler.
    """
    return CompiledProgram(program, failed)


class CompiledProgram:
    """A Program in a shared library.  ``source`` is its C text."""

    def __init__(self, program: Program, failed: Callable[[Sequence[Any], int], Any]) -> None:
        require_main_interpreter()
        self.program, self.failed = program, failed
        self.slots = {slot.number: slot for slot in program.slots}
        self.steps = {step.step: step for step in program.steps}
        self.file = CFile(program)
        self.source = self.file.text
        self.library = build(self.source)
        pointers = [_address(name) for name in PYTHON.values()]
        pointers += [capsules.special(n) for n in self.file.specials]
        pointers += [capsules.blas(n) for n in self.file.blas]
        self.library.bind((ctypes.c_void_p * len(pointers))(*pointers))
        self.entry = self.library.run
        self.entry.restype = ctypes.c_int64
        self.entry.argtypes = [ctypes.c_void_p, ctypes.c_void_p, _ALLOCATE, _PYTHON]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        return _Run(self, values).run()


def _address(name: str) -> int:
    """The address of a function of Python."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


class _Run:
    """One call: the memory of every slot, and what the C code calls back for."""

    def __init__(self, compiled: CompiledProgram, values: Sequence[Any]) -> None:
        self.compiled, self.values = compiled, values
        program = compiled.program
        self.arrays: dict[int, Any] = {}
        self.pointers = (ctypes.c_void_p * (1 + compiled.file.done))()
        self.lengths = (ctypes.c_int64 * (len(compiled.file.lengths) + 1))()
        self.error: BaseException | None = None
        for slot, value in zip(program.inputs, values):
            self.fill(slot, value)
        for slot in program.slots:
            if slot.kind == "constant" or (slot.kind == "object" and slot.data is not None):
                self.fill(slot, slot.data)

    def fill(self, slot: Slot, value: Any) -> None:
        """Put a value that comes from outside into a slot."""
        if slot.dtype is None:
            self.arrays[slot.number] = value
            return
        array = np.asarray(value)
        if array.ndim != slot.ndim or array.dtype != slot.dtype:
            raise TypeError(
                f"{slot.name or 'a value'} must be of dtype {slot.dtype} and rank {slot.ndim}, "
                f"not {array.dtype} and {array.ndim}."
            )
        array = np.require(array, requirements=["C", "A"])
        self.arrays[slot.number] = array.reshape(np.shape(value))
        self.pointers[slot.number] = array.ctypes.data
        for axis, n in enumerate(array.shape):
            place = self.compiled.file.lengths.get((slot.number, axis))
            if place is not None:
                self.lengths[place] = n

    def run(self) -> list[Any]:
        allocate, python = (
            _ALLOCATE(self.guarded(self.allocate)),
            _PYTHON(self.guarded(self.python)),
        )
        status = self.compiled.entry(self.pointers, self.lengths, allocate, python)
        if self.error is not None:
            raise self.error
        if status == _CALLBACK_FAILED:  # before `guarded` had begun: a signal's handler raised
            raise KeyboardInterrupt
        if status == _OUT_OF_MEMORY:
            raise MemoryError("There is no memory for what the function computes.")
        if status:
            self.compiled.failed(self.values, status - 1)
        return [self.arrays[s.number] for s in self.compiled.program.outputs]

    def guarded(self, function: Callable[..., None]) -> Callable[..., None]:
        """The function as every callback is: an exception is kept, and raised by `run`.

        C code does not look at results, which are undefined if Python raises before this begins: it
        sets a pointer to null, and a callback that succeeds sets it to something else.
        """

        def callback(*args: Any) -> None:
            try:
                function(*args)
            except BaseException as exc:
                self.error = exc

        return callback

    def allocate(self, number: int, rank: int, shape: Any) -> None:
        """Make the memory of a slot."""
        slot = self.compiled.slots[number]
        self.arrays[number] = array = np.empty(tuple(shape[:rank]), slot.dtype)
        self.pointers[number] = array.ctypes.data

    def python(self, number: int, lengths: Any) -> None:
        """Run a `Python` step."""
        step: Any = self.compiled.steps[number]
        place = 0
        inputs = []
        for slot in step.inputs:
            inputs.append(self.value(slot, lengths, place))
            place += slot.ndim if slot.dtype else 0
        for slot, value in zip(step.outputs, step.function(*inputs), strict=True):
            self.fill(slot, value)
        self.pointers[self.compiled.file.done] = ctypes.addressof(self.pointers)

    def value(self, slot: Slot, lengths: Any, place: int) -> Any:
        """What a slot holds; memory of the call is copied, because Python may keep it."""
        if slot.dtype is None or slot.kind in ("input", "constant", "python"):
            return self.arrays[slot.number]
        shape = tuple(lengths[place : place + slot.ndim])
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(slot.dtype).itemsize
        data = ctypes.string_at(self.pointers[slot.number], size)
        return np.frombuffer(bytearray(data), slot.dtype).reshape(shape)
