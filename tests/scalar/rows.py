"""What the generated tests of the scalar tables share: rows, points, exact references."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np

import phintys.scalar  # noqa: F401  (fills the table)
from phintys.scalar.op import TABLE, ScalarOp

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
CASTS = [name for name in TABLE if name.startswith("cast_")]
ROWS = [name for name in TABLE if name not in CASTS]


def arity(op: ScalarOp) -> int:
    """The number of arguments to test with."""
    return 3 if op.nin < 0 else op.nin


def accepts(op: ScalarOp, *given: str) -> bool:
    """Whether the op is defined for these dtypes."""
    try:
        op.output_dtypes(*given)
    except TypeError:
        return False
    return True


def domains(op: ScalarOp) -> list[tuple[float, float]]:
    """A bounded interval for each argument, inside of its domain."""
    found = op.facts.get("domain", (-5.0, 5.0))
    per_argument = found if isinstance(found[0], tuple) else [found] * arity(op)
    return [_bounded(lo, hi) for lo, hi in per_argument]


def _bounded(lo: float, hi: float) -> tuple[float, float]:
    if math.isinf(lo):
        lo = min(hi, 5.0) - 10.0
    if math.isinf(hi):
        hi = lo + 8.0
    margin = 0.02 * (hi - lo)
    return lo + margin, hi - margin


def points(name: str, count: int = 4) -> list[np.ndarray]:
    """Random arguments in the domain; the order of polygamma and conditions are integers."""
    op = TABLE[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    found = [rng.uniform(lo, hi, count) for lo, hi in domains(op)]
    if name in ("polygamma", "switch"):
        found[0] = rng.integers(0, 2, count)
    return found


def edges(dtype: str) -> np.ndarray:
    """Special and ordinary values of a dtype."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        info = np.iinfo(dtype)
        small = [0, 1, 2, 3, 5, 7, info.max, info.max - 1, info.min]
        return np.array(small + ([-1, -2, -7] if kind == "i" else []), dtype)
    plain = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.7, 0.49999997, 1e-4]
    wild = [np.nan, np.inf, -np.inf, 30.0, -30.0, 800.0, -800.0]
    if kind == "c":
        parts = np.array([0.0, 1.0, -1.5, 2.0])
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    info_f = np.finfo(dtype)
    limits = [info_f.max, -info_f.max, info_f.tiny, 0.5 - info_f.eps / 4]
    with np.errstate(over="ignore"):
        return np.array(plain + wild + limits, dtype)


def grid(*values: np.ndarray) -> list[np.ndarray]:
    """All combinations, as equally long vectors."""
    return [m.ravel() for m in np.meshgrid(*values, indexing="ij")]


def _bessel_scaled(f: Any, factor: Any) -> Any:
    return lambda v, x: f(v, x) * factor(x)


def _lower(k: Any, x: Any) -> Any:
    return mp.gammainc(k, 0, x, regularized=True)


def _upper(k: Any, x: Any) -> Any:
    return mp.gammainc(k, x, mp.inf, regularized=True)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _invert(f: Any, lo: Any, hi: Any, y: Any) -> Any:
    """The x between lo and hi with f(x) = y, by bisection (monotone f)."""
    rising = f(hi) > f(lo)
    for _ in range(140):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if (f(middle) < y) == rising else (lo, middle)
    return (lo + hi) / 2


def _owens(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def _normal_quantile(p: Any) -> Any:
    return -mp.sqrt(2) * mp.erfinv(1 - 2 * p)


#: name -> the function in mpmath, real arguments
REFERENCE: dict[str, Any] = {
    "add": lambda x, y, z: x + y + z,
    "mul": lambda x, y, z: x * y * z,
    "mul_without_zeros": lambda x, y: x * y if x and y else x + y,
    "sub": lambda x, y: x - y,
    "neg": lambda x: -x,
    "true_div": lambda x, y: x / y,
    "reciprocal": lambda x: 1 / x,
    "int_div": lambda x, y: mp.floor(x / y),
    "mod": lambda x, y: x - y * mp.floor(x / y),
    "fmod": lambda x, y: x - y * (mp.floor(x / y) if x / y > 0 else mp.ceil(x / y)),
    "sqr": lambda x: x * x,
    "sqrt": mp.sqrt,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "pow": lambda x, y: x**y,
    "hypot": mp.hypot,
    "abs": abs,
    "sign": mp.sign,
    "heaviside": lambda x, y: mp.mpf(x > 0) if x else y,
    "copysign": lambda x, y: abs(x) * (1 if y >= 0 else -1),
    "maximum": max,
    "minimum": min,
    "ceil": mp.ceil,
    "floor": mp.floor,
    "trunc": lambda x: mp.floor(x) if x > 0 else mp.ceil(x),
    "round_half_to_even": mp.nint,
    "round_half_away_from_zero": lambda x: mp.sign(x) * mp.floor(abs(x) + 0.5),
    "identity": lambda x: x,
    "second": lambda x, y: y,
    "switch": lambda c, x, y: x if c else y,
    "clip": lambda x, lo, hi: min(max(x, lo), hi),
    "real": lambda x: x,
    "imag": lambda x: mp.mpf(0),
    "angle": lambda x: mp.mpf(0) if x >= 0 else mp.pi,
    "conj": lambda x: x,
    "exp": mp.exp,
    "exp2": lambda x: mp.mpf(2) ** x,
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10,
    "log1p": mp.log1p,
    "log1mexp": lambda x: mp.log(-mp.expm1(x)),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "tanh_half": lambda x: mp.tanh(x / 2),
    "logistic_density": lambda x: mp.exp(-abs(x)) / (1 + mp.exp(-abs(x))) ** 2,
    "softplus": lambda x: mp.log1p(mp.exp(x)),
    "log_softplus": lambda x: mp.log(mp.log1p(mp.exp(x))),
    "exp_diff": lambda x, y: mp.exp(x - y),
    "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "logit": lambda x: mp.log(x / (1 - x)),
    "log_expit": lambda x: -mp.log1p(mp.exp(-x)),
    "xlogy": lambda x, y: x * mp.log(y),
    "xlog1py": lambda x, y: x * mp.log1p(y),
    "entr": lambda x: -x * mp.log(x),
    "rel_entr": lambda x, y: x * mp.log(x / y),
    "kl_div": lambda x, y: x * mp.log(x / y) - x + y,
    "exp1": mp.e1,
    "expi": mp.ei,
    "spence": lambda x: mp.polylog(2, 1 - x).real,
    "sin": mp.sin,
    "cos": mp.cos,
    "cosm1": lambda x: mp.cos(x) - 1,
    "tan": mp.tan,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "log_cosh": lambda x: mp.log(mp.cosh(x)),
    "tanh": mp.tanh,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "deg2rad": mp.radians,
    "rad2deg": mp.degrees,
    "sinc": mp.sincpi,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "log_erfc": lambda x: mp.log(mp.erfc(x)),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "erfinv": mp.erfinv,
    "erfcinv": lambda x: mp.erfinv(1 - x),
    "dawsn": lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
    "ndtr": mp.ncdf,
    "log_ndtr": lambda x: mp.log(mp.ncdf(x)),
    "ndtri": _normal_quantile,
    "ndtri_exp": lambda x: _normal_quantile(mp.exp(x)),
    "gamma": mp.gamma,
    "gammaln": mp.loggamma,
    "psi": lambda x: mp.psi(0, x),
    "tri_gamma": lambda x: mp.psi(1, x),
    "polygamma": lambda n, x: mp.psi(int(n), x),
    "gammaln_increment": lambda x, h: mp.loggamma(x + h) - mp.loggamma(x),
    "psi_increment": lambda x, h: mp.psi(0, x + h) - mp.psi(0, x),
    "tri_gamma_increment": lambda x, h: mp.psi(1, x + h) - mp.psi(1, x),
    "poch": mp.rf,
    "zeta": mp.zeta,
    "gammainc": _lower,
    "gammaincc": _upper,
    "gammaincinv": lambda k, p: _invert(lambda x: _lower(k, x), mp.mpf(0), mp.mpf(60), p),
    "gammainccinv": lambda k, p: _invert(lambda x: _upper(k, x), mp.mpf(0), mp.mpf(60), p),
    "gammainc_der": lambda k, x: mp.diff(lambda t: _lower(t, x), k),
    "gammainc_der2": lambda k, x: mp.diff(lambda t: _lower(t, x), k, 2),
    "gammal": lambda k, x: mp.gammainc(k, 0, x),
    "gammau": lambda k, x: mp.gammainc(k, x, mp.inf),
    "chi2sf": lambda x, k: _upper(k / 2, x / 2),
    "beta": mp.beta,
    "betaln": lambda a, b: mp.log(mp.beta(a, b)),
    "betainc": _beta,
    "betainc_der_a": lambda a, b, x: mp.diff(lambda t: _beta(t, b, x), a),
    "betainc_der_b": lambda a, b, x: mp.diff(lambda t: _beta(a, t, x), b),
    "betainc_der_aa": lambda a, b, x: mp.diff(lambda t: _beta(t, b, x), a, 2),
    "betainc_der_ab": lambda a, b, x: mp.diff(lambda s, t: _beta(s, t, x), (a, b), (1, 1)),
    "betainc_der_bb": lambda a, b, x: mp.diff(lambda t: _beta(a, t, x), b, 2),
    "betaincinv": lambda a, b, p: _invert(lambda x: _beta(a, b, x), mp.mpf(0), mp.mpf(1), p),
    "hyp2f1": mp.hyp2f1,
    "hyp2f1_der_a": lambda a, b, c, z: mp.diff(lambda t: mp.hyp2f1(t, b, c, z), a),
    "hyp2f1_der_c": lambda a, b, c, z: mp.diff(lambda t: mp.hyp2f1(a, b, t, z), c),
    "hyp2f1_der_aa": lambda a, b, c, z: mp.diff(lambda t: mp.hyp2f1(t, b, c, z), a, 2),
    "hyp2f1_der_ab": lambda a, b, c, z: mp.diff(lambda s, t: mp.hyp2f1(s, t, c, z), (a, b), (1, 1)),
    "hyp2f1_der_ac": lambda a, b, c, z: mp.diff(lambda s, t: mp.hyp2f1(s, b, t, z), (a, c), (1, 1)),
    "hyp2f1_der_cc": lambda a, b, c, z: mp.diff(lambda t: mp.hyp2f1(a, b, t, z), c, 2),
    "owens_t": _owens,
    "jv": mp.besselj,
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "yv": mp.bessely,
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
    "iv": mp.besseli,
    "ive": _bessel_scaled(mp.besseli, lambda x: mp.exp(-abs(x))),
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "log_i0": lambda x: mp.log(mp.besseli(0, x)),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "kv": mp.besselk,
    "kve": _bessel_scaled(mp.besselk, mp.exp),
    "k0": lambda x: mp.besselk(0, x),
    "k1": lambda x: mp.besselk(1, x),
}
