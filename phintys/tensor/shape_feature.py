"""`ShapeFeature`: the lengths of the variables of a FunctionGraph, for programs that attach it."""

from __future__ import annotations

from typing import Any

from phintys.errors import AlreadyThere
from phintys.graph.features import Feature
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.traversal import toposort
from phintys.graph.type import HasShape
from phintys.graph.variable import Apply, Variable
from phintys.rewriting.rewriter import GraphRewriter
from phintys.tensor.shape import shape_tuple

__all__ = ["ShapeFeature", "ShapeOptimizer"]

#: lengths as 0-d int64 variables; None: of a variable without a shape
Lengths = tuple[Any, ...] | None


class ShapeFeature(Feature):
    """Knows the lengths of variables as expressions of the lengths of inputs.

    It is the attribute ``shape_feature`` of the graph that it is attached to; a graph has one.  The
    rules of this package do not need it: they ask the ops themselves.

    >>> import phintys.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> out = pt.exp(x).T
    >>> fgraph = FunctionGraph([x], [out], clone=False, features=[ShapeFeature()])
    >>> fgraph.shape_feature.get_shape(out, 0)
    Shape_i{1}.0
    """

    def __init__(self) -> None:
        self.known: dict[Variable, Lengths] = {}

    def on_attach(self, fgraph: Any) -> None:
        if hasattr(fgraph, "shape_feature"):
            raise AlreadyThere("The graph has a ShapeFeature already.")
        fgraph.shape_feature = self

    def on_detach(self, fgraph: Any) -> None:
        del fgraph.shape_feature

    def clone(self) -> ShapeFeature:
        return type(self)()

    def shape_tuple(self, r: Variable) -> Lengths:
        """The lengths of a variable as 0-d int64 variables; None if its type has no shape."""
        if r not in self.known:
            for node in toposort([r], blockers=self.known):
                self._learn(node)
        return self._lengths(r)

    def get_shape(self, var: Variable, idx: int) -> Any:
        """The length of an axis; ValueError if the type of the variable has no shape."""
        lengths = self.shape_tuple(var)
        if lengths is None:
            raise ValueError(f"{var} of type {var.type} has no shape.")
        return lengths[idx]

    def _learn(self, node: Apply) -> None:
        given: Any = [self._lengths(v) or () for v in node.inputs]
        found = node.op.infer_shape(node, given)
        for v, lengths in zip(node.outputs, found, strict=True):
            self.known[v] = _own_lengths(v) if lengths is None else tuple(lengths)

    def _lengths(self, v: Variable) -> Lengths:
        if v not in self.known:
            self.known[v] = _own_lengths(v)
        return self.known[v]


def _own_lengths(v: Variable) -> Lengths:
    """The lengths of a variable as functions of its value."""
    return shape_tuple(v) if isinstance(v.type, HasShape) else None


class ShapeOptimizer(GraphRewriter):
    """A graph rewriter that attaches a `ShapeFeature`."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        fgraph.attach_feature(ShapeFeature())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Do nothing: the feature is attached before any rewriter runs."""
