"""Columns for functions composed of ops, for arguments of rank 0, and for dtypes of indices.

The lines are written as in `matrix_structured`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matrix_lines import AT, FLOATS, NUMBERS, REALS, Line
from scipy import fft as scipy_fft

import phintys.tensor as pt
from phintys.tensor import blas, fourier
from phintys.tensor.nonzero import some_true
from phintys.tensor.others import ProdOthers
from phintys.tensor.recurrence import Recurrence
from phintys.tensor.reduce import CAReduce, ProdWithoutZeros

INEXACT = ("int64", "float32", "float64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LONG = ("int64",)
DOUBLE = ("float64",)


def _same(family: str, names: str, shapes: str, *args: Any, **options: Any) -> list[Line]:
    """Lines for functions that have the names and parameters of NumPy's."""
    kwargs = options.pop("kwargs", {})
    return [
        Line(
            family,
            f"{name}{''.join(f' {a}' for a in (*args, *kwargs.values()))}",
            shapes,
            lambda m, *xs, name=name: getattr(m, name)(*xs, *args, **kwargs),
            **options,
        )
        for name in names.split()
    ]


def _several(m: Any, found: Any) -> Any:
    """Several results of one shape as one."""
    return m.stack([m.asarray(f) if m is np else f for f in found])


def _recurrence(a: Any, b: Any, axis: int) -> Any:
    """``s[k] = a[k] s[k - 1] + b[k]`` along an axis."""
    found = b.copy()
    a, s = np.moveaxis(a, axis, 0), np.moveaxis(found, axis, 0)
    for k in range(1, len(s)):
        s[k] += a[k] * s[k - 1]
    return found


ROUNDING = [
    *_same("composed", "isposinf isneginf", "nm", dtypes=FLOATS),
    *_same("composed", "isclose", "nm nm", dtypes=INEXACT),
    *_same("composed", "allclose", "nm nm", dtypes=FLOATS),
    *_same("composed", "nan_to_num", "nm", dtypes=("int64", *FLOATS)),
    *_same("composed", "round", "nm", dtypes=FLOATS),
    Line("composed", "iround", "nm", lambda m, x: pt.iround(x), dtypes=FLOATS,
         numpy=lambda x: np.round(x).astype("int64"), special=False),
    Line("composed", "ceil_intdiv", "nm nm", lambda m, x, y: pt.ceil_intdiv(x, abs(y) + 1),
         dtypes=("int8", "int64"), numpy=lambda x, y: -(-x // (abs(y) + 1))),
    Line("composed", "power", "nm", lambda m, x: m.power(x, 2), dtypes=FLOATS),
    Line("composed", "divmod", "nm nm", lambda m, x, y: _several(m, m.divmod(x, y)),
         dtypes=("int64", "float64"), special=False),
    *(
        Line("composed", name, "nm nm nm", lambda m, *xs, f=f: f(*xs), dtypes=REALS,
             numpy=lambda x, y, z, ufunc=ufunc: ufunc(ufunc(x, y), z))
        for name, f, ufunc in (
            ("largest", pt.largest, np.maximum), ("smallest", pt.smallest, np.minimum),
        )
    ),
    Line("composed", "cast", "nm", lambda m, x: pt.cast(x, "float32"), dtypes=REALS,
         numpy=lambda x: x.astype("float32")),
    Line("composed", "tensor_copy", "nm", lambda m, x: pt.tensor_copy(x), numpy=np.copy),
]  # fmt: skip
STATISTICS = [
    *_same("statistics", "ptp", "nm", dtypes=("int64", *FLOATS), kinds=AT),
    Line("statistics", "max_and_argmax", "nm", lambda m, x: pt.max_and_argmax(x, 1)[1],
         dtypes=REALS, numpy=lambda x: np.argmax(x, 1), kinds=AT),
    Line("statistics", "max initial", "nm", lambda m, x: m.max(x, axis=0, initial=1), dtypes=REALS),
    *_same("statistics", "diff", "nm", dtypes=NUMBERS, special=False),
    *_same("statistics", "trapezoid", "nm", dtypes=("int64", "float64"), special=False, kinds=AT),
    *_same("statistics", "cov", "nm", dtypes=("float32", "float64"), special=False,
           kinds=("contiguous", "strided")),
    *_same("statistics", "quantile", "nm", 0.3, dtypes=FLOATS, special=False, kinds=AT),
    *_same("statistics", "percentile", "nm", 30, 1, dtypes=("int64", *FLOATS), special=False,
           kinds=AT),
    Line("statistics", "histogram", "nm", lambda m, x: m.histogram(x, 4, (-3, 3))[0],
         dtypes=("int64", "float64"), special=False),
    *_same("statistics", "bartlett", "", 7, dtypes=DOUBLE, kinds=("0-d",)),
    Line("statistics", "argtopk", "n6", lambda m, x: pt.argtopk(x, 2), dtypes=REALS,
         numpy=None),
    Line("statistics", "topk_and_argtopk", "n6", lambda m, x: pt.topk_and_argtopk(x, 3, 1)[0],
         dtypes=REALS, numpy=lambda x: np.sort(x)[:, :-4:-1]),
    Line("statistics", "interp", "n p", lambda m, x, y: m.interp(x, np.arange(3.0), y),
         dtypes=FLOATS, special=False, kinds=("contiguous", "strided", "empty")),
    Line("statistics", "interpolate1d", "n m",
         lambda m, x, y: pt.interpolate1d(pt.arange(y.shape[0]), y, extrapolate=False)(x),
         dtypes=FLOATS, special=False, kinds=("contiguous", "strided", "empty"),
         numpy=lambda x, y: np.interp(x, np.arange(len(y)), y)),
    Line("statistics", "Sum of CAReduce", "nm",
         lambda m, x: CAReduce(pt.add.scalar_op, 0)(x), numpy=lambda x: x.sum(0, x.dtype)),
    Line("statistics", "ProdWithoutZeros", "nm", lambda m, x: ProdWithoutZeros(0)(x),
         numpy=lambda x: np.where(x == 0, 1, x).prod(0), dtypes=NUMBERS),
    Line("statistics", "ProdOthers", "nm", lambda m, x: ProdOthers((1,))(x), special=False,
         numpy=lambda x: np.stack([np.delete(x, j, 1).prod(1) for j in range(x.shape[1])], 1),
         dtypes=FLOATS),
    *(
        Line("statistics", f"Recurrence {axis}", "nm nm",
             lambda m, a, b, k=axis: Recurrence(k)(a, b),
             numpy=lambda a, b, k=axis: _recurrence(a, b, k),
             special=False, dtypes=(*FLOATS, "complex128"))  # float16 is rounded at each step
        for axis in (0, 1)
    ),
]  # fmt: skip
AXES = [
    *_same("axes", "atleast_1d atleast_2d atleast_3d", "."),
    Line("axes", "atleast_3d", "nm", lambda m, x: pt.atleast_3d(x), numpy=lambda x: x[None]),
    *_same("axes", "matrix_transpose", "npm"),
    Line("axes", "atleast_Nd", "nm", lambda m, x: pt.atleast_Nd(x, n=4),
         numpy=lambda x: x[None, None]),
    Line("axes", "dimshuffle", "nm", lambda m, x: pt.dimshuffle(x, 1, "x", 0),
         numpy=lambda x: x.T[:, None]),
    Line("axes", "shape_pad", "nm",
         lambda m, x: pt.shape_padleft(pt.shape_padright(pt.shape_padaxis(x, 1)), 2),
         numpy=lambda x: x[None, None, :, None, :, None]),
    Line("axes", "specify_broadcastable", "1m", lambda m, x: pt.specify_broadcastable(x, 0),
         numpy=lambda x: x),
    Line("axes", "unbroadcast", "1m",
         lambda m, x: pt.unbroadcast(pt.specify_broadcastable(x, 0), 0), numpy=lambda x: x),
    Line("axes", "shapes", "nm", lambda m, x: pt.shape_i(x, 1) + pt.shape_tuple(x)[0] + x.size,
         numpy=lambda x: sum(x.shape) + x.size),
    Line("axes", "broadcast_shape", "nm m", lambda m, x, y: _several(m, pt.broadcast_shape(x, y)),
         numpy=lambda x, y: np.array(x.shape), kinds=("contiguous", "empty")),
    Line("axes", "broadcast_shape_iter", "nm", lambda m, x:
         _several(m, pt.broadcast_shape_iter([x.shape, (1, x.shape[1])], arrays_are_shapes=True)),
         numpy=lambda x: np.array(x.shape), kinds=("contiguous", "empty")),
    Line("axes", "broadcast_arrays", "1m n1",
         lambda m, x, y: _several(m, m.broadcast_arrays(x, y))),
    Line("axes", "unpack", "nm p",
         lambda m, x, y: pt.unpack(pt.pack(x, y)[0], [x.shape, y.shape])[0], numpy=lambda x, y: x),
    Line("axes", "scalars", ".", lambda m, x: pt.tensor_from_scalar(pt.scalar_from_tensor(x)),
         numpy=lambda x: x, kinds=("0-d",)),
    Line("axes", "is_flat", "nm", lambda m, x: x if pt.is_flat(x, 2) else None, numpy=lambda x: x),
]  # fmt: skip
CREATION = [
    Line("filled", "identity_like", "nm", lambda m, x: pt.identity_like(x),
         numpy=lambda x: np.eye(*x.shape, dtype=x.dtype)),
    Line("filled", "zeros", "nm", lambda m, x: m.zeros((x.shape[1], 2), dtype=x.dtype)),
    Line("filled", "ones", "nm", lambda m, x: m.ones(x.shape[1], dtype=x.dtype)),
    Line("filled", "empty_like", "nm", lambda m, x: m.zeros_like(m.empty_like(x))),
    *(
        Line("filled", f"{name} {endpoint}", ". .",
             lambda m, x, y, name=name, endpoint=endpoint: getattr(m, name)(
                 abs(x) + 1, abs(y) + 2, num=5, endpoint=endpoint
             ), dtypes=("int64", "float64"), special=False, kinds=("0-d",))
        for name in ("linspace", "logspace", "geomspace")
        for endpoint in (True, False)
    ),
    *(
        Line("filled", f"{name} {k}", "nm",
             lambda m, x, name=name, k=k: _several(m, getattr(m, name)(x.shape[0], k, x.shape[1])),
             dtypes=DOUBLE)
        for name in ("tril_indices", "triu_indices")
        for k in (-1, 1)
    ),
    *(
        Line("filled", name, "nm", lambda m, x, name=name: _several(m, getattr(m, name)(x, -1)),
             dtypes=DOUBLE)
        for name in ("tril_indices_from", "triu_indices_from")
    ),
    Line("filled", "meshgrid", "n m", lambda m, x, y: _several(m, m.meshgrid(x, y, indexing="ij"))),
    Line("filled", "ix_", "nm k@n", lambda m, x, k: x[m.ix_(k, k % x.shape[1])], kinds=AT),
    *_same("filled", "extract_diag", "nm", numpy=np.diagonal),
    Line("filled", "alloc_diag", "nm", lambda m, x: pt.alloc_diag(x, offset=1, axis1=1, axis2=2),
         numpy=lambda x: np.array([np.diag(r, 1) for r in x]).reshape(-1, *[x.shape[1] + 1] * 2)),
    Line("filled", "to_one_hot", "n@m", lambda m, k: pt.to_one_hot(k % 7, 7), dtypes=LONG,
         numpy=lambda k: np.eye(7)[k % 7], kinds=("contiguous", "empty", "length 1")),
]  # fmt: skip
JOINING = [
    Line("stacked", "vertical_stack", "nm km", lambda m, x, y: pt.vertical_stack(x, y),
         numpy=lambda x, y: np.vstack([x, y])),
    Line("stacked", "horizontal_stack", "nm nk", lambda m, x, y: pt.horizontal_stack(x, y),
         numpy=lambda x, y: np.hstack([x, y])),
    *(
        Line("stacked", name, ranks, lambda m, x, y, name=name: getattr(m, name)([x, y]))
        for name, ranks in (
            ("vstack", "nm km"), ("hstack", "nm nk"), ("dstack", "nm nm"), ("column_stack", "n nm"),
        )
    ),
    Line("stacked", "stacklists", ". .", lambda m, x, y: pt.stacklists([[x, y], [y, x]]),
         numpy=lambda x, y: np.array([[x, y], [y, x]]), kinds=("0-d",)),
    Line("stacked", "concat_with_broadcast", "1m nk",
         lambda m, x, y: pt.concat_with_broadcast([x, y], 1),
         numpy=lambda x, y: np.hstack([np.broadcast_to(x, (len(y), x.shape[1])), y])),
    *(
        Line("stacked", f"pad {mode}", "nm",
             lambda m, x, mode=mode: m.pad(x, ((1, 2), (0, 3)), mode=mode),
             dtypes=("int64", "float64"), kinds=AT, special=False)
        for mode in ("linear_ramp", "maximum", "minimum", "mean", "median")
    ),
]  # fmt: skip
SELECTION = [
    *_same("selected", "flatnonzero", "nm"),
    Line("selected", "some_true", "n n?", lambda m, x, mask: x * some_true(mask | ~mask),
         numpy=lambda x, mask: x, kinds=AT),
    Line("selected", "nonzero_values", "nm", lambda m, x: pt.nonzero_values(x),
         numpy=lambda x: x[x != 0]),
    Line("selected", "masked sum", "nm nm?", lambda m, x, c: x[c].sum(), dtypes=NUMBERS,
         special=False),
    Line("selected", "slice_at_axis", "nm", lambda m, x: x[pt.slice_at_axis(slice(1, None), 1)],
         numpy=lambda x: x[:, 1:]),
    Line("selected", "make_slice", "nm .@n", lambda m, x, k: x[pt.make_slice(None, k)],
         numpy=lambda x, k: x[:k], kinds=AT),
    Line("selected", "inverse_permutation", "n", lambda m, x: pt.inverse_permutation(
         pt.argsort(x, stable=True)), dtypes=("int64", "float64"),
         numpy=lambda x: np.argsort(np.argsort(x, kind="stable"))),
]  # fmt: skip
PRODUCTS = [
    *(
        Line("products", name, shapes, lambda m, x, y, name=name: getattr(pt, name)(x, y),
             numpy=reference, dtypes=INEXACT, special=False)
        for name, shapes, reference in (
            ("matvec", "pnm pm", lambda x, y: (x @ y[..., None])[..., 0]),
            ("vecmat", "pn pnm", lambda x, y: (x[:, None] @ y)[:, 0]),
            ("vecdot", "pn pn", lambda x, y: (x * y).sum(-1)),
            ("batched_dot", "pnm pmk", np.matmul),
            ("dense_dot", "nm mk", np.dot),
        )
    ),
    *(
        Line("products", type(op).__name__, shapes, lambda m, *xs, op=op: op(*xs), numpy=reference,
             dtypes=FLOATS, special=False)
        for op, shapes, reference in (
            (blas.Dot22(), "nm mk", np.dot),
            (blas.Dot22Scalar(), "nm mk .", lambda x, y, a: a * (x @ y)),
            (blas.BatchedDot(), "pnm pmk", np.matmul),
            (blas.Ger(), "nm . n m", lambda z, a, x, y: z + a * np.outer(x, y)),
            (blas.Gemv(), "n . nm m .", lambda z, a, x, y, b: b * z + a * (x @ y)),
        )
    ),
    *(
        Line("products", name, "nm", lambda m, x, name=name: getattr(fourier, name)(x, 6),
             numpy=lambda x, name=name: getattr(scipy_fft, name)(x, 6), special=False,
             dtypes=("float32", "float64") if name == "rfft" else ("float64", "complex128"),
             kinds=("contiguous", "strided", "length 1"))
        for name in ("fft", "ifft", "rfft", "irfft")
    ),
]  # fmt: skip
ZERO = ("0-d",)
RANK_0 = [
    *_same("rank 0", "sum prod max min", ".", dtypes=REALS, kinds=ZERO),
    *_same("rank 0", "any all argmax mean var", ".", dtypes=DOUBLE, kinds=ZERO),
    *_same("rank 0", "ravel zeros_like transpose", ".", dtypes=DOUBLE, kinds=ZERO),
    *_same("rank 0", "reshape", ".", (1, 1), kinds=ZERO),
    *_same("rank 0", "broadcast_to", ".", (2, 3), kinds=ZERO),
    *_same("rank 0", "expand_dims repeat", ".", 0, kinds=ZERO),
    *_same("rank 0", "tile", ".", (2, 2), kinds=ZERO),
    *_same("rank 0", "unique cumsum cumprod flip", ".", dtypes=DOUBLE, kinds=ZERO),
    Line("rank 0", "searchsorted", "m .", lambda m, x, v: m.searchsorted(m.sort(x), v),
         dtypes=REALS, kinds=("contiguous",)),
    Line("rank 0", "take", "m .@m", lambda m, x, k: m.take(x, k), kinds=("contiguous",)),
    Line("rank 0", "set", ". .", lambda m, x, y: x[()].set(y) if m is pt else y, kinds=ZERO),
    Line("rank 0", "where", ".? . .", lambda m, c, x, y: m.where(c, x, y), kinds=ZERO),
    Line("rank 0", "dot", ". nm", lambda m, x, y: m.dot(x, y), dtypes=INEXACT, special=False),
]  # fmt: skip


def _writes(name: str, shapes: str, change: Any, how: str) -> Line:
    """``change(x, *index)`` is the index expression; ``how`` is ``set`` or ``inc``."""

    def build(m: Any, x: Any, *others: Any) -> Any:
        *index, y = others
        key = change(*index)
        if m is pt:
            return getattr(x[key], how)(y)
        out = x.copy()
        if how == "set":
            out[key] = y
        else:
            np.add.at(out, key, y)
        return out

    return Line("index dtype", f"{name} {how}", shapes, build, dtypes=DOUBLE, kinds=AT,
                special=False)  # fmt: skip


def _index_lines(index: str) -> list[Line]:
    """Everything that takes positions, with positions of one dtype."""
    rows = slice(None)

    def read(name: str, shapes: str, build: Any, **options: Any) -> Line:
        return Line(
            "index dtype", name, shapes, build, **{"dtypes": DOUBLE, "kinds": AT, **options}
        )

    return [
        read("x[i]", "nm .@n", lambda m, x, i: x[i]),
        read("x[:, i:]", "nm .@m", lambda m, x, i: x[:, i:]),
        read("x[:j:2]", "nm .@n", lambda m, x, j: x[:j:2]),
        read("x[k]", "nm k@n", lambda m, x, k: x[k]),
        read("x[:, k]", "nm k@m", lambda m, x, k: x[:, k]),
        read("x[k, l]", "nm k@n k@m", lambda m, x, k, j: x[k, j]),
        read("x[K, i]", "nm kp@n .@m", lambda m, x, k, i: x[k, i]),
        *(
            line
            for how in ("set", "inc")
            for line in (
                _writes("x[i]", "nm .@n m", lambda i: (i,), how),
                _writes("x[k]", "nm k@n m", lambda k: (k,), how),
                _writes("x[:, k]", "nm k@m .", lambda k: (rows, k), how),
                _writes("x[k, l]", "nm k@n k@m k", lambda k, j: (k, j), how),
            )
        ),
        read("take", "nm kp@m", lambda m, x, k: m.take(x, k, axis=1)),
        read("take wrap", "nm k@m", lambda m, x, k: m.take(x, k + k, axis=1, mode="wrap")),
        read("take_along_axis", "nm nk@m", lambda m, x, k: m.take_along_axis(x, k, 1)),
        read("one_hot", "n@m", lambda m, k: pt.one_hot(abs(k), 7),
             numpy=lambda k: np.eye(8)[abs(k).astype("int64"), :7]),
        read("repeat", "km k@n", lambda m, x, r: m.repeat(x, m.abs(r).astype("int64"), axis=0)
             if m is np else m.repeat(x, abs(r), axis=0)),
        read("choose", "pm m@p",
             lambda m, x, k: pt.choose(k, [x[j] for j in range(3)], mode="wrap"),
             numpy=lambda x, k: np.choose(k.astype("int64"), x, mode="wrap"),
             kinds=("contiguous", "strided")),
        read("permute_row_elements", "nm m@m",
             lambda m, x, k: pt.permute_row_elements(x, pt.argsort(k, stable=True).astype(index)),
             numpy=lambda x, k: x[:, np.argsort(k, kind="stable")]),
        read("searchsorted sorter", "m k", lambda m, x, v:
             pt.searchsorted(x, v, sorter=pt.argsort(x).astype(index)), special=False,
             numpy=lambda x, v: np.searchsorted(np.sort(x), v)),
        read("ravel_multi_index", "k@n k@m",
             lambda m, k, j: m.ravel_multi_index((k, j), (5, 7), mode="wrap"),
             kinds=("contiguous",)),
        read("unravel_index", "k@m",
             lambda m, k: _several(m, m.unravel_index(abs(k), (2, 7))), kinds=("contiguous",)),
        read("bincount", "k@m", lambda m, k: m.bincount(abs(k), minlength=7),
             kinds=("contiguous", "length 1")) if index != "uint64" else
        read("bincount", "k@m", lambda m, k: pt.bincount(k, minlength=7),
             numpy=lambda k: np.bincount(k.astype("int64"), minlength=7)),
        read("put_along_axis", "nm n1@m .", lambda m, x, k, y: pt.put_along_axis(x, k, y, 1),
             numpy=lambda x, k, y: _put(x, k, y)),
    ]  # fmt: skip


def _put(x: np.ndarray, k: np.ndarray, y: Any) -> np.ndarray:
    out = x.copy()
    np.put_along_axis(out, k.astype("int64"), y, 1)
    return out


LINES = [
    *ROUNDING, *STATISTICS, *AXES, *CREATION, *JOINING, *SELECTION, *PRODUCTS, *RANK_0,
    *(line.with_indices(index) for index in INTEGERS for line in _index_lines(index)),
]  # fmt: skip
