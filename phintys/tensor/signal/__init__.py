"""Convolutions of signals, and pooling."""
# ruff: noqa: F401, F403
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.lazy import hand_on
from phintys.tensor.signal import conv, pool, pool_classes
from phintys.tensor.signal.conv import *
from phintys.tensor.signal.pool import *

hand_on(pool, pool_classes)
