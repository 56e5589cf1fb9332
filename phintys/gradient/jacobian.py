"""Matrices of derivatives, built from both modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.gradient.reverse import OnDisconnected, grad, pullback
from phintys.graph.vectorize import vectorize_graph
from phintys.graph.variable import Variable, late


def jacobian(
    expression: Variable,
    wrt: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
    vectorize: bool = True,
) -> Any:
    """The Jacobian of ``expression``: shape of the expression + shape of the variable.

    One pullback is vectorised over all unit cotangents.  ``vectorize`` is accepted for compatibility; there is one
    way.  The result has the form of ``wrt``.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> phintys.jacobian(x**2, x).eval({x: [1.0, 2.0]})
    array([[2., 0.],
           [0., 4.]])
    """
    variables = [wrt] if isinstance(wrt, Variable) else list(wrt)
    expr: Any = expression
    if not isinstance(expr, Variable) or not hasattr(expr.type, "ndim"):
        raise TypeError(f"jacobian needs a tensor expression, not {expression!r}.")
    if expr.ndim == 0:
        rows = grad(expr, variables, consider_constant, disconnected_inputs)
    else:
        flat = expr.flatten()
        v = flat.type("cotangent")
        back = pullback(flat, variables, v, consider_constant, disconnected_inputs)
        units = late["eye"](flat.shape[0], dtype=flat.type.dtype)
        rows = vectorize_graph(back, {v: units})
        shape = [expr.shape[i] for i in range(expr.ndim)]
        rows = [
            r if expr.ndim == 1 else r.reshape((*shape, *(x.shape[i] for i in range(x.ndim))))
            for r, x in zip(rows, variables)
        ]
    if isinstance(wrt, Variable):
        return rows[0]
    return tuple(rows) if isinstance(wrt, tuple) else list(rows)


def hessian(
    cost: Variable,
    wrt: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
) -> Any:
    """The matrix of second derivatives of a scalar with respect to a vector (or each of several).

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> phintys.hessian((x**3).sum(), x).eval({x: [1.0, 2.0]})
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    variables = [wrt] if isinstance(wrt, Variable) else list(wrt)
    if getattr(cost.type, "ndim", None) != 0:
        raise TypeError(f"hessian needs a scalar cost; {cost} has type {cost.type}.")
    for v in variables:
        if getattr(v.type, "ndim", None) != 1:
            raise TypeError(f"hessian needs vectors; {v} has type {v.type}.")
    first = grad(cost, variables, consider_constant, disconnected_inputs)
    out = [jacobian(g, v, consider_constant, "ignore") for g, v in zip(first, variables)]
    if isinstance(wrt, Variable):
        return out[0]
    return tuple(out) if isinstance(wrt, tuple) else out


def hessian_vector_product(cost: Variable, wrt: Any, p: Any, **grad_kwargs: Any) -> Any:
    """The product of the Hessian of ``cost`` with ``p``, without building the matrix.

    ``wrt`` and ``p`` are a variable or lists of variables of equal shapes; the result has the form of ``wrt``.

    >>> import phintys, phintys.tensor as pt
    >>> x, p = pt.dvector("x"), pt.dvector("p")
    >>> phintys.hessian_vector_product((x**3).sum(), x, p).eval({x: [1.0, 2.0], p: [1.0, 1.0]})
    array([ 6., 12.])
    """
    single = isinstance(wrt, Variable)
    variables = [wrt] if single else list(wrt)
    points = [p] if single else list(p)
    first = grad(cost, variables, **grad_kwargs)
    out = pullback(first, variables, points, disconnected_inputs="ignore")
    if single:
        return out[0]
    return tuple(out) if isinstance(wrt, tuple) else out
