"""Failures at each place where something outside of Phintys is asked for, a part of them.

``python -m tests.robustness.injection`` injects all of them, and prints a table.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import few_rows

pytest.importorskip("_testcapi")
if sys.platform != "linux":
    pytest.skip("processes are forked, their open files counted", allow_module_level=True)

HERE = Path(__file__).parent

#: Kind of trials, mode, one of how many trials is run, and which programs; empty: all.
FIRST = [
    ("call", "FAST_RUN", 12, "users_op not_positive failing_check failing_draw"),
    ("load", "FAST_RUN", 120, "users_op"),
]
MORE = [
    ("call", "FAST_RUN", 12, ""),
    ("load", "FAST_RUN", 30, ""),
    ("call", "C", 40, ""),
    ("call", "NUMBA", 1, ""),
]


def test_held_code_survives_a_failure():
    """Also where the interpreter frees code of which it could not make a function."""
    result = subprocess.run([sys.executable, str(HERE / "lost_code.py"), "--held"], timeout=60)
    assert result.returncode == 0


@pytest.mark.parametrize("when, mode, every, programs", few_rows([*FIRST, *MORE], *FIRST))
def test_failures_end_in_an_error_or_the_right_result(when, mode, every, programs):
    if mode == "C" and not shutil.which("cc"):
        pytest.skip("no C compiler")
    command = [sys.executable, str(HERE / "injection.py"), "--when", when, "--mode", mode]
    command += ["--every", str(every)]
    command += ["--program", *programs.split()] if programs else []
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    result = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    assert re.search(r"^[1-9]\d* failures injected, 0 of them wrong\.$", result.stdout, re.M)
