"""The C generator: random Programs against NumPy, every instruction, errors, the cache."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import few

import phintys
import phintys.tensor as pt
from phintys.backends.c import compile_program
from phintys.backends.c import compiler as build_module
from phintys.errors import CompilerError
from phintys.lowering.assemble import assemble
from phintys.lowering.memory import plan_memory

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from random_values import RandomValues

pytestmark = pytest.mark.skipif(
    not any(shutil.which(c) for c in build_module.COMPILERS), reason="there is no C compiler here"
)


def unexpected(values: Any, step: int) -> None:
    raise AssertionError(f"step {step} failed")


@pytest.mark.parametrize("seed", few(range(40), *range(12)))
def test_random_programs_agree_with_numpy(seed):
    values = RandomValues(seed)
    values.grow(25)
    outputs, expected = values.outputs(3)
    run = compile_program(plan_memory(assemble(values.b, outputs)), unexpected)
    for result, array in zip(run(values.args), expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-9, atol=1e-9)


def test_a_function_with_updates_and_blas():
    w = phintys.shared(np.ones((3, 2)), "w")
    x = pt.dmatrix("x")
    y = pt.tanh(pt.dot(x, w)).sum()
    f = phintys.function([x], y, updates={w: w - 0.1 * phintys.grad(y, w)}, mode="C")
    g_w = phintys.shared(np.ones((3, 2)), "w")
    g_y = pt.tanh(pt.dot(x, g_w)).sum()
    updates = {g_w: g_w - 0.1 * phintys.grad(g_y, g_w)}
    g = phintys.function([x], g_y, updates=updates, mode="FAST_COMPILE")
    for _ in range(3):
        a = np.arange(6.0).reshape(2, 3)
        np.testing.assert_allclose(f(a), g(a))
    np.testing.assert_allclose(w.get_value(), g_w.get_value())


def test_the_code_is_c99_that_a_person_can_read():
    x = pt.dvector("x")
    f = phintys.function([x], pt.exp(x).sum() / 2, mode="C")
    text = f.run.source
    assert "static int64_t kernel_0(" in text
    assert "for (int64_t i0 = s; i0 < e; i0++) {" in text
    assert "exp(v0)" in text


def test_errors_are_those_of_the_reference():
    x, i = pt.dvector("x"), pt.lvector("i")
    f = phintys.function([x, i], x[i] * 2, mode="C")
    np.testing.assert_array_equal(f(np.arange(3.0), [0, -1]), [0, 4])
    with pytest.raises(IndexError) as caught:
        f(np.arange(3.0), [3])
    assert "AdvancedSubtensor" in "".join(caught.value.__notes__)


def test_without_a_compiler_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(build_module.shutil, "which", lambda name: None)
    x = pt.dvector("x")
    with pytest.raises(CompilerError, match="FAST_RUN, which needs none"):
        phintys.function([x], x + 1, mode="C")


def test_a_spoiled_cache_is_rebuilt(monkeypatch, tmp_path):
    monkeypatch.setenv("PHINTYS_CACHE_DIR", str(tmp_path))
    x = pt.dvector("x")
    phintys.function([x], pt.sqrt(x) + 41, mode="C")
    kept = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert kept
    for path in kept:
        path.write_bytes(b"not a library")
    f = phintys.function([x], pt.sqrt(x) + 41, mode="C")
    np.testing.assert_array_equal(f([4.0]), [43.0])


@pytest.mark.parametrize("q", [0.25, 1.0, 3.5, 12.0, 1e3, -0.5, 0.0])
@pytest.mark.parametrize("x", [1.0, 1.5, 2.0, 3.0, 10.0, 0.5])
def test_hurwitz_zeta(x, q, zeta):
    from scipy.special import zeta as expected

    np.testing.assert_allclose(zeta(x, q), expected(x, q), rtol=1e-12)


@pytest.fixture(scope="module")
def zeta():
    a, b = pt.dscalars("a", "b")
    return phintys.function([a, b], phintys_zeta(a, b), mode="C")


def phintys_zeta(a, b):
    from phintys.tensor.elemwise import elementwise

    return elementwise("zeta")(a, b)
