"""Nodes of graphs by what printers show of them, and short descriptions of variables."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from phintys.graph.variable import Apply, Constant, Variable
from phintys.show.text import char_from_number, dprint


@dataclass(frozen=True)
class GraphNode:
    """One line of a graph printed as a tree: an occurrence of a variable.

    ``is_repeat`` says whether its inputs have been printed already.  ``ancestor_is_last`` and
    ``is_last_child`` say where it and the variables above it are among their siblings.
    """

    var: Variable
    is_repeat: bool = False
    is_last_child: bool = True
    ancestor_is_last: list[bool] = field(default_factory=list[bool])
    parent_node: Apply | None = None

    @property
    def is_already_done(self) -> bool:
        """The same as ``is_repeat``."""
        return self.is_repeat

    @property
    def is_leaf(self) -> bool:
        """Whether no node computes the variable."""
        return self.var.owner is None

    @property
    def node(self) -> Apply | None:
        """The node that computes the variable."""
        return self.var.owner

    @property
    def output_idx(self) -> int | str:
        """The position among the outputs of a node; empty for the only one, and for a leaf."""
        node = self.var.owner
        return "" if node is None or len(node.outputs) == 1 else self.var.index or 0


def iter_graph_nodes(
    var: Variable,
    depth: int = -1,
    done: dict[Any, Any] | None = None,
    stop_on_name: bool = False,
) -> Generator[GraphNode]:
    """The lines of a tree, as `dprint` prints it: each variable before the inputs of its node.

    Parameters as of `dprint`; ``done`` has the nodes that have been printed already as keys.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> [(str(n.var), len(n.ancestor_is_last)) for n in iter_graph_nodes(x + pt.exp(x))]
    [('Add.0', 0), ('x', 1), ('Exp.0', 1), ('x', 2)]
    """
    known = {} if done is None else done
    stack = [GraphNode(var)]
    while stack:
        record = stack.pop()
        v, node = record.var, record.var.owner
        level = len(record.ancestor_is_last) + 1
        repeat = node is not None and node in known
        record = GraphNode(
            v, repeat, record.is_last_child, record.ancestor_is_last, record.parent_node
        )
        yield record
        stopped = (stop_on_name and v.name is not None and level > 1) or 0 < depth <= level
        if node is None or repeat or stopped:
            continue
        known[node] = ""
        above = [*record.ancestor_is_last, record.is_last_child]
        last = len(node.inputs) - 1
        stack += [GraphNode(x, False, k == last, above, node) for k, x in enumerate(node.inputs)][
            ::-1
        ]


def get_node_by_id(
    graphs: Any, target_var_id: str, id_types: str = "CHAR"
) -> Apply | Variable | None:
    """The node, or the variable without an owner, that `dprint` shows with an id; None without it.

    ``graphs`` and ``id_types`` are what `dprint` was called with.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> get_node_by_id(pt.exp(x) + x, "B"), get_node_by_id(pt.exp(x) + x, "C")
    (Exp(x), x)
    """
    used: dict[Any, str] = {}
    dprint(graphs, file="str", id_type=id_types, used_ids=used)
    return next((item for item, name in used.items() if name == target_var_id), None)


def min_informative_str(obj: Any, indent_level: int = 0) -> str:
    """A variable as a tree that ends at variables with names, one line per variable.

    >>> import phintys.tensor as pt
    >>> x, y = pt.dscalars("x", "y")
    >>> print(min_informative_str(pt.exp(x + y) * 2))
    A. Mul
     B. Exp
      C. Add
       D. x
       E. y
     F. 2
    """
    tags: dict[Variable, str] = {}
    lines: list[str] = []
    stack = [(obj, indent_level)]
    while stack:
        v, level = stack.pop()
        if v in tags:
            lines.append(f"{' ' * level}<{tags[v]}>")
            continue
        tags[v] = char_from_number(len(tags))
        lines.append(f"{' ' * level}{tags[v]}. {_short(v)}")
        if v.name is None and v.owner is not None:
            stack += [(x, level + 1) for x in reversed(v.owner.inputs)]
    return "\n".join(lines)


def _short(v: Variable) -> str:
    if v.name is not None:
        return v.name
    if isinstance(v, Constant):
        return " ".join(str(v.data).split())
    return str(v.type) if v.owner is None else str(v.owner.op)


def hex_digest(x: Any) -> str:
    """A hash of the values, the strides, the shape and the dtype of an array, as text.

    >>> import numpy as np
    >>> a = np.arange(6.0).reshape(2, 3)
    >>> hex_digest(a) == hex_digest(a.copy()), hex_digest(a) == hex_digest(a.T.copy())
    (True, False)
    """
    digest = hashlib.sha256(x.tobytes()).hexdigest()
    return f"{digest}|strides={list(x.strides)}|shape={list(x.shape)}|dtype={x.dtype}"
