"""Values that are known when the graph is built: constants, shapes, lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeVar

import numpy as np

from phintys.errors import NotScalarConstantError
from phintys.graph.op import Op
from phintys.graph.variable import Constant, Variable, late_bound
from phintys.scalar import dtypes
from phintys.scalar.conversion import converted
from phintys.scalar.type import ScalarConstant
from phintys.tensor.aliases import Length, ShapeLike, StaticShape, TensorLike
from phintys.tensor.convert import as_tensor_variable, constant
from phintys.tensor.elemwise import DimShuffle, Elemwise, cast, functions
from phintys.tensor.type import TensorType
from phintys.tensor.variable import TensorConstant, TensorVariable

__all__ = [
    "extract_constant",
    "get_scalar_constant_value",
    "get_underlying_scalar_constant_value",
    "get_vector_length",
    "infer_static_shape",
]

#: Limit of nodes that `constant_value` visits, to keep it cheap; beyond it values are unknown.
MAX_NODES = 64
T = TypeVar("T", bound=TensorLike)


@dataclass(frozen=True, slots=True)
class Entry:
    """The element of a vector at a position that is known and not negative."""

    vector: Variable
    position: int

    @property
    def type(self) -> TensorType:
        return self.vector.type


#: what one value is of: all elements of a variable, which are equal, or one element
ValueOf = Variable | Entry
#: where a value comes from, see `constant_origin`
ValueOrigin = np.ndarray | ValueOf | tuple[Callable[..., Any], Sequence[ValueOf]] | None


@singledispatch
def constant_origin(op: Op, out: Variable) -> ValueOrigin:
    """Where the value of the elements of ``out``, an output of ``op``, comes from if all are equal.

    Registered per op class.  Returns a NumPy value, the variable that the elements equal, one
    `Entry` of a vector, ``(function, variables)`` to compute the value from such variables or
    entries, or None if nothing is known.
    """
    return None


@singledispatch
def entry_origin(op: Op, out: Variable, position: int) -> ValueOrigin:
    """Where the value at a position of ``out``, a vector computed by ``op``, comes from.

    Registered per op class; returns what `constant_origin` does.
    """
    made = vector_entries(op, out)
    return out if made is None else made[position]


@constant_origin.register
def _(op: DimShuffle, out: Variable) -> Variable:
    _, x = out.owner_op_and_inputs
    return x


@constant_origin.register
def _(op: Elemwise, out: Variable) -> ValueOrigin:
    node = out.owner
    if node is None or len(node.outputs) != 1:
        return None
    if op.scalar_op.name == "second":
        return node.inputs[1]
    return op.scalar_op.compute, node.inputs


@entry_origin.register
def _(op: DimShuffle, out: Variable, position: int) -> ValueOf:
    _, x = out.owner_op_and_inputs
    return Entry(x, position) if x.type.ndim == 1 else x


@entry_origin.register
def _(op: Elemwise, out: Variable, position: int) -> ValueOrigin:
    _, *inputs = out.owner_op_and_inputs
    origin = constant_origin(op, out)
    if isinstance(origin, Variable):
        return _broadcast_entry(origin, position)
    if isinstance(origin, tuple):
        return origin[0], [_broadcast_entry(x, position) for x in inputs]
    return origin


def _broadcast_entry(x: Variable, position: int) -> Entry:
    """The element of ``x`` of which an element of a result of ``x`` and other vectors is made."""
    return Entry(x, 0 if x.type.shape == (1,) else position)


def constant_value(
    v: Variable, elemwise: bool = True, max_nodes: int = MAX_NODES
) -> np.ndarray | None:
    """The common value of all elements of ``v`` as a 0-d array, or None if it is not known.

    Looks through fills, casts, broadcasts, shapes of known length and (with ``elemwise``)
    elementwise functions of such values.
    """
    if v.owner is None and not isinstance(v, Constant):
        return None
    if isinstance(v, TensorConstant) and v.data.ndim == 0:
        return v.data.astype(v.type.dtype)
    found: dict[ValueOf, np.ndarray] = {}
    origins: dict[ValueOf, ValueOrigin] = {}  # some are new variables in each call
    stack: list[ValueOf] = [v]
    while stack:
        x = stack[-1]
        if x in found:
            stack.pop()
            continue
        if x not in origins:
            origins[x] = _origin_of(x, elemwise)
        origin = origins[x]
        if origin is None or max_nodes < 0:
            return None
        needed = _needed(origin)
        pending = [y for y in needed if y not in found]
        if pending:
            stack.extend(pending)
            max_nodes -= len(pending)
            continue
        value = _combine(origin, [found[y] for y in needed])
        found[x] = converted(np.asarray(value), x.type.dtype)
    return found[v]


def _origin_of(x: ValueOf, elemwise: bool) -> ValueOrigin:
    origin = _origin_of_entry(x) if isinstance(x, Entry) else _origin_of_all(x)
    return None if isinstance(origin, tuple) and not elemwise else origin


def _origin_of_all(x: Variable) -> ValueOrigin:
    if isinstance(x, TensorConstant):
        return x.data if x.data.ndim == 0 else x.unique_value
    if isinstance(x, Constant):
        return None if x.data is None or isinstance(x.data, slice) else np.asarray(x.data)
    return None if x.owner is None else constant_origin(x.owner.op, x)


def _origin_of_entry(x: Entry) -> ValueOrigin:
    vector = x.vector
    if isinstance(vector, TensorConstant):
        return vector.data[x.position]
    return None if vector.owner is None else entry_origin(vector.owner.op, vector, x.position)


def _needed(origin: ValueOrigin) -> Sequence[ValueOf]:
    if isinstance(origin, ValueOf):
        return [origin]
    return origin[1] if isinstance(origin, tuple) else ()


def _combine(origin: ValueOrigin, values: Sequence[np.ndarray]) -> Any:
    if isinstance(origin, ValueOf):
        return values[0]
    return origin[0](*values) if isinstance(origin, tuple) else origin


def known_length(v: Length) -> int | None:
    """The value of a length, given as a number or 0-d variable, as int; None if not known."""
    if isinstance(v, (int, np.integer)):
        return int(v)
    if isinstance(v, ScalarConstant) or (isinstance(v, TensorConstant) and v.data.ndim == 0):
        return int(v.data)
    if not isinstance(v, Variable):
        raise TypeError(f"A length is an integer or a 0-d variable, not {v!r}.")
    value = constant_value(v)
    return None if value is None else int(value)


@singledispatch
def static_lengths(op: Op, out: Variable) -> StaticShape:
    """The lengths of ``out``, an output of ``op``, that are known when the graph is built.

    Registered for op classes whose types do not say all of them.
    """
    return out.type.shape


def static_length(v: Variable, axis: int) -> int | None:
    """The length of an axis of a tensor, by its type or by what `static_lengths` knows."""
    known = v.type.shape[axis]
    return known if known is not None or v.owner is None else static_lengths(v.owner.op, v)[axis]


def known_constant(v: Variable) -> complex | None:
    """The number that all elements of ``v`` are known to be; None if they are not."""
    value = v.data if isinstance(v, TensorConstant) and v.data.ndim == 0 else constant_value(v)
    return None if value is None else value.item()


def literal(v: Variable) -> complex | None:
    """The number of a 0-d constant; None of another variable."""
    return v.data.item() if isinstance(v, TensorConstant) and v.data.ndim == 0 else None


late_bound["literal"] = literal
late_bound["known_length"] = known_length
late_bound["known_constant"] = known_constant


def get_underlying_scalar_constant_value(
    v: T,
    *,
    elemwise: bool = True,
    only_process_constants: bool = False,
    max_recur: int = 10,
    raise_not_constant: bool = True,
) -> np.ndarray | T:
    """The value that all elements of ``v`` have, as a 0-d array.

    Parameters
    ----------
    v : variable, array or number
    elemwise : compute elementwise functions of constants
    only_process_constants : look at constants only, not through ops
    max_recur : with 0, ops are not looked through; otherwise ignored, as the search is limited
    raise_not_constant : raise NotScalarConstantError where no value is known; else return ``v``

    >>> import phintys.tensor as pt
    >>> pt.get_underlying_scalar_constant_value(pt.cast(pt.full((2, 3), 4), "float32"))
    array(4., dtype=float32)
    """
    x = v if isinstance(v, Variable) else as_tensor_variable(v)
    if isinstance(x, Constant) or not (only_process_constants or max_recur == 0):
        value = constant_value(x, elemwise)
        if value is not None:
            return value
    if raise_not_constant:
        raise NotScalarConstantError(f"{x} is not known to have one constant value.")
    return v


def get_scalar_constant_value(
    v: T,
    elemwise: bool = True,
    only_process_constants: bool = False,
    max_recur: int = 10,
    raise_not_constant: bool = True,
) -> np.ndarray | T:
    """The value of a 0-d ``v`` if it is known; see `get_underlying_scalar_constant_value`."""
    given: Any = v
    ndim = getattr(v.type, "ndim", 0) if isinstance(v, Variable) else np.ndim(given)
    if ndim != 0:
        raise NotScalarConstantError(f"{v} has {ndim} dimensions: it is not a scalar.")
    return get_underlying_scalar_constant_value(
        v,
        elemwise=elemwise,
        only_process_constants=only_process_constants,
        max_recur=max_recur,
        raise_not_constant=raise_not_constant,
    )


def extract_constant(
    x: TensorLike, elemwise: bool = True, only_process_constants: bool = False
) -> np.ndarray | Variable:
    """The constant value of ``x`` if it is known, else ``x`` itself as a variable."""
    x = x if isinstance(x, Variable) else as_tensor_variable(x)
    return get_underlying_scalar_constant_value(
        x,
        elemwise=elemwise,
        only_process_constants=only_process_constants,
        raise_not_constant=False,
    )


# ------------------------------------------------------------------------ shapes as values


@singledispatch
def vector_entries(op: Op, out: Variable) -> Sequence[Any] | np.ndarray | None:
    """The entries of ``out``, a vector computed by ``op``, or None; see `numbers_or_variables`."""
    return None


def numbers_or_variables(vector: Variable) -> Sequence[Any] | np.ndarray:
    """The entries of an integer vector: an array if all are known, else a sequence of variables.

    ValueError if the length of the vector is not known.
    """
    if isinstance(vector, TensorConstant):
        return vector.data
    found = None if vector.owner is None else vector_entries(vector.owner.op, vector)
    if found is not None:
        return found
    return _read(vector)


def _read(vector: Variable) -> list[TensorVariable]:
    """The entries of an integer vector as they are read from it."""
    x = as_tensor_variable(vector)
    return [x[i] for i in range(get_vector_length(x))]


def entries(vector: Variable) -> list[TensorVariable]:
    """The entries of an integer vector, as variables; ValueError if its length is not known."""
    found = numbers_or_variables(vector)
    return [as_tensor_variable(n) for n in found] if isinstance(found, np.ndarray) else list(found)


def known_entries(vector: Variable) -> tuple[int | None, ...]:
    """The entries of an integer vector that are known."""
    found = numbers_or_variables(vector)
    return tuple(found.tolist() if isinstance(found, np.ndarray) else map(known_length, found))


late_bound["known_entries"] = known_entries


def get_vector_length(v: TensorLike) -> int:
    """The length of a vector, known when the graph is built; ValueError if it is not.

    >>> import phintys.tensor as pt
    >>> pt.get_vector_length(pt.dmatrix("x").shape)
    2
    """
    v = as_tensor_variable(v)
    if v.type.ndim != 1:
        raise TypeError(f"{v} has {v.type.ndim} dimensions: it is not a vector.")
    length = v.type.shape[0]
    if length is None:
        raise ValueError(f"The length of {v} is not known when the graph is built.")
    return length


def shape_entries(shape: ShapeLike, what: str = "shape") -> list[TensorVariable]:
    """A shape given in any form, as a list of 0-d integer variables.

    Accepts an int, a 0-d variable, a sequence of those, or an integer vector of known length.  The
    entries of a vector are read from it, whatever computes it: it may become an input of a graph.
    """
    if isinstance(shape, Variable) and shape.type.ndim == 1:
        found = entries(shape) if isinstance(shape, TensorConstant) else _read(shape)
    elif isinstance(shape, Sequence | np.ndarray) and not isinstance(shape, str):
        found = list(np.atleast_1d(shape)) if isinstance(shape, np.ndarray) else list(shape)
    else:
        found = [shape]
    return [_length(n, what) for n in found]


def _length(n: TensorLike, what: str) -> TensorVariable:
    n = as_tensor_variable(n)
    if n.type.ndim != 0 or n.type.dtype not in dtypes.INTEGER:
        raise TypeError(f"An entry of a {what} is a 0-d integer; {n} has type {n.type}.")
    return n


def infer_static_shape(shape: ShapeLike) -> tuple[list[TensorVariable], StaticShape]:
    """The entries of a symbolic shape as variables, and the static shape (None where unknown).

    >>> infer_static_shape((2, 3))[1]
    (2, 3)
    """
    found = shape_entries(shape)
    static = []
    for n in found:
        length = known_length(n)
        if length is not None and length < 0:
            raise ValueError(f"A shape has no negative lengths, got {length}.")
        static.append(length)
    return found, tuple(static)


def as_length(n: TensorLike) -> TensorVariable:
    """A length or position as an int64 variable, or constant if ``n`` is constant.

    A uint64 that exceeds int64 becomes the largest int64.  TypeError for floats.
    """
    n = as_tensor_variable(n)
    if not dtypes.is_discrete(n.type.dtype):
        raise TypeError(f"A length or position is an integer; {n} has type {n.type}.")
    is_wide = n.type.dtype == "uint64"
    if isinstance(n, TensorConstant):
        return constant(np.minimum(n.data, _MOST) if is_wide else n.data, dtype="int64")
    return cast(functions.minimum(n, constant(_MOST)) if is_wide else n, "int64")


_MOST = np.uint64(2**63 - 1)
