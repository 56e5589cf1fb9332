"""Generates Numba source from the native forms of scalar ops.

`Lines` is the `phintys.scalar.native.Native` that generates source: one assignment per instruction,
converted to the dtype of the instruction.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from phintys.backends.numba.dispatch import (
    compiled,
    define,
    in_object_mode,
    jit,
    numba_funcify,
)
from phintys.backends.source import compile_function_src
from phintys.routines.addresses import special
from phintys.scalar import pairs
from phintys.scalar.conversion import converted
from phintys.scalar.dtypes import is_complex, kind
from phintys.scalar.native import INSTRUCTIONS, LIBM_CALLS, PROBE, VIA, NoForm, form_of
from phintys.scalar.op import ScalarOp

EXPRESSIONS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}",
    "fma": "{0} * {1} + {2}", "fmod": "np.fmod({0}, {1})", "neg": "-{0}", "abs": "abs({0})",
    "min": "{0} if {0} < {1} or {0} != {0} else {1}",
    "max": "{0} if {0} > {1} or {0} != {0} else {1}",
    "copysign": "math.copysign({0}, {1})", "nextafter": "np.nextafter({0}, {1})",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}",
    "gt": "{0} > {1}", "ge": "{0} >= {1}", "isnan": "{0} != {0}", "isinf": "np.isinf({0})",
    "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}", "not": "~{0}",
    "shl": "{0} << {1}", "shr": "{0} >> {1}", "select": "{1} if {0} else {2}",
    "sigmoid": "1 / (1 + np.exp(-{0}))",
    "softplus": "max({0}, 0) + np.log1p(np.exp(-abs({0})))",
    "log1mexp": "np.log1p(-np.exp({0})) if {0} < -0.6931471805599453 else np.log(-np.expm1({0}))",
    "asin": "np.arcsin({0})", "acos": "np.arccos({0})", "atan": "np.arctan({0})",
    "atan2": "np.arctan2({0}, {1})", "hypot": "np.hypot({0}, {1})",
    "asinh": "np.arcsinh({0})", "acosh": "np.arccosh({0})", "atanh": "np.arctanh({0})",
    "erf": "math.erf({0})", "erfc": "math.erfc({0})", "pow": "np.power({0}, {1})",
    "complex": "complex({0}, {1})", "real": "{0}.real", "imag": "{0}.imag",
}  # fmt: skip
#: (instruction, kind) -> expression; guarded, since the processor traps on division by zero and on
#: division of the least integer by -1.  Numba makes float64 of a literal 0 and a uint64.
DIVISIONS = {
    ("idiv", "i"): "0 if {1} == 0 else -{0} if {1} == -1 else {0} // {1}",
    ("idiv", "u"): "{1} if {1} == 0 else {0} // {1}",
    ("imod", "i"): "0 if {1} == 0 or {1} == -1 else {0} % {1}",
    ("imod", "u"): "{1} if {1} == 0 else {0} % {1}",
}
OF_BOOLS = {"not": "not {0}", "min": "{0} and {1}", "max": "{0} or {1}"}
#: dtypes whose expressions have the dtype of the instruction without a conversion
UNCHANGED = frozenset(("float64", "bool"))
LIBM = {"tgamma": "math.gamma", "lgamma": "math.lgamma"}


@dataclass(frozen=True)
class Value:
    """A variable or literal of the source, and its dtype."""

    text: str
    dtype_name: str


class Lines:
    """The `Native` that generates lines of Numba source."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        #: the functions of SciPy that the lines call, by name
        self.env: dict[str, Any] = {}

    def assign(self, expression: str, dtype: str, given: Sequence[Value] = ()) -> Value:
        """The value of an expression, which is converted unless it is of values ``given``.

        Those must be all that the expression contains; then the conversion may be left out, which
        takes Numba time.
        """
        name = f"t{len(self.lines)}"
        unchanged = given and all(x.dtype_name in UNCHANGED for x in given)
        self.lines.append(f"{name} = {expression if unchanged else typed(expression, dtype)}")
        return Value(name, dtype)

    def const(self, value: Any, like: Any) -> Value:
        dtype = like if isinstance(like, str) else like.dtype_name
        if is_complex(dtype):
            return pairs.const(self, value, dtype)
        return Value(literal(value, dtype), dtype)

    def cast(self, x: Value, dtype: str) -> Value:
        if x.dtype_name == dtype:
            return x
        if is_complex(dtype) or is_complex(x.dtype_name):
            return pairs.cast(self, x, dtype)
        return self.assign(_cast(x, dtype), dtype)

    def dtype(self, x: Value) -> str:
        return x.dtype_name

    def call(self, name: str, *args: Value) -> Value:
        dtype = args[0].dtype_name
        if name in LIBM_CALLS:
            function = LIBM[name]
        else:
            function = f"special_{name}"
            self.env[function] = special_function(name)
            args = tuple(self.cast(x, "float64") for x in args)
        return self.assign(f"{function}({', '.join(x.text for x in args)})", dtype, args)

    def __getattr__(self, name: str) -> Any:
        row = INSTRUCTIONS.get(name.rstrip("_"))
        if row is None:
            raise AttributeError(name)

        def instruction(*args: Value) -> Value:
            dtype = args[-1].dtype_name
            if composed := form_of(row, dtype):
                return composed(self, *args)
            expression = _expression(row.name, dtype).format(*(x.text for x in args))
            return self.assign(expression, row.result_dtype(dtype), args)

        return instruction


def _expression(name: str, dtype: str) -> str:
    if dtype == "bool" and name in OF_BOOLS:
        return OF_BOOLS[name]
    found = EXPRESSIONS.get(name) or DIVISIONS.get((name, kind(dtype)))
    return found or f"np.{name}({{0}})"


def typed(expression: str, dtype: str) -> str:
    """The source that converts an expression to a dtype: Numba promotes integers to 64 bits."""
    return f"np.{dtype}_({expression})" if dtype == "bool" else f"np.{dtype}({expression})"


def literal(value: Any, dtype: str) -> str:
    """The source of a number of a dtype."""
    number = converted(np.asarray(value), dtype).item()
    if isinstance(number, bool):
        return str(number)
    special = isinstance(number, float) and not math.isfinite(number)
    text = f"np.{number}".replace("np.-", "-np.") if special else repr(number)
    return text if dtype == "float64" else typed(text, dtype)


def _cast(x: Value, dtype: str) -> str:
    if dtype == "bool":
        return f"{x.text} != 0"
    if kind(x.dtype_name) != "f" or kind(dtype) not in "iu":
        return x.text
    signed = _signed(x.text, VIA[dtype])
    if dtype != "uint64":
        return signed
    # see `phintys.scalar.conversion`
    high = f"np.uint64({_signed(f'({x.text} - 2.0**63)', 'int64')}) ^ np.uint64(2**63)"
    return f"({high}) if {x.text} >= 2.0**63 else np.uint64({signed})"


def _signed(x: str, dtype: str) -> str:
    """The source that converts a float to int32 or int64; the least for NaN and out of range."""
    least = int(np.iinfo(dtype).min)
    return f"(np.{dtype}({x}) if abs({x}) < {float(-least)!r} else np.{dtype}({least}))"


# ---------------------------------------------------------------------- SciPy's functions


@cache
def special_function(name: str) -> Any:
    """A Numba function of doubles that calls a function of ``scipy.special.cython_special``.

    Raises LookupError if there is none of this name for doubles.
    """
    pointer, arguments = special(name)
    types = [ctypes.c_int if a == "int" else ctypes.c_double for a in arguments]
    return _without_flag(ctypes.CFUNCTYPE(ctypes.c_double, *types)(pointer), arguments)


def _without_flag(function: Any, arguments: Sequence[str]) -> Any:
    """A Numba function of the doubles only; Cython's last argument, an integer flag, is 0."""
    names = [f"x{i}" for i, a in enumerate(arguments) if a == "double"]
    passed = [*names, *("0" for a in arguments if a == "int")]
    source = define("special", names, [f"return f({', '.join(passed)})"])
    return jit(compile_function_src(source, "special", {"f": function}))


# --------------------------------------------------------------------------- scalar nodes


def has_source(op: ScalarOp, dtypes: Sequence[str]) -> bool:
    """Whether `scalar_lines` supports the op for these dtypes."""
    return op.emit(_Available(), *dtypes) is not NotImplemented


class _Available:
    """The probe of `phintys.scalar.native`, restricted to functions that SciPy exports."""

    def call(self, name: str, *args: Any) -> Any:
        if name not in LIBM_CALLS:
            try:
                special_function(name)
            except LookupError as exc:
                raise NoForm(name) from exc
        return PROBE.call(name, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(PROBE, name)


def scalar_lines(
    op: ScalarOp, names: Sequence[str], input_dtypes: Sequence[str], results: Sequence[str]
) -> tuple[list[str], list[str], dict[str, Any]]:
    """The lines that compute a scalar op, the names of its results, and the globals they use.

    ``names`` and ``input_dtypes`` are those of the arguments, ``results`` the dtypes of the
    results.
    """
    builder = Lines()
    found = op.emit(builder, *map(Value, names, input_dtypes))
    found = list(found) if op.nout > 1 else [found]
    out = [builder.cast(x, dt).text for x, dt in zip(found, results)]
    return builder.lines, out, builder.env


@numba_funcify.register(ScalarOp)
def numba_funcify_scalar(op: Any, node: Any = None, **kwargs: Any) -> Any:
    """The Numba function of a scalar op, on numbers."""
    input_dtypes = [v.type.dtype for v in node.inputs]
    if not has_source(op, input_dtypes):
        return in_object_mode(op, node, **kwargs)
    names = [f"x{i}" for i in range(len(input_dtypes))]
    results = [v.type.dtype for v in node.outputs]
    lines, out, env = scalar_lines(op, names, input_dtypes, results)
    return compiled(define("scalar", names, [*lines, f"return {', '.join(out)}"]), **env)


def is_built_in(op: Any) -> bool:
    """Whether no other Numba function has been registered for the class of a scalar op."""
    return numba_funcify.dispatch(type(op)) is numba_funcify_scalar
