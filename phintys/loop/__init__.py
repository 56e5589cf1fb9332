"""Loops: `scan`, and the op `Scan` that it makes."""

from phintys.loop.info import ScanInfo
from phintys.loop.op import Scan
from phintys.loop.results import get_updates_and_outputs, until
from phintys.loop.rules import scan_eqopt1, scan_eqopt2
from phintys.loop.scan import scan

__all__ = [
    "Scan",
    "ScanInfo",
    "get_updates_and_outputs",
    "scan",
    "scan_eqopt1",
    "scan_eqopt2",
    "until",
]
