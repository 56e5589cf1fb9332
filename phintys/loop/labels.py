"""What messages call the inputs of a step, and its results."""

from __future__ import annotations

import re
from typing import Any

from phintys.graph.variable import Apply, Constant, Variable
from phintys.loop.arguments import Group, groups
from phintys.tensor.elemwise import DimShuffle
from phintys.tensor.index_ops import IncSubtensor


def step_label(node: Apply, i: int) -> str:
    """What messages call inner input ``i`` of a node of a `Scan`: ``x[t]``, ``state[t-1]``.

    >>> import phintys, phintys.tensor as pt
    >>> x, start = pt.dvector("x"), pt.dscalar("start")
    >>> out = phintys.scan(lambda a, s: a * s, x, start, return_updates=False)
    >>> node = out.owner.inputs[0].owner
    >>> step_label(node, 0), step_label(node, 1)
    ('x[t]', 'start[t-1]')
    """
    op: Any = node.op
    g = next(g for g in groups(op.info) if i in g.inner_inputs)
    if g.kind in ("non_seq", "untraced_sit_sot"):
        return str(_source(node.inputs[g.outer_input]))
    return f"{_name(node, g)}[t{_tap(op, g.kind, i):+d}]".replace("+0]", "]")


def result_label(node: Apply, g: Group) -> str:
    """What messages call a result of a node of a `Scan`."""
    state = f", the state {_name(node, g)}," if g.inner_inputs else ""
    return f"output {g.outer_output}{state} of {node.op}"


def _name(node: Apply, g: Group) -> str:
    """The name of a sequence or a state."""
    source = _source(node.inputs[g.outer_input])
    name = str(source)
    if source.name is None and isinstance(source, Constant):
        name = "sequence" if g.kind == "seq" else "initial"  # as `scan` names initial values
    return re.sub(r"\[(0:|:\d+)\]$", "", name)  # the rows of x before step 0 are called x[:1]


def _tap(op: Any, kind: str, i: int) -> int:
    """The row that a step reads of inner input ``i``, counted from its own."""
    info = op.info
    taps = [t for own in info.tap_array for t in own]
    return 0 if kind == "seq" else taps[i - info.n_seqs]


def _source(v: Variable) -> Variable:
    """A buffer or sequence: if it has no name, the values it begins with."""
    while v.name is None and v.owner is not None:
        if isinstance(v.owner.op, IncSubtensor):
            v = v.owner.inputs[1]
        elif isinstance(v.owner.op, DimShuffle):
            v = v.owner.inputs[0]
        else:
            break
    return v
