"""Numba functions of linear algebra: the routines of the ops, compiled by Numba."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from phintys.backends.numba.dispatch import compiled, define, jit, numba_funcify
from phintys.backends.source import compile_function_src
from phintys.routines import Routine
from phintys.routines.language import PART
from phintys.routines.libraries import LibraryFunction
from phintys.tensor.linalg.decomposition.cholesky import Cholesky, factor_positive
from phintys.tensor.linalg.decomposition.cholesky_pullback import (
    CholeskyPullback,
    differentiate_factor,
)
from phintys.tensor.linalg.solvers.triangular import SolveTriangular, substitute

_CELLS = {"char": "np.int8", "int": "np.int32", "status": "np.int32"}


def library_function(row: LibraryFunction, dtype: str) -> Any:
    """A library function as a Numba function of numbers and arrays."""
    real = f"np.{PART.get(dtype, dtype)}"
    pointers = [ctypes.c_void_p] * len(row.parameters)
    function = ctypes.CFUNCTYPE(None, *pointers)(row.address(dtype))
    names = [f"x{k}" for k in range(len(row.arguments))]
    body, passed = ["status = np.zeros(1, np.int32)"], []
    for kind, x in zip(row.arguments, names):
        if kind not in ("array", "ints"):
            body.append(f"{x}_cell = np.zeros(2, {_CELLS.get(kind, real)})")
            body.append(f"{x}_cell[0] = {x}")
            x += "_cell"
        passed.append(f"{x}.ctypes")
    passed += ["status.ctypes"] if row.has_status else []
    body += [f"f({', '.join(passed)})", "return np.int64(status[0])"]
    source = define(row.name, names, body)
    return jit(compile_function_src(source, row.name, {"np": np, "f": function}))


@cache
def routine_function(routine: Routine, dtype: str) -> Any:
    """A routine as a Numba function."""
    return routine.python(dtype, library_function, jit)


def flat(x: str, dtype: str) -> str:
    """The source of an array as a routine takes it."""
    return f"{x}.reshape(-1)" + (f".view(np.{PART[dtype]})" if dtype in PART else "")


@numba_funcify.register(Cholesky)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    flags = f"1, {int(op.lower)}, {int(op.on_error == 'raise')}, x.shape[0]"
    body = [
        "if x.shape[0] != x.shape[1]: raise ValueError('A matrix is not square.')",
        f"out = x.astype(np.{dtype})",
        f"if f({flags}, {flat('out', dtype)}) != 0: raise error('Not positive definite.')",
        "return out",
    ]
    f = routine_function(factor_positive, dtype)
    return compiled(define("cholesky", ["x"], body), f=f, error=np.linalg.LinAlgError)


@numba_funcify.register(CholeskyPullback)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    body = [
        "if a.shape[0] != a.shape[1] or a.shape != g.shape:",
        "    raise ValueError('The shapes do not fit.')",
        f"m, out = a.astype(np.{dtype}), g.astype(np.{dtype})",
        f"f(a.shape[0], {flat('m', dtype)}, {flat('out', dtype)})",
        "return out",
    ]
    f = routine_function(differentiate_factor, dtype)
    return compiled(define("cholesky_pullback", ["a", "g"], body), f=f)


@numba_funcify.register(SolveTriangular)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    flags = f"{int(op.lower)}, 0, {int(op.unit_diagonal)}"
    columns = "b.shape[1]" if op.b_ndim == 2 else "1"
    body = [
        "if a.shape[0] != a.shape[1]: raise ValueError('A matrix is not square.')",
        "if a.shape[0] != b.shape[0]: raise ValueError('The shapes do not fit.')",
        f"m, out = a.astype(np.{dtype}), b.astype(np.{dtype})",
        f"f({flags}, a.shape[0], {columns}, {flat('m', dtype)}, {flat('out', dtype)})",
        "return out",
    ]
    f = routine_function(substitute, dtype)
    return compiled(define("solve_triangular", ["a", "b"], body), f=f)
