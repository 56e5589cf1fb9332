"""Numba's type of the arrays that calls of machine code return.

They are arrays like others, but Numba compiles ``array[...] = result`` and ``array[()] = result``
in a hundredth of the time: of the two seconds that it takes for others, most go into the message
of an error.  Programs that call compiled functions from C code copy each result in this way.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

from numba.core import cgutils, types
from numba.core.datamodel.models import ArrayModel
from numba.core.typing.templates import Signature
from numba.extending import lower_builtin, lower_cast, register_model
from numba.np.arrayobj import make_array, setitem_array

# Classes of Numba and llvmlite without annotations: pyright infers wrong types of their methods.
#: a ``BaseContext`` of Numba: how a target represents Numba's types, and code for operations
Context: TypeAlias = Any
#: an ``IRBuilder`` of llvmlite, which emits instructions
Builder: TypeAlias = Any
#: a ``Value`` of llvmlite: what an instruction has computed, or a constant
Value: TypeAlias = Any
#: a ``StructProxy`` of Numba: the fields of a value, such as those of an array
Struct: TypeAlias = Any


class Result(types.Array):
    """An array that a call has made: C-contiguous memory that nothing else refers to yet."""

    def __init__(self, dtype: types.Type, rank: int) -> None:
        super().__init__(dtype, rank, "C", name=f"result({dtype}, {rank}d)")


register_model(Result)(ArrayModel)


@lower_cast(Result, types.Array)
def _as_array(
    context: Context, builder: Builder, given: Result, wanted: types.Array, value: Value
) -> Value:
    """The same array as one of Numba's other type, where several may stand."""
    return value


@lower_builtin(operator.setitem, types.Array, types.EllipsisType, Result)
@lower_builtin(operator.setitem, types.Array, types.BaseTuple, Result)
def _set_all(
    context: Context, builder: Builder, signature: Signature, args: Sequence[Value]
) -> Value:
    """Emit an assignment; to the whole of an array of the same dtype and rank it is a loop.

    A C-contiguous array that shares memory with the result has the same elements in the same
    places.
    """
    target_type, index, result_type = signature.args
    is_whole = isinstance(index, types.EllipsisType) or len(index) == 0 == target_type.ndim
    wanted = result_type.dtype, result_type.ndim, "C"
    if not is_whole or (target_type.dtype, target_type.ndim, target_type.layout) != wanted:
        return setitem_array(context, builder, signature, args)
    target = make_array(target_type)(context, builder, args[0])
    result = make_array(result_type)(context, builder, args[2])
    lengths = cgutils.unpack_tuple(builder, target.shape, target_type.ndim)
    steps = [
        _step(context, builder, length, given)
        for length, given in zip(lengths, cgutils.unpack_tuple(builder, result.shape))
    ]
    with cgutils.loop_nest(builder, lengths, lengths[0].type if lengths else None) as places:
        to = _element(context, builder, target_type, target, places)
        taken = [builder.mul(place, step) for place, step in zip(places, steps)]
        at = _element(context, builder, result_type, result, taken)
        builder.store(builder.load(at), to)
    return context.get_dummy_value()


def _step(context: Context, builder: Builder, length: Value, given: Value) -> Value:
    """Emit the step along an axis of the result: 0 if it is repeated.

    Emit a ValueError for the case that the result does not fit.
    """
    fits = builder.icmp_signed("==", given, length)
    is_one = builder.icmp_signed("==", given, given.type(1))
    with builder.if_then(builder.not_(builder.or_(fits, is_one)), likely=False):
        message = "cannot assign a result to an array of another shape"
        context.call_conv.return_user_exc(builder, ValueError, (message,))
    return builder.zext(builder.not_(is_one), length.type)


def _element(
    context: Context,
    builder: Builder,
    type_: types.Array,
    array: Struct,
    places: Sequence[Value],
) -> Value:
    """Emit the address of an element."""
    shape, strides = (cgutils.unpack_tuple(builder, v) for v in (array.shape, array.strides))
    return cgutils.get_item_pointer2(
        context, builder, array.data, shape, strides, type_.layout, places
    )
