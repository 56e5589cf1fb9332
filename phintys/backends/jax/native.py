"""The native instructions of scalar ops (`phintys.scalar.native`) as JAX functions.

Every scalar op with a native form, a user's too, thereby has a JAX function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

from phintys.scalar.conversion import converted
from phintys.scalar.native import PROBE, SCIPY_CALLS, VIA
from phintys.scalar.op import ScalarOp


def astype(x: Any, dtype: str) -> Any:
    """``x`` as a JAX array of a dtype, as `phintys.scalar.conversion` defines it."""
    x = jnp.asarray(x)
    if x.dtype.name == dtype:
        return x
    target = np.dtype(dtype).kind
    if x.dtype.kind == "c" and target not in "cb":
        x = x.real
    return _to_integer(x, dtype) if x.dtype.kind == "f" and target in "iu" else x.astype(dtype)


def _to_integer(x: Any, dtype: str) -> Any:
    """Floats as integers; `phintys.scalar.conversion` defines NaN and values out of range."""
    x = x.astype(jnp.promote_types(x.dtype, "float32"))
    if dtype == "uint32":  # not through int64, since 64-bit dtypes may be disabled in JAX
        rest = jnp.fmod(jnp.where(jnp.abs(x) < 2.0**63, jnp.trunc(x), 0), 2.0**32)
        size = jnp.abs(rest).astype("uint32")
        return jnp.where(rest < 0, 0 - size, size)
    if dtype != "uint64":
        return _to_signed(x, VIA[dtype]).astype(dtype)
    high = x >= 2.0**63
    low = _to_signed(jnp.where(high, x - 2.0**63, x), "int64").astype("uint64")
    return low ^ jnp.where(high, np.uint64(2**63), np.uint64(0))


def _to_signed(x: Any, dtype: str) -> Any:
    """Floats as int32 or int64; the least integer for NaN and values out of range."""
    limit = -float(np.iinfo(dtype).min)
    return jnp.where(jnp.abs(x) < limit, x, -limit).astype(dtype)


def _zero_for_zero_divisor(divide: Any) -> Any:
    """The integer division ``divide``, with result 0 if the divisor is 0."""

    def compute(a: Any, b: Any) -> Any:
        zero = b == 0
        return jnp.where(zero, 0, divide(a, jnp.where(zero, 1, b))).astype(a.dtype)

    return compute


INSTRUCTIONS: dict[str, Any] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
    "fma": lambda a, b, c: a * b + c,
    "idiv": _zero_for_zero_divisor(jnp.floor_divide),
    "imod": _zero_for_zero_divisor(jnp.remainder), "fmod": jnp.fmod,
    "neg": jnp.negative, "abs": jnp.abs, "min": jnp.minimum, "max": jnp.maximum,
    "eq": jnp.equal, "ne": jnp.not_equal, "lt": jnp.less, "le": jnp.less_equal,
    "gt": jnp.greater, "ge": jnp.greater_equal,
    "and": jnp.bitwise_and, "or": jnp.bitwise_or, "xor": jnp.bitwise_xor, "not": jnp.bitwise_not,
    "shl": jnp.left_shift, "shr": jnp.right_shift, "select": jnp.where, "pow": jnp.power,
    "asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan, "atan2": jnp.arctan2,
    "asinh": jnp.arcsinh, "acosh": jnp.arccosh, "atanh": jnp.arctanh,
    "sigmoid": jax.nn.sigmoid, "softplus": jax.nn.softplus, "erf": jax.scipy.special.erf,
    "erfc": jax.scipy.special.erfc,
    "log1mexp": lambda a: jnp.where(
        a < -0.6931471805599453, jnp.log1p(-jnp.exp(a)), jnp.log(-jnp.expm1(a))
    ),
}  # fmt: skip


def psi(x: Any) -> Any:
    """The digamma function; that of JAX is NaN at the pole at 0."""
    return jnp.where(x == 0, -jnp.copysign(jnp.inf, x), jax.scipy.special.digamma(x))


def gammaln(x: Any) -> Any:
    """The logarithm of the gamma function; that of JAX is inf at -inf, SciPy's is -inf."""
    return jnp.where(x == -jnp.inf, -jnp.inf, jax.scipy.special.gammaln(x))


CALLS: dict[str, Any] = {
    "tgamma": jax.scipy.special.gamma, "lgamma": gammaln, "gammaln": gammaln, "psi": psi,
}  # fmt: skip
#: functions of SciPy that JAX does not have
MISSING = frozenset(SCIPY_CALLS) - frozenset(dir(jax.scipy.special)) - {"psi"}


class _Instructions:
    """The `Native` whose instructions are computed by JAX; values are JAX arrays."""

    @staticmethod
    def const(value: float, like: Any) -> Any:
        dtype = like if isinstance(like, str) else like.dtype
        return jnp.asarray(converted(np.asarray(value), dtype))

    @staticmethod
    def cast(x: Any, dtype: str) -> Any:
        return astype(x, dtype)

    @staticmethod
    def dtype(x: Any) -> str:
        return str(x.dtype)

    @staticmethod
    def call(name: str, *args: Any) -> Any:
        function = CALLS.get(name) or getattr(jax.scipy.special, name, None)
        return (function or getattr(jnp, name))(*args)

    def __getattr__(self, name: str) -> Any:
        key = name.rstrip("_")
        return INSTRUCTIONS.get(key) or getattr(jnp, key)


JaxInstructions = _Instructions()


class _Calls:
    """The probe of `phintys.scalar.native` that records the names of called functions."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def call(self, name: str, *args: Any) -> Any:
        self.names.add(name)
        return PROBE.call(name, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(PROBE, name)


def has_all(op: ScalarOp, dtypes: Sequence[str]) -> bool:
    """Whether the op has a native form for these dtypes that calls only functions JAX has."""
    calls = _Calls()
    return op.emit(calls, *dtypes) is not NotImplemented and not calls.names & MISSING
