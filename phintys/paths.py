"""Modules at the paths where PyTensor has them, made of this package's modules when imported.

>>> from phintys.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery
>>> from phintys.tensor.rewriting.basic import register_canonicalize
>>> from phintys.tensor.rewriting.math import local_exp_over_1_plus_exp
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from phintys.graph.origin import stacklevel
from phintys.lazy import submodule

#: path -> the modules whose public names the module at this path has
MODULES: dict[str, tuple[str, ...]] = {
    "breakpoint": ("tensor.debugging",),
    "basic": ("compile.function", "compile.mode", "tensor.type_other"),
    "compile.maker": ("compile.callable", "compile.function", "compile.io"),
    "compile.debug.profiling": ("compile.profile",),
    "compile.debugmode": ("compile.debug.debugmode",),
    "compile.monitormode": ("compile.debug.monitormode",),
    "compile.nanguardmode": ("compile.debug.nanguardmode",),
    "compile.debug.dump": ("compile.pickling",),
    "compile.executor": ("compile.aliasing", "compile.callable"),
    "compile.ops": ("gradient.barriers", "tensor.from_function"),
    "compile.function_module": ("compile.callable", "compile.function", "compile.io"),
    "compile.pfunc": ("compile.function", "compile.io", "compile.rebuild"),
    "compile.profiling": ("compile.profile",),
    "configdefaults": ("config",),
    "configparser": ("config",),
    "gof": (
        *("graph.destroy", "graph.features", "graph.basic", "graph.traversal", "graph.utils"),
        *("compile.linker", "compile.linkers", "rewriting.rewriter", "rewriting.walk"),
        *("rewriting.merge", "rewriting.origins", "rewriting.pattern"),
    ),
    "gof.destroyhandler": ("graph.destroy",),
    "gof.fg": ("graph.fg",),
    "gof.graph": ("graph.basic", "graph.traversal"),
    "gof.link": ("compile.linker", "compile.linkers"),
    "gof.null_type": ("graph.type",),
    "gof.op": ("graph.op",),
    "gof.opt": (
        *("rewriting.rewriter", "rewriting.walk", "rewriting.equilibrium", "rewriting.merge"),
        *("rewriting.pattern", "rewriting.origins", "rewriting.graph"),
    ),
    "gof.optdb": ("rewriting.database", "rewriting.older"),
    "gof.params_type": ("compat.c_interface",),
    "gof.sched": ("graph.sched",),
    "gof.toolbox": ("graph.features",),
    "gof.type": ("graph.type",),
    "gof.utils": ("graph.utils",),
    "gof.vm": ("compile.linkers", "compile.vm"),
    "graph.destroyhandler": ("graph.destroy",),
    "graph.null_type": ("graph.type",),
    "graph.rewriting": ("rewriting.graph",),
    "graph.rewriting.basic": (
        *("rewriting.rewriter", "rewriting.walk", "rewriting.equilibrium", "rewriting.merge"),
        *("rewriting.pattern", "rewriting.origins", "rewriting.graph"),
    ),
    "graph.rewriting.db": ("rewriting.database", "rewriting.older"),
    "graph.rewriting.reachability": ("rewriting.reachability",),
    "graph.rewriting.unify": ("rewriting.unify",),
    "graph.rewriting.utils": ("rewriting.graph", "rewriting.walk"),
    "link": (),
    "link.basic": ("compile.linker", "compile.linkers"),
    "link.c": (),
    "link.c.basic": ("compile.linker", "compile.linkers"),
    "link.c.interface": ("compat.c_interface",),
    "link.c.op": ("compat.c_interface",),
    "link.c.params_type": ("compat.c_interface",),
    "link.c.type": ("compat.c_interface",),
    "link.jax": ("compile.linker",),
    "link.jax.dispatch": ("backends.jax",),
    "link.jax.ops": ("tensor.from_jax",),
    "link.jax.linker": ("compile.linker",),
    "link.mlx": (),
    "link.mlx.linker": ("compile.absent",),
    "link.pytorch": (),
    "link.pytorch.linker": ("compile.absent",),
    "link.utils": ("backends.source", "compile.thunks"),
    "link.vm": ("compile.linkers", "compile.vm"),
    "link.numba": ("compile.linker",),
    "link.numba.dispatch": ("backends.numba",),
    "link.numba.dispatch.basic": ("backends.numba",),
    "link.numba.linker": ("compile.linker",),
    "d3viz": ("show.page",),
    "d3viz.d3viz": ("show.page",),
    "printing": ("show", "show.picture", "tensor.debugging"),
    "ifelse": ("conditional",),
    "raise_op": ("tensor.raise_op",),
    "misc": (),
    "misc.frozendict": ("graph.containers",),
    "misc.ordered_set": ("graph.containers",),
    "misc.pkl_utils": ("compile.pickling",),
    "misc.safe_asarray": ("scalar.safe_asarray",),
    "sandbox": (),
    "sandbox.cuda": (),
    "sandbox.rng_mrg": (),
    "sandbox.linalg": ("tensor.linalg.spectral_radius",),
    "sandbox.linalg.ops": ("tensor.linalg.spectral_radius",),
    "scan": ("loop",),
    "scan.basic": ("loop.scan", "loop.results"),
    "scan.checkpoints": ("loop.checkpoints",),
    "scan.op": ("loop.op", "loop.info", "loop.arguments"),
    "scan.rewriting": ("loop.rules",),
    "scan.rewriting.db": ("loop.rules",),
    "scan.utils": ("loop.results", "loop.args"),
    "scan_module": ("loop",),
    "scan_module.scan": ("loop.scan", "loop.results"),
    "scan_module.scan_op": ("loop.op", "loop.info", "loop.arguments"),
    "scan_module.scan_utils": ("loop.results", "loop.args"),
    "scan_module.scan_views": ("loop.views",),
    "scalar.basic_scipy": ("scalar.math",),
    "scan.views": ("loop.views",),
    "tensor.linalg.solvers.linear_control": ("tensor.linalg.equations", "tensor.linalg.riccati"),
    "tensor.linalg.solvers.psd": ("tensor.linalg.solvers.cholesky",),
    "tensor.functional": (),
    "tensor.nlinalg": ("tensor.linalg",),
    "tensor.nnet.bn": ("tensor.nnet.batchnorm",),
    "tensor.nnet.conv": ("tensor.nnet.abstract_conv",),
    "tensor.nnet.nnet": ("tensor.nnet.basic",),
    "tensor.nnet.sigm": ("tensor.nnet.basic",),
    "tensor.nnet.ctc": ("loop.ctc",),
    "tensor.shared_randomstreams": (),
    "tensor.signal.downsample": ("tensor.signal.pool",),
    "tensor.slinalg": ("tensor.linalg",),
    "tensor.random.rewriting": ("tensor.random.lifting",),
    "tensor.random.rewriting.basic": ("tensor.random.lifting",),
    "tensor.var": ("tensor.variable",),
    "updates": (),
    "utils": ("lazy",),
}
#: path -> the module of a backend whose names the module at this path has too: it is imported when
#: one of them is read, since it needs a package that may not be installed
BACKENDS = {"link.jax": "backends.jax", "link.numba": "backends.numba"}
#: path of a module that is here -> further names of it, each with the module that has it
NAMES = {
    "graph": {
        "RewriteDatabaseQuery": "rewriting.database",
        "graph_rewriter": "rewriting.rewriter",
        "node_rewriter": "rewriting",
        "rewrite_graph": "rewriting",
    },
    "conditional.op": {"LazyIfElse": "conditional.lazy"},
    "graph.replace": dict.fromkeys(
        ("_vectorize_node", "_vectorize_not_needed", "vectorize_graph"), "graph.vectorize"
    ),
    "tensor.linalg.solvers.general": {"lu_solve": "tensor.linalg.solvers.lu"},
    "tensor.linalg.solvers.lstsq": dict.fromkeys(
        ("TensorSolve", "tensorsolve"), "tensor.linalg.inverse"
    ),
    "tensor.linalg.inverse": dict.fromkeys(("MatrixPinv", "pinv"), "tensor.linalg.pseudo_inverse"),
    "tensor.linalg.products": dict.fromkeys(("Expm", "expm"), "tensor.linalg.matrix_functions"),
    "assumptions.core": dict.fromkeys(
        (
            *("DIAGONAL", "LOWER_TRIANGULAR", "MATRIX_KEYS", "ORTHOGONAL", "PERMUTATION"),
            *("POSITIVE_DEFINITE", "SELECTION", "SYMMETRIC", "TRIDIAGONAL", "UNIQUE_INDICES"),
            *("UNIT_MAGNITUDE", "UPPER_TRIANGULAR"),
        ),
        "assumptions.keys",
    ),
    "tensor.basic": {
        "NotScalarConstantError": "errors",
        "get_vector_length": "tensor.static",
    },
    "tensor.math": {"logsumexp": "tensor.special"},
    "tensor.reshape": dict.fromkeys(("pack", "unpack"), "tensor.packing"),
    "tensor.sort": dict.fromkeys(("argtopk", "topk", "topk_and_argtopk"), "tensor.search"),
    "tensor.linalg.summary": dict.fromkeys(("norm", "trace", "VALID_ORD"), "tensor.linalg.norms"),
}
_ANNOTATIONS, _HELPERS = "compat.annotations", "compat.helpers"
#: path of a module -> names that it has besides, in texts, by the module that is imported when
#: one of them is read
ON_DEMAND: dict[str, dict[str, str]] = {
    "compile.ops": {
        "compat.c_interface": "register_deep_copy_op_c_code register_view_op_c_code",
    },
    "gradient": {_HELPERS: "as_list_or_tuple", _ANNOTATIONS: "V"},
    "graph.basic": {_ANNOTATIONS: "OpType OptionalApplyType"},
    "graph.fg": {_ANNOTATIONS: "ClientType"},
    "graph.op": {
        _ANNOTATIONS: "C ComputeMapType InputStorageType OutputStorageType StorageCellType "
        "StorageMapType ThunkType",
    },
    "graph.replace": {_ANNOTATIONS: "ReplaceTypes"},
    "graph.rewriting.basic": {
        _ANNOTATIONS: "RemoveKeyType TransformOutputType",
        _HELPERS: "merge_dict",
    },
    "graph.rewriting.db": {_ANNOTATIONS: "RewritesType"},
    "graph.rewriting.unify": {_ANNOTATIONS: "OpPatternOpTypeType PatternElement"},
    "graph.traversal": {_ANNOTATIONS: "NodeAndChildren", _HELPERS: "variable_ancestors"},
    "graph.utils": {
        _ANNOTATIONS: "T",
        _HELPERS: "add_tag_trace get_variable_trace_string simple_extract_stack",
    },
    "link.basic": {_ANNOTATIONS: "ThunkAndContainersType"},
    "link.utils": {_HELPERS: "gc_helper get_name_for_object raise_with_op streamline"},
    "printing": {_ANNOTATIONS: "IDTypesType", "show.printers": "VALID_ASSOC greek special"},
    "scan.utils": {_HELPERS: "expand_empty forced_replace reconstruct_graph safe_new"},
    "tensor.basic": {"tensor.rules": "infer_shape_db register_infer_shape"},
    "tensor.functional": {"tensor": "vectorize"},
    "tensor.math": {
        _HELPERS: "float16_atol float16_rtol float32_atol float32_rtol float64_atol float64_rtol "
        "isinf_ isnan_",
    },
    "tensor.sharedvar": {_HELPERS: "load_shared_variable scalar_constructor tensor_constructor"},
    "tensor.sort": {_ANNOTATIONS: "KIND KIND_VALUES"},
    "tensor.subtensor": {
        _HELPERS: "advanced_inc_subtensor advanced_inc_subtensor1 advanced_set_subtensor "
        "advanced_set_subtensor1 advanced_subtensor advanced_subtensor1 basic_subtensor "
        "get_slice_elements group_indices",
    },
    "tensor.type": {
        _HELPERS: "dtype_specs_map ubscalar uiscalar ulscalar uwscalar values_eq_approx "
        "values_eq_approx_always_true values_eq_approx_remove_inf "
        "values_eq_approx_remove_inf_nan values_eq_approx_remove_nan",
    },
    "tensor.utils": {
        _HELPERS: "broadcast_static_dim_lengths faster_broadcast_to faster_ndindex "
        "hash_from_ndarray import_func_from_string shape_of_variables",
    },
    "tensor.variable": {_HELPERS: "get_unique_constant_value"},
    "utils": {
        _HELPERS: "LOCAL_BITWIDTH PYTHON_INT_BITWIDTH Singleton apply_across_args "
        "call_subprocess_Popen difference flatten from_return_values hash_from_code "
        "maybe_add_to_os_environ_pathlist output_subprocess_Popen subprocess_Popen "
        "to_return_values uniq unzip",
    },
}
#: path of a module -> the path to which PyTensor has moved names, which give a FutureWarning
MOVED: dict[str, dict[str, str]] = {
    "graph.basic": {
        "graph.traversal": "ancestors applys_between apply_depends_on explicit_graph_inputs "
        "general_toposort get_var_by_name graph_inputs io_toposort orphans_between "
        "truncated_graph_inputs vars_between walk",
    },
}
#: modules whose names are those of rewrites, or of what `tensor.rules` has
REWRITES = (
    *[
        f"tensor.rewriting{module}"
        for module in (
            *("", ".assumptions", ".basic", ".blas", ".blas_c", ".blockwise", ".einsum"),
            *(".elemwise", ".extra_ops", ".fused_elemwise", ".jax", ".math", ".numba", ".ofg"),
            *(".optimize", ".reshape", ".scalarize", ".shape", ".sort", ".special"),
            *(".subtensor", ".subtensor_lift", ".uncanonicalize", ".linalg"),
            *(".linalg.decomposition", ".linalg.inverse", ".linalg.products"),
            *(".linalg.reassociate_matmul", ".linalg.solvers", ".linalg.summary"),
            ".linalg.utils",
        )
    ],
    "tensor.opt",
    *[f"scan.rewriting{part}" for part in ("", ".inplace", ".io", ".merge", ".push_out", ".trace")],
)
#: packages that do not exist yet: `phintys.planned` has the paths and names of their modules
PLANNED = ("sparse", "xtensor")
#: what `phintys.compat` does with each module that is made here
extensions: list[Callable[[ModuleType], None]] = []
_PACKAGES = {path.rpartition(".")[0] for path in (*MODULES, *REWRITES)}
#: packages that are here, of which modules are attributes before they are imported
_WITH_SUBMODULES = ("graph", "scalar", "tensor.linalg")


class _Callable(ModuleType):
    """A module in the place of a function: ``tensor.var``, ``scan``."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name, function.__doc__)
        self._function = self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """It is pickled by its name, as a function is."""
        return import_module, (self.__name__,)


class _Finder:
    """Finds and makes the modules; asked after Python's own finders."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "phintys":
            return None
        planned = is_planned(name)
        if name not in MODULES and name not in REWRITES and not planned:
            return None
        is_package = planned or name in _PACKAGES
        return ModuleSpec(fullname, cast("Loader", _Finder), is_package=is_package)

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        """A module that is called as the function whose name it takes; else Python makes one."""
        parent, _, name = spec.name.rpartition(".")
        package = sys.modules[parent]
        known = (*vars(package), *getattr(package, "__all__", ()))
        replaced = getattr(package, name) if name in known else None
        return _Callable(spec.name, replaced) if callable(replaced) else None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        name = module.__name__.removeprefix("phintys.")
        module.__doc__ = module.__doc__ or "Names at the path where PyTensor has them."
        planned = is_planned(name)
        if planned:
            vars(module).update(import_module("phintys.planned").names(name))
        if planned or name in _PACKAGES:
            vars(module)["__getattr__"] = partial(submodule, module.__name__)
        if name in BACKENDS:
            vars(module)["__getattr__"] = partial(_of_backend, name)
        if name in REWRITES:
            vars(module)["__getattr__"] = partial(_rewrite, name)
        if name in ON_DEMAND:
            _look_up(module, name)
        for source in MODULES.get(name, ()):
            vars(module).update(_public(import_module(f"phintys.{source}")))
        for extend in extensions:
            extend(module)


def is_planned(path: str) -> bool:
    """Whether ``path`` is that of a module in one of the packages that do not exist yet."""
    if path.partition(".")[0] not in PLANNED:
        return False
    return path in import_module("phintys.planned").PATHS


def _public(module: ModuleType) -> dict[str, Any]:
    """The names that a module defines or hands on, and the classes of its package."""
    public = {
        k: v for k, v in vars(module).items() if k[0] != "_" and not isinstance(v, ModuleType)
    }
    names = getattr(module, "__all__", public)
    return {k: v for k, v in public.items() if k in names or _is_class_of(module, v)}


def _is_class_of(module: ModuleType, value: Any) -> bool:
    return isinstance(value, type) and value.__module__.startswith(module.__name__)


def _of_backend(path: str, name: str) -> Any:
    """The module ``name`` in the package at ``path``, or what its backend calls so."""
    if f"{path}.{name}" in MODULES or name.startswith("_"):
        return submodule(f"phintys.{path}", name)
    return getattr(import_module(f"phintys.{BACKENDS[path]}"), name)


def _on_demand(path: str, otherwise: Callable[[str], Any] | None, name: str) -> Any:
    """What `ON_DEMAND` or `MOVED` says that the module at ``path`` calls ``name``.

    Other names are those of ``otherwise``; AttributeError if that is None.
    """
    for source, names in ON_DEMAND[path].items():
        if name in names.split():
            return getattr(import_module(f"phintys.{source}"), name)
    for source, names in MOVED.get(path, {}).items():
        if name in names.split():
            message = f"`phintys.{path}.{name}` was moved to `phintys.{source}.{name}`."
            warnings.warn(message, FutureWarning, stacklevel=stacklevel())
            return getattr(import_module(f"phintys.{source}"), name)
    if otherwise is None:
        raise AttributeError(f"module 'phintys.{path}' has no attribute {name!r}")
    return otherwise(name)


def _look_up(module: ModuleType, path: str) -> None:
    """Make a module look up its further names."""
    otherwise = vars(module).get("__getattr__")
    vars(module)["__getattr__"] = partial(_on_demand, path, otherwise)


def _rewrite(module: str, name: str) -> Any:
    """The module of rewrites in another, what ``tensor.rules`` calls ``name``, or the rewrites that
    have it as their name or tag.

    Raises AttributeError if there is none; ImportError that says what does the same, if an import
    statement asks.
    """
    if f"{module}.{name}" in (*REWRITES, *MODULES):
        return submodule(f"phintys.{module}", name)
    rules = import_module("phintys.tensor.rules")
    if not name.startswith("_") and hasattr(rules, name):
        return getattr(rules, name)
    return import_module("phintys.compat.rewrites").named(name)


def install() -> None:
    """Make the paths importable, and attributes of their packages; set the further names."""
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)
    for path in _WITH_SUBMODULES:
        package = import_module(f"phintys.{path}")
        vars(package)["__getattr__"] = partial(submodule, package.__name__)
    for path in ON_DEMAND.keys() - MODULES.keys():
        _look_up(import_module(f"phintys.{path}"), path)
    for path, names in NAMES.items():
        module = import_module(f"phintys.{path}")
        for name, source in names.items():
            setattr(module, name, getattr(import_module(f"phintys.{source}"), name))
