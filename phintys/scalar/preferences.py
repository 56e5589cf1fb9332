"""Output type preferences: functions from input types to output types, for users' scalar ops.

They are passed to a `ScalarOp` whose class defines ``impl``; names and meaning are PyTensor's.

>>> class Twice(UnaryScalarOp):
...     def impl(self, x):
...         return 2 * x
>>> twice = Twice(same_out_nocomplex, name="twice")
>>> twice(get_scalar_type("int8")("x")).type
Scalar(int8)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phintys.scalar import rules
from phintys.scalar.dtypes import real_of, upcast
from phintys.scalar.op import UnaryScalarOp
from phintys.scalar.type import ScalarType
from phintys.scalar.type import scalar_type as get_scalar_type

Preference = Callable[..., tuple[ScalarType]]


def _preference(name: str, rule: rules.DtypeRule, doc: str) -> Preference:
    """The preference for the result dtype of a dtype rule."""

    def preferred(*types: Any) -> tuple[ScalarType]:
        return (get_scalar_type(rule(*(t.dtype for t in types))[1]),)

    preferred.__name__ = preferred.__qualname__ = name
    preferred.__doc__ = doc
    return preferred


class transfer_type:
    """A preference whose results have dtypes of inputs, by position; None: the common one.

    >>> int8, int64 = get_scalar_type("int8"), get_scalar_type("int64")
    >>> transfer_type(1, None)(int64, int8)
    (Scalar(int8), Scalar(int64))
    """

    def __init__(self, *transfer: int | None) -> None:
        self.transfer = transfer

    def __call__(self, *types: Any) -> tuple[ScalarType, ...]:
        (common,) = upcast_out(*types)
        return tuple([common if k is None else types[k] for k in self.transfer])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.transfer)

    def __repr__(self) -> str:
        return f"transfer_type{{{', '.join(map(str, self.transfer))}}}"


def _at_least_int8(*given: str) -> rules.Signature:
    return rules.same("int8", *given) if upcast(*given) == "bool" else rules.same(*given)


def _always(dtype: str) -> rules.DtypeRule:
    return lambda *given: (given, dtype)


_COMMON = "The common dtype of the inputs"
upcast_out = _preference("upcast_out", rules.same, f"{_COMMON}.")
upcast_out_nobool = _preference("upcast_out_nobool", rules.not_bool, f"{_COMMON}, not bool.")
upcast_out_min8 = _preference("upcast_out_min8", _at_least_int8, f"{_COMMON}; int8 for bools.")
upcast_out_no_complex = _preference(
    "upcast_out_no_complex", rules.real_only, f"{_COMMON}, not complex."
)
same_out = _preference("same_out", rules.same, "The dtype of the input.")
same_out_nobool = _preference(
    "same_out_nobool", rules.not_bool, "The dtype of the input, not bool."
)
same_out_min8 = _preference(
    "same_out_min8", _at_least_int8, "The dtype of the input; int8 for bool."
)
same_out_nocomplex = _preference(
    "same_out_nocomplex", rules.real_only, "The dtype of the input, not complex."
)
same_out_float_only = _preference(
    "same_out_float_only", rules.float_only, "The dtype of the input, a float."
)
upgrade_to_float = _preference(
    "upgrade_to_float", rules.inexact, "The common dtype; a float dtype if that is discrete."
)
upgrade_to_float_no_complex = _preference(
    "upgrade_to_float_no_complex",
    rules.inexact_real,
    "The common dtype, not complex; a float if discrete.",
)
upgrade_to_float64 = _preference("upgrade_to_float64", _always("float64"), "float64.")
float_out = _preference("float_out", _always("float64"), "float64.")
int_out = _preference("int_out", _always("int64"), "int64.")
real_out = _preference("real_out", lambda x: ((x,), real_of(x)), "The dtype of the real part.")


class specific_out:
    """The preference for the given types, whatever the inputs are."""

    def __init__(self, *spec: ScalarType) -> None:
        self.spec = spec

    def __call__(self, *types: Any) -> tuple[ScalarType, ...]:
        return self.spec

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.spec == other.spec  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((specific_out, self.spec))


__all__ = [
    "UnaryScalarOp",
    "float_out",
    "get_scalar_type",
    "int_out",
    "real_out",
    "same_out",
    "same_out_float_only",
    "same_out_min8",
    "same_out_nobool",
    "same_out_nocomplex",
    "specific_out",
    "transfer_type",
    "upcast_out",
    "upcast_out_min8",
    "upcast_out_no_complex",
    "upcast_out_nobool",
    "upgrade_to_float",
    "upgrade_to_float64",
    "upgrade_to_float_no_complex",
]
