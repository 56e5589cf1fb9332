"""The native instructions: the scalar instruction set of kernels.

A generator (``backends/llvm``, ``backends/c``) implements exactly the instructions listed here, and
every scalar op with a native form is composed of them.  Therefore a new elementwise function needs
no change of a generator: its row composes instructions, or calls a library function (`LIBM_CALLS`,
`SCIPY_CALLS`).

Conventions
    All arguments of an arithmetic instruction have the dtype of the result.  Comparisons and
    classifications take two (one) arguments of one dtype and give ``bool``.  ``select`` takes a
    ``bool`` and two values.  ``cast`` is the only instruction that changes a number's dtype.
    A float16 is only moved, selected and cast; see `COMPUTED_IN`.  A complex number is only moved,
    selected, made (``complex``) and taken apart (``real``, ``imag``); see `phintys.scalar.pairs`.
    Integers wrap around; shifts and integer division are described at their rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from phintys.scalar import pairs
from phintys.scalar.dtypes import ALL, COMPLEX, is_complex, kind, real_of

#: The dtypes that kernels support; ops on other dtypes are run by ``perform``.
NATIVE_DTYPES = frozenset(ALL)

#: The dtype in which functions of a dtype are computed, as NumPy does; their result is rounded.
COMPUTED_IN = {"float16": "float32"}

#: Instructions that must not be computed in a wider dtype.
NOT_IN_WIDER = frozenset(["nextafter"])

#: The dtypes on which instructions compute; others are moved, and computed in or of these.
COMPUTED = NATIVE_DTYPES.difference(COMPUTED_IN, COMPLEX)

#: Instructions that kernels execute on complex numbers.
OF_PAIRS = frozenset(["real", "imag", "select"])


class NoForm(Exception):
    """An instruction is not defined for a dtype."""


class Instruction(NamedTuple):
    """One native instruction: name, number of arguments, accepted kinds of dtypes, meaning."""

    name: str
    arity: int
    kinds: str  # of "b" bool, "i" signed, "u" unsigned, "f" float, "c" complex
    doc: str
    result: str = "same"  # or "bool", "pair", "part"

    def result_dtype(self, dtype: str) -> str:
        """The dtype of the result for arguments of a dtype."""
        if self.result == "bool":
            return "bool"
        if self.result == "pair":
            return "complex64" if dtype == "float32" else "complex128"
        return real_of(dtype) if self.result == "part" else dtype


def _table(rows: str) -> dict[str, Instruction]:
    """The instructions that a text describes, one per line, by name."""
    out = {}
    for row in rows.strip().splitlines():
        name, arity, kinds, result, doc = row.split(None, 4)
        out[name] = Instruction(name, int(arity), kinds, doc, result)
    return out


#: The instructions by name.  Columns: name, number of arguments, kinds, result dtype, meaning.
INSTRUCTIONS = _table("""
add       2 iufc  same  a + b
sub       2 iufc  same  a - b
mul       2 iufc  same  a * b
div       2 fc    same  a / b
fma       3 f     same  a * b + c, fused or not as the machine likes
idiv      2 iu    same  floor division; 0 where b is 0
imod      2 iu    same  remainder with the sign of b; 0 where b is 0
fmod      2 f     same  C fmod: remainder with the sign of a
neg       1 ifc   same  -a
abs       1 ifc   part  magnitude
min       2 biufc same  smaller; NaN if either is NaN
max       2 biufc same  larger; NaN if either is NaN
copysign  2 f     same  magnitude of a with the sign of b
nextafter 2 f     same  the float next to a in the direction of b
floor     1 f     same  largest integer not above
ceil      1 f     same  smallest integer not below
trunc     1 f     same  towards zero
rint      1 f     same  nearest integer, ties to even
sqrt      1 fc    same  square root
cbrt      1 f     same  cube root
hypot     2 f     same  sqrt(a*a + b*b); infinite if either is
eq        2 biufc bool  equal
ne        2 biufc bool  not equal (true where either is NaN)
lt        2 biufc bool  less
le        2 biufc bool  less or equal
gt        2 biufc bool  greater
ge        2 biufc bool  greater or equal
isnan     1 fc    bool  is NaN
isinf     1 fc    bool  is infinite
and       2 biu   same  bitwise and (logical for bool)
or        2 biu   same  bitwise or
xor       2 biu   same  bitwise exclusive or
not       1 biu   same  bitwise complement
shl       2 iu    same  a << b, 0 <= b < bits
shr       2 iu    same  a >> b, arithmetic for signed, 0 <= b < bits
select    3 biufc same  b where a (a bool), else c
cast      1 biufc same  convert, as scalar/conversion.py defines it for every number
complex   2 f     pair  the number with real part a and imaginary part b
real      1 c     part  the real part
imag      1 c     part  the imaginary part
exp       1 fc    same  e**a
exp2      1 f     same  2**a
expm1     1 f     same  e**a - 1
log       1 fc    same  natural logarithm; NaN below 0, -inf at 0
log2      1 fc    same  logarithm to base 2
log10     1 fc    same  logarithm to base 10
log1p     1 f     same  log(1 + a)
sin       1 f     same  sine
cos       1 f     same  cosine
tan       1 f     same  tangent
asin      1 f     same  angle in [-pi/2, pi/2] whose sine is a; NaN outside of [-1, 1]
acos      1 f     same  angle in [0, pi] whose cosine is a; NaN outside of [-1, 1]
atan      1 f     same  angle in [-pi/2, pi/2] whose tangent is a
atan2     2 f     same  angle in [-pi, pi] of the point with ordinate a and abscissa b
sinh      1 f     same  hyperbolic sine
cosh      1 f     same  hyperbolic cosine
tanh      1 f     same  hyperbolic tangent
asinh     1 f     same  inverse of the hyperbolic sine
acosh     1 f     same  inverse of the hyperbolic cosine; NaN below 1
atanh     1 f     same  inverse of the hyperbolic tangent; NaN outside of [-1, 1]
sigmoid   1 f     same  1 / (1 + e**-a)
softplus  1 f     same  log(1 + e**a)
log1mexp  1 f     same  log(1 - e**a); NaN above 0, -inf at 0
erf       1 f     same  error function
erfc      1 f     same  1 - erf(a)
pow       2 f     same  a**b, as C pow
""")

#: For each integer dtype the one to which a float is converted first (`phintys.scalar.conversion`).
VIA = {
    "int8": "int32", "int16": "int32", "int32": "int32", "int64": "int64",
    "uint8": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64",
}  # fmt: skip

#: Library functions for ``n.call(name, ...)``, with their numbers of arguments: of libm, and of
#: SciPy's ``cython_special``.  They take and return float64; a generator casts arguments and
#: result.
LIBM_CALLS = {"tgamma": 1, "lgamma": 1}

SCIPY_CALLS = {
    "gamma": 1, "gammaln": 1, "psi": 1, "erfcx": 1, "erfinv": 1, "erfcinv": 1, "ndtri": 1,
    "ndtri_exp": 1, "ndtr": 1, "log_ndtr": 1,
    "j0": 1, "j1": 1, "i0": 1, "i1": 1, "i0e": 1, "i1e": 1, "k0": 1, "k1": 1,
    "jv": 2, "iv": 2, "ive": 2, "kv": 2, "kve": 2, "gammainc": 2, "gammaincc": 2,
    "gammaincinv": 2, "gammainccinv": 2, "owens_t": 2, "zeta": 2, "poch": 2, "beta": 2, "betaln": 2,
    "y0": 1, "y1": 1, "yv": 2, "dawsn": 1, "exp1": 1, "expi": 1, "spence": 1, "entr": 1,
    "rel_entr": 2, "kl_div": 2, "betainc": 3, "betaincinv": 3, "hyp2f1": 4, "trigamma": 1,
}  # fmt: skip
#: Those of them that ``cython_special`` lacks, and the functions of `scalar.numeric` that they are.
OWN_CALLS = {"zeta": "zeta", "trigamma": "tri_gamma"}


class DrawFunction(NamedTuple):
    """A function that draws one random number, for `Draw` steps.

    It is a C function of NumPy (`phintys.bitgen`), whose arguments are the state, numbers of the
    dtypes ``parameters``, and if ``scratch`` is not 0 a pointer to so many bytes, in which it keeps
    what it has computed of the parameters: zeros at first.
    """

    result: str
    parameters: tuple[str, ...]
    scratch: int = 0


def _draw_functions(rows: str) -> dict[str, DrawFunction]:
    """The functions that a text describes, one per line, by name."""
    out = {}
    for row in rows.strip().splitlines():
        name, result, *parameters = row.split()
        scratch = int(parameters.pop()) if parameters and parameters[-1].isdigit() else 0
        out[name] = DrawFunction(result, tuple(parameters), scratch)
    return out


#: The functions by name.  Columns: name, dtypes of the result and of the parameters, scratch.
#: Bounded integers are signed here: sums of 64 bits are the same.
DISTRIBUTIONS: dict[str, DrawFunction] = _draw_functions("""
random_beta                  float64 float64 float64
random_binomial              int64   float64 int64 256
random_bounded_uint64        int64   int64 uint64 uint64 int64
random_exponential           float64 float64
random_f                     float64 float64 float64
random_gamma                 float64 float64 float64
random_geometric             int64   float64
random_hypergeometric        int64   int64 int64 int64
random_laplace               float64 float64 float64
random_logistic              float64 float64 float64
random_lognormal             float64 float64 float64
random_negative_binomial     int64   float64 float64
random_normal                float64 float64 float64
random_poisson               int64   float64
random_power                 float64 float64
random_standard_exponential  float64
random_standard_gamma        float64 float64
random_standard_normal       float64
random_standard_t            float64 float64
random_standard_uniform      float64
random_triangular            float64 float64 float64 float64
random_uniform               float64 float64 float64
random_vonmises              float64 float64 float64
random_wald                  float64 float64 float64
random_weibull               float64 float64
random_zipf                  int64   float64
""")


def half_bits(number: float) -> int:
    """The bits of a number as float16, rounded to the nearest.

    >>> hex(half_bits(1.0)), hex(half_bits(1e9))
    ('0x3c00', '0x7c00')
    """
    with np.errstate(all="ignore"):
        return int(np.float16(number).view("uint16"))


def form_of(row: Instruction, dtype: str) -> pairs.Form | None:
    """The function that composes an instruction on a dtype of others; None: it is native.

    `NoForm` if there is no such instruction.
    """
    if not is_complex(dtype) or row.name in OF_PAIRS:
        return None
    if kind(dtype) not in row.kinds:
        raise NoForm(f"{row.name} of {dtype}")
    return pairs.FORMS[row.name]


class Term:
    """A value of a builder of instructions, with the operators of arithmetic.

    So a formula can serve both arrays and native forms.  Numbers have the dtype of the value.
    """

    def __init__(self, n: Native, value: Any) -> None:
        self.n, self.value = n, value

    def _with(self, instruction: str, other: Any, swapped: bool = False) -> Term:
        given = other.value if isinstance(other, Term) else self.n.const(other, self.value)
        pair = (given, self.value) if swapped else (self.value, given)
        return Term(self.n, getattr(self.n, instruction)(*pair))

    def __add__(self, other: Term | float) -> Term:
        return self._with("add", other)

    def __radd__(self, other: float) -> Term:
        return self._with("add", other)

    def __sub__(self, other: Term | float) -> Term:
        return self._with("sub", other)

    def __mul__(self, other: Term | float) -> Term:
        return self._with("mul", other)

    def __rmul__(self, other: float) -> Term:
        return self._with("mul", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self._with("div", other)

    def __rtruediv__(self, other: float) -> Term:
        return self._with("div", other, swapped=True)

    def __neg__(self) -> Term:
        return Term(self.n, self.n.neg(self.value))


class Native(Protocol):
    """The builder of instructions, first argument of a row's ``native`` function.

    It has one method per instruction: ``n.exp(x)``, ``n.add(x, y)`` (``n.and_``, ``n.or_``,
    ``n.not_``).  Further, ``n.const(1.5, like=x)`` makes a literal of the dtype of ``x`` (a value
    or a dtype), ``n.cast(x, dtype)`` casts, ``n.call("gammaln", x)`` calls a function of
    `LIBM_CALLS` or `SCIPY_CALLS`, and ``n.dtype(x)`` returns the dtype of a value.
    """

    def const(self, value: float, like: Any) -> Any: ...
    def call(self, name: str, *args: Any) -> Any: ...
    def cast(self, x: Any, dtype: str) -> Any: ...
    def dtype(self, x: Any) -> str: ...
    def __getattr__(self, name: str) -> Any: ...


class _Probe:
    """A builder whose values are dtypes, with which `ScalarOp.has_native` tests a native form."""

    def const(self, value: float, like: str) -> str:
        return like

    def call(self, name: str, *args: str) -> str:
        arity = (LIBM_CALLS | SCIPY_CALLS)[name]
        if len(args) != arity:
            raise TypeError(f"{name} takes {arity} arguments, not {len(args)}.")
        if any(map(is_complex, args)):
            raise NoForm(name)
        return args[0]

    def cast(self, x: str, dtype: str) -> str:
        return dtype

    def dtype(self, x: str) -> str:
        return x

    def __getattr__(self, name: str) -> Any:
        row = INSTRUCTIONS.get(name.rstrip("_"))
        if row is None:
            raise AttributeError(f"{name!r} is not a native instruction.")

        def instruction(*args: str) -> str:
            if len(args) != row.arity:
                raise TypeError(f"{row.name} takes {row.arity} arguments, not {len(args)}.")
            form = form_of(row, args[-1])
            return row.result_dtype(args[-1]) if form is None else form(self, *args)

        return instruction


PROBE = _Probe()
