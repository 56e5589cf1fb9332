"""Numba functions of elimination: LU decompositions, systems, inverses, determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.backends.numba.dispatch import compiled, define, numba_funcify
from phintys.backends.numba.routines import flat, routine_function
from phintys.tensor.linalg.decomposition.cholesky import factor_positive
from phintys.tensor.linalg.decomposition.lu import LU, LUFactor, PivotToPermutations
from phintys.tensor.linalg.elimination import eliminate, order_rows, substitute_in_factors
from phintys.tensor.linalg.inverse import MatrixInverse
from phintys.tensor.linalg.solvers.cholesky import CholeskySolve, substitute_twice
from phintys.tensor.linalg.solvers.general import BLOCK, Solve, solve_symmetric
from phintys.tensor.linalg.solvers.lu import LUSolve
from phintys.tensor.linalg.solvers.tridiagonal import factor_tridiagonal, substitute_tridiagonal
from phintys.tensor.linalg.summary import Det, SLogDet

_SQUARE = "if x.shape[0] != x.shape[1]: raise ValueError('A matrix is not square.')"
_FITS = "if x.shape[0] != b.shape[0]: raise ValueError('The shapes do not fit.')"


def _function(op: Any, dtype: str, inputs: Sequence[str], body: Sequence[str]) -> Any:
    """A Numba function from its lines, which may call all routines of this module."""
    routines = [
        eliminate, order_rows, substitute_in_factors, substitute_twice, factor_positive,
        solve_symmetric, factor_tridiagonal, substitute_tridiagonal,
    ]  # fmt: skip
    text = "\n".join(body)
    used = {r.name: r for r in routines if f"{r.name}(" in text}
    names = {name: routine_function(r, r.dtypes[0] if r is order_rows else dtype)
             for name, r in used.items()}  # fmt: skip
    source = define(type(op).__name__.lower(), list(inputs), list(body))
    return compiled(source, **names, LinAlgError=np.linalg.LinAlgError)


def _eliminated(dtype: str) -> list[str]:
    """Lines that make ``f``, the factors of ``x`` stored by columns, and ``p``, from 1."""
    return [
        f"a, f = x.astype(np.{dtype}), np.empty(x.T.shape, np.{dtype})",
        "p = np.empty(min(x.shape), np.int32)",
        f"eliminate(1, x.shape[0], x.shape[1], {flat('a', dtype)}, {flat('f', dtype)}, p)",
    ]


def _right(dtype: str, b_ndim: int) -> list[str]:
    """Lines that make ``y``, the right sides stored by columns."""
    columns = "b.shape[1]" if b_ndim == 2 else "1"
    return [_FITS, f"y, n, m = b.astype(np.{dtype}).T.copy(), b.shape[0], {columns}"]


@numba_funcify.register(LU)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[-1].type.dtype
    results = "low, up"
    if not op.permute_l:
        results = f"order.astype(np.int32), {results}" if op.p_indices else f"full, {results}"
    body = [
        *_eliminated(dtype),
        "m, n, k = x.shape[0], x.shape[1], len(p)",
        f"low, up = np.zeros((m, k), np.{dtype}), np.zeros((k, n), np.{dtype})",
        "for i in range(m):",
        "    for j in range(n):",
        "        if i <= j: up[i, j] = f[j, i]",
        "        else: low[i, j] = f[j, i]",
        "for i in range(k): low[i, i] = 1",
        "order = np.empty(m, np.int64)",
        "order_rows(1, m, k, p - np.int32(1), order)",
    ]
    if op.permute_l:
        body.append("low = low[order]")
    elif not op.p_indices:
        body.append(f"full = np.zeros((m, m), np.{node.outputs[0].type.dtype})")
        body.append("for i in range(m): full[i, order[i]] = 1")
    return _function(op, dtype, ["x"], [*body, f"return {results}"])


@numba_funcify.register(LUFactor)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    body = [_SQUARE, *_eliminated(dtype), "return f.T.copy(), p - np.int32(1)"]
    return _function(op, dtype, ["x"], body)


@numba_funcify.register(PivotToPermutations)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    body = [
        "order = np.empty(len(p), np.int64)",
        f"if order_rows({int(not op.inverse)}, len(p), len(p), p, order) != 0:",
        "    raise ValueError('A pivot is no row of the matrix.')",
        "return order",
    ]
    return _function(op, "float64", ["p"], body)


@numba_funcify.register(LUSolve)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    arguments = f"1, {int(op.transposed)}, n, m, {flat('f', dtype)}, q, {flat('y', dtype)}"
    body = [
        _SQUARE,
        *_right(dtype, op.b_ndim),
        "if x.shape[0] != p.shape[0]: raise ValueError('The shapes do not fit.')",
        f"f, q = x.astype(np.{dtype}).T.copy(), p + np.int32(1)",
        f"if substitute_in_factors({arguments}) != 0:",
        "    raise ValueError('A pivot is no row of the matrix.')",
        "return y.T.copy()",
    ]
    return _function(op, dtype, ["x", "p", "b"], body)


@numba_funcify.register(CholeskySolve)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    body = [
        _SQUARE,
        *_right(dtype, op.b_ndim),
        f"f = x.astype(np.{dtype}).T.copy()",
        f"substitute_twice({int(op.lower)}, n, m, {flat('f', dtype)}, {flat('y', dtype)})",
        "return y.T.copy()",
    ]
    return _function(op, dtype, ["x", "b"], body)


def _solve_eliminated(op: Any, dtype: str) -> list[str]:
    arguments = f"1, 0, n, m, {flat('f', dtype)}, p, {flat('y', dtype)}"
    return [*_eliminated(dtype), f"substitute_in_factors({arguments})"]


def _solve_symmetric(op: Any, dtype: str) -> list[str]:
    hermitian = int(op.assume_a == "her" and "complex" in dtype)
    given = f"{flat('f', dtype)}, {flat('y', dtype)}"
    spaces = f"{flat('copy', dtype)}, np.empty(n, np.int32), {flat('work', dtype)}"
    return [
        f"f = x.astype(np.{dtype}).T.copy()",
        f"copy, work = np.empty_like(f), np.empty(n * {BLOCK}, np.{dtype})",
        f"solve_symmetric({hermitian}, {int(op.lower)}, n, m, {given}, {spaces})",
    ]


def _solve_positive(op: Any, dtype: str) -> list[str]:
    lower = int(op.lower)
    return [
        f"a, f = x.astype(np.{dtype}), np.empty(x.shape, np.{dtype})",
        f"factor_positive(1, {lower}, 0, n, {flat('a', dtype)}, {flat('f', dtype)})",
        "g = f.T.copy()",
        f"substitute_twice({lower}, n, m, {flat('g', dtype)}, {flat('y', dtype)})",
    ]


def _solve_tridiagonal(op: Any, dtype: str) -> list[str]:
    diagonals = "dl d du du2".split()
    given = ", ".join(flat(x, dtype) for x in diagonals)
    lengths = ("max(n - 1, 0)", "n", "max(n - 1, 0)", "max(n - 2, 0)")
    return [
        *(f"{x} = np.zeros({k}, np.{dtype})" for x, k in zip(diagonals, lengths)),
        "for i in range(n): d[i] = x[i, i]",
        "for i in range(n - 1): dl[i], du[i] = x[i + 1, i], x[i, i + 1]",
        "p = np.empty(n, np.int32)",
        f"factor_tridiagonal(n, {given}, p)",
        f"substitute_tridiagonal(0, n, m, {given}, p, {flat('y', dtype)})",
    ]


def _solve_diagonal(op: Any, dtype: str) -> list[str]:
    return [
        "d = np.diag(x)",
        "if np.all((d != 0) & np.isfinite(d)): y = y / d",
        f"else: {flat('y', dtype)}[:] = np.nan",
    ]


_KINDS = {
    "sym": _solve_symmetric, "her": _solve_symmetric, "pos": _solve_positive,
    "tridiagonal": _solve_tridiagonal, "diagonal": _solve_diagonal,
}  # fmt: skip


@numba_funcify.register(Solve)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    solution = _KINDS.get(op.assume_a, _solve_eliminated)(op, dtype)
    body = [_SQUARE, *_right(dtype, op.b_ndim), *solution, "return y.T.copy()"]
    return _function(op, dtype, ["x", "b"], body)


@numba_funcify.register(MatrixInverse)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    body = [
        _SQUARE,
        *_eliminated(dtype),
        f"n, y = len(x), np.eye(len(x)).astype(np.{dtype})",
        "if np.any(np.diag(f) == 0): raise LinAlgError('Singular matrix')",
        f"substitute_in_factors(1, 0, n, n, {flat('f', dtype)}, p, {flat('y', dtype)})",
        "return y.T.copy()",
    ]
    return _function(op, dtype, ["x"], body)


@numba_funcify.register(Det)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    body = [
        _SQUARE,
        *_eliminated(dtype),
        f"found = np.{dtype}(1)",
        "for i in range(len(x)): found *= f[i, i] if p[i] == i + 1 else -f[i, i]",
        "return np.asarray(found)",
    ]
    return _function(op, dtype, ["x"], body)


@numba_funcify.register(SLogDet)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype, real = (x.type.dtype for x in node.outputs)
    body = [
        _SQUARE,
        *_eliminated(dtype),
        f"sign, logarithm = np.{dtype}(1), np.{real}(0)",
        "for i in range(len(x)):",
        "    pivot = f[i, i] if p[i] == i + 1 else -f[i, i]",
        f"    size = np.{real}(abs(pivot))",
        f"    sign *= pivot / size if size != 0 else np.{dtype}(0)",
        "    logarithm += np.log(size)",
        "return np.asarray(sign), np.asarray(logarithm)",
    ]
    return _function(op, dtype, ["x"], body)
