"""The Cholesky decomposition."""

from __future__ import annotations

from math import nan

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.ignored import ignores
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, Pack, Packs, routine
from phintys.routines.language import LANES, PARTS, in_numbers, local, spread, sqrt
from phintys.routines.libraries import LAPACK, LOWER, UPPER, potrf
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.dot import matrix_product
from phintys.tensor.elemwise import match_dtype
from phintys.tensor.linalg.decomposition.cholesky_pullback import cholesky_pullback
from phintys.tensor.linalg.matrix_op import (
    MatrixOp,
    adjoint,
    diagonal_part,
    halved,
    inexact,
    nan_like,
    square,
    triangle,
)
from phintys.tensor.linalg.routine_parts import (
    copy,
    fill_nan,
    load_adjacent,
    store_adjacent,
)
from phintys.tensor.linalg.solvers.triangular import solve_triangular
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["cholesky"]

#: the largest matrix for which the loops below are faster than LAPACK
SMALL = 24
#: its number of elements
ELEMENTS = SMALL * SMALL


class Cholesky(MatrixOp):
    """The triangular factor ``L`` of a positive definite matrix ``L L^H``, or ``U`` of ``U^H U``.

    Parameters
    ----------
    lower
        whether to read the lower triangle and compute ``L``; else the upper one and ``U``
    overwrite_a
        whether the input may be overwritten
    on_error
        what becomes of a matrix that has no factor: ``"nan"`` or ``"raise"``

    A matrix has no factor if it is not positive definite, or if the triangle that is read contains
    NaN or infinity.  LAPACK need not notice NaN and infinity, but they always reach the pivots:
    so there is a factor if and only if all pivots are positive and finite.
    """

    # ----- class and static shape
    __props__ = ("lower", "overwrite_a", "on_error")
    gufunc_signature = "(m,m)->(m,m)"

    def __init__(
        self, *, lower: bool = True, overwrite_a: bool = False, on_error: str = "nan"
    ) -> None:
        if on_error not in ("nan", "raise"):
            raise ValueError(f"on_error must be 'nan' or 'raise', not {on_error!r}.")
        # the class has the method `Op.lower`, instances the attribute that PyTensor has
        self.lower: bool = bool(lower)  # pyright: ignore[reportIncompatibleMethodOverride]
        self.overwrite_a, self.on_error = bool(overwrite_a), on_error
        self.destroy_map = {0: [0]} if overwrite_a else {}

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        return typed_node(self, [x], inexact(x.type.dtype))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        n = square(s, x)
        return [(n, n)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        from scipy.linalg import get_lapack_funcs

        x = inputs[0].astype(node.outputs[0].type.dtype, copy=False)
        check_shapes(node, inputs)
        factor, status = np.zeros_like(x), 0
        if x.size:
            (potrf,) = get_lapack_funcs(["potrf"], [x])
            factor, status = potrf(x, self.lower, overwrite_a=self.overwrite_a, clean=True)
        failed = status or not np.isfinite(factor.diagonal()).all()
        if failed and self.on_error == "raise":
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        output_storage[0][0] = nan_like(factor) if failed else factor

    # ----- derivative (I. Murray, "Differentiation of the Cholesky decomposition", 2016)
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), factor, g = inputs, self._lower(outputs[0]), self._lower(cotangents[0])
        return [match_dtype(self._lower(cholesky_pullback(factor, g)), x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        factor, t = self._lower(outputs[0]), self._lower(tangents[0])
        s = triangle(t, True, 1)
        s = s + adjoint(s) + diagonal_part(t)
        for _ in range(2):  # s becomes inv(L) s inv(L)^H
            s = adjoint(solve_triangular(factor, s, lower=True))
        return [match_dtype(self._lower(matrix_product(factor, halved(s))), outputs[0])]

    def _lower(self, x: TensorVariable) -> TensorVariable:
        """A lower triangular matrix as the op computes it, and back."""
        return x if self.lower else adjoint(x)

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        dtype = node.outputs[0].type.dtype
        n = b.length(x, -1)
        flags = int(self.lower), int(self.on_error == "raise")
        return b.external(
            factor_positive,
            dtype,
            (*flags, n),
            reads=[b.cast(x, dtype)],
            writes=[(dtype, (n, n))],
            batch=b.shape(x)[:-2],
            work=n * n * n,
        )

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        if not allowed_inplace_inputs:
            return self
        return Cholesky(lower=self.lower, overwrite_a=True, on_error=self.on_error)


@routine(LAPACK, (np.linalg.LinAlgError, "Matrix is not positive definite"), grouped=True)
def factor_positive(count: int, lower: int, raises: int, n: int, a: Array, factors: Array) -> int:
    """Write the factors of matrices, or NaN; return 1 if one has no factor and ``raises``."""
    failed = 0
    if n <= SMALL and PARTS == 1:
        for group in range((count + LANES - 1) // LANES):
            x = a[group * LANES * n * n :]
            y = factors[group * LANES * n * n :]
            left = count - group * LANES
            if left >= LANES and LANES > 1:
                failed += _factor_together(lower, n, x, y)
            else:
                for k in range(left if left < LANES else LANES):
                    failed += _factor_one(lower, n, x[k * n * n :], y[k * n * n :])
    else:
        for k in range(count):
            y = factors[k * n * n * PARTS :]
            copy(n * n, a[k * n * n * PARTS :], y)
            status = 0
            if n > 0:  # to LAPACK, the columns of the matrix are its rows
                status = potrf(UPPER if lower == 1 else LOWER, n, y, n)
            failed += _finish(status, lower, n, y)
    return 1 if raises == 1 and failed > 0 else 0


def _finish(status: int, lower: int, n: int, a: Array) -> int:
    """Clear the other triangle, or write NaN and return 1 if there is no factor."""
    failed = 0 if status == 0 else 1
    for i in range(n):
        pivot = a[(i * n + i) * PARTS]
        failed = failed if pivot > 0.0 and pivot - pivot == 0.0 else 1
    if failed == 1:
        fill_nan(n * n, a)
        return 1
    for i in range(n):
        start = i * n if lower == 0 else i * n + i + 1
        stop = i * n + n if lower == 1 else i * n + i
        for k in range(start * PARTS, stop * PARTS):
            a[k] = 0.0
    return 0


def _factor_one(lower: int, n: int, x: Array, a: Array) -> int:
    """Write the factor of a matrix, or NaN; return 1 if there is no factor."""
    pivots = local(SMALL * LANES)
    copy(n * n, x, a)
    down = n if lower == 1 else 1
    right = 1 if lower == 1 else n
    _factor_in_numbers(n, down, right, a, pivots)
    return _finish(0, lower, n, a)


def _factor_together(lower: int, n: int, x: Array, a: Array) -> int:
    """Write the factors of `LANES` matrices, or NaN; return how many have none."""
    work = local(ELEMENTS * LANES)
    pivots = local(SMALL * LANES)
    down = n if lower == 1 else 1
    right = 1 if lower == 1 else n
    _load_triangles(lower, n, x, work)
    _factor(n, down, right, work, pivots)
    _examine(n, pivots)
    _store_triangles(lower, n, work, a)
    failed = 0
    for lane in range(LANES):
        if pivots[lane] != 0.0:
            fill_nan(n * n, a[lane * n * n :])
            failed += 1
    return failed


def _load_triangles(lower: int, n: int, a: Array, work: Array) -> None:
    """Load a group of matrices, but not the squares that are beside triangles, in one row."""
    place = 0
    for i in range(n):
        start = (_zeros_start(lower, n, i) + LANES - 1) // LANES * LANES
        stop = _zeros_stop(lower, n, i) // LANES * LANES
        if start < stop:
            load_adjacent(start - place, n * n, 1, a[place:], work[place * LANES :])
            place = stop
    load_adjacent(n * n - place, n * n, 1, a[place:], work[place * LANES :])


def _store_triangles(lower: int, n: int, work: Array, a: Array) -> None:
    """Store a group of triangles, and zeros beside them."""
    place = 0
    for i in range(n):
        first = _zeros_start(lower, n, i)
        last = _zeros_stop(lower, n, i)
        start = (first + LANES - 1) // LANES * LANES
        stop = last // LANES * LANES
        if start < stop:
            _clear(first, start, work)
            _clear(stop, last, work)
            store_adjacent(start - place, n * n, 1, work[place * LANES :], a[place:])
            _store_zeros(stop - start, n * n, a[start:])
            place = stop
        else:
            _clear(first, last, work)
    store_adjacent(n * n - place, n * n, 1, work[place * LANES :], a[place:])


def _zeros_start(lower: int, n: int, i: int) -> int:
    """Where the elements beside the triangle begin in row ``i``, in the whole matrix."""
    return i * n + i + 1 if lower == 1 else i * n


def _zeros_stop(lower: int, n: int, i: int) -> int:
    """Where the elements beside the triangle end in row ``i``, in the whole matrix."""
    return i * n + n if lower == 1 else i * n + i


def _clear(start: int, stop: int, s: Packs) -> None:
    for k in range(start, stop):
        s[k] = spread(0.0)


def _store_zeros(n: int, step: int, a: Array) -> None:
    """Write zeros to ``n`` elements, a multiple of `LANES`, of each matrix."""
    for k in range(n // LANES):
        for lane in range(LANES):
            _clear(0, 1, a[lane * step + k * LANES :])


def _examine(n: int, pivots: Packs) -> None:
    """Write NaN into the first pack for matrices without a factor, else zero."""
    none = spread(0.0)
    for i in range(n):
        pivot = pivots[i]
        none = nan if pivot <= 0.0 else none
        none += pivot - pivot  # NaN if the pivot is NaN or infinite
    pivots[0] = none


def _factor(n: int, down: int, right: int, s: Packs, pivots: Packs) -> None:
    """Replace triangles by their factors, two columns at a time; store squared pivots.

    ``down`` and ``right`` are the steps to the next row and column of lower triangles.
    """
    for i in range(n):
        pivots[i] = s[i * (n + 1)]
    for j in range(0, n - 1, 2):
        row = s[j * down :]
        other = row[down:]
        pivot = sqrt(pivots[j])
        row[j * right] = pivot
        scale = 1.0 / pivot
        x = other[j * right]
        for k in range(j):
            x -= other[k * right] * row[k * right]
        x = x * scale
        other[j * right] = x
        pivots[j + 1] -= x * x
        pivot = sqrt(pivots[j + 1])
        other[(j + 1) * right] = pivot
        rest = (n - j) % 4
        for i in range(j + 2, n - (rest + 2) % 4, 4):
            _factor_rows(4, j, down, right, scale, 1.0 / pivot, row, s[i * down :], pivots[i:])
        i = n - (rest + 2) % 4
        if rest == 1:
            _factor_rows(3, j, down, right, scale, 1.0 / pivot, row, s[i * down :], pivots[i:])
        elif rest == 0:
            _factor_rows(2, j, down, right, scale, 1.0 / pivot, row, s[i * down :], pivots[i:])
        elif rest == 3:
            _factor_rows(1, j, down, right, scale, 1.0 / pivot, row, s[i * down :], pivots[i:])
    if n % 2 == 1:
        s[n * n - 1] = sqrt(pivots[n - 1])


def _factor_rows(
    count: int, j: int, down: int, right: int, scale: Pack, next_scale: Pack,
    row: Packs, s: Packs, pivots: Packs,
) -> None:  # fmt: skip
    """Write the elements of two columns of the factor in ``count`` rows, a constant up to 4.

    Sums do not wait for each other; what is not stored is not computed.
    """
    t = s[down if count > 1 else 0 :]
    u = s[2 * down if count > 2 else 0 :]
    v = s[3 * down if count > 3 else 0 :]
    other = row[down:]
    here = j * right
    next = here + right
    x0 = s[here]
    x1 = t[here]
    x2 = u[here]
    x3 = v[here]
    y0 = s[next]
    y1 = t[next]
    y2 = u[next]
    y3 = v[next]
    for k in range(j):
        at = k * right
        x = row[at]
        y = other[at]
        x0 -= s[at] * x
        x1 -= t[at] * x
        x2 -= u[at] * x
        x3 -= v[at] * x
        y0 -= s[at] * y
        y1 -= t[at] * y
        y2 -= u[at] * y
        y3 -= v[at] * y
    y = other[here]
    _finish_row(right, x0 * scale, y0, y, next_scale, s[here:], pivots)
    if count > 1:
        _finish_row(right, x1 * scale, y1, y, next_scale, t[here:], pivots[1:])
    if count > 2:
        _finish_row(right, x2 * scale, y2, y, next_scale, u[here:], pivots[2:])
    if count > 3:
        _finish_row(right, x3 * scale, y3, y, next_scale, v[here:], pivots[3:])


def _finish_row(
    right: int, x: Pack, other: Pack, factor: Pack, scale: Pack, s: Packs, pivots: Packs
) -> None:
    """Store two elements of a row, ``x`` and what the other one becomes."""
    y = (other - x * factor) * scale
    s[0] = x
    s[right] = y
    pivots[0] = pivots[0] - x * x - y * y


_factor_in_numbers = in_numbers(_factor)


# ----- user function
@ignores("check_finite", "overwrite_a")
def cholesky(
    x: TensorLike,
    lower: bool = True,
    *,
    check_finite: bool = True,
    overwrite_a: bool = False,
    on_error: str = "nan",
) -> TensorVariable:
    """The triangular factor of positive definite matrices, the last two axes of ``x``.

    Parameters
    ----------
    x : tensor with at least two axes; only one triangle is read
    lower : whether to compute ``L`` with ``L L^H = x`` from the lower triangle, else ``U`` with
        ``U^H U = x`` from the upper one
    check_finite, overwrite_a : ignored
    on_error : what becomes of a matrix that is not positive definite, or has NaN or infinity in the
        triangle that is read.  ``"nan"``: all elements of the result are NaN; ``"raise"``: it
        raises ``numpy.linalg.LinAlgError``

    The dtype is float32 or float64, complex64 or complex128.  ShapeError if the matrices are not
    square.

    >>> import phintys.tensor as pt
    >>> pt.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).eval()
    array([[2., 0.],
           [1., 2.]])
    """
    return Blockwise(Cholesky(lower=lower, on_error=on_error))(x)
