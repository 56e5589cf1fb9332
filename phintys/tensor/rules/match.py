"""Predicates and helpers of rules: numbers, elementwise functions, negations, types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phintys.graph.variable import Apply, Constant, Variable
from phintys.memo import Memo
from phintys.rewriting.unify import OpPattern
from phintys.scalar import dtypes
from phintys.tensor.convert import constant, literal_type
from phintys.tensor.elemwise import Elemwise, cast, functions
from phintys.tensor.elemwise import scalar_op_name as scalar_op_name
from phintys.tensor.variable import TensorConstant

Producers = Sequence[Any]
Where = Callable[[Producers], bool]


def some(*what: Any) -> Where:
    """Condition of a rule: some input is computed by one of ``what``.

    ``what`` are names of elementwise functions, op classes, or `Constant`.
    """
    return lambda producers: any(_is_one_of(p, what) for p in producers)


def at(i: int, *what: Any) -> Where:
    """Condition of a rule: input ``i`` is computed by one of ``what`` (see `some`)."""
    return lambda producers: i < len(producers) and _is_one_of(producers[i], what)


def every_constant(producers: Producers) -> bool:
    """Condition of a rule: there is an input, and all inputs are constants."""
    return bool(producers) and all(p is Constant for p in producers)


def _is_one_of(producer: Any, what: Sequence[Any]) -> bool:
    if producer is Constant or producer is None:
        return producer in what
    name = producer.scalar_op.name if type(producer) is Elemwise else None
    return any(w == name if isinstance(w, str) else isinstance(producer, w) for w in what)


def number(v: Variable) -> Any:
    """The Python number that every entry of a constant equals, or None."""
    if not isinstance(v, TensorConstant):
        return None
    found = v.__dict__.get("_cached_number", v)
    if found is v:
        value = v.data if v.data.size == 1 else v.unique_value
        found = v.__dict__["_cached_number"] = None if value is None else value.item()
    return found


def applied(v: Variable, name: str) -> Apply | None:
    """The node that computes ``v`` if it applies the elementwise function ``name``."""
    return v.owner if scalar_op_name(v.owner) == name else None


def argument(v: Variable, name: str) -> Variable | None:
    """``x`` if ``v`` is ``name(x)``, else None."""
    node = applied(v, name)
    return None if node is None else node.inputs[0]


def negated(v: Variable) -> Variable | None:
    """``x`` if ``v`` is ``-1 * x``, a product of two factors, else None."""
    node = applied(v, "mul")
    if node is None or len(node.inputs) != 2 or number(node.inputs[0]) != -1:
        return None
    x = node.inputs[1]
    return x if x.type == v.type else None


def opposite(a: Variable, b: Variable) -> bool:
    """Whether one of two variables is -1 times the other."""
    return negated(a) is b or negated(b) is a


def is_float(x: Variable) -> bool:
    """Whether a variable has a real floating dtype."""
    return dtypes.is_float(x.type.dtype)


def is_discrete(x: Variable) -> bool:
    """Whether a variable has an integer or boolean dtype."""
    return dtypes.is_discrete(x.type.dtype)


def is_bool(x: Variable) -> bool:
    """Whether a variable has dtype bool."""
    return bool(x.type.dtype == "bool")


def is_matrix(x: Variable) -> bool:
    """Whether a tensor has two dimensions."""
    return bool(x.type.ndim == 2)


def negation_keeps(x: Variable, dtype: str) -> bool:
    """Whether negating ``x`` before a cast to ``dtype`` equals negating it after the cast.

    Integers of a narrower dtype wrap: the negative of an int8 of -128 is -128.
    """
    return is_float(x) or x.type.dtype == dtype


def literal(value: Any, dtype: str, ndim: int) -> Constant:
    """A number as a constant of a dtype, with ``ndim`` axes of length 1; integers wrap."""
    # equal keys may differ in the sign of a zero, or of a zero part of a complex number
    if not value or isinstance(value, complex | np.complexfloating):
        return _new_literal(value, dtype, ndim)
    key = value, dtype, ndim
    found = _literals[key]
    return _literals.keep(key, _new_literal(value, dtype, ndim)) if found is None else found


_literals: Memo[tuple[complex, str, int], Constant] = Memo(1024, "literals")


def _new_literal(value: Any, dtype: str, ndim: int) -> Constant:
    if dtypes.kind(dtype) in "iu":
        bits = 8 * np.dtype(dtype).itemsize
        wrapped = np.array(int(value) % 2**bits, dtype=f"uint{bits}")
        return constant(wrapped.astype(dtype), ndim=ndim)
    return TensorConstant(literal_type(dtype, ndim), np.array(value, dtype, ndmin=ndim))


def like(node: Apply, new: Variable) -> Variable:
    """``new`` in the dtype and shape of the output of an elementwise ``node``.

    If ``new`` is smaller, because operands that broadcast it were removed, it is broadcast to them
    with `second`, which does not compute its first argument.
    """
    out = node.outputs[0].type
    if new.type.dtype != out.dtype:
        new = cast(new, out.dtype)
    for v in node.inputs:
        if out.is_super(new.type) and new.type.broadcastable == out.broadcastable:
            break
        new = functions.second(v, new)
    return new


def same_shape(v: Variable, w: Variable) -> bool:
    """Whether two tensors have equal ``broadcastable``, and no lengths that are known to differ."""
    if v.type.broadcastable != w.type.broadcastable:
        return False
    return all(m == n or None in (m, n) for m, n in zip(v.type.shape, w.type.shape))


def elemwise_of(scalar_op: Any) -> OpPattern:
    """A pattern for elementwise functions of a scalar op, or of a class of scalar ops.

    >>> import phintys.tensor as pt
    >>> from phintys.scalar import Exp
    >>> elemwise_of(Exp).match_op(pt.exp), elemwise_of(Exp).match_op(pt.log)
    (True, False)
    """
    return OpPattern(Elemwise, scalar_op=scalar_op)


def broadcasted_by(x: Variable, y: Variable) -> bool:
    """Whether ``x`` is repeated where it is combined with ``y`` elementwise.

    >>> import phintys.tensor as pt
    >>> broadcasted_by(pt.drow(), pt.dmatrix()), broadcasted_by(pt.dmatrix(), pt.drow())
    (True, False)
    """
    missing = y.type.ndim - x.type.ndim
    once = x.type.broadcastable
    also = y.type.broadcastable[max(missing, 0) :]
    return missing > 0 or any(a and not b for a, b in zip(once[max(-missing, 0) :], also))
