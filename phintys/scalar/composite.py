"""`Composite`: a graph of scalar ops as one scalar op.

It is made by fusion for the transpilers, and by users: ``Composite([x, y], [exp(x * y) + 1])``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from phintys.graph.clone import clone_get_equiv
from phintys.graph.type import DisconnectedType
from phintys.graph.variable import Apply, Constant, Variable
from phintys.inner.op import InnerGraphOp
from phintys.scalar import dtypes
from phintys.scalar.broadcasting import broadcast_shapes, broadcast_to
from phintys.scalar.native import NATIVE_DTYPES
from phintys.scalar.op import ScalarOp, Undefined
from phintys.scalar.type import scalar_type

_MAX_TEXT = 200
_INFIX = {
    **{"add": "+", "mul": "*", "sub": "-", "true_div": "/", "pow": "**", "int_div": "//"},
    **{"mod": "%", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "and_": "&", "or_": "|"},
}


class ScalarInnerGraphOp(ScalarOp, InnerGraphOp):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A scalar op that contains a graph of scalar ops."""

    __props__ = ("fgraph",)

    def __init__(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], name: str = ""
    ) -> None:
        ScalarOp.__init__(self)
        InnerGraphOp.__init__(self, inputs, outputs, name)
        self.nin, self.nout = len(self.fgraph.inputs), len(self.fgraph.outputs)

    @property
    def fn(self) -> Callable[..., Any]:
        """The function that computes the results for NumPy values."""
        return self.compute


class Composite(ScalarInnerGraphOp):
    """A scalar op that computes a graph of scalar ops.

    Parameters
    ----------
    inputs, outputs
        scalar variables; the outputs depend only on the inputs and on constants, else ValueError

    Two Composites are equal if their graphs are; names of variables do not matter.

    >>> from phintys.scalar import exp, float64
    >>> x, y = float64("x"), float64("y")
    >>> Composite([x, y], [exp(x * y) + 1])
    Composite{(exp((i0 * i1)) + 1)}
    >>> Composite([x, y], [x * y]) == Composite([y, x], [y * x])
    True
    """

    __props__ = ("fgraph",)
    doc = "A composition of scalar ops."

    def __init__(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], name: str = "Composite"
    ) -> None:
        super().__init__(inputs, outputs, name)

    @property
    def inputs(self) -> list[Any]:
        """The inputs of the inner graph."""
        return self.inner_inputs

    @property
    def outputs(self) -> list[Any]:
        """The outputs of the inner graph."""
        return self.inner_outputs

    # ----- the graph as steps: values are numbered, inputs first, then constants, then the results
    @cached_property
    def constants(self) -> tuple[Any, ...]:
        """The constants of the graph, in order of first use."""
        used = [v for node in self.fgraph.toposort() for v in node.inputs] + self.outputs
        return tuple(dict.fromkeys(v for v in used if isinstance(v, Constant)))

    @cached_property
    def _numbers(self) -> dict[Variable, int]:
        results = [v for node in self.fgraph.toposort() for v in node.outputs]
        return {v: i for i, v in enumerate([*self.inputs, *self.constants, *results])}

    @cached_property
    def steps(self) -> tuple[tuple[Any, tuple[int, ...]], ...]:
        """Pairs (op, numbers of its arguments), in topological order."""
        number = self._numbers
        nodes = self.fgraph.toposort()
        return tuple([(node.op, tuple([number[v] for v in node.inputs])) for node in nodes])

    @cached_property
    def results(self) -> tuple[int, ...]:
        """The numbers of the results."""
        return tuple([self._numbers[v] for v in self.outputs])

    # ----- types
    def output_dtypes(self, *given: str) -> list[str]:
        self.check_arity(len(given))
        return [v.type.dtype for v in self.retyped(given).outputs]

    def retyped(self, given: Sequence[str]) -> Composite:
        """A Composite of the same graph on inputs of dtypes ``given``; itself if it has these."""
        if tuple(given) == tuple(v.type.dtype for v in self.inputs):
            return self
        fresh: list[Any] = [scalar_type(dt)() for dt in given]
        old = self.thawed()
        copies = clone_get_equiv(old.inputs, old.outputs, memo=dict(zip(old.inputs, fresh)))
        return Composite(fresh, [copies[v] for v in old.outputs], self.name)

    def make_node(self, *inputs: Any) -> Apply:
        self.check_arity(len(inputs))
        node = super().make_node(*inputs)
        op = self.retyped([v.type.dtype for v in node.inputs])
        return node if op is self else op.make_node(*node.inputs)

    # ----- values
    def run(
        self, inputs: Sequence[Any], constant: Callable[[Any], Any], apply: Callable[..., Any]
    ) -> list[Any]:
        """All values by number, from those of the inputs.

        ``constant(variable)`` gives the value of a constant, ``apply(op, *args)`` that of a step.
        """
        values = [*inputs, *map(constant, self.constants)]
        for op, args in self.steps:
            found = apply(op, *(values[i] for i in args))
            values.extend(found if op.nout > 1 else [found])
        return values

    def compute(self, *values: Any) -> Any:
        given = [dtypes.canonical(v.dtype) for v in values]
        if given != [v.type.dtype for v in self.inputs]:
            return self.retyped(given).compute(*values)
        found = self.run(values, lambda c: np.asarray(c.data), lambda op, *xs: op.compute(*xs))
        shape = broadcast_shapes(*(np.shape(v) for v in values))
        out = [broadcast_to(found[i], shape) for i in self.results]
        return out[0] if self.nout == 1 else out

    # ----- derivatives
    def cotangents(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]
    ) -> list[Any]:
        values = self.run(inputs, lambda c: c.data, lambda op, *xs: m.of(op)(*xs))
        total: dict[int, Any] = {}
        for place, g in zip(self.results, given):
            if not isinstance(g.type, DisconnectedType):
                _accumulate(m, total, place, g)
        end = len(values)
        for op, args in reversed(self.steps):
            end -= op.nout
            arrived = [total.get(end + k) for k in range(op.nout)]
            if all(g is None for g in arrived):
                continue
            sources = [_as_variable(m, values[i]) for i in args]
            found = _step_cotangents(op, m, sources, values[end : end + op.nout], arrived)
            for place, g in zip(args, found):
                _accumulate(m, total, place, g)
        return [total.get(i) for i in range(self.nin)]

    def tangents(
        self, m: Any, inputs: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]
    ) -> Any:
        values = self.run(inputs, lambda c: c.data, lambda op, *xs: m.of(op)(*xs))
        tangents: list[Any] = [*given, *(None for _ in self.constants)]
        end = len(tangents)
        for op, args in self.steps:
            sources = [_as_variable(m, values[i]) for i in args]
            arrived = [tangents[i] for i in args]
            t = next((t for t in arrived if isinstance(t, Undefined)), None)
            if t is None:
                t = op.tangents(m, sources, values[end : end + op.nout], arrived)
            tangents.extend(t if isinstance(t, list) else [t] * op.nout)
            end += op.nout
        found = [tangents[i] for i in self.results]
        return found[0] if self.nout == 1 else found

    # ----- native form
    def emit(self, n: Any, *inputs: Any) -> Any:
        own = [v.type.dtype for v in self.inputs]
        constants = {c.type.dtype for c in self.constants}
        given = [n.dtype(x) for x in inputs]
        if given != own:
            return self.retyped(given).emit(n, *inputs)
        if {*own, *constants} - NATIVE_DTYPES:
            return NotImplemented
        values = [*inputs, *(n.const(c.data.item(), c.type.dtype) for c in self.constants)]
        for op, args in self.steps:
            found = op.emit(n, *(values[i] for i in args))
            if found is NotImplemented:
                return NotImplemented
            values.extend(found if op.nout > 1 else [found])
        out = [values[i] for i in self.results]
        return out[0] if self.nout == 1 else out

    def __str__(self) -> str:
        if self.name != "Composite":
            return self.name
        return f"Composite{{{self._text if self.nout == 1 else '...'}}}"

    @cached_property
    def _text(self) -> str:
        names = [f"i{i}" for i in range(self.nin)]
        texts = self.run(names, lambda c: str(c.data), _write)
        found: str = texts[self.results[0]]
        return found if len(found) <= _MAX_TEXT else "..."

    __repr__ = __str__


def _write(op: Any, *args: str) -> Any:
    """The text of a step, or of its results; dots if it is longer than `_MAX_TEXT`."""
    infix = _INFIX.get(op.name)
    text = f"({f' {infix} '.join(args)})" if infix else f"{op}({', '.join(args)})"
    text = text if len(text) <= _MAX_TEXT else "." * (_MAX_TEXT + 1)
    return text if op.nout == 1 else [f"{text}.{i}" for i in range(op.nout)]


def _as_variable(m: Any, x: Any) -> Any:
    """A value as a variable of the language of ``m``: scalars or tensors."""
    return x if isinstance(x, Variable) else m.of("identity").make_node(x).inputs[0]


def _step_cotangents(op: Any, m: Any, inputs: Any, outputs: Any, given: Any) -> list[Any]:
    """The cotangents of the inputs of a step; None among ``given`` stands for zero.

    If one of ``given`` is `Undefined`, all are.
    """
    undefined = [g for g in given if isinstance(g, Undefined)]
    if undefined:
        return undefined[:1] * len(inputs)
    cotangents = [m.second(v, 0.0) if g is None else g for v, g in zip(outputs, given)]
    found: list[Any] = op.cotangents(m, inputs, outputs, cotangents)
    return found


def _is_disconnected(g: Any) -> bool:
    return isinstance(g, Variable) and isinstance(g.type, DisconnectedType)


def _accumulate(m: Any, total: dict[int, Any], place: int, g: Any) -> None:
    """Add a cotangent to that of value number ``place``; once undefined, it stays so."""
    known = total.get(place)
    if g is None or isinstance(known, Undefined) or _is_disconnected(g):
        return
    total[place] = g if known is None or isinstance(g, Undefined) else m.add(known, g)
