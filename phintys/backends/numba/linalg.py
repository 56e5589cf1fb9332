"""Numba functions of linear algebra: the routines of the ops, compiled by Numba."""

from __future__ import annotations

from phintys.backends.numba.dispatch import numba_funcify
from phintys.backends.numba.routines import by_routine
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.decomposition.cholesky_pullback import CholeskyPullback
from phintys.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh
from phintys.tensor.linalg.decomposition.lu import LU, LUFactor, PivotToPermutations
from phintys.tensor.linalg.decomposition.qr import QR
from phintys.tensor.linalg.decomposition.svd import SVD
from phintys.tensor.linalg.inverse import MatrixInverse
from phintys.tensor.linalg.matrix_functions import Expm
from phintys.tensor.linalg.solvers.cholesky import CholeskySolve
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.linalg.solvers.lstsq import Lstsq
from phintys.tensor.linalg.solvers.lu import LUSolve
from phintys.tensor.linalg.solvers.triangular import SolveTriangular
from phintys.tensor.linalg.solvers.tridiagonal import LUFactorTridiagonal, SolveLUFactorTridiagonal
from phintys.tensor.linalg.summary import Det, SLogDet

for _op in (
    *(Cholesky, CholeskyPullback, LU, LUFactor, PivotToPermutations, QR, SVD, Eigh, Eigvalsh),
    *(CholeskySolve, LUSolve, Solve, SolveTriangular, MatrixInverse, Det, SLogDet, Expm),
    *(LUFactorTridiagonal, SolveLUFactorTridiagonal, Lstsq),
):
    numba_funcify.register(_op)(by_routine)
