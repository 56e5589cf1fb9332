"""What a backend is: a `Generator` compiles Programs, a `Transpiler` compiles rewritten graphs.

Each backend has one object that obeys one of these protocols, called ``backend``.  The linkers in
``compile/linker.py`` refer to it; nothing else in ``compile/`` names a backend, but for the
reference, which explains failures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from phintys.graph.fgraph import FunctionGraph
    from phintys.lowering.program import Program

#: from the values of the inputs, shared variables included, to those of the outputs, updates
#: included
Run = Callable[[Sequence[Any]], list[Any]]


class Artifact(Protocol):
    """Compiled code of a Program, which functions are bound to.  Several may share it."""

    @property
    def size(self) -> int:
        """The bytes that the code and its constants take, as far as they are known."""
        ...


class FunctionObject(Protocol):
    """A function object, whose arguments Python converts and whose failures Python explains."""

    #: set by `Generator.bind` where the code is called through Python
    run: Run
    #: set by `Generator.bind`: what put the code into memory, for reports
    loader: str

    def call_converted(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """The result of a call whose arguments the code cannot take as they are."""
        ...

    def raise_failure(self, args: Sequence[Any], step: int) -> Any:
        """Raise the exception of a step of the Program that has failed."""
        ...


A = TypeVar("A", bound=Artifact)


class Generator(Protocol[A]):
    """A backend that makes code from Programs, and never sees an op."""

    def surroundings(self) -> str:
        """What the code depends on besides the Program and the settings, as part of cache keys."""
        ...

    def compile(self, program: Program, single: bool = False, to_store: bool = False) -> A:
        """The code of a Program that has a memory plan.

        Parameters
        ----------
        single
            a call returns the only result itself, instead of a list
        to_store
            the caller will store the code, by `dump`; else the backend may look for it, and store
            it, by its text
        """
        ...

    def dump(self, artifact: A) -> bytes | None:
        """The code as bytes, for `load` in any process; None if it is of use in this one only."""
        ...

    def load(self, payload: bytes, cells: int) -> A | None:
        """The code that `dump` gave; None if it cannot be used.

        ``cells`` is the number of shared variables of the function.
        """
        ...

    def function_class(self, methods: type) -> type:
        """The class of function objects: a subclass of ``methods``, or ``methods`` itself.

        Its instances obey `FunctionObject`.
        """
        ...

    def bind(
        self,
        artifact: A,
        into: FunctionObject,
        cells: Sequence[list[Any]],
        names: Sequence[str | None],
    ) -> None:
        """Make ``into``, an instance of a `function_class`, run the code.

        Parameters
        ----------
        cells
            for each shared variable a list of length 1 with its current value
        names
            of the arguments, for calls by name; empty if these go to ``into.call_converted``
        """
        ...


class Bare(NamedTuple):
    """A routine that runs without Python objects and without the GIL.

    ``address`` is that of a C function
    ``int64_t f(void *block, int64_t *inputs, int64_t *results)``, ``block`` its first argument.
    ``inputs`` has for each input of the graph, shared variables included, the address of
    C-contiguous, aligned memory, then the lengths.  ``results`` receives for each output, updates
    included, the memory to free, the address of the result in it, then the lengths.

    The function returns 0; 1 if a step has failed; 2 if there is not enough memory; 3 if an operand
    is too large for BLAS; -1 if a signal handler has set a Python exception.

    ``free`` is the address of the C function ``void free(void *memory)`` for results.
    The code lives as long as the object ``code``.
    """

    address: int
    block: int
    free: int
    code: object


class BareGenerator(Generator[A], Protocol[A]):
    """A generator that also makes routines for callers without Python."""

    def compile_bare(self, program: Program, to_store: bool = False) -> A:
        """The code of the bare routine of a Program in which nothing needs Python.

        ``to_store`` is that of `compile`.
        """
        ...

    def bind_bare(self, artifact: A, failed: Callable[[int, int], None]) -> Bare:
        """The routine.

        ``failed(inputs, step)`` is called, with the GIL, when a step has failed: with the address
        of ``inputs``, which are as the caller gave them.
        """
        ...


class BareFunction(Protocol):
    """A compiled function as a bare routine, with the types of what it takes and returns."""

    routine: Bare

    @property
    def inputs(self) -> Sequence[tuple[str, int, str]]:
        """dtype and rank of each input, and its name in messages."""
        ...

    @property
    def outputs(self) -> Sequence[tuple[str, int]]:
        """dtype and rank of each output."""
        ...

    def error(self, status: int) -> BaseException:
        """The exception of a call of this thread that has returned a status that is not 0."""
        ...


class Transpiler(Protocol):
    """A backend that makes a callable from a rewritten graph, op by op."""

    def compile(self, fgraph: FunctionGraph) -> Run:
        """The callable of a graph."""
        ...
