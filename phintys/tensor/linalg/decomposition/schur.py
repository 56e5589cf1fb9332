"""The Schur form of a matrix and of a pair of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.gradient.barriers import grad_undefined
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.scalar.dtypes import is_complex, upcast
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.linalg.matrix_op import MatrixOp, inexact, nan_like, square
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["ordqz", "qz", "schur"]

_SORTS = (None, "lhp", "rhp", "iuc", "ouc")
_NOT_UNIQUE = "its factors are not unique: they depend on the order of eigenvalues"
_REASON = "Its factors are not unique: they depend on the order of eigenvalues."


def _checked(output: str, sort: str | None) -> None:
    """ValueError for an unknown form or order."""
    if output not in ("real", "complex"):
        raise ValueError(f"output must be 'real' or 'complex', not {output!r}.")
    if sort not in _SORTS:
        raise ValueError(f"sort must be None, 'lhp', 'rhp', 'iuc' or 'ouc', not {sort!r}.")


class _NotDifferentiable:
    """What `Schur` and `QZ` say of derivatives."""

    not_differentiable = _NOT_UNIQUE

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Sequence[Variable]
    ) -> list[Variable]:
        return [grad_undefined(self, k, x, _REASON) for k, x in enumerate(inputs)]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> list[Variable]:
        return [grad_undefined(self, 0, inputs[0], _REASON) for _ in outputs]


class Schur(_NotDifferentiable, MatrixOp):
    """The triangular matrix ``t`` and the unitary one ``z`` whose product ``z t z^H`` a matrix is.

    Parameters
    ----------
    output
        ``"real"``: the factors of a real matrix are real, and ``t`` has blocks of two rows for
        pairs of conjugate eigenvalues; ``"complex"``: ``t`` is triangular
    overwrite_a
        whether the input may be overwritten
    sort
        which eigenvalues come first: those with a negative real part (``"lhp"``) or another one
        (``"rhp"``), in the unit circle (``"iuc"``) or outside (``"ouc"``); None: no order
    """

    # ----- class and static shape
    __props__ = ("output", "overwrite_a", "sort")
    in_python = "SciPy orders the Schur forms"
    gufunc_signature = "(m,m)->(m,m),(m,m)"

    def __init__(
        self, output: str = "real", overwrite_a: bool = False, sort: str | None = None
    ) -> None:
        _checked(output, sort)
        self.output, self.overwrite_a, self.sort = output, bool(overwrite_a), sort
        self.destroy_map = {0: [0]} if overwrite_a else {}

    def make_node(self, A: TensorLike) -> Apply:
        x = self.matrix(A)
        dtype = inexact(x.type.dtype, *(["complex64"] if self.output == "complex" else []))
        return typed_node(self, [x], dtype, dtype)

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        n = square(s, x)
        return [(n, n), (n, n)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        from scipy.linalg import schur

        check_shapes(node, inputs)
        x = inputs[0].astype(node.outputs[0].type.dtype, copy=False)
        found: list[np.ndarray] = [x, x]
        failed = not np.isfinite(x).all()
        if x.size and not failed:
            try:
                found = list(schur(x, output=self.output, sort=self.sort)[:2])
            except np.linalg.LinAlgError:  # the iteration does not converge
                failed = True
        for cell, y in zip(output_storage, found):
            cell[0] = nan_like(y) if failed else y.copy()

    # ----- batching
    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return Schur(self.output, bool(allowed_inplace_inputs), self.sort)


class QZ(_NotDifferentiable, MatrixOp):
    """Triangular ``aa``, ``bb`` and unitary ``q``, ``z``: ``a = q aa z^H`` and ``b = q bb z^H``.

    Parameters
    ----------
    complex_output
        whether factors of real matrices are complex; else ``aa`` has blocks of two rows for pairs
        of conjugate eigenvalues
    overwrite_a, overwrite_b
        whether the inputs may be overwritten
    sort
        which eigenvalues come first, as for `Schur`
    return_eigenvalues
        whether ``alpha`` and ``beta``, whose quotients are the eigenvalues, stand before ``q``
    """

    # ----- class and static shape
    __props__ = ("complex_output", "overwrite_a", "overwrite_b", "sort", "return_eigenvalues")
    in_python = "SciPy orders the Schur forms"

    def __init__(
        self,
        complex_output: bool = False,
        overwrite_a: bool = False,
        overwrite_b: bool = False,
        sort: str | None = None,
        return_eigenvalues: bool = False,
    ) -> None:
        _checked("real", sort)
        self.complex_output, self.sort = bool(complex_output), sort
        self.overwrite_a, self.overwrite_b = bool(overwrite_a), bool(overwrite_b)
        self.return_eigenvalues = bool(return_eigenvalues)
        destroyed = [k for k, given in enumerate((overwrite_a, overwrite_b)) if given]
        self.destroy_map = {0: destroyed} if destroyed else {}
        values = "(m),(m)," if return_eigenvalues else ""
        self.gufunc_signature = f"(m,m),(m,m)->(m,m),(m,m),{values}(m,m),(m,m)"

    def make_node(self, A: TensorLike, B: TensorLike) -> Apply:
        a, b = self.matrix(A), self.matrix(B)
        more = ["complex64"] if self.complex_output else []
        dtype = inexact(a.type.dtype, b.type.dtype, *more)
        values = [upcast(dtype, "complex64"), dtype] if self.return_eigenvalues else []
        return typed_node(self, [a, b], dtype, dtype, *values, dtype, dtype)

    def shape_rule(self, s: ShapeContext, a: Shape, b: Shape) -> list[Shape]:
        n = s.equal(square(s, a), square(s, b), "The shapes of the matrices differ")
        values = [(n,), (n,)] if self.return_eigenvalues else []
        return [(n, n), (n, n), *values, (n, n), (n, n)]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        dtype = node.outputs[0].type.dtype
        a, b = (x.astype(dtype, copy=False) for x in inputs)
        found = [a, b, a[:1].ravel(), a[:1].ravel(), a, a]
        failed = not (np.isfinite(a).all() and np.isfinite(b).all())
        if a.size and not failed:
            try:
                found = self._computed(a, b, "complex" if is_complex(dtype) else "real")
            except np.linalg.LinAlgError:  # the iteration does not converge
                failed = True
        found = found if self.return_eigenvalues else [*found[:2], *found[4:]]
        for cell, y, out in zip(output_storage, found, node.outputs):
            y = np.array(y, out.type.dtype)
            cell[0] = nan_like(y) if failed else y

    def _computed(self, a: np.ndarray, b: np.ndarray, output: str) -> list[np.ndarray]:
        """All results, with ``alpha`` and ``beta``."""
        from scipy.linalg import get_lapack_funcs, ordqz, qz

        if self.sort is not None:
            return list(ordqz(a, b, sort=self.sort, output=output))
        if not self.return_eigenvalues:
            aa, bb, q, z = qz(a, b, output=output)
            return [aa, bb, a, a, q, z]
        (gges,) = get_lapack_funcs(["gges"], [a, b])
        lwork = int(gges(_never, a, b, lwork=-1)[-2][0].real)
        aa, bb, _, *values, q, z, _, status = gges(_never, a, b, lwork=lwork)
        if status:
            raise np.linalg.LinAlgError("The iteration does not converge.")
        alpha = values[0] if output == "complex" else values[0] + 1j * values[1]
        return [aa, bb, alpha, values[-1], q, z]

    # ----- batching
    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return QZ(
            self.complex_output, 0 in allowed_inplace_inputs, 1 in allowed_inplace_inputs,
            self.sort, self.return_eigenvalues,
        )  # fmt: skip


def _never(*_: Any) -> None:
    """The selection of no eigenvalues."""
    return None


# ----- user functions
def schur(A: TensorLike, output: str = "real", sort: str | None = None) -> list[TensorVariable]:
    """The factors ``t``, triangular, and ``z``, unitary, of matrices ``A = z t z^H``.

    Parameters
    ----------
    A : tensor with at least two axes; the last two are square matrices
    output : ``"real"``: factors of real matrices are real, and ``t`` has blocks of two rows for
        pairs of conjugate eigenvalues; ``"complex"``: ``t`` is triangular
    sort : which eigenvalues come first: ``"lhp"``: those with a negative real part; ``"rhp"``: the
        others; ``"iuc"``: those in the unit circle; ``"ouc"``: those outside; None: no order

    The results for a matrix with NaN or infinity are NaN, and so are those for which LAPACK's
    iteration does not converge.  They have no derivatives.  ShapeError if the matrices are not
    square, ValueError for other values of ``output`` and ``sort``.

    >>> import phintys.tensor as pt
    >>> t, z = pt.linalg.schur([[1.0, 2.0], [0.0, 3.0]])
    >>> t.eval()
    array([[1., 2.],
           [0., 3.]])
    """
    return Blockwise(Schur(output, sort=sort))(A)


def qz(
    A: TensorLike,
    B: TensorLike,
    output: str = "real",
    sort: str | None = None,
    return_eigenvalues: bool = False,
) -> list[TensorVariable]:
    """The factors ``aa``, ``bb``, ``q``, ``z`` of ``A = q aa z^H`` and ``B = q bb z^H``.

    Parameters
    ----------
    A, B : tensors with at least two axes; the last two are square matrices
    output, sort : as for `schur`
    return_eigenvalues : whether the results are ``aa``, ``bb``, ``alpha``, ``beta``, ``q``, ``z``;
        the eigenvalues of the pair are ``alpha / beta``, and ``alpha`` is complex

    ``aa`` and ``bb`` are triangular, but for blocks of ``aa`` as in `schur`; ``q`` and ``z`` are
    unitary.  NaN, infinity and derivatives are as in `schur`.

    >>> import phintys.tensor as pt
    >>> aa, bb, q, z = pt.linalg.qz([[1.0, 2.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> (q @ aa @ z.T).eval().round(12) + 0.0
    array([[1., 2.],
           [0., 3.]])
    """
    _checked(output, sort)
    op = QZ(output == "complex", sort=sort, return_eigenvalues=return_eigenvalues)
    return Blockwise(op)(A, B)


def ordqz(
    A: TensorLike, B: TensorLike, sort: str | None = None, output: str = "real"
) -> list[TensorVariable]:
    """The results of `qz` with eigenvalues, in an order: ``aa, bb, alpha, beta, q, z``.

    Parameters
    ----------
    A, B : tensors with at least two axes; the last two are square matrices
    sort, output : as for `schur`

    >>> import phintys.tensor as pt
    >>> aa, bb, alpha, beta, q, z = pt.linalg.ordqz([[1.0, 0.0], [0.0, -3.0]], pt.eye(2), "lhp")
    >>> (alpha / beta).eval().real.round(12)
    array([-3.,  1.])
    """
    return qz(A, B, output, sort, return_eigenvalues=True)
