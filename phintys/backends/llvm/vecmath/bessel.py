"""i0e and i1e of `vecmath`: modified Bessel functions of the first kind times exp(-|x|).

Up to 0.8 the first term and a polynomial, up to 5 a polynomial in x - 2.75; above, a polynomial in
10/x - 1 divided by sqrt(x) (DLMF 10.40.1).
"""

from __future__ import annotations

from collections.abc import Callable

from phintys.backends.llvm.vecmath.body import Body
from phintys.backends.llvm.vecmath.special_coefficients import COEFFICIENTS

#: The derivatives between 0.8 and 1, where x - 2.75 is rounded, within 25 %.
_SLOPES = {"i0e": -0.29, "i1e": 0.07}


def _from_small_on(b: Body, a: str, name: str, kind: str) -> str:
    """The function for a >= 0.8."""
    t = b.sub(a, 2.75)
    first, second, *others = COEFFICIENTS[f"{name}_mid", kind]
    second = b.fma(b.sub(a, b.add(t, 2.75)), _SLOPES[name], second)
    middle = b.leading(t, (first, second, *others))
    inverse, root = b.div(10.0, a), b.intrinsic("sqrt", a)
    far = b.div(b.leading(b.sub(inverse, 1.0), COEFFICIENTS[f"{name}_far", kind]), root)
    lost = b.mul(b.fma(b.neg(root), root, a), b.mul(inverse, -0.05))  # of the root, relative
    far = b.select(b.compare("olt", a, 1e300), b.fma(far, lost, far), far)
    return b.select(b.compare("olt", a, 5.0), middle, far)


def i0e(b: Body, x: str, kind: str) -> str:
    a = b.abs(x)
    small = b.fma(b.neg(a), b.from_first(a, COEFFICIENTS["i0e_small", kind], 2), 1.0)
    return b.select(b.compare("olt", a, 0.8), small, _from_small_on(b, a, "i0e", kind))


def i1e(b: Body, x: str, kind: str) -> str:
    a = b.abs(x)
    first, *others = COEFFICIENTS["i1e_small", kind]
    half, bend = b.mul(a, 0.5), b.from_first(a, (first - 0.5, *others), 3)
    small = b.fma(b.neg(b.mul(a, a)), bend, b.fma(b.neg(half), a, half))
    found = b.select(b.compare("olt", a, 0.8), small, _from_small_on(b, a, "i1e", kind))
    return b.copysign(found, x)


#: name -> function of (body, argument, kind of coefficients), in float64
FUNCTIONS: dict[str, Callable[[Body, str, str], str]] = {"i0e": i0e, "i1e": i1e}
