"""`ScalarOp`: a function of numbers, described by one row.

A row (`unary`, `binary`, `nary`, called in the tables of this folder) says everything about an
elementwise function: its value (a NumPy or SciPy function), its dtype rule, its derivative, its
native form, algebraic facts, documentation.  The tensor function, its gradient, the code
generators, the reference page and the tests are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib import import_module
from typing import Any

import numpy as np

from phintys.config import config
from phintys.graph.op import Op
from phintys.graph.type import DisconnectedType, NullType
from phintys.graph.variable import Apply, Variable
from phintys.memo import Memo
from phintys.scalar import dtypes
from phintys.scalar.conversion import converted
from phintys.scalar.native import INSTRUCTIONS, NATIVE_DTYPES, PROBE
from phintys.scalar.rules import DtypeRule, inexact, inexact_real, same
from phintys.scalar.type import as_scalar, constant, scalar_type

#: Of which inputs derivatives are needed; None: of all.
Wanted = Sequence[bool] | None

#: name -> ScalarOp without parameters, in the order of definition
TABLE: dict[str, ScalarOp] = {}
#: class name -> class, in the order of definition
CLASSES: dict[str, type[ScalarOp]] = {}
#: how many arguments of a long sum or product are combined at a time
_PART = 12


@dataclass(frozen=True)
class Undefined:
    """In place of a partial derivative: it is not zero, but not available, for this reason."""

    why: str


@dataclass(frozen=True)
class Inverse:
    """The partial derivative 1 / y: derivatives are divided by y, which takes a single node."""

    of: Any


class ScalarOp(Op):
    """A function of ``nin`` numbers with one result (several for `Composite`).

    Subclasses are made by rows; a hand-written one sets the class attributes below, or, as in
    PyTensor, writes ``impl(self, *numbers)`` and passes ``output_types_preference``.
    """

    __props__ = ("output_types_preference",)
    name: str = ""
    nin: int = -1
    nout: int = 1
    doc: str = ""
    #: dotted name of the NumPy or SciPy function that computes it
    function: str = ""
    #: see `phintys.scalar.rules`
    rule: DtypeRule = staticmethod(same)
    #: partial derivatives: ``d(m, *inputs, output)`` -> one expression per input (None: zero;
    #: a bool expression: 1 where it holds, and 0 elsewhere even if the cotangent is not finite;
    #: a function without arguments that makes the expression, so that it is made only if needed)
    d: Callable[..., Any] | None = None
    #: why there is no derivative, where ``d`` is None and the result is continuous
    not_differentiable: str = ""
    #: an instruction's name, or ``native(n, *inputs)``, which may answer NotImplemented
    native: Any = None
    #: algebraic facts used by rewrites and tests (see `unary`)
    facts: dict[str, Any] = {}

    def __init__(
        self, output_types_preference: Callable[..., Any] | None = None, name: str | None = None
    ) -> None:
        self.output_types_preference = output_types_preference
        if name is not None:
            self.name = name

    @property
    def commutative(self) -> bool:
        return bool(self.facts.get("commutative"))

    @property
    def associative(self) -> bool:
        return bool(self.facts.get("associative"))

    @property
    def identity(self) -> Any:
        """The neutral element, or None."""
        return self.facts.get("identity")

    # ----- types
    def output_dtypes(self, *given: str) -> list[str]:
        """dtypes of the results for input dtypes; TypeError if it is not defined on them."""
        self.check_arity(len(given))
        return [self.signature(given)[1]]

    def output_types(self, types: Sequence[Any]) -> list[Any]:
        """`output_dtypes` for scalar types."""
        return [scalar_type(dt) for dt in self.output_dtypes(*(t.dtype for t in types))]

    def signature(self, given: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """The dtypes that inputs are cast to, and the dtype of the result."""
        if self.output_types_preference is not None:
            (preferred,) = self.output_types_preference(*map(scalar_type, given))
            return tuple(given), str(preferred.dtype)
        try:
            return self.rule(*given)
        except TypeError as exc:
            raise TypeError(f"{self} of {', '.join(given)}: {exc}") from None

    def check_arity(self, n: int) -> None:
        """TypeError if the function does not take ``n`` arguments."""
        if self.nin >= 0 and n != self.nin:
            raise TypeError(f"{self} takes {self.nin} arguments, not {n}.")
        if self.nin < 0 and n < 1:
            raise TypeError(f"{self} takes at least one argument.")

    # ----- values
    @cached_property
    def nfunc(self) -> Callable[..., Any]:
        """The NumPy or SciPy function (imported when first needed)."""
        module, _, attribute = self.function.rpartition(".")
        return getattr(import_module(module), attribute)

    def impl(self, *values: Any) -> Any:
        """The result for numbers."""
        return self.compute(*map(np.asarray, values))[()]

    def compute(self, *values: Any) -> Any:
        """The result for NumPy values (arrays broadcast), of scalars and of tensors."""
        cast_to, result = self.signature([dtypes.canonical(v.dtype) for v in values])
        if not self.function:
            return np.vectorize(self.impl, otypes=[result])(*values)
        args = [converted(v, dt) for v, dt in zip(values, cast_to)]
        with np.errstate(all="ignore"):
            out = reduce(self.nfunc, args) if self.nin < 0 else self.nfunc(*args)
        return converted(np.asarray(out), result)

    # ----- as an op on scalars
    def make_node(self, *inputs: Any) -> Apply:
        args = [as_scalar(x) for x in inputs]
        out = self.output_dtypes(*(a.type.dtype for a in args))
        return Apply(self, args, [scalar_type(dt)() for dt in out])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        values = [np.asarray(x, v.type.dtype) for x, v in zip(inputs, node.inputs)]
        found = self.compute(*values)
        for cell, value, out in zip(
            output_storage, found if self.nout > 1 else [found], node.outputs
        ):
            cell[0] = converted(value, out.type.dtype)[()]

    def lower(self, node: Apply, b: Any, *inputs: Any) -> Any:
        """Also that of `Elemwise`: ``b.map`` broadcasts."""
        if not self.has_native(*(x.type.dtype for x in node.inputs)):
            return NotImplemented
        if self.nout == 1:
            return self._map(b, inputs, node.outputs[0].type.dtype)
        return [
            b.map(lambda n, *args, i=i: self.emit(n, *args)[i], *inputs, dtype=out.type.dtype)
            for i, out in enumerate(node.outputs)
        ]

    def _map(self, b: Any, values: Sequence[Any], dtype: str) -> Any:
        """The result elementwise; a long sum or product in parts, since kernels are bounded."""
        if self.nin < 0 and all(v.dtype == dtype for v in values):
            given, values = values, values[:_PART]
            for start in range(_PART, len(given), _PART):
                part = b.map(self.emit, *values, dtype=dtype)
                values = [part, *given[start : start + _PART]]
        return b.map(self.emit, *values, dtype=dtype)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return self._pull_back(inputs, outputs, cotangents, [True] * len(inputs))

    def wanted_pullback(
        self, inputs: Any, outputs: Any, cotangents: Any, wanted: Sequence[bool]
    ) -> Sequence[Variable | None]:
        if type(self).pullback is not ScalarOp.pullback:
            return self.pullback(inputs, outputs, cotangents)
        return self._pull_back(inputs, outputs, cotangents, wanted)

    def _pull_back(self, inputs: Any, outputs: Any, cotangents: Any, wanted: Any) -> list[Any]:
        found = self.wanted_cotangents(functions, inputs, outputs, cotangents, wanted)
        return [_scalar_cotangent(x, g) if w else None for x, g, w in zip(inputs, found, wanted)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        given = [None if isinstance(t.type, DisconnectedType) else t for t in tangents]
        found = self.tangents(functions, inputs, outputs, given)
        pairs = zip(outputs, found if self.nout > 1 else [found])
        return [_scalar_cotangent(out, t) for out, t in pairs]

    # ----- derivatives: m is a namespace of functions, scalar or tensor ones
    def partials(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], wanted: Wanted = None
    ) -> list[Any]:
        """d output / d input for each input: None where it is zero everywhere, or `Undefined`.

        Of a function that is not holomorphic but real, ``d f / d Re - i d f / d Im``.  Those that
        are not ``wanted`` may be None too.
        """
        if dtypes.is_discrete(outputs[0].type.dtype):
            return [None] * len(inputs)
        if self.d is None:
            return [Undefined(self.not_differentiable)] * len(inputs)
        # in the dtype that the function is computed in: 1 / 3 of a float32 literal is too coarse
        given = tuple([x.type.dtype for x in inputs])
        key = config.floatX, given
        computed_in = self._computed_in[key]
        if computed_in is None:
            computed_in = self._computed_in.keep(key, self.signature(given)[0])
        args = inputs
        if computed_in != given:
            args = [
                x if dtypes.is_discrete(dt) or x.type.dtype == dt else m.cast(x, dt)
                for x, dt in zip(inputs, computed_in)
            ]
        found = self.d(m, *args, outputs[0])
        found = list(found) if isinstance(found, tuple | list) else [found]
        if wanted is not None:
            found = [p if w else None for p, w in zip(found, wanted)]
        return [p() if callable(p) else p for p in found]

    def cotangents(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]
    ) -> list[Any]:
        """Cotangents of the inputs (None: zero, or `Undefined`) from those of the outputs.

        Complex cotangents are ``d loss / d Re + i d loss / d Im``.
        """
        return self._cotangents(m, inputs, outputs, given, None)

    def wanted_cotangents(
        self,
        m: Any,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        given: Sequence[Any],
        wanted: Wanted,
    ) -> list[Any]:
        """`cotangents`, of which those that are not ``wanted`` may be None."""
        if type(self).cotangents is ScalarOp.cotangents:
            return self._cotangents(m, inputs, outputs, given, wanted)
        return self.cotangents(m, inputs, outputs, given)

    def _cotangents(
        self,
        m: Any,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        given: Sequence[Any],
        wanted: Wanted,
    ) -> list[Any]:
        (g,) = given
        partials = self.partials(m, inputs, outputs, wanted)
        if "c" in [v.type.dtype[0] for v in (*inputs, outputs[0])]:  # complex
            partials = [p if p is None else _conj(m, p) for p in partials]
        return [p if p is None else _times(m, p, g) for p in partials]

    def tangents(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]
    ) -> Any:
        """Tangent of the output from those of the inputs (None entries are absent)."""
        partials = self.partials(m, inputs, outputs, [t is not None for t in given])
        terms = [_times(m, p, t) for p, t in zip(partials, given) if not (t is None or p is None)]
        for term in terms:
            if isinstance(term, Undefined):
                raise TypeError(f"{self} has no such derivative: {term.why}.")
        if not terms:
            return None
        total = m.add(*terms) if len(terms) > 1 else terms[0]
        if dtypes.is_complex(total.type.dtype) and not dtypes.is_complex(outputs[0].type.dtype):
            return m.real(total)
        return total

    @property
    def is_variadic(self) -> bool:
        return self.nin < 0

    # ----- native form
    def emit(self, n: Any, *inputs: Any) -> Any:
        """The function in native instructions, casts included; NotImplemented without such a form.

        ``n`` is the builder described in `phintys.scalar.native`.
        """
        given = [n.dtype(x) for x in inputs]
        cast_to, result = self.signature(given)
        if self.native is None or {*cast_to, result, *given} - NATIVE_DTYPES:
            return NotImplemented
        args = [x if n.dtype(x) == dt else n.cast(x, dt) for x, dt in zip(inputs, cast_to)]
        build = self.native
        if isinstance(build, str):
            if any(dtypes.kind(dt) not in INSTRUCTIONS[build].kinds for dt in cast_to):
                return NotImplemented
            instruction = getattr(n, build)
            build = lambda n, *args: instruction(*args)  # noqa: E731
        out = reduce(lambda a, b: build(n, a, b), args) if self.nin < 0 else build(n, *args)
        return out if out is NotImplemented or n.dtype(out) == result else n.cast(out, result)

    def has_native(self, *given: str) -> bool:
        """Whether `emit` answers for inputs of these dtypes."""
        found = self._natives[given]
        if found is None:
            found = self._natives.keep(given, self.emit(PROBE, *given) is not NotImplemented)
        return found

    @cached_property
    def _computed_in(self) -> Memo[tuple[str, tuple[str, ...]], tuple[str, ...]]:
        """By floatX and dtypes of the inputs: the dtypes that these are cast to."""
        return Memo(32, "dtypes of scalar ops")

    @cached_property
    def _natives(self) -> Memo[tuple[str, ...], bool]:
        """The answers of `has_native`."""
        return Memo(32, "native forms of scalar ops")

    def __reduce__(self) -> Any:
        if TABLE.get(self.name) is self:
            return _from_table, (self.name,)
        return super().__reduce__()

    def __str__(self) -> str:
        return self.name or type(self).__name__


def _times(m: Any, partial: Any, t: Any) -> Any:
    """``partial * t``, where a bool selects."""
    if isinstance(partial, Undefined):
        return partial
    if isinstance(partial, Inverse):
        return m.true_div(t, partial.of)
    if isinstance(partial, float):
        return t if partial == 1 else m.neg(t) if partial == -1 else m.mul(t, partial)
    dtype = getattr(getattr(partial, "type", None), "dtype", "")
    return m.switch(partial, t, 0) if dtype == "bool" else m.mul(t, partial)


def _conj(m: Any, partial: Any) -> Any:
    if isinstance(partial, Undefined):
        return partial
    if isinstance(partial, int | float | complex | np.generic):
        return np.conj(partial)
    if isinstance(partial, Inverse):
        return Inverse(_conj(m, partial.of))
    return m.conj(partial) if dtypes.is_complex(partial.type.dtype) else partial


def _scalar_cotangent(x: Any, g: Any) -> Variable:
    """A derivative in the dtype of its variable (floatX for discrete ones)."""
    if isinstance(g, Undefined):
        return NullType(g.why)()
    dtype = dtypes.as_dtype("floatX") if dtypes.is_discrete(x.type.dtype) else x.type.dtype
    if g is None:
        return constant(np.zeros((), dtype))
    if dtypes.is_complex(g.type.dtype) and not dtypes.is_complex(dtype):
        g = functions.real(g)
    return functions.cast(g, dtype)  # type: ignore[no-any-return]


class _Functions:
    """``functions.exp(x)``: the scalar ops by name, as derivatives use them."""

    def __getattr__(self, name: str) -> Any:
        if name not in TABLE:
            raise AttributeError(name)
        return TABLE[name]

    @staticmethod
    def of(op: ScalarOp | str) -> Any:
        """The function of a scalar op, or of the name of one."""
        return TABLE[op] if isinstance(op, str) else op

    @staticmethod
    def cast(x: Any, dtype: str) -> Any:
        """``x`` with another dtype; ``x`` itself if it has that dtype."""
        x = as_scalar(x)
        dtype = dtypes.as_dtype(dtype)
        return x if x.type.dtype == dtype else TABLE[f"cast_{dtype}"](x)


functions = _Functions()


def lit(x: Any, value: float) -> Any:
    """A number in the float dtype of ``x``: literals such as 0.1 would make float32 graphs float64.

    It is a NumPy scalar: write it right of an operator or into a function.
    """
    return np.dtype(dtypes.float_of(x.type.dtype)).type(value)


def _from_table(name: str) -> ScalarOp:
    return TABLE[name]


class UnaryScalarOp(ScalarOp):
    """A function of one number."""

    nin = 1


class BinaryScalarOp(ScalarOp):
    """A function of two numbers."""

    nin = 2


class LogicalComparison(BinaryScalarOp):
    """A comparison: bool."""


class FixedLogicalComparison(UnaryScalarOp):
    """A classification of one number: bool."""


class UnaryBitOp(UnaryScalarOp):
    """A function of the bits of an integer, or of a bool."""


class BinaryBitOp(BinaryScalarOp):
    """A function of the bits of two integers, or of two bools."""


#: fields of a row that are class attributes; the others are facts
_FIELDS = {"nin", "function", "rule", "d", "native", "not_differentiable", "cotangents", "tangents"}
_FIELDS |= {"compute", "output_dtypes", "connection_pattern"}
_PLAIN = {"rule", "d", "native"}


def define(base: type[ScalarOp], cls: str, name: str, doc: str, **fields: Any) -> Any:
    """Make the class of a row and its one instance; every table function ends here."""
    body: dict[str, Any] = {
        "name": name,
        "doc": doc,
        "__doc__": doc,
        "__module__": "phintys.scalar",
    }
    for key in _FIELDS & fields.keys():
        value = fields.pop(key)
        body[key] = staticmethod(value) if key in _PLAIN and callable(value) else value
    body.setdefault("function", f"numpy.{name}")
    body["facts"] = fields
    made = type(base)(cls, (base,), body)
    CLASSES[cls] = made
    TABLE[name] = op = made()
    return op


def unary(cls: str, name: str, doc: str, **fields: Any) -> Any:
    """A row for a function of one number.

    Fields
        ``function`` (default ``numpy.<name>``), ``rule`` (default `inexact`), ``d``
        (``lambda m, x, y:`` the derivative, ``y`` being the result), ``not_differentiable`` (why
        there is none), ``native`` (see `ScalarOp`), ``base`` (the class).
    Facts
        ``domain`` (lo, hi): where it is defined and differentiable; ``range`` (lo, hi);
        ``inverse``: name of ``g`` with ``g(f(x)) == x`` on the domain; ``odd``, ``even``;
        ``increasing``, ``decreasing`` on the domain; ``zero_at_zero``; ``idempotent``.
    """
    return define(fields.pop("base", UnaryScalarOp), cls, name, doc, **{"rule": inexact} | fields)


def binary(cls: str, name: str, doc: str, **fields: Any) -> Any:
    """A row for a function of two numbers.

    Fields as in `unary` (``rule``: default `same`; ``domain``: one pair per input).  Facts:
    ``commutative``, ``associative``, ``identity`` (neutral element), ``idempotent``
    (``f(x, x) == x``), ``absorbing`` (``f(a, x) == a``).
    """
    return define(fields.pop("base", BinaryScalarOp), cls, name, doc, **fields)


def nary(cls: str, name: str, doc: str, **fields: Any) -> Any:
    """A row for an associative function of any number of numbers."""
    return define(ScalarOp, cls, name, doc, nin=-1, associative=True, **fields)


def ternary(cls: str, name: str, doc: str, **fields: Any) -> Any:
    """A row for a function of three numbers, or of ``nin``."""
    return define(ScalarOp, cls, name, doc, **{"nin": 3} | fields)


def special(cls: str, name: str, doc: str, make: Callable[..., Any] = unary, **fields: Any) -> Any:
    """A row for the function of that name in ``scipy.special``: real, unless ``rule`` says else."""
    given = {"function": f"scipy.special.{name}", "rule": inexact_real} | fields
    return make(cls, name, doc, **given)


def call(name: str) -> Callable[..., Any]:
    """The native form that calls a library function."""
    return lambda n, *args: n.call(name, *args)
