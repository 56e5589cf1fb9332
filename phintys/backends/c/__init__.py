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
from phintys.backends.c.steps import Steps
from phintys.backends.interpreter import require_main_interpreter
from phintys.backends.protocol import FunctionObject, Generator
from phintys.lowering.program import Draw, Program, Python, Slot
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
        if the interpreter cannot run native code
    """
    return BoundProgram(CompiledProgram(program), failed)


class CompiledProgram:
    """A Program compiled to a shared library; ``source`` is the C text."""

    def __init__(self, program: Program) -> None:
        require_main_interpreter()
        self.program = program
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
        slots = [slot for steps in self.file.inner for slot in steps.program.slots]
        constants = [s.data for s in slots if s.kind == "constant"]
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

    The C code calls `act` through Python's C API, and returns at once if it raises.  The exception
    then propagates from ``entry``, as from any extension function.
    """

    def __init__(self, compiled: CompiledProgram, values: Sequence[Any]) -> None:
        self.compiled, self.values = compiled, values
        program = compiled.program
        self.arrays: dict[int, Any] = {}
        self.pointers = np.zeros(compiled.file.pointer_count, np.uintp)
        self.lengths = np.zeros(compiled.file.length_count, np.int64)
        for slot, value in zip(program.inputs, values):
            self.fill(compiled.file.steps, slot, value)
        for steps in compiled.file.inner:
            for slot in steps.program.slots:
                if slot.kind == "constant" or (slot.kind == "object" and slot.data is not None):
                    self.fill(steps, slot, slot.data)

    def fill(self, steps: Steps, slot: Slot, value: Any) -> None:
        """Put an argument, a constant or a result of Python into a slot."""
        number = steps.number(slot)
        if slot.dtype is None:
            self.arrays[number] = value
            return
        array = np.asarray(value)
        if array.ndim != slot.ndim or array.dtype != slot.dtype:
            raise TypeError(
                f"{slot.name or 'a value'} must have dtype {slot.dtype} and rank {slot.ndim}, "
                f"not {array.dtype} and {array.ndim}."
            )
        array = np.require(array, requirements=["C", "A"])
        self.arrays[number] = array.reshape(np.shape(value))
        self.pointers[number] = array.ctypes.data
        for axis, n in enumerate(array.shape):
            place = self.compiled.file.lengths.get((number, axis))
            if place is not None:
                self.lengths[place] = n

    def run(self, failed: Failed) -> list[Any]:
        """The values of the outputs."""
        memory = self.pointers.ctypes.data, self.lengths.ctypes.data
        # converted here, because a MemoryError in the conversion of arguments during the call would
        # become an ArgumentError
        p, n = (ctypes.c_void_p.from_param(address) for address in memory)
        status = self.compiled.entry(p, n, ctypes.py_object.from_param(self.act))
        if status == _OUT_OF_MEMORY:
            raise MemoryError("The function cannot allocate memory for its temporaries.")
        if status:
            failed(self.values, status - 1)
        steps = self.compiled.file.steps
        return [self.arrays[steps.number(s)] for s in self.compiled.program.outputs]

    def act(self, number: int) -> None:
        """Do what the C code asks for."""
        name, *arguments = self.compiled.file.actions[number]
        getattr(self, name)(*arguments)

    def allocate(self, steps: Steps, slot: Slot) -> None:
        """Allocate the memory of a slot."""
        array = np.empty(self.shape(slot, self.compiled.file.call_lengths), slot.dtype)
        self.arrays[steps.number(slot)] = array
        self.pointers[steps.number(slot)] = array.ctypes.data

    def take(self, target: int, source: int) -> None:
        """Put the object of one slot into another."""
        self.arrays[target] = self.arrays[source]

    def adopt(self, steps: Steps, slot: Slot, source: int) -> None:
        """Put the array that an inner Program has made into a slot of the outer one."""
        self.fill(steps, slot, self.arrays[source])

    def draw(self, steps: Steps, step: Draw) -> None:
        """Copy the generator of a `Draw`."""
        source, result = steps.number(step.source), steps.number(step.result)
        self.arrays[result], self.pointers[result] = bitgen.opened(self.arrays[source])

    def python(self, steps: Steps, step: Python) -> None:
        """Run a `Python` step."""
        start = self.compiled.file.call_lengths
        inputs = []
        for slot in step.inputs:
            inputs.append(self.value(steps.number(slot), slot, start))
            start += slot.ndim if slot.dtype else 0
        for slot, value in zip(step.outputs, step.function(*inputs), strict=True):
            self.fill(steps, slot, value)

    def shape(self, slot: Slot, start: int) -> tuple[int, ...]:
        """The lengths of a slot, which the C code has written from ``lengths[start]`` on."""
        return tuple(self.lengths[start : start + slot.ndim].tolist())

    def value(self, number: int, slot: Slot, start: int) -> Any:
        """The content of a slot.

        Temporary memory is copied, because Python may keep a reference to the array.
        """
        held = slot.kind in ("input", "constant", "python") and number in self.arrays
        if slot.dtype is None or held:
            return self.arrays[number]
        memory = (int(self.pointers[number]), True)
        shape, typestr = self.shape(slot, start), np.dtype(slot.dtype).str
        return np.array(_Memory({"data": memory, "shape": shape, "typestr": typestr, "version": 3}))


class _Memory:
    """An object with the array interface of NumPy."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
