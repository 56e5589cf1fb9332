"""`MonitorMode`: calls functions before and after each node; `detect_nan`, one such function.

>>> import phintys, phintys.tensor as pt
>>> def show(fgraph, i, node, fn):
...     print(i, node.op, [x[0].tolist() for x in fn.inputs], [y[0].tolist() for y in fn.outputs])
>>> x = pt.dvector("x")
>>> f = phintys.function([x], pt.exp(x).sum(), mode=MonitorMode(post_func=show))
>>> f([0.0, 0.0])
0 Exp [[0.0, 0.0]] [[1.0, 1.0]]
1 Sum{axes=None} [[1.0, 1.0]] [2.0]
array(2.)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.compile.debug.hooks import HookedLinker, require_reference
from phintys.compile.mode import Mode
from phintys.compile.thunks import Thunk
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.origin import describe
from phintys.graph.perform import RunNode
from phintys.graph.variable import Apply
from phintys.rewriting.trace import expression

#: ``fn(fgraph, i, node, thunk)``: the graph, the position of the node in it, the node, and its
#: `Thunk`
Observer = Callable[[FunctionGraph, int, Apply, Thunk], Any]


class _MonitorLinker(HookedLinker):
    def __init__(self, pre_func: Observer | None, post_func: Observer | None) -> None:
        self.pre_func, self.post_func = pre_func, post_func

    def hook(self, fgraph: FunctionGraph) -> RunNode:
        number = {node: i for i, node in enumerate(fgraph.toposort())}

        def run(node: Apply, inputs: Sequence[Any]) -> list[Any]:
            thunk = Thunk(node, [[x] for x in inputs])
            self.call(fgraph, number[node], node, thunk)
            return thunk.results

        return run

    def call(self, fgraph: FunctionGraph, i: int, node: Apply, fn: Any) -> None:
        if self.pre_func is not None:
            self.pre_func(fgraph, i, node, fn)
        fn()
        if self.post_func is not None:
            self.post_func(fgraph, i, node, fn)


class MonitorMode(Mode):
    """A mode that calls ``pre_func`` before and ``post_func`` after each node.

    Parameters
    ----------
    pre_func, post_func
        functions of the rewritten graph, the position of a node in it, the node, and its
        computation: an object with ``inputs`` and ``outputs``, lists of cells (lists of length 1).
        What a function stores in a cell is used in place of the value.  They are also called for
        the nodes of the step of a loop, at each step, and of the branch of a condition that is
        taken, with that graph.
    optimizer, db
        see `Mode`
    linker
        accepted for compatibility, ValueError for backends that do not run node by node
    """

    def __init__(
        self,
        pre_func: Observer | None = None,
        post_func: Observer | None = None,
        optimizer: Any = "default",
        linker: Any = None,
        db: Any = None,
    ) -> None:
        require_reference("MonitorMode", linker)
        super().__init__(_MonitorLinker(pre_func, post_func), optimizer, db)

    def eval(self, fgraph: FunctionGraph, i: int, node: Apply, fn: Any) -> None:
        """Compute one node, ``fn()``, with the functions before and after it."""
        linker: Any = self.linker
        linker.call(fgraph, i, node, fn)


def detect_nan(fgraph: FunctionGraph, i: int, node: Apply, fn: Any) -> None:
    """Print a node with its values if a result contains NaN; a ``post_func`` of `MonitorMode`."""
    for k, cell in enumerate(fn.outputs):
        value = cell[0]
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
            continue
        if np.isnan(value).any():
            lines = [
                "*** NaN detected ***",
                expression(node.outputs[k], 4),
                *filter(None, [describe(node.origin, indent="")]),
                f"Inputs : {[x[0] for x in fn.inputs]}",
                f"Outputs: {[y[0] for y in fn.outputs]}",
            ]
            sys.stdout.write("\n".join(lines) + "\n")
            return
