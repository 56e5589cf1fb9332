"""The namespace of the array API standard, version 2024.12, on tensor variables.

``x.__array_namespace__()`` returns this module.  Its functions have the names, parameters and dtype
rules of the standard: Python numbers take the dtypes of the arrays that they are combined with.

>>> import phintys.tensor as pt
>>> x = pt.vector("x", dtype="float32")
>>> xp = x.__array_namespace__()
>>> xp.add(x, 0.1).type, xp.concat([x, x]).type
(TensorType(float32, shape=(None,)), TensorType(float32, shape=(None,)))
"""
# ruff: noqa: F401, F403
# pyright: reportUnusedImport=false

from __future__ import annotations

import math

from phintys.tensor.standard import fft, linalg
from phintys.tensor.standard.creation import *
from phintys.tensor.standard.data_types import *
from phintys.tensor.standard.data_types import __array_namespace_info__, check_version
from phintys.tensor.standard.elementwise import *
from phintys.tensor.standard.manipulation import *
from phintys.tensor.standard.products import *
from phintys.tensor.standard.searching import *
from phintys.tensor.standard.statistical import *

__array_api_version__ = "2024.12"
e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
