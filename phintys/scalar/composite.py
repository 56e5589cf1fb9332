"""`Composite`: a graph of scalar ops as one scalar op.

It is made by fusion for the transpilers, and by users: ``Composite([x, y], [exp(x * y) + 1])``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from phintys.graph.clone import clone_get_equiv
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import HasInnerGraph
from phintys.graph.traversal import io_toposort
from phintys.graph.type import DisconnectedType
from phintys.graph.variable import Apply, Constant, NominalVariable, Variable
from phintys.scalar import dtypes
from phintys.scalar.native import NATIVE_DTYPES
from phintys.scalar.op import ScalarOp, Undefined
from phintys.scalar.type import scalar_type

_MAX_TEXT = 200
_INFIX = {"add": "+", "mul": "*", "sub": "-", "true_div": "/", "pow": "**", "int_div": "//"}
_INFIX |= {"mod": "%", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "and_": "&", "or_": "|"}


class ScalarInnerGraphOp(ScalarOp, HasInnerGraph):
    """A scalar op that contains a graph of scalar ops."""

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

    __props__ = ("structure",)
    doc = "A composition of scalar ops."

    def __init__(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], name: str = "Composite"
    ) -> None:
        super().__init__(None, name)
        nominal: list[Any] = [NominalVariable(i, v.type) for i, v in enumerate(inputs)]
        copies = clone_get_equiv(inputs, outputs, memo=dict(zip(inputs, nominal)))
        self.inputs = tuple(nominal)
        self.outputs = tuple(copies[v] for v in outputs)
        self.nin, self.nout = len(self.inputs), len(self.outputs)
        self._number()
        self._hash = hash((Composite, self.structure))

    def _number(self) -> None:
        """Convert the graph to steps, pairs (op, numbers of arguments).

        Values are numbered: inputs first, then constants, then the results of the steps in order.
        """
        nodes = io_toposort(self.inputs, self.outputs)
        place: dict[Variable, int] = {v: i for i, v in enumerate(self.inputs)}
        constants: list[Any] = []
        for v in [v for node in nodes for v in node.inputs] + list(self.outputs):
            if v.owner is None and v not in place:
                if not isinstance(v, Constant):
                    raise ValueError(f"{v} is neither a constant nor one of the inputs.")
                place[v] = len(place)
                constants.append(v)
        steps = []
        for node in nodes:
            steps.append((node.op, tuple(place[v] for v in node.inputs)))
            for v in node.outputs:
                place[v] = len(place)
        self.steps: tuple[tuple[Any, tuple[int, ...]], ...] = tuple(steps)
        self.constants = tuple(constants)
        self.results = tuple(place[v] for v in self.outputs)

    @cached_property
    def structure(self) -> Any:
        """The key of equality: types of inputs, constants, steps, numbers of the results."""
        types = tuple(v.type for v in self.inputs)
        return types, tuple(c.signature() for c in self.constants), self.steps, self.results

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self._hash == other._hash  # type: ignore[attr-defined]
            and self.structure == other.structure  # type: ignore[attr-defined]
        )

    def __hash__(self) -> int:
        return self._hash

    @property
    def fgraph(self) -> FunctionGraph:  # type: ignore[override]
        """The graph, as a new FunctionGraph."""
        return FunctionGraph(list(self.inputs), list(self.outputs), clone=True)

    @property
    def inner_inputs(self) -> list[Variable]:
        return list(self.inputs)

    @property
    def inner_outputs(self) -> list[Variable]:
        return list(self.outputs)

    # ----- types
    def output_dtypes(self, *given: str) -> list[str]:
        self.check_arity(len(given))
        return [v.type.dtype for v in self.retyped(given).outputs]

    def retyped(self, given: Sequence[str]) -> Composite:
        """A Composite of the same graph on inputs of dtypes ``given``; itself if it has these."""
        if tuple(given) == tuple(v.type.dtype for v in self.inputs):
            return self
        fresh: list[Any] = [scalar_type(dt)() for dt in given]
        copies = clone_get_equiv(self.inputs, self.outputs, memo=dict(zip(self.inputs, fresh)))
        return Composite(fresh, [copies[v] for v in self.outputs], self.name)

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
        shape = np.broadcast_shapes(*(np.shape(v) for v in values))
        out = [np.broadcast_to(found[i], shape) for i in self.results]
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
            t = op.tangents(m, sources, values[end : end + op.nout], [tangents[i] for i in args])
            tangents.extend(t if op.nout > 1 else [t])
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

    def clone(self) -> Composite:
        return Composite(self.inputs, self.outputs, self.name)

    def __reduce__(self) -> Any:
        return Composite, (self.inputs, self.outputs, self.name)

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
