"""Systems of linear equations whose matrix is factored already: `lu_solve`."""

from __future__ import annotations

from phintys.gradient.forward import forward_sweep
from phintys.gradient.reverse import backpropagate
from phintys.graph.builder import Builder, V
from phintys.graph.ignored import ignores
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.linalg.decomposition.lu import as_pivots, pivot_to_permutation
from phintys.tensor.linalg.elimination import (
    counted_from,
    lower_substitution,
    substituted,
)
from phintys.tensor.linalg.matrix_op import columns_first, inexact
from phintys.tensor.linalg.solvers.core import SolveBase, default_b_ndim
from phintys.tensor.linalg.solvers.triangular import solve_triangular
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["lu_solve"]


class LUSolve(SolveBase):
    """The solution ``x`` of ``a x = b`` from what `lu_factor` returns for ``a``; NaN if ``a`` is
    singular.

    Parameters
    ----------
    transposed
        whether to solve ``a^T x = b``
    b_ndim, overwrite_b
        see `SolveBase`
    """

    # ----- class and static shape
    __props__ = ("transposed", "b_ndim", "overwrite_b")

    def __init__(self, *, transposed: bool = False, b_ndim: int, overwrite_b: bool = False) -> None:
        super().__init__(b_ndim=b_ndim, overwrite_b=overwrite_b)
        self.transposed = bool(transposed)
        self.destroy_map = {0: [2]} if overwrite_b else {}
        right = "(m)" if b_ndim == 1 else "(m,n)"
        self.gufunc_signature = f"(m,m),(m),{right}->{right}"

    def make_node(self, *inputs: TensorLike) -> Apply:
        factors, pivots, b = inputs
        factors, b, pivots = self.matrix(factors), as_tensor_variable(b), as_pivots(pivots)
        self.require_b(b)
        return typed_node(self, [factors, pivots, b], inexact(factors.type.dtype, b.type.dtype))

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        factors, pivots, b = shapes
        s.equal(factors[0], pivots[0], "The matrix and the pivots do not fit")
        return super().shape_rule(s, factors, b)

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        factors, b = self.converted(node, [inputs[0], inputs[2]])
        output_storage[0][0] = substituted(factors, inputs[1], b, self.transposed)

    # ----- derivatives: those of the formula
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [True]]

    def pullback(
        self, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> list[Variable | None]:
        factors, _, b = inputs
        found = backpropagate({self.formula(*inputs): cotangents[0]}, [factors, b])
        return [found[factors], None, found[b]]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (factors, _, b), (t, _, tb) = inputs, tangents
        return list(forward_sweep([self.formula(*inputs)], {factors: t, b: tb}))

    def formula(
        self, factors: TensorVariable, pivots: TensorVariable, b: TensorVariable
    ) -> TensorVariable:
        """The solution as a graph of two triangular systems."""
        order = pivot_to_permutation(pivots, inverse=not self.transposed)
        trans = "T" if self.transposed else "N"

        def solve(b: TensorVariable, lower: bool) -> TensorVariable:
            return solve_triangular(
                factors, b, trans=trans, lower=lower, unit_diagonal=lower, b_ndim=self.b_ndim
            )

        if self.transposed:
            return solve(solve(b, lower=False), lower=True)[order]
        return solve(solve(b[order], lower=True), lower=False)

    # ----- batching and lowering
    def lower_batched(self, node: Apply, builder: Builder[V], a: V, pivots: V, b: V) -> list[V]:
        dtype = node.outputs[0].type.dtype
        columns = columns_first(builder, builder.cast(a, dtype))
        pivots = counted_from(builder, pivots, 0, 1)
        arguments = (dtype, self.b_ndim, self.transposed)
        return [lower_substitution(builder, columns, pivots, b, *arguments)]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        if 2 not in allowed_inplace_inputs:
            return self
        return LUSolve(transposed=self.transposed, b_ndim=self.b_ndim, overwrite_b=True)


# ----- user function
@ignores("check_finite", "overwrite_b")
def lu_solve(
    LU_and_pivots: tuple[TensorLike, TensorLike],
    b: TensorLike,
    trans: bool = False,
    b_ndim: int | None = None,
    check_finite: bool = True,
    overwrite_b: bool = False,
) -> TensorVariable:
    """The solution ``x`` of ``a x = b`` from ``lu_factor(a)``.

    Parameters
    ----------
    LU_and_pivots : what `lu_factor` returns
    b : right sides: vectors (the last axis) or matrices (the last two)
    trans : whether to solve ``a^T x = b``
    b_ndim : 1 if right sides are vectors, 2 if they are matrices; by default 1 if ``b`` has one
        axis
    check_finite, overwrite_b : ignored

    The solution is NaN where a matrix is singular.  ShapeError if shapes do not fit, ValueError at
    run time if a pivot is no row of the matrix.

    >>> import phintys.tensor as pt
    >>> factors = pt.linalg.lu_factor([[1.0, 2.0], [4.0, 4.0]])
    >>> pt.linalg.lu_solve(factors, [3.0, 8.0]).eval()
    array([1., 1.])
    """
    (factors, pivots), b = LU_and_pivots, as_tensor_variable(b)
    op = LUSolve(transposed=trans, b_ndim=default_b_ndim(b, b_ndim))
    return Blockwise(op)(factors, pivots, b)
