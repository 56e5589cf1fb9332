"""Alias analysis of outputs: which results must be copied before the caller receives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.destroy import view_root
from phintys.graph.variable import Variable


def must_copy(fgraph: Any, borrowed: Sequence[bool]) -> list[bool]:
    """For each output of the graph, whether it must be copied.

    An output is copied if it may share memory with an input, a constant or an earlier output.
    Results for which ``borrowed`` is true are not; ``borrowed`` leaves out the updates.
    """
    taken: set[Variable] = set()
    out = []
    for k, v in enumerate(fgraph.outputs):
        root = view_root(v)
        borrow = k < len(borrowed) and borrowed[k]
        out.append((root.owner is None or root in taken) and not borrow)
        taken.add(root)
    return out
