"""JAX functions of elementwise ops, reductions, softmax and cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

from phintys.assumptions import SpecifyAssumptions
from phintys.backends.jax.dispatch import (
    TRACE_TIME_OPS,
    call_back,
    jax_funcify,
    one_or_tuple,
    perform,
    require,
)
from phintys.backends.jax.native import JaxInstructions, astype, gammaln, has_all, psi
from phintys.gradient.barriers import TypeCastingOp
from phintys.graph.shapes import check_shapes
from phintys.graph.variable import Apply
from phintys.scalar import increments
from phintys.scalar.arith import Cast
from phintys.scalar.composite import Composite
from phintys.scalar.dtypes import is_complex, kind
from phintys.scalar.loop import ScalarLoop
from phintys.scalar.op import ScalarOp
from phintys.tensor.cumulative import CumOp
from phintys.tensor.elemwise import DimShuffle, Elemwise
from phintys.tensor.others import ProdOthers
from phintys.tensor.recurrence import Recurrence
from phintys.tensor.reduce import Argmax, CAReduce, Max, Min, ProdWithoutZeros
from phintys.tensor.special import LogSoftmax, LogSumExp, Softmax

TRACE_TIME_OPS.extend([Elemwise, ScalarOp, CAReduce, DimShuffle])

# ------------------------------------------------------------------------- scalar functions

#: scalar ops whose native form is used, since the JAX function of that name differs: in division by
#: 0, and at infinity in some versions
NATIVE_FIRST = frozenset(("int_div", "mod", "sinc"))
#: scalar ops that SciPy computes in a callback, since JAX is less accurate
INACCURATE = frozenset(("hyp2f1", "spence", "zeta", "poch", "expi", "polygamma", "beta", "betaln"))
#: the same, since the JAX function does not terminate for some arguments, such as the least integer
ENDLESS = frozenset(("exp1", "gcd", "lcm"))


def _power(x: Any, y: Any) -> Any:
    if kind(x.dtype.name) in "iu":
        require(y >= 0, "An integer to a negative integer power.", ValueError)
    return jnp.power(x, y)


def _c_remainder(x: Any, y: Any) -> Any:
    if kind(x.dtype.name) in "iu":
        return jnp.where(y == 0, 0, jnp.fmod(x, jnp.where(y == 0, 1, y)))
    return jnp.fmod(x, y)


def _tri_gamma(x: Any) -> Any:
    """JAX's function is NaN at infinity, and wrong below 0; there it is reflected (DLMF 5.15.6)."""
    found = jax.scipy.special.polygamma(1, jnp.where(x < 0, 1 - x, x))
    ratio = jnp.pi / jnp.sin(jnp.pi * (x - jnp.round(x)))
    found = jnp.where(x < 0, ratio * ratio - found, found)
    return jnp.where(x == jnp.inf, 0.0, jnp.where(x == -jnp.inf, jnp.inf, found))


def _erfcx(x: Any) -> Any:
    """JAX's function is 0 where erfc is subnormal; there, the asymptotic series (DLMF 7.12.1)."""
    half, series = 0.5 / (x * x), 1.0
    for k in range(11, 0, -2):
        series = 1 - k * half * series
    start = 9 if x.dtype == jnp.float32 else 26
    return jnp.where(x > start, series / (x * jnp.sqrt(jnp.pi)), jax.scipy.special.erfcx(x))


def _log_ndtr(x: Any) -> Any:
    """JAX's function has half of the digits above 5 and below -20; float16 it refuses."""
    x = x.astype("float64")
    above = jnp.log1p(-jax.scipy.special.ndtr(-x))
    below = jnp.log(_erfcx(-x / np.sqrt(2)) / 2) - x * x / 2
    found = jnp.where(x < -1, below, jax.scipy.special.log_ndtr(x))
    return jnp.where(x > 1, above, found)


def _owens_t(h: Any, a: Any) -> Any:
    """JAX's function is NaN at 0 and infinity."""
    greatest = jnp.finfo(a.dtype).max
    return jax.scipy.special.owens_t(h, jnp.clip(a, -greatest, greatest))


def _rel_entr(x: Any, y: Any) -> Any:
    """JAX's function is infinite where ``x / y`` overflows, and inaccurate where both are equal."""
    x, y = (v.astype("float64") for v in jnp.broadcast_arrays(x, y))
    ratio = x / y
    near = x * jnp.log1p((x - y) / y)
    far = x * (jnp.log(x) - jnp.log(y))
    found = jnp.where(jnp.abs(ratio - 1) < 0.5, near, far)
    outside = jnp.where((x == 0) & (y >= 0), 0.0, jnp.inf)
    found = jnp.where((x > 0) & (y > 0), found, outside)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), jnp.nan, found)


def _kl_div(x: Any, y: Any) -> Any:
    """JAX's function is NaN where ``x / y`` overflows, and inaccurate where both are close."""
    x, y = (v.astype("float64") for v in jnp.broadcast_arrays(x, y))
    entropy = _rel_entr(x, y)
    inside = ((x > 0) & (y > 0)) | ((x == 0) & (y >= 0))
    near = jnp.abs(x - y) < increments.NEAR * (x + y)
    found = jnp.where(near, increments.divergence(x, y), entropy - x + y)
    return jnp.where(inside, found, entropy)


#: scalar op -> its function, if that is not JAX's function of the same name
OWN: dict[str, Callable[..., Any]] = {
    "identity": lambda x: x,
    "second": lambda x, y: jnp.broadcast_to(y, jnp.broadcast_shapes(jnp.shape(x), jnp.shape(y))),
    "pow": _power,
    "fmod": _c_remainder,
    "tri_gamma": _tri_gamma,
    "erfcx": _erfcx,
    "psi": psi,
    "gammaln": gammaln,
    "log_ndtr": _log_ndtr,
    "owens_t": _owens_t,
    "rel_entr": _rel_entr,
    "kl_div": _kl_div,
    "complex": jax.lax.complex,
    "complex_from_polar": lambda r, t: jax.lax.complex(r * jnp.cos(t), r * jnp.sin(t)),
}


@jax_funcify.register(ScalarOp)
def jax_funcify_scalar(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """The JAX function of a scalar op, on arrays that broadcast."""
    input_dtypes = [v.type.dtype for v in node.inputs]
    cast_to, result = op.signature(input_dtypes)
    function = jax_function(op, cast_to) or _python_function(op, [result])

    def compute(*values: Any) -> Any:
        args = [astype(x, dt) for x, dt in zip(values, cast_to)]
        return astype(reduce(function, args) if op.nin < 0 else function(*args), result)

    return compute


def jax_function(op: ScalarOp, dtypes: Sequence[str]) -> Callable[..., Any] | None:
    """The JAX function of a scalar op for these dtypes; None if Python has to compute it."""
    mixed = len({dt for dt in dtypes if kind(dt) in "iu"}) > 1
    if mixed or op.name in INACCURATE | ENDLESS:
        return None
    if op.name in NATIVE_FIRST:
        return _native(op, dtypes)
    return OWN.get(op.name) or _namesake(op.function, dtypes) or _native(op, dtypes)


def _namesake(function: str, dtypes: Sequence[str]) -> Callable[..., Any] | None:
    """JAX's function with the name of a function of NumPy or SciPy, or None.

    The special functions of JAX do not support complex dtypes, and float16 only through float32.
    """
    module, _, name = function.rpartition(".")
    if module not in ("numpy", "scipy.special"):
        return None
    if module == "scipy.special" and any(map(is_complex, dtypes)):
        return None
    found = getattr(import_module(f"jax.{module}"), name, None)
    if found is None or module == "numpy" or "float16" not in dtypes:
        return found
    return lambda *args: found(*(x.astype("float32") for x in args))


def _native(op: ScalarOp, dtypes: Sequence[str]) -> Callable[..., Any] | None:
    """The JAX function made from the native form of a scalar op, or None."""
    if not has_all(op, dtypes):
        return None
    return lambda *args: op.emit(JaxInstructions, *args)


def _python_function(op: ScalarOp, results: Sequence[str]) -> Callable[..., Any]:
    """The JAX function that computes a scalar op, with results of these dtypes, in Python."""

    def host(*values: Any) -> Any:
        found = op.compute(*map(np.asarray, values))
        several = found if len(results) > 1 else [found]
        return tuple([np.asarray(x, dt) for x, dt in zip(several, results)])

    def call(*args: Any) -> Any:
        shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in args))
        structs = tuple([jax.ShapeDtypeStruct(shape, dt) for dt in results])
        return one_or_tuple(jax.pure_callback(host, structs, *args, vmap_method="broadcast_all"))

    return call


@jax_funcify.register(ScalarLoop)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return _python_function(op, [v.type.dtype for v in node.outputs])


@jax_funcify.register(Cast)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: astype(x, op.o_type.dtype)


@jax_funcify.register(Composite)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    inner = jax_funcify(op.retyped([v.type.dtype for v in node.inputs]).thawed())

    def compute(*values: Any) -> Any:
        shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in values))
        return one_or_tuple([jnp.broadcast_to(x, shape) for x in inner(*values)])

    return compute


# ------------------------------------------------------------------------------ elementwise


@jax_funcify.register(Elemwise)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    function = jax_funcify(op.scalar_op, node=node, **kwargs)
    if op.scalar_op.nout > 1:
        return _checked(node, function)
    out = node.outputs[0].type

    def compute(*values: Any) -> Any:
        found = astype(function(*values), out.dtype)
        return found if len(values) == 1 else _spread(found, values)

    return _checked(node, compute)


def _checked(node: Apply, function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*values: Any) -> Any:
        if len(values) > 1:
            check_shapes(node, values)
        return function(*values)

    return compute


def _spread(found: Any, values: Sequence[Any]) -> Any:
    return jnp.broadcast_to(found, jnp.broadcast_shapes(*(x.shape for x in values)))


@jax_funcify.register(DimShuffle)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any) -> Any:
        x = jnp.squeeze(jnp.asarray(x), tuple(op.drop))
        rank = {o: i for i, o in enumerate(sorted(op.shuffle))}
        return jnp.expand_dims(x.transpose([rank[o] for o in op.shuffle]), tuple(op.augment))

    return compute


@jax_funcify.register(SpecifyAssumptions)
@jax_funcify.register(TypeCastingOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return lambda x: x


# ------------------------------------------------------------------------------- reductions

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": jnp.sum,
    "mul": jnp.prod,
    "maximum": jnp.max,
    "minimum": jnp.min,
    "and_": jnp.bitwise_and.reduce,
    "or_": jnp.bitwise_or.reduce,
    "xor": jnp.bitwise_xor.reduce,
}


@jax_funcify.register(CAReduce)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    function = REDUCTIONS.get(op.scalar_op.name)
    if function is None:
        return call_back(op, node, **kwargs)
    return _reduction(op, node, function)


@jax_funcify.register(Max)
@jax_funcify.register(Min)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    function = REDUCTIONS[op.scalar_op.name]
    if not op.initial:
        return _reduction(op, node, function)
    initial = op.initial_value(node.inputs[0].type.dtype)
    return _reduction(op, node, lambda x, axis: function(x, axis=axis, initial=initial))


@jax_funcify.register(ProdWithoutZeros)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return _reduction(op, node, lambda x, axis: jnp.prod(jnp.where(x == 0, 1, x), axis=axis))


def _reduction(op: CAReduce, node: Apply, function: Callable[..., Any]) -> Callable[..., Any]:
    axes, out = op.axes(node), node.outputs[0].type.dtype
    accumulator = op.acc_dtype or out

    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        total = function(astype(x, accumulator), axis=axes)
        return astype(astype(total, accumulator), out)  # JAX sums narrow integers in wider ones

    return compute


@jax_funcify.register(Argmax)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    axes, function = op.axes(node), getattr(jnp, op.kind)
    kept = [i for i in range(node.inputs[0].type.ndim) if i not in axes]

    def compute(x: Any) -> Any:
        check_shapes(node, [x])
        flat = jnp.transpose(x, [*kept, *axes]).reshape(
            [*(x.shape[i] for i in kept), int(np.prod([x.shape[a] for a in axes], dtype=int))]
        )
        return function(flat, axis=-1).astype("int64")

    return compute


@jax_funcify.register(CumOp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    function = jnp.cumsum if op.mode == "add" else jnp.cumprod
    dtype = node.outputs[0].type.dtype
    return lambda x: function(x, axis=op.axis, dtype=dtype)


@jax_funcify.register(ProdOthers)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """Products of those before and of those after; in Python where there are directions."""
    if len(node.inputs) > 1:
        return call_back(op, node=node)
    rank, count = node.inputs[0].type.ndim, len(op.axis)
    last = range(rank - count, rank)

    def before(x: Any) -> Any:
        ones = jnp.ones_like(x[..., :1])
        return jnp.cumprod(jnp.concatenate([ones, x[..., :-1]], axis=-1), axis=-1)

    def compute(x: Any) -> Any:
        moved = jnp.moveaxis(x, op.axis, last)
        lengths = moved.shape[: rank - count]
        flat = moved.reshape(*lengths, math.prod(moved.shape[rank - count :]))
        found = before(flat) * before(flat[..., ::-1])[..., ::-1]
        return jnp.moveaxis(found.reshape(moved.shape), last, op.axis)

    return compute


@jax_funcify.register(Recurrence)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def step(s: Any, pair: Any) -> Any:
        s = pair[0] * s + pair[1]
        return s, s

    def compute(a: Any, b: Any) -> Any:
        check_shapes(node, [a, b])
        if not b.shape[op.axis]:
            return b
        a, b = jnp.moveaxis(a, op.axis, 0), jnp.moveaxis(b, op.axis, 0)
        _, later = jax.lax.scan(step, b[0], (a[1:], b[1:]))
        return jnp.moveaxis(jnp.concatenate([b[:1], later]), 0, op.axis)

    return compute


# ---------------------------------------------------------------------------------- softmax


def _on_elements(node: Apply, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``compute``, or ``perform`` if the tensor has no elements (which may raise)."""

    def call(x: Any) -> Any:
        if x.size:
            return compute(x).astype(x.dtype)
        return jnp.asarray(perform(node, [np.empty(x.shape, x.dtype)]))

    return call


@jax_funcify.register(Softmax)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any) -> Any:
        shifted = jnp.exp(x - x.max(axis=op.axis, keepdims=True))
        return shifted / shifted.sum(axis=op.axis, keepdims=True)

    return _on_elements(node, compute)


@jax_funcify.register(LogSoftmax)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    def compute(x: Any) -> Any:
        shifted = x - x.max(axis=op.axis, keepdims=True)
        return shifted - jnp.log(jnp.exp(shifted).sum(axis=op.axis, keepdims=True))

    return _on_elements(node, compute)


@jax_funcify.register(LogSumExp)
def _(op: Any, node: Any = None, **kwargs: Any) -> Any:
    return _on_elements(node, lambda x: jax.scipy.special.logsumexp(x, axis=op.axis))
