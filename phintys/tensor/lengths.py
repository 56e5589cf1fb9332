"""Checks of integers that become the lengths of an array, even if it is never stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phintys.errors import RaggedError
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext, check_lengths
from phintys.graph.variable import Apply, Constant, Variable
from phintys.tensor.aliases import Arrays, Length
from phintys.tensor.elemwise import Elemwise
from phintys.tensor.shape import Shape_i
from phintys.tensor.static import (
    as_length,
    infer_static_shape,
    known_constant,
    known_length,
)
from phintys.tensor.type import typed_node
from phintys.tensor.variable import TensorVariable


class Lengths(Op):
    """Check 0-d integers that are the lengths of one array, and return them as int64.

    ShapeError if one is negative, or if their product, without lengths of 0, is greater than
    ``LARGEST`` (``graph/shapes.py``).
    """

    # ----- class and static shape
    __props__ = ()
    not_differentiable = "its inputs and results are integers"

    def make_node(self, *lengths: Length) -> Apply:
        found = [as_length(n) for n in infer_static_shape(lengths)[0]]
        return typed_node(self, found, *["int64"] * len(found))

    def shape_rule(self, s: ShapeContext, *lengths: Shape) -> list[Shape]:
        return list(lengths)

    # ----- perform
    def perform(self, node: Apply, inputs: Arrays, output_storage: Storage) -> None:
        check_lengths([int(n) for n in inputs])
        for cell, n in zip(output_storage, inputs):
            cell[0] = np.array(n)

    # ----- derivative
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * len(node.outputs) for _ in node.inputs]

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: TensorVariable) -> Apply:
        if any(n.type.ndim for n in batched_inputs):
            raise RaggedError("The lengths of an array cannot differ within a batch.")
        return self.make_node(*batched_inputs)

    # ----- lowering
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> list[V]:
        return [b.scalar(n) for n in b.lengths(inputs)]


_lengths = Lengths()


def is_plain_length(n: Variable | int) -> bool:
    """Whether a value is the length of an array, or a constant that is not negative."""
    known = known_length(n)
    if known is not None:
        return known >= 0
    node = n.owner if isinstance(n, Variable) else None
    return node is not None and isinstance(node.op, Shape_i)


def checked_lengths(lengths: Sequence[Variable | int]) -> tuple[TensorVariable, ...]:
    """0-d integers as the lengths of an array: int64 variables, checked by `Lengths`.

    There is no check if all are lengths of other arrays or non-negative constants.
    """
    if all(map(is_plain_length, lengths)):
        return tuple(as_length(n) for n in lengths)
    return jointly_checked(lengths)


def jointly_checked(lengths: Sequence[Length]) -> tuple[TensorVariable, ...]:
    """0-d integers as the lengths of an array: int64 variables, always checked by `Lengths`."""
    found = _lengths(*lengths, return_list=True)
    return tuple(
        as_length(known) if (known := known_length(n)) is not None else checked
        for n, checked in zip(lengths, found)
    )


def are_of_one_array(lengths: Sequence[Variable]) -> bool:
    """Whether lengths are those of different axes of one array, so that their product fits."""
    asked = [n for n in lengths if known_length(n) != 1]
    if len(asked) <= 1:
        return True
    nodes = [n.owner for n in asked if n.owner is not None and isinstance(n.owner.op, Shape_i)]
    axes = {node.op.i for node in nodes}
    return len(axes) == len(asked) and len({node.inputs[0] for node in nodes}) == 1


def is_length(v: Variable) -> bool:
    """Whether a value is a length, or a sum or product of lengths, and hence not negative.

    Not if constants are so large that the product may overflow.
    """
    stack, factor = [v], 1
    for _ in range(16):
        if not stack:
            return True
        w = stack.pop()
        if isinstance(w, Constant):
            known = known_constant(w)
            if known is None or isinstance(known, complex) or not known >= 0:
                return False
            factor *= max(known, 1)
            if factor > _LARGEST_FACTOR:
                return False
            continue
        node = w.owner
        if node is None:
            return False
        if isinstance(node.op, Shape_i):
            continue
        if not isinstance(node.op, Elemwise) or node.op.scalar_op.name not in _NOT_NEGATIVE:
            return False
        stack.extend(node.inputs)
    return False


#: the product of a larger constant and a length may overflow
_LARGEST_FACTOR = 2**22
#: scalar ops whose results are not negative if their inputs are not
_NOT_NEGATIVE = frozenset(("add", "mul", "maximum", "minimum"))
