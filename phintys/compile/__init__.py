"""Makes callables from symbolic inputs and outputs: `function`, modes, linkers."""

from importlib import import_module
from typing import Any

from phintys.compile.aliasing import (
    AliasedMemoryError,
    Supervisor,
    add_supervisor_to_fgraph,
    alias_root,
    infer_reuse_pattern,
    insert_deepcopy,
    view_tree_set,
)
from phintys.compile.builders import OpFromGraph
from phintys.compile.callable import Function
from phintys.compile.debug.monitormode import MonitorMode
from phintys.compile.function import FunctionMaker
from phintys.compile.io import In, Out, SymbolicInput, SymbolicOutput
from phintys.compile.linker import register_linker
from phintys.compile.mode import (
    OPT_FAST_COMPILE,
    OPT_FAST_RUN,
    OPT_FAST_RUN_STABLE,
    OPT_MERGE,
    OPT_NONE,
    OPT_O2,
    OPT_O3,
    OPT_STABILIZE,
    OPT_UNSAFE,
    AddDestroyHandler,
    AddFeatureOptimizer,
    Mode,
    PrintCurrentFunctionGraph,
    get_default_mode,
    get_mode,
    register_mode,
    register_optimizer,
)
from phintys.compile.pickling import function_dump
from phintys.compile.profile import ProfileStats
from phintys.compile.rebuild import UnusedInputError, rebuild_collect_shared
from phintys.gradient.barriers import DeepCopyOp, TypeCastingOp, ViewOp, deep_copy_op, view_op
from phintys.graph.shared import SharedVariable, shared, shared_constructor
from phintys.lazy import submodule
from phintys.rewriting.database import optdb
from phintys.tensor.from_function import FromFunctionOp, as_op, wrap_py


def __getattr__(name: str) -> Any:
    """The predefined modes (``FAST_COMPILE``), and modules that are imported when first read."""
    if name.isupper():
        return getattr(import_module("phintys.compile.mode"), name)
    return submodule(__name__, name)


__all__ = [
    "OPT_FAST_COMPILE",
    "OPT_FAST_RUN",
    "OPT_FAST_RUN_STABLE",
    "OPT_MERGE",
    "OPT_NONE",
    "OPT_O2",
    "OPT_O3",
    "OPT_STABILIZE",
    "OPT_UNSAFE",
    "AddDestroyHandler",
    "AddFeatureOptimizer",
    "AliasedMemoryError",
    "DeepCopyOp",
    "FromFunctionOp",
    "Function",
    "FunctionMaker",
    "In",
    "Mode",
    "MonitorMode",
    "OpFromGraph",
    "Out",
    "PrintCurrentFunctionGraph",
    "ProfileStats",
    "SharedVariable",
    "Supervisor",
    "SymbolicInput",
    "SymbolicOutput",
    "TypeCastingOp",
    "UnusedInputError",
    "ViewOp",
    "add_supervisor_to_fgraph",
    "alias_root",
    "as_op",
    "deep_copy_op",
    "function_dump",
    "get_default_mode",
    "get_mode",
    "infer_reuse_pattern",
    "insert_deepcopy",
    "optdb",
    "rebuild_collect_shared",
    "register_linker",
    "register_mode",
    "register_optimizer",
    "shared",
    "shared_constructor",
    "view_op",
    "view_tree_set",
    "wrap_py",
]
