"""`jax_funcify` and `jax_typify`, and what registered functions share."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import singledispatch
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.source import generate
from phintys.errors import UnsupportedError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.origin import annotate
from phintys.graph.perform import run_node
from phintys.graph.traversal import graph_inputs, io_toposort
from phintys.graph.variable import Apply

#: NumPy values up to this size are computed with while JAX traces
STATIC_SIZE = 1024

# -------------------------------------------------------------------------- registries


@singledispatch
def jax_funcify(op: Any, node: Any = None, **kwargs: Any) -> Callable[..., Any]:
    """The JAX function of an op (of its application ``node``), or of a whole FunctionGraph.

    Register functions for ops with ``@jax_funcify.register(MyOp)``: they take ``(op, node=None,
    **kwargs)`` and return a function of JAX arrays; one with several results returns a tuple.

    An op that is not registered is called back in Python.
    """
    raise TypeError(f"There is no JAX function for {op!r}: it is neither an Op nor a graph.")


@singledispatch
def jax_typify(data: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """The JAX value of ``data``.

    Small NumPy arrays and other objects stay as they are: lengths are computed with them.
    """
    return data


@jax_typify.register(np.ndarray)
def _(data: np.ndarray, dtype: Any = None, **kwargs: Any) -> Any:
    return data if is_static(data) and dtype is None else jnp.asarray(data, dtype)


@jax_funcify.register(FunctionGraph)
def _(op: Any, node: Any = None, fgraph_name: str = "jax_function", **kwargs: Any) -> Any:
    enable_x64(op)
    return generate(op, convert_node, jax_typify, name=fgraph_name, **kwargs).function


def enable_x64(fgraph: Any) -> None:
    """Let JAX have 64-bit dtypes if the graph does (a setting of the whole process)."""
    nodes = fgraph.toposort()
    variables = [*fgraph.inputs, *fgraph.outputs, *(v for n in nodes for v in n.inputs + n.outputs)]
    if any(getattr(v.type, "dtype", "") in _WIDE for v in variables):
        jax.config.update("jax_enable_x64", True)


_WIDE = frozenset(("int64", "uint64", "float64", "complex128"))


def convert_node(op: Any, node: Any, **kwargs: Any) -> Any:
    """`jax_funcify`; ops that compute lengths also accept values known while JAX traces."""
    function = jax_funcify(op, node=node, **kwargs)
    return on_static_values(function, node) if isinstance(op, tuple(STATIC_OPS)) else function


# ------------------------------------------------------- values known while JAX traces

#: ops that are computed by ``perform`` if their inputs are known
STATIC_OPS: list[type[Op]] = []


def is_static(x: Any) -> bool:
    """Whether a value is known while JAX traces, and small."""
    return isinstance(x, np.ndarray | np.generic | int | float) and np.size(x) <= STATIC_SIZE


def on_static_values(function: Callable[..., Any], node: Apply) -> Callable[..., Any]:
    """``function``, which computes with NumPy where all arguments are known."""

    def call(*args: Any) -> Any:
        if not args or not all(map(is_static, args)):
            return function(*args)
        return perform(node, args)

    return call


def perform(node: Apply, args: Sequence[Any]) -> Any:
    """What ``perform`` computes: a value, or a tuple of several."""
    found = tuple(run_node(node, args))
    return found if len(found) > 1 else found[0]


def fixed(x: Any, node: Any) -> Any:
    """``x``, which decides about lengths; UnsupportedError if it depends on values."""
    if not is_static(x):
        raise UnsupportedError(
            f"JAX compiles for fixed shapes, and a length that {node.op} needs depends on values. "
            "Lengths may depend on shapes and on 0-d integer inputs."
        )
    return x


def length(x: Any, node: Any) -> int:
    """A length as an int; UnsupportedError if it depends on values."""
    return int(fixed(x, node))


# ------------------------------------------------------------------------------- checks


class _Collected(threading.local):
    checks: list[Any] | None = None


_collected = _Collected()


def require(condition: Any, message: str, error: type[Exception] = IndexError) -> None:
    """Check a condition: at once if it is known, else after the compiled function has run."""
    if is_static(condition):
        if not np.all(condition):
            raise error(message)
    elif _collected.checks is not None:
        _collected.checks.append(jnp.all(condition))


@contextmanager
def collecting() -> Iterator[list[Any]]:
    """The conditions that `require` meets and that are not known while JAX traces."""
    before, _collected.checks = _collected.checks, []
    try:
        yield _collected.checks
    finally:
        _collected.checks = before


# ----------------------------------------------------------------- calling back to Python


@jax_funcify.register(Op)
def call_back(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """``perform``, called from the compiled function."""

    def function(*args: Any) -> Any:
        shapes = output_shapes(node, args)
        structs = [
            jax.ShapeDtypeStruct(shape, v.type.dtype) for shape, v in zip(shapes, node.outputs)
        ]
        passed = [i for i, x in enumerate(args) if not _stays(x)]

        def host(*values: Any) -> tuple[Any, ...]:
            given = list(args)
            for i, value in zip(passed, values):
                given[i] = np.asarray(value)
            try:
                found = run_node(node, given)
            except BaseException as exc:
                annotate(exc, node, given)
                raise raised.put(exc) from exc
            return tuple(np.asarray(x, s.dtype) for x, s in zip(found, structs))

        inputs = [args[i] for i in passed]
        found = jax.pure_callback(host, tuple(structs), *inputs, vmap_method="sequential")
        return found if len(found) > 1 else found[0]

    return function


class Raised:
    """Exceptions of called back Python, on their way through JAX.

    JAX replaces an exception by one of its own, with the text of the first: there is its number.
    """

    def __init__(self) -> None:
        self.exceptions: dict[str, BaseException] = {}
        self.numbers = count()

    def put(self, exc: BaseException) -> RuntimeError:
        """What to raise in place of an exception."""
        number = f"[phintys exception {next(self.numbers)}]"
        while len(self.exceptions) >= 100:  # that nobody asked for
            self.exceptions.pop(next(iter(self.exceptions)), None)
        self.exceptions[number] = exc
        return RuntimeError(f"{type(exc).__name__}: {exc} {number}")

    def pop(self, exc: Exception) -> BaseException | None:
        """The exception that one of JAX stands for; None if it is JAX's own."""
        found = re.search(r"\[phintys exception \d+\]", str(exc))
        return self.exceptions.pop(found[0], None) if found else None


raised = Raised()


def _stays(x: Any) -> bool:
    """Whether a value is not handed to the callback by JAX: it is known, or no array."""
    return isinstance(x, np.ndarray | np.generic) or not isinstance(x, jax.Array)


def output_shapes(node: Apply, args: Sequence[Any]) -> list[tuple[int, ...]]:
    """The shapes of the results, from static shapes or by ``infer_shape``."""
    known = [v.type.shape for v in node.outputs]
    if all(None not in shape for shape in known):
        return known
    if node.op.infer_shape is None:
        raise UnsupportedError(
            f"JAX needs to know the shape of {node.op}, which has no infer_shape."
        )
    return _inferred(node, args)


def _inferred(node: Apply, args: Sequence[Any]) -> list[tuple[int, ...]]:
    from phintys.scalar.type import ScalarType
    from phintys.tensor.static import as_length
    from phintys.tensor.type import TensorType

    values: dict[Any, Any] = {}
    shapes: list[Any] = []
    for v, x in zip(node.inputs, args):
        if isinstance(v.type, ScalarType) or not hasattr(v.type, "ndim"):
            shapes.append(())
            continue
        symbols = [TensorType("int64", ())() for _ in x.shape]
        values.update(zip(symbols, (np.asarray(n) for n in x.shape)))
        shapes.append(tuple(symbols))
    found = node.op.infer_shape(node, shapes)
    if any(shape is None for shape in found):
        raise UnsupportedError(f"JAX needs to know the shape of the result of {node.op}.")
    values.update((v, x) for v, x in zip(node.inputs, args) if is_static(x))
    entries = [[as_length(n) for n in shape] for shape in found]
    return [tuple(length(n, node) for n in _evaluate(row, values)) for row in entries]


def _evaluate(outputs: Sequence[Any], values: dict[Any, Any]) -> list[Any]:
    """Values of variables from those of others; None where these do not suffice."""
    found = dict(values)
    for v in graph_inputs(outputs, list(values)):
        if hasattr(v, "data"):
            found[v] = v.data
    for node in io_toposort(list(found), outputs):
        given = [found.get(v) for v in node.inputs]
        if all(x is not None for x in given):
            result = perform(node, given)
            found.update(zip(node.outputs, result if isinstance(result, tuple) else (result,)))
    return [found.get(v) for v in outputs]
