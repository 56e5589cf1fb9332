"""Linear algebra; all functions take batches of matrices, over leading axes."""
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.tensor.linalg.constructors import BaseBlockDiagonal, BlockDiagonal, block_diag
from phintys.tensor.linalg.decomposition.cholesky import Cholesky, cholesky
from phintys.tensor.linalg.equations import (
    TRSYL,
    SolveBilinearDiscreteLyapunov,
    SolveSylvester,
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
    solve_sylvester,
)
from phintys.tensor.linalg.matrix_functions import Expm, Logm, Sqrtm, expm, logm, sqrtm
from phintys.tensor.linalg.products import KroneckerProduct, kron, matrix_dot, multi_dot
from phintys.tensor.linalg.solvers.core import SolveBase
from phintys.tensor.linalg.solvers.triangular import SolveTriangular, solve_triangular

__all__ = [
    "block_diag",
    "cholesky",
    "expm",
    "kron",
    "logm",
    "matrix_dot",
    "multi_dot",
    "solve_continuous_lyapunov",
    "solve_discrete_lyapunov",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
]
