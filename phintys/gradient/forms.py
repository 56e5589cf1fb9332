"""Graphs that are differentiated in the place of a node.

The derivative of a function as it is written may overflow or cancel where that of an equal graph
does not.  Whoever knows such a graph registers a function for the op (`differentiated_as`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from phintys.graph.op import Op
from phintys.graph.origin import inherit
from phintys.graph.variable import Apply, Variable


class OtherForm(NamedTuple):
    """A variable that equals the output of a node, and the variables from which it is computed.

    Attributes
    ----------
    result
        the variable
    leaves
        variables of the graph of the node; ``result`` depends on nothing else
    absent
        variables of that graph that cancel: the derivatives in them are 0
    """

    result: Variable
    leaves: Collection[Variable]
    absent: Collection[Variable] = ()


#: From a node and variables that are not looked through, the other form, or None.
Maker = Callable[[Apply, Collection[Variable]], OtherForm | None]

_makers: dict[Op | type[Op], Maker] = {}


def differentiated_as(op: Op | type[Op], make: Maker) -> None:
    """Register the function that returns the other form of a node of ``op``, or None.

    ``op`` may be a class: of nodes of all its ops that have no function of their own.
    """
    _makers[op] = make


def other_form(node: Apply, kept: Collection[Variable]) -> OtherForm | None:
    """The graph that is differentiated in the place of ``node``; None for the node itself.

    The result depends on the variables ``kept`` as the node does.
    """
    make = _makers.get(node.op) or _makers.get(type(node.op))
    if make is None:
        return None
    with inherit(node.origin):
        return make(node, kept)
