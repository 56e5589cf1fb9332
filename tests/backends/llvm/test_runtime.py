"""What the library that all functions share does for the process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
import phintys.tensor as pt
from phintys import function

x = pt.vector("x")
f = function([x], [x + 1, x * x, 2 - x])
a = np.ones(1_000_000)
for _ in range(3):
    f(a)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    f(a)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries differ")
def test_large_results_find_their_memory_in_place() -> None:
    """24 MB a call are 6000 pages, if the system has to provide them each time."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1000
