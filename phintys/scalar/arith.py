"""Table: arithmetic, rounding, choice."""

from __future__ import annotations

from typing import Any

import numpy as np

from phintys.graph.variable import Constant
from phintys.scalar import pairs, rules
from phintys.scalar.conversion import converted
from phintys.scalar.dtypes import ALL, is_complex, kind, real_of
from phintys.scalar.op import (
    TABLE,
    Inverse,
    ScalarOp,
    UnaryScalarOp,
    binary,
    nary,
    ternary,
    unary,
)
from phintys.scalar.rules import Signature
from phintys.scalar.type import scalar_type

# ------------------------------------------------------------------- sums and products


def _is_bool(n: Any, x: Any) -> bool:
    return bool(n.dtype(x) == "bool")


add = nary(
    "Add",
    "add",
    "Sum; for bools, or.",
    d=lambda m, *xs: (1.0,) * (len(xs) - 1),
    native=lambda n, x, y: n.or_(x, y) if _is_bool(n, x) else n.add(x, y),
    commutative=True,
    identity=0,
)


def _products_of_others(m: Any, *xs: Any) -> list[Any]:
    """For each factor the product of the others, from prefix and suffix products: linear work."""
    factors = xs[:-1]
    if len(factors) == 1:
        return [1.0]
    before, after = [factors[0]], [factors[-1]]
    for i in range(1, len(factors) - 1):
        before.append(m.mul(before[-1], factors[i]))
        after.append(m.mul(after[-1], factors[-1 - i]))
    inner = [m.mul(b, a) for b, a in zip(before[:-1], after[-2::-1])]
    return [after[-1], *inner, before[-1]]


mul = nary(
    "Mul",
    "mul",
    "Product; for bools, and.",
    function="numpy.multiply",
    d=_products_of_others,
    native=lambda n, x, y: n.and_(x, y) if _is_bool(n, x) else n.mul(x, y),
    commutative=True,
    identity=1,
    absorbing=0,
)


def _nonzero_partials(m: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """The other factor, or 1 where that is 0; 0 for a factor that is 0, where there are jumps."""

    def partial(own: Any, other: Any) -> Any:
        factor = m.switch(m.eq(other, 0), 1, other)
        return m.switch(m.eq(own, 0), 0, factor)

    return partial(x, y), partial(y, x)


mul_without_zeros = binary(
    "MulWithoutZeros",
    "mul_without_zeros",
    "Product in which factors that are 0 are left out.",
    function="phintys.scalar.numeric.multiply_nonzero",
    d=_nonzero_partials,
    native=lambda n, x, y: (
        n.or_(x, y)
        if _is_bool(n, x)
        else n.select(n.eq(x, n.const(0, x)), y, n.select(n.eq(y, n.const(0, x)), x, n.mul(x, y)))
    ),
    commutative=True,
    associative=True,
    identity=1,
    domain=((0.2, 5), (0.2, 5)),
)
sub = binary(
    "Sub",
    "sub",
    "Difference; TypeError for bools.",
    function="numpy.subtract",
    rule=rules.not_bool,
    d=lambda m, x, y, z: (1.0, -1.0),
    native="sub",
)
neg = unary(
    "Neg",
    "neg",
    "The negative, -x; TypeError for bools.",
    function="numpy.negative",
    rule=rules.not_bool,
    d=lambda m, x, y: -1.0,
    native=lambda n, x: n.neg(x) if kind(n.dtype(x)) in "ifc" else n.sub(n.const(0, x), x),
    inverse="neg",
    odd=True,
    decreasing=True,
    zero_at_zero=True,
)

# ---------------------------------------------------------------------------- quotients

true_div = binary(
    "TrueDiv",
    "true_div",
    "Quotient; floatX for integers.",
    function="numpy.divide",
    rule=rules.quotient,
    d=lambda m, x, y, z: (Inverse(y), lambda: -z / y),
    native="div",
    domain=((-5, 5), (0.2, 5)),
)


def _reciprocal(n: Any, x: Any) -> Any:
    return pairs.reciprocal(n, x) if is_complex(n.dtype(x)) else n.div(n.const(1, x), x)


reciprocal = unary(
    "Reciprocal",
    "reciprocal",
    "1 / x; a float for integers.",
    d=lambda m, x, y: -m.sqr(y),
    native=_reciprocal,
    domain=(0.1, 10),
    inverse="reciprocal",
    odd=True,
    decreasing=True,
)


def _floor_quotient(n: Any, x: Any, y: Any) -> Any:
    """Floor division; of floats by the exact remainder, as Python and NumPy, so 1 // 0.1 is 9."""
    if _is_bool(n, x):
        return n.and_(x, y)
    if kind(n.dtype(x)) != "f":
        return n.idiv(x, y)
    zero, one = n.const(0, x), n.const(1, x)
    rest = n.fmod(x, y)
    exact = n.div(n.sub(x, rest), y)
    opposite = n.and_(n.ne(rest, zero), n.xor(n.lt(rest, zero), n.lt(y, zero)))
    quotient = n.select(opposite, n.sub(exact, one), exact)
    down = n.floor(quotient)
    down = n.select(n.gt(n.sub(quotient, down), n.const(0.5, x)), n.add(down, one), down)
    signed = n.select(n.eq(quotient, zero), n.copysign(zero, n.div(x, y)), down)
    return n.select(n.eq(y, zero), n.div(x, y), signed)


def _modulo(n: Any, x: Any, y: Any) -> Any:
    """The remainder with the sign of y."""
    if _is_bool(n, x):
        return n.xor(x, x)
    if kind(n.dtype(x)) != "f":
        return n.imod(x, y)
    zero = n.const(0, x)
    rest = n.fmod(x, y)
    opposite = n.xor(n.lt(rest, zero), n.lt(y, zero))
    moved = n.select(opposite, n.add(rest, y), rest)
    return n.select(n.eq(rest, zero), n.copysign(zero, y), moved)


int_div = binary(
    "IntDiv",
    "int_div",
    "Floor of the quotient, as Python; 0 for integers divided by 0.",
    function="numpy.floor_divide",
    rule=rules.real_only,
    d=lambda m, x, y, z: (None, None),
    native=_floor_quotient,
    unsigned_literals=True,
    domain=((-5, 5), (0.2, 5)),
)
mod = binary(
    "Mod",
    "mod",
    "Remainder with the sign of y, as Python; 0 for integers modulo 0.",
    function="numpy.remainder",
    rule=rules.real_only,
    d=lambda m, x, y, z: (1.0, -m.int_div(x, y)),
    native=_modulo,
    unsigned_literals=True,
    domain=((-5, 5), (0.2, 5)),
)
fmod = binary(
    "Fmod",
    "fmod",
    "Remainder with the sign of x, as C; 0 for integers modulo 0.",
    rule=rules.real_only,
    d=lambda m, x, y, z: (1.0, -m.trunc(x / y)),
    native=lambda n, x, y: n.fmod(x, y) if kind(n.dtype(x)) == "f" else NotImplemented,
    domain=((-5, 5), (0.2, 5)),
)

# ------------------------------------------------------------------------------- powers

sqr = unary(
    "Sqr",
    "sqr",
    "The square, x * x.",
    function="numpy.square",
    rule=rules.same,
    d=lambda m, x, y: 2 * x,
    native=lambda n, x: n.and_(x, x) if _is_bool(n, x) else n.mul(x, x),
    even=True,
    zero_at_zero=True,
    range=(0, np.inf),
)
sqrt = unary(
    "Sqrt",
    "sqrt",
    "The square root; NaN below 0.",
    d=lambda m, x, y: 0.5 / y,
    native="sqrt",
    domain=(0, np.inf),
    inverse="sqr",
    increasing=True,
    zero_at_zero=True,
    range=(0, np.inf),
)
cbrt = unary(
    "Cbrt",
    "cbrt",
    "The real cube root.",
    rule=rules.inexact_real,
    d=lambda m, x, y: Inverse(3 * m.sqr(y)),
    native="cbrt",
    odd=True,
    increasing=True,
    zero_at_zero=True,
)


def _known_number(x: Any) -> Any:
    """The number that a constant consists of, or None."""
    return x.data.item() if isinstance(x, Constant) and np.size(x.data) == 1 else None


def _power_partials(m: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """The partial derivatives of x**y, which are 0 where x is 0 and the formulas give NaN.

    The one in x is 0 where y is 0, too, and the one in y where y is not negative; but x**x has no
    finite derivative at 0.  Arguments are replaced there, not results, so that further derivatives
    are no NaN either.
    """

    def by_base() -> Any:
        k = _known_number(y)
        if k is None:
            both = m.and_(m.eq(x, 0), m.eq(y, 0))
            return y * m.pow(x, m.switch(both, 0, y - 1))
        return None if k == 0 else y * (x if k == 2 else m.pow(x, k - 1))

    def by_exponent() -> Any:
        is_flat = m.gt if x is y else m.ge
        flat = m.and_(m.eq(x, 0), is_flat(_real(m, y), 0))
        return z * m.log(m.switch(flat, 1, x))

    return by_base, by_exponent


def _real(m: Any, x: Any) -> Any:
    return m.real(x) if is_complex(x.type.dtype) else x


pow = binary(
    "Pow",
    "pow",
    "x to the power y.  ValueError for an integer to a negative integer power.",
    function="numpy.power",
    rule=rules.power,
    d=_power_partials,
    native=lambda n, x, y: n.pow(x, y) if kind(n.dtype(x)) == "f" else NotImplemented,
    domain=((0.2, 4), (-3, 3)),
)


def _hypot_partials(m: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    size = m.switch(m.eq(z, 0), 1, z)
    return x / size, y / size


hypot = binary(
    "Hypot",
    "hypot",
    "sqrt(x**2 + y**2) without overflow.  The derivative is 0 where it is 0.",
    rule=rules.inexact_real,
    d=_hypot_partials,
    native="hypot",
    commutative=True,
    domain=((-5, 5), (0.2, 5)),
)

gcd = binary(
    "GCD",
    "gcd",
    "Greatest common divisor of integers.",
    rule=rules.shift,
    commutative=True,
    associative=True,
)
lcm = binary("LCM", "lcm", "Least common multiple of integers.", rule=rules.shift, commutative=True)

# ----------------------------------------------------------------------- signs and sizes

abs = unary(
    "Abs",
    "abs",
    "Magnitude; real for complex numbers.  The derivative at 0 is 0.",
    function="numpy.absolute",
    rule=lambda x: ((x,), real_of(x)),
    d=lambda m, x, y: m.conj(m.sign(x)) if is_complex(x.type.dtype) else m.sign(x),
    native=lambda n, x: n.abs(x) if kind(n.dtype(x)) in "ifc" else x,
    even=True,
    zero_at_zero=True,
    idempotent=True,
    range=(0, np.inf),
)


def _sign(n: Any, x: Any) -> Any:
    if is_complex(n.dtype(x)):
        return NotImplemented
    zero, one = n.const(0, x), n.const(1, x)
    positive = n.select(n.gt(x, zero), one, zero)
    if kind(n.dtype(x)) == "u":
        return positive
    number = n.select(n.lt(x, zero), n.sub(zero, one), positive)
    return n.select(n.isnan(x), x, number) if kind(n.dtype(x)) == "f" else number


def _across(m: Any, x: Any, y: Any, t: Any) -> Any:
    """The change of the complex number ``y = x / |x|`` with a change ``t`` of x; 0 where x is 0.

    That is the part of ``t`` across the direction of y, divided by ``|x|``.  It is real-linear in
    ``t`` and its own adjoint, so that it serves both directions of differentiation.
    """
    size = m.abs(x)
    zero = m.eq(size, 0)
    part = (t - y * m.real(m.conj(y) * t)) / m.switch(zero, 1, size)
    return m.switch(zero, part * 0, part)


def _sign_cotangents(self: Any, m: Any, inputs: Any, outputs: Any, given: Any) -> list[Any]:
    (x,), (y,), (g,) = inputs, outputs, given
    return [_across(m, x, y, g) if is_complex(x.type.dtype) else None]


def _sign_tangents(self: Any, m: Any, inputs: Any, outputs: Any, given: Any) -> Any:
    (x,), (y,), (t,) = inputs, outputs, given
    return _across(m, x, y, t) if is_complex(x.type.dtype) and t is not None else None


sign = unary(
    "Sign",
    "sign",
    "-1, 0 or 1; for complex numbers x / |x|.  TypeError for bools.",
    rule=rules.not_bool,
    d=lambda m, x, y: None,
    cotangents=_sign_cotangents,
    tangents=_sign_tangents,
    native=_sign,
    odd=True,
    zero_at_zero=True,
    idempotent=True,
    range=(-1, 1),
)


copysign = binary(
    "Copysign",
    "copysign",
    "The magnitude of x with the sign of y.",
    rule=rules.inexact_real,
    d=lambda m, x, y, z: (m.copysign(1.0, x) * m.copysign(1.0, y), None),
    native="copysign",
    domain=((0.2, 5), (0.2, 5)),
)


def _heaviside(n: Any, x: Any, y: Any) -> Any:
    zero = n.const(0, x)
    step = n.select(n.gt(x, zero), n.const(1, x), n.select(n.eq(x, zero), y, zero))
    return n.select(n.isnan(x), x, step)


heaviside = binary(
    "Heaviside",
    "heaviside",
    "0 for x < 0, y at 0, 1 for x > 0.",
    rule=rules.inexact_real,
    d=lambda m, x, y, z: (None, m.eq(x, 0)),
    native=_heaviside,
    domain=((0.2, 5), (-1, 1)),
)
nextafter = binary(
    "NextAfter",
    "nextafter",
    "The float next to x in the direction of y.",
    rule=rules.inexact_real,
    native="nextafter",
    not_differentiable="it steps along the grid of floats",
)


def _maximum_partials(m: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    first = m.ge(x, y)
    return first, lambda: m.invert(first)


def _minimum_partials(m: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    first = m.le(x, y)
    return first, lambda: m.invert(first)


_EXTREMUM = {"commutative": True, "associative": True, "idempotent": True}
maximum = binary(
    "Maximum",
    "maximum",
    "The larger; NaN if either is.  Where both are equal, the derivative is that of the first.",
    d=_maximum_partials,
    native="max",
    **_EXTREMUM,
)
minimum = binary(
    "Minimum",
    "minimum",
    "The smaller; NaN if either is.  Where both are equal, the derivative is that of the first.",
    d=_minimum_partials,
    native="min",
    **_EXTREMUM,
)

# ------------------------------------------------------------------------------ rounding

_STEP = {"increasing": True, "zero_at_zero": True, "idempotent": True}


def _rounding(cls: str, name: str, doc: str, native: Any, **fields: Any) -> Any:
    """Define a rounding function, whose derivative is 0 wherever it exists."""
    fields = {"rule": rules.inexact_real} | fields
    return unary(cls, name, doc, d=lambda m, x, y: None, native=native, **_STEP | fields)


def _half_away(n: Any, x: Any) -> Any:
    """Rounding by the integer part, because floor(x + 0.5) rounds 0.49999999999999994 up."""
    whole = n.trunc(x)
    rest = n.abs(n.sub(x, whole))
    one = n.copysign(n.const(1, x), x)
    return n.select(n.ge(rest, n.const(0.5, x)), n.add(whole, one), whole)


ceil = _rounding("Ceil", "ceil", "The smallest integer not below x; a float.", "ceil")
floor = _rounding("Floor", "floor", "The largest integer not above x; a float.", "floor")
trunc = _rounding("Trunc", "trunc", "x without its fraction; a float.", "trunc", odd=True)
round_half_to_even = _rounding(
    "RoundHalfToEven",
    "round_half_to_even",
    "The nearest integer, ties to even, as NumPy.",
    "rint",
    function="numpy.rint",
    rule=rules.float_only,
    odd=True,
)
round_half_away_from_zero = _rounding(
    "RoundHalfAwayFromZero",
    "round_half_away_from_zero",
    "The nearest integer, ties away from 0, as C.",
    _half_away,
    function="phintys.scalar.numeric.round_half_away_from_zero",
    rule=rules.float_only,
    odd=True,
)

# -------------------------------------------------------------------------------- choice

identity = unary(
    "Identity",
    "identity",
    "x itself.",
    function="numpy.array",
    rule=rules.same,
    d=lambda m, x, y: 1.0,
    native=lambda n, x: x,
    inverse="identity",
    odd=True,
    increasing=True,
    zero_at_zero=True,
    idempotent=True,
)


second = binary(
    "Second",
    "second",
    "y; for tensors, y broadcast against x, whose values do not matter.",
    function="phintys.scalar.numeric.second",
    rule=rules.last,
    d=lambda m, x, y, z: (None, 1.0),
    connection_pattern=lambda self, node: [[False], [True]],
    native=lambda n, x, y: y,
)
switch = ternary(
    "Switch",
    "switch",
    "y where the condition x is not 0, else z.  Both are computed.",
    function="numpy.where",
    rule=rules.selection,
    d=lambda m, c, y, z, out: (None, lambda: m.neq(c, 0), lambda: m.eq(c, 0)),
    native="select",
)


def _clip_partials(m: Any, x: Any, lo: Any, hi: Any, y: Any) -> tuple[Any, Any, Any]:
    """The partial derivatives: at the bounds that in x is 1; where hi < lo the result is hi."""
    inside = m.and_(m.ge(x, lo), m.le(x, hi))
    low = m.and_(m.lt(x, lo), m.le(lo, hi))
    high = m.or_(m.gt(x, hi), m.gt(lo, hi))
    return inside, low, high


clip = ternary(
    "Clip",
    "clip",
    "x moved into the interval from y to z; z where z < y, NaN if one of them is.",
    rule=rules.real_only,
    d=_clip_partials,
    native=lambda n, x, lo, hi: n.min(n.max(x, lo), hi),
    domain=((-5, 5), (-2, -1), (1, 2)),
)


class Cast(UnaryScalarOp):
    """Conversion to a dtype: to integers by truncation, to bool by x != 0, to real by real part."""

    __props__ = ("o_type",)
    doc = __doc__ or ""
    facts = {"zero_at_zero": True, "idempotent": True}

    def __init__(self, o_type: Any, name: str | None = None) -> None:
        super().__init__(None, name or f"cast_{o_type.dtype}")
        self.o_type = o_type

    def rule(self, x: str) -> Signature:  # type: ignore[override]
        return (x,), self.o_type.dtype

    def compute(self, *values: Any) -> Any:
        (x,) = values
        return converted(np.asarray(x), self.o_type.dtype)

    def d(self, m: Any, x: Any, y: Any) -> Any:  # type: ignore[override]
        return 1.0

    def native(self, n: Any, x: Any) -> Any:
        return x

    def __str__(self) -> str:
        return f"Cast{{{self.o_type.dtype}}}"


def _convert_to(dtype: str) -> ScalarOp:
    op = TABLE[f"cast_{dtype}"] = Cast(scalar_type(dtype))
    return op


CASTS = {dtype: _convert_to(dtype) for dtype in ALL}
