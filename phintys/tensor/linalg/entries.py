"""Results of operations on matrices of two or three rows that are written entry by entry.

The Cholesky factor, the inverse, the determinant and solutions are computed from the entries, as
sums of products of powers: with ``s**2``, ``r s t`` and ``t**2`` the last pivot is
``t**2 (1 - r**2)``.  What cancels is not computed, and no square of ``s`` leaves the range.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from phintys.gradient.forms import OtherForm, differentiated_as
from phintys.graph.variable import Apply, Variable
from phintys.tensor.apart import Term, number_like, sum_of_terms
from phintys.tensor.axes import expand_dims
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elements import elements
from phintys.tensor.elemwise import DimShuffle, cast, dimshuffle
from phintys.tensor.join import Join
from phintys.tensor.laurent import Algebra, Polynomial, TooLong, negative, short, written
from phintys.tensor.linalg.decomposition.cholesky import Cholesky
from phintys.tensor.linalg.inverse import MatrixInverse
from phintys.tensor.linalg.solvers.cholesky import CholeskySolve
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.linalg.solvers.triangular import SolveTriangular
from phintys.tensor.linalg.summary import Det, slogdet
from phintys.tensor.logarithms import form_from
from phintys.tensor.region import region
from phintys.tensor.scaled import Scaled, is_float, spread, states

#: Operations on a matrix that are looked through, at most.
MOST_OPERATIONS = 4

#: The rows of a matrix.
Matrix = list[list[Polynomial]]


def from_entries(node: Apply, kept: Collection[Variable] = ()) -> Variable | None:
    """The result of an operation on a matrix that is written entry by entry; None for others.

    Parameters
    ----------
    node
        of an op for batches: `Cholesky`, `MatrixInverse`, `Det`, `Solve`, `SolveTriangular`,
        `CholeskySolve`
    kept
        variables that are not looked through
    """
    if type(node.op) is not Blockwise or len(node.outputs) > 1:
        return None
    op, (out,) = node.op.core_op, node.outputs
    if type(op) not in (Cholesky, MatrixInverse, Det, *SOLVERS) or not is_float(out):
        return None
    try:
        return _result(node, kept, Algebra())
    except TooLong:
        return None


def _result(node: Apply, kept: Collection[Variable], algebra: Algebra) -> Variable | None:
    assert isinstance(node.op, Blockwise), "it is an op for batches"
    op, (out,) = node.op.core_op, node.outputs
    matrix = _entries(node.inputs[0], kept, algebra)
    if matrix is None:
        return None
    if isinstance(op, SOLVERS):
        columns = _column(node, kept, algebra)
        solved = None if columns is None else _solved(op, matrix, columns, algebra)
        if solved is None:
            return None
        as_vector = op.b_ndim == 1
        if as_vector:
            return _stacked_row(solved, node, out.type.ndim - 1, algebra)
        return _joined([[p] for p in solved], node, algebra)
    if type(op) is Det:
        found = _determinant(matrix, algebra)
        return None if found is None else _written(found, node, algebra)
    made = _operated(op, matrix, algebra)
    return None if made is None else _joined(made, node, algebra)


def _entries(x: Variable, kept: Collection[Variable], algebra: Algebra) -> Matrix | None:
    """The entries of a matrix, or of one that operations make of it."""
    operations = []
    while len(operations) < MOST_OPERATIONS and x.owner is not None and x not in kept:
        op = x.owner.op
        core = op.core_op if type(op) is Blockwise else op
        transposes = type(op) is DimShuffle and op.is_matrix_transpose
        if type(core) not in (Cholesky, MatrixInverse) and not transposes:
            break
        operations.append(core)
        x = x.owner.inputs[0]
    matrix = _written_entries(x, kept, algebra)
    for op in reversed(operations):
        matrix = None if matrix is None else _operated(op, matrix, algebra)
    return matrix


def _written_entries(x: Variable, kept: Collection[Variable], algebra: Algebra) -> Matrix | None:
    axis = x.type.ndim - 2
    rows = elements(x, axis, kept, {}) if axis >= 0 else None
    found = [elements(row, axis, kept, {}) for row in rows or []]
    if not found or len(found) > 3 or any(row is None or len(row) != len(found) for row in found):
        return None
    return [[algebra.of(v) for v in row or []] for row in found]


def _operated(op: object, matrix: Matrix, algebra: Algebra) -> Matrix | None:
    """What an op makes of a matrix."""
    if type(op) is DimShuffle:
        return [list(row) for row in zip(*matrix)]
    if type(op) is Cholesky:
        return _factor(matrix, algebra) if op.lower else None
    return _inverse(matrix, algebra)


def _factor(matrix: Matrix, algebra: Algebra) -> Matrix | None:
    """The Cholesky factor, from the entries on the diagonal and below."""
    n = len(matrix)
    factor: Matrix = [[[] for _ in range(n)] for _ in range(n)]
    for j in range(n):
        for i in range(j, n):
            products = [algebra.times(factor[i][k], factor[j][k]) for k in range(j)]
            left = short([*matrix[i][j], *[t for p in products for t in negative(p)]])
            if i > j:
                (pivot,) = factor[j][j]
                found = algebra.product(left)
                factor[i][j] = [] if found is None else algebra.over([found], pivot)
                continue
            square = algebra.product(left)
            root = None if square is None else algebra.root(square)
            if root is None:
                return None
            factor[j][j] = [root]
    return factor


def _determinant(matrix: Matrix, algebra: Algebra) -> Polynomial | None:
    if len(matrix) != 2:
        return None
    (a, b), (c, d) = matrix
    return short([*algebra.times(a, d), *negative(algebra.times(b, c))])


def _scaled_determinant(node: Apply, given: Sequence[Scaled]) -> Scaled:
    """A determinant from the entries, or from pivots."""
    algebra = Algebra()
    term = _determinant_as_product(node, algebra)
    if term is None:
        sign, size = slogdet(node.inputs[0])
        return Scaled(size, sign)
    exponent, rest = algebra.logarithm(term)
    return Scaled(exponent, _spread(sum_of_terms([rest]), node))


def _determinant_as_product(node: Apply, algebra: Algebra) -> Term | None:
    try:
        matrix = _entries(node.inputs[0], (), algebra)
        found = None if matrix is None else _determinant(matrix, algebra)
        return None if found is None else algebra.product(found)
    except TooLong:
        return None


def _inverse(matrix: Matrix, algebra: Algebra) -> Matrix | None:
    found = _determinant(matrix, algebra)
    below = None if found is None else algebra.product(found)
    if below is None:
        return None
    (a, b), (c, d) = matrix
    cofactors = [[d, negative(b)], [negative(c), a]]
    return [[algebra.over(v, below) for v in row] for row in cofactors]


# ------------------------------------------------------------------------------- solutions

SOLVERS = (Solve, SolveTriangular, CholeskySolve)


def _column(node: Apply, kept: Collection[Variable], algebra: Algebra) -> list[Polynomial] | None:
    """The elements of the right side, if that is one column."""
    assert isinstance(node.op, Blockwise), "it is an op for batches"
    a, b = node.inputs
    as_vector = isinstance(node.op.core_op, SOLVERS) and node.op.core_op.b_ndim == 1
    if b.type.ndim != a.type.ndim - as_vector or not (as_vector or b.type.broadcastable[-1]):
        return None
    found = elements(b, a.type.ndim - 2, kept, {})
    if found is None:
        return None
    if not as_vector:
        found = [_without_last_axis(v) for v in found]
    return [algebra.of(v) for v in found]


def _without_last_axis(v: Variable) -> Variable:
    return dimshuffle(v, list(range(v.type.ndim - 1)))


def _solved(
    op: object, matrix: Matrix, right: Sequence[Polynomial], algebra: Algebra
) -> list[Polynomial] | None:
    if len(right) != len(matrix):
        return None
    if type(op) is Solve:
        inverse = _inverse(matrix, algebra) if op.assume_a in ("gen", "sym", "pos") else None
        return None if inverse is None else [_dot(row, right, algebra) for row in inverse]
    if type(op) is SolveTriangular and not op.unit_diagonal:
        return _substituted(matrix, right, op.lower, algebra)
    if type(op) is CholeskySolve and op.lower:
        half = _substituted(matrix, right, True, algebra)
        back = [list(row) for row in zip(*matrix)]
        return None if half is None else _substituted(back, half, False, algebra)
    return None


def _dot(row: Sequence[Polynomial], right: Sequence[Polynomial], algebra: Algebra) -> Polynomial:
    products = [algebra.times(x, y) for x, y in zip(row, right)]
    return short([t for p in products for t in p])


def _substituted(
    matrix: Matrix, right: Sequence[Polynomial], lower: bool, algebra: Algebra
) -> list[Polynomial] | None:
    """The solution of a triangular system."""
    n = len(matrix)
    found: list[Polynomial] = [[] for _ in range(n)]
    for i in range(n) if lower else reversed(range(n)):
        pivot = algebra.product(matrix[i][i])
        if pivot is None:
            return None
        before = range(i) if lower else range(i + 1, n)
        known = _dot([matrix[i][k] for k in before], [found[k] for k in before], algebra)
        left = algebra.simplified(short([*right[i], *negative(known)]))
        found[i] = algebra.over(left, pivot)
    return found


# --------------------------------------------------------------------------------- results


def _joined(rows: Matrix, node: Apply, algebra: Algebra) -> Variable:
    """The matrix of entries, or of rows with one."""
    axis = node.outputs[0].type.ndim - 2
    return _stacked([_stacked_row(row, node, axis, algebra) for row in rows], axis)


def _stacked_row(row: Sequence[Polynomial], node: Apply, axis: int, algebra: Algebra) -> Variable:
    return _stacked([_written(p, node, algebra) for p in row], axis)


def _stacked(items: Sequence[Variable], axis: int) -> Variable:
    moved = [expand_dims(v, axis) for v in items]
    return Join(axis)(*moved) if len(moved) > 1 else moved[0]


def _written(terms: Polynomial, node: Apply, algebra: Algebra) -> Variable:
    """A sum in the shape of the batch and the dtype of the result."""
    terms = algebra.simplified(terms)
    return _spread(written(terms) if terms else number_like(0, node.outputs[0]), node)


def _spread(found: Variable, node: Apply) -> Variable:
    (out,) = node.outputs
    matrix = node.inputs[0]
    found = cast(found, out.type.dtype)
    return found if matrix.type.ndim == 2 else spread(found, as_tensor_variable(matrix)[..., 0, 0])


def _differentiated(node: Apply, kept: Collection[Variable]) -> OtherForm | None:
    found = from_entries(node, kept)
    return None if found is None else form_from(node, kept, found, region(node, kept))


differentiated_as(Blockwise, _differentiated)
states(Det, _scaled_determinant)
