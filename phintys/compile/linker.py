"""Linkers: a linker makes a callable from a rewritten FunctionGraph; there is one per backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phintys.errors import did_you_mean

Run = Callable[[Sequence[Any]], list[Any]]


class Linker:
    """A backend, as modes refer to it.

    ``required_rewrites`` and ``incompatible_rewrites`` are tags that `Mode` adds to its selection
    of rewrites, to include and to exclude.  Backends outside of this package override `run`.
    """

    name = ""
    required_rewrites: tuple[str, ...] = ("minimum_compile",)
    incompatible_rewrites: tuple[str, ...] = ()
    #: whether ``native.make_native`` makes the function object; `run` is not used then
    is_native = False

    def run(self, fgraph: Any) -> Run:
        """A callable from a list of input values to a list of output values.

        The values are those of the inputs and outputs of ``fgraph``, in order, shared variables
        and updates included.
        """
        raise TypeError(f"{type(self).__name__} does not run FunctionGraphs.")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PerformLinker(Linker):
    """The reference: calls ``perform`` of every node."""

    name = "py"

    def run(self, fgraph: Any) -> Run:
        from phintys.backends.numpy.run import Runner

        return Runner(fgraph)


class LLVMLinker(Linker):
    """Machine code by LLVM, one routine per function."""

    name = "llvm"
    is_native = True


class CLinker(Linker):
    """C99, compiled by the system's C compiler."""

    name = "c"

    def run(self, fgraph: Any) -> Run:
        from phintys.backends.c import compile_program
        from phintys.compile.failure import explain_failure
        from phintys.lowering.from_graph import lower_graph

        program = lower_graph(fgraph)
        return compile_program(
            program, lambda values, step: explain_failure(fgraph, values, program, step)
        )


class NumbaLinker(Linker):
    """Each op as a Numba function (`numba_funcify`), compiled by Numba."""

    name = "numba"
    required_rewrites = ("minimum_compile", "numba")
    incompatible_rewrites = ("inplace", "BlasOpt")

    def run(self, fgraph: Any) -> Run:
        from phintys.backends.numba import compile_fgraph

        return compile_fgraph(fgraph)


class JAXLinker(Linker):
    """Each op as a JAX function (`jax_funcify`), compiled by XLA."""

    name = "jax"
    required_rewrites = ("minimum_compile", "jax")
    incompatible_rewrites = ("inplace", "BlasOpt", "cxx_only")

    def run(self, fgraph: Any) -> Run:
        from phintys.backends.jax import compile_fgraph

        return compile_fgraph(fgraph)


LINKERS: dict[str, Linker] = {
    linker.name: linker
    for linker in (LLVMLinker(), PerformLinker(), CLinker(), NumbaLinker(), JAXLinker())
}
# names of Aesara and PyTensor
LINKERS |= {
    "auto": LINKERS["llvm"],
    "cvm": LINKERS["llvm"],
    "vm": LINKERS["llvm"],
    "c|py": LINKERS["llvm"],
    "numpy": LINKERS["py"],
}


def register_linker(name: str, linker: Linker) -> None:
    """Add a named linker for `Mode`.  Raises ValueError if the name is taken."""
    if name in LINKERS:
        raise ValueError(f"There is a linker called {name!r} already.")
    LINKERS[name] = linker


def get_linker(linker: Any) -> Linker:
    """The linker of a name; a `Linker` is returned as it is.

    Raises ValueError if there is no linker of that name.
    """
    if isinstance(linker, Linker):
        return linker
    found = LINKERS.get(linker)
    if found is None:
        raise ValueError(f"There is no linker {linker!r}.{did_you_mean(str(linker), LINKERS)}")
    return found
