"""Names that Theano and Aesara have, and PyTensor has not: the second and third table.

Those of PyTensor are in `phintys.paths`, under every name.  Those here are set by
`phintys.compat.install` for the older name alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

_OLDER = "compat.older"
_AESARA: dict[str, dict[str, str]] = {
    "": {
        _OLDER: "OrderedUpdates",
        "compile.mode": "predefined_modes",
        "compile.pickling": "function_dump",
        "compile.profile": "ProfileStats",
        "graph.shared": "shared_constructor",
        "show": "pprint",
        "tensor.static": "get_scalar_constant_value",
    },
    "graph.op": {_OLDER: "get_test_value"},
    "graph.basic": {
        _OLDER: "is_in_ancestors",
        "graph.traversal": "ancestors applys_between explicit_graph_inputs general_toposort "
        "get_var_by_name graph_inputs io_toposort orphans_between truncated_graph_inputs "
        "vars_between walk",
    },
    "misc.pkl_utils": {_OLDER: "dump load"},
    "tensor": {
        _OLDER: "addbroadcast convolve patternbroadcast",
        "errors": "NotScalarConstantError",
        "gradient": "numeric_grad verify_grad",
        "tensor.linalg": "matrix_inverse",
        "tensor.random.stream": "RandomStream",
    },
    "tensor.basic": {_OLDER: "addbroadcast patternbroadcast"},
    "sandbox.rng_mrg": {_OLDER: "MRG_RandomStream"},
    "tensor.math": {_OLDER: "convolve"},
    "tensor.rewriting.basic": {"tensor.rules": "register_specialize_device=register_specialize"},
    "tensor.shape": {_OLDER: "addbroadcast patternbroadcast"},
    "updates": {_OLDER: "OrderedUpdates"},
}
_THEANO: dict[str, dict[str, str]] = {
    "": {
        **_AESARA[""],
        _OLDER: "OrderedUpdates Param clone",
        "compile.io": "SymbolicInput SymbolicOutput",
        "scalar.safe_asarray": "_asarray",
        "graph.shared": "Container shared_constructor",
        "tensor": "dot",
    },
    "compile": {
        "compile.debug.debugmode": "DebugMode",
        "compile.function": "pfunc=function orig_function=function",
    },
    "compile.ops": {"tensor.shape": "Shape_i SpecifyShape shape_i"},
    "compile.function_module": {"errors": "UnusedInputError"},
    "compile.pfunc": {"compile.function": "pfunc=function"},
    "gof": {
        "graph.variable": "Apply Constant Variable",
        "graph.op": "Op",
        "graph.type": "Generic=Generic_ Type generic",
        "graph.fgraph": "FunctionGraph",
        "rewriting.database": "DB=RewriteDatabase Query=RewriteDatabaseQuery optdb",
        "rewriting.walk": "TopoOptimizer=WalkingGraphRewriter",
        "rewriting.equilibrium": "EquilibriumOptimizer=EquilibriumGraphRewriter",
        "compat.c_interface": "COp EnumList ParamsType",
    },
    "gof.graph": {
        _OLDER: "clone",
        "graph.traversal": "inputs=graph_inputs variables=vars_between ops=applys_between "
        "orphans=orphans_between stack_search=walk list_of_nodes=applys_between",
    },
    "gof.op": {_OLDER: "get_test_value"},
    "gof.opt": {
        "rewriting.rewriter": "LocalOptimizer=NodeRewriter Optimizer=GraphRewriter "
        "OpSub=SubstitutionNodeRewriter OpRemove=RemovalNodeRewriter local_optimizer=node_rewriter "
        "optimizer=graph_rewriter SeqOptimizer=SequentialGraphRewriter "
        "LocalOptGroup=SequentialNodeRewriter",
        "rewriting.pattern": "PatternSub=PatternNodeRewriter",
        "rewriting.walk": "NavigatorOptimizer=NodeProcessingGraphRewriter "
        "TopoOptimizer=WalkingGraphRewriter",
        "rewriting.equilibrium": "EquilibriumOptimizer=EquilibriumGraphRewriter",
    },
    "gof.optdb": {"rewriting.database": "DB=RewriteDatabase Query=RewriteDatabaseQuery"},
    "gof.type": {"graph.type": "Generic=Generic_"},
    "gof.utils": {"compat.helpers": "hash_from_code flatten uniq"},
    "misc.pkl_utils": _AESARA["misc.pkl_utils"],
    "misc.safe_asarray": {"scalar.safe_asarray": "_asarray"},
    "sandbox.cuda": {_OLDER: "cuda_available cuda_enabled"},
    "sandbox.rng_mrg": {_OLDER: "MRG_RandomStreams MRG_RandomStream"},
    "scalar": {
        "scalar.type": "Scalar=ScalarType",
        "scalar.basic": "Inv=Reciprocal",
    },
    "tensor": {
        **_AESARA["tensor"],
        _OLDER: "addbroadcast convolve makeKeepDims patternbroadcast",
        "tensor.dot": "Dot",
        "tensor.elemwise": "DimShuffle Elemwise",
        "tensor.reduce": "CAReduce Sum",
        "tensor.creation": "Alloc AllocEmpty",
        "tensor.math": "inv=reciprocal roundf=round",
        "tensor.shared": "_shared=tensor_shared",
    },
    "tensor.basic": {
        _OLDER: "addbroadcast makeKeepDims patternbroadcast",
        "tensor.type": "TensorType",
        "tensor.reshape": "Reshape",
    },
    "tensor.nlinalg": {"tensor.diagonal": "ExtractDiag alloc_diag diag extract_diag=diagonal"},
    "tensor.slinalg": {
        _OLDER: "solve_lower_triangular solve_upper_triangular",
    },
    "tensor.opt": {"tensor.raise_op": "Assert assert_op", "tensor.shape_feature": "ShapeFeature"},
    "tensor.shared_randomstreams": {_OLDER: "RandomStreams"},
    "tensor.signal.downsample": {_OLDER: "max_pool_2d"},
    "tensor.var": {"tensor.variable": "_tensor_py_operators=TensorVariable"},
    "updates": _AESARA["updates"],
}
_THEANO["gof"] |= {
    source: " ".join([_THEANO["gof"].get(source, ""), names])
    for source, names in _THEANO["gof.opt"].items()
}
#: system -> path of a module -> names that it has besides, by the module that has them; ``a=b`` is
#: the name ``a`` of what is called ``b`` there
TABLES = {"pytensor": {}, "aesara": _AESARA, "theano": _THEANO}
_extended: set[tuple[str, str]] = set()


def extend(system: str, module: ModuleType) -> None:
    """Let a module of this package look up the names that ``system`` has at its path besides."""
    path = module.__name__.removeprefix("phintys").removeprefix(".")
    table = TABLES[system].get(path)
    if table is None or (system, path) in _extended:
        return
    _extended.add((system, path))
    places = {
        own.partition("=")[0]: (source, own.partition("=")[2] or own)
        for source, names in table.items()
        for own in names.split()
    }
    otherwise = vars(module).get("__getattr__")
    vars(module)["__getattr__"] = partial(_look_up, module.__name__, places, otherwise)


def _look_up(
    module: str,
    places: dict[str, tuple[str, str]],
    otherwise: Callable[[str], Any] | None,
    name: str,
) -> Any:
    if name in places:
        source, own = places[name]
        return getattr(import_module(f"phintys.{source}"), own)
    if otherwise is not None:
        return otherwise(name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def extend_loaded(system: str) -> None:
    """`extend` all modules that are loaded."""
    for path in TABLES[system]:
        module = sys.modules.get(f"phintys.{path}".rstrip("."))
        if module is not None:
            extend(system, module)
