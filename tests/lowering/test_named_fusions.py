"""Whole graphs: reads at positions, elementwise functions, reductions and writes share kernels."""

from __future__ import annotations

import pytest
from test_fusion import kinds

import phintys
import phintys.tensor as pt
from phintys.lowering.program import Kernel

A, B = pt.dmatrices("A", "B")
x, y = pt.dvectors("x", "y")
k = pt.lvector("k")


def steps(outputs):
    """The kinds of steps of a compiled function, with their numbers."""
    return kinds(phintys.function([A, B, x, y, k], outputs, on_unused_input="ignore").program)


REDUCED = {
    "squares": pt.sqr(x).sum(),
    "products": (x * y).sum(),
    "function": pt.exp(x - y).max(),
    "rows": pt.exp(A).sum(axis=1),
    "all axes": pt.tanh(A + x).sum(),
    "moments": [pt.sqr(x).sum(), x.sum(), x.max()],
    "result": pt.log(pt.exp(x).sum()) + 1,
}
READ = {
    "gather": pt.exp(x[k]) + y,
    "gather and sum": pt.exp(x[k]).sum(),
    "rows and sums": pt.sqr(A[k]).sum(axis=1),
    "columns and sums": (A[:, k] * y).sum(axis=1),
    "two gathers": (x[k] * y[k]).sum(),
}
WRITTEN = {
    "scatter": x[k].inc(pt.exp(y) * 2),
    "gather and scatter": x[k].inc(pt.exp(x[k]) * y[k]),
    "scatter of rows": A[k].inc(pt.tanh(B)),
    "gradient": phintys.grad(pt.sqr(x[k]).sum(), x),
}


@pytest.mark.parametrize("name", REDUCED)
def test_reductions_are_fused(name):
    """`Sum{Sqr}` and the like are one pass: no intermediate array, and no call."""
    assert steps(REDUCED[name]) == {"Kernel": 1}


@pytest.mark.parametrize("name", READ)
def test_reads_and_writes_are_fused(name):
    assert steps(READ[name]) == {"Kernel": 1}


@pytest.mark.parametrize("name", WRITTEN)
def test_writes_are_fused(name):
    """One kernel gathers, computes and writes; another step makes the array that is changed."""
    found = steps(WRITTEN[name])
    assert found in ({"Kernel": 1, "Copy": 1}, {"Kernel": 2})


def storages(outputs):
    program = phintys.function([A, B, x, y, k], outputs, on_unused_input="ignore").program
    temporary = [s for s in program.slots if s.kind == "temp"]
    return len(program.storages), len(temporary), program


def test_buffers_are_reused():
    """A product is added to in its place; its operands, once used, are written over."""
    shared, temporary, program = storages(pt.tanh(A @ B) @ B + pt.exp(A))
    assert shared < max(temporary, 2)
    assert not any(type(s).__name__ == "Copy" for s in program.steps)
    assert sum(isinstance(s, Kernel) for s in program.steps) <= 2


def test_a_chain_of_writes_copies_once():
    z = x
    for i in range(5):
        z = z[i].inc(y[i])
    assert steps(z).get("Copy", 0) <= 1


def test_a_sum_that_is_written_and_read_again_is_computed_once():
    """Three kernels for each step: the two ends are copied, and the sums are stored where read."""
    z = x
    for _ in range(3):
        z = pt.set_subtensor(z[1:-1], z[1:-1] + 0.1 * (z[2:] - 2 * z[1:-1] + z[:-2]))
    assert steps(z) == {"Kernel": 9}
