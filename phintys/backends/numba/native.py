"""Numba functions that call the machine code of a function by its address.

Numba compiles only the call: the arguments become words, the results arrays whose memory the
machine code has allocated.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numba.np import numpy_support
from numba.np.arrayobj import array_copy, make_array, populate_array

from phintys.backends.numba.dispatch import MISSING_DTYPES, jit
from phintys.backends.numba.results import Builder, Context, Result, Value
from phintys.backends.protocol import BareFunction
from phintys.errors import MissingAttributeError

_WORD, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
#: The place of ``manage_memory`` in the table of Numba's C functions (``nrt_external.h``).
_MANAGE_MEMORY = 2

#: The functions, by the numbers that stand for them in Numba's code.  Numbers are random: one from
#: another process, in a pickle, stands for nothing.
_functions: WeakValueDictionary[int, BareFunction] = WeakValueDictionary()


class CallError(Exception):
    """Stands in Numba's code for the exception of a failed call: making one raises that.

    Numba makes it when the exception leaves the code that Numba has compiled.
    """

    def __init__(self, number: int, status: int) -> None:
        function = _functions.get(number)
        if function is not None:
            raise function.error(status)
        super().__init__("A compiled function that does not exist any more has failed.")


def numba_function(function: BareFunction) -> Any:
    """A Numba function of the inputs of a compiled function that returns a tuple of its results.

    Arguments are arrays of the inputs' dtypes and ranks, in any memory layout, or numbers for
    inputs of rank 0; Numba raises a TypingError for others.  Numbers for floats are rounded, an
    integer that does not fit is a TypeError.  Results are new arrays.  Exceptions are those of the
    compiled function.

    The call needs no GIL, and may run in several threads at once.  The machine code lives as long
    as a Numba function, or code compiled by Numba, that calls it.

    Raises MissingAttributeError if Numba has no arrays of a dtype.
    """
    for dtype, *_ in (*function.inputs, *function.outputs):
        if dtype in MISSING_DTYPES:
            raise MissingAttributeError(f"Numba has no arrays of dtype {dtype}.")
    number = secrets.randbits(62)
    _functions[number] = function

    def numba_function(*args: Any) -> Any:
        return _call(number, args)

    made = jit(numba_function)
    made.called = function
    return made


def _signature_and_code(
    context: object, number: types.Type, arguments: Sequence[types.Type]
) -> tuple[Signature, Callable[..., Value]] | None:
    """What Numba needs of `_call`: the types, and the function that generates the code.

    Numba keeps both for ever, so they do not refer to the function.
    """
    if not isinstance(number, types.Literal):  # Numba tries that too
        return None
    value = number.literal_value
    function = _functions.get(value)
    if function is None:
        raise TypingError(
            "This Numba function was made in another process: pickle the compiled function f "
            "instead, and use its f.vm.jit_fn."
        )
    _check(function, tuple(arguments))
    outputs = [Result(_number_type(dtype), rank) for dtype, rank in function.outputs]
    signature = types.Tuple(outputs)(number, arguments)
    return signature, lambda *parts: _Caller(_functions[value], *parts).results()


#: ``_call(number, arguments)``: the results of a function.  One for all: Numba keeps it for ever.
_call: Any = intrinsic(prefer_literal=True)(_signature_and_code)


def _number_type(dtype: str) -> types.Type:
    """Numba's type of the elements of an array."""
    return numpy_support.from_dtype(np.dtype(dtype))


def _check(function: BareFunction, given: tuple[types.Type, ...]) -> None:
    """TypingError if arguments of these types do not fit."""
    if len(given) != len(function.inputs):
        names = ", ".join(name for *_, name in function.inputs)
        raise TypingError(f"{len(given)} argument(s) for {len(function.inputs)} input(s): {names}.")
    for type_, (dtype, rank, name) in zip(given, function.inputs):
        if not _fits(type_, dtype, rank):
            wanted = f"an array of dtype {dtype} and rank {rank}"
            raise TypingError(f"{name} must be {wanted}, not {type_}.")


def _fits(type_: types.Type, dtype: str, rank: int) -> bool:
    """Whether Numba's type of an argument is one of an input."""
    if isinstance(type_, types.Array):
        return (type_.dtype, type_.ndim) == (_number_type(dtype), rank)
    if rank or not isinstance(type_, (types.Number, types.Boolean)):
        return False
    if isinstance(type_, types.Integer) and isinstance(_number_type(dtype), types.Integer):
        return True  # its value is checked at the call
    return bool(np.can_cast(numpy_support.as_dtype(type_), dtype, "same_kind"))


class _Caller:
    """The code of one call, as the function of an intrinsic that generates code gets it."""

    def __init__(
        self,
        function: BareFunction,
        context: Context,
        builder: Builder,
        signature: Signature,
        args: tuple[Value, Value],
    ) -> None:
        self.function, self.context, self.builder = function, context, builder
        self.number, self.types = signature.args[0].literal_value, tuple(signature.args[1])
        self.answer = signature.return_type
        self.given = cgutils.unpack_tuple(builder, args[1])

    def results(self) -> Value:
        """Emit the call; the tuple of results."""
        builder, context = self.builder, self.context
        routine = self.function.routine
        # code that contains the address keeps what is there, and so does code linked with it
        context.active_code_library.called = self.function
        self.check_integers()
        words, copies = self.arguments()
        results = self.memory(sum(2 + output.ndim for output in self.answer.types))
        kind = ir.FunctionType(_WORD, [_BYTES, _WORD.as_pointer(), _WORD.as_pointer()])
        code = self.address(routine.address, kind.as_pointer())
        status = builder.call(code, [self.address(routine.block, _BYTES), words, results])
        for type_, copy in copies:
            context.nrt.decref(builder, type_, copy)
        self.raise_unless_done(status)
        return context.make_tuple(builder, self.answer, self.arrays(results))

    def address(self, value: int, kind: ir.Type) -> Value:
        """A constant address; Numba does not keep code with one on disk."""
        found = self.context.add_dynamic_addr(self.builder, value, info="phintys")
        return self.builder.bitcast(found, kind)

    def memory(self, count: int) -> Value:
        """Emit words on the stack."""
        return cgutils.alloca_once(self.builder, _WORD, size=max(1, count))

    def arguments(self) -> tuple[Value, list[tuple[types.Array, Value]]]:
        """Emit the words of the arguments; the types and values of arrays copied for the call."""
        builder, copies = self.builder, []
        words = self.memory(sum(1 + rank for _, rank, _ in self.function.inputs))
        place = itertools.count()

        def put(value: Value) -> None:
            builder.store(value, builder.gep(words, [_WORD(next(place))]))

        for type_, value, (dtype, *_) in zip(self.types, self.given, self.function.inputs):
            if not isinstance(type_, types.Array):
                put(builder.ptrtoint(self.stored(type_, value, dtype), _WORD))
                continue
            if type_.layout != "C" or not type_.aligned:
                packed = types.Array(type_.dtype, type_.ndim, "C")
                value = array_copy(self.context, builder, packed(type_), (value,))
                copies.append((packed, value))
                type_ = packed
            array = make_array(type_)(self.context, builder, value)
            put(builder.ptrtoint(array.data, _WORD))
            for length in cgutils.unpack_tuple(builder, array.shape, type_.ndim):
                put(length)
        return words, copies

    def check_integers(self) -> None:
        """Emit a TypeError for the case that an integer is not one of the dtype of its input."""
        for type_, value, (dtype, _, name) in zip(self.types, self.given, self.function.inputs):
            wanted = _number_type(dtype)
            if not isinstance(type_, types.Integer) or not isinstance(wanted, types.Integer):
                continue
            least, most = wanted.minval, wanted.maxval
            outside = self.is_outside(type_, value, least, most)
            message = f"{name} must be an integer of dtype {dtype}, from {least} to {most}."
            with self.builder.if_then(outside, likely=False):
                self.context.call_conv.return_user_exc(self.builder, TypeError, (message,))

    def is_outside(self, type_: types.Integer, value: Value, least: int, most: int) -> Value:
        """Emit whether an integer is less than the least number, or greater than the most."""
        builder = self.builder
        compare = builder.icmp_signed if type_.minval < 0 else builder.icmp_unsigned
        is_less = compare("<", value, value.type(max(type_.minval, least)))
        is_greater = compare(">", value, value.type(min(type_.maxval, most)))
        return builder.or_(is_less, is_greater)

    def stored(self, type_: types.Type, value: Value, dtype: str) -> Value:
        """Emit the store of a number, converted to a dtype; its address."""
        wanted = _number_type(dtype)
        value = self.context.cast(self.builder, value, type_, wanted)
        data = self.context.get_value_as_data(self.builder, wanted, value)
        return cgutils.alloca_once_value(self.builder, data)

    def raise_unless_done(self, status: Value) -> None:
        """Emit the exception of a call whose status is not 0."""
        builder, convention = self.builder, self.context.call_conv
        with builder.if_then(builder.icmp_signed("<", status, status.type(0)), likely=False):
            convention.return_exc(builder)
        for failed in (1, 2, 3):
            is_it = builder.icmp_signed("==", status, status.type(failed))
            with builder.if_then(is_it, likely=False):
                convention.return_user_exc(builder, CallError, (self.number, failed))

    def arrays(self, results: Value) -> list[Value]:
        """Emit the arrays of the results that words describe."""
        builder, place = self.builder, itertools.count()

        def take() -> Value:
            return builder.load(builder.gep(results, [_WORD(next(place))]))

        found = []
        for type_ in self.answer.types:
            memory, data = take(), take()
            shape = [take() for _ in range(type_.ndim)]
            found.append(self.array(type_, memory, data, shape))
        return found

    def array(self, type_: types.Array, memory: Value, data: Value, shape: list[Value]) -> Value:
        """Emit an array of memory that it frees."""
        builder, context = self.builder, self.context
        made = make_array(type_)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(type_.dtype))
        strides = [_WORD(size)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        populate_array(
            made,
            data=builder.inttoptr(data, made.data.type),
            shape=shape,
            strides=strides[: len(shape)],
            itemsize=_WORD(size),
            meminfo=self.owner(memory),
        )
        return made._getvalue()

    def owner(self, memory: Value) -> Value:
        """Emit the object of Numba that frees memory when no array refers to it."""
        builder = self.builder
        api = builder.bitcast(self.context.nrt.get_nrt_api(builder), _BYTES.as_pointer())
        manage = builder.load(builder.gep(api, [_WORD(_MANAGE_MEMORY)]))
        kind = ir.FunctionType(_BYTES, [_BYTES, _BYTES]).as_pointer()
        free = self.address(self.function.routine.free, _BYTES)
        memory = builder.inttoptr(memory, _BYTES)
        return builder.call(builder.bitcast(manage, kind), [memory, free])
