"""The array API standard, version 2024.12, with arrays that are evaluated at once.

Each function builds the expression of its namesake in `phintys.tensor.standard`, compiles it on the
first call with arguments of such dtypes, ranks and options, and runs it.

>>> import phintys.array_api as xp
>>> x = xp.linspace(0.0, 1.0, num=5)
>>> xp.sum(x * x)
Array(1.875, dtype=float64)
"""

# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

import sys
from typing import Any

from phintys.array_api import fft, linalg
from phintys.array_api.array import NAMESPACE, Array
from phintys.array_api.creation import asarray, from_dlpack, full, full_like
from phintys.array_api.evaluation import eager
from phintys.tensor import standard
from phintys.tensor.standard import data_types, manipulation
from phintys.tensor.standard.elementwise import BINARY

__array_api_version__ = standard.__array_api_version__

#: Parameters whose integers are arguments of the compiled functions.
DYNAMIC = {
    "arange": ("start", "stop", "step"),
    "broadcast_to": ("shape",),
    "empty": ("shape",),
    "eye": ("n_rows", "n_cols", "k"),
    "linspace": ("start", "stop", "num"),
    "ones": ("shape",),
    "repeat": ("repeats",),
    "reshape": ("shape",),
    "roll": ("shift",),
    "tile": ("repetitions",),
    "tril": ("k",),
    "triu": ("k",),
    "zeros": ("shape",),
}
#: Functions of arrays and Python numbers.
WITH_NUMBERS = {*BINARY, "clip", "floor_divide", "where"}
#: Functions whose number of results, or whose check of arguments, is that of a length.
WITH_LENGTHS = {"unstack", "squeeze"}


def _eager(name: str) -> Any:
    function = getattr(standard, name)
    known = name in WITH_LENGTHS
    return eager(function, DYNAMIC.get(name, ()), name in WITH_NUMBERS, known)


def _fill(namespace: dict[str, Any]) -> None:
    """Add the functions, dtypes and constants of the standard; make functions eager."""
    for name in (*data_types.__all__, "e", "inf", "nan", "newaxis", "pi"):
        namespace[name] = getattr(standard, name)
    modules = ("creation", "elementwise", "manipulation", "products", "searching", "statistical")
    for module in modules:
        for name in sys.modules[f"{standard.__name__}.{module}"].__all__:
            namespace.setdefault(name, _eager(name))
    for name in ("astype", "broadcast_arrays", "broadcast_to"):
        namespace[name] = _eager(name)
    NAMESPACE.update(namespace, module=sys.modules[__name__])
    NAMESPACE["get_items"] = eager(manipulation.items)
    NAMESPACE["with_items"] = eager(manipulation.with_items)


_fill(globals())
