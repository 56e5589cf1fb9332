"""The C backend: generates C99 from a Program, and calls the shared library made from it.

`backend` is what ``compile/`` uses.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from phintys import bitgen
from phintys.backends.c.compiler import build, surroundings
from phintys.backends.c.program import PYTHON, CFile
from phintys.backends.interpreter import require_main_interpreter
from phintys.backends.protocol import FunctionObject, Generator
from phintys.lowering.program import Draw, Program, Slot
from phintys.routines.addresses import address

#: what the C function ``run`` returns if it cannot allocate memory (``OUT_OF_MEMORY``)
_OUT_OF_MEMORY = -2

#: ``failed(values, step)`` raises the exception of the step that has failed
Failed = Callable[[Sequence[Any], int], Any]

__all__ = ["backend", "compile_program"]


def compile_program(program: Program, failed: Failed) -> BoundProgram:
    """A callable from a list of input values to a list of output values.

    Parameters
    ----------
    program
        a Program with a memory plan
    failed
        ``failed(values, step)`` raises the exception of the step that has failed

    The values are NumPy arrays of the dtypes and ranks of the Program's inputs, in order, and
    objects for inputs of kind ``object``.

    Raises
    ------
    CompilerError
        if there is no C compiler, or it fails
    UnsupportedError
        if the Program has loops or branches, or the interpreter cannot run native code
    """
    return BoundProgram(CompiledProgram(program), failed)


class CompiledProgram:
    """A Program compiled to a shared library; ``source`` is the C text."""

    def __init__(self, program: Program) -> None:
        require_main_interpreter()
        self.program = program
        self.slots = {slot.number: slot for slot in program.slots}
        self.steps = {step.step: step for step in program.steps}
        self.file = CFile(program)
        self.source = self.file.text
        self.library = build(self.source)
        pointers = [_address(name) for name in PYTHON.values()]
        pointers += [address(library, name) for library, name in self.file.outside]
        pointers += [bitgen.routine(n) for n in self.file.draws]
        self.library.bind((ctypes.c_void_p * len(pointers))(*pointers))
        self.entry = self.library.run
        self.entry.restype = ctypes.c_int64

    @property
    def size(self) -> int:
        """Bytes of the constants; those of the library are not known."""
        constants = [s.data for s in self.program.slots if s.kind == "constant"]
        return sum([data.nbytes for data in constants if isinstance(data, np.ndarray)])


class BoundProgram:
    """A callable from a list of input values to a list of output values; see `compile_program`."""

    def __init__(self, compiled: CompiledProgram, failed: Failed) -> None:
        self.compiled, self.failed = compiled, failed

    @property
    def source(self) -> str:
        """The C text."""
        return self.compiled.source

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        return _Run(self.compiled, values).run(self.failed)


class C:
    """The object that obeys `Generator`.  Libraries are stored by their text, not by `dump`."""

    def surroundings(self) -> str:
        return surroundings()

    def compile(
        self, program: Program, single: bool = False, to_store: bool = False
    ) -> CompiledProgram:
        return CompiledProgram(program)

    def dump(self, artifact: CompiledProgram) -> bytes | None:
        return None

    def load(self, payload: bytes, cells: int) -> CompiledProgram | None:
        return None

    def function_class(self, methods: type) -> type:
        return methods

    def bind(
        self,
        artifact: CompiledProgram,
        into: FunctionObject,
        cells: Sequence[list[Any]],
        names: Sequence[str | None],
    ) -> None:
        # a call keeps the object alive
        this = cast("Callable[[], FunctionObject]", weakref.ref(into))
        n = artifact.program.n_arguments

        def failed(values: Sequence[Any], step: int) -> Any:
            return this().raise_failure(values[:n], step)

        into.run = BoundProgram(artifact, failed)


backend: Generator[CompiledProgram] = C()


def _address(name: str) -> int:
    """The address of a function of Python's C API."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


class _Run:
    """The state of one call: the memory of every slot, and the functions that the C code calls.

    The C code calls `allocate` and `python` through Python's C API, and returns at once if they
    raise.  The exception then propagates from ``entry``, as from any extension function.
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
        """Put an argument, a constant or a result of Python into a slot."""
        if slot.dtype is None:
            self.arrays[slot.number] = value
            return
        array = np.asarray(value)
        if array.ndim != slot.ndim or array.dtype != slot.dtype:
            raise TypeError(
                f"{slot.name or 'a value'} must have dtype {slot.dtype} and rank {slot.ndim}, "
                f"not {array.dtype} and {array.ndim}."
            )
        array = np.require(array, requirements=["C", "A"])
        self.arrays[slot.number] = array.reshape(np.shape(value))
        self.pointers[slot.number] = array.ctypes.data
        for axis, n in enumerate(array.shape):
            place = self.compiled.file.lengths.get((slot.number, axis))
            if place is not None:
                self.lengths[place] = n

    def run(self, failed: Failed) -> list[Any]:
        """The values of the outputs."""
        memory = self.pointers.ctypes.data, self.lengths.ctypes.data
        # converted here, because a MemoryError in the conversion of arguments during the call would
        # become an ArgumentError
        arguments = [ctypes.c_void_p.from_param(address) for address in memory]
        arguments += [ctypes.py_object.from_param(f) for f in (self.allocate, self.python)]
        status = self.compiled.entry(*arguments)
        if status == _OUT_OF_MEMORY:
            raise MemoryError("The function cannot allocate memory for its temporaries.")
        if status:
            failed(self.values, status - 1)
        return [self.arrays[s.number] for s in self.compiled.program.outputs]

    def allocate(self, number: int) -> None:
        """Allocate the memory of a slot."""
        slot = self.compiled.slots[number]
        array = np.empty(self.shape(slot, self.compiled.file.call_lengths), slot.dtype)
        self.arrays[number] = array
        self.pointers[number] = array.ctypes.data

    def python(self, number: int) -> None:
        """Run a `Python` step, or copy the generator of a `Draw`."""
        step: Any = self.compiled.steps[number]
        if isinstance(step, Draw):
            rng, self.pointers[step.result.number] = bitgen.opened(self.arrays[step.source.number])
            self.arrays[step.result.number] = rng
            return
        start = self.compiled.file.call_lengths
        inputs = []
        for slot in step.inputs:
            inputs.append(self.value(slot, start))
            start += slot.ndim if slot.dtype else 0
        for slot, value in zip(step.outputs, step.function(*inputs), strict=True):
            self.fill(slot, value)

    def shape(self, slot: Slot, start: int) -> tuple[int, ...]:
        """The lengths of a slot, which the C code has written from ``lengths[start]`` on."""
        return tuple(self.lengths[start : start + slot.ndim].tolist())

    def value(self, slot: Slot, start: int) -> Any:
        """The content of a slot.

        Temporary memory is copied, because Python may keep a reference to the array.
        """
        if slot.dtype is None or slot.kind in ("input", "constant", "python"):
            return self.arrays[slot.number]
        memory = (int(self.pointers[slot.number]), True)
        shape, typestr = self.shape(slot, start), np.dtype(slot.dtype).str
        return np.array(_Memory({"data": memory, "shape": shape, "typestr": typestr, "version": 3}))


class _Memory:
    """An object with the array interface of NumPy."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
