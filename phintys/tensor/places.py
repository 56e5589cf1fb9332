"""Names at the places where PyTensor has them, which are modules that ours are built on.

`phintys.tensor` sets them when it is imported, because a module imports only from those below it.

>>> from phintys.tensor.elemwise import CAReduce
>>> from phintys.tensor.shape import Reshape
>>> from phintys.tensor.type import dvector, float_dtypes
>>> dvector("x").type, float_dtypes
(TensorType(float64, shape=(None,)), ('float16', 'float32', 'float64'))
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from phintys.scalar import dtypes
from phintys.tensor.axes import shape_padaxis, shape_padleft, shape_padright
from phintys.tensor.reduce import CAReduce
from phintys.tensor.reshape import Reshape, reshape
from phintys.tensor.type_constructors import CONSTRUCTORS, TYPES, tensor

_DTYPES = {
    **{"all_dtypes": dtypes.ALL, "discrete_dtypes": dtypes.DISCRETE},
    **{"continuous_dtypes": dtypes.CONTINUOUS, "complex_dtypes": dtypes.COMPLEX},
    **{"float_dtypes": dtypes.FLOAT, "integer_dtypes": dtypes.INTEGER},
    **{"int_dtypes": dtypes.SIGNED, "uint_dtypes": dtypes.UNSIGNED},
}
#: by the name of a module of this folder
PLACES: dict[str, Mapping[str, Any]] = {
    "elemwise": {"CAReduce": CAReduce},
    "shape": {
        f.__name__: f for f in (Reshape, reshape, shape_padaxis, shape_padleft, shape_padright)
    },
    "type": {"tensor": tensor, **CONSTRUCTORS, **TYPES, **_DTYPES},
}

for _module, _names in PLACES.items():
    vars(import_module(f"phintys.tensor.{_module}")).update(_names)
