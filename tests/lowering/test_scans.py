"""Running reductions: a step of its own, from any view, along any axis."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from phintys.lowering.assemble import assemble
from phintys.lowering.builder import Builder, NotNative
from phintys.lowering.interpret import interpret
from phintys.lowering.memory import plan_memory
from phintys.lowering.program import Kernel, Program, Scan
from phintys.lowering.spec import IllegalProgram, verify
from phintys.lowering.text import parse_program, render_program
from phintys.lowering.values import Value

UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def compiled(b: Builder, *outputs: Value) -> Program:
    program = verify(plan_memory(verify(assemble(b, outputs))))
    text = render_program(program)
    assert render_program(verify(parse_program(text))) == text
    return program


def cube(b: Builder, dtype: str = "float64") -> Value:
    return b.input(dtype, (None, None, None))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 1, 1)])
def test_along_any_axis(axis: int, shape: tuple[int, ...]) -> None:
    b = Builder()
    x = cube(b)
    array = np.random.default_rng(1).normal(size=shape)
    (found,) = interpret(compiled(b, b.scan("add", x, axis)), array)
    np.testing.assert_array_equal(found, np.add.accumulate(array, axis))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (kind, dtype)
        for kind, dtype in itertools.product(UFUNCS, ["int8", "uint16", "bool"])
        if dtype != "bool" or kind not in ("add", "mul", "max", "min")
    ],
)
def test_every_kind(kind: str, dtype: str) -> None:
    b = Builder()
    array = np.random.default_rng(2).integers(0, 3, (2, 3, 4)).astype(dtype)
    (found,) = interpret(compiled(b, b.scan(kind, cube(b, dtype), 2)), array)
    np.testing.assert_array_equal(found, UFUNCS[kind].accumulate(array, 2, dtype=dtype))


def views(b: Builder, x: Value) -> list[tuple[Value, Any]]:
    n = b.length(x, 2)
    return [
        (b.permute(x, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
        (b.slice(x, 2, n - 1, -1, n), lambda a: a[:, :, ::-1]),
        (b.broadcast_to(b.reduce("add", x, (0,)), b.shape(x)), lambda a: a.sum(0) + 0 * a),
        (b.broadcast_to(b.const(2.0), b.shape(x)), lambda a: 2.0 + 0 * a),
        (b.reshape(x, (1, -1)), lambda a: a.reshape(1, -1)),
    ]


@pytest.mark.parametrize("which", range(5))
def test_of_a_view(which: int) -> None:
    b = Builder()
    value, reference = views(b, cube(b))[which]
    array = np.random.default_rng(3).normal(size=(2, 3, 4))
    (found,) = interpret(compiled(b, b.scan("add", value, 1)), array)
    np.testing.assert_allclose(found, np.add.accumulate(reference(array), 1), rtol=1e-14)


def test_its_argument_is_computed_in_a_kernel_and_so_are_its_users() -> None:
    b = Builder()
    x = cube(b)
    e = b.map(lambda n, x: n.exp(x), x)
    y = b.map(lambda n, x: n.exp(x), b.scan("add", e, 1))
    program = compiled(b, y)
    assert [type(s) for s in program.steps] == [Kernel, Scan, Kernel]


def test_the_sign_of_a_first_zero_is_kept() -> None:
    b = Builder()
    (found,) = interpret(compiled(b, b.scan("add", b.input("float64", (None,)), 0)), [-0.0, -0.0])
    assert np.signbit(found).all()


def test_running_products_of_complex_numbers_are_refused() -> None:
    b = Builder()
    with pytest.raises(NotNative):
        b.scan("mul", b.input("complex128", (None,)), 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scan add", "scan argmax", "kind"),
        ("scan add", "scan sub", "kind"),
        ("$1 = %0", "$1 = %1", "is read before it is filled"),
        ("%1 = output float64", "%1 = output float32", "the dtypes differ"),
        ("scan add [len(0, 0)]", "scan add [len(0, 0), 3]", "strides and dims differ"),
    ],
)
def test_illegal_scans(old: str, new: str, message: str) -> None:
    b = Builder()
    text = render_program(compiled(b, b.scan("add", b.input("float64", (None,)), 0)))
    assert old in text
    with pytest.raises(IllegalProgram, match=message):
        verify(parse_program(text.replace(old, new)))
