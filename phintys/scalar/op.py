"""`ScalarOp`: a function of numbers, described by one row.

A row (`unary`, `binary`, `nary`, called in the tables of this folder) says everything about an
elementwise function: its value (a NumPy or SciPy function), its dtype rule, its derivative, its native form,
algebraic facts, documentation.  The tensor function, its gradient, the code generators,
the reference page and the tests are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from phintys.graph.op import Op
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply
from phintys.scalar import dtypes
from phintys.scalar.native import INSTRUCTIONS, NATIVE_DTYPES
from phintys.scalar.type import as_scalar, scalar_type

#: name -> ScalarOp without parameters, in the order of definition
TABLE: dict[str, ScalarOp] = {}

DtypeRule = Callable[..., "tuple[str, str]"]


# -------------------------------------------------------------------- dtype rules
# A rule maps input dtypes to (dtype the inputs are cast to, dtype of the result).


def same(*given: str) -> tuple[str, str]:
    """Computed and returned in the common dtype of the inputs."""
    common = dtypes.upcast(*given)
    return common, common


def inexact(*given: str) -> tuple[str, str]:
    """Like `same`, where discrete dtypes become float."""
    common = dtypes.upcast(*map(dtypes.float_of, given))
    return common, common


def to_bool(*given: str) -> tuple[str, str]:
    """Computed in the common dtype; the result is bool."""
    return dtypes.upcast(*given), "bool"


class ScalarOp(Op):
    """A function of ``nin`` numbers with one result (several for `Composite`).

    Instances without parameters are equal if they are of the same class.
    """

    __props__ = ()
    name: str = ""
    nin: int = -1
    nout: int = 1
    doc: str = ""
    #: dotted name of the NumPy or SciPy function that computes it
    function: str = ""
    #: see the dtype rules above
    rule: DtypeRule = staticmethod(same)
    #: partial derivatives: ``d(m, *inputs, output)`` -> one expression per input (None: zero)
    d: Callable[..., Any] | None = None
    #: why there is no derivative, where ``d`` is None and the result is continuous
    not_differentiable: str = ""
    #: an instruction's name, or ``native(n, *inputs)``
    native: Any = None
    #: algebraic facts used by rewrites and tests (see the tables)
    facts: dict[str, Any] = {}  # noqa: RUF012

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

    def output_dtypes(self, *given: str) -> list[str]:
        """dtypes of the results for input dtypes; TypeError if the function is not defined on them."""
        self.check_arity(len(given))
        return [self.rule(*given)[1]]

    def check_arity(self, n: int) -> None:
        if self.nin >= 0 and n != self.nin:
            raise TypeError(f"{self} takes {self.nin} arguments, not {n}.")
        if self.nin < 0 and n < 1:
            raise TypeError(f"{self} takes at least one argument.")

    @cached_property
    def nfunc(self) -> Callable[..., Any]:
        """The NumPy or SciPy function (imported when first needed)."""
        module, _, attribute = self.function.rpartition(".")
        return getattr(import_module(module), attribute)

    def compute(self, *values: Any) -> Any:
        """The result for NumPy values (arrays broadcast); what `perform` of scalars and tensors calls."""
        given = [v.dtype.name for v in values]
        cast_to, result = self.rule(*given)
        args = [v if v.dtype.name == cast_to else v.astype(cast_to) for v in values]
        with np.errstate(all="ignore"):
            if len(args) > 2 and self.nin < 0:
                out = args[0]
                for a in args[1:]:
                    out = self.nfunc(out, a)
            elif len(args) == 1 and self.nin < 0:
                out = args[0]
            else:
                out = self.nfunc(*args)
        return np.asarray(out).astype(result, copy=False)

    # ----- as an op on scalars
    def make_node(self, *inputs: Any) -> Apply:
        self.check_arity(len(inputs))
        args = [as_scalar(x) for x in inputs]
        out = self.output_dtypes(*(a.type.dtype for a in args))
        return Apply(self, args, [scalar_type(dt)() for dt in out])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        values = [np.asarray(x, v.type.dtype) for x, v in zip(inputs, node.inputs)]
        output_storage[0][0] = self.compute(*values)[()]

    # ----- derivatives: m is a namespace of functions, scalar or tensor ones
    def partials(self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """d output / d input for each input; None where it is zero everywhere."""
        if self.d is None:
            if dtypes.is_discrete(outputs[0].type.dtype) and not self.not_differentiable:
                return [None] * len(inputs)
            raise TypeError(self.not_differentiable or f"{self} has no derivative.")
        found = self.d(m, *inputs, outputs[0])
        return [found] if len(inputs) == 1 and not isinstance(found, tuple | list) else list(found)

    def cotangents(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]
    ) -> list[Any]:
        """Cotangents of the inputs (None: zero); rows override it where a product is not good enough."""
        if isinstance(given[0].type, type(disconnected_type)):
            return [None] * len(inputs)
        partials = self.partials(m, inputs, outputs)
        return [None if p is None else given[0] * p for p in partials]

    def tangents(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]
    ) -> Any:
        """Tangent of the output from those of the inputs (None entries are absent)."""
        partials = self.partials(m, inputs, outputs)
        terms = [p * t for p, t in zip(partials, given) if t is not None and p is not None]
        return m.add(*terms) if terms else None

    # ----- native form
    def emit(self, n: Any, inputs: Sequence[Any]) -> Any:
        """The function in native instructions, casts included; NotImplemented without a native form."""
        given = [n.dtype(x) for x in inputs]
        cast_to, result = self.rule(*given)
        if self.native is None or {cast_to, result, *given} - NATIVE_DTYPES:
            return NotImplemented
        args = [x if n.dtype(x) == cast_to else n.cast(x, cast_to) for x in inputs]
        if isinstance(self.native, str):
            build = getattr(n, self.native)
            if dtypes.kind(cast_to) not in INSTRUCTIONS[self.native].kinds:
                return NotImplemented
            out = args[0] if self.nin < 0 else build(*args)
            for a in args[1:] if self.nin < 0 else ():
                out = build(out, a)
        else:
            out = type(self).native(n, *args)
        return out if out is NotImplemented or n.dtype(out) == result else n.cast(out, result)

    def __reduce__(self) -> Any:
        if not self.__props__:
            return _from_table, (self.name,)
        return _with_props, (self.name, tuple(getattr(self, p) for p in self.__props__))

    def __str__(self) -> str:
        return self.name or type(self).__name__


#: class of each row by the row's name, for unpickling and for ops with parameters
CLASSES: dict[str, type[ScalarOp]] = {}


def _from_table(name: str) -> ScalarOp:
    return TABLE[name]


def _with_props(name: str, props: tuple[Any, ...]) -> ScalarOp:
    return CLASSES[name](*props)


def define(cls: str, name: str, nin: int, doc: str, **fields: Any) -> ScalarOp:
    """Make the class of a row and its one instance; every table function ends here."""
    known = {"function", "rule", "d", "native", "not_differentiable", "cotangents", "tangents"}
    known |= {"partials", "compute", "output_dtypes"}
    body: dict[str, Any] = {"name": name, "nin": nin, "doc": doc, "__doc__": doc}
    for key in known & fields.keys():
        value = fields.pop(key)
        plain = key in ("rule", "d", "native") and callable(value)
        body[key] = staticmethod(value) if plain else value
    body["facts"] = fields
    body["__module__"] = "phintys.scalar"
    made = type(ScalarOp)(cls, (ScalarOp,), body)
    op = made()
    TABLE[name] = op
    CLASSES[name] = made
    return op


def unary(cls: str, name: str, doc: str, **fields: Any) -> ScalarOp:
    """A row for a function of one number.

    Fields: ``function`` (default ``numpy.<name>``), ``rule`` (default `inexact`), ``d`` (``lambda m, x, y:`` the
    derivative), ``native``; facts: ``inverse`` (name), ``odd``, ``even``, ``increasing``, ``domain`` (lo, hi),
    ``zero_at_zero``, ``range``.
    """
    return define(cls, name, 1, doc, **_defaults(name, fields, inexact))


def binary(cls: str, name: str, doc: str, **fields: Any) -> ScalarOp:
    """A row for a function of two numbers; fields as in `unary`."""
    return define(cls, name, 2, doc, **_defaults(name, fields, same))


def nary(cls: str, name: str, doc: str, **fields: Any) -> ScalarOp:
    """A row for an associative function of any number of numbers (add, mul, maximum, ...)."""
    return define(cls, name, -1, doc, associative=True, **_defaults(name, fields, same))


def _defaults(name: str, fields: dict[str, Any], rule: DtypeRule) -> dict[str, Any]:
    return {"function": f"numpy.{name}", "rule": rule} | fields
