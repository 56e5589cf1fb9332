"""Identity ops that change the derivative of their input, and derivatives that are undefined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.gradient.rules import zeros_like
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.type import NullType, disconnected_type
from phintys.graph.variable import Apply, Variable, late_bound


class TypeCastingOp(Op):
    """The base class of ops whose result is their input, as a variable of another type.

    A subclass defines ``make_node``.  It has no derivatives, unless the subclass defines them.

    >>> import phintys, phintys.tensor as pt
    >>> class Positive(TypeCastingOp):
    ...     def make_node(self, x):
    ...         return phintys.Apply(self, [x], [x.type.make_variable()])
    >>> x = pt.dscalar("x")
    >>> phintys.function([x], pt.exp(Positive()(x)))(0.0)
    array(1.)
    """

    __props__ = ()
    view_map = {0: [0]}

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        return [x]

    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        return inputs[0]


class ViewOp(TypeCastingOp):
    """The identity op; subclasses change its derivative.  Rewriting removes them all.

    >>> import phintys, phintys.tensor as pt
    >>> class ReverseGrad(ViewOp):
    ...     def pullback(self, inputs, outputs, cotangents):
    ...         return [-cotangents[0]]
    >>> x = pt.dscalar("x")
    >>> phintys.grad(ReverseGrad()(x) ** 2, x).eval({x: 3.0})
    array(-6.)
    """

    def make_node(self, *inputs: Any) -> Apply:
        (x,) = inputs
        x = x if isinstance(x, Variable) else late_bound["as_tensor_variable"](x)
        return Apply(self, [x], [x.type.make_variable()])

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return list(cotangents)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return list(tangents)

    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        return self.make_node(*batched_inputs)


class DeepCopyOp(ViewOp):
    """The identity, whose result has memory of its own."""

    view_map = {}

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        output_storage[0][0] = node.inputs[0].type.copy_value(inputs[0])


view_op = ViewOp()
deep_copy_op = DeepCopyOp()


class DisconnectedGrad(ViewOp):
    """The identity without derivative: its input is disconnected; see `disconnected_grad`."""

    not_differentiable = "that is its purpose: `disconnected_grad`"

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [disconnected_type()]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [disconnected_type()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


class ZeroGrad(ViewOp):
    """The identity with derivative zero; see `zero_grad`."""

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [zeros_like(inputs[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [zeros_like(outputs[0])]


class UndefinedGrad(ViewOp):
    """The identity with an undefined derivative; see `undefined_grad`."""

    not_differentiable = "that is its purpose: `undefined_grad`"

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [grad_undefined(self, 0, inputs[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [grad_undefined(self, 0, inputs[0])]


class GradClip(ViewOp):
    """The identity whose cotangents are clipped to [clip_lower_bound, clip_upper_bound].

    Real and imaginary parts of complex ones are clipped separately.  Tangents are not changed.
    ValueError if the lower bound is above the upper one.  See `grad_clip`.
    """

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
        bounds = self.clip_lower_bound, self.clip_upper_bound
        if g.type.is_complex:
            return [g.real.clip(*bounds) + 1j * g.imag.clip(*bounds)]
        return [g.clip(*bounds)]


class GradScale(ViewOp):
    """The identity whose cotangents and tangents are multiplied by a number; see `grad_scale`."""

    __props__ = ("multiplier",)

    def __init__(self, multiplier: float) -> None:
        self.multiplier = multiplier

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [cotangents[0] * self.multiplier]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [tangents[0] * self.multiplier]


class KnownSlopes(ViewOp):
    """The first input; its derivatives in the next n are the last n.  See `known_slopes`."""

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [inputs[0].type.make_variable()])

    def shape_rule(self, s: ShapeContext, x: Shape, *others: Shape) -> list[Shape]:
        return [x]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        n = node.nin // 2
        return [[False], *[[True]] * n, *[[False]] * n]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        (g,) = cotangents
        n = len(inputs) // 2
        unknown = disconnected_type()
        return [unknown, *(g * slope for slope in inputs[n + 1 :]), *[unknown] * n]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        n = len(inputs) // 2
        pairs = zip(tangents[1 : n + 1], inputs[n + 1 :], strict=True)
        terms = [t * slope for t, slope in pairs]
        return [outputs[0].type.tangent_sum(terms) if len(terms) > 1 else terms[0]]


disconnected_grad_ = DisconnectedGrad()
zero_grad_ = ZeroGrad()
undefined_grad_ = UndefinedGrad()
known_slopes_ = KnownSlopes()


def disconnected_grad(x: Any) -> Any:
    """A variable of the type and value of ``x``; differentiation treats it as independent of ``x``.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> phintys.grad(x * disconnected_grad(x), x).eval({x: 3.0})
    array(3.)
    """
    return disconnected_grad_(x)


def zero_grad(x: Any) -> Any:
    """A variable of the type and value of ``x``, with derivative zero.

    Unlike with `disconnected_grad`, a gradient through it alone is zero, not an error.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> phintys.grad(zero_grad(x) ** 2, x).eval({x: 3.0})
    array(0.)
    """
    return zero_grad_(x)


def undefined_grad(x: Any) -> Any:
    """A variable of the type and value of ``x``, whose gradient raises `NullTypeGradError`.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> phintys.grad(undefined_grad(x) ** 2, x)
    Traceback (most recent call last):
    phintys.errors.NullTypeGradError: The gradient with respect to x is not defined: ...
    """
    return undefined_grad_(x)


def consider_constant(x: Any) -> Any:
    """Older name of `zero_grad`."""
    return zero_grad_(x)


def grad_clip(x: Any, lower_bound: float, upper_bound: float) -> Any:
    """A variable of the type and value of ``x``, whose gradient is clipped to the bounds.

    ValueError if ``lower_bound`` is above ``upper_bound``.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> phintys.grad((grad_clip(x, -1, 1) ** 2).sum(), x).eval({x: [-3.0, 0.25]})
    array([-1. ,  0.5])
    """
    return GradClip(lower_bound, upper_bound)(x)


def grad_scale(x: Any, multiplier: float) -> Any:
    """A variable of the type and value of ``x``, whose derivative is multiplied by a number.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> phintys.grad(grad_scale(x, -1) ** 2, x).eval({x: 3.0})
    array(-6.)
    """
    return GradScale(multiplier)(x)


def known_slopes(x: Any, variables: Sequence[Any], slopes: Sequence[Any]) -> Any:
    """A variable of the type and value of ``x``, with given derivatives in ``variables``.

    Each of ``variables`` has the type of ``x``, and each of ``slopes`` can be multiplied with it.
    Differentiation treats the result as independent of all other variables.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dscalar("x")
    >>> phintys.grad(known_slopes(x**2, [x], [2 * x]), x).eval({x: 3.0})
    array(6.)
    """
    return known_slopes_(x, *variables, *slopes)


def grad_undefined(op: Any, x_pos: int, x: Any, comment: str = "") -> Variable:
    """What ``op.pullback`` returns for input ``x_pos`` if the gradient in it is not defined.

    The result is a variable of `NullType`, whose reason names the op and contains ``comment``.

    >>> import phintys.tensor as pt
    >>> grad_undefined(pt.floor, 0, pt.dvector("x"), "It has jumps.").type.why_null
    'Floor is not differentiable in its input 0. It has jumps.'
    """
    reason = f"{op} is not differentiable in its input {x_pos}. {comment}".strip()
    return NullType(reason)()


def grad_not_implemented(op: Any, x_pos: int, x: Any, comment: str = "") -> Variable:
    """What ``op.pullback`` returns for input ``x_pos`` if its gradient is not implemented.

    The result is a variable of `NullType`, whose reason names the op and contains ``comment``.
    """
    reason = f"{op} does not know its gradient in input {x_pos}. {comment}".strip()
    return NullType(reason)()
