"""Loops: `scan`, and the op `Scan` that it makes."""

import phintys.loop.rules  # noqa: F401  registers the rewrites
from phintys.loop.info import ScanInfo
from phintys.loop.op import Scan
from phintys.loop.results import get_updates_and_outputs, until
from phintys.loop.scan import scan

__all__ = ["Scan", "ScanInfo", "get_updates_and_outputs", "scan", "until"]
