"""Table: comparisons, classifications, bits, logic."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.scalar import rules
from phintys.scalar.dtypes import is_discrete, is_float, kind
from phintys.scalar.op import (
    BinaryBitOp,
    FixedLogicalComparison,
    LogicalComparison,
    UnaryBitOp,
    binary,
    unary,
)

# --------------------------------------------------------------------------- comparisons


def _comparison(cls: str, name: str, doc: str, ufunc: str, native: str, **facts: Any) -> Any:
    """Define a comparison."""

    def compare(n: Any, x: Any, y: Any) -> Any:
        return getattr(n, native)(x, y) if n.dtype(x) == n.dtype(y) else NotImplemented

    return binary(
        cls,
        name,
        doc + "  Complex numbers compare by real, then imaginary part.",
        function=f"numpy.{ufunc}",
        rule=rules.comparison,
        native=compare,
        base=LogicalComparison,
        **facts,
    )


eq = _comparison("EQ", "eq", "x == y.", "equal", "eq", commutative=True)
neq = _comparison("NEQ", "neq", "x != y; true for NaN.", "not_equal", "ne", commutative=True)
lt = _comparison("LT", "lt", "x < y.", "less", "lt", mirror="gt")
le = _comparison("LE", "le", "x <= y.", "less_equal", "le", mirror="ge")
gt = _comparison("GT", "gt", "x > y.", "greater", "gt", mirror="lt")
ge = _comparison("GE", "ge", "x >= y.", "greater_equal", "ge", mirror="le")

# ----------------------------------------------------------------------- classifications


def _classification(cls: str, name: str, doc: str, native: Any, **facts: Any) -> Any:
    """Define a predicate of one number."""
    return unary(
        cls,
        name,
        doc,
        rule=rules.classification,
        native=native,
        base=FixedLogicalComparison,
        **facts,
    )


def _false(n: Any, x: Any) -> Any:
    """False for any integer."""
    return n.ne(x, x)


isnan = _classification(
    "IsNan",
    "isnan",
    "Whether x is NaN.",
    lambda n, x: _false(n, x) if is_discrete(n.dtype(x)) else n.isnan(x),
)
isinf = _classification(
    "IsInf",
    "isinf",
    "Whether x is infinite.",
    lambda n, x: _false(n, x) if is_discrete(n.dtype(x)) else n.isinf(x),
    even=True,
)
isfinite = _classification(
    "IsFinite",
    "isfinite",
    "Whether x is neither NaN nor infinite.",
    lambda n, x: n.eq(x, x) if is_discrete(n.dtype(x)) else n.not_(n.or_(n.isnan(x), n.isinf(x))),
    even=True,
)
signbit = unary(
    "SignBit",
    "signbit",
    "Whether the sign of x is minus, also of -0.0.",
    rule=lambda x: (rules.inexact_real(x)[0] if kind(x) != "u" else (x,), "bool"),
    native=lambda n, x: (
        n.lt(n.copysign(n.const(1, x), x), n.const(0, x)) if is_float(n.dtype(x)) else _false(n, x)
    ),
    base=FixedLogicalComparison,
)

# ---------------------------------------------------------------------------------- bits

_BITS = {
    "rule": rules.bits,
    "base": BinaryBitOp,
    "commutative": True,
    "associative": True,
    "unsigned_literals": True,
}

and_ = binary(
    "AND",
    "and_",
    "Bitwise and; TypeError for floats.",
    function="numpy.bitwise_and",
    native="and",
    idempotent=True,
    identity=-1,
    absorbing=0,
    **_BITS,
)
or_ = binary(
    "OR",
    "or_",
    "Bitwise or; TypeError for floats.",
    function="numpy.bitwise_or",
    native="or",
    idempotent=True,
    identity=0,
    **_BITS,
)
xor = binary(
    "XOR",
    "xor",
    "Bitwise exclusive or; TypeError for floats.",
    function="numpy.bitwise_xor",
    native="xor",
    identity=0,
    **_BITS,
)
invert = unary(
    "Invert",
    "invert",
    "Bitwise complement, logical not of bools; TypeError for floats.",
    rule=rules.bits,
    native="not",
    base=UnaryBitOp,
    inverse="invert",
)


def _shift(cls: str, name: str, doc: str, native: str) -> Any:
    """Define a shift.

    As in NumPy, the result of a shift by a negative number, or by the number of bits or more, is 0,
    or -1 for a right shift of a negative number.
    """

    def shifted(n: Any, x: Any, by: Any) -> Any:
        width = 8 * np.dtype(n.dtype(x)).itemsize
        inside = n.and_(n.ge(by, n.const(0, x)), n.lt(by, n.const(width, x)))
        far = n.const(0, x)
        if native == "shr" and kind(n.dtype(x)) == "i":
            far = n.shr(x, n.const(width - 1, x))
        return n.select(inside, getattr(n, native)(x, n.select(inside, by, n.const(0, x))), far)

    return binary(cls, name, doc, rule=rules.shift, native=shifted, base=BinaryBitOp)


left_shift = _shift("LeftShift", "left_shift", "x << y for integers.", "shl")
right_shift = _shift("RightShift", "right_shift", "x >> y for integers, keeping the sign.", "shr")

# --------------------------------------------------------------------------------- logic


def _logical(cls: str, name: str, doc: str, native: str, **facts: Any) -> Any:
    """Define a logical function of two numbers, of which those other than 0 are true."""
    return binary(cls, name, doc, rule=rules.logical, native=native, commutative=True, **facts)


logical_and = _logical(
    "LogicalAnd", "logical_and", "Whether both are not 0.", "and", associative=True
)
logical_or = _logical(
    "LogicalOr", "logical_or", "Whether at least one of them is not 0.", "or", associative=True
)
logical_xor = _logical(
    "LogicalXor", "logical_xor", "Whether exactly one of them is not 0.", "xor", associative=True
)
logical_not = unary(
    "LogicalNot",
    "logical_not",
    "Whether x is 0.",
    rule=rules.logical,
    native="not",
)
