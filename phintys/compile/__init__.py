"""Makes callables from symbolic inputs and outputs: `function`, modes, linkers."""

from phintys.compile.builders import OpFromGraph
from phintys.compile.callable import Function
from phintys.compile.debug.monitormode import MonitorMode
from phintys.compile.mode import (
    AddDestroyHandler,
    AddFeatureOptimizer,
    Mode,
    PrintCurrentFunctionGraph,
    get_default_mode,
    get_mode,
    register_linker,
    register_mode,
    register_optimizer,
)
from phintys.compile.profile import ProfileStats
from phintys.graph.shared import SharedVariable, shared
from phintys.rewriting.database import optdb

__all__ = [
    "AddDestroyHandler",
    "AddFeatureOptimizer",
    "Function",
    "Mode",
    "MonitorMode",
    "OpFromGraph",
    "PrintCurrentFunctionGraph",
    "ProfileStats",
    "SharedVariable",
    "get_default_mode",
    "get_mode",
    "optdb",
    "register_linker",
    "register_mode",
    "register_optimizer",
    "shared",
]
