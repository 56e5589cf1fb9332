"""Complex numbers in machine code: moves, functions and sums, at every width, equal to NumPy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from native_functions import WIDTHS, C, compiled, native
from rows import accepts, arity

import phintys
import phintys.tensor as pt
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Kernel
from phintys.lowering.text import parse_program, render_program
from phintys.scalar.dtypes import ALL, COMPLEX
from phintys.scalar.native import INSTRUCTIONS, OF_PAIRS
from phintys.scalar.op import TABLE
from phintys.scalar.pairs import FORMS
from phintys.tensor.elemwise import Elemwise

CODE = [*WIDTHS, C]
#: NumPy computes products of vectors with fused multiply-adds, and those of single numbers without
PRODUCTS = ("mul", "mul_without_zeros", "sqr")
#: functions without a native form, as docs/limits.md lists them
THROUGH_NUMPY = (
    "pow sign exp2 expm1 log1p log1mexp sigmoid softplus xlogy xlog1py exp1 expi spence gamma psi "
    "erf sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh"
).split()
NATIVE = [
    name
    for name, op in TABLE.items()
    if accepts(op, *["complex64"] * arity(op)) and name not in THROUGH_NUMPY
]


def vector(dtype: str = "complex128", name: str = "x") -> Any:
    return pt.tensor(name, dtype=dtype, shape=(None,))


def assert_same(found: Any, wanted: Any, name: str = "") -> None:
    """Equal bits, but for those of NaN."""
    assert found.dtype == wanted.dtype, name
    for a, b in zip(parts(found), parts(wanted)):
        np.testing.assert_array_equal(a, b, name)
        if a.dtype.kind == "f":
            real = ~np.isnan(b)
            np.testing.assert_array_equal(np.signbit(a[real]), np.signbit(b[real]), name)


def assert_close(found: Any, wanted: Any, name: str) -> None:
    """Equal NaN, infinities and signs of zeros in each part; close in the norm of the number."""
    assert found.dtype == wanted.dtype, name
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted, name)
        return
    pairs = list(zip(parts(found), parts(wanted)))
    size = np.max([np.where(np.isfinite(b), np.abs(b), 0) for _, b in pairs], axis=0)
    info = np.finfo(pairs[0][0].dtype)
    for a, b in pairs:
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b), name)
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite], name)
        a, b = a[finite], b[finite]
        near = 16 * info.eps * size[finite] + 4 * info.smallest_subnormal
        assert np.all(np.abs(a - b) <= near), name
        zero = (a == 0) & (b == 0)
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]), name)


def parts(z: Any) -> list[Any]:
    z = np.asarray(z)
    return [z.real, z.imag] if z.dtype.kind == "c" else [z]


def pool(dtype: str, extremes: bool = True) -> np.ndarray:
    """Numbers with all pairs of special and ordinary parts; ``extremes``: of those that round."""
    info = np.finfo(np.zeros((), dtype).real.dtype)
    found = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.nan, np.inf, -np.inf, 30.0]
    if extremes:
        found += [0.6, 0.8, 1e-5]
        largest = [info.max, -info.max, info.max / 3, np.log(info.max) + 0.3, -200.0]
        found += [*largest, info.tiny, -info.smallest_subnormal, info.eps, 1 - info.epsneg]
    values = np.array(found, info.dtype)
    z = np.empty((len(values), len(values)), dtype)
    z.real, z.imag = values[:, None], values
    return z.ravel()


def arguments(op: Any, dtype: str) -> list[np.ndarray]:
    """All numbers of the pool, and for functions of several many pairs of them."""
    z = pool(dtype, extremes=op.name not in PRODUCTS)
    rng = np.random.default_rng(0)
    found = [z] if arity(op) == 1 else [rng.permutation(np.tile(z, 12)) for _ in range(arity(op))]
    return [found[0].real > 0, *found[1:]] if op.name == "switch" else found


@cache
def on_special_values(dtype: str) -> tuple[list[Any], ...]:
    """Inputs; every function with a native form; values, and the results of the reference."""
    inputs, outs, values = [], [], []
    for name in NATIVE:
        args = arguments(TABLE[name], dtype)
        own = [vector(a.dtype.name, f"{name}{k}") for k, a in enumerate(args)]
        inputs += own
        outs.append(Elemwise(TABLE[name])(*own))
        values += args
    with np.errstate(all="ignore"):
        return inputs, outs, values, compiled(inputs, outs, "FAST_COMPILE", {})(*values)


@pytest.mark.parametrize("mode, settings", CODE)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_functions(dtype: str, mode: str, settings: dict[str, Any]) -> None:
    """Every function with a native form, on special values."""
    inputs, outs, values, results = on_special_values(dtype)
    f = native(inputs, outs, mode, settings)
    with np.errstate(all="ignore"):
        for name, found, wanted in zip(NATIVE, f(*values), results, strict=True):
            assert_close(found, wanted, name)


@pytest.mark.parametrize("mode, settings", CODE)
def test_numbers_from_parts(mode: str, settings: dict[str, Any]) -> None:
    x, y = vector("float64"), vector("float64", "y")
    outs = [pt.complex(x, y), pt.complex_from_polar(x, y)]
    outs += [pt.cast(x, dtype) for dtype in COMPLEX]
    f, reference = native([x, y], outs, mode, settings), compiled([x, y], outs, "FAST_COMPILE", {})
    z = pool("complex128", extremes=False)
    with np.errstate(all="ignore"):
        for k, (found, wanted) in enumerate(zip(f(z.real, z.imag), reference(z.real, z.imag))):
            assert_close(found, wanted, str(k))


@pytest.mark.parametrize("mode, settings", CODE)
@pytest.mark.parametrize("dtype", sorted(set(ALL) - set(COMPLEX)))
def test_casts_of_real_numbers(dtype: str, mode: str, settings: dict[str, Any]) -> None:
    values = np.array([0, 1, 2, 100, 127, 3], "float64").astype(dtype)
    x = vector(dtype)
    f = native([x], [pt.cast(x, target) for target in COMPLEX], mode, settings)
    for found, target in zip(f(values), COMPLEX):
        assert_same(found, values.astype(target))


def moves(x: Any, m: Any, i: Any) -> list[Any]:
    """Functions that move elements of a vector and a matrix, and add some."""
    return [
        x[::-1], x[1::2], m.T, m[::-1, 1:], m[:, 0], m.reshape((-1,)), m.ravel()[::3],
        x[i], m[i], m[:, i], m[i, i], m[i, 1], pt.take(m, i, axis=1),
        pt.set_subtensor(x[i], x[0]), pt.set_subtensor(x[1:], x[:-1]),
        pt.set_subtensor(m[:, 1], 2j), pt.inc_subtensor(x[i], x[:3]),
        pt.inc_subtensor(x[1:], x[1:]), pt.inc_subtensor(m[i], m[0]),
        pt.inc_subtensor(m[::2], 1 - 1j), pt.join(0, x, x[::-1]), pt.join(1, m, m[:, :2]),
        pt.stack([x, x + 1]), pt.switch(pt.real(x) > 0, x, -x), pt.where(m.real > 0, m, 0),
        pt.full((3, 2), x[0]), pt.zeros_like(m), pt.full_like(x, 1 - 2j), pt.tile(x, 3),
        pt.repeat(x, 2), pt.roll(m, 1, axis=0), pt.diagonal(m), pt.diag(x), pt.squeeze(m[:, :1], 1),
        pt.broadcast_to(x[0], (4, 3)), m + m[:, 0][:, None], m - x[0], pt.conj(m).T, pt.real(m).T,
    ]  # fmt: skip


@cache
def moves_of(dtype: str) -> tuple[list[Any], list[Any], Any]:
    """Inputs, `moves` of them, and the function of the reference."""
    inputs = [vector(dtype), pt.tensor("m", dtype=dtype, shape=(None, None)), pt.lvector("i")]
    outs = moves(*inputs)
    return inputs, outs, compiled(inputs, outs, "FAST_COMPILE", {})


@pytest.mark.parametrize("mode, settings", CODE)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_moves(dtype: str, mode: str, settings: dict[str, Any]) -> None:
    """Bits are kept, those of NaN and of zeros too."""
    inputs, outs, reference = moves_of(dtype)
    f = native(inputs, outs, mode, settings)
    rng, special = np.random.default_rng(0), pool(dtype, extremes=False)
    for n, rows, columns in ((3, 3, 3), (67, 9, 7), (256, 4, 65), (5, 40, 40)):
        vector_, matrix = rng.choice(special, n), rng.choice(special, (columns, rows)).T
        for at in ([0, 1, 2], [-1, 2, 2]):
            args = vector_[::-1], matrix, np.array(at)
            with np.errstate(all="ignore"):
                for k, (found, wanted) in enumerate(zip(f(*args), reference(*args))):
                    assert_same(found, wanted, str(k))


@pytest.mark.parametrize("mode, settings", CODE)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_sums(dtype: str, mode: str, settings: dict[str, Any]) -> None:
    m = pt.tensor("m", dtype=dtype, shape=(None, None))
    outs = [g(m, axis=axis) for g in (pt.sum, pt.mean) for axis in (None, 0, 1, (0, 1))]
    outs += [pt.sum(m * pt.conj(m)), pt.sum(abs(m) ** 2, axis=0), pt.sum(m, axis=1, keepdims=True)]
    outs += [pt.cumsum(m, axis=0), pt.cumsum(m, axis=1), pt.cumsum(m), pt.any(m, axis=0)]
    outs += [m - pt.mean(m, axis=0), pt.sum(pt.exp(1j * pt.angle(m)))]
    f, reference = native([m], outs, mode, settings), compiled([m], outs, "FAST_COMPILE", {})
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (3, 5), (7, 1000), (1000, 3), (65, 66)):
        value = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
        tolerance = 1e-4 if dtype == "complex64" else 1e-12
        for found, wanted in zip(f(value), reference(value)):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    empty = np.zeros((0, 3), dtype)
    with np.errstate(all="ignore"):
        wanted = reference(empty)
    for found, expected in zip(f(empty), wanted):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_the_interpreter(dtype: str) -> None:
    x, m, i = vector(dtype), pt.tensor("m", dtype=dtype, shape=(None, None)), pt.lvector("i")
    outs = [*moves(x, m, i), x * x + x, pt.sum(m, axis=0), pt.cumsum(x), pt.exp(x), abs(x), x / 3j]
    f = phintys.function([x, m, i], outs)
    rng = np.random.default_rng(0)
    z = (rng.normal(size=21) + 1j * rng.normal(size=21)).astype(dtype)
    args = z[:5], z[5:].reshape(4, 4), np.array([0, -1, 2])
    for found, wanted in zip(interpret(f.program, *args), f(*args)):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_sums_make_no_pairs() -> None:
    """A sum of products adds real numbers; only its result is a pair."""
    x, y = vector(), vector(name="y")
    f = phintys.function([x, y], pt.sum(x * y))
    bodies = [step.body for step in f.program.steps if isinstance(step, Kernel)]
    pairs = [inst for body in bodies for inst in body if inst.op == "complex"]
    sums = [inst for body in bodies for inst in body if inst.op == "reduce"]
    assert len(pairs) == 1 and [inst.dtype for inst in sums] == ["float64", "float64"]
    text = render_program(f.program)
    assert render_program(parse_program(text)) == text


def test_what_runs_through_numpy() -> None:
    for name in THROUGH_NUMPY:
        assert not TABLE[name].has_native(*["complex128"] * arity(TABLE[name])), name
    x = vector()
    for out in (pt.prod(x), pt.cumprod(x), pt.sin(x), x**2.5):
        steps = phintys.function([x], out).program.steps
        assert "Python" in {type(step).__name__ for step in steps}, out


def test_every_instruction_on_complex_numbers_has_a_form() -> None:
    accepted = {row.name for row in INSTRUCTIONS.values() if "c" in row.kinds}
    assert accepted == FORMS.keys() | OF_PAIRS | {"cast"}
