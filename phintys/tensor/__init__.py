"""Tensor variables, whose values are arrays, and functions of them.

This namespace contains the names in ``__all__`` of each module.
"""
# ruff: noqa: F401, F403
# pyright: reportUnusedImport=false

from __future__ import annotations

from importlib import import_module
from typing import Any

from numpy import e, euler_gamma, inf, nan, newaxis, pi

from phintys.gradient import grad, hessian, jacobian
from phintys.graph.op import Op
from phintys.graph.shared import register_later
from phintys.graph.variable import Constant, Variable
from phintys.lazy import submodule as _submodule

from phintys.tensor.scalar_functions import *  # isort: skip  (first: later modules refine some)
from phintys.tensor import exponentials, leading, linalg, mixtures, quotients
from phintys.tensor.axes import *
from phintys.tensor.basic import tensor_copy, transfer
from phintys.tensor.blockwise import *
from phintys.tensor.convert import as_tensor, as_tensor_variable, constant
from phintys.tensor.counting import *
from phintys.tensor.creation import *
from phintys.tensor.cumulative import *
from phintys.tensor.diagonal import *
from phintys.tensor.dot import *
from phintys.tensor.einsum import einsum
from phintys.tensor.elemwise import cast, dimshuffle
from phintys.tensor.fill_diagonal import *
from phintys.tensor.grids import *
from phintys.tensor.index import *
from phintys.tensor.interpolate import *
from phintys.tensor.join import *
from phintys.tensor.math import *
from phintys.tensor.multi_index import *
from phintys.tensor.nonzero import *
from phintys.tensor.packing import *
from phintys.tensor.pad import *
from phintys.tensor.permute import *
from phintys.tensor.quantiles import *
from phintys.tensor.ranges import *
from phintys.tensor.reduce import *
from phintys.tensor.repeat import *
from phintys.tensor.reshape import *
from phintys.tensor.search import *
from phintys.tensor.shape import *
from phintys.tensor.shared import TensorSharedVariable
from phintys.tensor.sort import *
from phintys.tensor.special import *
from phintys.tensor.stacks import *
from phintys.tensor.static import *
from phintys.tensor.statistics import *
from phintys.tensor.tensordot import *
from phintys.tensor.type import TensorType
from phintys.tensor.type_constructors import *
from phintys.tensor.type_constructors import CONSTRUCTORS, TYPES
from phintys.tensor.type_other import (
    NoneConst,
    NoneSliceConst,
    make_slice,
    none_type_t,
    slicetype,
)
from phintys.tensor.utils import TensorLike
from phintys.tensor.variable import TensorConstant, TensorVariable

from phintys.tensor import methods, places  # isort: skip  (last: they attach methods and names)

globals().update(CONSTRUCTORS | TYPES)

# imported when needed, because it imports numpy.random, which NumPy does not
register_later("numpy.random", lambda: import_module("phintys.tensor.random"))


def __getattr__(name: str) -> Any:  # also for names that are added from tables
    return _submodule(__name__, name)
