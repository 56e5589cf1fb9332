"""`numba_funcify` and `numba_typify`; helpers for the registered functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher

from phintys.backends.source import compile_function_src
from phintys.errors import ContradictionError, UnsupportedError
from phintys.graph.labels import label_of
from phintys.graph.op import Op
from phintys.graph.origin import annotate
from phintys.graph.perform import run_node
from phintys.graph.results import array_type
from phintys.graph.variable import Apply, Constant
from phintys.inner.from_graph import OpFromGraph
from phintys.memo import Memo, exact
from phintys.scalar.type import ScalarType
from phintys.tensor.random.type import RandomType

#: dtypes of arrays that Numba does not support
MISSING_DTYPES = frozenset(("float16",))

# -------------------------------------------------------------------------- registries


@singledispatch
def numba_funcify(op: Any, node: Any = None, **kwargs: Any) -> Callable[..., Any]:
    """The Numba function of an op (applied as in ``node``), or of a whole FunctionGraph.

    Register functions for ops with ``@numba_funcify.register(MyOp)``: they take ``(op, node=None,
    **kwargs)`` and return a function from arrays to an array, or to a tuple of arrays if the op has
    several outputs; Numba compiles it.  An op that is not registered runs through ``perform`` in
    object mode.

    Raises TypeError if ``op`` is neither an Op nor a FunctionGraph.

    >>> import phintys.tensor as pt
    >>> node = pt.exp(pt.dvector("x")).owner
    >>> numba_funcify(node.op, node=node)(np.zeros(2))
    array([1., 1.])
    """
    raise TypeError(f"There is no Numba function for {op!r}: it is neither an Op nor a graph.")


@singledispatch
def numba_typify(data: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """``data`` as a value for compiled functions: arrays are made contiguous and writeable.

    An array is converted to ``dtype`` unless that is None.

    >>> numba_typify(np.arange(6)[::2], "float64")
    array([0., 2., 4.])
    """
    return data


def numba_funcify_and_cache_key(
    op: Any, node: Any = None, **kwargs: Any
) -> tuple[Callable[..., Any], None]:
    """`numba_funcify` and None in the place of a key: functions of Numba are not kept on disk."""
    return numba_funcify(op, node=node, **kwargs), None


def register_funcify_default_op_cache_key(op_type: type) -> Callable[..., Any]:
    """``numba_funcify.register(op_type)``, under the name that says that op and types are a key.

    >>> class Twice(Op):
    ...     __props__ = ()
    >>> @register_funcify_default_op_cache_key(Twice)
    ... def twice(op, node=None, **kwargs):
    ...     return lambda x: 2 * x
    >>> numba_funcify(Twice())(4)
    8
    """
    return numba_funcify.register(op_type)


def register_funcify_and_cache_key(op_type: type) -> Callable[..., Any]:
    """Register a function that returns a pair: the Numba function of an op, and a key.

    The key is not used.
    """

    def register(make: Callable[..., tuple[Callable[..., Any], Any]]) -> Callable[..., Any]:
        @numba_funcify.register(op_type)
        def only_function(op: Any, node: Any = None, **kwargs: Any) -> Callable[..., Any]:  # pyright: ignore[reportUnusedFunction]
            return make(op, node=node, **kwargs)[0]

        return make

    return register


@numba_typify.register(np.ndarray)
def _(data: np.ndarray, dtype: Any = None, **kwargs: Any) -> Any:
    """A C-contiguous, aligned, writeable array: functions are compiled for this kind only."""
    if data.flags.carray and dtype in (None, data.dtype):
        return data
    return np.array(data, dtype or data.dtype.newbyteorder("="), order="C")


@numba_funcify.register(OpFromGraph)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """The function of the graph inside an op; in compiled functions such graphs are expanded."""
    inner = numba_funcify(op.expanded)
    return inner if len(op.fgraph.outputs) > 1 else compiled(_ONLY_RESULT, f=inner)


_ONLY_RESULT = """
def only_result(*args):
    return f(*args)[0]
"""


def convert_node(op: Any, node: Apply, **kwargs: Any) -> Any:
    """`numba_funcify`, compiled.

    A function that a user has registered may return a number for a 0-d tensor; it is converted to
    an array.  A node that is known to fail runs in object mode: it raises its error if it is
    computed; so does one that needs more nested loops than Python has.
    """
    try:
        function = numba_funcify(op, node=node, **kwargs)
    except (ContradictionError, TooManyLoops):
        function = in_object_mode(op, node, **kwargs)
    if not isinstance(function, Dispatcher):
        function = jit(function)
    is_ours = numba_funcify.dispatch(type(op)).__module__.startswith(f"{__package__}.")
    if is_ours or len(node.outputs) != 1 or getattr(node.outputs[0].type, "shape", None) != ():
        return function
    return function if not _is_tensor(node.outputs[0]) else compiled(_AS_ARRAY, f=function)


_AS_ARRAY = """
def as_array(*args):
    return np.asarray(f(*args))
"""


def passed_as_argument(constant: Constant) -> bool:
    """Whether a constant is an argument: arrays and generators are.

    Numba copies globals into the machine code.
    """
    return isinstance(constant.data, np.ndarray | np.random.Generator)


# ---------------------------------------------------------------------------- compiling


class TooManyLoops(UnsupportedError):
    """The function of a node has more nested loops than Python allows, which is about 20."""


def jit(function: Callable[..., Any]) -> Any:
    """The function compiled by Numba; division by zero gives infinity or NaN, as in NumPy."""
    return numba.njit(error_model="numpy")(function)


def compiled(source: str, **env: Any) -> Any:
    """The Numba function that ``source`` defines with globals ``env``, cached by both."""
    source = source.lstrip("\n")
    key = source, exact(env)
    found = _compiled[key]
    if found is not None:
        return found
    name = source.split("(", 1)[0].removeprefix("def ")
    known = {"np": np, "math": math, **_DIVISIONS, **env}
    try:
        function = compile_function_src(source, name, known)
    except SyntaxError as exc:
        raise TooManyLoops(f"{name}: {exc}") from exc
    return _compiled.keep(key, jit(function))


@jit
def _quotient(a: int, b: int) -> int:
    return a // b if b else 0


@jit
def _remainder(a: int, b: int) -> int:
    return a % b if b else 0


#: functions in the text of a `Dim`; division by 0 gives 0
_DIVISIONS = {"floordiv": _quotient, "mod": _remainder}
_compiled: Memo[Any, Any] = Memo(128, "Numba functions", weak=True)


def nested(indices: Sequence[str], lengths: Sequence[str], body: Sequence[str]) -> list[str]:
    """The lines of nested loops.

    >>> print("\\n".join(nested("ij", "nm", ["x[i, j] = 0"])))
    for i in range(n):
      for j in range(m):
        x[i, j] = 0
    """
    heads = [f"{'  ' * k}for {i} in range({n}):" for k, (i, n) in enumerate(zip(indices, lengths))]
    return heads + [f"{'  ' * len(heads)}{line}" for line in body]


def define(name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
    """The source of a function."""
    lines = [f"def {name}({', '.join(parameters)}):", *(f"    {line}" for line in body)]
    return "\n".join(lines) + "\n"


def tuple_of(items: Sequence[str]) -> str:
    """The source of a tuple.

    >>> tuple_of("a"), tuple_of("ab")
    ('(a,)', '(a, b,)')
    """
    return f"({''.join(f'{x}, ' for x in items).rstrip()})"


# -------------------------------------------------------------------------- object mode


def numba_type(type_: Any) -> Any:
    """The Numba type of the values of a Type; None if Numba does not support them.

    >>> import phintys.tensor as pt
    >>> numba_type(pt.dmatrix)
    Array(float64, 2, 'C', False, aligned=True)
    """
    if isinstance(type_, RandomType):
        return types.npy_rng
    known = array_type(type_)
    if known is None or known[0] in MISSING_DTYPES:
        return None
    element = numba.from_dtype(np.dtype(known[0]))
    return types.Array(element, type_.ndim, "C") if _is_array(type_) else element


def is_supported(type_: Any) -> bool:
    """Whether Numba has the values of a Type."""
    return numba_type(type_) is not None


def _is_array(type_: Any) -> bool:
    return not isinstance(type_, ScalarType)


def _is_tensor(v: Any) -> bool:
    return hasattr(v.type, "dtype") and _is_array(v.type)


@numba_funcify.register(Op)
def in_object_mode(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """The Numba function of an op that is not registered: calls ``perform`` in object mode."""
    found = [numba_type(v.type) for v in node.outputs]
    names = [f"r{i}" for i in range(len(found))]
    parameters = [f"x{i}" for i in range(len(node.inputs))]
    arrays = [i for i, v in enumerate(node.inputs) if numba_type(v.type) is not None]
    declared = ", ".join(f"{r}=t{r}" for r in names)
    body = [
        f"with objmode({declared}):",
        f"    {''.join(f'{r}, ' for r in names)}= perform({', '.join(f'x{i}' for i in arrays)})",
        f"return {', '.join(names)}",
    ]
    env = {f"t{r}": t for r, t in zip(names, found)}
    env |= {"objmode": numba.objmode, "perform": _performing(node, arrays)}
    return jit(
        compile_function_src(define("in_object_mode", parameters, body), "in_object_mode", env)
    )


def _performing(node: Apply, arrays: Sequence[int]) -> Callable[..., Any]:
    """A function that calls ``perform``; takes the inputs at positions ``arrays``.

    The other inputs are constants that Numba has no type for.
    """
    fixed = [v.data if isinstance(v, Constant) else None for v in node.inputs]
    labels = [label_of(v) for v in node.inputs]

    def perform(*values: Any) -> tuple[Any, ...]:
        given = list(fixed)
        for i, x in zip(arrays, values):
            given[i] = x
        try:
            results = run_node(node, given)
        except Exception as exc:
            annotate(exc, node, given, labels)
            raise
        return tuple(_declared(x, v) for x, v in zip(results, node.outputs))

    return perform


def _declared(value: Any, v: Any) -> Any:
    """A result as Numba takes it: an array contiguous and writeable, a scalar as NumPy's scalar."""
    if isinstance(v.type, ScalarType):
        return np.asarray(value, v.type.dtype)[()]
    if not _is_tensor(v):
        return value
    found = np.asarray(value, v.type.dtype, order="C")
    return found if found.flags.carray else found.copy()
