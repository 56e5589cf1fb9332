"""dtype rules of scalar ops.

A rule maps the dtypes of the inputs to a pair: the dtypes to which the inputs are cast, and the
dtype of the result.  It raises TypeError, with the reason, if the function is not defined on the
dtypes.

>>> inexact("int8"), inexact("int8", "int64")
((('float32',), 'float32'), (('float64', 'float64'), 'float64'))
"""

from __future__ import annotations

from collections.abc import Callable

from phintys.config import config
from phintys.errors import ComplexError
from phintys.scalar import dtypes

Signature = tuple[tuple[str, ...], str]
DtypeRule = Callable[..., Signature]


def same(*given: str) -> Signature:
    """Inputs and result in the common dtype of the inputs."""
    common = dtypes.upcast(*given)
    return (common,) * len(given), common


def inexact(*given: str) -> Signature:
    """Like `same`, with discrete dtypes converted to float."""
    common = dtypes.upcast(*map(dtypes.float_of, given))
    return (common,) * len(given), common


def inexact_real(*given: str) -> Signature:
    """Like `inexact`; TypeError for complex dtypes."""
    return inexact(*no_complex(given))


def real_only(*given: str) -> Signature:
    """Like `same`; TypeError for complex dtypes."""
    return same(*no_complex(given))


def no_complex(given: tuple[str, ...]) -> tuple[str, ...]:
    """``given``; ComplexError (a TypeError) if one of them is complex."""
    if any(map(dtypes.is_complex, given)):
        raise ComplexError("complex arguments are not supported")
    return given


def not_bool(*given: str) -> Signature:
    """Like `same`; TypeError if the common dtype is bool."""
    common = dtypes.upcast(*given)
    if common == "bool":
        raise TypeError("bool is not supported; use ~ (invert) or ^ (xor), or cast to an integer")
    return same(*given)


def float_only(*given: str) -> Signature:
    """Like `same`; TypeError for dtypes other than real floats."""
    if not all(map(dtypes.is_float, given)):
        raise TypeError("only floats are supported")
    return same(*given)


def bits(*given: str) -> Signature:
    """Like `same`; TypeError for dtypes other than integers and bool."""
    signature = same(*given)
    if not dtypes.is_discrete(signature[1]):
        raise TypeError("bit operations are for bools and integers")
    return signature


def shift(*given: str) -> Signature:
    """Like `bits`, with bool converted to int8."""
    return bits(*("int8" if dt == "bool" else dt for dt in given))


def quotient(*given: str) -> Signature:
    """Like `same`; floatX if all inputs are discrete."""
    if all(map(dtypes.is_discrete, given)):
        return (config.floatX,) * len(given), config.floatX
    return same(*given)


def power(*given: str) -> Signature:
    """Like `same`; int8 if all inputs are bool."""
    common = dtypes.upcast(*given)
    return same("int8", "int8") if common == "bool" else same(*given)


def comparison(*given: str) -> Signature:
    """Inputs in their common dtype; the result is bool.

    Integers whose common dtype is float64 (such as int64 and uint64) are not cast, because float64
    would round them.
    """
    common = dtypes.upcast(*given)
    if common == "float64" and all(map(dtypes.is_discrete, given)):
        return given, "bool"
    return (common,) * len(given), "bool"


def classification(*given: str) -> Signature:
    """Inputs without cast; the result is bool."""
    return given, "bool"


def logical(*given: str) -> Signature:
    """Inputs cast to bool, true where they are not 0; the result is bool."""
    return ("bool",) * len(given), "bool"


def last(*given: str) -> Signature:
    """Inputs without cast; the result has the dtype of the last one."""
    return given, given[-1]


def selection(*given: str) -> Signature:
    """A condition, cast to bool, then values in their common dtype, which the result has too."""
    _, *values = given
    common = dtypes.upcast(*values)
    return ("bool", *(common for _ in values)), common


def real_part(*given: str) -> Signature:
    """Inputs without cast; the result has the dtype of the real part."""
    return given, dtypes.real_of(given[0])
