"""Kernels that run strip by strip, in C."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import few

from phintys.backends.c import compile_program, compiler
from phintys.lowering import strips

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
import shifted_chains

pytestmark = pytest.mark.skipif(
    not any(shutil.which(c) for c in compiler.COMPILERS), reason="there is no C compiler here"
)


def unexpected(values: Any, step: int) -> None:
    raise AssertionError(f"step {step} failed")


@pytest.mark.parametrize("strip", few([1, 3, 8], 3))
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_strips_change_no_result(seed, rank, strip):
    inputs, program, reference = shifted_chains.with_reference(seed, rank)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strips, "STRIP_BYTES", strip * 40)
        patch.setattr(strips, "CACHED_BYTES", 0)
        run = compile_program(program, unexpected)
    rng = np.random.default_rng(seed)
    for n in (3, 4, 5, 8, 4 * strip - 1, 4 * strip, 4 * strip + 1, 100):
        shape = (max(n, 3),) if rank == 1 else (3 + n // 4, 3 + seed)
        args = [rng.normal(size=shape).astype(x.dtype) for x in inputs]
        for result, array in zip(run(args), reference(*args), strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-6, atol=1e-6)
