"""Linkers: how a rewritten FunctionGraph becomes something that runs, by backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phintys.errors import did_you_mean

Run = Callable[[Sequence[Any]], list[Any]]


class Linker:
    """One backend, as modes know it.

    ``required_rewrites`` and ``incompatible_rewrites`` are tags merged into any query the linker is
    used with.
    """

    name = ""
    required_rewrites: tuple[str, ...] = ("minimum_compile",)
    incompatible_rewrites: tuple[str, ...] = ()
    #: whether `native` gives a function object instead of `run` a Python callable
    is_native = False

    def run(self, fgraph: Any) -> Run:
        """A callable from a list of input values to a list of output values."""
        raise TypeError(f"{type(self).__name__} does not run FunctionGraphs.")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PerformLinker(Linker):
    """Every node through its ``perform``: the reference."""

    name = "py"

    def run(self, fgraph: Any) -> Run:
        from phintys.backends.numpy.run import Runner

        return Runner(fgraph)


class LLVMLinker(Linker):
    """Native code through LLVM, one routine per function."""

    name = "llvm"
    is_native = True


class CLinker(Linker):
    """C99 through the system's compiler."""

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
    """Each op as a Numba function (`numba_funcify`)."""

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
# names that programs written for the older systems use
LINKERS |= {
    "auto": LINKERS["llvm"],
    "cvm": LINKERS["llvm"],
    "vm": LINKERS["llvm"],
    "c|py": LINKERS["llvm"],
    "numpy": LINKERS["py"],
}


def register_linker(name: str, linker: Linker) -> None:
    """Make a linker known by name; ValueError if the name is taken."""
    if name in LINKERS:
        raise ValueError(f"There is a linker called {name!r} already.")
    LINKERS[name] = linker


def get_linker(linker: Any) -> Linker:
    """A linker from its name (or itself)."""
    if isinstance(linker, Linker):
        return linker
    found = LINKERS.get(linker)
    if found is None:
        raise ValueError(f"There is no linker {linker!r}.{did_you_mean(str(linker), LINKERS)}")
    return found
