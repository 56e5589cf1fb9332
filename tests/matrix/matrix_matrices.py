"""Columns for functions of matrices, products, constructors and equations of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from matrix_lines import Line

import phintys.tensor as pt
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.linalg import TRSYL

#: most of these columns take one dtype, because each of them is compiled
COMMON: dict[str, Any] = {
    "dtypes": ("float64",),
    "special": False,
    "kinds": ("contiguous", "strided"),
}


def line(name: str, shapes: str, build: Any, **given: Any) -> Line:
    return Line("linear algebra", name, shapes, lambda m, *x: build(*x), **{**COMMON, **given})


def near_identity(x: Any) -> Any:
    """Square matrices ``I + x x^T / 100``."""
    return pt.matmul(x, pt.swapaxes(x, -1, -2)) / 100 + pt.eye(5)


L = pt.linalg
NUMBERS = ("bool", "int8", "float32", "complex128")
EVERY = ("contiguous", "strided", "empty", "length 1")
LINES = [
    line("kron", "nm kp", L.kron, numpy=np.kron, dtypes=NUMBERS, kinds=EVERY),
    line("kron batch", "kmn m", L.kron, numpy=np.kron),
    line(
        "block_diag",
        "nm kp",
        L.block_diag,
        numpy=scipy.linalg.block_diag,
        dtypes=NUMBERS,
        kinds=EVERY,
    ),
    line(
        "multi_dot matrix_dot",
        "nm mk k",
        lambda x, y, z: L.multi_dot([L.matrix_dot(x, y), z]),
        numpy=lambda x, y, z: x @ y @ z,
    ),
    line("expm", "knm", lambda x: L.expm(near_identity(x)), numpy=None),
    line(
        "logm sqrtm",
        "nm",
        lambda x: L.logm(near_identity(x)) + L.sqrtm(near_identity(x)),
        numpy=None,
    ),
    line(
        "solve_sylvester",
        "nm pnk",
        lambda x, y: L.solve_sylvester(near_identity(x), pt.eye(4), y),
        numpy=None,
    ),
    line(
        "trsyl",
        "nm nk",
        lambda x, y: Blockwise(TRSYL())(pt.triu(near_identity(x)), pt.eye(4), y),
        numpy=None,
    ),
    line(
        "solve_continuous_lyapunov solve_discrete_lyapunov",
        "nm",
        lambda x: (
            L.solve_continuous_lyapunov(near_identity(x), near_identity(x))
            + L.solve_discrete_lyapunov(near_identity(x) / 9, near_identity(x))
        ),
        numpy=None,
    ),
    line(
        "solve_discrete_are solve_continuous_are",
        "nm",
        lambda x: (
            L.solve_discrete_are(near_identity(x), pt.eye(5), pt.eye(5), near_identity(x))
            + L.solve_continuous_are(near_identity(x), pt.eye(5), pt.eye(5), near_identity(x))
        ),
        numpy=None,
    ),
    line("pinv", "knm", L.pinv, numpy=np.linalg.pinv),
    line(
        "lstsq",
        "nm nk",
        lambda x, y: L.lstsq(x, y)[0],
        numpy=lambda x, y: np.linalg.lstsq(x, y)[0],
    ),
    line(
        "lstsq of a tall matrix",
        "mn mk",
        lambda x, y: L.lstsq(x, y)[0],
        numpy=lambda x, y: np.linalg.lstsq(x, y)[0],
    ),
    line("matrix_power", "nm", lambda x: L.matrix_power(near_identity(x), -3), numpy=None),
    line(
        "matrix_rank cond trace",
        "nm",
        lambda x: L.matrix_rank(x) + L.cond(x) + L.trace(x),
        numpy=lambda x: np.linalg.matrix_rank(x) + np.linalg.cond(x) + np.trace(x),
    ),
    line(
        "norm matrix_norm vector_norm",
        "nm",
        lambda x: pt.stack(
            [L.norm(x, "nuc"), L.norm(x, 1), L.matrix_norm(x, 2), L.vector_norm(x, 3)]
        ),
        numpy=lambda x: np.array(
            [
                np.linalg.norm(x, "nuc"),
                np.linalg.norm(x, 1),
                np.linalg.norm(x, 2),
                np.linalg.norm(x.ravel(), 3),
            ]
        ),
    ),
]
