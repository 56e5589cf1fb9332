"""Graphs as formulas on one line: ``Add(*1 -> Exp(x), *1)``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from phintys.graph.traversal import applys_between
from phintys.graph.variable import Apply, Variable

LeafFormatter = Callable[[Variable], str]
NodeFormatter = Callable[[Apply, Sequence[str]], str]


def default_node_formatter(node: Apply, arguments: Sequence[str]) -> str:
    """``Op(argument, ...)``."""
    return f"{node.op}({', '.join(arguments)})"


def op_as_string(
    inputs: Iterable[Variable],
    node: Apply,
    leaf_formatter: LeafFormatter = str,
    node_formatter: NodeFormatter = default_node_formatter,
) -> str:
    """A node as a formula of ``inputs``; see `as_string`.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> op_as_string([x], pt.exp(pt.log(x)).owner)
    'Exp(Log(x))'
    """
    arguments = as_string(inputs, node.inputs, leaf_formatter, node_formatter)
    return node_formatter(node, arguments)


def as_string(
    inputs: Iterable[Variable],
    outputs: Iterable[Variable],
    leaf_formatter: LeafFormatter = str,
    node_formatter: NodeFormatter = default_node_formatter,
) -> list[str]:
    """The outputs as formulas of ``inputs``.

    A node that is used several times has a number: ``*1 -> Exp(x)`` where it is first used, and
    ``*1`` elsewhere.  Output ``i`` of such a node is ``*1::i``, unless it is the first.
    ``leaf_formatter`` gives the texts of inputs and of other variables without a node.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> y = pt.exp(x)
    >>> as_string([x], [y * pt.log(y), y])
    ['Mul(*1 -> Exp(x), Log(*1))', '*1']
    """
    leaves, outputs = set(inputs), list(outputs)
    nodes = applys_between(leaves, outputs)
    used = [v for node in nodes for v in node.inputs] + outputs
    uses = Counter(v.owner for v in used if v.owner is not None and v not in leaves)
    writer = _Writer(leaves, {n for n, count in uses.items() if count > 1}, leaf_formatter)
    if node_formatter is not default_node_formatter:
        return [_formatted(writer, v, node_formatter) for v in outputs]
    return ["".join(_pieces(writer, v)) for v in outputs]


class _Writer:
    """Decides how variables are written; numbers the nodes with several uses when it meets them."""

    def __init__(
        self, leaves: set[Variable], shared: set[Apply], leaf_formatter: LeafFormatter
    ) -> None:
        self._leaves, self._shared, self._leaf_formatter = leaves, shared, leaf_formatter
        self._numbers: dict[Apply, str] = {}

    def known(self, v: Variable) -> str | None:
        """The text of a leaf, or of an output of a node that has a number; else None."""
        node = v.owner
        if node is None or v in self._leaves:
            return self._leaf_formatter(v)
        number = self._numbers.get(node)
        if number is None:
            return None
        first = v.index == (node.op.default_output or 0)
        return number if first else f"{number}::{v.index}"

    def prefix(self, node: Apply) -> str:
        """The text before a node that is written for the first time."""
        if node not in self._shared:
            return ""
        self._numbers[node] = f"*{len(self._numbers) + 1}"
        return f"{self._numbers[node]} -> "


def _pieces(writer: _Writer, output: Variable) -> list[str]:
    """The text of a formula in pieces, whose number is linear in the size of the graph."""
    pieces: list[str] = []
    stack: list[Variable | str] = [output]
    while stack:
        item = stack.pop()
        text = item if isinstance(item, str) else writer.known(item)
        if text is not None:
            pieces.append(text)
            continue
        node: Any = cast("Variable", item).owner
        pieces.append(f"{writer.prefix(node)}{node.op}(")
        arguments = [part for v in node.inputs for part in (", ", v)][1:]
        stack.extend([")", *reversed(arguments)])
    return pieces


def _formatted(writer: _Writer, output: Variable, node_formatter: NodeFormatter) -> str:
    """The text of a formula whose nodes a function writes, given the texts of their inputs."""
    texts: list[str] = []
    stack: list[Variable | tuple[str, Apply]] = [output]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            prefix, node = item
            start = len(texts) - len(node.inputs)
            texts[start:] = [prefix + node_formatter(node, texts[start:])]
            continue
        text = writer.known(item)
        if text is not None:
            texts.append(text)
            continue
        made: Any = item.owner
        stack.append((writer.prefix(made), made))
        stack.extend(reversed(made.inputs))
    return texts[0]
