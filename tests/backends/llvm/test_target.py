"""The machine that code is made for is a setting."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import phintys
import phintys.tensor as pt
from phintys import config
from phintys.backends.llvm.machine import jit
from phintys.backends.llvm.machine.target import Target, current

rng = np.random.default_rng(3)
x86 = pytest.mark.skipif(not current().is_x86, reason="the processors are x86-64 ones")


def test_the_settings_describe_it():
    with config.change_flags(cpu="native", vector_bits=0):
        own = current()
    assert own == Target("native", 0)
    assert own.vector_bits == own.register_bits
    for bits in (128, 256, 512):
        with config.change_flags(vector_bits=bits):
            assert current().vector_bits == bits
            assert current().register_bits == own.register_bits
    with pytest.raises(ValueError, match="not a legal value of"):
        config.vector_bits = 192


@x86
@pytest.mark.parametrize(
    "cpu, bits, registers, fma",
    [("x86-64-v2", 128, 16, False), ("x86-64-v3", 256, 16, True), ("x86-64-v4", 512, 32, True)],
)
def test_levels(cpu, bits, registers, fma):
    target = Target(cpu, 0)
    assert (target.vector_bits, target.registers, target.has_fma) == (bits, registers, fma)
    assert Target(cpu, 512).registers == registers * bits // 512


@pytest.mark.parametrize("cpu", ["no-such-processor", ""])
def test_a_processor_that_llvm_does_not_know(cpu):
    x = pt.scalar("x")
    with config.change_flags(cpu=cpu), pytest.raises(ValueError, match="knows no processor"):
        phintys.function([x], x + 1.0)


@x86
def test_a_processor_that_has_more_than_the_one_here(monkeypatch):
    monkeypatch.setattr(Target, "register_bits", property(lambda t: 128 + t.bits))
    with pytest.raises(ValueError, match="has not all of the instructions"):
        Target("x86-64-v4", 512).machine()


def test_by_the_environment():
    flags = "vector_bits=128" + (",cpu=x86-64-v2" if current().is_x86 else "")
    code = (
        "import numpy, phintys, phintys.tensor as pt\n"
        "from phintys.backends.llvm.machine.target import current\n"
        "x = pt.vector('x')\n"
        "print(phintys.function([x], pt.exp(x).sum())(numpy.zeros(1000)), current())"
    )
    environment = os.environ | {"PHINTYS_FLAGS": flags}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    cpu = "x86-64-v2" if current().is_x86 else "native"
    assert run.stdout.split(" ", 1) == ["1000.0", f"Target(cpu='{cpu}', bits=128)\n"]


CPUS = ["native", "x86-64-v2", "x86-64-v3"] if current().is_x86 else ["native"]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("bits", [0, 128, 256, 512])
def test_functions_for_several_machines_in_one_process(cpu, bits):
    x, w = pt.matrices("x", "w")
    outputs = [pt.softmax(x @ w, axis=1), pt.tanh(x).sum(axis=0), x.T + 1, pt.argmax(x, axis=1)]
    inputs = rng.normal(size=(40, 9)), np.asfortranarray(rng.normal(size=(9, 5)))
    expected = phintys.function([x, w], outputs, mode="FAST_COMPILE")(*inputs)
    made = {}
    for setting in ({}, {"cpu": cpu, "vector_bits": bits}, {}):
        with config.change_flags(**setting):
            made[current()] = f = phintys.function([x, w], outputs)
        for result, value in zip(f(*inputs), expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-12)
    for f in made.values():
        for result, value in zip(f(*inputs), expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-12)


def test_each_width_has_code_of_its_own(monkeypatch):
    """Neither the memory nor the disk hands out code for another width."""
    texts = []
    generate = jit.generate
    monkeypatch.setattr(jit, "generate", lambda *args: texts.append(args[0]) or generate(*args))
    x = pt.vector("x")
    for bits in (128, 256, 512, 128):
        with config.change_flags(vector_bits=bits):
            phintys.function([x], x * 3.25 + 1)
    found = [re.search(r"<(\d+) x double>", text) for text in texts]  # in no loop: no vectors
    assert [match[1] for match in found if match] == ["2", "4", "8"]


@pytest.mark.widths
def test_marked_tests_run_at_each_width(request):
    width = request.node.callspec.id.removesuffix("bits")
    assert width == "own" or config.vector_bits == int(width)
