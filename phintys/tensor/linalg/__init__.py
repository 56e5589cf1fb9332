"""Linear algebra; all functions take batches of matrices, over leading axes."""
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.tensor.linalg.decomposition.cholesky import Cholesky, cholesky
from phintys.tensor.linalg.decomposition.eigen import (
    Eig,
    Eigh,
    Eigvalsh,
    eig,
    eigh,
    eigvalsh,
)
from phintys.tensor.linalg.decomposition.qr import QR, qr
from phintys.tensor.linalg.decomposition.svd import SVD, svd
from phintys.tensor.linalg.solvers.core import SolveBase
from phintys.tensor.linalg.solvers.triangular import SolveTriangular, solve_triangular

__all__ = ["cholesky", "eig", "eigh", "eigvalsh", "qr", "solve_triangular", "svd"]
