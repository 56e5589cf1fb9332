"""Types of optional arguments and slices: `NoneConst`, `SliceType`, `make_slice`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from phintys.graph.op import Op, Storage
from phintys.graph.shapes import LARGEST
from phintys.graph.type import Type
from phintys.graph.variable import Apply, Constant, Variable
from phintys.scalar import dtypes
from phintys.tensor.aliases import TensorLike
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.type import TensorType


class NoneTypeT(Type[None]):
    """The type whose only value is None."""

    __props__ = ()

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> None:
        if data is not None:
            raise TypeError(f"Expected None, not {data!r}.")

    def __str__(self) -> str:
        return "NoneTypeT"


none_type_t = NoneTypeT()


class SliceType(Type[slice]):
    """The type of Python slices."""

    __props__ = ()

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> slice:
        if not isinstance(data, slice):
            raise TypeError(f"Expected a slice, not {data!r}.")
        return data

    def __str__(self) -> str:
        return "slice"


slicetype = SliceType()


class SliceConstant(Constant):
    """A constant slice of integers and None."""

    __slots__ = ()

    def signature(self) -> Any:
        return (SliceConstant, self.data.start, self.data.stop, self.data.step)


SliceType.constant_type = SliceConstant


class MakeSlice(Op):
    """``slice(start, stop, step)`` of 0-d integer tensors and None."""

    __props__ = ()
    not_differentiable = "slices consist of integers"
    in_python = "a slice is an object of Python"

    def make_node(
        self,
        slc: slice | TensorLike | None,
        stop: TensorLike | None = None,
        step: TensorLike | None = None,
    ) -> Apply:
        parts = [slc.start, slc.stop, slc.step] if isinstance(slc, slice) else [slc, stop, step]
        return Apply(self, [as_int_none_variable(p) for p in parts], [slicetype()])

    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray | None], output_storage: Storage
    ) -> None:
        output_storage[0][0] = slice(*(None if i is None else int(i) for i in inputs))

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] for _ in node.inputs]


make_slice = MakeSlice()


class SliceParts(Op):
    """The start, stop and step of a slice, as int64 numbers.

    Numbers beyond the ends of every axis stand for a start and a stop that are None, or beyond
    int64.  TypeError for parts that are no integers.
    """

    __props__ = ()
    not_differentiable = "slices consist of integers"
    in_python = "a slice is an object of Python"

    def make_node(self, slc: Variable) -> Apply:
        return Apply(self, [slc], [TensorType("int64", ())() for _ in range(3)])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        start, stop, step = inputs[0].start, inputs[0].stop, inputs[0].step
        step = 1 if step is None else step
        ends = (0, LARGEST) if step > 0 else (LARGEST, -LARGEST)
        for cell, part, end in zip(output_storage, (start, stop, step), (*ends, 1)):
            number = end if part is None else operator.index(part)
            cell[0] = np.array(min(max(number, -LARGEST), LARGEST), "int64")

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * 3]


_slice_parts = SliceParts()


def slice_of(v: Any) -> slice:
    """A slice variable as a Python slice of numbers, 0-d integer variables and None."""
    if isinstance(v, Constant):
        return v.data
    if v.owner is not None and isinstance(v.owner.op, MakeSlice):
        return slice(*v.owner.inputs)
    return slice(*_slice_parts(v, return_list=True))


#: None and the full slice as constant variables, for optional inputs of ops.
NoneConst = Constant(none_type_t, None, name="NoneConst")
NoneSliceConst = SliceConstant(slicetype, slice(None), name="NoneSliceConst")


def as_int_none_variable(x: TensorLike | None) -> Variable:
    """``x`` as an integer tensor variable, or `NoneConst` for None; TypeError for other dtypes."""
    if x is None or (isinstance(x, Variable) and isinstance(x.type, NoneTypeT)):
        return NoneConst
    x = as_tensor_variable(x, ndim=0)
    if x.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"An index must be an integer or None; {x} has dtype {x.type.dtype}.")
    return x


# ------------------------------------------------------------------------- any value


@singledispatch
def as_symbolic(x: Any, name: str | None = None, **kwargs: Any) -> Any:
    """Any value as a variable: variables stay; None, slices, numbers and arrays become constants.

    Functions can be registered for further classes of values.  TypeError if there is no variable
    for the value.

    >>> str(as_symbolic(None)), as_symbolic(2).type, str(as_symbolic(slice(1, 2)).type)
    ('NoneConst{None}', TensorType(int8, shape=()), 'slice')
    """
    return as_tensor_variable(x, name=name, **kwargs)


@as_symbolic.register(Variable)
def _(x: Variable, name: str | None = None, **kwargs: Any) -> Variable:
    return x


@as_symbolic.register(type(None))
def as_symbolic_None(x: None, **kwargs: Any) -> Variable:
    """`NoneConst`."""
    return NoneConst


@as_symbolic.register(slice)
def as_symbolic_slice(x: slice, **kwargs: Any) -> Variable:
    """A slice of integers and None as a constant, else by `make_slice`."""
    parts = (x.start, x.stop, x.step)
    if any(isinstance(part, Variable) for part in parts):
        return make_slice(x)
    return SliceConstant(slicetype, x)
