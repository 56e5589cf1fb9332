"""`ScalarLoop`: a scalar op that repeats a graph of scalar ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phintys.graph.builder import Builder, V
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.variable import Apply, Variable, late_bound
from phintys.scalar import dtypes
from phintys.scalar.broadcasting import broadcast_shapes, broadcast_to
from phintys.scalar.composite import Composite, ScalarInnerGraphOp
from phintys.scalar.conversion import converted
from phintys.scalar.op import TABLE, Undefined


class ScalarLoop(ScalarInnerGraphOp):
    """A scalar op that replaces numbers, its states, by functions of them, again and again.

    Its inputs are the greatest number of steps, the first states, and the constants.  Its results
    are the last states; with ``until`` also a bool: whether the loop ended because the condition
    became true, or had no steps.  There is no derivative.

    Parameters
    ----------
    init, update
        scalar variables of the states, and the next states as expressions of the same types
    constant
        scalar variables that stay the same
    until
        a bool expression of the states before a step; the step after which it is true is the last

    ValueError if there are not as many updates as states, TypeError if their types differ, or
    ``until`` is no bool.

    >>> from phintys.scalar import float64, gt, int64
    >>> x, c, n = float64("x"), float64("c"), int64("n")
    >>> power = ScalarLoop(init=[x], update=[x * c], constant=[c])
    >>> power.impl(3, 1.0, 2.0)
    np.float64(8.0)
    >>> ScalarLoop(init=[x], update=[x * c], constant=[c], until=gt(x * c, 3)).impl(9, 1.0, 2.0)
    [np.float64(4.0), np.True_]
    """

    __props__ = ("is_while",)
    doc = "A loop of scalar ops."
    has_graph_derivatives = False

    def __init__(
        self,
        init: Sequence[Variable],
        update: Sequence[Variable],
        constant: Sequence[Variable] | None = None,
        until: Variable | None = None,
        name: str = "ScalarLoop",
    ) -> None:
        if len(init) != len(update):
            raise ValueError(f"{len(init)} states need as many updates, not {len(update)}.")
        for before, after in zip(init, update):
            if before.type != after.type:
                raise TypeError(f"The state {before} is {before.type}, its update {after.type}.")
        if until is not None and until.type.dtype != "bool":
            raise TypeError(f"The condition until has dtype {until.type.dtype}, not bool.")
        conditions = [] if until is None else [until]
        self.is_while = until is not None
        super().__init__([*init, *(constant or [])], [*update, *conditions], name)
        self.nin += 1  # the number of steps

    @property
    def n_states(self) -> int:
        """The number of states."""
        return self.nout - self.is_while

    # ----- types
    def output_dtypes(self, *given: str) -> list[str]:
        self.check_arity(len(given))
        own = [v.type.dtype for v in self.inner_inputs]
        if not dtypes.is_discrete(given[0]):
            raise TypeError(f"{self}: the number of steps is an integer, not {given[0]}.")
        for found, wanted in zip(given[1:], own):
            if dtypes.upcast(found, wanted) != wanted:
                raise TypeError(f"{self} takes {', '.join(own)} after the number of steps.")
        return [v.type.dtype for v in self.inner_outputs]

    # ----- values
    def impl(self, *values: Any) -> Any:
        """The results for numbers."""
        found = self.compute(*map(np.asarray, values))
        return found[()] if self.nout == 1 else [x[()] for x in found]

    def compute(self, *values: Any) -> Any:
        """The results for NumPy scalars or arrays, broadcast; each element has its own loop."""
        shape = broadcast_shapes(*(x.shape for x in values))
        steps, *others = [broadcast_to(x, shape) for x in values]
        others = [converted(x, v.type.dtype) for x, v in zip(others, self.inner_inputs)]
        states, constants = others[: self.n_states], others[self.n_states :]
        body = Composite(self.inner_inputs, self.inner_outputs)
        running, done = steps > 0, np.ones(steps.shape, bool)
        count = 0
        while running.any():
            found = body.compute(*states, *constants)
            new = list(found) if self.nout > 1 else [found]
            if self.is_while:
                done = np.where(running, new.pop(), done)
            states = [np.where(running, a, b) for a, b in zip(new, states)]
            count += 1
            running = running & (steps > count)
            if self.is_while:
                running = running & ~done
        results = [np.array(x) for x in states] + [done] * self.is_while
        return results[0] if self.nout == 1 else results

    # ----- derivatives
    def cotangents(self, m: Any, inputs: Any, outputs: Any, given: Any) -> list[Any]:
        return [Undefined("it is a loop")] * self.nin

    def tangents(self, m: Any, inputs: Any, outputs: Any, given: Any) -> Any:
        raise TypeError(f"{self} has no derivative: it is a loop.")

    # ----- lowering: a loop over whole arrays, in which elements that have ended keep their states
    def lower(self, node: Apply, b: Builder[V], *inputs: V) -> Any:
        if node.op is self or any(v.type.is_complex for v in node.outputs):
            return NotImplemented
        graph = _step(self, node)
        steps, *others = inputs
        shape = b.result_shapes(node, *inputs)[0]
        states = [
            b.broadcast_to(b.cast(x, v.type.dtype), shape)
            for x, v in zip(others[: self.n_states], self.inner_inputs)
        ]
        constants = [
            b.cast(x, v.type.dtype)
            for x, v in zip(others[self.n_states :], self.inner_inputs[self.n_states :])
        ]
        active = b.map(lambda n, k: n.gt(k, n.const(0, k)), steps)
        flags = [b.broadcast_to(active, shape), b.broadcast_to(b.const(True), shape)]
        given = [*states, *flags, b.const(0, "int64"), steps, *constants]
        body = b.inner(graph, given)
        most = b.item(b.cast(b.reduce("max", steps, tuple(range(steps.ndim))), "int64"))
        count = len(states) + 3
        looped = b.loop(most, body, given[:count], (), given[count:], until=count)
        return [*looped.states[: len(states)], looped.states[len(states) + 1]][: self.nout]

    # ----- native form
    def emit(self, n: Any, *inputs: Any) -> Any:
        """No native form: kernels have no loops of their own."""
        return NotImplemented


class Grad2F1Loop(ScalarLoop):
    """A `ScalarLoop` that sums the series of a derivative of ``hyp2f1`` in its parameters.

    Graphs of PyTensor contain it, and programs register functions for it.  Derivatives here do
    not: they are the ops ``hyp2f1_der_a`` and ``hyp2f1_der_c``.

    >>> from phintys.scalar import float64
    >>> x, c = float64("x"), float64("c")
    >>> Grad2F1Loop(init=[x], update=[x * c], constant=[c]).impl(3, 1.0, 2.0)
    np.float64(8.0)
    """


def _step(op: ScalarLoop, node: Apply) -> Any:
    """A step of a loop as a graph on arrays, for a node that applies it elementwise.

    Its inputs are the states, which elements are active, which have ended by the condition, the
    number of the step, the greatest numbers of steps, and the constants.  Its outputs are those
    that it changes, and whether no element is active.
    """
    apply: Any = type(node.op)
    n, out = op.n_states, node.outputs[0].type
    states = [v.type.make_variable() for v in node.outputs[:n]]
    flags: list[Any] = [out.clone(dtype="bool").make_variable() for _ in range(2)]
    counter: Any = out.clone(dtype="int64", shape=()).make_variable()
    steps = node.inputs[0].type.make_variable()
    constants = [
        x.type.clone(dtype=v.type.dtype).make_variable()
        for x, v in zip(node.inputs[1 + n :], op.inner_inputs[n:])
    ]
    found = apply(Composite(op.inner_inputs, op.inner_outputs))(
        *states, *constants, return_list=True
    )
    active, done = flags
    switch, following = (
        apply(TABLE["switch"]),
        apply(TABLE["add"])(counter, counter.type.make_constant(1)),
    )
    new = [switch(active, a, old) for a, old in zip(found, states)]
    ended = switch(active, found[n], done) if op.is_while else done
    left = apply(TABLE["and_"])(active, apply(TABLE["gt"])(steps, following))
    if op.is_while:
        left = apply(TABLE["and_"])(left, apply(TABLE["invert"])(ended))
    nothing = apply(TABLE["invert"])(late_bound["any"](left))
    inputs = [*states, *flags, counter, steps, *constants]
    return FunctionGraph(inputs, [*new, left, ended, following, nothing], clone=False)


__all__ = ["Grad2F1Loop", "ScalarLoop"]
