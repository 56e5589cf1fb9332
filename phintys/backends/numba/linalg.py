"""Numba functions of linear algebra: the routines of the ops, compiled by Numba."""

from __future__ import annotations

from phintys.backends.numba.dispatch import numba_funcify
from phintys.backends.numba.routines import by_routine
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.decomposition.cholesky_pullback import CholeskyPullback
from phintys.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh
from phintys.tensor.linalg.decomposition.qr import QR
from phintys.tensor.linalg.decomposition.svd import SVD
from phintys.tensor.linalg.matrix_functions import Expm
from phintys.tensor.linalg.solvers.triangular import SolveTriangular

for _op in (Cholesky, CholeskyPullback, SolveTriangular, QR, SVD, Eigh, Eigvalsh, Expm):
    numba_funcify.register(_op)(by_routine)
