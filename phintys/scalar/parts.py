"""Table: complex numbers and their parts.

For the derivatives of functions that are not holomorphic see `ScalarOp.partials`.
"""

from __future__ import annotations

from typing import Any

from phintys.scalar import rules
from phintys.scalar.dtypes import float_of, is_complex, is_discrete, upcast
from phintys.scalar.op import ScalarOp, binary, unary


def _real(n: Any, x: Any) -> Any:
    return n.real(x) if is_complex(n.dtype(x)) else x


def _imag(n: Any, x: Any) -> Any:
    dtype = n.dtype(x)
    if is_complex(dtype):
        return n.imag(x)
    return n.xor(x, x) if dtype == "bool" else n.const(0, x)


real = unary(
    "Real",
    "real",
    "The real part.",
    rule=rules.real_part,
    d=lambda m, x, y: 1.0,
    native=_real,
    idempotent=True,
    zero_at_zero=True,
)
imag = unary(
    "Imag",
    "imag",
    "The imaginary part; 0 for real numbers.",
    rule=rules.real_part,
    d=lambda m, x, y: -1j if is_complex(x.type.dtype) else None,
    native=_imag,
    zero_at_zero=True,
)
angle = unary(
    "Angle",
    "angle",
    "The argument of a complex number in [-pi, pi]; 0 or pi for real ones.",
    rule=lambda x: ((rules.inexact(x)[1],), rules.real_part(rules.inexact(x)[1])[1]),
    d=lambda m, x, y: -1j / x if is_complex(x.type.dtype) else None,
    native=lambda n, x: n.atan2(_imag(n, x), _real(n, x)),
)


def _conj_rule(x: str) -> rules.Signature:
    """The dtype of the input; int8 for bool, as NumPy."""
    dtype = "int8" if x == "bool" else x
    return (dtype,), dtype


def _conj(n: Any, x: Any) -> Any:
    return n.complex(n.real(x), n.neg(n.imag(x))) if is_complex(n.dtype(x)) else x


def _conj_cotangents(self: ScalarOp, m: Any, inputs: Any, outputs: Any, given: Any) -> list[Any]:
    (x,), (g,) = inputs, given
    if is_discrete(x.type.dtype) or not hasattr(g.type, "dtype"):
        return [None]
    return [_conjugate(m, g)]


def _conj_tangents(self: ScalarOp, m: Any, inputs: Any, outputs: Any, given: Any) -> Any:
    (t,) = given
    return None if t is None else _conjugate(m, t)


def _conjugate(m: Any, g: Any) -> Any:
    return m.conj(g) if is_complex(g.type.dtype) else g


conj = unary(
    "Conj",
    "conj",
    "The complex conjugate; real numbers as they are.",
    function="numpy.conjugate",
    rule=_conj_rule,
    d=lambda m, x, y: 1.0,
    cotangents=_conj_cotangents,
    tangents=_conj_tangents,
    native=_conj,
    inverse="conj",
    odd=True,
    zero_at_zero=True,
)


def _parts_rule(x: str, y: str) -> rules.Signature:
    """Real inputs, and the complex dtype that holds both."""
    common = float_of(upcast(*rules.no_complex((x, y))))
    wide = "float64" if common == "float64" else "float32"
    return (wide, wide), "complex128" if wide == "float64" else "complex64"


complex = binary(
    "Complex",
    "complex",
    "The complex number with real part x and imaginary part y.",
    function="phintys.scalar.numeric.complex_from_parts",
    rule=_parts_rule,
    d=lambda m, x, y, z: (1.0, 1j),
    native="complex",
)
complex_from_polar = binary(
    "ComplexFromPolar",
    "complex_from_polar",
    "The complex number with magnitude x and argument y.",
    function="phintys.scalar.numeric.complex_from_polar",
    rule=_parts_rule,
    d=lambda m, r, t, z: (m.complex_from_polar(1.0, t), z * 1j),
    native=lambda n, r, t: n.complex(n.mul(r, n.cos(t)), n.mul(r, n.sin(t))),
    domain=((0.2, 5), (-3, 3)),
)
