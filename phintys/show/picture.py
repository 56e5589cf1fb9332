"""Pictures of graphs: boxes and arrows, as text for the programs of Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phintys.errors import CompilerError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import HasMultipleInnerGraph
from phintys.graph.shared import SharedVariable
from phintys.graph.traversal import toposort
from phintys.graph.variable import Apply, Constant, Variable

#: part of the name of the class of an op -> colour of its nodes; that of outputs of the graph
default_colorCodes = {
    "Scan": "yellow",
    "Shape": "brown",
    "IfElse": "magenta",
    "Elemwise": "#FFAABB",
    "Subtensor": "#FFAAFF",
    "Alloc": "#FFAA22",
    "Output": "dodgerblue",
}


@dataclass(frozen=True)
class Box:
    """A node or a variable of a graph; nodes are round."""

    key: str
    label: str
    is_round: bool
    color: str


@dataclass(frozen=True)
class Arrow:
    """The use of a variable, by the keys of two boxes."""

    source: str
    target: str
    label: str
    color: str = "black"


@dataclass
class Picture:
    """The boxes, what is computed first before what uses it, and the arrows between them."""

    boxes: list[Box] = field(default_factory=list[Box])
    arrows: list[Arrow] = field(default_factory=list[Arrow])

    def dot(self, high_contrast: bool = True) -> str:
        """The picture in the language of Graphviz; with ``high_contrast`` boxes are filled."""
        lines = ["digraph {"]
        for b in self.boxes:
            shape = "ellipse" if b.is_round else "box"
            border = "black" if b.color == "white" else b.color
            style = f'style=filled, fillcolor="{b.color}"' if high_contrast else f'color="{border}"'
            lines.append(f"  {b.key} [label={_quoted(b.label)}, shape={shape}, {style}];")
        for a in self.arrows:
            label = f"label={_quoted(a.label)}, color={a.color}"
            lines.append(f"  {a.source} -> {a.target} [{label}];")
        return "\n".join([*lines, "}\n"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# ----------------------------------------------------------------------------- drawing


def picture_of(
    fct: Any,
    compact: bool = True,
    with_ids: bool = False,
    colorCodes: Mapping[str, str] | None = None,
    max_label_size: int = 70,
    var_with_name_simple: bool = False,
) -> Picture:
    """The picture of a function, a FunctionGraph, a variable, a node or a list of variables.

    The parameters are those of `pydotprint`.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> [box.label for box in picture_of(pt.exp(x)).boxes]
    ['x Vector(float64, shape=(?,))', 'Exp', 'Vector(float64, shape=(?,))']
    """
    order, outputs = _graph_of(fct)
    colors = {**default_colorCodes, **(colorCodes or {})}
    drawing = _Drawing(outputs, compact, with_ids, colors, max_label_size, var_with_name_simple)
    for node in order:
        drawing.node(node)
    for v in outputs:
        drawing.variable(v)
    return drawing.picture


def _graph_of(fct: Any) -> tuple[list[Apply], list[Variable]]:
    """The nodes in the order of computation, and the outputs."""
    fgraph = getattr(getattr(fct, "made_from", None), "graph", fct)
    if isinstance(fgraph, FunctionGraph):
        return fgraph.toposort(), fgraph.outputs
    items = list(fct) if isinstance(fct, list | tuple) else [fct]
    outputs = [v for item in items for v in (item.outputs if isinstance(item, Apply) else [item])]
    for v in outputs:
        if not isinstance(v, Variable):
            raise TypeError(f"Pictures are of functions, graphs, variables and nodes, not {v!r}.")
    return list(toposort(outputs)), outputs


class _Drawing:
    """Adds the boxes of nodes and variables, and their arrows, to a picture."""

    def __init__(
        self,
        outputs: Sequence[Variable],
        compact: bool,
        with_ids: bool,
        colors: Mapping[str, str],
        max_label_size: int,
        simple: bool,
    ) -> None:
        self.picture = Picture()
        self.outputs, self.compact, self.with_ids = set(outputs), compact, with_ids
        self.colors, self.max_label_size, self.simple = colors, max_label_size, simple
        self.nodes: dict[Apply, str] = {}
        self.variables: dict[Variable, str] = {}

    def node(self, node: Apply) -> None:
        """Add a node, its inputs and the arrows from them."""
        sources = [self.source(v) for v in node.inputs]
        key = self.nodes[node] = f"n{len(self.nodes)}"
        label = f"{node.op} id={len(self.nodes) - 1}" if self.with_ids else str(node.op)
        name = type(node.op).__name__
        color = next((c for part, c in self.colors.items() if part in name), "white")
        self.picture.boxes.append(Box(key, self.cut(label), True, color))
        several = len(node.inputs) > 1
        for i, (v, source) in enumerate(zip(node.inputs, sources)):
            words = [str(i)] if several else []
            words += [] if v in self.variables else [str(v.type)]
            arrow = Arrow(source, key, self.cut(" ".join(words)), _aliasing(node, i))
            self.picture.arrows.append(arrow)
        if not self.compact:
            for v in node.outputs:
                self.variable(v)

    def source(self, v: Variable) -> str:
        """The key of the box that the arrows from a variable begin at."""
        if v.owner is None or v.name is not None or not self.compact or v in self.outputs:
            return self.variable(v)
        return self.nodes[v.owner]

    def variable(self, v: Variable) -> str:
        """Add a variable, with the arrow from its node; return the key of its box."""
        if v in self.variables:
            return self.variables[v]
        key = self.variables[v] = f"v{len(self.variables)}"
        self.picture.boxes.append(Box(key, self.cut(self.label(v)), False, self.color(v)))
        if v.owner is not None:
            label = str(v.index) if len(v.owner.outputs) > 1 else ""
            self.picture.arrows.append(Arrow(self.nodes[v.owner], key, label))
        return key

    def label(self, v: Variable) -> str:
        if v.name is not None and self.simple:
            return v.name
        words = [v.name] if v.name is not None else []
        words += [f"val={v.data}"] if isinstance(v, Constant) and v.name is None else []
        words += [f"id={len(self.variables) - 1}"] if self.with_ids else []
        return " ".join([*words, str(v.type)])

    def color(self, v: Variable) -> str:
        if isinstance(v, SharedVariable):
            return "cyan"
        if v in self.outputs:
            return self.colors["Output"]
        return "limegreen" if v.owner is None and not isinstance(v, Constant) else "white"

    def cut(self, label: str) -> str:
        most = self.max_label_size
        return label if len(label) <= most else f"{label[: most - 3]}..."


def _aliasing(node: Apply, i: int) -> str:
    """The colour of the arrow from input ``i``: red if the op overwrites it, blue if views it."""
    if any(i in ins for ins in node.op.destroy_map.values()):
        return "red"
    return "dodgerblue" if any(i in ins for ins in node.op.view_map.values()) else "black"


# ------------------------------------------------------------------------ user function


def pydotprint(
    fct: Any,
    outfile: Path | str | None = None,
    compact: bool = True,
    format: str = "png",
    with_ids: bool = False,
    high_contrast: bool = True,
    cond_highlight: Any = None,
    colorCodes: Mapping[str, str] | None = None,
    max_label_size: int = 70,
    scan_graphs: bool = False,
    var_with_name_simple: bool = False,
    print_output_file: bool = True,
    return_image: bool = False,
) -> Any:
    """Write a picture of a graph to a file, by the program ``dot`` of Graphviz.

    Nodes are ellipses, variables boxes: inputs green, outputs blue, shared variables cyan.  An
    arrow to an op is blue if its result may be a view of that input, and red if it overwrites it.

    Parameters
    ----------
    fct
        a function, a FunctionGraph, a variable, a node, or a list of variables
    outfile
        the file; by default ``phintys.FORMAT`` in the current directory
    compact
        leave out variables without a name that nodes compute
    format
        a format of ``dot``, such as ``png`` or ``svg``; with ``dot`` the program is not needed
    with_ids
        number the nodes, in the order of computation, and the variables
    high_contrast
        fill the boxes with their colours, instead of colouring their borders
    colorCodes
        part of the name of the class of an op -> colour of its nodes
    max_label_size
        longer labels are cut
    scan_graphs
        also write the graphs inside ops, to files named after the node and its number
    var_with_name_simple
        variables with a name are shown without their types
    print_output_file
        print the name of the file
    return_image
        return the picture as bytes and write no file
    cond_highlight
        without effect

    Raises
    ------
    CompilerError
        if ``dot`` is needed and not installed, or fails

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> text = pydotprint(pt.exp(x), format="dot", return_image=True)
    >>> print(text.decode().splitlines()[2])
      n0 [label="Exp", shape=ellipse, style=filled, fillcolor="#FFAABB"];
    """
    options = (compact, with_ids, colorCodes, max_label_size, var_with_name_simple)
    image = _rendered(picture_of(fct, *options).dot(high_contrast), format)
    if return_image:
        return image
    path = Path(f"phintys.{format}" if outfile is None else outfile)
    path.write_bytes(image)
    if print_output_file:
        print(f"The picture is in {path}.")
    for name, graph in _inner_graphs(fct) if scan_graphs else ():
        inner = _rendered(picture_of(graph, *options).dot(high_contrast), format)
        path.with_name(f"{path.stem}_{name}{path.suffix}").write_bytes(inner)
    return None


def _inner_graphs(fct: Any) -> Iterator[tuple[str, FunctionGraph]]:
    """The graphs inside the ops of nodes, each with the name of the op and the node's number."""
    for k, node in enumerate(_graph_of(fct)[0]):
        op: Any = node.op
        if isinstance(op, HasMultipleInnerGraph):
            for name, graph in op.thawed_inner_graphs().items():
                yield "_".join(filter(None, [type(op).__name__, name, str(k)])), graph


def _rendered(text: str, format: str) -> bytes:
    """The picture that ``dot`` makes of a text; the text itself for the format ``dot``."""
    if format in ("dot", "gv"):
        return text.encode()
    program = shutil.which("dot")
    if program is None:
        raise CompilerError(
            f"The format {format!r} needs the program dot of Graphviz, which is not installed. "
            "format='dot' writes a text without it, d3viz a page for browsers."
        )
    found = subprocess.run([program, f"-T{format}"], input=text.encode(), capture_output=True)
    if found.returncode != 0:
        raise CompilerError(f"dot -T{format} failed: {found.stderr.decode(errors='replace')}")
    return found.stdout
