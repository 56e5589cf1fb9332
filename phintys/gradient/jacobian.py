"""Matrices of derivatives, built from both modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.gradient.reverse import OnDisconnected, grad, in_form_of, pullback, variables_of
from phintys.gradient.rules import derivative_dtype
from phintys.graph.variable import Variable, late_bound
from phintys.graph.vectorize import vectorize_graph


def jacobian(
    expression: Variable,
    wrt: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
    vectorize: bool = True,
) -> Any:
    """The Jacobian of ``expression``: shape of the expression + shape of the variable.

    One pullback is vectorized over all unit cotangents.  ``vectorize`` is accepted for
    compatibility; there is one way.  The result has the form of ``wrt``.

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> phintys.jacobian(x**2, x).eval({x: [1.0, 2.0]})
    array([[2., 0.],
           [0., 4.]])
    """
    variables: list[Any] = variables_of(wrt, "wrt")
    expr: Any = expression
    if not hasattr(getattr(expr, "type", None), "ndim"):
        raise TypeError(f"jacobian needs a tensor expression, not {expr!r}.")
    for v in (expr, *variables):
        if getattr(v.type, "dtype", "")[:1] == "c":
            raise TypeError(f"jacobian is not defined for complex variables; {v} is of {v.type}.")
    if expr.type.ndim == 0:
        rows = grad(expr, variables, consider_constant, disconnected_inputs, add_names=False)
        return in_form_of(wrt, rows)
    flat = expr.flatten()
    u = flat.type.clone(dtype=derivative_dtype(flat))("cotangent")
    back = pullback(flat, variables, u, consider_constant, disconnected_inputs)
    units = late_bound["eye"](flat.shape[0], dtype=u.type.dtype)
    rows = vectorize_graph(back, {u: units})
    rows = [_repeated(g, units) if r is g else r for r, g in zip(rows, back)]
    if expr.type.ndim > 1:
        shape = [expr.shape[i] for i in range(expr.type.ndim)]
        rows = [
            r.reshape((*shape, *(x.shape[i] for i in range(x.type.ndim))))
            for r, x in zip(rows, variables)
        ]
    return in_form_of(wrt, rows)


def _repeated(g: Any, units: Any) -> Any:
    """A pullback that does not depend on the cotangent (zeros), for every unit."""
    return late_bound["alloc"](g, units.shape[0], *(g.shape[i] for i in range(g.type.ndim)))


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
    variables = variables_of(wrt, "wrt")
    if getattr(cost.type, "ndim", None) != 0:
        raise TypeError(f"hessian needs a scalar cost; {cost} has type {cost.type}.")
    for v in variables:
        if getattr(v.type, "ndim", None) != 1:
            raise ValueError(f"hessian needs vectors; {v} has type {v.type}.")
    first = grad(cost, variables, consider_constant, disconnected_inputs, add_names=False)
    # a linear cost has a gradient that depends on nothing: zeros, not an error
    second = [jacobian(g, v, consider_constant, "ignore") for g, v in zip(first, variables)]
    return in_form_of(wrt, second)


def hessian_vector_product(cost: Variable, wrt: Any, p: Any, **grad_kwargs: Any) -> Any:
    """The product of the Hessian of ``cost`` with ``p``, without building the matrix.

    ``wrt`` and ``p`` are a variable or lists of variables of equal shapes; the result has the form
    of ``wrt``.  ``p`` is held constant, even where it depends on ``wrt``.

    >>> import phintys, phintys.tensor as pt
    >>> x, p = pt.dvector("x"), pt.dvector("p")
    >>> phintys.hessian_vector_product((x**3).sum(), x, p).eval({x: [1.0, 2.0], p: [1.0, 1.0]})
    array([ 6., 12.])
    """
    variables = variables_of(wrt, "wrt")
    points = list(p) if isinstance(p, list | tuple) else [p]
    options: dict[str, Any] = {"add_names": False, **grad_kwargs}
    first = grad(cost, variables, **options)
    constant = grad_kwargs.get("consider_constant")
    products = pullback(first, variables, points, constant, disconnected_inputs="ignore")
    return in_form_of(wrt, products)
