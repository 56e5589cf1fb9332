"""`dprint`: a graph as an indented tree."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import IO, Any

from phintys.assumptions import AssumptionFeature, summarize_assumptions
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.ignored import ignores
from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.shapes import shape_text
from phintys.graph.variable import Apply, Variable, late_bound

#: every so many levels the tree continues at the left margin; otherwise the size of the text would
#: be quadratic in the depth
MAX_INDENT = 100


@dataclass
class _Printer:
    """The options of one call of `dprint`, and the state: what has been printed already."""

    depth: int
    print_type: bool
    print_shape: bool
    id_type: str
    stop_on_name: bool
    print_destroy_map: bool
    print_view_map: bool
    assumptions: AssumptionFeature | None
    used_ids: dict[Any, str]
    done: dict[Any, str]
    order: dict[Apply, int] = field(default_factory=dict)
    storage: dict[Variable, list[Any]] = field(default_factory=dict)
    #: whether to print `op_debug_information`
    print_op_info: bool = False
    updates: dict[Variable, Variable] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    #: the ops that contain graphs, and for each of them a node
    inner_ops: set[HasMultipleInnerGraph] = field(default_factory=set)
    inner: list[Apply] = field(default_factory=list)
    #: of the graph inside an op that is printed: see `HasMultipleInnerGraph.sources`
    sources: Mapping[Variable, Variable] = field(default_factory=dict[Variable, Variable])

    def tree(self, root: Variable, lead: str = "", indent: str = " ") -> None:
        """The lines of one output, without recursion."""
        stack: list[tuple[Variable, str, str, int, str]] = [(root, lead, indent, 1, "")]
        while stack:
            v, lead, indent, level, said = stack.pop()
            known = v.owner is not None and v.owner in self.done
            self.lines.append(lead + self._label(v, level) + said)
            if v.owner is None or (self.depth > 0 and level >= self.depth):
                continue
            if self.stop_on_name and v.name is not None and level > 1:
                continue
            if known:
                if v.owner.inputs:
                    self.lines.append(f"{indent}└─ ···")
                continue
            self.done[v.owner] = self.id_of(v.owner)
            op = v.owner.op
            if isinstance(op, HasMultipleInnerGraph) and op not in self.inner_ops:
                self.inner_ops.add(op)
                self.inner.append(v.owner)
            children = []
            last = len(v.owner.inputs) - 1
            if level % MAX_INDENT == 0:
                indent = f" level {level}: "
            about = self._about_inputs(v.owner)
            for k, x in enumerate(v.owner.inputs):
                branch, below = ("└─ ", "   ") if k == last else ("├─ ", "│  ")
                said = f" ({about[x]})" if x in about else ""
                children.append((x, indent + branch, indent + below, level + 1, said))
            stack.extend(reversed(children))

    def _about_inputs(self, node: Apply) -> Mapping[Variable, str]:
        """What the op of a node says of its inputs, if that is printed."""
        return op_debug_information(node.op, node).get(node, {}) if self.print_op_info else {}

    def inner_graphs(self) -> None:
        """The lines of the graphs inside ops, and of those inside them."""
        if self.inner:
            self.lines += ["", "Inner graphs:"]
        for node in self.inner:  # grows
            self.sources = node.op.sources(node)
            for name, graph in node.op.inner_graphs.items():
                self.lines += ["", f"{node.op}{self._ident(node)} {name}".rstrip()]
                for v in graph.outputs:
                    self.tree(v, " ← ", "    ")

    def _label(self, v: Variable, level: int) -> str:
        node = v.owner
        if node is None:
            return self._leaf(v)
        name = str(node.op)
        if len(node.outputs) > 1:
            name += f".{v.index}"
        text = name + self._ident(node)
        if self.print_type:
            text += f" <{v.type}>"
        text += self._shape(v)
        if v.name is not None:
            text += f" '{v.name}'"
        if self.print_destroy_map and node.op.destroy_map:
            text += f" d={node.op.destroy_map}"
        if self.print_view_map and node.op.view_map:
            text += f" v={node.op.view_map}"
        if node in self.order:
            text += f" {self.order[node]}"
        if v in self.updates and level == 1:
            text += f" (updates {self.updates[v]})"
        return text + self._known(v)

    def _known(self, v: Variable) -> str:
        """What is known of a variable, if that is printed."""
        said = summarize_assumptions(self.assumptions, v) if self.assumptions else ""
        return f" a={said}" if said else ""

    def _leaf(self, v: Variable) -> str:
        text = f"{v}{self._ident(v)}"
        if v in self.sources and self.id_type:
            text += f" ->{self._ident(_owner_or_self(self.sources[v]))}"
        if self.print_type:
            text += f" <{v.type}>"
        return text + self._shape(v) + self._known(v)

    def _shape(self, v: Variable) -> str:
        """The static shape of a variable, if that is printed."""
        shape = getattr(v.type, "shape", None)
        if shape is None or not self.print_shape:
            return ""
        return f" shape={shape_text(shape)}"

    def _ident(self, item: Any) -> str:
        name = self.id_of(item)
        return f" [id {name}]" if name else ""

    def id_of(self, item: Any) -> str:
        """The id by which the text refers to a variable or node."""
        if not self.id_type:
            return ""
        if item not in self.used_ids:
            n = len(self.used_ids)
            label = {"CHAR": char_from_number(n), "int": str(n), "id": hex(id(item)), "auto": ""}
            if self.id_type == "auto":
                label["auto"] = getattr(item, "auto_name", str(n))
            self.used_ids[item] = label[self.id_type]
        return self.used_ids[item]


def _owner_or_self(v: Variable) -> Any:
    """What has the label of a variable: the node that computes it, or the variable."""
    return v if v.owner is None else v.owner


def char_from_number(n: int) -> str:
    """0 -> A, 25 -> Z, 26 -> BA."""
    digits = chr(65 + n % 26)
    while n >= 26:
        n //= 26
        digits = chr(65 + n % 26) + digits
    return digits


@singledispatch
def op_debug_information(op: Any, node: Apply) -> Mapping[Apply, Mapping[Variable, str]]:
    """What is known of variables of a node, for ``dprint(..., print_op_info=True)``.

    Register a function for a class of ops; it returns ``{node: {variable: text}}``.
    """
    return {}


@ignores(print_storage="the lists input_storage and output_storage of a function")
def dprint(
    graph_like: Any,
    depth: int = -1,
    print_type: bool = False,
    print_shape: bool = False,
    file: str | IO[str] | None = None,
    id_type: str = "CHAR",
    stop_on_name: bool = False,
    done: dict[Any, str] | None = None,
    print_storage: bool = False,
    used_ids: dict[Any, str] | None = None,
    print_op_info: bool = False,
    print_destroy_map: bool = False,
    print_view_map: bool = False,
    print_memory_map: bool = False,
    print_inner_graphs: bool = True,
    print_fgraph_inputs: bool = False,
    print_assumptions: bool = False,
    **kwargs: Any,
) -> Any:
    """Print graphs as trees: one line per node, its inputs indented below it.

    Returns None, or what ``file`` says.

    Parameters
    ----------
    graph_like
        variables, nodes, FunctionGraphs or compiled functions, or a list of them
    depth
        how many levels to print; -1 means all
    print_type, print_shape
        add types and static shapes
    file
        ``"str"`` returns the text, ``"rich"`` a `rich.tree.Tree` of it; an open file is written to;
        None prints
    id_type
        ``"CHAR"``, ``"int"``, ``"id"``, ``"auto"``, or ``""`` for no ids
    stop_on_name
        do not print the inputs of variables that have a name
    done, used_ids
        pass the same dicts to several calls to continue their ids
    print_destroy_map, print_view_map
        add the inputs that are overwritten, and those that outputs are views of
    print_fgraph_inputs
        list the inputs of FunctionGraphs
    print_inner_graphs
        also print the graphs inside ops, each once, below the others
    print_assumptions
        add what is known of variables, such as ``a={sym}`` of a symmetric matrix
    print_op_info
        add what `op_debug_information` says of the inputs of ops
    print_storage, kwargs
        accepted for compatibility

    The number after a node of a FunctionGraph or function is its position in the order of
    execution; ``···`` stands for inputs that have been printed already.  Every 100 levels the tree
    continues at the left margin, after the number of the level.

    Raises
    ------
    TypeError
        if ``graph_like`` contains something else
    ValueError
        if ``id_type`` is unknown

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> phintys.dprint(pt.exp(x) + x)
    Add [id A]
     ├─ Exp [id B]
     │  └─ x [id C]
     └─ x [id C]
    """
    if id_type not in ("CHAR", "int", "id", "auto", ""):
        raise ValueError(f"id_type must be CHAR, int, id, auto or empty, not {id_type!r}.")
    printer = _Printer(
        depth,
        print_type,
        print_shape,
        id_type,
        stop_on_name,
        print_destroy_map or print_memory_map,
        print_view_map or print_memory_map,
        AssumptionFeature() if print_assumptions else None,
        {} if used_ids is None else used_ids,
        {} if done is None else done,
        print_op_info=print_op_info,
    )
    items = graph_like if isinstance(graph_like, list | tuple | set) else [graph_like]
    for item in items:
        _print_item(printer, item, print_fgraph_inputs)
    if print_inner_graphs:
        printer.inner_graphs()
    text = "\n".join(printer.lines)
    if file == "str":
        return f"{text}\n"
    if file == "rich":
        return _rich_tree(printer.lines)
    if isinstance(file, str):
        raise ValueError(f"file is 'str', 'rich', None or an open file, not {file!r}.")
    print(text, file=sys.stdout if file is None else file)
    return None


def _rich_tree(lines: Sequence[str]) -> Any:
    """Lines of a tree as one of rich; ImportError, with what to install, without that package."""
    try:
        from rich.text import Text
        from rich.tree import Tree
    except ImportError:
        raise ImportError("file='rich' needs the package rich: pip install rich.") from None
    found = Tree(Text("graph"), hide_root=True)
    open_: list[tuple[int, Any]] = [(-1, found)]
    for line in lines:
        label = line.lstrip(" │├└─")
        indent = len(line) - len(label)
        while open_[-1][0] >= indent:
            open_.pop()
        open_.append((indent, open_[-1][1].add(Text(label))))
    return found


def _print_item(printer: _Printer, item: Any, list_inputs: bool) -> None:
    fgraph = getattr(getattr(item, "made_from", None), "graph", item)
    if isinstance(fgraph, FunctionGraph):
        printer.order.update((n, i) for i, n in enumerate(fgraph.toposort()))
        mapping = fgraph.update_mapping
        if list_inputs:
            printer.lines += [f"→ {v} [id {printer.id_of(v)}]" for v in fgraph.inputs]
        for k, v in enumerate(fgraph.outputs):
            if k in mapping:
                printer.updates[v] = fgraph.inputs[mapping[k]]
        roots: Sequence[Variable] = fgraph.outputs
    elif isinstance(item, Apply):
        roots = item.outputs[:1]
    elif isinstance(item, Variable):
        roots = [item]
    else:
        raise TypeError(
            f"dprint shows variables, nodes, FunctionGraphs and functions, not {item!r}."
        )
    for v in roots:
        printer.tree(v)


debugprint = dprint
late_bound["dprint"] = dprint
