"""A mark of what rules for stable forms leave as it is written."""

from __future__ import annotations

from phintys.gradient.barriers import TypeCastingOp
from phintys.graph.variable import Apply, Variable
from phintys.tensor.variable import Tensors


class AsWritten(TypeCastingOp):
    """The identity, through which rules for stable forms do not look.

    The rules of phase specialize remove it.
    """

    def make_node(self, x: Variable) -> Apply:
        return Apply(self, [x], [x.type.make_variable()])

    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        return list(cotangents)

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        return list(tangents)

    def vectorize_node(self, node: Apply, *batched_inputs: Variable) -> Apply:
        return self.make_node(*batched_inputs)


as_written = AsWritten()
