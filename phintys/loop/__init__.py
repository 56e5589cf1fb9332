"""Loops: `scan`, and the op `Scan` that it makes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from phintys.loop.checkpoints import scan_checkpoints
from phintys.loop.info import ScanInfo
from phintys.loop.op import Scan
from phintys.loop.results import get_updates_and_outputs, until
from phintys.loop.scan import scan
from phintys.loop.views import foldl, foldr, map, reduce
from phintys.rewriting.database import optdb

if TYPE_CHECKING:
    from phintys.loop.rules import scan_eqopt1, scan_eqopt2

# Not needed by functions whose code is cached
optdb.fill_later(lambda: import_module("phintys.loop.rules"))


def __getattr__(name: str) -> Any:
    if name in ("scan_eqopt1", "scan_eqopt2"):
        return getattr(import_module("phintys.loop.rules"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
