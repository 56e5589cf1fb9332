"""Linear algebra; all functions take batches of matrices, over leading axes."""
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.tensor.linalg.cofactors import SingularCofactors
from phintys.tensor.linalg.constructors import (
    BaseBlockDiagonal,
    BlockDiagonal,
    block_diag,
    toeplitz,
)
from phintys.tensor.linalg.decomposition.cholesky import Cholesky, cholesky
from phintys.tensor.linalg.decomposition.eigen import (
    Eig,
    Eigh,
    Eigvalsh,
    eig,
    eigh,
    eigvalsh,
)
from phintys.tensor.linalg.decomposition.lu import (
    LU,
    LUFactor,
    PivotToPermutations,
    lu,
    lu_factor,
    pivot_to_permutation,
)
from phintys.tensor.linalg.decomposition.qr import QR, qr
from phintys.tensor.linalg.decomposition.schur import QZ, Schur, ordqz, qz, schur
from phintys.tensor.linalg.decomposition.svd import SVD, svd
from phintys.tensor.linalg.entries import from_entries
from phintys.tensor.linalg.equations import (
    TRSYL,
    SolveBilinearDiscreteLyapunov,
    SolveSylvester,
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
    solve_sylvester,
)
from phintys.tensor.linalg.inverse import (
    MatrixInverse,
    TensorInv,
    TensorSolve,
    inv,
    matrix_inverse,
    tensorinv,
    tensorsolve,
)
from phintys.tensor.linalg.matrix_functions import Expm, Logm, Sqrtm, expm, logm, sqrtm
from phintys.tensor.linalg.norms import (
    VALID_ORD,
    cond,
    matrix_norm,
    matrix_rank,
    norm,
    trace,
    vector_norm,
)
from phintys.tensor.linalg.products import (
    KroneckerProduct,
    kron,
    matrix_dot,
    matrix_power,
    multi_dot,
)
from phintys.tensor.linalg.pseudo_inverse import MatrixPinv, pinv
from phintys.tensor.linalg.riccati import (
    SolveContinuousARE,
    SolveDiscreteARE,
    solve_continuous_are,
    solve_discrete_are,
)
from phintys.tensor.linalg.solvers.cholesky import CholeskySolve, cho_solve
from phintys.tensor.linalg.solvers.core import SolveBase
from phintys.tensor.linalg.solvers.general import Solve, solve
from phintys.tensor.linalg.solvers.lstsq import Lstsq, lstsq
from phintys.tensor.linalg.solvers.lu import LUSolve, lu_solve
from phintys.tensor.linalg.solvers.triangular import SolveTriangular, solve_triangular
from phintys.tensor.linalg.solvers.tridiagonal import (
    LUFactorTridiagonal,
    SolveLUFactorTridiagonal,
    tridiagonal_lu_factor,
    tridiagonal_lu_solve,
)
from phintys.tensor.linalg.spectral_radius import spectral_radius_bound
from phintys.tensor.linalg.summary import Det, DetCotangent, SLogDet, det, slogdet

__all__ = [
    "TensorInv",
    "TensorSolve",
    "block_diag",
    "cho_solve",
    "cholesky",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "kron",
    "logm",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matrix_dot",
    "matrix_inverse",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "ordqz",
    "pinv",
    "pivot_to_permutation",
    "qr",
    "qz",
    "schur",
    "slogdet",
    "solve",
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_sylvester",
    "solve_triangular",
    "spectral_radius_bound",
    "sqrtm",
    "svd",
    "tensorinv",
    "tensorsolve",
    "toeplitz",
    "trace",
    "tridiagonal_lu_factor",
    "tridiagonal_lu_solve",
    "vector_norm",
]
