"""Jacobian and Hessian matrices, and products with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phintys.gradient.reverse import OnDisconnected, grad, in_form_of, pullback, variables_of
from phintys.graph.ignored import ignores
from phintys.graph.variable import Variable
from phintys.graph.vectorize import vectorize_graph


@ignores("vectorize")
def jacobian(
    expression: Variable,
    wrt: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
    vectorize: bool = True,
) -> Any:
    """The Jacobian of ``expression`` with respect to ``wrt``, by a batched pullback.

    Parameters
    ----------
    expression
        a real tensor of any rank
    wrt
        a real tensor, or a list or tuple of them; the result has the same form
    consider_constant, disconnected_inputs
        see `grad`
    vectorize
        ignored: the pullback is always batched over all unit cotangents

    The shape of a result is the shape of ``expression`` followed by that of the variable, its dtype
    that of the variable (floatX for integers).

    Raises
    ------
    TypeError
        if ``expression`` is not a tensor, or a variable is complex
    DisconnectedInputError
        see `grad`

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
        if v.type.is_complex:
            raise TypeError(f"jacobian is not defined for complex variables; {v} is of {v.type}.")
    if expr.type.ndim == 0:
        gradients = grad(expr, variables, consider_constant, disconnected_inputs, add_names=False)
        return in_form_of(wrt, gradients)
    flat = expr.flatten()
    cotangent = flat.type.tangent_type("cotangent")
    products = pullback(flat, variables, cotangent, consider_constant, disconnected_inputs)
    unit_vectors = flat.type.tangent_basis(flat)
    batched = vectorize_graph(products, {cotangent: unit_vectors})
    n = unit_vectors.shape[0]
    # a pullback that does not depend on the cotangent (zeros) is not batched
    jacobians = [g._repeated(n) if j is g else j for j, g in zip(batched, products)]
    if expr.type.ndim > 1:
        shape = [expr.shape[i] for i in range(expr.type.ndim)]
        jacobians = [
            j.reshape((*shape, *(x.shape[i] for i in range(x.type.ndim))))
            for j, x in zip(jacobians, variables)
        ]
    return in_form_of(wrt, jacobians)


def hessian(
    cost: Variable,
    wrt: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: OnDisconnected = "raise",
) -> Any:
    """The matrix of second derivatives of a scalar ``cost`` with respect to a vector.

    Parameters
    ----------
    cost
        0-d real variable
    wrt
        a vector, or a list or tuple of vectors; the result has the same form: for a vector of
        length n, its own n x n block of the Hessian
    consider_constant, disconnected_inputs
        see `grad`

    Raises
    ------
    ValueError
        if ``cost`` is not a scalar, or a variable is not a vector

    >>> import phintys, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> phintys.hessian((x**3).sum(), x).eval({x: [1.0, 2.0]})
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    variables = variables_of(wrt, "wrt")
    if getattr(cost.type, "ndim", None) != 0:
        raise ValueError(f"hessian needs a scalar cost; {cost} has type {cost.type}.")
    for v in variables:
        if getattr(v.type, "ndim", None) != 1:
            raise ValueError(f"hessian needs vectors; {v} has type {v.type}.")
    first = grad(cost, variables, consider_constant, disconnected_inputs, add_names=False)
    # "ignore", because the gradient of a linear cost depends on nothing: its Jacobian is zero
    second = [jacobian(g, v, consider_constant, "ignore") for g, v in zip(first, variables)]
    return in_form_of(wrt, second)


def hessian_vector_product(cost: Variable, wrt: Any, p: Any, **grad_kwargs: Any) -> Any:
    """The product of the Hessian of ``cost`` with ``p``, without building the matrix.

    Parameters
    ----------
    cost
        0-d real variable
    wrt
        a variable, or a list or tuple of variables; the result has the same form, and shapes and
        dtypes of ``wrt``
    p
        one variable for each of ``wrt``, of the same shape; it is held constant, even where it
        depends on ``wrt``
    **grad_kwargs
        passed to `grad`, which computes the first derivative

    Raises
    ------
    TypeError, ValueError
        as `grad` and `pullback`

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
