"""Symbolic functions as functions of arrays: compiled once, then called.

A compiled function depends on the dtypes and ranks of the arrays, on which of their axes have
length 1 (those broadcast), on the other arguments, and on the settings.  Numbers that change often,
such as lengths and positions, are arguments of the compiled function as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from phintys.array_api.array import Array
from phintys.compile.function import function as compiled
from phintys.compile.mode import Mode, get_mode
from phintys.config import config
from phintys.graph.variable import Variable
from phintys.memo import Memo, exact
from phintys.tensor.standard.promotion import is_number, number_dtype
from phintys.tensor.type import TensorType


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A compiled function, and how its results are put together."""

    call: Callable[..., list[Any]]
    arrange: Callable[[list[Array]], Any]


_compiled: Memo[Any, _Compiled] = Memo(1024, "eager functions")


def eager(
    function: Callable[..., Any],
    dynamic: Sequence[str] = (),
    numbers: bool = False,
    known_shapes: bool = False,
) -> Callable[..., Any]:
    """The function of arrays that evaluates what ``function`` returns for variables.

    Parameters
    ----------
    function
        takes variables, where the result takes `Array`, and returns one variable or a tuple of them
    dynamic
        the names of parameters whose integers are not compiled into the code
    numbers
        whether the positional arguments are arrays and Python numbers, which take the dtypes of the
        arrays
    known_shapes
        whether ``function`` needs the lengths of its arguments
    """
    positions = _positions(function, dynamic)

    @wraps(function)
    def evaluated(*args: Any, **kwargs: Any) -> Any:
        if numbers:
            args = tuple(_typed_numbers(args))
        elif dynamic:
            args = tuple(_as_arrays(x) if i in positions else x for i, x in enumerate(args))
            kwargs = {k: _as_arrays(x) if k in dynamic else x for k, x in kwargs.items()}
        return evaluate(function, args, kwargs, known_shapes)

    return evaluated


def _positions(function: Callable[..., Any], dynamic: Sequence[str]) -> list[int]:
    code: Any = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if dynamic else ()
    return [i for i, name in enumerate(names) if name in dynamic]


def _typed_numbers(args: Sequence[Any]) -> list[Any]:
    """The arguments with Python numbers as 0-d arrays; if all are numbers, as they are."""
    dtypes = [x.dtype for x in args if isinstance(x, Array)]
    if not dtypes or len(dtypes) == len(args):
        return list(args)
    common = np.result_type(*dtypes).name
    return [Array.of(np.asarray(x, number_dtype(x, common))) if is_number(x) else x for x in args]


def _as_arrays(x: Any) -> Any:
    """Numbers, also in tuples and slices, as 0-d arrays; -1 remains, it may stand for a length."""
    if isinstance(x, tuple | list):
        return tuple(map(_as_arrays, x))
    if not is_number(x) or isinstance(x, bool) or (isinstance(x, int) and x == -1):
        return x
    return Array.of(np.asarray(x))


def evaluate(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    known_shapes: bool = False,
) -> Any:
    """What ``function`` returns for the arguments, in which `Array` stands for variables."""
    values: list[np.ndarray] = []
    tokens = [_token(x, values, known_shapes) for x in (*args, *kwargs.values())]
    key = (function, len(args), *kwargs, *tokens, *config.values().values())
    found = _compiled[key]
    if found is None:
        found = _compiled.keep(key, _compile(function, args, kwargs, known_shapes))
    return found.arrange([Array.of(value) for value in found.call(*values)])


def _token(x: Any, values: list[np.ndarray], known_shapes: bool) -> Any:
    """What a compiled function depends on in an argument; appends its arrays to ``values``."""
    if isinstance(x, Array):
        value = x.value
        values.append(value)
        shape = value.shape if known_shapes else tuple([n == 1 for n in value.shape])
        return value.dtype, shape
    if isinstance(x, tuple | list):
        return (type(x), *[_token(item, values, known_shapes) for item in x])
    if isinstance(x, slice):
        return (slice, *[_token(p, values, known_shapes) for p in (x.start, x.stop, x.step)])
    return exact(x)


def _symbols(x: Any, inputs: list[Variable], known_shapes: bool) -> Any:
    """An argument with variables in the places of arrays; appends them to ``inputs``."""
    if isinstance(x, Array):
        shape = tuple(n if n == 1 or known_shapes else None for n in x.shape)
        inputs.append(TensorType(x.dtype.name, shape)())
        return inputs[-1]
    if isinstance(x, tuple | list):
        return type(x)([_symbols(item, inputs, known_shapes) for item in x])
    if isinstance(x, slice):
        return slice(*[_symbols(p, inputs, known_shapes) for p in (x.start, x.stop, x.step)])
    return x


def _compile(
    function: Callable[..., Any], args: Any, kwargs: dict[str, Any], known_shapes: bool
) -> _Compiled:
    inputs: list[Variable] = []
    given = [_symbols(x, inputs, known_shapes) for x in args]
    named = {key: _symbols(x, inputs, known_shapes) for key, x in kwargs.items()}
    result = function(*given, **named)
    outputs = [result] if isinstance(result, Variable) else list(result)
    # without rewrites, some of which hold for finite numbers only: x - x becomes 0
    mode = Mode(get_mode().linker, "None")
    call = compiled(inputs, outputs, mode=mode, on_unused_input="ignore")
    if isinstance(result, Variable):
        return _Compiled(call, _single)
    cls = type(result)
    return _Compiled(call, (lambda found: cls(*found)) if hasattr(cls, "_fields") else cls)


def _single(found: list[Array]) -> Array:
    return found[0]
