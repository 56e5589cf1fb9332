"""Running a FunctionGraph with ``perform``.

This is the reference that other backends are tested against, the answer of mode FAST_COMPILE, and
the one place where the message of a failed check is made: `find_error` computes the graph again,
without ops of users, and the node that raises says what went wrong and which line made it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.origin import annotate
from phintys.graph.perform import run_node
from phintys.graph.variable import Apply, Constant, Variable

RunNode = Callable[[Apply, Sequence[Any]], list[Any]]
Step = tuple[RunNode, Apply, list[int], list[int]]


class Runner:
    """A callable: list of input values -> list of output values.

    Values live in a flat list of cells; those that are not needed any more are dropped.  ``run``
    computes one node.
    """

    def __init__(self, fgraph: Any, run: RunNode = run_node) -> None:
        order = fgraph.toposort()
        self.position: dict[Variable, int] = {}
        self.constants: list[tuple[int, Any]] = []
        for v in fgraph.inputs:
            self._place(v)
        self.n_inputs = len(self.position)
        self.steps: list[Step] = []
        last_use: dict[int, int] = {}
        for k, node in enumerate(order):
            inputs = [self._place(v) for v in node.inputs]
            outputs = [self._place(v) for v in node.outputs]
            self.steps.append((run, node, inputs, outputs))
            last_use.update((i, k) for i in inputs + outputs)
            node.op.prepare_node(node, None, None, "py")
        self.outputs = [self._place(v) for v in fgraph.outputs]
        keep = {*self.outputs, *(i for i, _ in self.constants), *range(self.n_inputs)}
        self.dead: list[list[int]] = [[] for _ in order]
        for i, k in last_use.items():
            if i not in keep:
                self.dead[k].append(i)
        self.size = len(self.position)

    def _place(self, v: Variable) -> int:
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


# ------------------------------------------------------------------------- failed checks


def find_error(fgraph: Any, values: Sequence[Any]) -> Exception | None:
    """What the first node raises that raises on these values; None if none does.

    Ops of users are not run, and neither is what depends on them: they have been run by the call
    that failed, and may have side effects.
    """
    try:
        Runner(fgraph, _run_own)(values)
    except Exception as exc:
        return exc
    return None


_UNKNOWN = object()


def _run_own(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    if not is_own(node.op) or any(x is _UNKNOWN for x in inputs):
        return [_UNKNOWN] * len(node.outputs)
    return run_node(node, inputs)


def is_own(op: Any) -> bool:
    """Whether an op, and the ops that it applies, are of this package."""
    ops = [op]
    for o in ops:  # grows
        if not type(o).__module__.startswith("phintys."):
            return False
        ops += [getattr(o, name) for name in ("core_op", "scalar_op") if hasattr(o, name)]
        if isinstance(o, HasMultipleInnerGraph):
            ops += [node.op for g in o.inner_graphs.values() for node in g.toposort()]
    return True
