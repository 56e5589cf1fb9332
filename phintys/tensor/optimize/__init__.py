"""Minima and roots of expressions, found by the iterative solvers of SciPy.

>>> import phintys, phintys.tensor as pt
>>> from phintys.tensor.optimize import minimize, root_scalar
>>> x, a = pt.dvectors("x", "a")
>>> solution, success = minimize(((x - a**2) ** 2).sum(), x)
>>> f = phintys.function([x, a], [solution, phintys.grad(solution.sum(), a)])
>>> [values.round(3).tolist() for values in f([0.0, 0.0], [1.0, 2.0])]
[[1.0, 4.0], [2.0, 4.0]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phintys.graph.ignored import ignores
from phintys.graph.replace import graph_replace
from phintys.graph.traversal import ancestors, truncated_graph_inputs
from phintys.graph.variable import Constant, Variable
from phintys.scalar.dtypes import is_discrete
from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import cast
from phintys.tensor.optimize.ops import (
    LRUCache1,
    MinimizeOp,
    MinimizeScalarOp,
    RootOp,
    RootScalarOp,
    ScipyScalarWrapperOp,
    ScipyVectorWrapperOp,
    ScipyWrapperOp,
)
from phintys.tensor.packing import pack, unpack
from phintys.tensor.variable import TensorVariable

__all__ = [
    "LRUCache1",
    "MinimizeOp",
    "MinimizeScalarOp",
    "RootOp",
    "RootScalarOp",
    "ScipyScalarWrapperOp",
    "ScipyVectorWrapperOp",
    "ScipyWrapperOp",
    "minimize",
    "minimize_scalar",
    "pack_inputs_of_objective",
    "root",
    "root_scalar",
]

#: a solution: a variable, or one for each of several unknowns
Solution = TensorVariable | list[TensorVariable]
Unknowns = TensorVariable | Sequence[TensorVariable]
Options = Mapping[str, Any] | None


@ignores("use_vectorized_jac")
def minimize(
    objective: TensorVariable,
    x: Unknowns,
    method: str = "BFGS",
    jac: bool = True,
    hess: bool = False,
    use_vectorized_jac: bool = False,
    optimizer_kwargs: Options = None,
) -> tuple[Solution, Variable]:
    """The minimum of an expression, by `scipy.optimize.minimize`.

    Parameters
    ----------
    objective : scalar that depends on ``x``
    x : float tensor of any rank, or a sequence of them; the solver starts at its value
    method : SciPy's name of the solver
    jac, hess : whether it is given the gradient, and the matrix of second derivatives
    use_vectorized_jac : without effect: derivatives are always computed for all elements at once
    optimizer_kwargs : further arguments of SciPy's function, such as ``{"tol": 1e-8}``

    Returns
    -------
    solution : of the type of ``x``, or a list of them; where the solver has stopped if it fails
    success : bool, whether the solver has converged

    ValueError if the objective is no scalar or does not depend on ``x``; TypeError if ``x`` is no
    variable, or has integers or bools.  The solution can be differentiated with respect to the
    other variables of the objective.
    """
    objective = _scalar(objective, "objective of minimize")
    x, shapes, objective = pack_inputs_of_objective(objective, x)
    args = _parameters(objective, x, "objective")
    op = MinimizeOp(
        x,
        *args,
        objective=objective,
        method=method,
        jac=jac,
        hess=hess,
        optimizer_kwargs=optimizer_kwargs,
    )
    solution, success = op(x, *args, return_list=True)
    return _unpacked(solution, shapes), success


def minimize_scalar(
    objective: TensorVariable,
    x: TensorVariable,
    method: str = "brent",
    bracket: TensorLike | None = None,
    bounds: TensorLike | None = None,
    optimizer_kwargs: Options = None,
) -> tuple[TensorVariable, Variable]:
    """The minimum of a function of a number, by `scipy.optimize.minimize_scalar`.

    Parameters
    ----------
    objective : scalar that depends on ``x``
    x : float scalar; its value does not count
    method : SciPy's name of the solver
    bracket : two or three points around a minimum, for ``"brent"`` and ``"golden"``
    bounds : the ends of an interval, for ``"bounded"``; both may be expressions
    optimizer_kwargs : further arguments of SciPy's function

    Returns the solution and whether the solver has converged, as `minimize`.  Derivatives are right
    only if the solution is inside of the bounds.  Errors are those of `minimize`; ValueError if
    ``x`` is no scalar.
    """
    _check_unknown(x)
    x = _scalar(x, "unknown of minimize_scalar")
    objective = _scalar(objective, "objective of minimize_scalar")
    args = _parameters(objective, x, "objective")
    names, values = _bounds(x, {"bracket": bracket, "bounds": bounds})
    op = MinimizeScalarOp(
        x,
        *args,
        objective=objective,
        method=method,
        optimizer_kwargs=optimizer_kwargs,
        bound_kwargs=names,
    )
    solution, success = op(x, *args, *values, return_list=True)
    return solution, success


@ignores("use_vectorized_jac")
def root(
    equations: TensorVariable,
    variables: Unknowns,
    method: str = "hybr",
    jac: bool = True,
    use_vectorized_jac: bool = False,
    optimizer_kwargs: Options = None,
) -> tuple[Solution, Variable]:
    """Where all elements of a tensor are zero, by `scipy.optimize.root`.

    Parameters
    ----------
    equations : float tensor that depends on ``variables``, of the same rank and length
    variables : float tensor, or a sequence of them, which are flattened to one vector
    method : SciPy's name of the solver
    jac : whether it is given the Jacobian
    use_vectorized_jac : without effect: derivatives are always computed for all elements at once
    optimizer_kwargs : further arguments of SciPy's function

    Returns the solution and whether the solver has converged, as `minimize`.  ValueError if the
    ranks differ, or the equations do not depend on ``variables``; TypeError if these are no
    variables, or have integers or bools.
    """
    equations = as_tensor_variable(equations)
    variables, shapes, equations = pack_inputs_of_objective(equations, variables)
    if variables.type.ndim != equations.type.ndim:
        raise ValueError(
            f"The variables of root have {variables.type.ndim} dimensions, and the equations "
            f"{equations.type.ndim}; they must have the same number."
        )
    args = _parameters(equations, variables, "equations")
    op = RootOp(
        variables,
        *args,
        equations=equations,
        method=method,
        jac=jac,
        optimizer_kwargs=optimizer_kwargs,
    )
    solution, success = op(variables, *args, return_list=True)
    return _unpacked(solution, shapes), success


def root_scalar(
    equation: TensorVariable,
    variable: TensorVariable,
    method: str = "secant",
    jac: bool = False,
    hess: bool = False,
    bracket: TensorLike | None = None,
    optimizer_kwargs: Options = None,
) -> tuple[TensorVariable, Variable]:
    """Where a function of a number is zero, by `scipy.optimize.root_scalar`.

    Parameters
    ----------
    equation : scalar that depends on ``variable``
    variable : float scalar; the solver starts at its value
    method : SciPy's name of the solver
    jac, hess : whether it is given the first and the second derivative
    bracket : the ends of an interval in which the sign changes, for ``"brentq"`` and the like;
        both may be expressions
    optimizer_kwargs : further arguments of SciPy's function

    Returns the solution and whether the solver has converged, as `minimize`.  Errors are those of
    `root`; ValueError if ``equation`` or ``variable`` is no scalar.

    >>> import phintys.tensor as pt
    >>> x, a = pt.dscalars("x", "a")
    >>> solution, success = root_scalar(x**2 - a, x, method="newton", jac=True)
    >>> solution.eval({x: 1.0, a: 9.0}).round(6), success.eval({x: 1.0, a: 9.0})
    (np.float64(3.0), array(True))
    """
    _check_unknown(variable)
    variable = _scalar(variable, "unknown of root_scalar")
    equation = _scalar(equation, "equation of root_scalar")
    args = _parameters(equation, variable, "equation")
    names, values = _bounds(variable, {"bracket": bracket})
    op = RootScalarOp(
        variable,
        *args,
        equation=equation,
        method=method,
        jac=jac,
        hess=hess,
        optimizer_kwargs=optimizer_kwargs,
        bound_kwargs=names,
    )
    solution, success = op(variable, *args, *values, return_list=True)
    return solution, success


def pack_inputs_of_objective(
    objective: TensorVariable, x: Unknowns
) -> tuple[TensorVariable, list[TensorVariable] | None, TensorVariable]:
    """One unknown in place of several.

    Returns the vector of the elements of all tensors ``x``, the shapes of these, and the objective
    as an expression of the vector; a single tensor is returned as it is, with None for the shapes.
    TypeError if an unknown is no variable, or has integers or bools.
    """
    for unknown in x if isinstance(x, Sequence) else [x]:
        _check_unknown(unknown)
    if isinstance(x, Variable):
        return x, None, objective
    packed, shapes = pack(*x)
    parts = [cast(part, v.type.dtype) for part, v in zip(unpack(packed, shapes), x)]
    replaced = graph_replace(objective, dict(zip(x, parts)))
    return packed, shapes, as_tensor_variable(replaced)


def _unpacked(solution: TensorVariable, shapes: Sequence[TensorVariable] | None) -> Solution:
    return solution if shapes is None else unpack(solution, shapes)


def _scalar(x: TensorLike, what: str) -> TensorVariable:
    """``x`` as a variable; ValueError if it has dimensions."""
    found = as_tensor_variable(x)
    if found.type.ndim != 0:
        raise ValueError(f"The {what} must be a scalar (0-dimensional); its type is {found.type}.")
    return found


def _check_unknown(x: TensorVariable) -> None:
    """TypeError if ``x`` is no variable, or has integers or bools: a solution would be rounded."""
    if not isinstance(x, TensorVariable):
        raise TypeError(f"An unknown is a tensor variable, not {x!r} ({type(x).__name__}).")
    if is_discrete(x.type.dtype):
        raise TypeError(
            f"The unknown {x} has dtype {x.type.dtype}, and the values that a solver finds are "
            'floats. Declare it as a float, for instance with dtype="float64".'
        )


def _parameters(function: Variable, x: Variable, what: str) -> list[Variable]:
    """The variables closest to ``function`` that it depends on besides ``x``.

    ValueError if it does not depend on ``x``.
    """
    if x not in ancestors([function]):
        raise ValueError(f"{x} is not an input of the graph of the {what}.")
    found = truncated_graph_inputs([function], [x])
    return [v for v in found if v is not x and not isinstance(v, Constant)]


def _bounds(
    x: TensorVariable, given: Mapping[str, TensorLike | None]
) -> tuple[list[str], list[TensorVariable]]:
    """The names of the bounds that are given, and these as vectors of the dtype of ``x``."""
    wanted = {name: value for name, value in given.items() if value is not None}
    return list(wanted), [cast(as_tensor_variable(v), x.type.dtype) for v in wanted.values()]
