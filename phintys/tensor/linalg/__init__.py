"""Linear algebra; all functions take batches of matrices, over leading axes."""
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.tensor.linalg.decomposition.cholesky import Cholesky, cholesky
from phintys.tensor.linalg.decomposition.lu import (
    LU,
    LUFactor,
    PivotToPermutations,
    lu,
    lu_factor,
    pivot_to_permutation,
)
from phintys.tensor.linalg.inverse import (
    MatrixInverse,
    inv,
    matrix_inverse,
    tensorinv,
    tensorsolve,
)
from phintys.tensor.linalg.solvers.cholesky import CholeskySolve, cho_solve
from phintys.tensor.linalg.solvers.core import SolveBase
from phintys.tensor.linalg.solvers.general import Solve, solve
from phintys.tensor.linalg.solvers.lu import LUSolve, lu_solve
from phintys.tensor.linalg.solvers.triangular import SolveTriangular, solve_triangular
from phintys.tensor.linalg.solvers.tridiagonal import (
    LUFactorTridiagonal,
    SolveLUFactorTridiagonal,
    tridiagonal_lu_factor,
    tridiagonal_lu_solve,
)
from phintys.tensor.linalg.summary import Det, SLogDet, det, slogdet

__all__ = [
    "cho_solve", "cholesky", "det", "inv", "lu", "lu_factor", "lu_solve", "matrix_inverse",
    "pivot_to_permutation", "slogdet", "solve", "solve_triangular", "tensorinv", "tensorsolve",
    "tridiagonal_lu_factor", "tridiagonal_lu_solve",
]  # fmt: skip
