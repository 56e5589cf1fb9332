"""NumPy's functions on tensor variables: ``np.exp(x)`` and ``np.stack([x, y])`` are variables.

NumPy calls `TensorVariable.__array_ufunc__` for its ufuncs and `TensorVariable.__array_function__`
for its other functions, if one of their arguments is a variable (NEP 13, NEP 18).  These are the
symbolic functions that take their places:

`ufunc_table`
    the rows of the scalar table, by the function of NumPy or SciPy that each names, and a few more
`function_table`
    by name.  An argument that the symbolic function does not have, such as ``out``, must be absent
    or have NumPy's default

Whatever the tables do not contain raises TypeError, with the name of the function and a substitute.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import phintys.tensor as pt
from phintys.memo import Memo
from phintys.scalar.op import TABLE
from phintys.tensor import numpy_functions, numpy_linalg
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import elementwise
from phintys.tensor.methods import is_operand
from phintys.tensor.scalar_functions import FUNCTIONS
from phintys.tensor.standard import fft

# ------------------------------------------------------------------------------- ufuncs

#: Reductions of ufuncs, by name: ``np.add.reduce`` is ``sum``.
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": pt.sum,
    "multiply": pt.prod,
    "maximum": pt.max,
    "minimum": pt.min,
    "logical_and": pt.all,
    "logical_or": pt.any,
    "logaddexp": pt.logsumexp,
}
#: Accumulations of ufuncs, by name.
ACCUMULATIONS: dict[str, Callable[..., Any]] = {
    "add": numpy_functions.cumsum,
    "multiply": numpy_functions.cumprod,
}
#: What to write for methods of ufuncs that have no symbolic form.
METHODS = {
    "at": "x[i].inc(y) or x[i].set(y)",
    "reduceat": "reductions of slices of x",
    "reduce": "a reduction such as x.sum()",
    "accumulate": "x.cumsum() or x.cumprod()",
    "outer": "the function of x[..., None] and y",
}
#: Arguments that have no symbolic form, and what to write.
ARGUMENTS = {
    "out": "a name for the result: variables and arrays are not written to",
    "where": "phintys.tensor.switch(where, result, otherwise)",
    "dtype": "astype",
    "initial": "the result with the initial value applied to it",
}

#: NumPy's defaults of arguments that the symbolic functions do not have; others are None.
DEFAULTS: dict[str, Any] = {
    "where": True,
    "order": "K",
    "subok": True,
    "casting": "same_kind",
    "keepdims": False,
}
_NO_VALUE: Any = getattr(np, "_NoValue", None)


@cache
def ufunc_table() -> dict[np.ufunc, Callable[..., Any]]:
    """The symbolic functions of NumPy's ufuncs."""
    found: dict[str, Callable[..., Any]] = {}
    for op in TABLE.values():
        module, _, name = op.function.rpartition(".")
        found.setdefault(name if module == "numpy" else op.name, elementwise(op))
    found |= {name: getattr(numpy_functions, name) for name in numpy_functions.UFUNCS}
    found |= {name: getattr(pt, name) for name in ("matmul", "matvec")}
    pairs = ((getattr(np, name, None), function) for name, function in found.items())
    return {ufunc: function for ufunc, function in pairs if isinstance(ufunc, np.ufunc)}


def _ufunc_of_scipy(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """The elementwise function with the name of a ufunc of ``scipy.special``."""
    special = sys.modules.get("scipy.special")
    known = special is not None and getattr(special, ufunc.__name__, None) is ufunc
    return FUNCTIONS.get(ufunc.__name__) if known else None


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], given: dict[str, Any]) -> Any:
    """What ``TensorVariable.__array_ufunc__`` returns: the symbolic result, or NotImplemented.

    TypeError if the ufunc, its method or one of its arguments has no symbolic form.
    """
    for x in inputs:
        if not is_operand(x):
            return NotImplemented
    function = ufunc_table().get(ufunc)
    if function is not None and method == "__call__" and not given:
        return function(*inputs)
    function = function or _ufunc_of_scipy(ufunc)
    name = _name_of(ufunc)
    if function is None:
        raise TypeError(_refused(name))
    if method == "__call__":
        _accept(name, given, ())
        return function(*inputs)
    name = f"{name}.{method}"
    if method == "reduce" and ufunc.__name__ in REDUCTIONS:
        return _reduced(name, REDUCTIONS[ufunc.__name__], *inputs, **given)
    if method == "accumulate" and ufunc.__name__ in ACCUMULATIONS:
        return _accumulated(name, ACCUMULATIONS[ufunc.__name__], *inputs, **given)
    if method == "outer" and ufunc.signature is None:
        _accept(name, given, ())
        return _outer(function, *inputs)
    raise TypeError(f"{name} of symbolic variables is not defined: write {METHODS[method]}.")


def _name_of(ufunc: np.ufunc) -> str:
    module = "numpy" if getattr(np, ufunc.__name__, None) is ufunc else "scipy.special"
    return f"{module}.{ufunc.__name__}"


def _accept(name: str, given: dict[str, Any], accepted: Sequence[str]) -> dict[str, Any]:
    """The accepted arguments among those given; TypeError for others, but for NumPy's defaults."""
    found: dict[str, Any] = {}
    for argument, value in given.items():
        if argument == "out" and isinstance(value, tuple) and all(x is None for x in value):
            continue
        if argument in accepted and value is not _NO_VALUE:
            found[argument] = value
        elif not _is_default(value, DEFAULTS.get(argument)):
            raise TypeError(_refused_argument(name, argument))
    return found


def _is_default(value: Any, default: Any) -> bool:
    """Whether an argument is None, or has its default; arrays and variables have not."""
    if value is None or value is default or value is _NO_VALUE:
        return True
    return (
        type(value) is type(default) and isinstance(value, str | int | float) and value == default
    )


def _refused_argument(name: str, argument: str) -> str:
    hint = ARGUMENTS.get(argument)
    end = f": write {hint}." if hint else "."
    return f"{name} of symbolic variables does not take the argument {argument}{end}"


def _reduced(
    name: str, function: Callable[..., Any], x: Any, axis: Any = 0, *more: Any, **given: Any
) -> Any:
    named = dict(zip(("dtype", "out", "keepdims"), more)) | given
    accepted = _signature(function).parameters.keys() & {"dtype", "keepdims"}
    named = _accept(name, named, tuple(accepted))
    return function(as_tensor_variable(x), axis=axis, **named)


def _accumulated(
    name: str, function: Callable[..., Any], x: Any, axis: int = 0, *more: Any, **given: Any
) -> Any:
    _accept(name, dict(zip(("dtype", "out"), more)) | given, ())
    return function(as_tensor_variable(x), axis=axis)


def _outer(function: Callable[..., Any], x: Any, y: Any) -> Any:
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    return function(pt.expand_dims(x, tuple(range(x.type.ndim, x.type.ndim + y.type.ndim))), y)


# ---------------------------------------------------------------------------- functions


class _Function(NamedTuple):
    """A symbolic function for one of NumPy.

    NumPy's arguments without default are passed by position, the others by name; ``renamed`` are
    those that have another name here.
    """

    function: Callable[..., Any]
    renamed: dict[str, str]

    def __call__(self, name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> Any:
        accepted = _signature(self.function).parameters
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for key, value in bound.arguments.items():
            parameter, own = signature.parameters[key], self.renamed.get(key, key)
            if parameter.kind is parameter.VAR_KEYWORD:
                named |= _accept(name, value, tuple(accepted))
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional += value
            elif parameter.default is parameter.empty and parameter.kind < parameter.KEYWORD_ONLY:
                positional.append(value)
            elif own in accepted and value is not _NO_VALUE:
                named[own] = value
            elif own not in accepted and not _is_default(value, parameter.default):
                raise TypeError(_refused_argument(name, key))
        return self.function(*positional, **named)


@cache
def function_table() -> dict[str, _Function]:
    """The symbolic functions by the qualified names of NumPy's functions."""
    found: dict[str, _Function] = {}
    for name in SAME_NAME:
        found[f"numpy.{name}"] = _Function(getattr(pt, name), {})
    for name in numpy_functions.__all__:
        found[f"numpy.{name}"] = _Function(getattr(numpy_functions, name), {})
    for name, function in numpy_linalg.FUNCTIONS.items():
        found[f"numpy.linalg.{name}"] = _Function(function, {})
    for name in "angle i0 imag real sinc".split():
        found[f"numpy.{name}"] = _Function(elementwise(name), {})
    for name, (function, renamed) in RENAMED.items():
        found[f"numpy.{name}"] = _Function(function, renamed)
    return found


#: Functions that have the name that they have in NumPy.
SAME_NAME = (
    "all", "allclose", "any", "argmax", "argmin", "argsort", "bincount", "broadcast_arrays",
    "broadcast_to", "choose", "compress", "cov", "diag", "diagonal", "diff",
    "dot", "empty_like", "expand_dims", "flatnonzero", "flip", "geomspace", "histogram", "inner",
    "interp",
    "isclose", "isneginf", "isposinf", "ix_", "linspace", "logspace", "matrix_transpose", "max",
    "mean", "median", "meshgrid", "min", "moveaxis", "nan_to_num", "nonzero", "ones_like", "outer",
    "pad", "percentile", "prod", "ptp", "quantile", "ravel", "ravel_multi_index", "repeat",
    "searchsorted", "sort", "squeeze", "stack", "sum", "swapaxes", "take", "take_along_axis",
    "tensordot", "tile", "trace", "transpose", "trapezoid", "tril", "tril_indices_from", "triu",
    "triu_indices_from", "unravel_index", "zeros_like",
)  # fmt: skip
#: Functions that have another name or other names of parameters here.
RENAMED: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "amax": (pt.max, {}),
    "amin": (pt.min, {}),
    "around": (numpy_functions.round, {}),
    "reshape": (pt.reshape, {"shape": "newshape"}),
    "std": (pt.std, {"correction": "ddof"}),
    "var": (pt.var, {"correction": "ddof"}),
    "where": (pt.where, {"x": "ift", "y": "iff"}),
}
#: What to write for functions that have no symbolic form.
INSTEAD = {
    **dict.fromkeys(("copyto", "put", "place", "putmask"), "x[i].set(y)"),
    "put_along_axis": "x[i].set(y)",
    "fill_diagonal": "x[i, i].set(y)",
    **dict.fromkeys(("array_repr", "array_str", "array2string"), "str(x), or print(x.eval())"),
    **dict.fromkeys(("save", "savetxt", "savez", "savez_compressed"), "the function of x.eval()"),
    "apply_along_axis": "phintys.tensor.vectorize",
    "array_equal": "phintys.tensor.all(phintys.tensor.eq(x, y))",
    "piecewise": "phintys.tensor.switch",
    "select": "phintys.tensor.switch",
}


def apply_function(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What ``TensorVariable.__array_function__`` returns: the symbolic result.

    TypeError if the function, or one of its arguments, has no symbolic form.
    """
    name = f"{function.__module__}.{function.__name__}"
    row = function_table().get(name)
    if row is None:
        raise TypeError(_refused(name))
    return row(name, _signature(function), args, kwargs)


_signatures: Memo[Any, inspect.Signature] = Memo(512, "signatures of NumPy's functions")


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    found = _signatures[function]
    return _signatures.keep(function, inspect.signature(function)) if found is None else found


def _refused(name: str) -> str:
    """The message for a function that has no symbolic form."""
    module, _, last = name.rpartition(".")
    hint = INSTEAD.get(last)
    if module == "numpy.fft" and last in fft.__all__:
        hint = f"x.__array_namespace__().fft.{last}"
    elif hint is None:
        hint = f"functions of phintys.tensor, or {name} of the value x.eval()"
    return f"{name} has no symbolic form: write {hint}."
