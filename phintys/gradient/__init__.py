"""Differentiation: reverse and forward mode, Jacobians, and checks; see README.md."""

from phintys.errors import DisconnectedInputError, GradientError, NullTypeGradError
from phintys.gradient.barriers import (
    DisconnectedGrad,
    GradClip,
    GradScale,
    UndefinedGrad,
    ViewOp,
    ZeroGrad,
    consider_constant,
    disconnected_grad,
    disconnected_grad_,
    grad_clip,
    grad_not_implemented,
    grad_scale,
    grad_undefined,
    undefined_grad,
    undefined_grad_,
    zero_grad,
    zero_grad_,
)
from phintys.gradient.forward import Rop, pushforward, pushforward_through_pullback
from phintys.gradient.jacobian import hessian, hessian_vector_product, jacobian
from phintys.gradient.reverse import Lop, grad, pullback, subgraph_grad
from phintys.gradient.verify import numeric_grad, verify_grad
from phintys.graph.type import DisconnectedType, NullType, disconnected_type

__all__ = [
    "DisconnectedGrad",
    "DisconnectedInputError",
    "DisconnectedType",
    "GradClip",
    "GradScale",
    "GradientError",
    "Lop",
    "NullType",
    "NullTypeGradError",
    "Rop",
    "UndefinedGrad",
    "ViewOp",
    "ZeroGrad",
    "consider_constant",
    "disconnected_grad",
    "disconnected_grad_",
    "disconnected_type",
    "grad",
    "grad_clip",
    "grad_not_implemented",
    "grad_scale",
    "grad_undefined",
    "hessian",
    "hessian_vector_product",
    "jacobian",
    "numeric_grad",
    "pullback",
    "pushforward",
    "pushforward_through_pullback",
    "subgraph_grad",
    "undefined_grad",
    "undefined_grad_",
    "verify_grad",
    "zero_grad",
    "zero_grad_",
]
