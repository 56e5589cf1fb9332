"""Instructions on complex numbers, composed of instructions on their parts.

In a kernel a complex number is only loaded, stored, selected, made of two parts (``complex``) and
taken apart (``real``, ``imag``).  `FORMS` has a function for each other instruction that accepts
complex numbers.  They compute what NumPy computes, by the same formulas where rounding, overflow
and the results for infinite and NaN parts depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log
from typing import Any

from phintys.scalar.dtypes import is_complex, real_of

Form = Callable[..., Any]


def parts(n: Any, z: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of a complex value."""
    return n.real(z), n.imag(z)


def const(n: Any, value: complex, dtype: str) -> Any:
    """A literal of a complex dtype."""
    part = real_of(dtype)
    return n.complex(n.const(float(value.real), part), n.const(float(value.imag), part))


def cast(n: Any, x: Any, dtype: str) -> Any:
    """The conversion from or to a complex dtype, as `phintys.scalar.conversion` defines it."""
    if not is_complex(n.dtype(x)):
        part = real_of(dtype)
        return n.complex(n.cast(x, part), n.const(0.0, part))
    re, im = parts(n, x)
    if dtype == "bool":
        return n.or_(n.cast(re, dtype), n.cast(im, dtype))
    if not is_complex(dtype):
        return n.cast(re, dtype)
    return n.complex(n.cast(re, real_of(dtype)), n.cast(im, real_of(dtype)))


# ------------------------------------------------------------------------- arithmetic


def _each(op: str) -> Form:
    """The form of an instruction that works on each part for itself."""

    def form(n: Any, *numbers: Any) -> Any:
        columns = zip(*(parts(n, z) for z in numbers))
        return n.complex(*(getattr(n, op)(*column) for column in columns))

    return form


def _mul(n: Any, x: Any, y: Any) -> Any:
    (a, b), (c, d) = parts(n, x), parts(n, y)
    re = n.sub(n.mul(a, c), n.mul(b, d))
    return n.complex(re, n.add(n.mul(a, d), n.mul(b, c)))


def _div(n: Any, x: Any, y: Any) -> Any:
    """R. L. Smith, Algorithm 116: Complex division, CACM 5 (1962), as NumPy."""
    (a, b), (c, d) = parts(n, x), parts(n, y)
    steep = n.not_(n.ge(n.abs(c), n.abs(d)))  # also where a part is NaN
    large, small = n.select(steep, d, c), n.select(steep, c, d)
    first, second = n.select(steep, b, a), n.select(steep, a, b)
    ratio = n.div(small, large)
    scale = n.div(n.const(1.0, c), n.add(large, n.mul(small, ratio)))
    re = n.mul(n.add(first, n.mul(second, ratio)), scale)
    product = n.mul(first, ratio)
    im = n.mul(n.select(steep, n.sub(product, second), n.sub(second, product)), scale)
    zero = n.const(0.0, c)
    by_zero = n.and_(n.eq(c, zero), n.eq(d, zero))
    size = n.abs(c)
    return n.complex(n.select(by_zero, n.div(a, size), re), n.select(by_zero, n.div(b, size), im))


def reciprocal(n: Any, x: Any) -> Any:
    """``1 / x`` with one ratio; unlike `_div`, infinite parts of 1 / 0 are NaN, as in NumPy."""
    a, b = parts(n, x)
    one = n.const(1.0, a)
    steep = n.not_(n.le(n.abs(b), n.abs(a)))
    large, small = n.select(steep, b, a), n.select(steep, a, b)
    ratio = n.div(small, large)
    divisor = n.add(large, n.mul(small, ratio))
    whole, part = n.div(one, divisor), n.div(ratio, divisor)
    im = n.div(n.neg(n.select(steep, one, ratio)), divisor)
    return n.complex(n.select(steep, part, whole), im)


def _abs(n: Any, x: Any) -> Any:
    return n.hypot(*parts(n, x))


# ------------------------------------------------------------------------ comparisons


def _eq(n: Any, x: Any, y: Any) -> Any:
    (a, b), (c, d) = parts(n, x), parts(n, y)
    return n.and_(n.eq(a, c), n.eq(b, d))


def _ne(n: Any, x: Any, y: Any) -> Any:
    (a, b), (c, d) = parts(n, x), parts(n, y)
    return n.or_(n.ne(a, c), n.ne(b, d))


def _ordered(strict: str, op: str) -> Form:
    """The form of an order: of the real parts, then of the imaginary parts."""

    def form(n: Any, x: Any, y: Any) -> Any:
        (a, b), (c, d) = parts(n, x), parts(n, y)
        numbers = n.not_(n.or_(n.isnan(b), n.isnan(d)))
        first = n.and_(getattr(n, strict)(a, c), numbers)
        return n.or_(first, n.and_(n.eq(a, c), getattr(n, op)(b, d)))

    return form


def _either(op: str) -> Form:
    def form(n: Any, x: Any) -> Any:
        re, im = parts(n, x)
        return n.or_(getattr(n, op)(re), getattr(n, op)(im))

    return form


def _extreme(op: str) -> Form:
    """The form of ``min`` or ``max``: the first number if it is NaN or ``op`` holds."""

    def form(n: Any, x: Any, y: Any) -> Any:
        return n.select(n.or_(n.isnan(x), getattr(n, op)(x, y)), x, y)

    return form


# -------------------------------------------------------------- functions, as in C99's annex G


def _finite(n: Any, x: Any) -> Any:
    return n.not_(n.or_(n.isnan(x), n.isinf(x)))


def _exp(n: Any, x: Any) -> Any:
    re, im = parts(n, x)
    zero = n.const(0.0, re)
    # e**re is infinite before its product with a cosine is
    most = 709.0 if n.dtype(re) == "float64" else 88.0
    large = n.gt(re, n.const(most, re))
    size = n.exp(n.select(large, n.sub(re, n.const(8.0, re)), re))
    rest = n.select(large, n.const(exp(8.0), re), n.const(1.0, re))
    cosine = n.mul(n.mul(size, n.cos(im)), rest)
    sine = n.mul(n.mul(size, n.sin(im)), rest)
    no_angle = n.and_(n.isinf(re), n.not_(_finite(n, im)))
    cosine = n.select(no_angle, size, cosine)
    sine = n.select(n.and_(no_angle, n.lt(re, zero)), n.copysign(zero, im), sine)
    return n.complex(cosine, n.select(n.eq(im, zero), im, sine))


def _sizes(n: Any, x: Any) -> tuple[Any, Any]:
    """The larger and the smaller magnitude of the parts; NaN if one is."""
    re, im = (n.abs(part) for part in parts(n, x))
    return n.max(re, im), n.min(re, im)


def _log_of_size(n: Any, x: Any) -> Any:
    """log(abs(x)), without overflow, and exact near abs(x) = 1."""
    large, small = _sizes(n, x)
    one, half, zero = (n.const(c, large) for c in (1.0, 0.5, 0.0))
    near = n.and_(n.gt(large, half), n.lt(large, n.const(2.0, large)))
    rest = n.mul(n.sub(large, one), n.add(large, one))
    squares = n.add(rest, n.mul(small, small))
    no_ratio = n.or_(n.eq(large, zero), n.isinf(large))
    ratio = n.select(no_ratio, zero, n.div(small, large))
    squares = n.select(near, squares, n.mul(ratio, ratio))
    whole = n.select(near, zero, n.log(large))
    found = n.add(whole, n.mul(half, n.log1p(squares)))
    return n.select(n.isinf(x), n.const(inf, large), found)


def _log(n: Any, x: Any) -> Any:
    re, im = parts(n, x)
    return n.complex(_log_of_size(n, x), n.atan2(im, re))


def _log_to(base: float) -> Form:
    """The form of the logarithm to a base."""

    def form(n: Any, x: Any) -> Any:
        re, im = parts(n, _log(n, x))
        factor = n.const(1 / log(base), re)
        return n.complex(n.mul(re, factor), n.mul(im, factor))

    return form


def _sqrt(n: Any, x: Any) -> Any:
    """The root with a real part that is not negative, of parts that are scaled by a power of 4."""
    re, im = parts(n, x)
    zero, half = n.const(0.0, re), n.const(0.5, re)
    large, _ = _sizes(n, x)
    most, least = (2.0**1000, 2.0**-900) if n.dtype(re) == "float64" else (2.0**120, 2.0**-90)
    huge, tiny = n.gt(large, n.const(most, re)), n.lt(large, n.const(least, re))

    def scale(down: float, up: float) -> Any:
        one = n.select(tiny, n.const(up, re), n.const(1.0, re))
        return n.select(huge, n.const(down, re), one)

    before, after = scale(2.0**-4, 2.0**60), scale(2.0**2, 2.0**-30)
    a, b = n.mul(re, before), n.mul(im, before)
    size = n.hypot(a, b)
    root = n.sqrt(n.mul(half, n.add(size, n.abs(a))))  # the larger part of the result
    other = n.select(n.eq(root, zero), zero, n.div(n.mul(half, n.abs(b)), root))
    root, other = n.mul(root, after), n.mul(other, after)
    right = n.not_(n.lt(re, zero))
    found_re = n.select(right, root, other)
    found_im = n.copysign(n.select(right, other, root), im)
    return _sqrt_of_infinite(n, (re, im), found_re, found_im)


def _sqrt_of_infinite(n: Any, of: tuple[Any, Any], re: Any, im: Any) -> Any:
    """The parts of a root, replaced where a part of its argument is infinite."""
    a, b = of
    zero, infinite = n.const(0.0, a), n.const(inf, a)
    left = n.and_(n.isinf(a), n.lt(a, zero))
    right = n.and_(n.isinf(a), n.gt(a, zero))
    nan = n.isnan(b)
    re = n.select(right, infinite, n.select(left, n.select(nan, b, zero), re))
    im = n.select(right, n.select(nan, b, n.copysign(zero, b)), im)
    im = n.select(left, n.copysign(infinite, b), im)
    above = n.isinf(b)
    return n.complex(n.select(above, infinite, re), n.select(above, b, im))


#: For an instruction, the function of a builder and of complex values that computes it.
FORMS: dict[str, Form] = {
    "add": _each("add"),
    "sub": _each("sub"),
    "mul": _mul,
    "div": _div,
    "neg": _each("neg"),
    "abs": _abs,
    "min": _extreme("le"),
    "max": _extreme("ge"),
    "eq": _eq,
    "ne": _ne,
    "lt": _ordered("lt", "lt"),
    "le": _ordered("lt", "le"),
    "gt": _ordered("gt", "gt"),
    "ge": _ordered("gt", "ge"),
    "isnan": _either("isnan"),
    "isinf": _either("isinf"),
    "exp": _exp,
    "log": _log,
    "log2": _log_to(2.0),
    "log10": _log_to(10.0),
    "sqrt": _sqrt,
}
