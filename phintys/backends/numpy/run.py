"""Runs a FunctionGraph by calling ``perform`` of every node.

Other backends are tested against this one.  It runs mode FAST_COMPILE, and it makes the message of
a check that failed on another backend: `find_error` computes the graph again, without ops of users,
and the node that raises gives the message and the line of the user's program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phintys.backends.protocol import Transpiler
from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.origin import annotate
from phintys.graph.perform import run_node
from phintys.graph.variable import Apply, Constant, Variable

RunNode = Callable[[Apply, Sequence[Any]], list[Any]]
Step = tuple[RunNode, Apply, list[int], list[int]]


class Runner:
    """A callable from a list of input values to a list of output values.

    Values are kept in a flat list of cells; a cell is cleared after its last use.  ``run`` computes
    one node.
    """

    def __init__(self, fgraph: Any, run: RunNode = run_node) -> None:
        order = fgraph.toposort()
        self.position: dict[Variable, int] = {}
        self.constants: list[tuple[int, Any]] = []
        for v in fgraph.inputs:
            self._cell(v)
        self.n_inputs = len(self.position)
        self.steps: list[Step] = []
        last_use: dict[int, int] = {}
        for k, node in enumerate(order):
            inputs = [self._cell(v) for v in node.inputs]
            outputs = [self._cell(v) for v in node.outputs]
            self.steps.append((run, node, inputs, outputs))
            last_use.update((i, k) for i in inputs + outputs)
            node.op.prepare_node(node, None, None, "py")
        self.outputs = [self._cell(v) for v in fgraph.outputs]
        keep = {*self.outputs, *(i for i, _ in self.constants), *range(self.n_inputs)}
        self.dead: list[list[int]] = [[] for _ in order]
        for i, k in last_use.items():
            if i not in keep:
                self.dead[k].append(i)
        self.size = len(self.position)

    def _cell(self, v: Variable) -> int:
        """The number of the cell of a variable; a new cell at its first use."""
        found = self.position.get(v)
        if found is None:
            found = self.position[v] = len(self.position)
            if isinstance(v, Constant):
                self.constants.append((found, v.data))
        return found

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        cells: list[Any] = [None] * self.size
        cells[: self.n_inputs] = values
        for i, data in self.constants:
            cells[i] = data
        for (run, node, inputs, outputs), dead in zip(self.steps, self.dead):
            given = [cells[i] for i in inputs]
            try:
                results = run(node, given)
            except Exception as exc:
                annotate(exc, node, given)
                raise
            for i, value in zip(outputs, results):
                cells[i] = value
            for i in dead:
                cells[i] = None
        return [cells[i] for i in self.outputs]


class NumPy:
    """The object that obeys `Transpiler`."""

    def compile(self, fgraph: Any) -> Runner:
        return Runner(fgraph)


backend: Transpiler = NumPy()


# ------------------------------------------------------------------------- failed checks


def find_error(fgraph: Any, values: Sequence[Any]) -> Exception | None:
    """The exception that the graph raises on these values in this backend; None if there is none.

    Ops of users, and nodes that depend on their results, are not run: the call that failed has run
    them already, and they may have side effects.
    """
    try:
        Runner(fgraph, _run_own)(values)
    except Exception as exc:
        return exc
    return None


_UNKNOWN = object()


def _run_own(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    """The results of a node; unknown ones for ops of users and what depends on those."""
    if not is_own(node.op) or any(x is _UNKNOWN for x in inputs):
        return [_UNKNOWN] * len(node.outputs)
    return run_node(node, inputs)


def is_own(op: Any) -> bool:
    """Whether an op, and the ops that it contains, are defined in this package."""
    ops = [op]
    for o in ops:  # grows
        if not type(o).__module__.startswith("phintys."):
            return False
        ops += [getattr(o, name) for name in ("core_op", "scalar_op") if hasattr(o, name)]
        if isinstance(o, HasMultipleInnerGraph):
            ops += [node.op for g in o.inner_graphs.values() for node in g.toposort()]
    return True
