"""Which results must be copied before they are handed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.graph.destroy import view_root
from phintys.graph.variable import Variable


def must_copy(fgraph: Any, borrowed: Sequence[bool]) -> list[bool]:
    """For each output of the graph, whether it may be memory that somebody else holds.

    That is an input, a constant, or memory of an output before it.  Updates are copied unless they
    own their memory; results that may be borrowed are not.
    """
    taken: set[Variable] = set()
    out = []
    for k, v in enumerate(fgraph.outputs):
        root = view_root(v)
        borrow = k < len(borrowed) and borrowed[k]
        out.append((root.owner is None or root in taken) and not borrow)
        taken.add(root)
    return out
