"""Traces scalar functions into instructions, and folds integer ones to Dims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.dims import Dim, are_of_one_array, dim_max, dim_min
from phintys.lowering.elementwise import Map
from phintys.lowering.long_lengths import LongLengths
from phintys.lowering.program import Inst
from phintys.scalar import pairs
from phintys.scalar.dtypes import is_complex
from phintys.scalar.native import COMPUTED_IN, INSTRUCTIONS, NoForm, form_of


class Scalar:
    """A value inside a scalar function: its position and its dtype."""

    __slots__ = ("dtype", "position")

    def __init__(self, position: int, dtype: str):
        self.position = position
        self.dtype = dtype


class Recorder:
    """The `Native` that records the instructions of a scalar function.

    An instruction on float16 is recorded as one on float32, whose result is cast (`COMPUTED_IN`),
    one on complex numbers as instructions on their parts (`phintys.scalar.pairs`).  Raises `NoForm`
    if there is none.
    """

    def __init__(self, count: int):
        self.count = count  # arguments come first
        self.body: list[Inst] = []

    def emit(self, op: str, dtype: str, args: Sequence[Scalar] = (), param: Any = None) -> Scalar:
        """Append an instruction."""
        self.body.append(Inst(op, dtype, tuple(a.position for a in args), param))
        return Scalar(self.count + len(self.body) - 1, dtype)

    def const(self, value: Any, like: Any) -> Scalar:
        dtype = like if isinstance(like, str) else like.dtype
        number = value.item() if isinstance(value, np.generic) else value
        if is_complex(dtype):
            return pairs.const(self, number, dtype)
        return self.emit("const", dtype, (), number)

    def cast(self, x: Scalar, dtype: str) -> Scalar:
        if x.dtype == dtype:
            return x
        if is_complex(x.dtype) or is_complex(dtype):
            return pairs.cast(self, x, dtype)
        return self.emit("cast", dtype, (x,))

    def call(self, name: str, *args: Scalar) -> Scalar:
        if any([is_complex(a.dtype) for a in args]):
            raise NoForm(f"{name} of complex numbers")
        result, args = args[0].dtype, self._computed(args)
        return self.cast(self.emit("call", args[0].dtype, args, name), result)

    def _computed(self, args: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """Arguments of an instruction, cast to the dtype in which it is computed."""
        return tuple([self.cast(a, COMPUTED_IN.get(a.dtype, a.dtype)) for a in args])

    def dtype(self, x: Scalar) -> str:
        return x.dtype

    def __getattr__(self, name: str) -> Callable[..., Scalar]:
        op = name.rstrip("_")  # n.and_, n.or_, n.not_
        row = INSTRUCTIONS.get(op)
        if row is None:
            raise AttributeError(f"{name!r} is not a scalar instruction")

        def record(*args: Scalar) -> Scalar:
            if len(args) != row.arity:
                raise TypeError(f"{op} takes {row.arity} arguments, got {len(args)}")
            result = args[-1].dtype
            form = form_of(row, result)
            if form is not None:
                return form(self, *args)
            if result in COMPUTED_IN and op != "select":
                args = self._computed(args)
            found = self.emit(op, row.result_dtype(args[-1].dtype), args)
            rounded = result in COMPUTED_IN and row.result != "bool"
            return self.cast(found, result) if rounded else found

        return record


def record_map(
    fn: Callable[..., Any], dtypes: Sequence[str], dtype: str | None
) -> tuple[tuple[Inst, ...], int, str]:
    """The instructions of a scalar function, the position of its result, and its dtype.

    ``dtypes`` are those of the arguments; the result is cast to ``dtype`` unless that is None.

    >>> record_map(lambda n, x: n.mul(x, x), ["float64"], None)
    ((Inst(op='mul', dtype='float64', args=(0, 0), param=None),), 1, 'float64')
    """
    recorder = Recorder(len(dtypes))
    result = fn(recorder, *(Scalar(i, d) for i, d in enumerate(dtypes)))
    if dtype is not None:
        result = recorder.cast(result, dtype)
    return tuple(recorder.body), result.position, result.dtype


def fold_map(value: Map, long_lengths: LongLengths) -> tuple[Dim, ...] | None:
    """The elements of an integer `Map` as Dims (see `Value.content`); None if they are not known.

    That needs integer instructions, and no possible overflow.
    """
    contents = [a.content for a in value.args]
    if not contents or any(c is None for c in contents):
        return None
    size = 1
    if value.ndim == 1:
        if value.shape[0].value is None:
            return None
        size = value.shape[0].value
    result: list[Dim] = []
    for i in range(size):
        args = [c[i if len(c) > 1 else 0] for c in contents if c is not None]
        folded = _fold(value, args, long_lengths)
        if folded is None:
            return None
        result.append(folded)
    return tuple(result)


def _fold(value: Map, args: list[Dim], long_lengths: LongLengths) -> Dim | None:
    results: list[Dim] = list(args)
    for inst in value.body:
        rule = _FOLD.get(inst.op)
        found = None
        if inst.op == "const" and isinstance(inst.param, (bool, int)):
            found = Dim.const(inst.param)
        elif inst.op == "cast" and np.dtype(inst.dtype).kind in "iu":
            found = results[inst.args[0]]
        elif rule is not None and np.dtype(inst.dtype).kind in "iub":
            found = rule(*(results[a] for a in inst.args))
        if found is None or not fits(found, inst.dtype) or _may_wrap(found):
            return None
        results.append(long_lengths.shortened(found))
    return results[value.result]


def fits(dim: Dim, dtype: str) -> bool:
    """Whether a Dim cannot overflow its dtype; int64 holds every length."""
    if dtype == "bool":
        return True
    if dim.value is None:
        return dtype == "int64" and dim.fits
    return np.iinfo(dtype).min <= dim.value <= np.iinfo(dtype).max


def _may_wrap(dim: Dim) -> bool:
    """Whether it is a product of lengths of several arrays: as a Dim it would be taken to fit."""
    factors = [f for f in dim.args if f.value is None] if dim.op == "mul" else ()
    return dim.is_exact and not are_of_one_array(factors)


def _compare(test: Callable[[int, int], bool]) -> Callable[[Dim, Dim], Dim | None]:
    def fold(a: Dim, b: Dim) -> Dim | None:
        if a.value is None or b.value is None:
            return None
        return Dim.const(test(a.value, b.value))

    return fold


def _select(condition: Dim, a: Dim, b: Dim) -> Dim | None:
    if a is b:
        return a
    if condition.value is None:
        return None
    return a if condition.value else b


_FOLD: dict[str, Callable[..., Dim | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "idiv": lambda a, b: a // b,
    "imod": lambda a, b: a % b,
    "max": dim_max,
    "min": dim_min,
    "eq": _compare(lambda a, b: a == b),
    "ne": _compare(lambda a, b: a != b),
    "lt": _compare(lambda a, b: a < b),
    "le": _compare(lambda a, b: a <= b),
    "gt": _compare(lambda a, b: a > b),
    "ge": _compare(lambda a, b: a >= b),
    "select": _select,
}
