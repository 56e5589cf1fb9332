"""Composite: several scalar ops in one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_scalar_native import Numbers

from phintys.scalar import Composite, add, exp, float32, float64, functions, int64, log, mul, sin
from phintys.scalar.native import PROBE
from phintys.scalar.op import TABLE


def two() -> Composite:
    x, y = float64("x"), float64("y")
    return Composite([x, y], [exp(x * y) + 1, x - y])


def test_values_of_several_outputs() -> None:
    a, b = np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.5, -1.0])
    first, second = two().compute(a, b)
    np.testing.assert_allclose(first, np.exp(a * b) + 1)
    np.testing.assert_allclose(second, a - b)


def test_outputs_have_the_broadcast_shape() -> None:
    x, y = float64("x"), float64("y")
    op = Composite([x, y], [x * 2, y * 2, x + y])
    for out in op.compute(np.ones((3, 1)), np.ones((1, 4))):
        assert out.shape == (3, 4)


def test_equality_is_by_structure() -> None:
    x, y = float64("x"), float64("y")
    op = Composite([x, y], [exp(x * y)])
    assert op == Composite([y, x], [exp(y * x)])
    assert hash(op) == hash(Composite([y, x], [exp(y * x)]))
    assert op != Composite([x, y], [exp(y * x)])
    assert op != Composite([x, y], [exp(x + y)])
    assert Composite([x], [x + 1]) != Composite([x], [x + 2])
    a, b = float32("x"), float32("y")
    assert op != Composite([a, b], [exp(a * b)])
    assert op == op.clone()


def test_text() -> None:
    x, y = float64("x"), float64("y")
    assert str(Composite([x, y], [exp(x * y) + 1])) == "Composite{(exp((i0 * i1)) + 1)}"
    assert str(two()) == "Composite{...}"


def test_text_of_shared_subgraphs_stays_short() -> None:
    x = float64("x")
    y = x
    for _ in range(60):
        y = y + y
    assert len(str(Composite([x], [y]))) < 300


def test_pickle_and_inner_graph() -> None:
    op = two()
    assert pickle.loads(pickle.dumps(op)) == op
    assert [v.type for v in op.inner_inputs] == [float64, float64]
    assert len(op.inner_outputs) == len(op.fgraph.outputs) == 2


def test_other_input_dtypes() -> None:
    node = two().make_node(float32("a"), float32("b"))
    assert [v.type for v in node.outputs] == [float32, float32]
    assert [v.type for v in node.op.inputs] == [float32, float32]
    assert two().output_dtypes("int8", "float64") == ["float64", "float64"]


def test_foreign_variables_are_refused() -> None:
    x, y = float64("x"), float64("y")
    with pytest.raises(ValueError, match=r"y .* is not an input"):
        Composite([x], [x + y])


def test_nested() -> None:
    x = float64("x")
    inner = Composite([x], [x * x])
    outer = Composite([x], [inner(x) + inner(x + 1)])
    assert outer.compute(np.float64(2)) == 13


def test_native_form() -> None:
    a, b = np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.5, -1.0])
    for found, expected in zip(two().emit(Numbers(), a, b), two().compute(a, b)):
        np.testing.assert_array_equal(found, expected)
    n, x = int64("n"), float64("x")
    assert Composite([n], [n**n]).emit(PROBE, "int64") is NotImplemented
    assert Composite([x], [x * 1j]).emit(PROBE, "float64") == "complex128"
    assert Composite([x], [(x * 1j) ** 2.5]).emit(PROBE, "float64") is NotImplemented


def test_derivatives_of_several_outputs() -> None:
    op = two()
    x, y, g, h = (float64(name) for name in "xygh")
    node = op.make_node(x, y)
    cotangents = op.cotangents(functions, [x, y], node.outputs, [g, h])
    values = [np.float64(v) for v in (0.3, -0.7, 1.5, 0.5)]
    found = Composite([x, y, g, h], cotangents).compute(*values)
    e = np.exp(0.3 * -0.7)
    np.testing.assert_allclose(found, [1.5 * e * -0.7 + 0.5, 1.5 * e * 0.3 - 0.5])
    tangents = op.tangents(functions, [x, y], node.outputs, [g, None])
    found = Composite([x, y, g], tangents).compute(*values[:3])
    np.testing.assert_allclose(found, [1.5 * e * -0.7, 1.5])


def test_an_unused_input_has_no_cotangent() -> None:
    x, y, g = float64("x"), float64("y"), float64("g")
    op = Composite([x, y], [x * 2])
    in_x, in_y = op.cotangents(functions, [x, y], op.make_node(x, y).outputs, [g])
    assert in_y is None
    assert in_x is not None


def test_deep_graph() -> None:
    """No recursion, linear cost."""
    x = float64("x")
    y = x
    for _ in range(20_000):
        y = add(y, 1.0)
    op = Composite([x], [y])
    assert op.compute(np.float64(0)) == 20_000
    assert op == pickle.loads(pickle.dumps(op))


UNARY = ["neg", "sqr", "exp", "sin", "tanh", "abs", "sigmoid"]
BINARY = ["add", "mul", "sub", "maximum", "hypot"]


@given(st.lists(st.tuples(st.sampled_from(UNARY + BINARY), st.integers(0, 99), st.integers(0, 99)),
                min_size=1, max_size=12))  # fmt: skip
def test_random_graphs_agree_with_op_by_op(steps: list[tuple[str, int, int]]) -> None:
    x, y = float64("x"), float64("y")
    graph = [x, y]
    a, b = np.array([0.3, -1.2]), np.array([0.9, 0.4])
    numbers = [a, b]
    for name, i, k in steps:
        arguments = [i % len(graph), k % len(graph)][
            : TABLE[name].nin if TABLE[name].nin > 0 else 2
        ]
        graph.append(TABLE[name](*(graph[j] for j in arguments)))
        numbers.append(TABLE[name].compute(*(numbers[j] for j in arguments)))
    op = Composite([x, y], graph[2:])
    found = op.compute(a, b)
    for value, expected in zip(found if op.nout > 1 else [found], numbers[2:]):
        np.testing.assert_array_equal(value, expected)
    assert pickle.loads(pickle.dumps(op)) == op


def test_uses_rows_by_name() -> None:
    x = float64("x")
    op = Composite([x], [log(mul(sin(x), sin(x)) + 1)])
    np.testing.assert_allclose(op.compute(np.float64(0.5)), np.log(np.sin(0.5) ** 2 + 1))
