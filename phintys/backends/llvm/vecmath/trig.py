"""sin, cos and tan of `vecmath`.

float64 reduces by pi/2 in three parts and carries the rounding error of the reduced argument;
float32 does the same in float64 with two parts and shorter polynomials.  For arguments above
`FAST_LIMIT` libm's function is called, lane by lane.
"""

from __future__ import annotations

from phintys.backends.llvm.vecmath.body import Body
from phintys.backends.llvm.vecmath.coefficients import COEFFICIENTS, PARTS

TWO_OVER_PI = 0.6366197723675814
FAST_LIMIT = {"float64": 5e4, "float32": 1e6}


def _reduce_by_half_pi(b: Body, x: str) -> tuple[str, str, str]:
    """(i, r, c): x = n pi/2 + r + c, |r| <= pi/4, n in the low bits of i, c below r's last bit.

    n has at most 15 bits and the first parts of pi/2 have 38, so the products are exact; so are
    the differences where they cancel; otherwise the rounding error of the second is compensated.
    """
    magic = 1.5 * b.format.integers_from
    t = b.fma(x, TWO_OVER_PI, magic)
    n = b.sub(t, magic)
    first, second, third = PARTS["half_pi", "float64"]
    near = b.fma(n, -first, x)
    closer = b.fma(n, -second, near)
    lost = b.fma(n, -third, b.fma(n, -second, b.sub(near, closer)))
    r = b.add(closer, lost)
    return b.bits(t), r, b.add(b.sub(closer, r), lost)


def _reduce_narrow(b: Body, x: str) -> tuple[str, str]:
    """(i, r) for a float32 x held in float64: n has at most 20 bits."""
    magic = 1.5 * b.format.integers_from
    t = b.fma(x, TWO_OVER_PI, magic)
    n = b.sub(t, magic)
    first, second = PARTS["half_pi", "narrow"]
    return b.bits(t), b.fma(n, -second, b.fma(n, -first, x))


def _sine(b: Body, r: str, z: str, c: str) -> str:
    """sin(r + c) = sin(r) + c cos(r)."""
    series = b.polynomial(z, COEFFICIENTS["sin", "float64"])
    return b.add(r, b.fma(b.mul(r, z), series, b.fma(b.mul(z, -0.5), c, c)))


def _cosine(b: Body, r: str, z: str, c: str) -> str:
    """cos(r + c) = 1 - z/2 + (z*z*C - r*c), with the rounding error of 1 - z/2 added."""
    series = b.polynomial(z, COEFFICIENTS["cos", "float64"])
    half = b.mul(z, 0.5)
    main = b.sub(1.0, half)
    small = b.fma(b.mul(z, z), series, b.neg(b.mul(r, c)))
    return b.add(main, b.add(b.sub(b.sub(1.0, main), half), small))


def _sine_and_cosine(b: Body, x: str) -> tuple[str, str, str]:
    """(i, sin r, cos r) of the reduced argument r, with the quadrant in the low bits of i."""
    i, r, c = _reduce_by_half_pi(b, x)
    z = b.mul(r, r)
    return i, _sine(b, r, z, c), _cosine(b, r, z, c)


def _narrow_sine_and_cosine(b: Body, x: str) -> tuple[str, str, str]:
    i, r = _reduce_narrow(b, x)
    z = b.mul(r, r)
    sine = b.fma(b.mul(r, z), b.polynomial(z, COEFFICIENTS["sin", "narrow"]), r)
    bend = b.fma(z, b.polynomial(z, COEFFICIENTS["cos", "narrow"]), -0.5)
    return i, sine, b.fma(z, bend, 1.0)


def _turn(b: Body, i: str, even: str, odd: str) -> str:
    """The result for quadrant i: bit 0 selects the function, bit 1 the sign."""
    y = b.select(b.int_test(i, 1), odd, even)
    sign = b.integer("shl", b.integer("and", i, 2), b.format.bits - 2)
    return b.from_bits(b.integer("xor", b.bits(y), sign))


def sin(b: Body, x: str) -> str:
    if b.format.bits == 64:
        y = _turn(b, *_sine_and_cosine(b, x))
    else:
        wide = b.widened()
        y = _turn(wide, *_narrow_sine_and_cosine(wide, b.extend_to(wide, x)))
        y = b.truncate_from(wide, y)
    return _keep_zero(b, x, y)


def cos(b: Body, x: str) -> str:
    """sin(x + pi/2): one quadrant further."""
    wide = b.widened()
    if b.format.bits == 64:
        i, sine, cosine = _sine_and_cosine(b, x)
    else:
        i, sine, cosine = _narrow_sine_and_cosine(wide, b.extend_to(wide, x))
    y = _turn(wide, wide.integer("add", i, 1), sine, cosine)
    return y if b.format.bits == 64 else b.truncate_from(wide, y)


def _keep_zero(b: Body, x: str, y: str) -> str:
    """y, but x where x is 0: the reduction loses the sign of -0."""
    return b.select(b.compare("oeq", x, 0.0), x, y)


def tan(b: Body, x: str) -> str:
    wide = b.widened()
    if b.format.bits == 64:
        y = _tangent(b, *_reduce_by_half_pi(b, x))
    else:
        i, r = _reduce_narrow(wide, b.extend_to(wide, x))
        z = wide.mul(r, r)
        series = wide.polynomial(z, COEFFICIENTS["tan", "narrow"])
        even = wide.fma(wide.mul(r, z), series, r)
        y = wide.select(wide.int_test(i, 1), wide.div(-1.0, even), even)
        y = b.truncate_from(wide, y)
    return _keep_zero(b, x, y)


def _tangent(b: Body, i: str, r: str, c: str) -> str:
    """t = tan(r + c), or -1/t in odd quadrants; t has two parts, since -1/t doubles its error."""
    z = b.mul(r, r)
    series = b.polynomial(z, COEFFICIENTS["tan", "float64"])
    small = b.fma(b.mul(r, z), series, b.fma(z, c, c))
    t = b.add(r, small)
    lost = b.sub(small, b.sub(t, r))
    inverse = b.div(1.0, t)
    cotangent = b.fma(b.mul(inverse, inverse), lost, b.neg(inverse))
    return b.select(b.int_test(i, 1), cotangent, t)


FUNCTIONS = {"sin": sin, "cos": cos, "tan": tan}


def is_far(b: Body, x: str) -> str:
    """Emit the test whether a lane of x exceeds `FAST_LIMIT`."""
    return b.any(b.compare("ogt", b.abs(x), FAST_LIMIT[b.format.dtype]))


def slow_path(b: Body, name: str) -> list[str]:
    """The body of a function of (a, b): b, but libm's value in lanes where a is too large."""
    scalar = b.format.ir
    libm = name if b.format.bits == 64 else f"{name}f"
    b.declares.add(f"declare {scalar} @{libm}({scalar})")
    if b.width == 1:
        return [f"  %y = call {scalar} @{libm}({scalar} %a)", f"  ret {scalar} %y"]
    fabs = f"llvm.fabs.{b.format.suffix}"
    b.declares.add(f"declare {scalar} @{fabs}({scalar})")
    limit = Body(b.format.dtype, 1, [], set()).const(FAST_LIMIT[b.format.dtype])
    return f"""\
  %xs = alloca {b.type}
  %ys = alloca {b.type}
  store {b.type} %a, ptr %xs
  store {b.type} %b, ptr %ys
  br label %lane
lane:
  %i = phi i64 [0, %0], [%following, %next]
  %xp = getelementptr {scalar}, ptr %xs, i64 %i
  %x = load {scalar}, ptr %xp
  %magnitude = call {scalar} @{fabs}({scalar} %x)
  %large = fcmp ogt {scalar} %magnitude, {limit}
  br i1 %large, label %call, label %next
call:
  %value = call {scalar} @{libm}({scalar} %x)
  %yp = getelementptr {scalar}, ptr %ys, i64 %i
  store {scalar} %value, ptr %yp
  br label %next
next:
  %following = add i64 %i, 1
  %done = icmp eq i64 %following, {b.width}
  br i1 %done, label %end, label %lane
end:
  %patched = load {b.type}, ptr %ys
  ret {b.type} %patched""".splitlines()
