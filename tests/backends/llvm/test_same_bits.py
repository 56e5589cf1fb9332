"""A function returns the same bits at every call, and in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import rest

from phintys.config import config

FEW, MANY = 20, 280
SHORT_BLOCKS, WHOLE_LOOPS = "16", str(2**60)


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


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A directory with the code, and what some calls of it returned."""
    directory = tmp_path_factory.mktemp("code")
    return directory, digests(directory, "forwards", str(FEW))


def test_every_call_of_every_kind_of_kernel(cached: tuple[Path, dict[str, str]]) -> None:
    directory, found = cached
    assert len(found) > 200
    assert {name: bits for name, bits in found.items() if " " in bits} == {}
    # another process, whose code comes from the cache, and which has called other functions before
    assert digests(directory, "backwards", "2") == found


@rest
def test_many_calls_of_every_kind_of_kernel(cached: tuple[Path, dict[str, str]]) -> None:
    directory, found = cached
    assert digests(directory, "forwards", str(MANY)) == found


@rest
@pytest.mark.widths
def test_blocks_of_loops_of_any_size(tmp_path: Path) -> None:
    whole = digests(tmp_path / "whole", "forwards", "1", WHOLE_LOOPS)
    assert digests(tmp_path / "short", "forwards", "1", SHORT_BLOCKS) == whole
