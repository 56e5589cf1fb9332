"""What the public functions mean, in NumPy written directly.

A statement of a drawn program is evaluated a second time with ``pt`` bound to `NUMPY` and names
bound to arrays.  A function that is not here, or a text that NumPy does not understand, is not
checked in this way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

_SAME = """sum prod max min any all mean var std argmax argmin cumsum cumprod concatenate stack
repeat roll reshape transpose swapaxes moveaxis expand_dims squeeze dot matmul tensordot outer
inner einsum eye zeros ones full zeros_like ones_like full_like sort diag diagonal trace tril triu
tri take_along_axis compress where broadcast_to flip diff ptp ravel atleast_1d clip isclose
allclose linspace geomspace logspace nan_to_num isposinf isneginf flatnonzero
exp log sqrt sin cos tanh floor ceil trunc abs sign isnan isinf isfinite
logical_and logical_or logical_not equal not_equal less greater less_equal greater_equal
logaddexp hypot arctan2 copysign
searchsorted bincount histogram choose ravel_multi_index unravel_index ix_ meshgrid pad
median quantile percentile cov trapezoid interp nonzero argsort broadcast_arrays divmod vectorize
tril_indices_from triu_indices_from
""".split()


def _dimshuffle(x: Any, *pattern: Any) -> Any:
    order = [p for p in pattern if p != "x"]
    out = np.transpose(x, order + [k for k in range(x.ndim) if k not in order])
    out = out.reshape(out.shape[: len(order)])
    return np.expand_dims(out, tuple(k for k, p in enumerate(pattern) if p == "x"))


def _softmax(x: Any, axis: Any = None) -> Any:
    x = _floating(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = _floating(x)
    top = np.where(np.isfinite(m := x.max(axis=axis, keepdims=True)), m, 0)
    out = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return out if keepdims else out.reshape(x.sum(axis=axis).shape)


def _log_softmax(x: Any, axis: Any = None) -> Any:
    x = _floating(x)
    x = x - x.max(axis=axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


def _floating(x: Any) -> Any:
    return x.astype("float64") if x.dtype.kind in "biu" else x


def _flatten(x: Any, ndim: int = 1) -> Any:
    return x.reshape((*x.shape[: ndim - 1], -1))


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """NumPy's, whose number of elements would wrap around in a narrow dtype."""
    given = [start, stop, step] if stop is not None else [start]
    common = np.result_type(*given)  # NumPy's own differences of unsigned numbers wrap
    if common.kind in "iu":
        return np.arange(*map(int, given), dtype=dtype or common)
    return np.arange(*(np.asarray(g, common)[()] for g in given), dtype=dtype)


def _second(a: Any, b: Any) -> Any:
    return np.broadcast_to(b, np.broadcast_shapes(np.shape(a), np.shape(b)))


def _cast(x: Any, dtype: str) -> np.ndarray:
    """NumPy's conversion; to uint32 by way of int64, where NumPy depends on the length."""
    x = np.asarray(x)
    return (x.astype("int64") if dtype == "uint32" and x.dtype.kind == "f" else x).astype(dtype)


_INTEGERS = ("int8", "int16", "int32", "int64", "uint64")


def _typed(x: Any) -> np.ndarray:
    """An array; Python numbers in the smallest dtype that holds them, see docs/differences.md."""
    if isinstance(x, int) and not isinstance(x, bool):
        return np.asarray(x, next(d for d in _INTEGERS if np.iinfo(d).min <= x <= np.iinfo(d).max))
    if isinstance(x, float):
        return np.asarray(x, "float32" if float(np.float32(x)) == x else "float64")
    return np.asarray(x)


def _folded(function: Any) -> Callable[..., Any]:
    """A function of two arguments for any number of them, in the dtype of the result."""

    def fold(*xs: Any) -> Any:
        arrays = list(map(_typed, xs))
        dtype = np.result_type(*arrays)
        return reduce(function, [x.astype(dtype) for x in arrays])

    return fold


def _topk(x: Any, k: int, axis: int = -1) -> np.ndarray:
    """The ``k`` greatest elements, in descending order, or the ``-k`` smallest."""
    places = range(-k) if k < 0 else range(x.shape[axis] - 1, x.shape[axis] - 1 - k, -1)
    return np.take(np.sort(x, axis), list(places), axis)


def _unique(x: Any, axis: Any = None, **kwargs: bool) -> Any:
    """NumPy's; positions are vectors."""
    found = np.unique(x, axis=axis, **kwargs)
    return (found[0], *map(np.ravel, found[1:])) if isinstance(found, tuple) else found


def _permuted(x: Any, y: Any, inverse: bool = False) -> np.ndarray:
    return np.take_along_axis(x, np.argsort(y, -1) if inverse else y, -1)


def _filled(x: Any, value: Any, offset: int = 0) -> np.ndarray:
    rows, columns = np.indices(x.shape)
    return np.where(columns - rows == offset, value, x)


def _written(x: Any, indices: Any, values: Any, axis: int) -> np.ndarray:
    out = np.array(x)
    np.put_along_axis(out, indices, values, axis)
    return out


def _joined(x: Any, start: int, n: int) -> np.ndarray:
    joined = int(np.prod(x.shape[start : start + n]))
    return x.reshape((*x.shape[:start], joined, *x.shape[start + n :]))


def _split_axis(x: Any, shape: Any, axis: int) -> np.ndarray:
    axis %= x.ndim
    return x.reshape((*x.shape[:axis], *shape, *x.shape[axis + 1 :]))


def _packed(*xs: Any) -> tuple[np.ndarray, list[Any]]:
    return np.concatenate([np.ravel(x) for x in xs]), [np.shape(x) for x in xs]


def _unpacked(x: Any, shapes: list[Any]) -> list[np.ndarray]:
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    return [p.reshape(shape) for p, shape in zip(np.split(x, ends[:-1]), shapes, strict=True)]


def _padded_rank(n: int, xs: Any, left: bool) -> Any:
    """Arrays with axes of length 1 before or after their own."""
    ones = [(1,) * (n - x.ndim) for x in xs]
    found = [x.reshape((*i, *x.shape) if left else (*x.shape, *i)) for i, x in zip(ones, xs)]
    return found if len(found) > 1 else found[0]


def _tile(x: Any, reps: Any) -> np.ndarray:
    """NumPy's tile, whose lengths would wrap around in the dtype of ``reps``."""
    return np.tile(x, np.asarray(reps).astype(int).tolist())


_OWN: dict[str, Callable[..., Any]] = {
    "tile": _tile,
    "topk": _topk,
    "unique": _unique,
    "permute_row_elements": _permuted,
    "inverse_permutation": lambda x: np.argsort(x, -1),
    "fill_diagonal": _filled,
    "fill_diagonal_offset": _filled,
    "put_along_axis": _written,
    "join_dims": _joined,
    "split_dims": _split_axis,
    "pack": _packed,
    "unpack": _unpacked,
    "nonzero_values": lambda x: x[np.nonzero(x)],
    "tensor_copy": lambda x: x,
    "make_slice": slice,
    "round": lambda x, mode=None: np.round(x),
    "atleast_2d": lambda *xs, left=True: _padded_rank(2, xs, left),
    "atleast_3d": lambda *xs, left=True: _padded_rank(3, xs, left),
    "alloc": lambda value, *shape: np.broadcast_to(value, shape),
    "cast": _cast,
    "dimshuffle": _dimshuffle,
    "join": lambda axis, *xs: np.concatenate(xs, axis),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "flatten": _flatten,
    "arange": _arange,
    "add": _folded(np.add),
    "mul": _folded(np.multiply),
    "maximum": _folded(np.maximum),
    "minimum": _folded(np.minimum),
    "second": _second,
    "fill": _second,
    "switch": lambda c, x, y: np.where(c, x, y),
    "take": lambda x, i, axis=None, mode="raise": np.take(x, i, axis, mode=mode),
    "shape": lambda x: np.array(x.shape),
    "batched_tensordot": lambda x, y, axes: np.stack(
        [
            np.tensordot(a, b, axes if axes == 1 else [[k - 1 for k in ks] for ks in axes])
            for a, b in zip(x, y, strict=True)
        ]
    ),
    "batched_dot": lambda x, y: np.stack([np.dot(a, b) for a, b in zip(x, y, strict=True)]),
    "matvec": lambda a, x: (a @ x[..., None])[..., 0],
    "vecmat": lambda x, a: (x[..., None, :] @ a)[..., 0, :],
    "vecdot": lambda x, y: (x * y).sum(-1),
    "matrix_transpose": lambda x: np.swapaxes(x, -1, -2),
    "specify_shape": lambda x, shape: x,
    "identity_like": lambda x, dtype=None: np.eye(*x.shape),
    "split": lambda x, sizes, n_splits=None, axis=0: np.split(
        x, np.cumsum(np.asarray(sizes, int))[:-1], axis
    ),
    "constant": lambda x, dtype=None: np.asarray(x, dtype),
}
#: functions whose integer arguments are lengths, shifts and axes: NumPy's would wrap around in them
_COUNTED = (
    "repeat roll eye tri tril triu diag diagonal trace diff zeros ones full broadcast_to bincount "
    "pad tril_indices triu_indices bartlett split_dims"
).split()


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        named = {key: _as_python(value) for key, value in kwargs.items()}
        return function(*map(_as_python, args), **named)

    return called


def _as_python(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_as_python, x))
    return int(x) if isinstance(x, np.integer) else x


_functions: dict[str, Any] = {name: getattr(np, name) for name in _SAME} | _OWN
_functions |= {name: _counted(_functions.get(name) or getattr(np, name)) for name in _COUNTED}
NUMPY = SimpleNamespace(**_functions)


def changed(x: Any, key: Any, y: Any) -> Any:
    """A copy with ``y`` at some places."""
    out = np.array(x)
    out[key] = y
    return out


def increased(x: Any, key: Any, y: Any) -> Any:
    """A copy with ``y`` added at some places, as often as they are named."""
    out = np.array(x, order="C")
    where = np.arange(out.size).reshape(out.shape)[key]
    flat = out.reshape(-1)
    values = np.broadcast_to(y, where.shape).astype(out.dtype)
    for at, value in zip(where.reshape(-1), values.reshape(-1)):
        flat[at] += value
    return out


def until(condition: Any) -> Any:
    """The condition of a while loop, as a step function returns it."""
    return bool(condition)


def scan(
    fn: Callable[..., Any],
    sequences: Sequence[Any],
    outputs_info: Sequence[Any],
    non_sequences: Sequence[Any],
    n_steps: Any = None,
    go_backwards: bool = False,
    **_: bool,
) -> list[np.ndarray]:
    """`phintys.scan` for one sequence with taps 0 and more, and one state."""
    given = sequences[0] if isinstance(sequences[0], dict) else dict(input=sequences[0], taps=[0])
    x, taps = given["input"], given["taps"]
    places = range(len(x) - max(taps))[:: -1 if go_backwards else 1]
    last, traces = outputs_info[0], [[] for _ in outputs_info]
    for t in places if n_steps is None else places[: int(n_steps)]:
        found = fn(*(x[t + k] for k in taps), last, *non_sequences)
        outputs, stop = found if isinstance(found, tuple) else (found, False)
        last = np.asarray(outputs[0])
        for trace, value in zip(traces, outputs, strict=True):
            trace.append(np.broadcast_to(value, np.shape(value)))
        if stop:
            break
    if not traces[0]:
        raise ValueError("NumPy does not know the shape of no rows.")
    return list(map(np.array, traces))


def checkpoints(rows: np.ndarray, every: int) -> np.ndarray:
    """The rows after every so many steps, and the last one."""
    return rows[sorted({*range(every - 1, len(rows), every), len(rows) - 1})]


#: names for the ``numpy`` text of statements
HELPERS = dict(
    changed=changed, increased=increased, scan=scan, until=until, checkpoints=checkpoints
)

TOLERANCE = {"float16": 3e-2, "float32": 2e-4, "complex64": 2e-4}


#: a rounding error may become a whole step
STEPS = re.compile(r"%|//|mod|round|floor|ceil|trunc|sign|heaviside")
#: terms in another order may overflow or cancel elsewhere
UNORDERED = re.compile(
    r"dot|mat|outer|sum|mean|var|std|trace|softmax|prod|space|median|quantile|percentile|cov|trapez"
    r"|interp|pad|histogram"
)


def difference(value: Any, expected: Any, text: str = "") -> str:
    """How a result of one function differs from NumPy's beyond rounding; empty if it does not."""
    expected = np.asarray(expected)
    if value.shape != expected.shape:
        return f"shape {value.shape} instead of {expected.shape}"
    if value.dtype.kind in "biu":
        if "dtype=" in text:
            return ""  # NumPy converts each element first
        if expected.dtype != value.dtype:
            return ""  # by other rules of promotion it may wrap elsewhere
        same = value == expected
    elif expected.dtype.kind not in "fc":
        return ""
    elif expected.dtype != value.dtype and STEPS.search(text):
        return ""  # 0-d integers are Python's here, and do not widen float32
    else:
        coarse = max(TOLERANCE.get(d.name, 1e-9) for d in (value.dtype, expected.dtype))
        coarse = 3e-2 if "space(" in text else coarse
        finite = np.abs(expected[np.isfinite(expected)])
        scale = 1 + (finite.max() if finite.size else 0)
        same = np.isclose(value, expected, rtol=coarse, atol=coarse * scale, equal_nan=True)
        same |= ~np.isfinite(expected) & (expected.dtype != value.dtype)
        if expected.dtype.kind == "c" and UNORDERED.search(text):
            same |= ~np.isfinite(expected) & ~np.isfinite(value)  # inf * inf or inf - inf
    if "var(" in text or "std(" in text:
        same |= np.isnan(expected)  # fewer elements than ddof
    if same.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{value[at]!r} instead of {expected[at]!r} at {at}"
