"""`jax_funcify` and `jax_typify`; helpers for the registered functions.

A value is *concrete* if it is known at trace time: a NumPy array or a number, not a tracer.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import singledispatch
from itertools import count
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from phintys.backends.source import generate
from phintys.errors import ContradictionError, UnsupportedError
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.inner import expanded
from phintys.graph.labels import label_of
from phintys.graph.op import Op
from phintys.graph.origin import annotate
from phintys.graph.perform import run_node
from phintys.graph.traversal import graph_inputs, io_toposort
from phintys.graph.variable import Apply, Constant, Variable
from phintys.inner.from_graph import OpFromGraph
from phintys.scalar.type import ScalarType
from phintys.tensor.static import as_length
from phintys.tensor.type import TensorType

#: concrete arrays with more elements are passed to XLA
MAX_CONCRETE_SIZE = 1024

# -------------------------------------------------------------------------- registries


@singledispatch
def jax_funcify(op: Any, node: Any = None, **kwargs: Any) -> Callable[..., Any]:
    """The JAX function of an op (applied as in ``node``), or of a whole FunctionGraph.

    Register functions for ops with ``@jax_funcify.register(MyOp)``: they take ``(op, node=None,
    **kwargs)`` and return a function from JAX arrays (or concrete values) to a JAX array, or to a
    tuple of them if the op has several outputs.  An op that is not registered is called back in
    Python.

    Raises TypeError if ``op`` is neither an Op nor a FunctionGraph.

    >>> import phintys.tensor as pt
    >>> node = pt.exp(pt.fvector("x")).owner
    >>> jax_funcify(node.op, node=node)(jnp.zeros(2, "float32"))
    Array([1., 1.], dtype=float32)
    """
    raise TypeError(f"There is no JAX function for {op!r}: it is neither an Op nor a graph.")


@singledispatch
def jax_typify(data: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """The constant ``data`` as a JAX value.

    Small NumPy arrays and other objects stay as they are, so that they are concrete at trace time.
    Large arrays, and arrays for which a ``dtype`` is given, become JAX arrays.

    >>> type(jax_typify(np.zeros(3))), jax_typify(np.zeros(3), "float32")
    (<class 'numpy.ndarray'>, Array([0., 0., 0.], dtype=float32))
    """
    return data


@jax_typify.register(np.ndarray)
def _(data: np.ndarray, dtype: Any = None, **kwargs: Any) -> Any:
    return data if is_concrete(data) and dtype is None else jnp.asarray(data, dtype)


@jax_funcify.register(FunctionGraph)
def _(op: Any, node: Any = None, fgraph_name: str = "jax_function", **kwargs: Any) -> Any:
    op = expanded(op)
    enable_x64(op)
    return generate(op, convert_node, jax_typify, name=fgraph_name, **kwargs).function


@jax_funcify.register(OpFromGraph)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """The function of the graph inside an op; in compiled functions such graphs are expanded."""
    inner = jax_funcify(op.expanded)
    return inner if len(op.fgraph.outputs) > 1 else lambda *args: inner(*args)[0]


def enable_x64(fgraph: FunctionGraph) -> None:
    """Enable 64-bit dtypes in JAX, for the whole process, if the graph has variables of these."""
    nodes = fgraph.toposort()
    variables = [*fgraph.inputs, *fgraph.outputs, *(v for n in nodes for v in n.inputs + n.outputs)]
    if any(getattr(v.type, "dtype", "") in _WIDE for v in variables):
        jax.config.update("jax_enable_x64", True)


_WIDE = frozenset(("int64", "uint64", "float64", "complex128"))


def convert_node(op: Any, node: Apply, **kwargs: Any) -> Any:
    """`jax_funcify`; the functions of `TRACE_TIME_OPS` are evaluated at trace time if possible.

    A node that is known to fail is called back: it raises its error if it is computed.
    """
    try:
        function = jax_funcify(op, node=node, **kwargs)
    except ContradictionError:
        return call_back(op, node, **kwargs)
    if isinstance(op, tuple(TRACE_TIME_OPS)):
        return evaluated_at_trace_time(function, node)
    return function


# ------------------------------------------------------------------------ concrete values

#: ops that are computed by ``perform`` at trace time if all inputs are concrete
TRACE_TIME_OPS: list[type[Op]] = []


def is_concrete(x: Any) -> bool:
    """Whether a value is known at trace time (no tracer), and small."""
    return isinstance(x, np.ndarray | np.generic | int | float) and np.size(x) <= MAX_CONCRETE_SIZE


def evaluated_at_trace_time(function: Callable[..., Any], node: Apply) -> Callable[..., Any]:
    """A function that calls ``perform`` if all arguments are concrete, else ``function``."""

    def call(*args: Any) -> Any:
        if not args or not all(map(is_concrete, args)):
            return function(*args)
        return perform(node, args)

    return call


def perform(node: Apply, args: Sequence[Any]) -> Any:
    """The result of ``perform``, or a tuple if the op has several."""
    return one_or_tuple(run_node(node, args))


def one_or_tuple(values: Sequence[Any]) -> Any:
    """The only value, or a tuple of several: what a JAX function returns."""
    return values[0] if len(values) == 1 else tuple(values)


def concrete(x: Any, node: Apply) -> Any:
    """``x``, which must be concrete because shapes depend on it.

    Raises UnsupportedError if it depends on values of arrays.
    """
    if not is_concrete(x):
        raise UnsupportedError(
            f"JAX compiles for fixed shapes, and a length that {node.op} needs depends on values. "
            "Lengths may depend on shapes and on 0-d integer inputs."
        )
    return x


def length_of_values(node: Apply, v: Variable) -> UnsupportedError:
    """The error of a node whose result has a length that depends on the values of ``v``."""
    return UnsupportedError(
        f"JAX compiles for fixed shapes, and a length of {node.outputs[0]}, the result of {node}, "
        f"depends on the values of {v}. Elementwise functions and reductions of the elements that "
        "a mask selects can be compiled, and so can switch(mask, x, y), which has the shape of x."
    )


def length(x: Any, node: Apply) -> int:
    """A length as an int.  Raises UnsupportedError if it depends on values of arrays."""
    return int(concrete(x, node))


# ------------------------------------------------------------------------------- checks


class Check(NamedTuple):
    """A condition that is known when compiled code has run, and the exception if it is false."""

    passed: Any
    error: type[Exception]
    message: str


@jax.tree_util.register_pytree_node_class
class Checks:
    """Checks as a result of a traced function: conditions are traced, exceptions are not."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self.checks = checks

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        conditions = tuple([check.passed for check in self.checks])
        return conditions, tuple([(check.error, check.message) for check in self.checks])

    @classmethod
    def tree_unflatten(cls, errors: Any, conditions: Sequence[Any]) -> Checks:
        return cls([Check(c, *error) for c, error in zip(conditions, errors)])

    def all_being(self, passed: bool) -> Checks:
        """The same checks, all of which have passed, or all of which have failed."""
        return Checks([check._replace(passed=jnp.asarray(passed)) for check in self.checks])

    def collect(self) -> None:
        """Let these checks be those of the function that is traced around the one traced here."""
        for passed, error, message in self.checks:
            require(passed, message, error)

    def raise_failed(self) -> None:
        """Raise the exception of the first check that has failed."""
        for passed, error, message in self.checks:
            if not passed:
                raise error(message)


class _Collected(threading.local):
    """The checks that this thread collects; None if it does not trace."""

    checks: list[Check] | None = None


_collected = _Collected()


def require(condition: Any, message: str, error: type[Exception] = IndexError) -> None:
    """Check a condition at trace time if it is concrete, else after the compiled function has run.

    ``condition`` is a bool or an array of them, all of which must hold.  Raises ``error`` with
    ``message`` at trace time.  After the run the reference backend makes the exception.

    >>> require(np.array([True, False]), "An index is out of range.")
    Traceback (most recent call last):
        ...
    IndexError: An index is out of range.
    """
    if is_concrete(condition):
        if not np.all(condition):
            raise error(message)
    elif _collected.checks is not None:
        _collected.checks.append(Check(jnp.all(condition), error, message))


@contextmanager
def collecting() -> Generator[list[Check], None, None]:
    """A context that collects the checks of `require` that are not concrete, in a list."""
    before, _collected.checks = _collected.checks, []
    try:
        yield _collected.checks
    finally:
        _collected.checks = before


# ----------------------------------------------------------------- calling back to Python


@jax_funcify.register(Op)
def call_back(op: Any, node: Any, **kwargs: Any) -> Any:
    """The JAX function of an op that is not registered: a callback that calls ``perform``."""
    labels = [label_of(v) for v in node.inputs]

    def function(*args: Any) -> Any:
        shapes = output_shapes(node, args)
        structs = [
            jax.ShapeDtypeStruct(shape, v.type.dtype) for shape, v in zip(shapes, node.outputs)
        ]
        passed = [i for i, x in enumerate(args) if not _stays_in_python(x)]

        def host(*values: Any) -> tuple[Any, ...]:
            given = list(args)
            for i, value in zip(passed, values):
                given[i] = np.asarray(value)
            try:
                found = run_node(node, given)
            except BaseException as exc:
                annotate(exc, node, given, labels)
                raise raised.put(exc) from exc
            return tuple(np.asarray(x, s.dtype) for x, s in zip(found, structs))

        inputs = [args[i] for i in passed]
        found = jax.pure_callback(host, tuple(structs), *inputs, vmap_method="sequential")
        return one_or_tuple(found)

    return function


class Raised:
    """The exceptions of callbacks, so that the caller gets them unchanged.

    JAX replaces an exception in a callback by one of its own, whose message contains that of the
    original.  So the callback raises a RuntimeError with a number in its message instead, and `pop`
    finds the original by the number.
    """

    def __init__(self) -> None:
        self.exceptions: dict[str, BaseException] = {}
        self.numbers = count()

    def put(self, exc: BaseException) -> RuntimeError:
        """The exception to raise in the callback instead of ``exc``, which is stored."""
        number = f"[phintys exception {next(self.numbers)}]"
        while len(self.exceptions) >= 100:  # drop the oldest of those that were never popped
            self.exceptions.pop(next(iter(self.exceptions)), None)
        self.exceptions[number] = exc
        return RuntimeError(f"{type(exc).__name__}: {exc} {number}")

    def pop(self, exc: Exception) -> BaseException | None:
        """The exception of a callback that an exception of JAX stands for, or None."""
        found = re.search(r"\[phintys exception \d+\]", str(exc))
        return self.exceptions.pop(found[0], None) if found else None


raised = Raised()


def _stays_in_python(x: Any) -> bool:
    """Whether the callback uses a value directly, not as an argument that JAX passes.

    That is so if it is concrete or no array.
    """
    return isinstance(x, np.ndarray | np.generic) or not isinstance(x, jax.Array)


def output_shapes(node: Apply, args: Sequence[Any]) -> list[tuple[int, ...]]:
    """The shapes of the results, from their static types or by ``infer_shape``.

    Raises UnsupportedError if they cannot be inferred at trace time.
    """
    known = [v.type.shape for v in node.outputs]
    if all(None not in shape for shape in known):
        return known
    if node.op.infer_shape is None:
        raise UnsupportedError(
            f"JAX needs the shape of the result of {node.op}, which has no infer_shape."
        )
    return _inferred(node, args)


def _inferred(node: Apply, args: Sequence[Any]) -> list[tuple[int, ...]]:
    """The shapes of the results according to ``infer_shape``, evaluated on concrete values."""
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
        raise UnsupportedError(
            f"JAX needs the shape of the result of {node.op}, which its infer_shape does not give."
        )
    values.update((v, x) for v, x in zip(node.inputs, args) if is_concrete(x))
    entries = [[as_length(n) for n in shape] for shape in found]
    return [tuple(length(n, node) for n in _evaluate(row, values)) for row in entries]


def _evaluate(outputs: Sequence[Any], values: dict[Any, Any]) -> list[Any]:
    """The values of ``outputs`` computed from ``values``; None where these do not suffice."""
    found = dict(values)
    for v in graph_inputs(outputs, list(values)):
        if isinstance(v, Constant):
            found[v] = v.data
    for node in io_toposort(list(found), outputs):
        given = [found.get(v) for v in node.inputs]
        if all(x is not None for x in given):
            result = perform(node, given)
            found.update(zip(node.outputs, result if isinstance(result, tuple) else (result,)))
    return [found.get(v) for v in outputs]
