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

#: what C code returns where it has no memory
_OUT_OF_MEMORY = -2

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

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        return _Run(self, values).run()


def _address(name: str) -> int:
    """The address of a function of Python."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


class _Run:
    """One call: the memory of every slot, and what the C code calls Python for.

    The C code calls `allocate` and `python` through the interpreter's C API, and returns at once
    if they raise; the exception leaves ``entry``, as that of any function of an extension.
    """

    def __init__(self, compiled: CompiledProgram, values: Sequence[Any]) -> None:
        self.compiled, self.values = compiled, values
        program = compiled.program
        self.arrays: dict[int, Any] = {}
        self.pointers = np.zeros(compiled.file.pointer_count, np.uintp)
        self.lengths = np.zeros(compiled.file.length_count, np.int64)
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
        memory = self.pointers.ctypes.data, self.lengths.ctypes.data
        # ctypes, in the call itself, makes an ArgumentError of a MemoryError
        arguments = [ctypes.c_void_p.from_param(address) for address in memory]
        arguments += [ctypes.py_object.from_param(f) for f in (self.allocate, self.python)]
        status = self.compiled.entry(*arguments)
        if status == _OUT_OF_MEMORY:
            raise MemoryError("There is no memory for what the function computes.")
        if status:
            self.compiled.failed(self.values, status - 1)
        return [self.arrays[s.number] for s in self.compiled.program.outputs]

    def allocate(self, number: int) -> None:
        """Make the memory of a slot."""
        slot = self.compiled.slots[number]
        array = np.empty(self.shape(slot, self.compiled.file.passed), slot.dtype)
        self.arrays[number] = array
        self.pointers[number] = array.ctypes.data

    def python(self, number: int) -> None:
        """Run a `Python` step."""
        step: Any = self.compiled.steps[number]
        place = self.compiled.file.passed
        inputs = []
        for slot in step.inputs:
            inputs.append(self.value(slot, place))
            place += slot.ndim if slot.dtype else 0
        for slot, value in zip(step.outputs, step.function(*inputs), strict=True):
            self.fill(slot, value)

    def shape(self, slot: Slot, place: int) -> tuple[int, ...]:
        """The lengths of a slot that C code has put at a place."""
        return tuple(self.lengths[place : place + slot.ndim].tolist())

    def value(self, slot: Slot, place: int) -> Any:
        """What a slot holds; memory of the call is copied, because Python may keep it."""
        if slot.dtype is None or slot.kind in ("input", "constant", "python"):
            return self.arrays[slot.number]
        memory = (int(self.pointers[slot.number]), True)
        shape, kind = self.shape(slot, place), np.dtype(slot.dtype).str
        return np.array(_Memory({"data": memory, "shape": shape, "typestr": kind, "version": 3}))


class _Memory:
    """What NumPy takes an array from."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
