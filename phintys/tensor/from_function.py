"""Ops made of Python functions: `wrap_py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from phintys.gradient.barriers import grad_undefined
from phintys.graph.op import Op, Storage
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Variable

__all__ = ["FromFunctionOp", "as_op", "wrap_py"]

InferShape = Callable[[Apply, Sequence[Any]], Sequence[Any]]


class FromFunctionOp(Op):
    """The op that calls ``fn``; see `wrap_py`.  It has no derivative."""

    __props__ = ("fn", "input_types", "output_types", "shape_function")
    not_differentiable = "the derivative of a Python function is not known"
    in_python = "it calls a function of the user"

    def __init__(
        self,
        fn: Callable[..., Any],
        itypes: Sequence[Type[Any]],
        otypes: Sequence[Type[Any]],
        infer_shape: InferShape | None = None,
    ) -> None:
        self.fn, self.itypes, self.otypes = fn, list(itypes), list(otypes)
        self.input_types, self.output_types = tuple(itypes), tuple(otypes)
        self.shape_function = infer_shape
        if infer_shape is not None:
            self.infer_shape = infer_shape

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        found = self.fn(*inputs)
        results = found if isinstance(found, list | tuple) else (found,)
        if len(results) != len(output_storage):
            raise ValueError(f"{self} returned {len(results)} values, not {len(output_storage)}.")
        for cell, value in zip(output_storage, results):
            cell[0] = value

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False

    # ----- derivatives: none
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [
            grad_undefined(self, k, x, "It is a Python function.") for k, x in enumerate(inputs)
        ]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return [grad_undefined(self, 0, v, "It is a Python function.") for v in outputs]

    def __reduce__(self) -> Any:
        """A function that `wrap_py` decorates is pickled by its name, which stands for the op."""
        module, name = self.fn.__module__, self.fn.__qualname__
        try:
            found = load_back(module, name)
        except (ImportError, AttributeError):
            found = None
        if found is self:
            return load_back, (module, name)
        args = (self.fn, self.itypes, self.otypes, self.shape_function)
        return FromFunctionOp, args

    def __str__(self) -> str:
        return f"FromFunctionOp{{{self.fn.__name__}}}"


def load_back(module: str, name: str) -> Any:
    """What a module calls ``name``."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _types(given: Any, what: str) -> list[Type[Any]]:
    types = list(given) if isinstance(given, list | tuple) else [given]
    for t in types:
        if not isinstance(t, Type):
            raise TypeError(f"{what} must be a type of variables, or a list of them, not {t!r}.")
    return types


def wrap_py(
    itypes: Type[Any] | Sequence[Type[Any]],
    otypes: Type[Any] | Sequence[Type[Any]],
    infer_shape: InferShape | None = None,
) -> Callable[[Callable[..., Any]], FromFunctionOp]:
    """A decorator that makes an op of a Python function of arrays.

    Parameters
    ----------
    itypes, otypes
        the type of each input and output; one type need not be in a list
    infer_shape
        a function of the node and the shapes of the inputs that returns those of the outputs

    The op calls the function on every backend, and has no derivative.  TypeError if something is no
    type.

    >>> import numpy as np, phintys.tensor as pt
    >>> @wrap_py(itypes=[pt.dmatrix, pt.dvector], otypes=[pt.dvector])
    ... def interpolated(m, v):
    ...     return np.interp(v, m[0], m[1])
    >>> v = pt.dvector("v")
    >>> interpolated([[0.0, 1.0], [0.0, 10.0]], v).eval({v: [0.5]})
    array([5.])
    """
    inputs, outputs = _types(itypes, "itypes"), _types(otypes, "otypes")
    if infer_shape is not None and not callable(infer_shape):
        raise TypeError(f"infer_shape must be a function, not {infer_shape!r}.")
    return lambda fn: FromFunctionOp(fn, inputs, outputs, infer_shape)


def as_op(
    itypes: Type[Any] | Sequence[Type[Any]],
    otypes: Type[Any] | Sequence[Type[Any]],
    infer_shape: InferShape | None = None,
) -> Callable[[Callable[..., Any]], FromFunctionOp]:
    """Older name of `wrap_py`; gives a DeprecationWarning."""
    warnings.warn("as_op is called wrap_py now.", DeprecationWarning, stacklevel=2)
    return wrap_py(itypes, otypes, infer_shape)
