"""Linkers: a linker makes functions by a backend; there is one per backend.

The linkers are where modes refer to backends, and where backends are imported, at first use.
"""

from __future__ import annotations

import copy
import threading
from abc import ABCMeta
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from phintys.compile.callable import Function, Maker
from phintys.compile.thunks import Cell, StorageMap, Thunk, map_storage
from phintys.errors import (
    CompilerError,
    MissingAttributeError,
    UnsupportedError,
    did_you_mean,
)
from phintys.graph.origin import annotate
from phintys.graph.perform import Runner, run_node
from phintys.graph.replace import graph_replace
from phintys.graph.shared import Container
from phintys.graph.variable import Apply, late_bound

if TYPE_CHECKING:
    from phintys.backends.protocol import Generator, Run, Transpiler


class Linker:
    """A backend, as modes refer to it.

    ``required_rewrites`` and ``incompatible_rewrites`` are tags that `Mode` adds to its selection
    of rewrites, to include and to exclude.  Backends outside of this package override `run`.

    Linkers can be used on their own: ``linker.accept(fgraph).make_thunk()``.

    Parameters
    ----------
    allow_gc
        of linkers that work node by node: whether results that are not needed any more are dropped
    scheduler
        of linkers that work node by node: a function from a graph to its nodes in the order of
        execution
    """

    name = ""
    required_rewrites: tuple[str, ...] = ("minimum_compile",)
    incompatible_rewrites: tuple[str, ...] = ()
    allow_gc: bool | None = None
    scheduler: Callable[[Any], Sequence[Apply]] | None = None
    #: the graph that `accept` has been given
    fgraph: Any = None

    def __init__(
        self,
        allow_gc: bool | None = None,
        scheduler: Callable[[Any], Sequence[Apply]] | None = None,
    ) -> None:
        self.allow_gc, self.scheduler = allow_gc, scheduler

    def make(self, maker: Maker, containers: list[Container]) -> Function:
        """A function; ``containers`` hold the values of its shared variables."""
        return Function(maker, containers, self.run(maker.graph))

    def run(self, fgraph: Any) -> Run:
        """A callable from a list of input values to a list of output values.

        The values are those of the inputs and outputs of ``fgraph``, in order, shared variables
        and updates included.
        """
        raise TypeError(f"{type(self).__name__} does not run FunctionGraphs.")

    def jit_fn(self, f: Function) -> Any:
        """The framework's function for what ``f`` computes; see `VM`.

        AttributeError if there is none.
        """
        found = getattr(f.run, "jit_fn", None)
        if found is None:
            raise AttributeError(f"A function of linker {self.name!r} has no jit_fn.")
        return found

    # ----- on its own
    def clone(self, allow_gc: bool | None = None) -> Self:
        """A copy, with another ``allow_gc`` if that is given."""
        new = copy.copy(self)
        if allow_gc is not None:
            new.allow_gc = allow_gc
        return new

    def accept(self, fgraph: Any, no_recycling: Any = None, profile: Any = None) -> Self:
        """A copy for one graph; ``no_recycling`` and ``profile`` are ignored."""
        new = self.clone()
        new.fgraph = fgraph
        return new

    def schedule(self, fgraph: Any) -> list[Apply]:
        """The nodes of a graph in the order of execution."""
        return list(fgraph.toposort() if self.scheduler is None else self.scheduler(fgraph))

    def make_thunk(
        self,
        input_storage: Sequence[Cell] | None = None,
        output_storage: Sequence[Cell] | None = None,
        storage_map: StorageMap | None = None,
    ) -> tuple[Callable[[], None], list[Container], list[Container]]:
        """A function without arguments, and the containers of its inputs and outputs.

        The graph is that of `accept`.  Cells that are given become those of the containers.

        >>> import phintys.tensor as pt
        >>> from phintys.graph.fgraph import FunctionGraph
        >>> x = pt.dscalar("x")
        >>> linker = PerformLinker().accept(FunctionGraph([x], [x + 1]))
        >>> thunk, inputs, outputs = linker.make_thunk()
        >>> inputs[0].value = 2.0
        >>> thunk()
        >>> outputs[0].value
        array(3.)
        """
        ins, outs, _ = map_storage(self.fgraph, (), input_storage, output_storage, storage_map)
        run = self.run(self.fgraph)

        def thunk() -> None:
            for cell, value in zip(outs, run([cell[0] for cell in ins])):
                cell[0] = value

        return thunk, *containers_of(self.fgraph, ins, outs)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def containers_of(
    fgraph: Any, ins: Sequence[Cell], outs: Sequence[Cell]
) -> tuple[list[Container], list[Container]]:
    """The cells of the inputs and outputs of a graph in containers, which convert values."""
    inputs = [Container(v, cell) for v, cell in zip(fgraph.inputs, ins)]
    return inputs, [Container(v, cell, readonly=True) for v, cell in zip(fgraph.outputs, outs)]


def run_in_cells(
    thunk: Callable[[], None], inputs: Sequence[Container], outputs: Sequence[Container]
) -> Run:
    """The function of values that a thunk computes between cells; threads wait for each other."""
    lock = threading.RLock()

    def run(values: Sequence[Any]) -> list[Any]:
        with lock:
            for container, value in zip(inputs, values):
                container.storage[0] = value
            thunk()
            return [container.storage[0] for container in outputs]

    return run


class LocalLinker(Linker):
    """A linker whose subclasses define `make_all`, which makes one thunk per node."""

    def make_all(
        self,
        input_storage: Sequence[Cell] | None = None,
        output_storage: Sequence[Cell] | None = None,
        storage_map: StorageMap | None = None,
    ) -> tuple[Callable[[], None], list[Container], list[Container], list[Any], list[Apply]]:
        """What `make_thunk` returns, the thunks of the nodes, and the nodes in their order."""
        raise TypeError(f"{type(self).__name__} does not define make_all.")

    def make_thunk(
        self,
        input_storage: Sequence[Cell] | None = None,
        output_storage: Sequence[Cell] | None = None,
        storage_map: StorageMap | None = None,
    ) -> tuple[Callable[[], None], list[Container], list[Container]]:
        return self.make_all(input_storage, output_storage, storage_map)[:3]

    def run(self, fgraph: Any) -> Run:
        return run_in_cells(*self.accept(fgraph).make_thunk())


class NodewiseLinker(LocalLinker):
    """A linker that computes node by node; subclasses override `compute`."""

    name = "py"

    def compute(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        """The results of a node from the values of its inputs."""
        return run_node(node, inputs)

    def run(self, fgraph: Any) -> Run:
        if self.scheduler is not None or self.makes_thunks():
            return super().run(fgraph)
        return Runner(fgraph, self.compute)

    def makes_thunks(self) -> bool:
        """Whether a class of a user says how the thunks of a graph are made."""
        own, base = type(self), NodewiseLinker
        return (own.make_all, own.make_thunk) != (base.make_all, base.make_thunk)

    def make_all(
        self,
        input_storage: Sequence[Cell] | None = None,
        output_storage: Sequence[Cell] | None = None,
        storage_map: StorageMap | None = None,
    ) -> tuple[Callable[[], None], list[Container], list[Container], list[Any], list[Apply]]:
        fgraph, order = self.fgraph, self.schedule(self.fgraph)
        ins, outs, cells = map_storage(fgraph, order, input_storage, output_storage, storage_map)
        thunks = [
            Thunk(n, [cells[v] for v in n.inputs], [cells[v] for v in n.outputs], self.compute)
            for n in order
        ]

        def thunk() -> None:
            for step in thunks:
                try:
                    step()
                except Exception as exc:
                    annotate(exc, step.node, [cell[0] for cell in step.inputs])
                    raise

        return thunk, *containers_of(fgraph, ins, outs), list(thunks), order


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

    def run(self, fgraph: Any) -> Run:
        inputs = [v.type.make_variable() for v in fgraph.inputs]
        given = dict(zip(fgraph.inputs, inputs))
        outputs = graph_replace(fgraph.outputs, given, strict=False)
        f = late_bound["unrewritten"](self, inputs, outputs)
        return lambda values: f(*values)


class TranspilerLinker(Linker):
    """The linker of a backend that compiles rewritten graphs; subclasses define ``backend``."""

    @property
    def backend(self) -> Transpiler:
        """The backend, which is imported now."""
        raise TypeError(f"{type(self).__name__} does not say what its backend is.")

    def run(self, fgraph: Any) -> Run:
        return self.backend.compile(fgraph)


class PerformLinker(NodewiseLinker):
    """The reference: calls ``perform`` of every node."""

    def run(self, fgraph: Any) -> Run:
        from phintys.backends.numpy.run import backend

        is_plain = self.scheduler is None and not self.makes_thunks()
        return backend.compile(fgraph) if is_plain else super().run(fgraph)


class LLVMLinker(GeneratorLinker):
    """Machine code by LLVM, one routine per function."""

    name = "llvm"

    @property
    def backend(self) -> Generator[Any]:
        from phintys.backends.llvm import backend

        return backend

    def jit_fn(self, f: Function) -> Any:
        return _native_jit_fn(f.made_from)


class CLinker(GeneratorLinker):
    """C99, compiled by the system's C compiler."""

    name = "c"

    @property
    def backend(self) -> Generator[Any]:
        from phintys.backends.c import backend

        return backend


class NumbaLinker(TranspilerLinker, metaclass=ABCMeta):
    """Each op as a Numba function (`numba_funcify`), compiled by Numba.

    Where Numba is installed, an `LLVMLinker` counts as an instance too: programs ask for one to
    learn whether functions have a Numba function, ``f.vm.jit_fn``.

    >>> isinstance(LINKERS["numba"], NumbaLinker), isinstance(LINKERS["c"], NumbaLinker)
    (True, False)
    """

    name = "numba"
    required_rewrites = ("minimum_compile", "inline_inner_graphs", "numba")
    incompatible_rewrites = ("inplace", "BlasOpt")

    @property
    def backend(self) -> Transpiler:
        from phintys.backends.numba import backend

        return backend

    def jit_fn(self, f: Function) -> Any:
        """The native one; if something needs Python, the function that Numba compiles."""
        try:
            return _native_jit_fn(f.made_from.with_linker(LLVMLinker()))
        except UnsupportedError:
            return super().jit_fn(f)

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        is_native = cls is NumbaLinker and issubclass(other, LLVMLinker)
        return True if is_native and find_spec("numba") is not None else NotImplemented


class JAXLinker(TranspilerLinker):
    """Each op as a JAX function (`jax_funcify`), compiled by XLA."""

    name = "jax"
    required_rewrites = ("minimum_compile", "inline_inner_graphs", "jax")
    # accelerators compute float64 slowly, if at all
    incompatible_rewrites = ("inplace", "BlasOpt", "cxx_only", "wide_intermediates")

    @property
    def backend(self) -> Transpiler:
        from phintys.backends.jax import backend

        return backend


def _native_jit_fn(maker: Maker) -> Any:
    """A Numba function that calls the machine code of a function by its address.

    MissingAttributeError if something in the graph needs Python, or if Numba is not installed.
    """
    from phintys.backends.llvm import backend
    from phintys.compile.bare import BareRoutine

    try:
        from phintys.backends.numba.native import numba_function
    except CompilerError as exc:
        message = 'f.vm.jit_fn needs the package numba: pip install "phintys[numba]"'
        raise MissingAttributeError(message) from exc

    return numba_function(BareRoutine(backend, maker))


_OWN: dict[str, Linker] = {
    linker.name: linker
    for linker in (LLVMLinker(), PerformLinker(), CLinker(), NumbaLinker(), JAXLinker())
}
#: other names, of Aesara and PyTensor
_OTHERS = {"auto": "llvm", "numpy": "py"} | dict.fromkeys(
    ("cvm", "vm", "c|py", "cvm_nogc", "vm_nogc", "c|py_nogc"), "llvm"
)
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
