"""The Builder: lengths, equalities, folding of shape computations, views."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_fusion import add, compiled, exp, kinds, matrix, mul, sub, vector

from phintys.dims import Dim
from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Builder, NotNative
from phintys.lowering.equalities import Equalities
from phintys.lowering.interpret import StepFailure, interpret
from phintys.lowering.program import Check
from phintys.lowering.spec import verify
from phintys.lowering.values import Literal, Reshape, Value, View

RNG = np.random.default_rng(3)


def test_equal_lengths_become_one_dim() -> None:
    b = Builder()
    x, y = vector(b), vector(b)
    z = add(b, x, y)
    assert b.length(x, 0) is b.length(y, 0) is b.length(z, 0)
    program = compiled(b, z)
    assert isinstance(program.steps[0], Check)
    with pytest.raises(StepFailure, match="dimension mismatch"):
        interpret(program, np.zeros(3), np.zeros(4))


def test_unknown_length_of_one_does_not_broadcast() -> None:
    b = Builder()
    program = compiled(b, add(b, vector(b), vector(b)))
    with pytest.raises(StepFailure):
        interpret(program, np.zeros(3), np.zeros(1))


def test_static_one_broadcasts() -> None:
    b = Builder()
    x, y = b.input("float64", (None, 1)), b.input("float64", (1, None))
    program = compiled(b, sub(b, x, y))
    assert not any(isinstance(s, Check) for s in program.steps)
    a, c = RNG.normal(size=(3, 1)), RNG.normal(size=(1, 4))
    np.testing.assert_array_equal(interpret(program, a, c)[0], a - c)


def test_static_length_stands_for_an_unknown_one() -> None:
    b = Builder()
    z = add(b, vector(b), b.input("float64", (5,)))
    assert b.length(z, 0).value == 5


def test_lengths_of_python_results_give_way_to_earlier_ones() -> None:
    b = Builder()
    x = vector(b)
    (y,) = b.python(lambda v: (v * 2,), [exp(b, x)], [("float64", (None,))])
    z = add(b, y, exp(b, x))
    assert b.length(z, 0) is b.length(x, 0)
    (result,) = interpret(compiled(b, z), np.zeros(3))
    assert result.tolist() == [3, 3, 3]


def test_compound_lengths_are_unified_and_found_within_others() -> None:
    n, m, k = (Dim.symbol(s) for s in "nmk")
    equalities = Equalities()
    equalities.unify(n + 1, m)
    equalities.unify(k, m)
    assert equalities.find(2 * k) is equalities.find(2 * (n + 1)) or equalities.find(
        m
    ) is equalities.find(k)
    equalities.unify(equalities.find(m), Dim.const(4))
    assert equalities.find(k).value == 4


def test_shape_computations_are_symbolic() -> None:
    b = Builder()
    x = matrix(b)
    n, m = b.shape(x)
    shape = b.vector((n, m))
    first = b.take(shape, 0, 0)
    assert b.item(first) is n
    assert b.items(b.slice(shape, 0, 1, -1, 2)) == (m, n)
    assert b.item(b.reduce("mul", shape, (0,))) is n * m
    joined = b.join([b.slice(shape, 0, 1, 1, 1), b.const(np.array([3]))], 0)
    assert b.items(joined) == (m, Dim.const(3))
    twice = mul(b, shape, b.const(np.int64(2)))
    assert b.items(twice) == (2 * n, 2 * m)
    gathered = b.gather(shape, [b.const(np.array([1, 1, 0]))], [0])
    assert b.items(gathered) == (m, m, n)
    halves = b.map(lambda n, a, c: n.idiv(a, c), first, b.const(np.int64(2)))
    assert b.item(halves) is n // 2


def test_shape_vectors_may_be_arguments() -> None:
    b = Builder()
    x, shape = vector(b), b.input("int64", (None,))
    with pytest.raises(ValueError, match="items"):
        b.items(shape)
    program = compiled(b, b.reshape(x, b.items(shape, 2)))
    assert interpret(program, np.zeros(6), [2, 3])[0].shape == (2, 3)
    with pytest.raises(StepFailure, match="expected 2 items"):
        interpret(program, np.zeros(6), [1, 2, 3])


def test_values_of_shapes_are_right_too() -> None:
    b = Builder()
    shape = b.vector(b.shape(matrix(b)))
    program = compiled(b, shape, b.reduce("add", shape, (0,)))
    vector_, total = interpret(program, np.zeros((3, 4)))
    assert vector_.tolist() == [3, 4]
    assert total == 7


def test_narrow_integers_are_not_folded_past_their_range() -> None:
    b = Builder()
    x = add(b, b.const(np.int8(100)), b.const(np.int8(100)))
    assert x.content is None
    assert interpret(compiled(b, x))[0] == np.int8(-56)


def test_item_of_a_computed_value_is_checked_when_used() -> None:
    b = Builder()
    x, n = vector(b), b.input("int64")
    part = b.slice(x, 0, 0, 1, b.item(n))
    (result,) = interpret(compiled(b, exp(b, part)), np.zeros(5), 2)
    assert result.shape == (2,)
    assert b.item(n) is b.item(n)


@pytest.mark.parametrize("position", [0, 2, -1, -3])
@pytest.mark.parametrize("symbolic", [False, True])
def test_take_is_python_indexing(position: int, symbolic: bool) -> None:
    b = Builder()
    x, i = vector(b), b.input("int64")
    y = b.take(x, 0, b.item(i) if symbolic else position)
    (result,) = interpret(compiled(b, y), np.arange(3.0), position)
    assert result == np.arange(3.0)[position]


@pytest.mark.parametrize("position", [3, -4])
@pytest.mark.parametrize("symbolic", [False, True])
def test_take_out_of_range_fails(position: int, symbolic: bool) -> None:
    b = Builder()
    x, i = vector(b), b.input("int64")
    y = b.take(x, 0, b.item(i) if symbolic else position)
    with pytest.raises(StepFailure):
        interpret(compiled(b, y), np.arange(3.0), position)


@pytest.mark.parametrize("where", [[3], [-4]])
def test_gather_and_scatter_out_of_range_fail(where: list[int]) -> None:
    for make in (
        lambda b, x, i: b.gather(x, [i], [0]),
        lambda b, x, i: b.scatter(x, [i], [0], b.const(1.0), "add"),
    ):
        b = Builder()
        x, i = vector(b), b.input("int64", (None,))
        with pytest.raises(StepFailure, match="out of range"):
            interpret(compiled(b, make(b, x, i)), np.arange(3.0), where)


def test_views_of_views_are_views_of_the_base() -> None:
    b = Builder()
    x = matrix(b)
    n = b.length(x, 0)
    v = b.permute(b.expand(b.slice(x, 0, n - 1, -1, n), 1), (2, 0, 1))
    assert isinstance(v, View)
    assert v.args[0] is x
    back = b.slice(b.permute(b.squeeze(v, 2), (1, 0)), 0, n - 1, -1, n)
    assert back is x


def test_diagonal() -> None:
    b = Builder()
    x = b.input("float64", (None, 2, None))
    program = compiled(b, b.diagonal(x, 0, 2))
    array = RNG.normal(size=(3, 2, 3))
    np.testing.assert_array_equal(interpret(program, array)[0], np.diagonal(array, 0, 0, 2))
    with pytest.raises(StepFailure, match="diagonal"):
        interpret(program, RNG.normal(size=(3, 2, 4)))


def test_reshape_of_ones_is_a_view_and_sizes_are_checked() -> None:
    b = Builder()
    x = matrix(b)
    n, m = b.shape(x)
    assert isinstance(b.reshape(x, (n, 1, m)), View)
    assert isinstance(b.reshape(x, (-1,)), Reshape)
    assert b.reshape(b.reshape(x, (-1,)), (n, m)) is x
    program = compiled(b, b.reshape(x, (2, 3)))
    assert interpret(program, np.zeros((3, 2)))[0].shape == (2, 3)
    with pytest.raises(StepFailure, match="reshape"):
        interpret(program, np.zeros((3, 3)))


def _diagonal(x: Any) -> Any:
    if x.shape[0] != x.shape[1]:
        raise ValueError
    return np.diagonal(x)


#: views, and the same of arrays
VIEWS: list[tuple[Callable[[Builder, Value], Value], Callable[[Any], Any]]] = [
    (lambda b, x: b.take(x, 0, 0), lambda x: x[0]),
    (lambda b, x: b.slice(x, 0, 0, 1, 1), lambda x: x[:1]),
    (lambda b, x: b.permute(x, range(x.ndim)[::-1]), lambda x: x.T),
    (lambda b, x: b.diagonal(x, 0, 1), _diagonal),
    (lambda b, x: b.broadcast_to(x, (3, *b.shape(x))), lambda x: np.broadcast_to(x, (3, *x.shape))),
    (
        lambda b, x: b.broadcast_to(b.expand(x, x.ndim), (*b.shape(x), 3)),
        lambda x: np.broadcast_to(x[..., None], (*x.shape, 3)),
    ),
]


@pytest.mark.parametrize("shape", [(3,), (3, 3), (3, 1, 3)])
def test_reshape_of_views(shape: tuple[int, ...]) -> None:
    """Some have as many elements as their base, but not the same ones."""
    array = RNG.normal(size=shape)
    b = Builder()
    x, found, expected = b.input("float64", shape), [], []
    for (first, by_numpy), (second, again) in itertools.product(VIEWS, repeat=2):
        with contextlib.suppress(IndexError, ValueError):  # where NumPy has no such view
            expected.append(again(by_numpy(array)).reshape(-1))
            found.append(b.reshape(second(b, first(b, x)), (-1,)))
    results = interpret(verify(assemble(b, found)), array)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_constants_are_code_or_slots() -> None:
    b = Builder()
    assert isinstance(b.const(2), Literal)
    assert b.const(np.float32(2)).dtype == "float32"
    one = b.const(np.ones((1, 1)))
    assert one.shape == (1, 1)
    x = add(b, matrix(b), b.const(np.array([1.0, 2.0])))
    assert b.length(x, 1).value == 2


def test_functions_without_a_form_for_complex_numbers_are_refused() -> None:
    b = Builder()
    z = b.input("complex128", (None,))
    with pytest.raises(NotNative):
        b.map(lambda n, x: n.tanh(x), z)
    with pytest.raises(NotNative):
        b.reduce("mul", z, (0,))
    with pytest.raises(NotNative):
        b.dot(z, z)
    assert b.length(z, 0) is b.length(b.expand(z, 0), 1)


def test_unknown_instruction_and_wrong_arity_are_errors() -> None:
    b = Builder()
    x = vector(b)
    with pytest.raises(AttributeError, match="frobnicate"):
        b.map(lambda n, x: n.frobnicate(x), x)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        b.map(lambda n, x: n.add(x), x)


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (2, 0)])
def test_positions_of_extremes(kind: str, axes: tuple[int, ...]) -> None:
    b = Builder()
    x = b.input("float64", (None, None, None))
    program = compiled(b, b.reduce(kind, x, axes))
    array = RNG.integers(0, 3, (2, 3, 4)).astype("float64")
    array[1, 2, 3] = np.nan
    rest = [a for a in range(3) if a not in axes]
    moved = array.transpose(*rest, *sorted(axes)).reshape(*(array.shape[a] for a in rest), -1)
    np.testing.assert_array_equal(interpret(program, array)[0], getattr(np, kind)(moved, -1))
    with pytest.raises(StepFailure, match="empty"):
        interpret(program, np.zeros((0, 0, 0)))


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 2)), ((5, 3, 4), (4, 2)), ((2, 1, 3, 4), (5, 4, 1))]
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_matrix_products(shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    b = Builder()
    arrays = [RNG.integers(0, 2, s).astype(dtype) for s in shapes]
    values = [b.input(dtype, [1 if n == 1 else None for n in s]) for s in shapes]
    program = compiled(b, b.matmul(*values))
    (result,) = interpret(program, *arrays)
    np.testing.assert_allclose(result, arrays[0] @ arrays[1])
    assert result.dtype == dtype
    assert ("Call" in kinds(program)) == dtype.startswith("float")


def test_accumulating_matrix_products() -> None:
    b = Builder()
    x, y, c, v = matrix(b), matrix(b), matrix(b), vector(b)
    s = b.input("float64")
    turned = b.permute(y, (1, 0))
    results = [
        b.gemm(x, turned, c, 2.0, s),
        b.gemv(turned, v, v, s, 3.0),
        b.ger(c, v, v, s),
    ]
    program = compiled(b, *results)
    X, Y, C, V, S = (*(RNG.normal(size=(3, 3)) for _ in range(3)), RNG.normal(size=3), 0.7)
    expected = [2 * X @ Y.T + S * C, S * Y.T @ V + 3 * V, C + S * np.outer(V, V)]
    for result, array in zip(interpret(program, X, Y, C, V, S), expected, strict=True):
        np.testing.assert_allclose(result, array)
