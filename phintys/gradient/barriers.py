"""Identities that change how a gradient passes, and gradients that are not defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.gradient.rules import zeros_like
from phintys.graph.op import Op
from phintys.graph.type import NullType, disconnected_type
from phintys.graph.variable import Apply, Variable, late_bound


class ViewOp(Op):
    """The identity; subclasses change its derivative.  Removed once gradients are taken."""

    __props__ = ()
    view_map = {0: [0]}

    def make_node(self, *inputs: Any) -> Apply:
        (x,) = inputs
        x = x if isinstance(x, Variable) else late_bound["as_tensor_variable"](x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return shapes

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return list(cotangents)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return list(tangents)

    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        return self.make_node(*batched_inputs)

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        return inputs[0]


class DisconnectedGrad(ViewOp):
    """No gradient passes: the input counts as disconnected."""

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [disconnected_type()]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [disconnected_type()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


class ZeroGrad(ViewOp):
    """The gradient is zero."""

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [zeros_like(inputs[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [zeros_like(outputs[0])]


class UndefinedGrad(ViewOp):
    """The gradient is not defined: asking for it raises `NullTypeGradError`."""

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [grad_undefined(self, 0, inputs[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [grad_undefined(self, 0, inputs[0])]


class GradClip(ViewOp):
    """The cotangent is clipped to [clip_lower_bound, clip_upper_bound]; tangents pass."""

    __props__ = ("clip_lower_bound", "clip_upper_bound")

    def __init__(self, clip_lower_bound: float, clip_upper_bound: float) -> None:
        if not clip_lower_bound <= clip_upper_bound:
            raise ValueError(
                f"The bounds of a clipped gradient are in the wrong order: {clip_lower_bound} is "
                f"above {clip_upper_bound}."
            )
        self.clip_lower_bound, self.clip_upper_bound = clip_lower_bound, clip_upper_bound

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (g,) = cotangents
        return [g.clip(self.clip_lower_bound, self.clip_upper_bound)]


class GradScale(ViewOp):
    """Cotangents and tangents are multiplied by a number."""

    __props__ = ("multiplier",)

    def __init__(self, multiplier: float) -> None:
        self.multiplier = multiplier

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [cotangents[0] * self.multiplier]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [tangents[0] * self.multiplier]


disconnected_grad_ = DisconnectedGrad()
zero_grad_ = ZeroGrad()
undefined_grad_ = UndefinedGrad()


def disconnected_grad(x: Any) -> Any:
    """``x``, treated as disconnected by differentiation."""
    return disconnected_grad_(x)


def zero_grad(x: Any) -> Any:
    """``x``, with gradient zero."""
    return zero_grad_(x)


def undefined_grad(x: Any) -> Any:
    """``x``, whose gradient is an error to ask for."""
    return undefined_grad_(x)


def consider_constant(x: Any) -> Any:
    """``x``, treated as a constant by differentiation (an older name of `zero_grad`)."""
    return zero_grad_(x)


def grad_clip(x: Any, lower_bound: float, upper_bound: float) -> Any:
    """``x``, whose gradient is clipped to the bounds."""
    return GradClip(lower_bound, upper_bound)(x)


def grad_scale(x: Any, multiplier: float) -> Any:
    """``x``, whose gradient is multiplied by a number."""
    return GradScale(multiplier)(x)


def grad_undefined(op: Any, x_pos: int, x: Any, comment: str = "") -> Variable:
    """For reverse rules: the gradient in input ``x_pos`` is mathematically not defined."""
    reason = f"{op} is not differentiable in its input {x_pos}. {comment}".strip()
    return NullType(reason)()


def grad_not_implemented(op: Any, x_pos: int, x: Any, comment: str = "") -> Variable:
    """For reverse rules: the gradient in input ``x_pos`` exists but is not known to the op."""
    reason = f"{op} does not know its gradient in input {x_pos}. {comment}".strip()
    return NullType(reason)()
