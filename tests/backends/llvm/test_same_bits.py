"""A function returns the same bits at every call, and in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phintys.config import config

CALLS = 300


def digests(directory: Path, *arguments: str) -> dict[str, str]:
    """Name of a function -> the different digests of its results.

    A directory is for one size of blocks: code in the cache is kept without it.
    """
    script = Path(__file__).parent / "same_bits.py"
    root = str(Path(__file__).parents[3])
    flags = f"{os.environ.get('PHINTYS_FLAGS', '')},vector_bits={config.vector_bits}"
    environment = os.environ | {"PHINTYS_CACHE_DIR": str(directory), "PYTHONPATH": root}
    environment["PHINTYS_FLAGS"] = flags.strip(",")
    command = [sys.executable, str(script), *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rows = (line.partition(": ") for line in run.stdout.splitlines())
    return {name: found for name, _, found in rows}


def test_every_call_of_every_kind_of_kernel(tmp_path: Path) -> None:
    many = digests(tmp_path, "forwards", str(CALLS))
    assert len(many) > 200
    assert {name: found for name, found in many.items() if " " in found} == {}
    # another process, whose code comes from the cache, and which has called other functions before
    assert digests(tmp_path, "backwards", "2") == many


@pytest.mark.widths
def test_blocks_of_loops_of_any_size(tmp_path: Path) -> None:
    whole = digests(tmp_path / "whole", "forwards", "1", str(2**60))
    assert digests(tmp_path / "blocks", "forwards", "1", "16") == whole
