"""What `InnerGraphOp` gives a subclass: here one that computes its graph several times."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tensor_checks import check_batched, evaluate

import phintys
import phintys.tensor as pt
from phintys import OpFromGraph
from phintys.graph.inner import nested_ops
from phintys.graph.perform import Runner
from phintys.graph.replace import graph_replace
from phintys.graph.variable import Apply
from phintys.inner import InnerGraphOp

x, y = pt.dvectors("x", "y")
V, W = np.array([0.5, 1.0, 2.0]), np.array([0.3, -1.0, 0.1])


class Repeated(InnerGraphOp):
    """Computes new states from states and constants, ``turns`` times.

    The inner graph takes the states and the constants, and gives the new states.
    """

    __props__ = ("turns",)

    def __init__(self, turns, inputs, outputs):
        super().__init__(inputs, outputs, "repeated")
        self.turns = turns

    def make_node(self, *inputs):
        given = [v.type.filter_variable(a) for v, a in zip(self.inner_inputs, inputs, strict=True)]
        return Apply(self, given, [v.type() for v in given[: len(self.inner_outputs)]])

    def infer_shape(self, node, shapes):
        return shapes[: len(node.outputs)]

    def perform(self, node, inputs, output_storage):
        run, count = Runner(self.expanded), len(node.outputs)
        states, constants = list(inputs[:count]), list(inputs[count:])
        for _ in range(self.turns):
            states = run([*states, *constants])
        for cell, state in zip(output_storage, states):
            cell[0] = state

    def lower(self, node, b, *values):
        count = len(node.outputs)
        body = b.inner(self.expanded, values)
        return b.loop(self.turns, body, values[:count], (), values[count:]).states

    def pushforward(self, inputs, outputs, tangents):
        """The states and their tangents, repeated together; the constants have no tangents."""
        count = len(outputs)
        seeds = [v.type() for v in self.inner_inputs[:count]]
        nothing = [None] * (len(inputs) - count)
        variables, found = self.pushforward_graph([*seeds, *nothing])
        n = len(inputs)
        replace = dict(zip(variables[n:], self.bind(variables[:n]), strict=True))
        found = graph_replace(found, replace, strict=False)
        states, constants = variables[:count], variables[count:n]
        both = Repeated(
            self.turns, [*states, *seeds, *constants], [*self.bind(variables[:n]), *found]
        )
        return both(*inputs[:count], *tangents[:count], *inputs[count:], return_list=True)[count:]

    def vectorize_node(self, node, *batched_inputs):
        fresh = [v.type() for v in batched_inputs]
        return Repeated(self.turns, fresh, self.batched_graph(fresh)).make_node(*batched_inputs)


def step(a, b):
    return pt.log(pt.exp(pt.tanh(a) + b * 1.0))


def repeated(turns=5):
    inner = OpFromGraph([x, y], [step(x, y)])
    return Repeated(turns, [x, y], [inner(x, y)])


def expected(turns=5):
    state = V
    for _ in range(turns):
        state = np.tanh(state) + W
    return state


@pytest.mark.parametrize("name", ["FAST_RUN", "FAST_COMPILE", "NUMBA", "JAX"])
def test_values(name):
    f = phintys.function([x, y], repeated()(x, y), mode=name)
    np.testing.assert_allclose(f(V, W), expected(), rtol=1e-12)


def test_it_is_lowered_to_a_loop():
    f = phintys.function([x, y], repeated()(x, y))
    steps = [type(s).__name__ for s in f.program.steps]
    assert "Loop" in steps and "Python" not in steps


def test_its_graph_is_rewritten():
    f = phintys.function([x, y], repeated()(x, y))
    (op,) = nested_ops(n.op for n in f.maker.fgraph.toposort())
    assert [str(n.op) for n in op.fgraph.toposort()] == ["Tanh", "Add"]
    assert isinstance(op, Repeated) and op.turns == 5


def test_it_is_compared_and_copied():
    op = repeated()
    assert op == repeated() != repeated(4)
    assert op != Repeated(5, [x, y], [step(x, y)])
    copied = pickle.loads(pickle.dumps(op))
    assert copied == op and copied.clone() == op
    assert "Inner graphs" in phintys.dprint(op(x, y), file="str")


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_its_tangents_are_those_of_the_unrolled_graph(mode):
    def tangent(out):
        return phintys.pushforward(out, x, pt.as_tensor(V + 1))

    state = x
    for _ in range(5):
        state = step(state, y)
    np.testing.assert_allclose(
        evaluate(tangent(repeated()(x, y)), [x, y], [V, W], mode),
        evaluate(tangent(state), [x, y], [V, W], mode),
        rtol=1e-10,
    )


def test_batches():
    check_batched(lambda a, b: repeated()(a, b), [V, W])
