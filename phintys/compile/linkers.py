"""Further linkers, under the names of PyTensor: for authors of backends and of debugging tools.

>>> import phintys, phintys.tensor as pt
>>> def report(fgraph, i, node, thunk):
...     print(i, node.op)
...     thunk()
>>> x = pt.dvector("x")
>>> linker = WrapLinker([PerformLinker()], report)
>>> phintys.function([x], pt.exp(x).sum(), mode=phintys.Mode(linker))([0.0, 0.0])
0 Exp
1 Sum{axes=None}
array(2.)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.compile.debug.hooks import WatchedRunner
from phintys.compile.linker import (
    CLinker,
    Linker,
    LocalLinker,
    NodewiseLinker,
    PerformLinker,
    containers_of,
    run_in_cells,
)
from phintys.compile.nodes import CompiledNodes
from phintys.compile.thunks import Cell, StorageMap, Thunk, map_storage
from phintys.graph.ignored import ignores
from phintys.graph.results import array_type
from phintys.graph.variable import Apply, Variable

__all__ = [
    "DualLinker",
    "JITLinker",
    "LocalLinker",
    "OpWiseCLinker",
    "PerformLinker",
    "VMLinker",
    "WrapLinker",
    "WrapLinkerMany",
]


class OpWiseCLinker(NodewiseLinker):
    """Computes each node by C code of its own, or by ``perform`` if its op has none.

    Parameters
    ----------
    fallback_on_perform
        False: CompilerError for an op that cannot be compiled
    allow_gc, schedule
        see `Linker`
    nice_errors
        ignored
    """

    required_rewrites = CLinker.required_rewrites

    @ignores("nice_errors")
    def __init__(
        self,
        fallback_on_perform: bool = True,
        allow_gc: bool | None = None,
        nice_errors: bool = True,
        schedule: Any = None,
    ) -> None:
        super().__init__(allow_gc, schedule)
        self.compiled = CompiledNodes(CLinker(), fallback_on_perform)

    def compute(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        return self.compiled.run(node, inputs)


def _same(x: Cell, y: Cell) -> None:
    """The default checker of `DualLinker`: AssertionError if two cells hold different values."""
    np.testing.assert_allclose(x[0], y[0], rtol=1e-5, atol=1e-8)


class DualLinker(NodewiseLinker):
    """Computes each node by ``perform`` and by C code, and compares the results.

    ``checker(x, y)`` gets two cells, lists of length 1, with a result each; the default raises
    AssertionError if they differ by more than rounding.
    """

    required_rewrites = CLinker.required_rewrites

    def __init__(self, checker: Callable[[Cell, Cell], Any] = _same, schedule: Any = None) -> None:
        super().__init__(None, schedule)
        self.checker = checker
        self.compiled = CompiledNodes(CLinker())

    def compute(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        results = super().compute(node, inputs)
        others = self.compiled.run(node, [copy.deepcopy(x) for x in inputs])
        for v, x, y in zip(node.outputs, results, others):
            if array_type(v.type) is not None:
                self.checker([x], [y])
        return results


class WrapLinker(Linker):
    """Runs the thunks of several linkers side by side, through a function.

    Parameters
    ----------
    linkers
        linkers with `LocalLinker.make_all`, whose orders of nodes must be the same
    wrapper
        ``wrapper(fgraph, i, node, *thunks)`` gets the thunks of one node, one of each linker, and
        must call them.  Results are those of the first linker.
    """

    name = "py"

    def __init__(self, linkers: Sequence[LocalLinker], wrapper: Callable[..., Any]) -> None:
        super().__init__()
        self.linkers, self.wrapper = list(linkers), wrapper

    def pre(
        self, f: WrapLinker, inputs: Sequence[Any], order: Sequence[Apply], thunk_groups: Any
    ) -> None:
        """Called before each call of a function; for subclasses."""

    def run(self, fgraph: Any) -> Callable[[Sequence[Any]], list[Any]]:
        made = [linker.accept(fgraph).make_all() for linker in self.linkers]
        order = made[0][4]
        if any(other[4] != order for other in made):
            raise ValueError("The linkers of a WrapLinker must run the nodes in the same order.")
        groups = list(zip(*[thunks for _, _, _, thunks, _ in made]))

        _, inputs, outputs, _, _ = made[0]

        def thunk() -> None:
            values = [container.storage[0] for container in inputs]
            for _, others, _, _, _ in made[1:]:
                for container, value in zip(others, values):
                    container.storage[0] = copy.deepcopy(value)
            self.pre(self, values, order, groups)
            for i, (node, thunks) in enumerate(zip(order, groups)):
                self.wrapper(fgraph, i, node, *thunks)

        return run_in_cells(thunk, inputs, outputs)


def WrapLinkerMany(
    linkers: Sequence[LocalLinker], wrappers: Sequence[Callable[..., Any]]
) -> WrapLinker:
    """A `WrapLinker` that calls several functions for each node, one after the other."""

    def wrapper(*args: Any) -> None:
        for w in wrappers:
            w(*args)

    return WrapLinker(linkers, wrapper)


class VMLinker(NodewiseLinker):
    """Runs a graph node by node, lazily where an op is, and calls a function after each node.

    Parameters
    ----------
    allow_gc, schedule
        see `Linker`
    callback
        ``callback(node=, thunk=, storage_map=, compute_map=)`` is called after each node; the maps
        have the cells of its variables
    callback_input
        ``callback_input(variable, value)`` is called for each input before a call
    use_cloop, lazy, c_thunks, allow_partial_eval
        accepted for compatibility; with ``c_thunks`` nodes run C code of their own
    """

    @ignores("use_cloop", "allow_partial_eval")
    def __init__(
        self,
        allow_gc: bool | None = None,
        use_cloop: bool = False,
        callback: Callable[..., Any] | None = None,
        callback_input: Callable[[Variable, Any], Any] | None = None,
        lazy: bool | None = None,
        schedule: Any = None,
        c_thunks: bool | None = None,
        allow_partial_eval: bool | None = None,
    ) -> None:
        super().__init__(allow_gc, schedule)
        self.callback, self.callback_input, self.lazy = callback, callback_input, lazy
        self.compiled = CompiledNodes(CLinker()) if c_thunks else None

    def compute(self, node: Apply, inputs: Sequence[Any]) -> list[Any]:
        run = super().compute if self.compiled is None else self.compiled.run
        if self.callback is None:
            return run(node, inputs)
        thunk = Thunk(node, [[x] for x in inputs], compute=run)
        thunk()
        cells = dict(zip((*node.inputs, *node.outputs), (*thunk.inputs, *thunk.outputs)))
        computed = {v: [True] for v in cells}
        self.callback(node=node, thunk=thunk, storage_map=cells, compute_map=computed)
        return thunk.results

    def run(self, fgraph: Any) -> Callable[[Sequence[Any]], list[Any]]:
        if self.callback_input is None or self.scheduler is not None:
            return super().run(fgraph)
        return WatchedRunner(fgraph, self.compute, self.callback_input)


class JITLinker(Linker):
    """The base of backends that turn a graph into one function and compile that.

    Subclasses define `fgraph_convert` and `jit_compile`; they may override the other methods.

    >>> from phintys.backends.source import fgraph_to_python
    >>> import numpy as np, phintys, phintys.tensor as pt
    >>> class Eager(JITLinker):
    ...     name = "eager"
    ...
    ...     def fgraph_convert(self, fgraph, **kwargs):
    ...         return fgraph_to_python(fgraph, lambda op, **kw: {"Exp": np.exp}[str(op)])
    ...
    ...     def jit_compile(self, fn):
    ...         return fn
    >>> x = pt.dvector("x")
    >>> phintys.function([x], pt.exp(x), mode=phintys.Mode(Eager(), "fast_run"))([0.0])
    array([1.])
    """

    def __init__(self, allow_gc: bool | None = None, schedule: Any = None) -> None:
        super().__init__(allow_gc, schedule)

    def fgraph_convert(
        self,
        fgraph: Any,
        order: Sequence[Apply] = (),
        input_storage: Sequence[Cell] = (),
        output_storage: Sequence[Cell] = (),
        storage_map: StorageMap | None = None,
        **kwargs: Any,
    ) -> Callable[..., Any]:
        """A function from the values of the inputs to a sequence of those of the outputs."""
        raise TypeError(f"{type(self).__name__} does not define fgraph_convert.")

    def jit_compile(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The compiled form of what `fgraph_convert` returns."""
        raise TypeError(f"{type(self).__name__} does not define jit_compile.")

    def create_thunk_inputs(self, storage_map: StorageMap) -> list[Cell]:
        """The cells whose contents the function gets: those of the inputs, or others."""
        return [storage_map[v] for v in self.fgraph.inputs]

    def input_filter(self, inp: Any) -> Any:
        """The value of an input as the compiled function takes it."""
        return inp

    def output_filter(self, var: Variable, out: Any) -> Any:
        """The value of an output, from what the compiled function returns."""
        return out

    def make_thunk(
        self,
        input_storage: Sequence[Cell] | None = None,
        output_storage: Sequence[Cell] | None = None,
        storage_map: StorageMap | None = None,
    ) -> Any:
        return self.make_all(input_storage, output_storage, storage_map)[:3]

    def make_all(
        self,
        input_storage: Sequence[Cell] | None = None,
        output_storage: Sequence[Cell] | None = None,
        storage_map: StorageMap | None = None,
    ) -> Any:
        """As `LocalLinker.make_all`, with one thunk for the whole graph."""
        fgraph, order = self.fgraph, self.schedule(self.fgraph)
        ins, outs, cells = map_storage(fgraph, order, input_storage, output_storage, storage_map)
        converted = self.fgraph_convert(
            fgraph, order=order, input_storage=ins, output_storage=outs, storage_map=cells
        )
        compiled = self.jit_compile(converted)
        given = self.create_thunk_inputs(cells)

        def thunk() -> None:
            results = compiled(*[self.input_filter(cell[0]) for cell in given])
            for v, cell, value in zip(fgraph.outputs, outs, results, strict=True):
                cell[0] = self.output_filter(v, value)

        return thunk, *containers_of(fgraph, ins, outs), [thunk], order

    def run(self, fgraph: Any) -> Callable[[Sequence[Any]], list[Any]]:
        return run_in_cells(*self.accept(fgraph).make_thunk())
