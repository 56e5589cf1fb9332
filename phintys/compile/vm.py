"""`VM`: a function as code that computes between storage cells, for programs that read those."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from phintys.graph.variable import Constant

if TYPE_CHECKING:
    from phintys.graph.variable import Apply, Variable


class VM:
    """A function that reads the values in its input cells and writes to its output cells: ``f.vm``.

    A cell is a list of length 1.  Calling the object runs the function on the values in
    ``f.input_storage``, without conversion, and stores the results in ``f.output_storage`` and the
    updates in the shared variables.

    Attributes
    ----------
    fgraph
        the rewritten graph
    nodes
        its nodes in the order of computation
    storage_map
        variable of ``fgraph`` -> cell.  The cells of inputs and outputs are those of the function,
        those of constants hold their values, and those of other variables are empty: a function
        keeps no intermediate results.
    compute_map
        variable of ``fgraph`` -> cell that says whether its value is known before a call
    jit_fn
        the Numba function (by default, and in mode NUMBA) or the JAX function (in mode JAX) of the
        values of all inputs of the graph, shared variables included, that returns a tuple of the
        values of all its outputs, updates included; AttributeError in other modes, and by default
        if Numba is not installed.  By default, and in mode NUMBA if nothing needs Python, it calls
        machine code, without Python and the GIL.  If something does, it is by default an error that
        is an UnsupportedError and an AttributeError, and in mode NUMBA a function that Numba
        compiles.

    ``function`` is the `Function`.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> f = phintys.function([x], x + 1)
    >>> f.input_storage[0].value = 2.0
    >>> f.vm()
    >>> f.output_storage[0].value
    array(3.)
    """

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def fgraph(self) -> Any:
        return self._function.maker.fgraph

    @cached_property
    def nodes(self) -> list[Apply]:
        return self.fgraph.toposort()

    @cached_property
    def storage_map(self) -> dict[Variable, list[Any]]:
        f = self._function
        cells = {v: c.storage for v, c in zip(self.fgraph.outputs, f.output_storage)}
        cells.update((v, c.storage) for v, c in zip(self.fgraph.inputs, f.input_storage))
        for node in self.nodes:
            for v in [*node.inputs, *node.outputs]:
                cells.setdefault(v, [v.data if isinstance(v, Constant) else None])
        return cells

    @cached_property
    def compute_map(self) -> dict[Variable, list[bool]]:
        return {v: [v.owner is None] for v in self.storage_map}

    @cached_property
    def jit_fn(self) -> Any:
        return self._function.maker.linker.jit_fn(self._function)

    def __call__(self) -> None:
        f = self._function
        n = len(f.maker.passed)
        answer = f.call_values([c.storage[0] for c in f.input_storage[:n]])
        results = [answer] if f.maker.unpack == "single" else answer
        for container, value in zip(f.output_storage, results, strict=True):
            container.storage[0] = value
