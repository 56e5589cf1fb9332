"""Convolutions of signals and images."""
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.tensor.signal import conv
from phintys.tensor.signal.conv import convolve1d, convolve2d

__all__ = ["convolve1d", "convolve2d"]
