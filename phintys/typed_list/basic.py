"""Variables whose values are lists, and the ops on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from phintys.gradient.barriers import grad_undefined
from phintys.graph.op import Op, Storage
from phintys.graph.type import Type, disconnected_type
from phintys.graph.variable import Apply, Constant, Variable
from phintys.scalar import dtypes
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.type import TensorType
from phintys.tensor.type_other import SliceType, as_symbolic
from phintys.tensor.variable import TensorVariable
from phintys.typed_list.type import TypedListType


class _ListOperators:
    """The methods of variables and constants whose values are lists."""

    type: TypedListType

    @property
    def ttype(self) -> Type[Any]:
        """The type of the elements."""
        return self.type.ttype

    def __len__(self) -> NoReturn:
        raise TypeError("A list has its length when a function runs: write x.length().")

    def __getitem__(self, index: Any) -> Any:
        """An element, or a list of some of them for a slice."""
        return getitem(self, index)

    def append(self, x: Any) -> Any:
        """The list with ``x`` at the end."""
        return append(self, x)

    def extend(self, x: Any) -> Any:
        """The list, and then the elements of the list ``x``."""
        return extend(self, x)

    def insert(self, index: Any, x: Any) -> Any:
        """The list with ``x`` before position ``index``."""
        return insert(self, index, x)

    def remove(self, x: Any) -> Any:
        """The list without its first element that equals ``x``."""
        return remove(self, x)

    def reverse(self) -> Any:
        """The list in reversed order."""
        return reverse(self)

    def count(self, x: Any) -> TensorVariable:
        """The number of elements that equal ``x``."""
        return count(self, x)

    def ind(self, x: Any) -> TensorVariable:
        """The position of the first element that equals ``x``."""
        return index_(self, x)

    def length(self) -> TensorVariable:
        """The number of elements."""
        return length(self)


class TypedListVariable(_ListOperators, Variable):  # type: ignore[type-arg]
    """A variable whose values are lists."""

    __slots__ = ()


class TypedListConstant(_ListOperators, Constant):  # type: ignore[type-arg]
    """A constant list."""

    __slots__ = ()

    def signature(self) -> Any:
        elements = [self.type.ttype.make_constant(x) for x in self.data]
        return (TypedListConstant, self.type, tuple([v.signature() for v in elements]))


TypedListType.variable_type = TypedListVariable
TypedListType.constant_type = TypedListConstant


# --------------------------------------------------------------------------------- ops


class _ListOp(Op):
    """Base class: the first input is a list, which `perform` gets as a new list."""

    __props__ = ()
    not_differentiable = "lists have no derivatives"
    in_python = "a list is an object of Python"

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [() if isinstance(v.type, TensorType) else None for v in node.outputs]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        values, *others = inputs
        output_storage[0][0] = self.result(node, values, *others)

    def result(self, node: Apply, values: list[Any], *others: Any) -> Any:
        """The result for a list, which must not be changed."""
        raise NotImplementedError

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [grad_undefined(self, k, x) for k, x in enumerate(inputs)]

    def __str__(self) -> str:
        return type(self).__name__


class _Changed(_ListOp):
    """Base class of ops whose result is a list with some elements of their first input.

    With ``inplace``, they change that list.
    """

    __props__ = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = bool(inplace)
        aliases = {0: [0]}
        self.destroy_map, self.view_map = (aliases, {}) if inplace else ({}, aliases)

    def make_node(self, x: Any, *others: Any) -> Apply:
        x = _as_list(x)
        return Apply(self, [x, *self.others(x, *others)], [x.type.make_variable()])

    def others(self, x: Variable, *others: Any) -> list[Variable]:
        """The other inputs as variables."""
        return [_element(x, v) for v in others]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        values, *others = inputs
        values = values if self.inplace else list(values)
        self.change(node.inputs[0].type.ttype, values, *others)
        output_storage[0][0] = values

    def change(self, ttype: Type[Any], values: list[Any], *others: Any) -> None:
        """Change a list of elements of a type."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{type(self).__name__}{'{inplace}' if self.inplace else ''}"


class Append(_Changed):
    """The list with an element at the end."""

    def change(self, ttype: Type[Any], values: list[Any], *others: Any) -> None:
        values.append(ttype.copy_value(others[0]))


class Extend(_Changed):
    """The elements of two lists of one type."""

    def others(self, x: Variable, *others: Any) -> list[Variable]:
        return [x.type.filter_variable(v) for v in others]

    def change(self, ttype: Type[Any], values: list[Any], *others: Any) -> None:
        values.extend([ttype.copy_value(v) for v in others[0]])


class Insert(_Changed):
    """The list with an element before a position; positions are those of `list.insert`."""

    def others(self, x: Variable, *others: Any) -> list[Variable]:
        index, element = others
        return [_position(index), _element(x, element)]

    def change(self, ttype: Type[Any], values: list[Any], *others: Any) -> None:
        values.insert(int(others[0]), ttype.copy_value(others[1]))


class Remove(_Changed):
    """The list without its first element that equals the second input; if none does, the list."""

    def change(self, ttype: Type[Any], values: list[Any], *others: Any) -> None:
        for k, value in enumerate(values):
            if ttype.values_eq(value, others[0]):
                del values[k]
                return


class Reverse(_Changed):
    """The list in reversed order."""

    def change(self, ttype: Type[Any], values: list[Any], *others: Any) -> None:
        values.reverse()


class GetItem(_ListOp):
    """An element of a list at a position, or the list of those that a slice selects.

    IndexError if there is no element at the position.
    """

    def make_node(self, x: Any, index: Any) -> Apply:
        x, index = _as_list(x), as_symbolic(index)
        if isinstance(index.type, SliceType):
            return Apply(self, [x, index], [x.type.make_variable()])
        return Apply(self, [x, _position(index)], [x.type.ttype.make_variable()])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]

    def result(self, node: Apply, values: list[Any], *others: Any) -> Any:
        (index,) = others
        if isinstance(index, slice):
            return [node.inputs[0].type.ttype.copy_value(x) for x in values[index]]
        return node.inputs[0].type.ttype.copy_value(values[int(index)])


class _Number(_ListOp):
    """Base class of ops whose result is an int64."""

    def make_node(self, x: Any, *others: Any) -> Apply:
        x = _as_list(x)
        inputs = [x, *(_element(x, v) for v in others)]
        return Apply(self, inputs, [TensorType("int64", ()).make_variable()])

    def result(self, node: Apply, values: list[Any], *others: Any) -> Any:
        return np.array(self.number(node.inputs[0].type.ttype, values, *others), "int64")

    def number(self, ttype: Type[Any], values: list[Any], *others: Any) -> int:
        """The result for a list of elements of a type."""
        raise NotImplementedError

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [disconnected_type() for _ in inputs]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] for _ in node.inputs]


class Length(_Number):
    """The number of elements."""

    def number(self, ttype: Type[Any], values: list[Any], *others: Any) -> int:
        return len(values)


class Count(_Number):
    """The number of elements that equal the second input."""

    def number(self, ttype: Type[Any], values: list[Any], *others: Any) -> int:
        return sum(ttype.values_eq(x, others[0]) for x in values)


class Index(_Number):
    """The position of the first element that equals the second input; ValueError if none does."""

    def number(self, ttype: Type[Any], values: list[Any], *others: Any) -> int:
        for k, value in enumerate(values):
            if ttype.values_eq(value, others[0]):
                return k
        raise ValueError("The element is not in the list.")


class MakeList(_ListOp):
    """The list of the inputs, which have one type.

    ``MakeList()(variables)`` takes a list of at least one variable or value.
    """

    def make_node(self, *inputs: Any) -> Apply:
        given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
        if not given:
            raise ValueError("A list that is made of its elements needs at least one.")
        variables = [as_symbolic(x) for x in given]
        ttype = variables[0].type
        if any(v.type != ttype for v in variables):
            raise TypeError(
                "The elements of a list must have one type, not "
                f"{', '.join(dict.fromkeys(str(v.type) for v in variables))}."
            )
        return Apply(self, variables, [TypedListType(ttype).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        output_storage[0][0] = [v.type.copy_value(x) for v, x in zip(node.inputs, inputs)]


def _as_list(x: Any) -> Any:
    """A variable whose values are lists; TypeError for another one."""
    if not isinstance(x, Variable) or not isinstance(x.type, TypedListType):
        raise TypeError(f"Expected a variable whose values are typed lists, not {x!r}.")
    return x


def _element(x: Any, v: Any) -> Variable:
    """A variable or value as an element of the list ``x``; TypeError if it has another type."""
    return x.type.ttype.filter_variable(v)


def _position(x: Any) -> TensorVariable:
    """A position in a list: a 0-d integer; TypeError for others."""
    x = constant(x, dtype="int64") if isinstance(x, int) else as_tensor_variable(x)
    if x.type.ndim != 0 or x.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"A position in a list must be an integer; {x} has type {x.type}.")
    return x


append, extend, insert, remove, reverse = Append(), Extend(), Insert(), Remove(), Reverse()
getitem, length, count, index_, make_list = GetItem(), Length(), Count(), Index(), MakeList()
