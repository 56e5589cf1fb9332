"""Alias analysis: which results must be copied before the caller receives them.

`insert_deepcopy` and its companions make such copies parts of a graph, for programs that compile
graphs themselves; `function` copies results after a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from phintys.gradient.barriers import deep_copy_op, view_op
from phintys.graph.destroy import DestroyHandler, Supervisor, view_root, views
from phintys.graph.variable import Constant, Variable

__all__ = [
    "AliasedMemoryError",
    "Supervisor",
    "add_supervisor_to_fgraph",
    "alias_root",
    "copies",
    "infer_reuse_pattern",
    "insert_deepcopy",
    "view_tree_set",
]


class AliasedMemoryError(Exception):
    """Memory is shared that must not be.  This package copies it instead of raising this."""


def copies(fgraph: Any, borrowed: Sequence[bool]) -> list[Callable[[Any], Any] | None]:
    """For each output of the graph, the function that copies its values if needed; None: none is.

    An output is copied if it may share memory with an input, a constant or an earlier output, or
    NumPy has made it read-only.  Results for which ``borrowed`` is true are not; ``borrowed``
    leaves out the updates.
    """
    taken: set[Variable] = set()
    out: list[Callable[[Any], Any] | None] = []
    for k, v in enumerate(fgraph.outputs):
        root = view_root(v)
        shared = root.owner is None or root in taken
        borrow = k < len(borrowed) and borrowed[k]
        out.append(None if borrow else v.type.copy_value if shared else _writeable)
        taken.add(root)
    return out


def _writeable(value: Any) -> Any:
    """The value, copied if it is a read-only array."""
    read_only = isinstance(value, np.ndarray) and not value.flags.writeable
    return value.copy() if read_only else value


def alias_root(v: Variable) -> Variable:
    """The variable that owns the memory of ``v``: itself, unless it is a view."""
    return view_root(v)


def view_tree_set(fgraph: Any, v: Variable, treeset: set[Variable]) -> None:
    """Add ``v``, which is no view, and all its views to ``treeset``."""
    treeset.update(views(fgraph, v))


def infer_reuse_pattern(fgraph: Any, outputs_to_disown: Iterable[Variable]) -> set[Variable]:
    """The variables that may share memory with ``outputs_to_disown``, but for inputs and constants.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> y = x + 1
    >>> fgraph = phintys.FunctionGraph([x], [y.T], clone=False)
    >>> infer_reuse_pattern(fgraph, fgraph.outputs) == {y, fgraph.outputs[0]}
    True
    """
    found: set[Variable] = set()
    for v in outputs_to_disown:
        found.update(views(fgraph, view_root(v)))
    return {v for v in found if v.owner is not None}


def insert_deepcopy(
    fgraph: Any, wrapped_inputs: Sequence[Any], wrapped_outputs: Sequence[Any]
) -> None:
    """Make each output of a graph own its memory: a node that copies it is inserted if needed.

    An output is copied if it may share memory with an input, a constant or an earlier output.  If
    both are borrowed (`Out`, and `In` for an input that no update replaces), an identity op is
    inserted instead.

    Parameters
    ----------
    fgraph
        a graph that has been rewritten; it is changed
    wrapped_inputs
        an `In` for each input
    wrapped_outputs
        an `Out` for each output; further outputs, of updates, are not borrowed

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> fgraph = phintys.FunctionGraph([x], [x.T, x + 1], clone=False)
    >>> insert_deepcopy(fgraph, [phintys.In(x)], [phintys.Out(v) for v in fgraph.outputs])
    >>> [v.owner.op for v in fgraph.outputs]
    [DeepCopyOp, Add]
    """
    is_borrowed_input = {
        v: bool(i.borrow) and i.update is None for v, i in zip(fgraph.inputs, wrapped_inputs)
    }
    borrowed_outputs = [o.borrow for o in wrapped_outputs]
    is_borrowed_output = borrowed_outputs + [False] * (len(fgraph.outputs) - len(borrowed_outputs))
    owners: dict[Variable, bool] = {}  # of memory that is taken: whether it may be borrowed
    for k, v in enumerate(fgraph.outputs):
        root = view_root(v)
        source = is_borrowed_input.get(root, False) if root.owner is None else owners.get(root)
        if source is None:
            owners[root] = is_borrowed_output[k]
            continue
        op = view_op if source and is_borrowed_output[k] else deep_copy_op
        node, i = fgraph.get_output_client(k)
        fgraph.change_node_input(node, i, op(v), reason="insert_deepcopy")


def add_supervisor_to_fgraph(
    fgraph: Any, input_specs: Sequence[Any], accept_inplace: bool = False
) -> None:
    """Attach a `Supervisor`, by which the graph may overwrite only inputs that are ``mutable``.

    Inputs with an update may be overwritten too.  TypeError if the graph works in place already and
    ``accept_inplace`` is false.
    """
    if not hasattr(fgraph, "destroy_handler"):
        for node in fgraph.apply_nodes:
            if node.op.destroy_map and not accept_inplace:
                raise TypeError(f"The graph contains {node.op}, which works in place.")
        fgraph.attach_feature(DestroyHandler())
    fgraph.attach_feature(
        Supervisor(
            v
            for v, spec in zip(fgraph.inputs, input_specs)
            if not (spec.mutable or spec.update is not None or isinstance(v, Constant))
        )
    )
