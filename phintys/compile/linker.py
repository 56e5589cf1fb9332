"""Linkers: a linker makes functions by a backend; there is one per backend.

The linkers are where modes refer to backends, and where backends are imported, at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from phintys.compile.callable import Function, Maker
from phintys.errors import did_you_mean
from phintys.graph.shared import Container

if TYPE_CHECKING:
    from phintys.backends.protocol import Generator, Run, Transpiler


class Linker:
    """A backend, as modes refer to it.

    ``required_rewrites`` and ``incompatible_rewrites`` are tags that `Mode` adds to its selection
    of rewrites, to include and to exclude.  Backends outside of this package override `run`.
    """

    name = ""
    required_rewrites: tuple[str, ...] = ("minimum_compile",)
    incompatible_rewrites: tuple[str, ...] = ()

    def make(self, maker: Maker, containers: list[Container]) -> Function:
        """A function; ``containers`` hold the values of its shared variables."""
        return Function(maker, containers, self.run(maker.fgraph))

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


class GeneratorLinker(Linker):
    """The linker of a backend that compiles Programs; subclasses define ``backend``."""

    required_rewrites = ("minimum_compile", "inline_inner_graphs")

    @property
    def backend(self) -> Generator[Any]:
        """The backend, which is imported now."""
        raise TypeError(f"{type(self).__name__} does not say what its backend is.")

    def make(self, maker: Maker, containers: list[Container]) -> Function:
        from phintys.compile.native import make_native

        return make_native(self.backend, maker, containers)


class TranspilerLinker(Linker):
    """The linker of a backend that compiles rewritten graphs; subclasses define ``backend``."""

    @property
    def backend(self) -> Transpiler:
        """The backend, which is imported now."""
        raise TypeError(f"{type(self).__name__} does not say what its backend is.")

    def run(self, fgraph: Any) -> Run:
        return self.backend.compile(fgraph)


class PerformLinker(TranspilerLinker):
    """The reference: calls ``perform`` of every node."""

    name = "py"

    @property
    def backend(self) -> Transpiler:
        from phintys.backends.numpy.run import backend

        return backend


class LLVMLinker(GeneratorLinker):
    """Machine code by LLVM, one routine per function."""

    name = "llvm"

    @property
    def backend(self) -> Generator[Any]:
        from phintys.backends.llvm import backend

        return backend


class CLinker(GeneratorLinker):
    """C99, compiled by the system's C compiler."""

    name = "c"

    @property
    def backend(self) -> Generator[Any]:
        from phintys.backends.c import backend

        return backend


class NumbaLinker(TranspilerLinker):
    """Each op as a Numba function (`numba_funcify`), compiled by Numba."""

    name = "numba"
    required_rewrites = ("minimum_compile", "inline_inner_graphs", "numba")
    incompatible_rewrites = ("inplace", "BlasOpt")

    @property
    def backend(self) -> Transpiler:
        from phintys.backends.numba import backend

        return backend


class JAXLinker(TranspilerLinker):
    """Each op as a JAX function (`jax_funcify`), compiled by XLA."""

    name = "jax"
    required_rewrites = ("minimum_compile", "inline_inner_graphs", "jax")
    incompatible_rewrites = ("inplace", "BlasOpt", "cxx_only")

    @property
    def backend(self) -> Transpiler:
        from phintys.backends.jax import backend

        return backend


_OWN: dict[str, Linker] = {
    linker.name: linker
    for linker in (LLVMLinker(), PerformLinker(), CLinker(), NumbaLinker(), JAXLinker())
}
#: other names, of Aesara and PyTensor
_OTHERS = {"auto": "llvm", "cvm": "llvm", "vm": "llvm", "c|py": "llvm", "numpy": "py"}
LINKERS = _OWN | {other: _OWN[name] for other, name in _OTHERS.items()}


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
