"""Alias analysis of outputs: which results must be copied before the caller receives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phintys.graph.destroy import view_root
from phintys.graph.variable import Variable


def copies(fgraph: Any, borrowed: Sequence[bool]) -> list[Callable[[Any], Any] | None]:
    """For each output of the graph, the function that copies its values; None: no copy is needed.

    An output is copied if it may share memory with an input, a constant or an earlier output.
    Results for which ``borrowed`` is true are not; ``borrowed`` leaves out the updates.
    """
    taken: set[Variable] = set()
    out: list[Callable[[Any], Any] | None] = []
    for k, v in enumerate(fgraph.outputs):
        root = view_root(v)
        borrow = k < len(borrowed) and borrowed[k]
        copied = (root.owner is None or root in taken) and not borrow
        out.append(v.type.copy_value if copied else None)
        taken.add(root)
    return out
