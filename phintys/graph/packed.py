"""A `FunctionGraph` in a few flat lists, which need a tenth of its memory.

Functions keep their rewritten graphs in this form, since few of these are ever asked for.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from typing import Any

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.meta import Scratchpad
from phintys.graph.origin import locate
from phintys.graph.variable import Variable


class PackedGraph:
    """A graph that `unpack` makes again, of copies of its nodes.

    ``inputs`` and ``update_mapping`` are those of the graph; there is an item in ``outputs`` for
    each output.  Attributes that were set on the graph, and the state of its features, are lost.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> packed = PackedGraph(FunctionGraph([x], [x * x + x], clone=False))
    >>> packed.unpack().toposort()
    [Mul(x, x), Add(Mul.0, x)]
    """

    # Variables are numbered: the inputs first, then constants and results as they appear.  ``code``
    # holds for each node its place in ``ops`` and ``origins``, how many inputs it has and their
    # numbers, how many outputs it has, and the places in ``prototypes`` of what they are copies of
    __slots__ = (
        "code",
        "features",
        "inputs",
        "numbers",
        "ops",
        "origins",
        "outputs",
        "prototypes",
        "roots",
        "tags",
        "update_mapping",
    )

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.inputs, self.update_mapping = list(fgraph.inputs), dict(fgraph.update_mapping)
        self.features: list[Any] = [f.clone() for f in fgraph._features]  # pyright: ignore[reportPrivateUsage]
        self.roots: dict[int, Variable] = {}  # without owners, no inputs: by their numbers
        self.tags: dict[int, Scratchpad] = {}  # of nodes, by their positions
        self.numbers, self.code = array("q"), array("i")
        ops, origins, prototypes = _Table(), _Table(), _Table()
        known: dict[Variable, int] = {}
        for v in self.inputs:
            known[v] = len(known)

        def number_of(v: Variable) -> int:
            found = known[v] = len(known)
            self.roots[found] = v
            return found

        for k, node in enumerate(fgraph.toposort()):
            given = [known[v] if v in known else number_of(v) for v in node.inputs]
            made = [prototypes.place(v, _kind(v)) for v in node.outputs]
            for v in node.outputs:
                known[v] = len(known)
            op = ops.place((type(node), node.op), (type(node), id(node.op)))
            origin = origins.place(node.origin, id(node.origin))
            self.code.extend((op, origin, len(given), *given, len(made), *made))
            self.numbers.append(node.number)
            if node._tag is not None:  # pyright: ignore[reportPrivateUsage]
                self.tags[k] = node.tag
        self.outputs = [known[v] if v in known else number_of(v) for v in fgraph.outputs]
        self.ops, self.origins = ops.items, origins.items
        self.prototypes: list[Variable] = [v.clone() for v in prototypes.items]

    def __getstate__(self) -> Any:
        """The attributes, with origins and numbers of nodes as nodes are pickled with."""
        state = {name: getattr(self, name) for name in self.__slots__}
        state["origins"] = [locate(origin) for origin in self.origins]
        state["numbers"] = array("q", bytes(self.numbers.itemsize * len(self.numbers)))
        return None, state

    def unpack(self) -> FunctionGraph:
        """A graph of new nodes and variables, but for the inputs and constants."""
        variables, read = list(self.inputs), iter(self.code)
        for k, number in enumerate(self.numbers):
            (cls, op), origin = self.ops[next(read)], self.origins[next(read)]
            inputs = [self._variable(n, variables) for n in _counted(read)]
            outputs = [self.prototypes[n].clone() for n in _counted(read)]
            node = cls.assembled(op, inputs, outputs, number, origin, self.tags.get(k))
            variables += node.outputs
        results = [self._variable(n, variables) for n in self.outputs]
        mapping = dict(self.update_mapping)
        fgraph = FunctionGraph(self.inputs, results, clone=False, update_mapping=mapping)
        for feature in self.features:
            fgraph.attach_feature(feature.clone())
        return fgraph

    def _variable(self, number: int, variables: list[Variable]) -> Variable:
        """The variable of a number; ``variables`` are those that have appeared before."""
        while number >= len(variables):
            variables.append(self.roots[len(variables)])
        return variables[number]


def _kind(v: Variable) -> Any:
    """A key: results of equal keys are copies of each other."""
    if v.name is None and v._tag is None and v.origin is None:  # pyright: ignore[reportPrivateUsage]
        return type(v), id(v.type)
    return id(v)


def _counted(numbers: Iterator[int]) -> Iterator[int]:
    """As many of the numbers as the first of them says."""
    return islice(numbers, next(numbers))


class _Table:
    """Objects in order of their first appearance; the keys are compared."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, item: Any, key: Any) -> int:
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = len(self.items)
            self.items.append(item)
        return found
