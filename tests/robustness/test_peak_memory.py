"""How much memory is needed at the most: after importing, after compiling, between steps."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tiers import few, rest

import phintys
import phintys.tensor as pt

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
PEAK = """
with open('/proc/self/status') as status:
    sizes = dict(line.split()[:2] for line in status if line.endswith('kB\\n'))
print(*[int(sizes[name]) * 1024 / 1e6 for name in ('VmHWM:', 'RssFile:')])
"""
RADON = """
import phintys, phintys.tensor as pt
mean, spread, slope, noise = pt.dscalars("mean", "spread", "slope", "noise")
offset, county = pt.dvector("offset"), pt.lvector("county")
floor, y = pt.dvectors("floor", "y")
z = (y - (mean + pt.exp(spread) * offset)[county] - slope * floor) / pt.exp(noise)
prior = mean**2 + spread**2 + slope**2 + noise**2 + (offset**2).sum()
cost = (-0.5 * z**2 - noise).sum() - 0.5 * prior
wrt = [mean, spread, slope, noise, offset]
f = phintys.function([*wrt, county, floor, y], [cost, *phintys.grad(cost, wrt)])
assert abs(f(0.0, 0.0, 0.0, 0.0, [0.0], [0], [0.0], [2.0])[0] + 2) < 1e-12
"""


def peak(program: str, *, files: bool = True, **environment: str) -> float:
    """The most memory of a process that runs ``program``, in MB.

    ``files=False``: without the pages of shared libraries.  Processes share them, and how many the
    system maps around those that are used depends on how they lie in its cache.
    """
    command = [sys.executable, "-c", program + PEAK]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path)), **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    total, of_files = map(float, done.stdout.split())
    return total if files else total - of_files


@LINUX
def test_importing():
    assert peak("import phintys") <= 60


@LINUX
def test_cold_compilation(tmp_path):
    """Value and gradient of a hierarchical model, nothing compiled before."""
    assert peak(RADON, files=False, PHINTYS_CACHE_DIR=str(tmp_path)) <= 60  # LLVM itself: 70
    assert list(tmp_path.rglob("*"))


DEEP = """
import sys, numpy as np, phintys, phintys.tensor as pt, deep
x = pt.dvector("x")
y = deep.chain(x, DEPTH)
phintys.function([x], [y, phintys.grad(y.sum(), x)])(np.linspace(0.1, 0.9, 5))
"""


@rest
@LINUX
def test_deep_graph(tmp_path):
    """Each stage frees what later ones do not need: bytes per node of a chain with its gradient."""
    depths = 2000, 12_000
    peaks = [
        peak(DEEP.replace("DEPTH", str(n)), files=False, PHINTYS_CACHE_DIR=str(tmp_path / str(n)))
        for n in depths
    ]
    assert (peaks[1] - peaks[0]) * 1e6 / (
        depths[1] - depths[0]
    ) <= 5500  # 4000; 7400 before stages freed theirs


x, w = pt.dmatrices("x", "w")
CHAINS = {
    "products": lambda y, k: pt.dot(y, w),
    "products and maps": lambda y, k: pt.tanh(pt.dot(y, w) * (k + 1)),
    "differences to sums": lambda y, k: y * y - (k + 1) * y.sum(axis=k % 2, keepdims=True),
    "softmax": lambda y, k: pt.special.softmax(y * (k + 1), axis=k % 2),
    "writes of sums": lambda y, k: pt.set_subtensor(pt.tanh(y)[k % 7], y.sum(axis=0)),
    "transposed products": lambda y, k: pt.dot(y.T, w),
}


def chain(name: str, length: int) -> pt.TensorVariable:
    y = x
    for k in range(length):
        y = CHAINS[name](y, k)
    return y


@pytest.mark.parametrize("name", CHAINS)
def test_buffers_of_a_chain_of_50_steps(name):
    """Dead buffers are used again: three of the size of the operands are enough."""
    f = phintys.function([x, w], chain(name, 50), on_unused_input="ignore")
    report = phintys.explain(f)
    large = [size for size in report.storages if size.count("shape") > 1]
    assert sum(report.steps.values()) >= 50
    assert len(large) <= 3, report
    rng = np.random.default_rng(0)
    operands = rng.normal(size=(9, 9)) / 5, rng.normal(size=(9, 9)) / 3
    g = phintys.function([x, w], chain(name, 50), mode="FAST_COMPILE", on_unused_input="ignore")
    np.testing.assert_allclose(f(*operands), g(*operands), rtol=1e-6, atol=1e-12)


SUMS = "y * y - (k + 1) * y.sum(axis=k % 2, keepdims=True)"
MEASURED = """
import phintys, phintys.tensor as pt, numpy as np
x, w = pt.dmatrices("x", "w")
y = x
for k in range({steps}):
    y = {step}
f = phintys.function([x, w], y.sum(), on_unused_input="ignore")
a, b = np.full(({n}, 200), 1e-3), np.full((200, 200), 5e-3)
f(a, b)
"""


@LINUX
@pytest.mark.parametrize(
    "step",
    few(
        ["pt.tanh(pt.dot(y, w) * (k + 1))", SUMS],
        SUMS,
    ),
    ids=["products", "sums"],
)
def test_memory_of_a_chain_does_not_grow_with_its_length(step, tmp_path):
    """What the process really takes, beyond the input of 16 MB."""
    environment = {"PHINTYS_CACHE_DIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    few, many = (MEASURED.format(step=step, steps=50, n=n) for n in (10, 10_000))
    peak(few, **environment)  # fills the cache
    small, large = (peak(program, files=False, **environment) for program in (few, many))
    used = large - small
    assert used <= (1 + 3.5) * 16
