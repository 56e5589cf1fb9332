"""float16 in machine code: every value, at every width, with and without the processor's help."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from native_functions import WIDTHS, C, compiled, native
from rows import ROWS, accepts, arity

import phintys
import phintys.tensor as pt
from phintys.backends.llvm.ir.conversions import cast
from phintys.backends.llvm.ir.types import KernelWriter, Type
from phintys.backends.llvm.machine.target import Target, current
from phintys.lowering.interpret import interpret
from phintys.lowering.program import Kernel
from phintys.scalar.dtypes import COMPLEX, INTEGER
from phintys.scalar.op import TABLE
from phintys.tensor.elemwise import Elemwise

EVERY = np.arange(2**16, dtype="uint16").view("float16")
CODE = [
    *WIDTHS,
    pytest.param(
        "FAST_RUN",
        {"cpu": "x86-64-v2"},  # which does not convert float16
        id="x86-64-v2",
        marks=pytest.mark.skipif(not current().is_x86, reason="for x86 processors"),
    ),
    C,
]


def assert_same(found: Any, wanted: Any) -> None:
    """Equal numbers of one dtype, and the signs of zeros; NaN where NaN is wanted."""
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    if wanted.dtype.kind == "f":
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(wanted[real]))


def vector(dtype: str = "float16") -> Any:
    return pt.tensor("x", dtype=dtype, shape=(None,))


@pytest.mark.parametrize("mode, settings", CODE)
def test_casts_of_every_value(mode: str, settings: dict[str, Any]) -> None:
    x = vector()
    targets = ["bool", *INTEGER, "float32", "float64"]
    f = native([x], [pt.cast(x, t) for t in targets], mode, settings)
    reference = compiled([x], [pt.cast(x, t) for t in targets], "FAST_COMPILE", {})
    for found, wanted in zip(f(EVERY), reference(EVERY)):
        assert_same(found, wanted)


def doubles() -> np.ndarray:
    """Every float16, the numbers half way between two and the doubles beside them, and others."""
    finite = np.unique(EVERY[np.isfinite(EVERY)].astype("float64"))
    middles = (finite[1:] + finite[:-1]) / 2
    beside = [np.nextafter(middles, sign * np.inf) for sign in (1, -1)]
    rng = np.random.default_rng(0)
    random = rng.integers(0, 2**64, 50_000, dtype="uint64").view("float64")
    limits = [65504, 65519.99, 65520, 65520.01, 1e300, 3e-8, 2.0**-25, 5e-324]
    return np.concatenate([EVERY.astype("float64"), middles, *beside, random, limits])


@pytest.mark.parametrize("mode, settings", CODE)
@pytest.mark.parametrize("source", ["float64", "float32", "int64", "uint64", "int8", "bool"])
def test_rounding(source: str, mode: str, settings: dict[str, Any]) -> None:
    """To the nearest, ties to even, once."""
    with np.errstate(all="ignore"):
        values = doubles() if source[0] == "f" else np.arange(-70_000, 70_000)
        values = values.astype(source)
        wanted = values.astype("float16")
    f = native([x := vector(source)], pt.cast(x, "float16"), mode, settings)
    assert_same(f(values), wanted)


UNARY = [
    name
    for name in ROWS
    if arity(TABLE[name]) == 1 and accepts(TABLE[name], "float16")
    and TABLE[name].has_native("float16")
]  # fmt: skip


@cache
def of_every_value() -> tuple[Any, list[Any], list[Any]]:
    """A vector, the functions of it, and their results by the reference for every value."""
    x = vector()
    outs = [Elemwise(TABLE[name])(x) for name in UNARY]
    return x, outs, compiled([x], outs, "FAST_COMPILE", {})(EVERY)


@pytest.mark.parametrize("mode, settings", CODE)
def test_functions_of_every_value(mode: str, settings: dict[str, Any]) -> None:
    """Equal to NumPy and SciPy to the last bit, and one more unit for functions that differ."""
    x, outs, results = of_every_value()
    f = native([x], outs, mode, settings)
    for name, found, wanted in zip(UNARY, f(EVERY), results, strict=True):
        assert found.dtype == wanted.dtype, name
        if found.dtype != "float16":
            np.testing.assert_array_equal(found, wanted, name)
            continue
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted), name)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                found.astype("float64"), wanted.astype("float64"), 2.0**-10, 2.0**-24, err_msg=name
            )


@pytest.mark.parametrize("mode, settings", CODE)
def test_every_step_is_rounded(mode: str, settings: dict[str, Any]) -> None:
    x, i = vector(), pt.lvector("i")
    outs = [
        x + x - x,  # overflows
        pt.add(x, x, -x),
        x * x + x,  # not fused
        pt.cumsum(x), pt.cumprod(x),
        pt.inc_subtensor(x[i], x[:3]), pt.inc_subtensor(x[1:4], x[:3]),
        pt.set_subtensor(x[i], x[:3]), x[i], pt.join(0, x, x[::-1]), pt.switch(x > 1, x, -x),
    ]  # fmt: skip
    f, reference = native([x, i], outs, mode, settings), compiled([x, i], outs, "FAST_COMPILE", {})
    rng = np.random.default_rng(0)
    for values in (
        np.array([60000, 0.1, 1e-7, np.inf, -60000, 2048.0, 1.0, 1.0, 1.0]),
        rng.normal(size=67), np.full(5000, 0.3), rng.normal(size=33) * 1e4,
    ):  # fmt: skip
        for at in ([4, 4, 4], [0, -1, 2]):
            args = values.astype("float16"), np.array(at)
            with np.errstate(all="ignore"):
                expected = reference(*args)
            for found, wanted in zip(f(*args), expected):
                assert_same(found, wanted)


@pytest.mark.parametrize("mode, settings", CODE)
def test_reductions_accumulate_as_numpy(mode: str, settings: dict[str, Any]) -> None:
    x = pt.tensor("x", dtype="float16", shape=(None, None))
    outs = [
        f(x, axis=axis)
        for f in (pt.sum, pt.prod, pt.max, pt.min, pt.mean, pt.argmax, pt.argmin)
        for axis in (None, 0, 1)
    ]
    outs += [pt.sum(x, axis=1, acc_dtype="float16"), x @ x.T, x @ x[0], x[0] @ x[0]]
    f, reference = native([x], outs, mode, settings), compiled([x], outs, "FAST_COMPILE", {})
    rng = np.random.default_rng(1)
    for values in (
        rng.normal(size=(7, 45)), np.full((3, 4099), 0.3), np.full((2, 3), np.nan),
        rng.uniform(0.5, 2, (4, 9)), np.full((1, 40), 40000.0),
    ):  # fmt: skip
        for found, wanted in zip(f(values.astype("float16")), reference(values.astype("float16"))):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=3e-3, atol=4e-3)


def test_the_interpreter() -> None:
    x, i = vector(), pt.lvector("i")
    outs = [x * x + x, pt.cumsum(x), pt.inc_subtensor(x[i], x[:3]), pt.sum(x), pt.exp(x), x[::-1]]
    f = phintys.function([x, i], outs)
    values = np.array([0.1, 60000, -7, 1e-7, np.inf], "float16"), np.array([1, 1, 4])
    for found, wanted in zip(interpret(f.program, *values), f(*values)):
        np.testing.assert_array_equal(found, wanted)


def test_moves_stay_in_sixteen_bits() -> None:
    """A function that only moves elements converts none."""
    x = pt.tensor("x", dtype="float16", shape=(None, None))
    f = phintys.function([x], x[::2].T)
    (kernel,) = f.program.steps
    assert isinstance(kernel, Kernel)
    assert [inst.op for inst in kernel.body] == ["load", "store"]
    values = EVERY.reshape(256, 256)
    found = f(values)
    np.testing.assert_array_equal(found.view("uint16"), values[::2].T.view("uint16"))


def test_complex_from_float16() -> None:
    x = vector()
    f = phintys.function([x], [pt.cast(x, dtype) for dtype in COMPLEX])
    for found, dtype in zip(f(EVERY), COMPLEX):
        assert_same(found, EVERY.astype(dtype))


PROCESSORS = [
    ("aarch64-unknown-linux-gnu", "generic", "", True),
    ("x86_64-unknown-linux-gnu", "x86-64-v2", "+64bit", False),
    ("x86_64-unknown-linux-gnu", "x86-64-v4", "+64bit", True),
]

PAIRS = [
    *(("float16", t) for t in ("float32", "float64", "int64")),
    *((s, "float16") for s in ("float32", "float64", "int64")),
]


@pytest.mark.parametrize("triple, cpu, features, has_half", PROCESSORS)
def test_conversions_call_no_function(
    triple: str, cpu: str, features: str, has_half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions that LLVM would call are in no library that code is linked with."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = Target(cpu, 0)
    monkeypatch.setitem(target.__dict__, "has_half", has_half)
    for level, width, (source, result) in product((0, 2), (1, 2, 8), PAIRS):
        w, loaded, stored = KernelWriter(target), Type(source, width), Type(result, width)
        x = w(f"load {loaded.memory}, ptr %p, align {loaded.bytes}")
        w.line(f"store {stored.memory} {cast(w, stored, source, x)}, ptr %p, align {stored.bytes}")
        w.line("ret void")
        module = llvm.parse_assembly("\n".join([*w.declares, w.text("void @f(ptr %p)")]))
        machine = llvm.Target.from_triple(triple).create_target_machine(cpu, features, level)
        assert not re.search(r"\b(bl|call|callq)\s", machine.emit_assembly(module))
