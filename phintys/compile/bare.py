"""Compiled functions as routines that are called by address, without Python objects and the GIL."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from phintys.compile.failure import explain_failure
from phintys.compile.native import code_of
from phintys.errors import MissingAttributeError
from phintys.graph.results import array_type
from phintys.lowering.program import python_step

if TYPE_CHECKING:
    from phintys.backends.protocol import Bare, BareGenerator
    from phintys.compile.callable import Maker
    from phintys.graph.variable import Variable

#: So many failures of a function are kept until their exceptions are asked for, and so many bytes
#: of arguments, of all failures together.
_MOST_FAILURES, _MOST_BYTES = 16, 2**24


@dataclass(slots=True)
class _Failure:
    """The failed step of a call, with copies of the arguments if they are kept."""

    values: list[np.ndarray] | None
    step: int

    @property
    def size(self) -> int:
        return sum(value.nbytes for value in self.values or ())


class _Failures:
    """The last failed calls of several threads.

    Threads may use it at the same time: it loops over copies of the dict, which are made at once.
    """

    def __init__(self) -> None:
        self._of_threads: dict[int, _Failure] = {}

    def keep(self, values: list[np.ndarray], step: int) -> None:
        """Keep the failure of a call of this thread, in the place of an older one."""
        kept, thread = self._of_threads, threading.get_ident()
        kept.pop(thread, None)
        for oldest in list(kept)[: max(0, len(kept) + 1 - _MOST_FAILURES)]:
            kept.pop(oldest, None)
        room = _MOST_BYTES - sum(value.nbytes for value in values)
        self._shrink(max(0, room))
        kept[thread] = _Failure([v.copy() for v in values] if room >= 0 else None, step)

    def _shrink(self, room: int) -> None:
        """Drop arguments, those of the oldest failures first, until they take at most so much."""
        failures = list(self._of_threads.values())
        size = sum(failure.size for failure in failures)
        for failure in failures:
            if size <= room:
                return
            size -= failure.size
            failure.values = None

    def take(self) -> _Failure | None:
        """The failure of a call of this thread, which is kept no longer; None if it is not known.

        A call of Numba code may have been in a thread that Numba has started.  If a single failure
        is of a thread that Python does not know, it is that one.
        """
        kept, thread = self._of_threads, threading.get_ident()
        if thread not in kept:
            known = {other.ident for other in threading.enumerate()}
            foreign = [other for other in list(kept) if other not in known]
            thread = foreign[0] if len(foreign) == 1 else thread
        return kept.pop(thread, None)


class BareRoutine:
    """The routine of a function; it obeys `phintys.backends.protocol.BareFunction`.

    Raises MissingAttributeError, which names the op or the value, if one needs Python.
    """

    def __init__(self, backend: BareGenerator[Any], maker: Maker) -> None:
        self.maker = maker
        inputs = maker.spec.held.inputs
        updated = [inputs[position] for position in maker.update_targets]
        self.inputs = [(*_array(v), v.name or f"input {i}") for i, v in enumerate(inputs)]
        self.outputs = [_array(v) for v in [*(o.variable for o in maker.outputs), *updated]]
        self._failures = _Failures()
        self.routine: Bare = backend.bind_bare(_code(backend, maker), self._note)

    def _note(self, inputs: int, step: int) -> None:
        """Keep copies of the arguments of a failed call, for `error`."""
        words = iter(range(inputs, 2**63, 8))
        arrays = [_array_at(words, dtype, rank) for dtype, rank, _ in self.inputs]
        self._failures.keep(arrays, step)

    def error(self, status: int) -> BaseException:
        failure = self._failures.take() if status == 1 else None
        if failure is None:
            kind, arguments = _ERRORS[status]
            return kind(*arguments)
        graph, values = self.maker.graph, failure.values
        try:
            if values is not None:
                values = [v.type.filter(x) for v, x in zip(graph.inputs, values, strict=True)]
            explain_failure(graph, values, self.maker.program, failure.step)
        except Exception as error:
            return error


#: status -> exception class and its arguments
_ERRORS: dict[int, tuple[type[Exception], tuple[str, ...]]] = {
    1: (RuntimeError, ("A step of a compiled function failed; its arguments are not known.",)),
    2: (MemoryError, ()),
    3: (OverflowError, ("an operand is too large for BLAS",)),
}


def _code(backend: BareGenerator[Any], maker: Maker) -> Any:
    """The code of the routine.  MissingAttributeError if something in the Program needs Python."""

    def generate(to_store: bool) -> Any:
        program = maker.program_for_code()
        found = python_step(program)
        if found is not None:
            raise _needs_python(found)
        return backend.compile_bare(program, to_store)

    return code_of(backend, maker, "b", generate)


def _needs_python(what: str) -> MissingAttributeError:
    return MissingAttributeError(
        f"{what} needs Python, and a function that Numba code calls must run without it. Compile "
        'the function in mode "NUMBA", where Numba code calls Python for such ops.'
    )


def _array(v: Variable) -> tuple[str, int]:
    """dtype and rank of a variable whose values are arrays; MissingAttributeError for others."""
    known = array_type(v.type)
    if known is None:
        raise _needs_python(f"{v} (type {v.type})")
    dtype, shape = known
    return dtype, len(shape)


def _array_at(words: Iterator[int], dtype: str, rank: int) -> np.ndarray:
    """An array in memory that words at these addresses describe: its address, its lengths."""
    address, *shape = (ctypes.c_int64.from_address(next(words)).value for _ in range(1 + rank))
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, memoryview((ctypes.c_char * size).from_address(address)))
