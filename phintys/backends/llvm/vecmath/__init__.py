"""A vector math library as LLVM IR text: branch-free functions on ``<W x T>``.

`define` returns the text of one function, `symbol` its name, `requirements` the ``declare`` lines
that its module must contain once (collect them in a set).  Width 1 takes and returns the plain
``double`` or ``float``; wider ones take vectors.  A lane's result depends neither on the width
nor on the other lanes.

>>> print(define("exp2", "float32", 1).splitlines()[0])
define internal float @phintys.exp2.f32.v1(float %a) noinline nounwind willreturn memory(none) {
>>> sorted(requirements("exp2", "float32", 4))
['declare <4 x float> @llvm.fmuladd.v4f32(<4 x float>, <4 x float>, <4 x float>)']

Algorithms
    Argument reduction by constants of few bits (Cody and Waite), a polynomial (`coefficients`,
    by a minimax fit), reconstruction through the bits of the exponent.
    The logarithms follow the formulas of fdlibm (s = f/(2 + f)), pow its scheme of numbers split
    into head and tail.  sinh and cosh use polynomials for both and their addition theorems.  A
    cube root is a short polynomial and one correction of high order.
    Where the processor has no fused multiply-add, ``llvm.fmuladd`` becomes a multiplication and an
    addition: what corrects the rounding of a product is 0 then.  Fast-math flags are not
    allowed, because the algorithms rely on exact rounding.

float32
    sin, cos, tan, log2, log10, pow, cbrt, hypot and erfc compute in float64, most with
    shorter polynomials; the others in float32.

    The functions of `gamma`, `normal` and `bessel` compute in float64, too.

Slow paths
    sin, cos and tan call libm for those lanes that are above 5e4 in magnitude (float32: 1e6), in
    a separate cold function; those of `gamma` but betaln have one for negative arguments.  No other
    function makes calls.

Calls
    Every function is ``noinline``: each takes 1 to 10 ms of code generation (erfc 15), while the
    call costs 1 ns.  The bodies are bound by latency and by loading constants.  Two native
    registers (8 doubles or 16 floats with AVX2) are the best width: as fast as inlined code of any
    width and a quarter faster than one register; with four, registers spill.  Only pow is as fast
    with one register, in half the code.  Vector registers are caller-saved, as usual in the
    platform's calling convention.

Accuracy (greatest error met, in ulps: 90,000 points in float64, 10 million in float32)
    float64: below 0.9 log log1p log2 log10 sin cos cbrt; below 1.3 exp exp2 pow tan asin acos
    cosh asinh acosh atanh hypot log1mexp; below 1.6 erf expm1 sigmoid softplus sinh tanh atan
    atan2; 1.8 erfc.  float32: below 0.8 sin cos tan log2 log10 pow cbrt hypot erfc; 1.9 softplus
    cosh; below 1.7 the others.  Without a fused multiply-add errors grow by at most 0.3, erfc's by
    0.8.
    Functions of `gamma`, `normal`, `bessel`, as ``python benchmarks/accuracy.py`` prints them from
    points that include the worst of 100,000 in each range: 1.2 gamma erfinv; 1.3 ndtr; 1.7 gammaln
    psi trigamma erfcx erfcinv i0e; 1.8 log_ndtr ndtri i1e; 1.9 betaln.  In ulps of 1 if the result
    is smaller: betaln, and gammaln and psi below 0.  float32: 0.51.  Without a fused multiply-add
    up to 3; below 0, where products of two parts are lost, gamma 3.2, trigamma 4.4, gammaln 5.5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from phintys.backends.llvm.vecmath import (
    arc,
    bessel,
    exp_log,
    gamma,
    hyperbolic,
    normal,
    root,
    trig,
)
from phintys.backends.llvm.vecmath.body import FORMATS, Body
from phintys.backends.llvm.vecmath.pow import power

_ATTRIBUTES = "nounwind willreturn memory(none)"


def symbol(name: str, dtype: str, width: int) -> str:
    """The symbol of the function, without ``@``.

    >>> symbol("tanh", "float64", 4)
    'phintys.tanh.f64.v4'
    """
    return f"phintys.{name}.{FORMATS[dtype].suffix}.v{width}"


def define(name: str, dtype: str, width: int) -> str:
    """The text of the function (and of its slow path, if it has one).

    ``name`` is one of `SUPPORTED`, ``dtype`` float64 or float32, ``width`` a power of two.

    Raises:
        ValueError: no such function, dtype or width.
    """
    return _function(name, dtype, width)[0]


def requirements(name: str, dtype: str, width: int) -> frozenset[str]:
    """The ``declare`` lines that a module with this function needs, each once."""
    return _function(name, dtype, width)[1]


@lru_cache(maxsize=512)
def _function(name: str, dtype: str, width: int) -> tuple[str, frozenset[str]]:
    if name not in SUPPORTED or dtype not in FORMATS:
        raise ValueError(f"no vector function {name!r} of {dtype}")
    if width < 1 or width & (width - 1):
        raise ValueError(f"{name}: the width is a power of two, not {width}")
    body = Body(dtype, width, [], set())
    if name in gamma.FUNCTIONS:
        return _with_reflection(name, body)
    args = ["%a", "%b"] if name in BINARY else ["%a"]
    result = _BODIES[name](body, *args)
    full = symbol(name, dtype, width)
    if name not in trig.FUNCTIONS:
        text = _wrap(full, body, args, [*body.lines, f"  ret {body.type} {result}"])
        return text, frozenset(body.declares)
    slow = f"{full}.slow"
    rare = trig.is_far(body, "%a")
    text = _wrap(
        full, body, args, [*body.lines, *body.guard(body, rare, result, slow, "%a", result)]
    )
    text += _wrap(slow, body, ["%a", "%b"], trig.slow_path(body, name), "noinline cold")
    return text, frozenset(body.declares)


def _with_reflection(name: str, body: Body) -> tuple[str, frozenset[str]]:
    """The text of a function of `gamma`, computed in float64, with its slow path."""
    wide, kind, (x,) = _in_float64(body, "%a")
    full = symbol(name, body.format.dtype, body.width)
    y, lost = gamma.FUNCTIONS[name](wide, x, kind)
    rare = wide.any(wide.compare("olt", x, gamma.LIMITS[name]))
    lines = [*body.lines, *body.guard(wide, rare, y, f"{full}.slow", x, y, lost)]
    text = _wrap(full, body, ["%a"], lines)
    inner = Body("float64", body.width, [], body.declares)
    lines = gamma.slow_path(inner, name, kind)
    text += _wrap(f"{full}.slow", inner, ["%a", "%b", "%c"], lines, "noinline cold")
    return text, frozenset(body.declares)


def _in_float64(b: Body, *args: str) -> tuple[Body, str, list[str]]:
    """A float64 body, the kind of its coefficients, and the arguments in float64."""
    if b.format.bits == 64:
        return b, "float64", list(args)
    wide = b.widened()
    return wide, "narrow", [b.extend_to(wide, x) for x in args]


def _special(core: Callable[..., str]) -> Callable[..., str]:
    """The emitter of a function that is computed in float64."""

    def emit(b: Body, *args: str) -> str:
        wide, kind, values = _in_float64(b, *args)
        y = core(wide, *values, kind)
        return y if wide is b else b.truncate_from(wide, y)

    return emit


def _wrap(
    name: str, body: Body, args: list[str], lines: list[str], attributes: str = "noinline"
) -> str:
    parameters = ", ".join(f"{body.type} {a}" for a in args)
    head = f"define internal {body.type} @{name}({parameters}) {attributes} {_ATTRIBUTES} {{"
    return "\n".join([head, *lines, "}", ""])


#: name -> function that emits its body: (body, argument names) -> the name of the result.
_BODIES: dict[str, Callable[..., str]] = {
    "exp": exp_log.exp,
    "exp2": exp_log.exp2,
    "expm1": exp_log.expm1,
    "log": exp_log.log,
    "log2": exp_log.log2,
    "log10": exp_log.log10,
    "log1p": exp_log.log1p,
    "tanh": exp_log.tanh,
    "sigmoid": exp_log.sigmoid,
    "softplus": exp_log.softplus,
    "log1mexp": exp_log.log1mexp,
    "erf": exp_log.erf,
    "erfc": exp_log.erfc,
    "pow": power,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "asin": arc.asin,
    "acos": arc.acos,
    "atan": arc.atan,
    "atan2": arc.atan2,
    "cbrt": root.cbrt,
    "hypot": root.hypot,
    **trig.FUNCTIONS,
    "betaln": _special(gamma.betaln),
    **{name: _special(core) for name, core in (normal.FUNCTIONS | bessel.FUNCTIONS).items()},
}

#: functions that the instruction ``call`` names, and trigamma, which is zeta(2, x)
CALLED = frozenset(
    {"betaln"} | gamma.FUNCTIONS.keys() | normal.FUNCTIONS.keys() | bessel.FUNCTIONS.keys()
)
SUPPORTED = frozenset(_BODIES) | CALLED
#: Functions for arguments above 0 and up to a bound, or NaN; for others kernels call SciPy's.
BOUNDED = {"betaln": 2.0**100}

#: functions of two arguments
BINARY = frozenset(("pow", "atan2", "hypot", "betaln"))
