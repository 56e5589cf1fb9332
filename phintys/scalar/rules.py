"""dtype rules of scalar ops.

A rule maps input dtypes to (the dtypes the inputs are cast to, the dtype of the result), and
raises TypeError, with the reason, where the function is not defined.

>>> inexact("int8"), inexact("int8", "int64")
((('float32',), 'float32'), (('float64', 'float64'), 'float64'))
"""

from __future__ import annotations

from collections.abc import Callable

from phintys.config import config
from phintys.scalar import dtypes

Signature = tuple[tuple[str, ...], str]
DtypeRule = Callable[..., Signature]


def same(*given: str) -> Signature:
    """Computed and returned in the common dtype of the inputs."""
    common = dtypes.upcast(*given)
    return (common,) * len(given), common


def inexact(*given: str) -> Signature:
    """Like `same`, where discrete dtypes become float."""
    common = dtypes.upcast(*map(dtypes.float_of, given))
    return (common,) * len(given), common


def inexact_real(*given: str) -> Signature:
    """Like `inexact`, without complex."""
    return inexact(*no_complex(given))


def real_only(*given: str) -> Signature:
    """Like `same`, without complex."""
    return same(*no_complex(given))


def no_complex(given: tuple[str, ...]) -> tuple[str, ...]:
    """``given``; TypeError if one of them is complex."""
    if any(map(dtypes.is_complex, given)):
        raise TypeError("complex arguments are not supported")
    return given


def not_bool(*given: str) -> Signature:
    """Like `same`, where the common dtype must not be bool."""
    common = dtypes.upcast(*given)
    if common == "bool":
        raise TypeError("bool is not supported; use ~ (invert) or ^ (xor), or cast to an integer")
    return same(*given)


def float_only(*given: str) -> Signature:
    """Like `same`, for real floats only."""
    if not all(map(dtypes.is_float, given)):
        raise TypeError("only floats are supported")
    return same(*given)


def bits(*given: str) -> Signature:
    """Like `same`, for integers and bools only."""
    signature = same(*given)
    if not dtypes.is_discrete(signature[1]):
        raise TypeError("bit operations are for bools and integers")
    return signature


def shift(*given: str) -> Signature:
    """Like `bits`, where bools become int8."""
    return bits(*("int8" if dt == "bool" else dt for dt in given))


def quotient(*given: str) -> Signature:
    """The common dtype; floatX where all inputs are discrete."""
    if all(map(dtypes.is_discrete, given)):
        return (config.floatX,) * len(given), config.floatX
    return same(*given)


def power(*given: str) -> Signature:
    """The common dtype; int8 for bools."""
    common = dtypes.upcast(*given)
    return same("int8", "int8") if common == "bool" else same(*given)


def comparison(*given: str) -> Signature:
    """Compared in the common dtype; the result is bool.

    Signed and unsigned 64-bit integers have none (float64 would round them): they stay as they are.
    """
    common = dtypes.upcast(*given)
    if common == "float64" and all(map(dtypes.is_discrete, given)):
        return given, "bool"
    return (common,) * len(given), "bool"


def classification(*given: str) -> Signature:
    """The inputs as they are; the result is bool."""
    return given, "bool"


def logical(*given: str) -> Signature:
    """Inputs are taken for true where they are not 0; the result is bool."""
    return ("bool",) * len(given), "bool"


def last(*given: str) -> Signature:
    """Inputs as they are; the result has the dtype of the last."""
    return given, given[-1]


def selection(*given: str) -> Signature:
    """A condition, then values in their common dtype."""
    _, *values = given
    common = dtypes.upcast(*values)
    return ("bool", *(common for _ in values)), common


def real_part(*given: str) -> Signature:
    """The dtype of the parts of complex numbers; other dtypes as they are."""
    return given, dtypes.real_of(given[0])
