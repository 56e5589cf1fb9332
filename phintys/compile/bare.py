"""Compiled functions as routines that are called by address, without Python objects and the GIL."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from phintys.compile.failure import explain_failure
from phintys.compile.native import code_of
from phintys.errors import UnsupportedError
from phintys.graph.results import array_type
from phintys.lowering.program import python_step

if TYPE_CHECKING:
    from phintys.backends.protocol import Bare, BareGenerator
    from phintys.compile.callable import Maker
    from phintys.graph.variable import Variable

#: So many failures are kept until their exceptions are asked for: the last ones of different
#: threads.  Arguments are kept up to so many bytes.
_MOST_FAILURES, _MOST_BYTES = 16, 2**24


class NativeRoutine:
    """The routine of a function; it obeys `phintys.backends.protocol.BareFunction`.

    Raises UnsupportedError, which names the op or the value, if one needs Python.
    """

    def __init__(self, backend: BareGenerator[Any], maker: Maker) -> None:
        self.maker = maker
        inputs = maker.spec.held.inputs
        updated = [inputs[position] for position in maker.update_targets]
        self.inputs = [(*_array(v), v.name or f"input {i}") for i, v in enumerate(inputs)]
        self.outputs = [_array(v) for v in [*(o.variable for o in maker.outputs), *updated]]
        self._failures: dict[int, tuple[list[Any] | None, int]] = {}
        self.routine: Bare = backend.bind_bare(_code(backend, maker), self._note)

    def _note(self, inputs: int, step: int) -> None:
        """Keep copies of the arguments of a failed call, for `error`."""
        words = iter(range(inputs, 2**63, 8))
        arrays = [_array_at(words, dtype, rank) for dtype, rank, _ in self.inputs]
        is_small = sum(array.nbytes for array in arrays) <= _MOST_BYTES
        failures, thread = self._failures, threading.get_ident()
        failures.pop(thread, None)
        while len(failures) >= _MOST_FAILURES:
            failures.pop(next(iter(failures)), None)
        failures[thread] = [array.copy() for array in arrays] if is_small else None, step

    def error(self, status: int) -> BaseException:
        failures, thread = self._failures, threading.get_ident()
        if thread not in failures:  # the call was in a thread that Numba has started
            thread = next(reversed(failures), thread)
        failure = failures.pop(thread, None)
        if status != 1 or failure is None:
            kind, arguments = _ERRORS[status]
            return kind(*arguments)
        values, step = failure
        graph = self.maker.graph
        try:
            if values is not None:
                values = [v.type.filter(x) for v, x in zip(graph.inputs, values, strict=True)]
            explain_failure(graph, values, self.maker.program, step)
        except Exception as error:
            return error


#: status -> exception class and its arguments
_ERRORS: dict[int, tuple[type[Exception], tuple[str, ...]]] = {
    1: (RuntimeError, ("A step of a compiled function failed; its arguments are not known.",)),
    2: (MemoryError, ()),
    3: (OverflowError, ("an operand is too large for BLAS",)),
}


def _code(backend: BareGenerator[Any], maker: Maker) -> Any:
    """The code of the routine.  UnsupportedError if something in the Program needs Python."""

    def compile(to_store: bool) -> Any:
        program = maker.program_for_code()
        found = python_step(program)
        if found is not None:
            raise _needs_python(found)
        return backend.compile_bare(program, to_store)

    return code_of(backend, maker, "b", compile)


def _needs_python(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} needs Python, and a function that Numba code calls must run without it. Compile "
        'the function in mode "NUMBA", where Numba code calls Python for such ops.'
    )


def _array(v: Variable) -> tuple[str, int]:
    """dtype and rank of a variable whose values are arrays; UnsupportedError for others."""
    known = array_type(v.type)
    if known is None:
        raise _needs_python(f"{v} (type {v.type})")
    dtype, shape = known
    return dtype, len(shape)


def _array_at(words: Iterator[int], dtype: str, rank: int) -> np.ndarray:
    """An array in memory that words at these addresses describe: its address, its lengths."""
    address, *shape = (ctypes.c_int64.from_address(next(words)).value for _ in range(1 + rank))
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, (ctypes.c_char * size).from_address(address))
