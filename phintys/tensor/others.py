"""Products of all other elements along axes: the derivative of `prod`, valid at zeros too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_shapes
from phintys.graph.type import DisconnectedType
from phintys.graph.variable import Apply, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import Arrays, TensorLike
from phintys.tensor.convert import as_tensor_variable, pad_left
from phintys.tensor.elemwise import cast, conjugate, functions, zeros_of
from phintys.tensor.type import typed_node
from phintys.tensor.variable import Tensors, TensorVariable

#: A polynomial in e1, e2, ... with ``ek**2 == 0``: set of its variables (bits) -> coefficients.
Polynomials = dict[int, np.ndarray]


class ProdOthers(Op):
    """For each element j along axes, the product of ``x[i]`` over all ``i != j``.

    With further inputs h1, ..., hm of the shape of x it is the derivative of that product in these
    directions: the coefficient of ``e1 ... em`` in the product of ``x[i] + sum ek hk[i]``, that is
    the sum over different i1, ..., im (and not j) of ``h1[i1] ... hm[im]`` times the remaining x.
    Derivatives have the same form, with one more direction.  There is no division, so zeros are
    allowed.  The cost is linear in the number of elements.

    Parameters
    ----------
    axis
        axes over which products are taken, not negative
    """

    # ----- class and static shape
    __props__ = ("axis",)
    in_python = "products of polynomials, by NumPy"

    def __init__(self, axis: Sequence[int]) -> None:
        self.axis = tuple(axis)

    def make_node(self, x: TensorLike, *directions: TensorLike) -> Apply:
        given = [as_tensor_variable(v) for v in (x, *directions)]
        x = given[0]
        if any(v.type.ndim != x.type.ndim for v in given):
            raise TypeError(f"{self} needs inputs of one rank, not {[v.type for v in given]}.")
        if dtypes.is_discrete(x.type.dtype):
            raise TypeError(f"{self} is defined for floating numbers; {x} has type {x.type}.")
        alike = [cast(_repeated(x, h), x.type.dtype) for h in given[1:]]
        return typed_node(self, [x, *alike], x.type.dtype)

    def shape_rule(self, s: ShapeContext, x: Shape, *directions: Shape) -> list[Shape]:
        for h in directions:
            for axis, (n, m) in enumerate(zip(x, h)):
                s.equal(n, m, f"Lengths along axis {axis} do not agree")
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_shapes(node, inputs)
        shape, dtype = inputs[0].shape, inputs[0].dtype
        kept = [i for i in range(len(shape)) if i not in self.axis]
        order = [*kept, *self.axis]
        wide = np.result_type(dtype, np.float64)
        lengths = [shape[i] for i in order]
        flat = [*lengths[: len(kept)], int(np.prod(lengths[len(kept) :]))]
        parts: Polynomials = {0: inputs[0]}
        parts |= {1 << k: h for k, h in enumerate(inputs[1:])}
        parts = {s: v.transpose(order).reshape(flat).astype(wide) for s, v in parts.items()}
        with np.errstate(all="ignore"):
            found = products_of_others(parts).get((1 << len(inputs) - 1) - 1)
            out = np.zeros(flat) if found is None else found
            back = out.reshape(lengths).transpose(np.argsort(order))
            output_storage[0][0] = np.array(back, dtype)

    # ----- derivative
    def pullback(self, inputs: Tensors, outputs: Tensors, cotangents: Tensors) -> Tensors:
        """``sum of g[j] out[j]`` is symmetric in g and all directions."""
        (g,) = cotangents
        x, *directions = inputs
        g = conjugate(g)
        found = [self(x, *directions, g)]
        for k in range(len(directions)):
            found.append(self(x, *directions[:k], g, *directions[k + 1 :]))
        return [conjugate(v) for v in found]

    def pushforward(
        self, inputs: Tensors, outputs: Tensors, tangents: Sequence[Variable]
    ) -> Tensors:
        x, *directions = inputs
        terms = []
        for k, t in enumerate(tangents):
            if isinstance(t.type, DisconnectedType):
                continue
            others = [*directions, t] if k == 0 else [*directions[: k - 1], t, *directions[k:]]
            terms.append(self(x, *others))
        if not terms:
            return [zeros_of(outputs[0])]
        return [functions.add(*terms) if len(terms) > 1 else terms[0]]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        ndim = max(v.type.ndim for v in batched_inputs)
        batch = ndim - node.inputs[0].type.ndim
        x, *directions = (pad_left[0](v, ndim) for v in batched_inputs)
        for h in directions:
            x = _repeated(h, x)
        return type(self)([a + batch for a in self.axis]).make_node(x, *directions)

    def __str__(self) -> str:
        return f"ProdOthers{{axes={list(self.axis)}}}"


def _repeated(like: TensorVariable, v: TensorVariable) -> TensorVariable:
    """``v`` broadcast to ``like`` along axes known to have length 1 only in ``v``."""
    if all(b or not a for a, b in zip(v.type.broadcastable, like.type.broadcastable)):
        return v
    return functions.second(like, v)


def products_of_others(elements: Polynomials) -> Polynomials:
    """For each element along the last axis, the product of the others.

    Pairs of neighbours are multiplied, level by level, until one product is left.  On the way back
    each element gets the product of everything outside of its pair, times its neighbour.
    """
    levels = [elements]
    while levels[-1][0].shape[-1] > 1:
        left, right, rest = _neighbours(levels[-1])
        levels.append(_joined([_product(left, right), rest]))
    outside: Polynomials = {0: np.ones_like(levels[-1][0])}
    for level in reversed(levels[:-1]):
        left, right, _ = _neighbours(level)
        pairs = left[0].shape[-1]
        inner = {s: v[..., :pairs] for s, v in outside.items()}
        both = _interleaved(_product(inner, right), _product(inner, left))
        outside = _joined([both, {s: v[..., pairs:] for s, v in outside.items()}])
    return outside


def _neighbours(level: Polynomials) -> tuple[Polynomials, Polynomials, Polynomials]:
    """Elements at even positions, at odd positions, and the last one if it has no neighbour."""
    even = level[0].shape[-1] // 2 * 2
    places = (slice(0, even, 2), slice(1, even, 2), slice(even, None))
    left, right, rest = ({s: v[..., p] for s, v in level.items()} for p in places)
    return left, right, rest


def _product(a: Polynomials, b: Polynomials) -> Polynomials:
    out: Polynomials = {}
    for s, v in a.items():
        for t, w in b.items():
            if not s & t:
                out[s | t] = out[s | t] + v * w if s | t in out else v * w
    return out


def _interleaved(a: Polynomials, b: Polynomials) -> Polynomials:
    *shape, n = a[0].shape
    return {s: np.stack([v, b[s]], axis=-1).reshape(*shape, 2 * n) for s, v in a.items()}


def _joined(pieces: Sequence[Polynomials]) -> Polynomials:
    """Pieces concatenated along the last axis; missing coefficients are zero."""
    zeros = [np.zeros_like(p[0]) for p in pieces]
    keys = {s: None for p in pieces for s in p}
    return {s: np.concatenate([p.get(s, z) for p, z in zip(pieces, zeros)], axis=-1) for s in keys}
