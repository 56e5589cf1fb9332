"""i0e and i1e of `vecmath`: modified Bessel functions of the first kind times exp(-|x|).

Up to 5 a polynomial; above, a polynomial in 10/x - 1 divided by sqrt(x) (DLMF 10.40.1).
"""

from __future__ import annotations

from collections.abc import Callable

from phintys.backends.llvm.vecmath.body import Body
from phintys.backends.llvm.vecmath.special_coefficients import COEFFICIENTS


def _parts(b: Body, a: str, name: str, kind: str) -> tuple[str, str]:
    """The polynomials for a <= 5 and for a >= 5, the latter divided by sqrt(a)."""
    near = b.polynomial(b.fma(a, 0.4, -1.0), COEFFICIENTS[f"{name}_near", kind])
    inverse, root = b.div(10.0, a), b.intrinsic("sqrt", a)
    far = b.polynomial(b.sub(inverse, 1.0), COEFFICIENTS[f"{name}_far", kind])
    far = b.div(far, root)
    lost = b.mul(b.fma(b.neg(root), root, a), b.mul(inverse, -0.05))  # of the root, relative
    return near, b.select(b.compare("olt", a, 1e300), b.fma(far, lost, far), far)


def i0e(b: Body, x: str, kind: str) -> str:
    a = b.abs(x)
    near, far = _parts(b, a, "i0e", kind)
    return b.select(b.compare("olt", a, 5.0), near, far)


def i1e(b: Body, x: str, kind: str) -> str:
    a = b.abs(x)
    near, far = _parts(b, a, "i1e", kind)
    return b.copysign(b.select(b.compare("olt", a, 5.0), b.mul(near, a), far), x)


#: name -> function of (body, argument, kind of coefficients), in float64
FUNCTIONS: dict[str, Callable[[Body, str, str], str]] = {"i0e": i0e, "i1e": i1e}
