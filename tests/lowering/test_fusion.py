"""How many kernels graphs become, and what is in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Builder
from phintys.lowering.fuse import MAX_OPERANDS
from phintys.lowering.interpret import interpret
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import Kernel, Program
from phintys.lowering.spec import verify
from phintys.lowering.values import Value


def op(name: str) -> Callable[..., Value]:
    return lambda b, *args: b.map(lambda n, *x: getattr(n, name)(*x), *args)


exp, log, add, sub, mul, div = map(op, ("exp", "log", "add", "sub", "mul", "div"))
sin, cos = map(op, ("sin", "cos"))
tanh, sigmoid, softplus = map(op, ("tanh", "sigmoid", "softplus"))


def compiled(b: Builder, *outputs: Value) -> Program:
    return verify(plan_memory(verify(assemble(b, outputs))))


def kinds(program: Program) -> dict[str, int]:
    return dict(Counter(type(s).__name__ for s in program.steps if type(s).__name__ != "Check"))


def kernels(program: Program) -> list[Kernel]:
    return [s for s in program.steps if isinstance(s, Kernel)]


def ops(kernel: Kernel) -> Counter[str]:
    return Counter(inst.op for inst in kernel.body)


def matrix(b: Builder) -> Value:
    return b.input("float64", (None, None))


def vector(b: Builder) -> Value:
    return b.input("float64", (None,))


def over_rows(b: Builder, kind: str, x: Value) -> Value:
    return b.expand(b.reduce(kind, x, (-1,)), -1)


def softmax(b: Builder, x: Value) -> Value:
    e = exp(b, sub(b, x, over_rows(b, "max", x)))
    return div(b, e, over_rows(b, "add", e))


def logsumexp(b: Builder, x: Value) -> Value:
    peak = b.reduce("max", x, (-1,))
    total = b.reduce("add", exp(b, sub(b, x, b.expand(peak, -1))), (-1,))
    return add(b, log(b, total), peak)


def test_chain_is_one_kernel() -> None:
    b = Builder()
    y = x = vector(b)
    for _ in range(10):
        y = tanh(b, add(b, y, x))
    program = compiled(b, y)
    assert kinds(program) == {"Kernel": 1}
    assert ops(kernels(program)[0]) == {"load": 1, "add": 10, "tanh": 10, "store": 1}


def test_softmax_is_one_kernel_with_one_exp_per_element() -> None:
    b = Builder()
    program = compiled(b, softmax(b, matrix(b)))
    assert kinds(program) == {"Kernel": 1}
    assert ops(kernels(program)[0])["exp"] == 1
    assert kernels(program)[0].split == 1
    x = np.random.default_rng(0).normal(size=(3, 5))
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(interpret(program, x)[0], e / e.sum(1, keepdims=True))


def test_softmax_and_its_gradient_are_one_kernel() -> None:
    b = Builder()
    x, g = matrix(b), matrix(b)
    s = softmax(b, x)
    gradient = mul(b, s, sub(b, g, over_rows(b, "add", mul(b, g, s))))
    assert kinds(compiled(b, s, gradient)) == {"Kernel": 1}


def test_log_softmax_and_logsumexp_are_one_kernel() -> None:
    b = Builder()
    x = matrix(b)
    assert kinds(compiled(b, logsumexp(b, x))) == {"Kernel": 1}
    b = Builder()
    x = matrix(b)
    assert kinds(compiled(b, sub(b, x, b.expand(logsumexp(b, x), -1)))) == {"Kernel": 1}


def test_sum_of_rows_is_added_up_in_the_row_kernel() -> None:
    b = Builder()
    total = b.reduce("add", logsumexp(b, matrix(b)), (0,))
    fill, rows = kernels(compiled(b, total))
    assert ops(fill) == {"const": 1, "store": 1}
    assert ops(rows)["accumulate"] == 1


def test_layer_norm_is_one_kernel() -> None:
    b = Builder()
    x, scale = matrix(b), vector(b)
    n = b.cast(b.scalar(b.length(x, 1)), "float64")
    centred = sub(b, x, div(b, over_rows(b, "add", x), n))
    variance = div(b, over_rows(b, "add", mul(b, centred, centred)), n)
    result = mul(b, div(b, centred, op("sqrt")(b, variance)), scale)
    assert kinds(compiled(b, result)) == {"Kernel": 1}


def test_normal_log_density_is_one_kernel_with_the_logarithm_outside() -> None:
    b = Builder()
    x, mu, sigma = vector(b), b.input("float64"), b.input("float64")
    z = div(b, sub(b, x, mu), sigma)
    density = sub(b, mul(b, b.const(-0.5), mul(b, z, z)), log(b, sigma))
    program = compiled(b, b.reduce("add", density, (0,)))
    assert kinds(program) == {"Kernel": 1}


def test_logistic_log_density_and_gradient() -> None:
    b = Builder()
    x, beta, y = matrix(b), vector(b), vector(b)
    eta = b.gemv(x, beta)
    likelihood = b.reduce("add", sub(b, mul(b, y, eta), softplus(b, eta)), (0,))
    prior = mul(b, b.const(-0.5), b.reduce("add", mul(b, beta, beta), (0,)))
    gradient = sub(b, b.gemv(b.permute(x, (1, 0)), sub(b, y, sigmoid(b, eta))), beta)
    program = compiled(b, add(b, likelihood, prior), gradient)
    assert kinds(program) == {"Kernel": 3, "Call": 2}
    rng = np.random.default_rng(1)
    x_, beta_, y_ = rng.normal(size=(6, 3)), rng.normal(size=3), rng.integers(0, 2, 6) * 1.0
    value, slope = interpret(program, x_, beta_, y_)
    e = x_ @ beta_
    expected = (y_ * e - np.log1p(np.exp(e))).sum() - 0.5 * beta_ @ beta_
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(slope, x_.T @ (y_ - 1 / (1 + np.exp(-e))) - beta_)


def test_outputs_over_one_space_share_a_kernel() -> None:
    b = Builder()
    x, y = vector(b), vector(b)
    total = b.reduce("add", mul(b, x, y), (0,))
    assert kinds(compiled(b, exp(b, x), mul(b, x, y), total)) == {"Kernel": 1}


def test_transposed_space_does_not_share() -> None:
    b = Builder()
    x = matrix(b)
    assert kinds(compiled(b, exp(b, x), tanh(b, b.permute(x, (1, 0))))) == {"Kernel": 2}


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_sums_read_in_memory_order(axes: tuple[int, ...]) -> None:
    b = Builder()
    x = b.input("float64", (None, None, None))
    program = compiled(b, b.reduce("add", x, axes))
    kernel = kernels(program)[-1]
    (load,) = (o for o in kernel.operands if o.slot.kind == "input")
    assert load.strides[-1].value == 1
    array = np.random.default_rng(2).normal(size=(2, 3, 4))
    np.testing.assert_allclose(interpret(program, array)[0], array.sum(axes))


def test_loops_follow_a_transposed_operand() -> None:
    b = Builder()
    x, y = matrix(b), matrix(b)
    total = b.reduce("add", mul(b, b.permute(x, (1, 0)), b.permute(y, (1, 0))), (0, 1))
    (kernel,) = kernels(compiled(b, total))
    assert len(kernel.dims) == 1


def test_contiguous_loops_are_merged() -> None:
    b = Builder()
    x = b.input("float64", (None, None, None))
    (kernel,) = kernels(compiled(b, exp(b, x)))
    assert len(kernel.dims) == 1


def test_negative_zero_is_a_constant_of_its_own() -> None:
    b = Builder()
    x = b.input("float64")
    program = compiled(b, op("copysign")(b, x, b.const(0.0)), op("copysign")(b, x, b.const(-0.0)))
    assert [float(r) for r in interpret(program, 3.0)] == [3.0, -3.0]


def test_expensive_value_used_in_two_places_is_computed_once() -> None:
    b = Builder()
    e = exp(b, matrix(b))
    program = compiled(b, b.reduce("add", e, (0,)), b.matmul(e, b.permute(e, (1, 0))))
    assert sum(ops(k)["exp"] for k in kernels(program)) == 1


def test_cheap_value_is_not_stored() -> None:
    b = Builder()
    x, y = matrix(b), b.input("float64", (None, None, None))
    twice = add(b, x, x)
    program = compiled(b, exp(b, twice), add(b, y, twice))
    assert not program.storages


def test_operands_are_limited() -> None:
    b = Builder()
    y = vector(b)
    for _ in range(100):
        y = add(b, y, vector(b))
    program = compiled(b, y)
    assert all(len(k.operands) <= MAX_OPERANDS for k in kernels(program))
    assert len(program.storages) <= 2


@pytest.mark.parametrize("rank", [0, 1])
def test_work_is_linear_in_the_graph(rank: int, lines_run: Callable[..., int]) -> None:
    def work(count: int) -> int:
        b = Builder()
        y = x = b.input("float64", (None,) * rank)
        for i in range(count):
            y = (add, mul, sub)[i % 3](b, y, x) if i % 7 else tanh(b, y)
        return lines_run(compiled, b, y)

    assert work(2400) < 10 * work(300)


def test_deep_graphs_do_not_recurse() -> None:
    b = Builder()
    y: Any = b.input("float64")
    for _ in range(20_000):
        y = tanh(b, y)
    assert kinds(compiled(b, y))["Kernel"] < 200


def test_a_chain_of_which_a_part_is_stored_is_computed_once():
    """A gradient reads many values of a chain, more than one kernel stores."""
    b = Builder()
    x = y = b.input("float64", (None,), "x")
    arguments = []
    for _ in range(100):
        arguments.append(mul(b, y, b.const(1.25)))
        y = add(b, sin(b, arguments[-1]), y)
    slope = b.fill(b.const(1.0), b.shape(x))
    for argument in reversed(arguments):
        slope = mul(b, slope, add(b, cos(b, argument), b.const(0.8)))
    program = compiled(b, y, slope)
    body = [inst.op for step in program.steps if isinstance(step, Kernel) for inst in step.body]
    assert body.count("sin") == body.count("cos") == 100
    value = end = np.linspace(0.0, 1.0, 5)
    expected = np.ones(5)
    for _ in range(100):
        expected = expected * (np.cos(1.25 * end) + 0.8)
        end = np.sin(1.25 * end) + end
    for found, wanted in zip(interpret(program, value), (end, expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
