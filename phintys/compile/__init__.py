"""Makes callables from symbolic inputs and outputs: `function`, modes, linkers."""

from phintys.compile.builders import OpFromGraph
from phintys.compile.callable import Function
from phintys.compile.debug.monitormode import MonitorMode
from phintys.compile.mode import Mode, get_mode
from phintys.compile.profile import ProfileStats
from phintys.graph.shared import SharedVariable, shared
from phintys.rewriting.database import optdb

__all__ = [
    "Function",
    "Mode",
    "MonitorMode",
    "OpFromGraph",
    "ProfileStats",
    "SharedVariable",
    "get_mode",
    "optdb",
    "shared",
]
