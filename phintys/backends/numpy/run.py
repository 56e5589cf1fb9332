"""Runs a FunctionGraph by calling ``perform`` of every node.

Other backends are tested against this one.  It runs mode FAST_COMPILE, and it makes the message of
a check that failed on another backend: `find_error` computes the graph again, without ops of users,
and the node that raises gives the message and the line of the user's program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.backends.protocol import Transpiler
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.perform import Runner, run_node
from phintys.graph.variable import Apply


class NumPy:
    """The object that obeys `Transpiler`."""

    def compile(self, fgraph: FunctionGraph) -> Runner:
        return Runner(fgraph)


backend: Transpiler = NumPy()


# ------------------------------------------------------------------------- failed checks


def find_error(fgraph: FunctionGraph, values: Sequence[Any]) -> Exception | None:
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
