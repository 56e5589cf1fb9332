"""Thunks: functions without arguments that compute between storage cells, lists of length 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from phintys.graph.perform import run_node
from phintys.graph.variable import Apply, Constant, Variable

Cell = list[Any]
#: variable -> its cell
StorageMap = dict[Variable, Cell]
#: a function that computes the results of a node from the values of its inputs
ComputeNode = Callable[[Apply, Sequence[Any]], list[Any]]


class Thunk:
    """The computation of one node: a call reads the cells ``inputs`` and sets ``outputs``."""

    def __init__(
        self,
        node: Apply,
        inputs: Sequence[Cell],
        outputs: Sequence[Cell] | None = None,
        compute: ComputeNode = run_node,
    ) -> None:
        self.node, self.compute = node, compute
        self.inputs: list[Cell] = list(inputs)
        self.outputs: list[Cell] = [[None] for _ in node.outputs]
        if outputs is not None:
            self.outputs = list(outputs)

    def __call__(self) -> None:
        results = self.compute(self.node, [cell[0] for cell in self.inputs])
        for cell, value in zip(self.outputs, results):
            cell[0] = value

    @property
    def results(self) -> list[Any]:
        """The contents of ``outputs``."""
        return [cell[0] for cell in self.outputs]


def map_storage(
    fgraph: Any,
    order: Iterable[Apply],
    input_storage: Sequence[Cell] | None = None,
    output_storage: Sequence[Cell] | None = None,
    storage_map: StorageMap | None = None,
) -> tuple[list[Cell], list[Cell], StorageMap]:
    """Cells for the inputs, the outputs and all variables of the nodes ``order``.

    Those that are given are used; those of constants hold their values.

    >>> import phintys.tensor as pt
    >>> from phintys.graph.fgraph import FunctionGraph
    >>> x = pt.dvector("x")
    >>> fgraph = FunctionGraph([x], [x + 1], clone=False)
    >>> ins, outs, cells = map_storage(fgraph, fgraph.toposort(), input_storage=[[3.0]])
    >>> ins, outs, len(cells)
    ([[3.0]], [[None]], 3)
    """
    cells: StorageMap = {} if storage_map is None else storage_map
    for variables, given in ((fgraph.inputs, input_storage), (fgraph.outputs, output_storage)):
        for v, cell in zip(variables, given or ()):
            cells.setdefault(v, cell)
    used = [v for node in order for v in (*node.inputs, *node.outputs)]
    for v in (*fgraph.inputs, *used, *fgraph.outputs):
        if v not in cells:
            cells[v] = [v.data if isinstance(v, Constant) else None]
    ins = [cells[v] for v in fgraph.inputs]
    outs = [cells[v] for v in fgraph.outputs]
    return ins, outs, cells
