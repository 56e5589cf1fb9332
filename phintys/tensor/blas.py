"""BLAS products with scaling and addition.  Rewrites introduce these ops.

All compute ``beta * z + alpha * product``; inputs are in the order of PyTensor.  ``z`` broadcasts
to the product along axes whose length is known to be 1.  Where ``beta`` is 0, ``z`` is not read
(NaN in it is ignored), as in BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from phintys.gradient import pullback, pushforward
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.replace import graph_replace
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply, Constant, Variable
from phintys.graph.vectorize import vectorize_graph
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.complex_products import lower_complex_product
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.dot import matrix_product, outer
from phintys.tensor.elemwise import cast, functions
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

BLAS_DTYPES = ("float32", "float64", "complex64", "complex128")


class BlasOp(Op):
    """Base class of the ops of this module.

    Subclasses give the names of their inputs (``z``, ``alpha``, ``x``, ``y``, ``beta``; missing
    ones are 0 or 1), the ranks of ``x``, ``y`` and the result, and the product.
    """

    __props__ = ()
    handles_missing = False
    roles: ClassVar[tuple[str, ...]]
    ranks: ClassVar[tuple[int, int]]
    result_ndim: ClassVar[int]
    inplace = False

    def named(self, values: Sequence[Any]) -> dict[str, Any]:
        """Values of the inputs by name; None for the names that the op does not have."""
        return dict.fromkeys(("z", "alpha", "beta")) | dict(zip(self.roles, values, strict=True))

    # ----- class and static shape
    def make_node(self, *inputs: TensorLike) -> Apply:
        if len(inputs) != len(self.roles):
            raise TypeError(f"{self} takes {', '.join(self.roles)}; got {len(inputs)} inputs.")
        args = [as_tensor_variable(v) for v in inputs]
        found = self.named(args)
        dtype = found["x"].type.dtype
        if dtype not in BLAS_DTYPES:
            raise TypeError(f"{self} needs dtypes {', '.join(BLAS_DTYPES)}, not {dtype}.")
        converted = [
            _factor(v, dtype, self) if role in ("alpha", "beta") else v
            for role, v in zip(self.roles, args)
        ]
        self._check(self.named(converted), dtype)
        return typed_node(self, converted, dtype)

    def shape_rule(self, s: ShapeContext, *shapes: Shape) -> list[Shape]:
        v = self.named(shapes)
        found = list(self.product_shape(s, v["x"], v["y"]))
        for axis, n in enumerate(v["z"] or ()):
            if n.value != 1:
                message = f"The product cannot be added along axis {axis}"
                found[axis] = s.equal(found[axis], n, message, broadcasts=True)
        return [tuple(found)]

    def product_shape(self, s: ShapeContext, x: Shape, y: Shape) -> Shape:
        """The shape of the product."""
        s.equal(x[-1], y[0], "Inner lengths do not agree")
        return (*x[:-1], *y[1:])

    def _check(self, found: dict[str, Any], dtype: str) -> None:
        for role, rank in (("x", self.ranks[0]), ("y", self.ranks[1]), ("z", self.result_ndim)):
            v = found[role]
            if v is not None and (v.type.ndim != rank or v.type.dtype != dtype):
                raise TypeError(
                    f"{self} needs {role} of rank {rank} and dtype {dtype}; {v} has type {v.type}."
                )

    def product(self, x: TensorVariable, y: TensorVariable) -> TensorVariable:
        """The product as a symbolic expression."""
        return matrix_product(x, y)

    def expression(self, *inputs: Variable) -> TensorVariable:
        """The op as an expression of elementary ops."""
        v = self.named(inputs)
        out = self.product(v["x"], v["y"])
        out = out if v["alpha"] is None else functions.mul(v["alpha"], out)
        if v["z"] is None:
            return out
        rest = v["z"] if v["beta"] is None else functions.mul(v["beta"], v["z"])
        return functions.add(rest, out)

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        v = self.named(inputs)
        z = v["z"]
        with np.errstate(all="ignore"):
            out = self.compute(v["x"], v["y"])
            if v["alpha"] is not None:
                out = v["alpha"] * out
            if z is not None:
                out = self._added(out, z, v["beta"])
        if z is not None and self.inplace and z.shape == out.shape:
            z[...] = out
            out = z
        output_storage[0][0] = np.asarray(out, dtype=node.outputs[0].type.dtype)

    def _added(self, out: np.ndarray, z: np.ndarray, beta: np.ndarray | None) -> np.ndarray:
        """A product plus ``beta * z``; ``z`` is not read where beta is 0."""
        if beta is None:
            return out + z
        return out if beta == 0 else out + beta * z

    def compute(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The product of arrays."""
        return np.dot(x, y)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> list[Variable]:
        (g,) = cotangents
        seed, items = g.type(), [v.type() for v in inputs]
        found = pullback(self.expression(*items), items, seed)
        return list(graph_replace(found, dict(zip([seed, *items], [g, *inputs])), strict=False))

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> list[Variable]:
        items = [v.type() for v in inputs]
        seeds = [t.type() for t in tangents]
        found = pushforward(self.expression(*items), items, seeds)
        return [
            graph_replace(found, dict(zip([*items, *seeds], [*inputs, *tangents])), strict=False)
        ]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        expression = self.expression(*node.inputs)
        return vectorize_graph(expression, dict(zip(node.inputs, batched_inputs))).owner

    # ----- in place
    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return self

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        v = self.named(inputs)
        b.result_shapes(node, *inputs)
        if dtypes.is_complex(str(v["x"].dtype)):
            return self._lower_complex(b, v)
        alpha, beta = (1.0 if v[role] is None else v[role] for role in ("alpha", "beta"))
        return self.lower_product(b, v["x"], v["y"], v["z"], alpha, beta)

    def lower_product(
        self, b: Builder[V], x: V, y: V, z: V | None, alpha: float | V, beta: float | V
    ) -> V:
        return b.gemm(x, y, z, alpha, beta)

    def _lower_complex(self, b: Builder[V], v: dict[str, Any]) -> V:
        """The result for complex numbers: the product, then what is added, elementwise."""
        out = self.lower_complex_product(b, v["x"], v["y"])
        z, alpha, beta = v["z"], v["alpha"], v["beta"]
        if alpha is not None:
            out = b.map(lambda n, a, p: n.mul(a, p), alpha, out)
        if z is None:
            return out
        if beta is None:
            return b.map(lambda n, p, z: n.add(p, z), out, z)
        return b.map(
            lambda n, p, z, c: n.select(n.eq(c, n.const(0, c)), p, n.add(p, n.mul(c, z))),
            out,
            z,
            beta,
        )

    def lower_complex_product(self, b: Builder[V], x: V, y: V) -> V:
        return lower_complex_product(b, x, y, (self.ranks[0] == 1, self.ranks[1] == 1))

    def __str__(self) -> str:
        return type(self).__name__


def _factor(a: TensorVariable, dtype: str, op: Op) -> TensorVariable:
    """A 0-d factor in the dtype of the product."""
    if a.type.ndim != 0:
        raise TypeError(f"The factors of {op} are 0-d; {a} has type {a.type}.")
    if dtypes.is_complex(a.type.dtype) and not dtypes.is_complex(dtype):
        raise TypeError(f"{op} of dtype {dtype} cannot be scaled by {a} of dtype {a.type.dtype}.")
    return constant(a.data, dtype=dtype) if isinstance(a, Constant) else cast(a, dtype)


class AddingOp(BlasOp):
    """A product added to ``z``; it overwrites ``z`` if ``inplace``."""

    __props__ = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace
        self.destroy_map = {0: [0]} if inplace else {}

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        return type(self)(inplace=True) if 0 in allowed_inplace_inputs else self

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{'inplace' if self.inplace else 'no_inplace'}}}"


class Gemv(AddingOp):
    """``beta * y + alpha * A @ x`` of a matrix and vectors.  Inputs: y, alpha, A, x, beta."""

    __props__ = ("inplace",)
    __str__ = AddingOp.__str__
    roles = ("z", "alpha", "x", "y", "beta")
    ranks = (2, 1)
    result_ndim = 1

    def lower_product(
        self, b: Builder[V], x: V, y: V, z: V | None, alpha: float | V, beta: float | V
    ) -> V:
        return b.gemv(x, y, z, alpha, beta)


class Ger(AddingOp):
    """``A + alpha * outer(x, y)`` of a matrix and vectors.  Inputs: A, alpha, x, y."""

    __props__ = ("inplace",)
    __str__ = AddingOp.__str__
    roles = ("z", "alpha", "x", "y")
    ranks = (1, 1)
    result_ndim = 2

    def product(self, x: TensorVariable, y: TensorVariable) -> TensorVariable:
        return outer(x, y)

    def product_shape(self, s: ShapeContext, x: Shape, y: Shape) -> Shape:
        return (*x, *y)

    def compute(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.outer(x, y)

    def lower_product(
        self, b: Builder[V], x: V, y: V, z: V | None, alpha: float | V, beta: float | V
    ) -> V:
        assert z is not None
        return b.ger(z, x, y, alpha)

    def lower_complex_product(self, b: Builder[V], x: V, y: V) -> V:
        return b.map(lambda n, x, y: n.mul(x, y), b.expand(x, 1), b.expand(y, 0))


class Gemm(AddingOp):
    """``beta * z + alpha * x @ y`` of matrices.  Inputs: z, alpha, x, y, beta."""

    __props__ = ("inplace",)
    __str__ = AddingOp.__str__
    roles = ("z", "alpha", "x", "y", "beta")
    ranks = (2, 2)
    result_ndim = 2


class Dot22(BlasOp):
    """``x @ y`` of two matrices."""

    __props__ = ()
    roles = ("x", "y")
    ranks = (2, 2)
    result_ndim = 2


class Dot22Scalar(BlasOp):
    """``alpha * x @ y`` of two matrices.  Inputs: x, y, alpha."""

    __props__ = ()
    roles = ("x", "y", "alpha")
    ranks = (2, 2)
    result_ndim = 2


class BatchedDot(BlasOp):
    """``x[i] @ y[i]`` for two batches of matrices of equal length."""

    __props__ = ()
    roles = ("x", "y")
    ranks = (3, 3)
    result_ndim = 3

    def product_shape(self, s: ShapeContext, x: Shape, y: Shape) -> Shape:
        batch = s.equal(x[0], y[0], "The batches are not of equal length")
        s.equal(x[-1], y[-2], "Inner lengths do not agree")
        return (batch, x[1], y[-1])

    def compute(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.matmul(x, y)

    def lower_product(
        self, b: Builder[V], x: V, y: V, z: V | None, alpha: float | V, beta: float | V
    ) -> V:
        return b.gemm(x, y)


gemm = gemm_no_inplace = Gemm()
gemm_inplace = Gemm(inplace=True)
gemv = gemv_no_inplace = Gemv()
gemv_inplace = Gemv(inplace=True)
ger = Ger()
ger_destructive = Ger(inplace=True)
_dot22 = Dot22()
_dot22scalar = Dot22Scalar()
_batched_dot = BatchedDot()
