"""Ops made of JAX functions, with their derivatives: `wrap_jax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any

import numpy as np

from phintys.errors import MissingPackageError
from phintys.graph.op import Op, Storage
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.shape import specify_shape
from phintys.tensor.type import TensorType
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["JAXOp", "wrap_jax"]

#: what the lengths that are not known are taken to be, to see which ones of the results vary
EXAMPLES = (2, 3)


def _jax() -> Any:
    """The package jax, with 64-bit dtypes; MissingPackageError if it is not installed."""
    try:
        import jax
    except ImportError as exc:
        raise MissingPackageError(
            'wrap_jax needs the package jax: pip install "phintys[jax]"'
        ) from exc
    jax.config.update("jax_enable_x64", True)
    return jax


class JAXOp(Op):
    """The op that calls a JAX function of arrays, which returns a tuple of arrays.

    Parameters
    ----------
    function
        takes an array for each input
    input_types, output_types
        the types of the inputs and outputs, TensorTypes
    name
        a label; equality ignores it
    """

    # ----- class and static shape
    __props__ = ("function", "input_types", "output_types")
    in_python = "it calls a function of JAX"
    handles_missing = False

    def __init__(
        self,
        function: Callable[..., Any],
        input_types: Sequence[TensorType],
        output_types: Sequence[TensorType],
        name: str | None = None,
    ) -> None:
        self.function, self.name = function, name
        self.input_types, self.output_types = tuple(input_types), tuple(output_types)

    def make_node(self, *inputs: Any) -> Apply:
        given = [t.filter_variable(x) for t, x in zip(self.input_types, inputs, strict=True)]
        return Apply(self, given, [t.make_variable() for t in self.output_types])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """The lengths that are known; None where one is not."""
        lengths = [[np.int64(n) for n in t.shape if n is not None] for t in self.output_types]
        return [
            tuple(known) if len(known) == t.ndim else None
            for known, t in zip(lengths, self.output_types)
        ]

    # ----- perform
    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The function compiled by JAX."""
        return _jax().jit(self.function)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        for cell, t, x in zip(output_storage, self.output_types, self.compiled(*inputs)):
            cell[0] = np.array(x, t.dtype)

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.input_types, self.output_types, self.name)

    # ----- derivatives: those of JAX, as ops of the same class
    @cached_property
    def continuous(self) -> list[int]:
        """The positions of the inputs that are not discrete."""
        return [k for k, t in enumerate(self.input_types) if not t.is_discrete]

    @cached_property
    def _results(self) -> list[int]:
        return [k for k, t in enumerate(self.output_types) if not t.is_discrete]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        results = [k in self._results for k in range(len(self.output_types))]
        return [[r and i in self.continuous for r in results] for i in range(len(node.inputs))]

    def _restricted(self, inputs: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
        """The continuous results as a function of the continuous inputs, and those inputs."""

        def function(*some: Any) -> tuple[Any, ...]:
            given = list(inputs)
            for k, x in zip(self.continuous, some):
                given[k] = x
            found = self.function(*given)
            return tuple(found[k] for k in self._results)

        return function, [inputs[k] for k in self.continuous]

    @cached_property
    def reverse(self) -> JAXOp:
        """The op of the inputs, then the cotangents of continuous outputs, that pulls back."""
        n = len(self.input_types)

        def pulled(*args: Any) -> Any:
            function, some = self._restricted(args[:n])
            return _jax().vjp(function, *some)[1](tuple(args[n:]))

        seeds = [self.output_types[k] for k in self._results]
        outputs = [self.input_types[k] for k in self.continuous]
        return JAXOp(pulled, [*self.input_types, *seeds], outputs, f"{self}_pullback")

    @cached_property
    def forward(self) -> JAXOp:
        """The op of the inputs, then the tangents of continuous inputs, that pushes forward."""
        n = len(self.input_types)

        def pushed(*args: Any) -> Any:
            function, some = self._restricted(args[:n])
            return _jax().jvp(function, tuple(some), tuple(args[n:]))[1]

        seeds = [self.input_types[k] for k in self.continuous]
        outputs = [self.output_types[k] for k in self._results]
        return JAXOp(pushed, [*self.input_types, *seeds], outputs, f"{self}_pushforward")

    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Any]:
        found = iter(
            self.reverse(*inputs, *[cotangents[k] for k in self._results], return_list=True)
        )
        return [next(found) if k in self.continuous else None for k in range(len(inputs))]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Any]:
        found = iter(
            self.forward(*inputs, *[tangents[k] for k in self.continuous], return_list=True)
        )
        zeros = [v.type.tangent_zeros(v) for v in outputs]
        return [next(found) if k in self._results else z for k, z in enumerate(zeros)]

    def __str__(self) -> str:
        return self.name or "JAXOp"


# ------------------------------------------------------------------------- user function


def wrap_jax(
    jax_function: Callable[..., Any] | None = None, *, allow_eval: bool = True
) -> Callable[..., Any]:
    """A function of variables from a JAX function, with the derivatives of JAX.

    Parameters
    ----------
    jax_function
        takes and returns nested structures (pytrees) of arrays; None: the result is a decorator
    allow_eval
        whether the inputs may be evaluated to find the lengths, where the results do not have the
        same form for all of them

    Variables may be anywhere in the arguments; all else is passed to ``jax_function`` as it is.
    The function runs in JAX on every backend, and is part of the compiled function in mode JAX.
    It must be pure, and may be called several times with arrays of other lengths.

    ValueError if the lengths of the inputs are not known, and needed.  MissingPackageError without
    JAX.

    >>> import jax.numpy as jnp, phintys, phintys.tensor as pt
    >>> @wrap_jax
    ... def moments(x, options):
    ...     return {"mean": jnp.mean(x), "scaled": x * options["factor"]}
    >>> x = pt.dvector("x")
    >>> found = moments(x, {"factor": 2})
    >>> found["scaled"].eval({x: [1.0, 3.0]}), found["mean"].type
    (array([2., 6.]), TensorType(float64, shape=()))
    >>> phintys.grad(found["mean"], x).eval({x: [1.0, 3.0]})
    array([0.5, 0.5])
    """
    if jax_function is None:
        return lambda function: wrap_jax(function, allow_eval=allow_eval)
    function = jax_function

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        jax = _jax()
        leaves, form = jax.tree.flatten((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Variable)]
        inputs = [as_tensor_variable(leaves[k]) for k in places]
        results: dict[str, Any] = {}

        def flat(*arrays: Any) -> tuple[Any, ...]:
            given = list(leaves)
            for k, array in zip(places, arrays):
                given[k] = array
            some, more = jax.tree.unflatten(form, given)
            found, results["form"] = jax.tree.flatten(function(*some, **more))
            return tuple(jax.numpy.asarray(x) for x in found)

        inputs, types = _with_types(flat, inputs, allow_eval)
        name = getattr(function, "__name__", None)
        outputs = JAXOp(flat, [v.type for v in inputs], types, name)(*inputs, return_list=True)
        return jax.tree.unflatten(results["form"], outputs)

    return wrapped


def _with_types(
    flat: Callable[..., Any], inputs: Sequence[TensorVariable], allow_eval: bool
) -> tuple[Sequence[TensorVariable], list[TensorType]]:
    """The inputs, perhaps with lengths specified, and the types of the results."""
    try:
        return inputs, _result_types(flat, inputs)
    except Exception as exc:
        if not any(None in v.type.shape for v in inputs):
            raise
        inputs = _with_lengths(inputs, allow_eval, exc)
    return inputs, _result_types(flat, inputs)


def _result_types(flat: Callable[..., Any], inputs: Tensors) -> list[TensorType]:
    """The types of the results; a length that differs between `EXAMPLES` is not known.

    ValueError if their number, or ranks, differ.
    """
    found = [_structs(flat, [v.type for v in inputs], n) for n in EXAMPLES]
    return [
        TensorType(a.dtype, [n if n == m else None for n, m in zip(a.shape, b.shape, strict=True)])
        for a, b in zip(*found, strict=True)
    ]


def _structs(flat: Callable[..., Any], types: Sequence[TensorType], length: int) -> Sequence[Any]:
    """The dtypes and shapes of the results, if the unknown lengths are ``length``."""
    jax = _jax()
    shapes = [tuple([length if n is None else n for n in t.shape]) for t in types]
    structs = [jax.ShapeDtypeStruct(shape, t.dtype) for shape, t in zip(shapes, types)]
    found: Sequence[Any] = jax.eval_shape(flat, *structs)
    return found


def _with_lengths(
    inputs: Sequence[TensorVariable], allow_eval: bool, cause: Exception
) -> list[TensorVariable]:
    """The inputs with the lengths that they have now, which must not depend on arguments.

    Else ValueError, because of the ``cause`` that made the lengths necessary.
    """
    message = (
        f"The types of the results depend on lengths that are not known ({cause}). Declare these "
        "by specify_shape."
    )
    if not allow_eval:
        raise ValueError(message) from cause
    try:
        shapes = late_bound["function"]([], [v.shape for v in inputs])()
    except Exception as exc:
        raise ValueError(f"{message} They cannot be computed now: {exc}") from cause
    return [specify_shape(v, [int(n) for n in shape]) for v, shape in zip(inputs, shapes)]
