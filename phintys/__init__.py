"""Phintys: define, rewrite, differentiate and evaluate expressions on multi-dimensional arrays.

>>> import phintys, phintys.tensor as pt
>>> x = pt.dvector("x")
>>> f = phintys.function([x], [x.sum(), phintys.grad((x**2).sum(), x)])
>>> f([1.0, 2.0])
[array(3.), array([2., 4.])]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from phintys import paths, tensor
from phintys.assumptions.core import fill_later
from phintys.compile.callable import Function
from phintys.compile.function import function
from phintys.compile.io import In, Out
from phintys.compile.mode import Mode, get_default_mode, get_mode
from phintys.conditional import ifelse
from phintys.config import config
from phintys.gradient import (
    Lop,
    Rop,
    grad,
    hessian,
    hessian_vector_product,
    jacobian,
    pullback,
    pushforward,
    subgraph_grad,
    verify_grad,
)
from phintys.graph.fgraph import FunctionGraph
from phintys.graph.op import Op
from phintys.graph.replace import clone_replace, graph_replace
from phintys.graph.shared import SharedVariable, shared
from phintys.graph.type import Type, generic
from phintys.graph.variable import Apply, Constant, Variable
from phintys.graph.vectorize import vectorize_graph
from phintys.inner import OpFromGraph
from phintys.lazy import submodule
from phintys.rewriting import rewrite_graph
from phintys.rewriting.database import optdb
from phintys.show import dprint, explain, pp
from phintys.tensor.from_function import as_op, wrap_py
from phintys.tensor.from_jax import wrap_jax
from phintys.tensor.type_other import as_symbolic

if TYPE_CHECKING:
    from phintys.loop import foldl, foldr, map, reduce, scan

# Rules, and the phases made of them, are imported on the first rewrite: the import stays fast.
_PHASES = "conditional.on_demand", "conditional.rewriting", "saturation"
optdb.fill_later(lambda: [import_module(f"phintys.{m}") for m in _PHASES])
fill_later(lambda: import_module("phintys.tensor.inference"))
paths.install()
config.warn_unused_flags()


def __getattr__(name: str) -> Any:  # loops are imported on first use
    if name in ("foldl", "foldr", "map", "reduce", "scan"):
        found = globals()[name] = getattr(import_module("phintys.loop"), name)
        # `scan` is also a module, which takes the function's place
        return import_module(f"phintys.{name}") if name in paths.MODULES else found
    return submodule(__name__, name)


__version__ = "0.1.0"

__all__ = [
    "Apply",
    "Constant",
    "Function",
    "FunctionGraph",
    "In",
    "Lop",
    "Mode",
    "Op",
    "OpFromGraph",
    "Out",
    "Rop",
    "SharedVariable",
    "Type",
    "Variable",
    "as_op",
    "as_symbolic",
    "clone_replace",
    "config",
    "dprint",
    "explain",
    "foldl",
    "foldr",
    "function",
    "generic",
    "get_default_mode",
    "get_mode",
    "grad",
    "graph_replace",
    "hessian",
    "hessian_vector_product",
    "ifelse",
    "jacobian",
    "map",
    "pp",
    "pullback",
    "pushforward",
    "reduce",
    "rewrite_graph",
    "scan",
    "shared",
    "subgraph_grad",
    "tensor",
    "vectorize_graph",
    "verify_grad",
    "wrap_jax",
    "wrap_py",
]
