"""`ScalarOp`: a function of numbers, and the functions with which the tables define one.

A *row* is a call of `unary`, `binary`, `ternary`, `nary` or `special` in a table of this folder.
It defines an elementwise function completely: its values (a NumPy or SciPy function), dtype rule,
derivative, native form, algebraic facts and documentation.  The tensor function, its gradient, the
generated code, the reference page and the tests are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from phintys.config import config
from phintys.graph.builder import Builder, V
from phintys.graph.op import Op
from phintys.graph.traversal import toposort
from phintys.graph.type import DisconnectedType, NullType
from phintys.graph.variable import Apply, Constant, Variable
from phintys.memo import Memo
from phintys.scalar import dtypes
from phintys.scalar.conversion import converted
from phintys.scalar.in_python import REASONS
from phintys.scalar.native import (
    COMPUTED_IN,
    INSTRUCTIONS,
    NATIVE_DTYPES,
    NOT_IN_WIDER,
    PROBE,
    NoForm,
)
from phintys.scalar.rules import DtypeRule, inexact, inexact_real, same
from phintys.scalar.type import as_scalar, constant, scalar_type

#: For each input, whether its derivative is needed; None: all are needed.
Wanted = Sequence[bool] | None

#: ScalarOps without parameters by name, in order of definition.
TABLE: dict[str, ScalarOp] = {}
#: Their classes by name, in order of definition.
CLASSES: dict[str, type[ScalarOp]] = {}
#: Number of operands that one `map` of a variadic op combines.
_PART = 12


@dataclass(frozen=True)
class Undefined:
    """Stands for a partial derivative that is not zero but not available, with the reason."""

    why: str


@dataclass(frozen=True)
class Inverse:
    """Stands for the partial derivative ``1 / of``.

    The chain rule then divides by ``of``: one node, where a product with ``1 / of`` takes two.
    """

    of: Any


class Leading(NamedTuple):
    """A function is ``coefficient * x**power + rest(m, x)`` for ``lowest < x < highest``.

    Where ``x`` is of size ``near`` or larger, the rest may cancel the leading part.
    """

    coefficient: float
    power: int
    rest: Callable[..., Any]
    lowest: float = -np.inf
    highest: float = np.inf
    near: float = np.inf


class ScalarOp(Op):
    """An op on scalars: a function of ``nin`` numbers with one result (several for `Composite`).

    Subclasses are made by rows.  A class of your own sets the class attributes below, or, as in
    PyTensor, defines ``impl(self, *numbers)`` and is called with ``output_types_preference``, a
    function from input types to a tuple of output types.

    >>> from phintys.scalar import UnaryScalarOp, float64, upgrade_to_float
    >>> class Cube(UnaryScalarOp):
    ...     def impl(self, x):
    ...         return x**3
    >>> x = float64("x")
    >>> cube = Cube(upgrade_to_float, name="cube")
    >>> cube(x).type, cube.impl(2.0)
    (Scalar(float64), 8.0)
    """

    __props__ = ("output_types_preference",)
    name: str = ""
    #: number of arguments; -1: one or more
    nin: int = -1
    nout: int = 1
    doc: str = ""
    #: qualified name of the NumPy or SciPy function that computes the values
    function: str = ""
    #: the same in the form of PyTensor, ``("exp", 1, 1)``: a class of your own may set either
    nfunc_spec: tuple[str, int, int] | None = None
    #: dtypes of computation and result; see `phintys.scalar.rules`
    rule: DtypeRule = staticmethod(same)
    #: ``d(m, *inputs, output)`` returns the partial derivative for each input; ``m`` is a namespace
    #: of functions.  A partial derivative is an expression, or None for zero, or a bool expression
    #: (1 where it is true, and 0 elsewhere, even if the cotangent is not finite there), or a
    #: function without arguments that returns one of these and is called only if it is needed, or
    #: `Inverse`, or `Undefined`.
    d: Callable[..., Any] | None = None
    #: logarithms of the function, computed without it: ``logs[form](m, *inputs)`` is that of its
    #: value (``"y"``), of ``"1 + y"`` or ``"1 - y"``; or a pair, the logarithm of a part of it and
    #: the factor that remains.  ``"log(y)"`` and so on: the whole logarithm, if that is another
    #: function where it is nearly 0.  See `phintys.tensor.logarithms`
    logs: dict[str, Callable[..., Any]] = {}
    #: ``(name, slope, lowest, height)`` if the function is ``lowest + height F(slope x)``, with the
    #: distribution function F of the standard normal (``"ndtr"``) or logistic (``"sigmoid"``); see
    #: `phintys.tensor.tails`
    distribution: tuple[str, float, float, float] | None = None
    #: a part of the function that may be much larger than the rest, so that a sum of both cancels;
    #: see `phintys.tensor.leading`
    leading: Leading | None = None
    #: why there is no derivative, if ``d`` is None and the result is continuous
    not_differentiable: str = ""
    #: the name of a native instruction, or a function ``native(n, *inputs)`` that builds the result
    #: from instructions and returns NotImplemented for dtypes for which it cannot
    native: Any = None
    #: algebraic properties, which rewrites use and tests check (see `unary`)
    facts: dict[str, Any] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "nfunc_spec" in vars(cls) and cls.nfunc_spec:
            name = cls.nfunc_spec[0]
            cls.function = name if "." in name else f"numpy.{name}"
        elif cls.function.startswith(("numpy.", "scipy.")):
            arguments = 2 if cls.nin < 0 else cls.nin
            cls.nfunc_spec = cls.function.removeprefix("numpy."), arguments, cls.nout
        else:
            cls.nfunc_spec = None

    def __init__(
        self, output_types_preference: Callable[..., Any] | None = None, name: str | None = None
    ) -> None:
        self.output_types_preference = output_types_preference
        if name is not None:
            self.name = name

    def _warn_of_older(self, method: str, older: str) -> None:
        """Nothing: a class of scalar ops may define the older methods without a warning."""

    @property
    def commutative(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the arguments may be permuted."""
        return bool(self.facts.get("commutative"))

    @property
    def associative(self) -> bool:
        """Whether ``f(f(x, y), z) == f(x, f(y, z))``, up to rounding."""
        return bool(self.facts.get("associative"))

    @property
    def identity(self) -> Any:
        """The neutral element, or None."""
        return self.facts.get("identity")

    # ----- types
    def output_dtypes(self, *given: str) -> list[str]:
        """The dtypes of the results for the dtypes of the inputs.

        TypeError if the number of inputs is wrong, or the function is not defined on their dtypes.
        """
        self.check_arity(len(given))
        types = [scalar_type(dt) for dt in given] if self._states_types else []
        if type(self).output_types is not ScalarOp.output_types:
            return [str(t.dtype) for t in self.output_types(types)]
        if self.output_types_preference is not None:
            return [str(t.dtype) for t in self.output_types_preference(*types)]
        return [self.signature(given)[1]]

    @property
    def _states_types(self) -> bool:
        """Whether a class of a user says what the types of the results are."""
        overridden = type(self).output_types is not ScalarOp.output_types
        return overridden or self.output_types_preference is not None

    def output_types(self, types: Sequence[Any]) -> list[Any]:
        """`output_dtypes` for scalar types; a class of a user with several results defines it."""
        return [scalar_type(dt) for dt in self.output_dtypes(*(t.dtype for t in types))]

    def signature(self, given: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """The dtypes to which inputs are cast, and the dtype of the result."""
        if self._states_types:
            return tuple(given), self.output_dtypes(*given)[0]
        try:
            return self.rule(*given)
        except TypeError as exc:
            raise type(exc)(f"{self} of {', '.join(given)}: {exc}") from None

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
        """The result for NumPy scalars or Python numbers."""
        return self.compute(*map(np.asarray, values))[()]

    def compute(self, *values: Any) -> Any:
        """The result for NumPy scalars or arrays, which are broadcast."""
        given = [dtypes.canonical(v.dtype) for v in values]
        if not self.function:
            return np.vectorize(self.impl, otypes=self.output_dtypes(*given))(*values)
        cast_to, result = self.signature(given)
        if not isinstance(self.nfunc, np.ufunc):  # ufuncs do so themselves
            cast_to = [COMPUTED_IN.get(dt, dt) for dt in cast_to]
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

    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> V | list[V]:
        """See `Op.lower`.  `Elemwise` calls it too, since ``b.map`` broadcasts."""
        if not self.has_native(*(x.type.dtype for x in node.inputs)):
            return NotImplemented
        if self.nout == 1:
            return self._map(b, inputs, node.outputs[0].type.dtype)
        return [
            b.map(lambda n, *args, i=i: self.emit(n, *args)[i], *inputs, dtype=out.type.dtype)
            for i, out in enumerate(node.outputs)
        ]

    def _map(self, b: Builder[V], values: Sequence[V], dtype: str) -> V:
        """The elementwise result; a sum or product of many operands in parts of `_PART` operands.

        The number of operands of a kernel is bounded.
        """
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

    # ----- derivatives.  ``m`` is a namespace of functions: `functions`, or that of tensors.
    def partials(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], wanted: Wanted = None
    ) -> list[Any]:
        """The partial derivative of the output in each input, as `d` describes them.

        None stands for a derivative that is zero everywhere, or is not ``wanted``.  For a real
        function of a complex variable, which is not holomorphic, it is
        ``d f / d Re - i d f / d Im``.
        """
        if dtypes.is_discrete(outputs[0].type.dtype):
            return [None] * len(inputs)
        if self._has_own_pullback():
            return self._own_cotangents(m, inputs, outputs, [m.of("second")(outputs[0], 1.0)])
        if self.d is None:
            return [Undefined(self.not_differentiable)] * len(inputs)
        # Inputs are cast as for the function itself.  Otherwise a subexpression of float32 inputs
        # alone, such as 1 / y, would be too coarse for a result in float64.
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
        """The cotangents of the inputs from those of the outputs, ``given``.

        Each is an expression, None for zero, or `Undefined`.  A complex cotangent is
        ``d loss / d Re + i d loss / d Im``.
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
        """`cotangents`, of which those of inputs that are not ``wanted`` may be None."""
        if type(self).cotangents is not ScalarOp.cotangents:
            return self.cotangents(m, inputs, outputs, given)
        if self._has_own_pullback():
            return self._own_cotangents(m, inputs, outputs, given)
        return self._cotangents(m, inputs, outputs, given, wanted)

    def _has_own_pullback(self) -> bool:
        """Whether a class of a user defines ``pullback``, ``L_op`` or ``grad`` of scalars."""
        own, base = type(self), ScalarOp
        return (own.pullback, own.L_op, own.grad) != (base.pullback, base.L_op, base.grad)

    def _own_cotangents(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]
    ) -> list[Any]:
        """What the class's own method returns for scalars, computed by the functions of ``m``."""
        replaced = [*inputs, *outputs, *given]
        fresh = [
            v if isinstance(v.type, DisconnectedType) else scalar_type(v.type.dtype)()
            for v in replaced
        ]
        xs, rest = fresh[: len(inputs)], fresh[len(inputs) :]
        ys, gs = rest[: len(outputs)], rest[len(outputs) :]
        own = type(self).pullback is not ScalarOp.pullback
        found = (self.pullback if own else self._older_pullback)(xs, ys, gs)
        values = dict(zip(fresh, replaced))
        return [_expression(m, r, values) for r in found]

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
        """The tangent of the output from those of the inputs, ``given``; None stands for zero.

        It is `Undefined` if a derivative that is needed is.
        """
        partials = self.partials(m, inputs, outputs, [t is not None for t in given])
        terms = [_times(m, p, t) for p, t in zip(partials, given) if not (t is None or p is None)]
        undefined = next((t for t in terms if isinstance(t, Undefined)), None)
        if undefined is not None or not terms:
            return undefined
        total = m.add(*terms) if len(terms) > 1 else terms[0]
        if dtypes.is_complex(total.type.dtype) and not dtypes.is_complex(outputs[0].type.dtype):
            return m.real(total)
        return total

    @property
    def is_variadic(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.nin < 0

    @property
    def rule_key(self) -> Any:
        """None: rules that track a scalar op are about tensors, on which `Elemwise` applies it."""
        return None

    # ----- native form
    def emit(self, n: Any, *inputs: Any) -> Any:
        """The result, built from native instructions by ``n``, including casts of the inputs.

        ``n`` is a builder as described in `phintys.scalar.native`.  Returns NotImplemented if there
        is no native form for the dtypes of the inputs.
        """
        given = [n.dtype(x) for x in inputs]
        cast_to, result = self.signature(given)
        if self.native is None or {*cast_to, result, *given} - NATIVE_DTYPES:
            return NotImplemented
        args = [_in_dtype(n, x, dt) for x, dt in zip(inputs, cast_to)]
        build = self.native
        if isinstance(build, str):
            if build in NOT_IN_WIDER and not COMPUTED_IN.keys().isdisjoint(cast_to):
                return NotImplemented
            if any(dtypes.kind(n.dtype(x)) not in INSTRUCTIONS[build].kinds for x in args):
                return NotImplemented
            instruction = getattr(n, build)
            build = lambda n, *args: instruction(*args)  # noqa: E731
        try:
            if self.nin < 0:
                out = reduce(lambda a, b: _rounded(n, build(n, a, b), result), args)
            else:
                out = build(n, *args)
        except NoForm:
            return NotImplemented
        return out if out is NotImplemented or n.dtype(out) == result else n.cast(out, result)

    def has_native(self, *given: str) -> bool:
        """Whether there is a native form for inputs of these dtypes."""
        found = self._natives[given]
        if found is None:
            found = self._natives.keep(given, self.emit(PROBE, *given) is not NotImplemented)
        return found

    @cached_property
    def _computed_in(self) -> Memo[tuple[str, tuple[str, ...]], tuple[str, ...]]:
        """The dtypes to which inputs are cast, by floatX and dtypes of the inputs."""
        return Memo(32, "dtypes of scalar ops")

    @cached_property
    def _natives(self) -> Memo[tuple[str, ...], bool]:
        """The results of `has_native`, by dtypes of the inputs."""
        return Memo(32, "native forms of scalar ops")

    def __reduce__(self) -> Any:
        if TABLE.get(self.name) is self:
            return _from_table, (self.name,)
        return super().__reduce__()

    def __str__(self) -> str:
        return self.name or type(self).__name__


def _in_dtype(n: Any, x: Any, dtype: str) -> Any:
    """An argument of a native form, cast to a dtype and then to that in which it is computed."""
    x = x if n.dtype(x) == dtype else n.cast(x, dtype)
    return n.cast(x, COMPUTED_IN[dtype]) if dtype in COMPUTED_IN else x


def _rounded(n: Any, x: Any, dtype: str) -> Any:
    """A result in the dtype in which it is computed, rounded to a dtype."""
    return n.cast(n.cast(x, dtype), COMPUTED_IN[dtype]) if dtype in COMPUTED_IN else x


def _expression(m: Any, result: Any, values: Mapping[Variable, Any]) -> Any:
    """A derivative on scalars as an expression of ``m``, with ``values`` in the place of inputs."""
    if result is None or isinstance(result.type, DisconnectedType):
        return None
    if isinstance(result.type, NullType):
        return Undefined(result.type.why_null)
    known = dict(values)
    for node in toposort([result], blockers=values):
        args = [v.data if isinstance(v, Constant) else known[v] for v in node.inputs]
        found = m.of(node.op)(*args)
        known.update(zip(node.outputs, found if len(node.outputs) > 1 else [found]))
    return m.of("identity")(result.data) if isinstance(result, Constant) else known[result]


def _times(m: Any, partial: Any, t: Any) -> Any:
    """The product of a partial derivative, in any form that `ScalarOp.d` allows, with ``t``.

    Where ``t`` is zero because a condition selects so, the product is, whatever the derivative is:
    it may be infinite or NaN in a branch that is not taken.
    """
    if isinstance(partial, Undefined):
        return partial
    selected = _selected(t)
    if selected is not None and not isinstance(partial, float):
        condition, value, where_true = selected
        found = _times(m, partial, value)
        return m.switch(condition, found, 0) if where_true else m.switch(condition, 0, found)
    if isinstance(partial, Inverse):
        return m.true_div(t, partial.of)
    if isinstance(partial, float):
        return t if partial == 1.0 else m.neg(t) if partial == -1.0 else m.mul(t, partial)
    dtype = getattr(getattr(partial, "type", None), "dtype", "")
    if dtype == "bool":
        return m.switch(partial, t, 0)
    return m.mul(t, partial)


def _selected(t: Any) -> tuple[Any, Any, bool] | None:
    """A condition, and what ``t`` is where it holds or fails, if ``t`` is 0 elsewhere; else None.

    The last of the three says which.
    """
    node = t.owner
    if getattr(getattr(node, "op", None), "scalar_op", None) is not TABLE["switch"]:
        return None
    condition, value, other = node.inputs
    if _is_zero(other):
        return condition, value, True
    return (condition, other, False) if _is_zero(value) else None


def _is_zero(x: Any) -> bool:
    """Whether a variable is the constant 0, in any number of axes."""
    while x.owner is not None and hasattr(x.owner.op, "new_order"):
        x = x.owner.inputs[0]
    return isinstance(x, Constant) and x.data.size == 1 and not x.data.any()


def _conj(m: Any, partial: Any) -> Any:
    """The complex conjugate of a partial derivative, in any form that `ScalarOp.d` allows."""
    if isinstance(partial, Undefined):
        return partial
    if isinstance(partial, int | float | complex | np.generic):
        return np.conj(partial)
    if isinstance(partial, Inverse):
        return Inverse(_conj(m, partial.of))
    return m.conj(partial) if dtypes.is_complex(partial.type.dtype) else partial


def _scalar_cotangent(x: Any, g: Any) -> Variable:
    """A derivative as a variable in the dtype of ``x`` (floatX for discrete ones)."""
    if isinstance(g, Undefined):
        return NullType(g.why)()
    dtype = dtypes.as_dtype("floatX") if dtypes.is_discrete(x.type.dtype) else x.type.dtype
    if g is None:
        return constant(np.zeros((), dtype))
    if dtypes.is_complex(g.type.dtype) and not dtypes.is_complex(dtype):
        g = functions.real(g)
    return functions.cast(g, dtype)  # type: ignore[no-any-return]


class _Functions:
    """The scalar ops as attributes, ``functions.exp(x)``: the namespace ``m`` of derivatives."""

    def __getattr__(self, name: str) -> Any:
        if name not in TABLE:
            raise AttributeError(name)
        return TABLE[name]

    @staticmethod
    def of(op: ScalarOp | str) -> Any:
        """A scalar op, given as itself or by name; for tensors, the elementwise function of it."""
        return TABLE[op] if isinstance(op, str) else op

    @staticmethod
    def cast(x: Any, dtype: str) -> Any:
        """``x`` cast to a dtype; ``x`` itself if it has that dtype."""
        x = as_scalar(x)
        dtype = dtypes.as_dtype(dtype)
        return x if x.type.dtype == dtype else TABLE[f"cast_{dtype}"](x)


functions = _Functions()


def lit(x: Any, value: float) -> Any:
    """A number as a NumPy scalar in the float dtype of ``x``.

    A Python number such as 0.1, which float32 does not hold exactly, would be taken for float64 and
    promote float32 expressions.  Write the result right of an operator, or as an argument of a
    function: to its left, NumPy's operator would be called.
    """
    return np.dtype(dtypes.float_of(x.type.dtype)).type(value)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """``coefficients[0] + coefficients[1] x + ...`` by Horner's rule, in the dtype of ``x``."""
    *lower, highest = coefficients
    found = x * lit(x, highest) + lit(x, lower[-1])
    for c in reversed(lower[:-1]):
        found = x * found + lit(x, c)
    return found


def _from_table(name: str) -> ScalarOp:
    return TABLE[name]


class UnaryScalarOp(ScalarOp):
    """A function of one number."""

    nin = 1


class BinaryScalarOp(ScalarOp):
    """A function of two numbers."""

    nin = 2


class LogicalComparison(BinaryScalarOp):
    """A comparison of two numbers, with a bool as result."""


class FixedLogicalComparison(UnaryScalarOp):
    """A predicate of one number, with a bool as result."""


class UnaryBitOp(UnaryScalarOp):
    """A function of the bits of an integer, or of a bool."""


class BinaryBitOp(BinaryScalarOp):
    """A function of the bits of two integers, or of two bools."""


#: The fields of a row that become class attributes; all others are facts.
_FIELDS = {
    *("nin", "function", "rule", "d", "native", "not_differentiable", "cotangents", "tangents"),
    *("compute", "output_dtypes", "connection_pattern", "logs", "distribution", "leading"),
}
_PLAIN = {"rule", "d", "native"}


def define(base: type[ScalarOp], cls: str, name: str, doc: str, **fields: Any) -> Any:
    """Make the class of a row and its only instance, and add both to the tables."""
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
    body["in_python"] = REASONS.get(name, "")
    body["facts"] = fields
    metaclass: Any = type(base)
    made = metaclass(cls, (base,), body)
    CLASSES[cls] = made
    TABLE[name] = op = made()
    return op


def unary(cls: str, name: str, doc: str, **fields: Any) -> Any:
    """Define a function of one number: a row.  Returns the op.

    Parameters
    ----------
    cls, name, doc
        name of the class, name of the function, first line of its documentation
    function, rule, d, not_differentiable, native
        see `ScalarOp`; defaults: ``numpy.<name>``, `inexact`, and none.  ``d`` is called with
        ``(m, x, y)``, where ``y`` is the result
    base
        the base class
    domain, range
        facts: intervals ``(lo, hi)`` on which it is defined and differentiable, and of its values
    logs, distribution, leading
        see `ScalarOp`
    inverse
        fact: the name of ``g`` with ``g(f(x)) == x`` on the domain
    odd, even, increasing, decreasing, zero_at_zero, idempotent
        further facts, True if they hold; idempotent means ``f(f(x)) == f(x)``
    """
    return define(fields.pop("base", UnaryScalarOp), cls, name, doc, **{"rule": inexact} | fields)


def binary(cls: str, name: str, doc: str, **fields: Any) -> Any:
    """Define a function of two numbers; see `unary`.

    The default of ``rule`` is `same`, ``domain`` has one interval per input, and ``d`` is called
    with ``(m, x, y, z)``.  Further facts: ``commutative``, ``associative``, ``identity`` (the
    neutral element), ``idempotent`` (``f(x, x) == x``), ``absorbing`` (the ``a`` with ``f(a, x) ==
    a``), ``unsigned_literals`` (Python integers beside uint64 are uint64).
    """
    return define(fields.pop("base", BinaryScalarOp), cls, name, doc, **fields)


def nary(cls: str, name: str, doc: str, **fields: Any) -> Any:
    """Define an associative function of one or more numbers; see `binary`.

    ``function`` and ``native`` take two arguments.
    """
    return define(ScalarOp, cls, name, doc, nin=-1, associative=True, **fields)


def ternary(cls: str, name: str, doc: str, **fields: Any) -> Any:
    """Define a function of three numbers, or of ``nin``; see `binary`."""
    return define(ScalarOp, cls, name, doc, **{"nin": 3} | fields)


def special(cls: str, name: str, doc: str, make: Callable[..., Any] = unary, **fields: Any) -> Any:
    """Define the function of that name in ``scipy.special``, by ``make``.

    The default of ``rule`` is `inexact_real`: no complex numbers.
    """
    given = {"function": f"scipy.special.{name}", "rule": inexact_real} | fields
    return make(cls, name, doc, **given)


def call(name: str) -> Callable[..., Any]:
    """A native form that calls a library function (see `phintys.scalar.native`)."""
    return lambda n, *args: n.call(name, *args)
