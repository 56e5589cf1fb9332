"""`OpFromGraph` and functions for authors of ops that contain graphs, where PyTensor has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phintys.graph.fgraph import FunctionGraph
from phintys.graph.replace import graph_replace
from phintys.graph.variable import NominalVariable, Variable
from phintys.inner.from_graph import OpFromGraph
from phintys.inner.shapes import infer_shape
from phintys.inner.symbolic import FinalizedOpFromGraph, SymbolicOp

__all__ = [
    "FinalizedOpFromGraph",
    "OpFromGraph",
    "SymbolicOp",
    "construct_nominal_fgraph",
    "infer_shape",
]


def construct_nominal_fgraph(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    *,
    replace: Mapping[Variable, Variable] | None = None,
) -> FunctionGraph:
    """A FunctionGraph equal to that between ``inputs`` and ``outputs``, on `NominalVariable` s.

    ``replace`` maps variables of the graph to others, which take their places first.
    MissingInputError if the outputs depend on a variable that is neither an input nor a constant.

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> construct_nominal_fgraph([x], [x + 1]).inputs
    [NominalTensorVariable(0, TensorType(float64, shape=(None,)))]
    """
    outputs = graph_replace(list(outputs), dict(replace or {}), strict=False)
    nominal: list[Variable] = [NominalVariable(i, v.type) for i, v in enumerate(inputs)]
    outputs = graph_replace(outputs, dict(zip(inputs, nominal, strict=True)), strict=False)
    return FunctionGraph(nominal, outputs, clone=False)
