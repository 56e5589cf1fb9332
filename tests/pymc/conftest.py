"""Tests of PyMC on this package are collected where PyMC is installed."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

if any(distributions(name="pymc")):
    # this folder has others that are called as packages, which are no packages
    BACKENDS = str(Path(__file__).parents[1] / "backends")
    sys.path[:] = [path for path in sys.path if path != BACKENDS]
else:
    collect_ignore_glob = ["*"]
