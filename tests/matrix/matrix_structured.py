"""Columns for the ops that are not elementwise."""

from __future__ import annotations

from typing import Any

import matrix_functions
import matrix_matrices
import matrix_signal
import numpy as np
from matrix_cells import Column
from matrix_lines import ANY, AT, FLOATS, KINDS, NUMBERS, REALS, Line, column

import phintys
import phintys.tensor as pt
from phintys.inner import OpFromGraph
from phintys.tensor import blas
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import Dot
from phintys.tensor.linalg.decomposition.cholesky_pullback import cholesky_pullback


def _linear_algebra() -> list[Line]:
    """Factors of positive definite matrices, and systems with triangular ones."""

    def positive(m: Any, x: Any) -> Any:
        square = m.matmul(x, m.swapaxes(m.conj(x), -1, -2))
        return square / 100 + 9 * m.eye(x.shape[-2], dtype=x.dtype)

    lines = []
    for batch, lower in (("", True), ("p", False)):
        flags = {"lower": lower}
        common = {"numpy": None, "dtypes": ("float64", "complex128"), "special": False}
        cholesky = Line(
            "linear algebra",
            f"cholesky {batch}",
            f"{batch}nm",
            lambda m, x, flags=flags: pt.linalg.cholesky(positive(m, x), **flags),
            **common,
        )
        solve = Line(
            "linear algebra",
            f"solve_triangular {batch}",
            f"{batch}nm {batch}nk",
            lambda m, x, y, flags=flags: pt.linalg.solve_triangular(positive(m, x), y, **flags),
            **common,
        )
        lines += [cholesky, solve]
    pullback = Line(
        "linear algebra",
        "cholesky_pullback",
        "nm nm",
        lambda m, x, g: cholesky_pullback(positive(m, x), positive(m, g)),
        **{**common, "dtypes": ("float32", "float64")},
    )
    factors = Line(
        "linear algebra",
        "decompositions",
        "nm",
        lambda m, x: _decompositions(x, positive(m, x)),
        **{**common, "dtypes": ("float64",)},
    )
    return [*lines, pullback, factors, *_elimination(positive)]


def _decompositions(x: Any, positive: Any) -> Any:
    """What factors of matrices determine, whatever their signs."""
    q, r, order = pt.linalg.qr(x, "economic", pivoting=True)
    u, s, vt = pt.linalg.svd(x, full_matrices=False)
    w, v = pt.linalg.eigh(positive)
    found = [q @ r, order, (u * s * s) @ vt, w, (v * w) @ v.T, pt.linalg.eigvalsh(positive)]
    found += [pt.sort(pt.real(pt.linalg.eig(positive)[0]))]
    t, z = pt.linalg.schur(positive)
    aa, bb, left, right = pt.linalg.qz(positive, t)
    found += [z @ t @ z.T, left @ (aa + bb) @ right.T]
    return pt.join(0, *(pt.cast(y.ravel(), "float64") for y in found))


def _elimination(positive: Any) -> list[Line]:
    """Factors of other matrices, and what follows from them."""
    linalg = pt.linalg

    def factors(m: Any, x: Any) -> Any:
        order, *rest = linalg.lu(positive(m, x), p_indices=True)
        return m.concatenate([*linalg.lu(positive(m, x)), *rest, order[:, None]], axis=1)

    def factored(m: Any, x: Any, y: Any) -> Any:
        factors = linalg.lu_factor(positive(m, x))
        order = linalg.pivot_to_permutation(factors[1])
        return linalg.lu_solve(factors, y, b_ndim=2) + m.expand_dims(order, -1)

    def solutions(m: Any, x: Any, y: Any) -> Any:
        kinds = ("gen", "sym", "her", "pos", "tridiagonal", "diagonal")
        return sum(linalg.solve(positive(m, x), y, assume_a=k, b_ndim=2) for k in kinds)

    def tridiagonal(m: Any, x: Any, y: Any) -> Any:
        factors = linalg.tridiagonal_lu_factor(positive(m, x))
        return linalg.tridiagonal_lu_solve(factors, y, b_ndim=2)

    def determinants(m: Any, x: Any) -> Any:
        x = positive(m, x)
        sign, logarithm = linalg.slogdet(x)
        return linalg.inv(x) * m.expand_dims(linalg.det(x) + sign * logarithm, (-1, -2))

    def cho_solve(m: Any, x: Any, y: Any) -> Any:
        return linalg.cho_solve((positive(m, x), True), y, b_ndim=2)

    common = {"numpy": None, "special": False, "dtypes": ("float64",)}
    return [
        Line("linear algebra", "lu", "nm", factors, **common),
        Line("linear algebra", "lu_factor, lu_solve", "pnm nk", factored, **common),
        Line("linear algebra", "solve", "nm nk", solutions, **common),
        Line("linear algebra", "tridiagonal", "nm nk", tridiagonal, **common),
        Line("linear algebra", "inv, det, slogdet", "pnm", determinants, **common),
        Line("linear algebra", "cho_solve", "nm nk", cho_solve, **common),
    ]


def _reductions() -> list[Line]:
    lines = []
    for name in (
        "sum",
        "prod",
        "max",
        "min",
        "any",
        "all",
        "mean",
        "var",
        "std",
        "argmax",
        "argmin",
    ):
        dtypes = {"any": ("bool",), "all": ("bool",)}.get(name, NUMBERS)
        kinds = KINDS
        if name in ("max", "min", "argmax", "argmin"):
            dtypes, kinds = REALS, ("contiguous", "strided", "length 1")
        if name in ("mean", "var", "std"):
            dtypes, kinds = ("int64", *FLOATS), ("contiguous", "strided", "length 1")
        for shape, axis in (("n", None), ("nm", None), ("nm", 0), ("nm", 1), ("npm", 1)):
            lines.append(
                Line(
                    "reduction",
                    f"{name} axis={axis}",
                    shape,
                    lambda m, x, name=name, axis=axis: getattr(m, name)(x, axis=axis),
                    dtypes=dtypes,
                    kinds=kinds,
                    special=name not in ("var", "std"),
                )
            )
    lines += [
        Line("reduction", "sum keepdims", "npm", lambda m, x: m.sum(x, axis=2, keepdims=True)),
        Line("reduction", "sum axes", "npm", lambda m, x: m.sum(x, axis=(0, 2))),
        Line(
            "reduction",
            "cumsum",
            "nm",
            lambda m, x: m.cumsum(x, axis=1),
            numpy=lambda x: np.cumsum(x, 1),
            dtypes=NUMBERS,
        ),
        Line(
            "reduction",
            "cumprod",
            "nm",
            lambda m, x: m.cumprod(x, axis=0),
            numpy=lambda x: np.cumprod(x, 0),
            dtypes=NUMBERS,
        ),
    ]
    return lines


SHAPES = [
    Line("shape", "transpose", "npm", lambda m, x: m.transpose(x, (2, 0, 1))),
    Line("shape", "expand_dims", "nm", lambda m, x: m.expand_dims(x, 1)),
    Line("shape", "squeeze", "n1m", lambda m, x: m.squeeze(x, axis=1)),
    Line(
        "shape",
        "reshape -1",
        "nm",
        lambda m, x: m.reshape(x, (-1, x.shape[0])),
        kinds=("contiguous", "strided", "length 1"),
    ),
    Line("shape", "ravel", "nm", lambda m, x: m.ravel(x)),
    Line(
        "shape",
        "flatten",
        "npm",
        lambda m, x: x.flatten(2),
        numpy=lambda x: x.reshape(x.shape[0], x.shape[1] * x.shape[2]),
    ),
    Line(
        "shape",
        "shape",
        "nm",
        lambda m, x: pt.stack(list(x.shape)),
        numpy=lambda x: np.array(x.shape),
    ),
    Line("shape", "make_vector", ". .", lambda m, x, y: m.stack([x, y])),
    Line(
        "shape",
        "specify_shape",
        "nm",
        lambda m, x: pt.specify_shape(x, (None, x.shape[1])),
        numpy=lambda x: x,
    ),
    Line(
        "shape",
        "join_dims",
        "npm",
        lambda m, x: pt.join_dims(x, 1),
        numpy=lambda x: x.reshape(x.shape[0], x.shape[1] * x.shape[2]),
    ),
    Line(
        "shape",
        "split_dims",
        "n6",
        lambda m, x: pt.split_dims(x, (2, 3), 1),
        numpy=lambda x: x.reshape(x.shape[0], 2, 3),
    ),
    Line(
        "shape",
        "pack",
        "nm p",
        lambda m, x, y: pt.pack(x, y)[0],
        numpy=lambda x, y: np.concatenate([x.ravel(), y]),
    ),
    Line("shape", "broadcast_to", "m", lambda m, x: m.broadcast_to(x, (3, x.shape[0]))),
    Line("shape", "swapaxes", "npm", lambda m, x: m.swapaxes(x, 0, 2)),
    Line("shape", "moveaxis", "npm", lambda m, x: m.moveaxis(x, 0, 2)),
]
CREATION = [
    Line("creation", "alloc", ". n", lambda m, a, x: m.full((x.shape[0], 3), a), dtypes=ANY),
    Line("creation", "zeros_like", "nm", lambda m, x: m.zeros_like(x)),
    Line("creation", "ones_like", "nm", lambda m, x: m.ones_like(x)),
    Line("creation", "full_like", "nm .", lambda m, x, a: m.full_like(x, a)),
    Line(
        "creation",
        "arange",
        "n",
        lambda m, x: m.arange(1, x.shape[0], 2) + 0 * m.sum(x),
        dtypes=("int64", "float64"),
        special=False,
    ),
    Line("creation", "eye", "nm", lambda m, x: m.eye(x.shape[0], x.shape[1], 1, dtype=x.dtype)),
    Line("creation", "tri", "nm", lambda m, x: m.tri(x.shape[0], x.shape[1], -1, dtype=x.dtype)),
    Line("creation", "tril", "nm", lambda m, x: m.tril(x), special=False),
    Line("creation", "triu", "nm", lambda m, x: m.triu(x, 1), special=False),
    Line("creation", "diag of vector", "n", lambda m, x: m.diag(x)),
    Line("creation", "diag of matrix", "nm", lambda m, x: m.diag(x)),
    Line("creation", "diagonal", "npm", lambda m, x: m.diagonal(x, 1, 0, 2)),
    Line(
        "creation",
        "fill_diagonal",
        "nm .",
        lambda m, x, a: pt.fill_diagonal(x, a),
        numpy=lambda x, a: np.where(np.eye(*x.shape, dtype=bool), a, x),
    ),
    Line(
        "creation",
        "fill_diagonal_offset",
        "nm .",
        lambda m, x, a: pt.fill_diagonal_offset(x, a, -1),
        numpy=lambda x, a: np.where(np.eye(*x.shape, -1, dtype=bool), a, x),
    ),
    Line("creation", "trace", "nn", lambda m, x: m.trace(x), dtypes=NUMBERS),
    Line(
        "creation",
        "one_hot",
        "n@m",
        lambda m, k: pt.one_hot(k, 7),
        dtypes=("int64",),
        numpy=lambda k: np.where(k[:, None] == np.arange(7), 1.0, 0.0),
        kinds=("contiguous", "empty", "length 1"),
    ),
]
JOINING = [
    Line("join", "concatenate 0", "nm km", lambda m, x, y: m.concatenate([x, y], 0)),
    Line("join", "concatenate 1", "nm nk", lambda m, x, y: m.concatenate([x, y], 1)),
    Line("join", "concatenate vectors", "n m k", lambda m, x, y, z: m.concatenate([x, y, z])),
    Line("join", "stack", "nm nm", lambda m, x, y: m.stack([x, y], 1)),
    Line(
        "join",
        "split",
        "6m",
        lambda m, x: pt.concatenate(pt.split(x, [2, 4], n_splits=2)[::-1]),
        numpy=lambda x: np.concatenate([x[2:], x[:2]]),
        kinds=("contiguous", "strided", "empty"),
    ),
    Line("join", "repeat", "nm", lambda m, x: m.repeat(x, 2, axis=1)),
    Line("join", "repeat counts", "km k@n", lambda m, x, r: m.repeat(x, abs(r), axis=0)),
    Line("join", "tile", "nm", lambda m, x: m.tile(x, (2, 3))),
    Line(
        "join",
        "roll",
        "nm",
        lambda m, x: m.roll(x, 2, axis=0),
        kinds=("contiguous", "strided", "length 1"),
    ),
    *(
        Line(
            "join",
            f"pad {mode}",
            "nm",
            lambda m, x, mode=mode: m.pad(x, ((1, 2), (0, 9)), mode=mode),
            dtypes=NUMBERS,
            kinds=("contiguous", "strided", "length 1", *(["empty"] * (mode == "constant"))),
        )
        for mode in ("constant", "edge", "wrap", "symmetric", "reflect")
    ),
    Line("join", "flip", "nm", lambda m, x: m.flip(x, 0)),
]
INDEXING = [
    Line("index", "x[i]", "nm .@n", lambda m, x, i: x[i], kinds=AT),
    Line("index", "x[i, j]", "nm .@n .@m", lambda m, x, i, j: x[i, j], kinds=AT),
    Line("index", "x[a:b]", "nm .@n .@n", lambda m, x, a, b: x[a:b], kinds=AT),
    Line("index", "x[1:-1]", "nm", lambda m, x: x[1:-1]),
    Line("index", "x[::-2]", "nm", lambda m, x: x[::-2]),
    Line("index", "x[..., ::2]", "npm", lambda m, x: x[..., ::2]),
    Line("index", "x[None, :, -1]", "nm", lambda m, x: x[None, :, -1], kinds=AT),
    Line("index", "x[k]", "nm k@n", lambda m, x, k: x[k], kinds=AT),
    Line("index", "x[:, k]", "nm k@m", lambda m, x, k: x[:, k], kinds=AT),
    Line("index", "x[k, l]", "nm k@n k@m", lambda m, x, k, j: x[k, j], kinds=AT),
    Line("index", "x[k, :, l]", "npm k@n k@m", lambda m, x, k, j: x[k, :, j], kinds=AT),
    Line("index", "x[K]", "nm kp@n", lambda m, x, k: x[k], kinds=AT),
    Line("index", "x[mask]", "nm n?", lambda m, x, c: x[c]),
    Line("index", "take", "nm k@m", lambda m, x, k: m.take(x, k, axis=1), kinds=AT),
    Line(
        "index", "take_along_axis", "nm nk@m", lambda m, x, k: m.take_along_axis(x, k, 1), kinds=AT
    ),
    Line(
        "index",
        "permute_row_elements",
        "nm m@p",
        lambda m, x, k: pt.permute_row_elements(x, pt.argsort(k, stable=True)),
        numpy=lambda x, k: x[:, np.argsort(k, stable=True)],
    ),
    Line(
        "index",
        "choose",
        "pm n@p n@m",
        lambda m, x, k, j: pt.choose(abs(k) % x.shape[0], pt.take(x, j, axis=1)),
        numpy=lambda x, k, j: np.choose(abs(k) % x.shape[0], x[:, j]),
        kinds=AT,
    ),
    Line("index", "compress", "n? nm", lambda m, c, x: m.compress(c, x, axis=0)),
    Line("index", "nonzero", "nm", lambda m, x: m.stack(m.nonzero(x))),
]


def _set(x: np.ndarray, key: Any, y: Any) -> np.ndarray:
    out = x.copy()
    out[key] = y
    return out


def _add(x: np.ndarray, key: Any, y: Any) -> np.ndarray:
    out = x.copy()
    np.add.at(out, key, y)
    return out


ROWS = (slice(1, None), slice(None, None, 2))
ASSIGNMENT = [
    Line(
        "assign",
        "x[i] = y",
        "nm .@n m",
        lambda m, x, i, y: pt.set_subtensor(x[i], y),
        numpy=lambda x, i, y: _set(x, i, y),
        kinds=AT,
    ),
    Line(
        "assign",
        "x[1:, ::2] = a",
        "nm .",
        lambda m, x, a: pt.set_subtensor(x[1:, ::2], a),
        numpy=lambda x, a: _set(x, ROWS, a),
    ),
    Line(
        "assign",
        "x[1:, ::2] += a",
        "nm .",
        lambda m, x, a: pt.inc_subtensor(x[1:, ::2], a),
        numpy=lambda x, a: _add(x, ROWS, a),
        dtypes=NUMBERS,
        special=False,
    ),
    Line(
        "assign",
        "x[i] += y",
        "nm .@n m",
        lambda m, x, i, y: pt.inc_subtensor(x[i], y),
        numpy=lambda x, i, y: _add(x, i, y),
        dtypes=NUMBERS,
        kinds=AT,
        special=False,
    ),
    Line(
        "assign",
        "x[k] = y",
        "nm k@n m",
        lambda m, x, k, y: pt.set_subtensor(x[k], y),
        numpy=lambda x, k, y: _set(x, k, y),
        kinds=AT,
    ),
    Line(
        "assign",
        "x[k] += y",
        "nm k@n km",
        lambda m, x, k, y: pt.inc_subtensor(x[k], y),
        numpy=lambda x, k, y: _add(x, k, y),
        dtypes=NUMBERS,
        kinds=AT,
        special=False,
    ),
    Line(
        "assign",
        "x[:, k] += a",
        "nm k@m .",
        lambda m, x, k, a: pt.inc_subtensor(x[:, k], a),
        numpy=lambda x, k, a: _add(x, (slice(None), k), a),
        dtypes=NUMBERS,
        kinds=AT,
        special=False,
    ),
    Line(
        "assign",
        "x[k, l] += y",
        "nm k@n k@m k",
        lambda m, x, k, j, y: pt.inc_subtensor(x[k, j], y),
        numpy=lambda x, k, j, y: _add(x, (k, j), y),
        dtypes=NUMBERS,
        kinds=AT,
        special=False,
    ),
    Line(
        "assign",
        "x[mask] = a",
        "nm n? .",
        lambda m, x, c, a: pt.set_subtensor(x[c], a),
        numpy=lambda x, c, a: _set(x, c, a),
    ),
]
NO_HALF = ("int64", "float32", "float64", "complex128")
PRODUCTS = [
    Line("product", "dot vv", "n n", lambda m, x, y: m.dot(x, y), dtypes=NO_HALF, special=False),
    Line("product", "dot mv", "nm m", lambda m, x, y: m.dot(x, y), dtypes=NO_HALF, special=False),
    Line("product", "dot vm", "n nm", lambda m, x, y: m.dot(x, y), dtypes=NO_HALF, special=False),
    Line("product", "dot mm", "nm mk", lambda m, x, y: m.dot(x, y), dtypes=NO_HALF, special=False),
    Line("product", "dot int8", "nm mk", lambda m, x, y: m.dot(x, y), dtypes=("int8", "bool")),
    *_linear_algebra(),
    Line(
        "product",
        "matmul 3",
        "pnm pmk",
        lambda m, x, y: m.matmul(x, y),
        dtypes=NO_HALF,
        special=False,
    ),
    Line(
        "product",
        "matmul broadcast",
        "pnm mk",
        lambda m, x, y: m.matmul(x, y),
        dtypes=NO_HALF,
        special=False,
    ),
    Line(
        "product",
        "tensordot",
        "npm mpk",
        lambda m, x, y: m.tensordot(x, y, [[1, 2], [1, 0]]),
        dtypes=NO_HALF,
        special=False,
    ),
    Line(
        "product",
        "batched_tensordot",
        "pnm pmn",
        lambda m, x, y: pt.batched_tensordot(x, y, [[1, 2], [2, 1]]),
        numpy=lambda x, y: np.einsum("pnm,pmn->p", x, y),
        dtypes=("float64",),
        kinds=("strided",),
        special=False,
    ),
    Line(
        "product",
        "inner",
        "nm km",
        lambda m, x, y: m.inner(x, y),
        dtypes=("float32",),
        kinds=("contiguous",),
        special=False,
    ),
    Line(
        "product",
        "einsum",
        "npm mpk pk",
        lambda m, x, y, z: m.einsum("npm,mpk,pk->kn", x, y, z),
        dtypes=("int64", "float64"),
        kinds=("contiguous", "strided"),
        special=False,
    ),
    Line(
        "product",
        "einsum bool",
        "nm mk",
        lambda m, x, y: m.einsum("nm,mk->n", x, y),
        dtypes=("bool",),
        kinds=("contiguous",),
    ),
    Line("product", "outer", "n m", lambda m, x, y: m.outer(x, y), dtypes=NUMBERS, special=False),
    Line(
        "product",
        "gemv",
        "n nm m",
        lambda m, z, a, x: 2 * z + 3 * m.dot(a, x),
        dtypes=FLOATS,
        special=False,
    ),
    Line(
        "product",
        "gemm",
        "nk nm mk",
        lambda m, z, a, b: z - m.dot(a, b),
        dtypes=FLOATS,
        special=False,
    ),
    Line(
        "product",
        "Gemm op",
        "nk nm mk",
        lambda m, z, a, b: blas.Gemm(inplace=False)(z, 2.0, a, b, 0.5),
        numpy=lambda z, a, b: z / 2 + 2 * (a @ b),
        dtypes=FLOATS,
        special=False,
    ),
    Line(
        "product",
        "ger",
        "nm n m",
        lambda m, a, x, y: a + 2 * m.outer(x, y),
        dtypes=FLOATS,
        special=False,
    ),
    Line(
        "product",
        "dot of transposes",
        "mn km",
        lambda m, x, y: m.dot(x.T, y.T),
        dtypes=FLOATS,
        special=False,
    ),
    Line(
        "product",
        "Blockwise dot",
        "pnm mk",
        lambda m, x, y: Blockwise(Dot(), signature="(n,m),(m,k)->(n,k)")(x, y),
        numpy=lambda x, y: x @ y,
        dtypes=FLOATS,
        special=False,
    ),
]


def _inner(m: Any, x: Any, y: Any) -> Any:
    a, b = x.type(), y.type()
    return OpFromGraph([a, b], [a * b + a])(x, y)


def _loop(m: Any, x: Any, y: Any) -> Any:
    return phintys.scan(lambda row, state: row * 2 + state, x, y.sum(axis=0), return_updates=False)


INNER = [
    Line(
        "inner",
        "Scan",
        "nm nm",
        _loop,
        numpy=lambda x, y: np.cumsum(2 * x, 0) + y.sum(0),
        dtypes=("float64",),
        kinds=("strided", "empty"),
        special=False,
    ),
    Line("inner", "OpFromGraph", "nm nm", _inner, numpy=lambda x, y: x * y + x, dtypes=NUMBERS),
]


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


SOFTMAX = [
    Line(
        "softmax",
        "softmax 1",
        "nm",
        lambda m, x: pt.softmax(x, 1),
        numpy=lambda x: _softmax(x, 1),
        dtypes=FLOATS,
        kinds=AT,
        special=False,
    ),
    Line(
        "softmax",
        "softmax 0",
        "nm",
        lambda m, x: pt.softmax(x, 0),
        numpy=lambda x: _softmax(x, 0),
        dtypes=FLOATS,
        kinds=AT,
        special=False,
    ),
    Line(
        "softmax",
        "log_softmax",
        "nm",
        lambda m, x: pt.log_softmax(x, 1),
        numpy=lambda x: np.log(_softmax(x, 1)),
        dtypes=FLOATS,
        kinds=AT,
        special=False,
    ),
    Line(
        "softmax",
        "logsumexp",
        "nm",
        lambda m, x: pt.logsumexp(x, 1),
        numpy=lambda x: np.log(np.exp(x).sum(1)),
        dtypes=FLOATS,
        kinds=AT,
        special=False,
    ),
    Line(
        "softmax",
        "softmax, special values",
        "nm",
        lambda m, x: pt.softmax(x, 1),
        numpy=None,
        dtypes=FLOATS,
    ),
    Line(
        "softmax",
        "logsumexp, special values",
        "nm",
        lambda m, x: pt.logsumexp(x, 1),
        numpy=None,
        dtypes=FLOATS,
    ),
]
SEARCHING = [
    Line(
        "search",
        f"searchsorted {side}",
        "n mk",
        lambda m, x, v, side=side: m.searchsorted(m.sort(x), v, side=side),
        dtypes=REALS,
    )
    for side in ("left", "right")
]
SEARCHING += [
    Line("search", "unique", "nm", lambda m, x: m.unique(x), special=False),
    Line(
        "search",
        "bincount",
        "n",
        lambda m, x: pt.bincount(x, minlength=3),
        dtypes=("uint8",),
        numpy=lambda x: np.bincount(x, minlength=3),
    ),
    Line(
        "search",
        "topk",
        "n6",
        lambda m, x: pt.topk(x, 2),
        dtypes=REALS,
        numpy=lambda x: np.sort(x)[:, :-3:-1],
    ),
    Line(
        "search",
        "median",
        "nm",
        lambda m, x: m.median(x, axis=1),
        dtypes=("int64", "float64"),
        kinds=AT,
        special=False,
    ),
]
LINES = [
    *_reductions(), *SHAPES, *CREATION, *JOINING, *INDEXING, *ASSIGNMENT, *PRODUCTS, *SOFTMAX,
    *SEARCHING, *matrix_matrices.LINES,
    *INNER, *matrix_functions.LINES, *matrix_signal.LINES,
]  # fmt: skip


def columns() -> list[Column]:
    """All of them: lines x dtypes."""
    return [column(line, dtype) for line in LINES for dtype in line.dtypes]
