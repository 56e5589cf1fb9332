"""Numbers that tell something about a matrix: determinants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from phintys.gradient.forward import forward_sweep
from phintys.gradient.reverse import backpropagate
from phintys.graph.builder import Builder, V
from phintys.graph.op import Storage
from phintys.graph.replace import graph_replace
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Variable
from phintys.routines import Array, routine
from phintys.scalar.dtypes import is_complex, real_of
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.blockwise import Blockwise
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.elemwise import conjugate, functions, match_dtype
from phintys.tensor.linalg.cofactors import SingularCofactors
from phintys.tensor.linalg.elimination import cofactors, factored, lower_pivots, substituted
from phintys.tensor.linalg.matrix_op import MatrixOp, adjoint, inexact, square
from phintys.tensor.linalg.solvers.general import Solve
from phintys.tensor.ranges import eye
from phintys.tensor.reduce import sum as sum_over
from phintys.tensor.shape import length
from phintys.tensor.type import TensorType, typed_node
from phintys.tensor.variable import Tensors, TensorVariable

__all__ = ["det", "slogdet"]

#: Second derivatives of a determinant are not computed from the inverse if the factor by which it
#: multiplies relative errors of elements, ``sum(abs(inv(x) * x.T)) / n``, is at least this.
ILL_CONDITIONED = 10


class Det(MatrixOp):
    """The determinant of a square matrix; NaN if the matrix is not finite."""

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m)->()"

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        return typed_node(self, [x], inexact(x.type.dtype))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        square(s, x)
        return [()]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        pivots = _pivots(inputs[0].astype(node.outputs[0].type.dtype))
        with np.errstate(over="ignore", invalid="ignore"):
            output_storage[0][0] = np.prod(pivots)

    # ----- derivative: the cofactors
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (g,) = inputs, cotangents
        return [match_dtype(DetCotangent()(x, g), x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x,), (found,), (t,) = inputs, outputs, tangents
        g = found.zeros_like() + 1
        return [match_dtype(sum_over(conjugate(DetCotangent()(x, g)) * t), found)]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        return [_lower_product(b, lower_pivots(b, x, node.outputs[0].type.dtype))]


class SLogDet(MatrixOp):
    """The sign and the logarithm of the absolute value of the determinant of a square matrix.

    The sign of a complex determinant is a number with the absolute value 1.  If the determinant is
    zero, so is the sign, and the logarithm is -inf; both are NaN if the matrix is not finite.
    """

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m)->(),()"

    def make_node(self, x: TensorLike) -> Apply:
        x = self.matrix(x)
        dtype = inexact(x.type.dtype)
        return typed_node(self, [x], dtype, real_of(dtype))

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        square(s, x)
        return [(), ()]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        pivots = _pivots(inputs[0].astype(node.outputs[0].type.dtype))
        size = np.abs(pivots)
        with np.errstate(divide="ignore", invalid="ignore"):
            signs = np.where(size == 0, 0, pivots / size)
            output_storage[0][0] = np.prod(signs).astype(pivots.dtype)
            output_storage[1][0] = np.log(size).sum()

    # ----- derivative: with t = trace(inv(x) dx), that of the logarithm is the real part of t, that
    # of the sign is the sign times the imaginary part
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (x,), (sign, _), (g_sign, g) = inputs, outputs, cotangents
        if is_complex(sign.type.dtype):
            g = functions.complex(g, functions.imag(g_sign * conjugate(sign)))
        return [match_dtype(_inverse(adjoint(x)) * g, x)]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        (x,), (sign, _), (t,) = inputs, outputs, tangents
        found = _trace_of_quotient(x, t)
        if not is_complex(sign.type.dtype):
            return [sign * 0, found]
        turned = functions.complex(functions.imag(found) * 0, functions.imag(found))
        return [sign * turned, functions.real(found)]

    # ----- batching and lowering
    def lower_batched(self, node: Apply, b: Builder[V], x: V) -> list[V]:
        pivots = lower_pivots(b, x, node.outputs[0].type.dtype)
        signs = b.map(_sign, pivots)
        logarithms = b.map(lambda n, x: n.log(n.abs(x)), pivots)
        return [_lower_product(b, signs), b.reduce("add", logarithms, [logarithms.ndim - 1])]


class DetCotangent(MatrixOp):
    """The cotangent of a matrix from that of its determinant.

    It is a composition of other ops, which replace it in canonical form.  Its derivatives are those
    of the inverse where the matrix has one that is precise, else those of the cofactors.
    """

    # ----- class and static shape
    __props__ = ()
    gufunc_signature = "(m,m),()->(m,m)"
    lower_batched = None

    def make_node(self, x: TensorLike, g: TensorLike) -> Apply:
        x, g = self.matrix(x), as_tensor_variable(g)
        return typed_node(self, [x, g], inexact(x.type.dtype))

    def shape_rule(self, s: ShapeContext, x: Shape, g: Shape) -> list[Shape]:
        n = square(s, x)
        return [(n, n)]

    def formula(self, x: TensorVariable, g: TensorVariable) -> TensorVariable:
        """The result as a graph."""
        found = Det()(x)
        wanted = _has_no_quotient(found, g)
        cofactors = _by_cofactors(x, wanted, g)
        return match_dtype(functions.switch(wanted, cofactors, _by_inverse(x, found, g)), x)

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        x, g = (v.astype(node.outputs[0].type.dtype, copy=False) for v in inputs)
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.prod(_pivots(x))
            if _has_no_quotient(found, g):
                output_storage[0][0] = cofactors(x).conj() * g
            else:
                inverse = substituted(*factored(x), np.eye(len(x), dtype=x.dtype))
                output_storage[0][0] = (inverse * (g.conj() * found)).conj().T

    # ----- derivatives
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        given = _stand_ins([*inputs, cotangents[0]])
        x, g, seed = given
        forms = _Forms(x, g)
        of_inverse = backpropagate({forms.by_inverse: seed}, [forms.regular, forms.found, g])
        of_cofactors = backpropagate({forms.by_cofactors: seed}, [x, g])
        through_found = _by_inverse(forms.regular, forms.found, of_inverse[forms.found])
        pairs = [
            (of_cofactors[x], of_inverse[forms.regular] + through_found),
            (of_cofactors[g], of_inverse[g]),
        ]
        return forms.chosen(pairs, given)

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        given = _stand_ins([*inputs, *tangents])
        x, g, t, t_g = given
        forms = _Forms(x, g)
        moved = forms.found * _trace_of_quotient(forms.regular, t)
        pairs = zip(
            forward_sweep([forms.by_cofactors], {x: t, g: t_g}),
            forward_sweep([forms.by_inverse], {forms.regular: t, forms.found: moved, g: t_g}),
        )
        return forms.chosen(pairs, given)


class _Forms:
    """Two expressions of a `DetCotangent`, of which one is differentiated.

    In that by the inverse, ``regular`` and ``found`` stand for the matrix and its determinant.  A
    matrix without an inverse is replaced by the identity: there must be no NaN, which would be
    multiplied by cotangents of zero.
    """

    def __init__(self, x: TensorVariable, g: TensorVariable) -> None:
        value = Det()(x)
        singular = _has_no_quotient(value, g)
        regular = functions.switch(singular, eye(length(x, 0), dtype=x.type.dtype), x)
        self.values = _stand_ins([regular, value])
        self.regular, self.found = self.values
        self.wanted = singular | (_is_ill_conditioned(self.regular) & _is_in_range(value))
        self.by_inverse = _by_inverse(self.regular, self.found, g)
        self.by_cofactors = _by_cofactors(x, self.wanted, g)

    def chosen(
        self, pairs: Iterable[Sequence[Any]], given: dict[TensorVariable, TensorVariable]
    ) -> list[Variable]:
        """The derivatives of the form that is precise, as functions of what is given."""
        found = [functions.switch(self.wanted, *pair) for pair in pairs]
        return graph_replace(graph_replace(found, self.values, strict=False), given, strict=False)


def _by_cofactors(x: TensorVariable, wanted: TensorVariable, g: TensorVariable) -> TensorVariable:
    return conjugate(SingularCofactors()(x, wanted)) * g


def _by_inverse(x: TensorVariable, found: TensorVariable, g: TensorVariable) -> TensorVariable:
    return adjoint(_inverse(x)) * (g * conjugate(found))


def _has_no_quotient(found: Any, g: Any) -> Any:
    """Whether the determinant, or its product with ``g``, is zero or out of range, but not ``g``.

    In the derivative of a logarithm ``g`` is the reciprocal of the determinant: their product is 1.
    """
    good = _is_in_range(found) & _is_in_range(g * found)
    return ~good & (abs(g) < np.inf) & ~((abs(found) >= np.inf) & (abs(g) <= 0))


def _is_in_range(x: Any) -> Any:
    """Whether a number has the full precision of its dtype."""
    return (abs(x) >= np.finfo(real_of(str(x.dtype))).tiny) & (abs(x) < np.inf)


def _is_ill_conditioned(x: TensorVariable) -> TensorVariable:
    """Whether changes of elements change the determinant by many times as much, relatively.

    True for a single number: the second derivative is zero, not the difference of two reciprocals.
    """
    n = length(x, 0)
    return ~((sum_over(abs(_inverse(x) * x.T)) < ILL_CONDITIONED * n) & (n > 1))


def _stand_ins(values: Sequence[TensorVariable]) -> dict[TensorVariable, TensorVariable]:
    """New variables, and the values for which they stand."""
    return {TensorType(v.type.dtype, v.type.shape)(): v for v in values}


def _inverse(x: TensorVariable) -> TensorVariable:
    """The inverse, or NaN."""
    return Solve(b_ndim=2)(x, eye(length(x, 0), dtype=x.type.dtype))


def _trace_of_quotient(x: TensorVariable, t: TensorVariable) -> TensorVariable:
    """``trace(inv(x) t)``."""
    return sum_over(_inverse(x) * t.T)


def _pivots(x: np.ndarray) -> np.ndarray:
    """Numbers whose product is the determinant."""
    factors, pivots = factored(x)
    found = factors.diagonal()
    return np.where(pivots != np.arange(len(x)), -found, found)


def _sign(n: Any, x: Any) -> Any:
    """The sign of a number; for a complex one, the number divided by its absolute value."""
    size, zero = n.abs(x), n.const(0, x)
    if is_complex(n.dtype(x)):
        unit = n.complex(n.div(n.real(x), size), n.div(n.imag(x), size))
    else:
        unit = n.div(x, size)
    return n.select(n.eq(x, zero), zero, unit)


def _lower_product(b: Builder[V], x: V) -> V:
    """The products along the last axis."""
    if not is_complex(str(x.dtype)):
        return b.reduce("mul", x, [x.ndim - 1])
    *batch, n = b.shape(x)
    dtype = str(x.dtype)
    (found,) = b.external(multiply, dtype, (n,), [x], writes=[(dtype, ())], batch=batch, work=4 * n)
    return found


@routine("complex64 complex128", (ArithmeticError, "A product cannot be computed"))
def multiply(n: int, x: Array, product: Array) -> int:
    """Write the product of complex numbers."""
    re = 1.0
    im = 0.0
    for i in range(n):
        a = x[2 * i]
        b = x[2 * i + 1]
        new = re * a - im * b
        im = re * b + im * a
        re = new
    product[0] = re
    product[1] = im
    return 0


# ----- user functions
def det(x: TensorLike) -> TensorVariable:
    """The determinants of square matrices, the last two axes of ``x``.

    NaN for a matrix that contains NaN or infinity.  The derivatives exist where a matrix is
    singular, too: the first one is the matrix of cofactors.  ShapeError if the matrices are not
    square.

    >>> import phintys.tensor as pt
    >>> pt.linalg.det([[2.0, 1.0], [1.0, 3.0]]).eval()
    array(5.)
    """
    return Blockwise(Det())(x)


def slogdet(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """The signs of determinants, and the logarithms of their absolute values.

    The sign of a complex determinant is a number with the absolute value 1.  If a determinant is
    zero, so is the sign, and the logarithm is -inf; both are NaN if a matrix contains NaN or
    infinity.  ShapeError if the matrices are not square.

    >>> import phintys.tensor as pt
    >>> sign, logarithm = pt.linalg.slogdet([[1.0, 2.0], [3.0, 1.0]])
    >>> sign.eval(), logarithm.eval()
    (array(-1.), array(1.60943791))
    """
    sign, logarithm = Blockwise(SLogDet())(x)
    return sign, logarithm
