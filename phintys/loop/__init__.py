"""Loops: `scan`, and the op `Scan` that it makes."""

from phintys.loop.checkpoints import scan_checkpoints
from phintys.loop.info import ScanInfo
from phintys.loop.op import Scan
from phintys.loop.results import get_updates_and_outputs, until
from phintys.loop.rules import scan_eqopt1, scan_eqopt2
from phintys.loop.scan import scan
from phintys.loop.views import foldl, foldr, map, reduce

__all__ = [
    "Scan",
    "ScanInfo",
    "foldl",
    "foldr",
    "get_updates_and_outputs",
    "map",
    "reduce",
    "scan",
    "scan_checkpoints",
    "scan_eqopt1",
    "scan_eqopt2",
    "until",
]
