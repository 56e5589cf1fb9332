"""Linear recurrences along an axis: the derivatives of cumulative products."""

from __future__ import annotations

from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.variable import Apply
from phintys.routines import Array, routine
from phintys.routines.language import PARTS
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.axes import atleast_Nd
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.creation import broadcast_arrays, zeros_like
from phintys.tensor.elemwise import cast, conjugate
from phintys.tensor.join import concatenate
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable


class LinearRecurrence(Op):
    """Numbers along the last axis, each from the one before: ``y[k] = a[k] * y[k - 1] + b[k]``.

    Inputs: ``a`` and ``b``, of one shape and a float or complex dtype.  ``y[0]`` is ``b[0]``, so
    ``a[0]`` is not used.  There is no division in its derivatives, which are recurrences as well.

    Parameters
    ----------
    reverse
        each number from the one after it: ``y[k] = a[k + 1] * y[k + 1] + b[k]``; the last one is
        that of ``b``
    """

    # ----- class and static shape
    __props__ = ("reverse",)
    handles_missing = False

    def __init__(self, reverse: bool = False) -> None:
        self.reverse = bool(reverse)

    def make_node(self, a: TensorLike, b: TensorLike) -> Apply:
        a, b = as_tensor_variable(a), as_tensor_variable(b)
        dtype = dtypes.upcast(a.type.dtype, b.type.dtype)
        if a.type.ndim != b.type.ndim or not a.type.ndim or dtypes.is_discrete(dtype):
            raise TypeError(
                f"{self} takes floating tensors of one rank, not {a.type} and {b.type}."
            )
        return typed_node(self, [cast(a, dtype), cast(b, dtype)], dtype)

    def shape_rule(self, s: ShapeContext, a: Shape, b: Shape) -> list[Shape]:
        message = "Lengths along axis {} do not agree"
        return [tuple([s.equal(n, m, message.format(k)) for k, (n, m) in enumerate(zip(a, b))])]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        a, y = inputs[0], inputs[1].copy()
        for k in range(1, y.shape[-1]):
            if self.reverse:
                y[..., -k - 1] += a[..., -k] * y[..., -k]
            else:
                y[..., k] += a[..., k] * y[..., k - 1]
        output_storage[0][0] = y

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        """The cotangent of ``b`` is the recurrence in the other direction."""
        (a, _), (y,), (g,) = inputs, outputs, cotangents
        back = LinearRecurrence(not self.reverse)(conjugate(a), g)
        earlier, later = (back, conjugate(y)) if self.reverse else (conjugate(y), back)
        products = earlier[..., :-1] * later[..., 1:]
        return [concatenate([zeros_like(a[..., :1]), products], axis=-1), back]

    def pushforward(self, inputs: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        (a, _), (y,), (da, db) = inputs, outputs, tangents
        parts = [da[..., 1:] * (y[..., 1:] if self.reverse else y[..., :-1])]
        parts.insert(len(parts) if self.reverse else 0, zeros_like(a[..., :1]))
        return [LinearRecurrence(self.reverse)(a, concatenate(parts, axis=-1) + db)]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        ndim = max(v.type.ndim for v in batched_inputs)
        return self.make_node(*broadcast_arrays(*(atleast_Nd(v, n=ndim) for v in batched_inputs)))

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V:
        ((*batch, n),) = b.result_shapes(node, *inputs)
        dtype = node.outputs[0].type.dtype
        writes = [(dtype, (n,))]
        integers = (int(self.reverse), n)
        (y,) = b.external(recurrence, dtype, integers, inputs, (), writes, batch, work=n)
        return y

    def __str__(self) -> str:
        return f"LinearRecurrence{{reverse={self.reverse}}}"


@routine(
    "float32 float64 complex64 complex128",
    (ValueError, "The recurrence was not computed."),
)
def recurrence(reverse: int, n: int, a: Array, b: Array, y: Array) -> int:
    """Write the numbers y[n] of the recurrence with the coefficients a[n] and the terms b[n]."""
    for i in range(n):
        k = (n - 1 - i if reverse == 1 else i) * PARTS
        y[k] = b[k]
        y[k + PARTS - 1] = b[k + PARTS - 1]
        if i > 0:
            before = k + PARTS if reverse == 1 else k - PARTS
            factor = before if reverse == 1 else k
            if PARTS == 1:
                y[k] += a[factor] * y[before]
            else:
                y[k] += a[factor] * y[before] - a[factor + 1] * y[before + 1]
                y[k + 1] += a[factor] * y[before + 1] + a[factor + 1] * y[before]
    return 0
