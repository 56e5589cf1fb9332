"""Ops that show values while a function runs: `Print` and `PdbBreakpoint`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phintys.graph.op import Op, Storage
from phintys.graph.shapes import Shape, ShapeContext
from phintys.graph.type import disconnected_type
from phintys.graph.variable import Apply, Variable
from phintys.tensor.convert import as_tensor_variable
from phintys.tensor.reduce import any as any_true
from phintys.tensor.type_other import as_symbolic

__all__ = ["PdbBreakpoint", "Print"]


def _print_fn(op: Print, xin: Any) -> None:
    """Print the message and the attributes of a value, one line each."""
    for attr in op.attrs:
        found = getattr(xin, attr)
        print(op.message, attr, "=", found() if callable(found) else found)


class Print(Op):
    """The identity, which prints its value when a function computes it.

    Values are printed in the order of the graph, by Python on every backend.  It is an op: rewrites
    do not see through it.

    Parameters
    ----------
    message
        printed before the value
    attrs
        what is printed of a value: names of attributes, of which methods are called
    global_fn
        ``global_fn(op, value)``, called in place of printing

    >>> import phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> (Print("x", attrs=("shape", "sum"))(x) * 2).eval({x: [1.0, 2.0]})
    x shape = (2,)
    x sum = 3.0
    array([2., 4.])
    """

    # ----- class and static shape
    __props__ = ("message", "attrs", "global_fn")
    in_python = "it calls a function of the user, or prints"
    view_map = {0: [0]}

    def __init__(
        self,
        message: str = "",
        attrs: Sequence[str] = ("__str__",),
        global_fn: Callable[[Any, Any], Any] = _print_fn,
    ) -> None:
        self.message, self.attrs, self.global_fn = message, tuple(attrs), global_fn

    def make_node(self, *inputs: Any) -> Apply:
        x = as_symbolic(*inputs)
        return Apply(self, [x], [x.type.make_variable()])

    def shape_rule(self, s: ShapeContext, x: Shape) -> list[Shape]:
        return [x]

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        self.global_fn(self, inputs[0])
        output_storage[0][0] = inputs[0]

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False

    # ----- derivatives: those of the identity
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return list(cotangents)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return list(tangents)

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        return self.make_node(*batched_inputs)

    def __str__(self) -> str:
        return f"Print{{{self.message}}}"


class PdbBreakpoint(Op):
    """The identity of some values, which stops in Python's debugger if a condition holds.

    Inputs: the condition, a number, and the values, which are the outputs.

    Parameters
    ----------
    name
        printed when a function stops
    """

    # ----- class and static shape
    __props__ = ("name",)
    in_python = "it starts Python's debugger"

    def __init__(self, name: str) -> None:
        self.name = name

    def make_node(self, *inputs: Any) -> Apply:
        """The node.  TypeError if the condition is no number, ValueError without values."""
        condition, *monitored = inputs
        condition = as_tensor_variable(condition)
        if condition.type.ndim != 0:
            raise TypeError(f"The condition of {self} must be a number, not {condition.type}.")
        if not monitored:
            raise ValueError(f"{self} needs a value to show.")
        values = [as_symbolic(v) for v in monitored]
        op = PdbBreakpoint(self.name)  # each number of values has a view_map of its own
        op.view_map = {k: [k + 1] for k in range(len(values))}
        return Apply(op, [condition, *values], [v.type.make_variable() for v in values])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return list(shapes[1:])

    # ----- perform
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Storage) -> None:
        condition, *values = inputs
        if condition:
            self.stop(values)
        for cell, value in zip(output_storage, values):
            cell[0] = value

    def stop(self, monitored: list[Any]) -> None:
        """Stop in the debugger; what it assigns to the elements of ``monitored`` is used."""
        import pdb

        print(f"-- Breakpoint {self.name!r}: the values are in the list 'monitored'.")
        pdb.set_trace()

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        return False

    # ----- derivatives: those of the identity
    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        count = len(node.outputs)
        return [[i == k + 1 for k in range(count)] for i in range(count + 1)]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [disconnected_type(), *cotangents]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        return list(tangents[1:])

    # ----- batching
    def vectorize_node(self, node: Apply, *batched_inputs: Any) -> Apply:
        condition, *values = batched_inputs
        return self.make_node(any_true(condition), *values)

    def __str__(self) -> str:
        return f"PdbBreakpoint{{{self.name}}}"
